//! Counting decisions.

use crate::decide::Decided;
use resolver_types::{Batch, Verdict, Verdicts};

/// How often each decision occurred.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Batches decided.
    pub batches: u64,
    /// Transactions decided.
    pub transactions: u64,
    /// Read ranges of the transactions.
    pub reads: u64,
    /// Their write ranges.
    pub writes: u64,
    /// Transactions that committed.
    pub committed: u64,
    /// Transactions in conflict.
    pub conflicts: u64,
    /// Transactions that were too old, for whatever reason.
    pub too_old: u64,
    /// Those of them that the effective oldest would have let through: too old by the cutoff alone.
    pub too_old_by_cutoff: u64,
    /// Transactions whose conflicting reads were reported.
    pub reports: u64,
    /// Batches whose writes the budget could not hold, after which the history fell back on their version.
    pub fallbacks: u64,
}

impl Counts {
    /// Adds the decisions about one batch and returns how many transactions were too old by the cutoff alone.
    pub fn add(&mut self, batch: &Batch<'_>, verdicts: &Verdicts, decided: &Decided) -> u64 {
        self.batches += 1;
        self.fallbacks += u64::from(decided.fell_back);
        self.transactions += batch.transactions.len() as u64;
        let mut by_cutoff = 0;
        for (transaction, verdict) in batch.transactions.iter().zip(&verdicts.verdicts) {
            self.reads += u64::from(transaction.reads);
            self.writes += u64::from(transaction.writes);
            match verdict {
                Verdict::Committed => self.committed += 1,
                Verdict::Conflict => self.conflicts += 1,
                Verdict::TooOld => {
                    self.too_old += 1;
                    by_cutoff += u64::from(transaction.read_version >= decided.effective_oldest);
                }
            }
        }
        self.too_old_by_cutoff += by_cutoff;
        self.reports += verdicts.reported.chunk_by(|left, right| left.0 == right.0).count() as u64;
        by_cutoff
    }

    /// Adds the counts of another run.
    pub fn merge(&mut self, other: &Counts) {
        self.batches += other.batches;
        self.transactions += other.transactions;
        self.reads += other.reads;
        self.writes += other.writes;
        self.committed += other.committed;
        self.conflicts += other.conflicts;
        self.too_old += other.too_old;
        self.too_old_by_cutoff += other.too_old_by_cutoff;
        self.reports += other.reports;
        self.fallbacks += other.fallbacks;
    }
}
