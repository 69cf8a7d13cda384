//! How a tree is made.

use crate::planted::Planted;
use crate::pool::{BLOCK_BYTES, Backing, PAGE_BYTES, PoolError, Refusals};
use resolver_types::MAX_END_LENGTH;
use thiserror::Error;

/// How a tree is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// The most bytes that the history may hold, side tables included. Address space only, until it is used.
    pub budget_bytes: u64,
    /// Where the pool's memory comes from.
    pub backing: Backing,
    /// Whether the in-node searches may use the processor's vector instructions. The decisions are the same.
    pub vector_search: bool,
    /// The stamp at which all stamps are renumbered; the default is the last that there is. Only tests set
    /// another.
    pub stamp_limit: u32,
    /// How a batch's endpoints find their places. The decisions and the tree are the same.
    pub strategy: Strategy,
    /// A bug on purpose; none that could be planted without the feature `planted-bugs`.
    pub planted: Planted,
    /// Address space that is refused on purpose; none can be without the feature `fuzzing`.
    pub refusals: Refusals,
}

impl Default for Config {
    fn default() -> Config {
        Config {
            budget_bytes: 1 << 30,
            backing: Backing::preferred(),
            vector_search: true,
            stamp_limit: u32::MAX - 1,
            strategy: Strategy::default(),
            planted: Planted::default(),
            refusals: Refusals::default(),
        }
    }
}

/// How memory latency is hidden while a batch's endpoints are looked up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Strategy {
    /// Levels and leaves in key order, each node prefetched a fixed distance ahead.
    #[default]
    Pipelined,
    /// Resumable tasks that prefetch what they touch next and yield: the schedulers of the posts.
    Cooperative(Tasks),
}

/// How many tasks the cooperative strategy keeps at once. One of each kind is a sequential run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Tasks {
    /// Resident read tasks, the posts' G.
    pub reads: usize,
    /// Groups of write tasks.
    pub groups: usize,
    /// Write tasks of a group.
    pub group_size: usize,
}

impl Tasks {
    /// The most tasks of one kind.
    pub const MOST: usize = 1024;

    /// Checks the numbers, each by itself and the write tasks together.
    ///
    /// # Errors
    /// [`ConfigError::Tasks`] for one that is not from 1 to [`Tasks::MOST`].
    pub fn checked(self) -> Result<Tasks, ConfigError> {
        let writes = self.groups.saturating_mul(self.group_size);
        for (kind, given) in [("read", self.reads), ("write", writes)] {
            if !(1..=Tasks::MOST).contains(&given) {
                return Err(ConfigError::Tasks { kind, given });
            }
        }
        Ok(self)
    }
}

impl Default for Tasks {
    /// What version 3.8 of the posts' resolver runs: 16 read tasks, two groups of eight write tasks.
    fn default() -> Tasks {
        Tasks { reads: 16, groups: 2, group_size: 8 }
    }
}

/// Blocks that the longest legal range takes in an empty tree: the tails of both ends, a leaf, and the block
/// of its version.
const LEAST_BLOCKS: u64 = 2 * (MAX_END_LENGTH.div_ceil(crate::layout::KEY_BLOCK_BYTES) as u64 + 1) + 2;

/// The least budget: whole pages for [`LEAST_BLOCKS`], and one more for side tables.
pub const LEAST_BUDGET: u64 =
    (LEAST_BLOCKS * BLOCK_BYTES as u64).div_ceil(PAGE_BYTES as u64) * PAGE_BYTES as u64 + PAGE_BYTES as u64;

/// Why a tree could not be made.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConfigError {
    /// The budget does not hold the longest legal range.
    #[error("a budget of {budget} bytes is below {least}, what the longest legal key and a root take")]
    BudgetTooSmall {
        /// The budget that was asked for, in bytes.
        budget: u64,
        /// The least that works, in bytes.
        least: u64,
    },
    /// A number of tasks that the cooperative strategy does not run with.
    #[error("{given} {kind} tasks: there must be from 1 to {}", Tasks::MOST)]
    Tasks {
        /// Of reads or of writes.
        kind: &'static str,
        /// How many were asked for.
        given: usize,
    },
    /// The pool could not be had.
    #[error(transparent)]
    Pool(#[from] PoolError),
}

/// A write that the budget cannot hold, even with all older history given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("write {write} needs {needed} bytes, and only {available} of the budget can be had")]
pub struct OutOfBudget {
    /// Position in the batch's combined writes.
    pub write: usize,
    /// Bytes that the write can take at most.
    pub needed: u64,
    /// Bytes that are left when all older history is given up.
    pub available: u64,
}
