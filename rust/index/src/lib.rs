//! The temporal tree.

pub mod pool;
