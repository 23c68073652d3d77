//! A sharded concurrent Bloom filter over 128-bit keys: layout, sizing and exactly-once insertion.
