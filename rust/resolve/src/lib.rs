//! A batch over the temporal tree: from requests to verdicts, and from verdicts to writes.
//!
//! # The way of one batch
//! | stage | module | what it does |
//! | --- | --- | --- |
//! | sort | `intake`, `sort` | takes the batch in (too old, empty ranges out, keys borrowed), sorts its endpoints as 16-byte records, numbers the distinct keys |
//! | check reads | `resolver_index` | one descent for reads and writes, each leaf once |
//! | within the batch | `within` | a bit for each distinct key; transactions in order |
//! | combine | `combine` | the accepted writes united, in key order |
//! | apply | `resolver_index` | merged leaf by leaf |
//! | expire | `resolver_index` | the cutoff moves, some reclamation is done |
//!
//! Nothing flows back: reads see a history that cannot change under them, writes see decisions that cannot
//! change.

mod combine;
pub mod comparisons;
mod intake;
mod sort;
mod tree_set;
pub mod wide_reads;
mod within;

pub use tree_set::{TreeConfig, TreeSet};
