//! WARC 1.1 records and CDXJ lines to bytes and back.
