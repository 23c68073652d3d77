//! One response in, outlinks and directives out; total, bounded work.
