//! Target `tree`: batches through the tree, the skip list and the model.
//!
//! # Strategy
//! The settings choose retention, search, strategy, and how soon stamps are renumbered; the budget holds all that a script
//! can write, so that only `oldest` and clears make anything go. The script is a history of batches: see
//! `script`.
//!
//! # Invariants
//! - Verdicts and reported ranges are those of the model and of the skip list, which are told the cutoff before
//!   each batch; judging twice gives the same.
//! - What the tree commits does not conflict with anything that it ever committed.
//! - The cutoff never goes down and does not reach the batch; the budget holds; `validate` after every batch.

use crate::history;
use crate::script::Script;
use crate::target::{Target, planted_in_tree};
use resolver_index::{Backing, Config, Strategy, Tasks};
use resolver_resolve::TreeConfig;
use resolver_types::Retention;

/// The target.
pub const TARGET: Target = Target { name: "tree", body, canary: "pruned-by-one" };

fn body(input: &[u8], bug: Option<&'static str>) -> bool {
    let script = Script::new(input);
    let [flags, stamps, tasks, ..] = script.settings;
    let index = Config {
        budget_bytes: 16 << 20,
        backing: Backing::Heap,
        vector_search: flags & 1 == 0,
        stamp_limit: [u32::MAX - 1, 2, 5, 170][usize::from(stamps & 3)],
        strategy: strategy(tasks),
        planted: planted_in_tree(bug),
        ..Config::default()
    };
    let retention = if flags & 2 == 0 { Retention::Window } else { Retention::Budget };
    history::run(&script, TreeConfig { retention, index })
}

/// The strategy: most often the pipelined one, as an input without settings has it.
pub(crate) fn strategy(setting: u8) -> Strategy {
    let tasks = match setting & 7 {
        1 => Tasks { reads: 1, groups: 1, group_size: 1 },
        2 => Tasks { reads: 2, groups: 4, group_size: 4 },
        3 => Tasks::default(),
        _ => return Strategy::Pipelined,
    };
    Strategy::Cooperative(tasks)
}
