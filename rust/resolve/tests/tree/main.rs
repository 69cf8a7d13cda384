//! The tree over the conflict set's trait: beside its references, under every budget, in every layout.

mod agreement;
mod budget;
mod campaign;
mod cooperative;
mod differential;
mod foreign;
mod huge;
mod kit;
mod layout;
mod scenarios;
mod stamps;
mod trial;
mod twins;
mod waning;

use resolver_index::{Backing, Config};
use resolver_resolve::TreeConfig;
use resolver_types::Retention;

/// A tree's settings over the heap.
fn config(retention: Retention, budget_bytes: u64) -> TreeConfig {
    TreeConfig { retention, index: Config { budget_bytes, backing: Backing::Heap, ..Config::default() } }
}
