//! RFC 9309: the bytes of a robots.txt file in, rules out; total.
