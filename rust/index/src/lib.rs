//! The temporal tree.

pub mod pool;
pub mod search;
