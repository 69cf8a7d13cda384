//! What routing a sorted batch costs in comparisons: by a formula, counted in a model, and counted by the tree itself.
//!
//! The model is the one that the design of the batched descent was published with. A tree is a number of intervals in each
//! leaf and a number of children in each inner node. The begins of reads are sorted, and each falls into one interval, every
//! interval of a region as likely as another. *Independent* routing searches the separators of every node on the way for each
//! begin by itself; *grouped* routing halves the separators of a node and searches the begins for the middle one, so that
//! each separator is looked for once in what begins are left. A leaf costs one search for each begin, or one for each leaf
//! that begins reach.
//!
//! The tree departs from the model in three places: a begin that is alone in a node is looked for in the whole node, whatever
//! part of it was left; of two separators in the middle it takes the lower one; and where a node has about as many separators
//! as begins, it walks along both, with several begins in one comparison. With these rules the model's count is the tree's,
//! to the comparison.

mod model;

pub use model::{Comparisons, Rule, Shape, analytical, counted};

use crate::{TreeConfig, TreeSet};
use resolver_index::ConfigError;
use resolver_types::{
    Batch, BatchError, ConflictSet, KeyRange, Retention, Transaction, Verdict, Verdicts, Version,
};
use thiserror::Error;

/// Intervals written in one batch.
const BATCH: usize = 10_000;

/// Why nothing was counted.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ComparisonsError {
    /// The tree could not be made.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The tree refused a batch.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// The budget does not hold the intervals: older ones were given up.
    #[error("the budget does not hold {intervals} intervals")]
    Reclaimed {
        /// The intervals that should have been held.
        intervals: usize,
    },
}

/// A tree that holds one-key intervals, and what it counts.
pub struct Counter {
    set: TreeSet,
    intervals: usize,
}

/// What the tree counted of a batch of reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TreeCount {
    /// Separators compared when each read was a batch of its own.
    pub independent: u64,
    /// Separators compared when all were one batch.
    pub grouped: u64,
    /// Leaves that the one batch looked into.
    pub leaves: u64,
}

/// A letter and an interval's number, big-endian; one zero byte more is the end of the interval.
type Key = [u8; 10];
const KEY_LENGTH: usize = 9;

fn key(interval: u64) -> Key {
    let mut key = [0; 10];
    key[0] = b'k';
    key[1..KEY_LENGTH].copy_from_slice(&interval.to_be_bytes());
    key
}

fn point(key: &Key) -> KeyRange<'_> {
    KeyRange { begin: &key[..KEY_LENGTH], end: key }
}

impl Counter {
    /// A tree with intervals `0..order.len()`, written in that order. O(n log n).
    ///
    /// # Errors
    /// [`ComparisonsError`].
    pub fn new(config: TreeConfig, order: &[u32]) -> Result<Counter, ComparisonsError> {
        let mut set = TreeSet::new(TreeConfig { retention: Retention::Budget, ..config })?;
        let mut verdicts = Verdicts::default();
        for (version, intervals) in (1..).zip(order.chunks(BATCH)) {
            let keys: Vec<Key> = intervals.iter().map(|&interval| key(interval.into())).collect();
            let ranges: Vec<KeyRange<'_>> = keys.iter().map(point).collect();
            let transaction = Transaction {
                read_version: Version::ZERO,
                report: false,
                first: 0,
                reads: 0,
                writes: ranges.len() as u32,
            };
            let batch = Batch {
                version: Version(version),
                oldest: Version::LOWEST,
                transactions: &[transaction],
                ranges: &ranges,
            };
            set.judge(&batch, &mut verdicts)?;
            set.commit(&batch, &verdicts)?;
        }
        if set.cutoff().is_some() {
            return Err(ComparisonsError::Reclaimed { intervals: order.len() });
        }
        Ok(Counter { set, intervals: order.len() })
    }

    /// The tree's shape.
    pub fn shape(&self) -> Shape {
        Shape::from(self.set.tree().outline())
    }

    /// Counts reads of the given intervals, each at a version before all writes, so that none is answered above its leaf.
    ///
    /// # Errors
    /// When the tree refuses the batch.
    ///
    /// # Panics
    /// When an interval is not there.
    pub fn count(&mut self, reads: &[u64]) -> Result<TreeCount, ComparisonsError> {
        assert!(reads.iter().all(|&read| read < self.intervals as u64), "only what was written is read");
        let before = *self.set.tree().stats();
        for read in reads {
            self.judge(std::slice::from_ref(read))?;
        }
        let between = *self.set.tree().stats();
        self.judge(reads)?;
        let after = *self.set.tree().stats();
        Ok(TreeCount {
            independent: between.routing_head_comparisons - before.routing_head_comparisons,
            grouped: after.routing_head_comparisons - between.routing_head_comparisons,
            leaves: after.leaf_reads - between.leaf_reads,
        })
    }

    fn judge(&mut self, reads: &[u64]) -> Result<(), ComparisonsError> {
        let keys: Vec<Key> = reads.iter().map(|&read| key(read)).collect();
        let ranges: Vec<KeyRange<'_>> = keys.iter().map(point).collect();
        let transaction =
            |first| Transaction { read_version: Version::ZERO, report: false, first, reads: 1, writes: 0 };
        let transactions: Vec<Transaction> = (0..reads.len() as u32).map(transaction).collect();
        let batch = Batch {
            version: Version(i64::MAX),
            oldest: Version::LOWEST,
            transactions: &transactions,
            ranges: &ranges,
        };
        let mut verdicts = Verdicts::default();
        self.set.judge(&batch, &mut verdicts)?;
        assert!(
            verdicts.verdicts.iter().all(|&verdict| verdict == Verdict::Conflict),
            "all was written since"
        );
        Ok(())
    }
}
