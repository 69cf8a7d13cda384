//! Target `budget`: batches through tree, skip list and model under tiny budgets, with address space refused.
//!
//! # Strategy
//! As `tree`, but the settings also choose a budget between the least one and a mebibyte more, and a script of 32
//! bits: which of the pool's requests for more address space the operating system refuses. The tree has to
//! reclaim, or to name what it lacks; then all histories fall back on the batch's version.
//!
//! # Invariants
//! Those of `tree`, and: what is held never exceeds the budget; a batch is refused only where it needs more than
//! can be had; after a refusal, the tree is valid.

use crate::history;
use crate::script::Script;
use crate::target::{Target, planted_in_tree};
use crate::tree::strategy;
use resolver_index::{Backing, Config, LEAST_BUDGET, Refusals};
use resolver_resolve::TreeConfig;
use resolver_types::Retention;

/// The target.
pub const TARGET: Target = Target { name: "budget", body, canary: "reservation-forgets-splits" };

fn body(input: &[u8], bug: Option<&'static str>) -> bool {
    let script = Script::new(input);
    let [flags, stamps, pages, refused @ .., _] = script.settings;
    let index = Config {
        budget_bytes: LEAST_BUDGET + u64::from(pages & 15) * 65_536 + u64::from(pages >> 4),
        backing: Backing::Heap,
        vector_search: flags & 1 == 0,
        stamp_limit: [u32::MAX - 1, 2, 5, 170][usize::from(stamps & 3)],
        strategy: strategy(flags >> 2),
        planted: planted_in_tree(bug),
        refusals: Refusals::new(u64::from(u32::from_le_bytes(refused))),
    };
    let retention = if flags & 2 == 0 { Retention::Window } else { Retention::Budget };
    history::run(&script, TreeConfig { retention, index })
}
