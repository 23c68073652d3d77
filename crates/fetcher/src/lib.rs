//! One lease in, one outcome out: reqwest, DNS, address guard, bounded bodies.
