//! See `src/tree.rs` for strategy and invariants.
#![cfg_attr(fuzzing, no_main)]

resolver_fuzz::target!(tree);
