//! The temporal tree.
mod batch;
mod config;
mod keys;
mod layout;
mod node;
pub mod pool;
mod read;
mod reclaim;
mod route;
pub mod search;
mod stats;
mod tree;
mod validate;
mod versions;
mod write;

pub use batch::{Endpoint, EndpointKind, Probes, ReadSink, Write};
pub use config::{Config, ConfigError, LEAST_BUDGET, OutOfBudget};
pub use pool::Backing;
pub use stats::Stats;
pub use tree::{Blocks, Tree};
pub use validate::{Broken, Shape};
