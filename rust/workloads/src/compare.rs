//! Comparing one conflict set with others, batch by batch.

use crate::counts::Counts;
use crate::decide::{decide, follow};
use crate::part::Part;
use resolver_types::{Batch, BatchError, ConflictSet, Verdict, Verdicts, Version};
use thiserror::Error;

/// A batch about which two sets disagree.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Difference {
    /// Another verdict.
    #[error(
        "transaction {transaction}: {index} decides {}, {reference} decides {}",
        index_verdict.name(),
        reference_verdict.name()
    )]
    Verdict {
        /// The transaction's place in the batch.
        transaction: usize,
        /// The checked set's name.
        index: &'static str,
        /// Its verdict.
        index_verdict: Verdict,
        /// The reference's name.
        reference: &'static str,
        /// Its verdict.
        reference_verdict: Verdict,
    },
    /// The same verdicts, other reported reads.
    #[error(
        "transaction {transaction}: {index} reports reads {index_reads:?}, {reference} reports {reference_reads:?}"
    )]
    Report {
        /// The transaction's place in the batch.
        transaction: u32,
        /// The checked set's name.
        index: &'static str,
        /// The reads that it reports.
        index_reads: Vec<u32>,
        /// The reference's name.
        reference: &'static str,
        /// The reads that the reference reports.
        reference_reads: Vec<u32>,
    },
    /// A transaction committed over a write that a history which never forgets still knows.
    #[error(
        "of the transactions that {index} commits, number {nth} conflicts with writes that it accepted before"
    )]
    Forgotten {
        /// The transaction's place among those of the batch that were committed, counted from 0.
        nth: usize,
        /// The checked set's name.
        index: &'static str,
    },
    /// The cutoff went down.
    #[error("the cutoff of {index} goes down from {before} to {after:?}")]
    CutoffWentDown {
        /// The checked set's name.
        index: &'static str,
        /// The cutoff before the batch.
        before: Version,
        /// The cutoff after it.
        after: Option<Version>,
    },
    /// After the batch, the checked set's history is not what it must be.
    #[error("{index} is broken: {found}")]
    Broken {
        /// The checked set's name.
        index: &'static str,
        /// The invariant's number, and what was found.
        found: String,
    },
    /// A set refused the batch.
    #[error("{set} refuses it: {source}")]
    Refused {
        /// The set's name.
        set: &'static str,
        /// Why.
        source: BatchError,
    },
}

/// A conflict set beside references that follow it.
///
/// Before each batch the references are told the set's cutoff, and then have to give the same verdicts and reports.
/// Besides, a witness, a history that never forgets, is given exactly the transactions that the set commits, and
/// must not find a conflict among them: what the set gave up, it also rejected. Where the set's budget cannot hold a batch's
/// writes, all of them fall back on the batch's version.
pub struct Comparison {
    index: Box<dyn ConflictSet>,
    references: Vec<Box<dyn ConflictSet>>,
    witness: Box<dyn ConflictSet>,
    validate: bool,
    counts: Counts,
    found: Verdicts,
    other: Verdicts,
}

impl Comparison {
    /// Compares `index` with `references`. The `witness` must keep everything: [`Retention::Budget`] without a budget.
    ///
    /// [`Retention::Budget`]: resolver_types::Retention::Budget
    pub fn new(
        index: Box<dyn ConflictSet>,
        references: Vec<Box<dyn ConflictSet>>,
        witness: Box<dyn ConflictSet>,
    ) -> Comparison {
        Comparison {
            index,
            references,
            witness,
            validate: false,
            counts: Counts::default(),
            found: Verdicts::default(),
            other: Verdicts::default(),
        }
    }

    /// Checks the set's whole history after every batch as well.
    pub fn validating(self) -> Comparison {
        Comparison { validate: true, ..self }
    }

    /// The checked set.
    pub fn index(&self) -> &dyn ConflictSet {
        &*self.index
    }

    /// The decisions so far.
    pub fn counts(&self) -> &Counts {
        &self.counts
    }

    /// Gives every key the version `base`, in all of them.
    pub fn clear(&mut self, base: Version) {
        for set in self.references.iter_mut().chain([&mut self.index, &mut self.witness]) {
            set.clear(base);
        }
    }

    /// Gives the next batch to all, each applying its own verdicts.
    ///
    /// # Errors
    /// The first difference; the comparison cannot go on after it.
    pub fn step(&mut self, batch: &Batch<'_>) -> Result<(), Difference> {
        let refused = |set: &dyn ConflictSet| {
            let set = set.name();
            move |source: BatchError| Difference::Refused { set, source }
        };
        let cutoff = self.index.cutoff();
        let decided = decide(&mut *self.index, batch, &mut self.found).map_err(refused(&*self.index))?;
        if let Some(before) = cutoff
            && self.index.cutoff() < Some(before)
            && !decided.fell_back
        {
            let (index, after) = (self.index.name(), self.index.cutoff());
            return Err(Difference::CutoffWentDown { index, before, after });
        }
        for reference in &mut self.references {
            if let Some(cutoff) = cutoff {
                reference.set_floor(cutoff);
            }
            follow(&mut **reference, &decided, batch, &mut self.other).map_err(refused(&**reference))?;
            if let Some(difference) =
                difference((self.index.name(), &self.found), (reference.name(), &self.other))
            {
                return Err(difference);
            }
        }
        let committed = Part::of(batch, |index| self.found.verdicts[index] == Verdict::Committed);
        follow(&mut *self.witness, &decided, &committed.batch(), &mut self.other)
            .map_err(refused(&*self.witness))?;
        if let Some(nth) = self.other.verdicts.iter().position(|&verdict| verdict != Verdict::Committed) {
            return Err(Difference::Forgotten { nth, index: self.index.name() });
        }
        if self.validate {
            let index = self.index.name();
            self.index.validate().map_err(|found| Difference::Broken { index, found })?;
        }
        self.counts.add(batch, &self.found, &decided);
        Ok(())
    }
}

fn difference(
    (index, found): (&'static str, &Verdicts),
    (reference, other): (&'static str, &Verdicts),
) -> Option<Difference> {
    let differing = found.verdicts.iter().zip(&other.verdicts).position(|(found, other)| found != other);
    if let Some(transaction) = differing {
        return Some(Difference::Verdict {
            transaction,
            index,
            index_verdict: found.verdicts[transaction],
            reference,
            reference_verdict: other.verdicts[transaction],
        });
    }
    let reports = |verdicts: &Verdicts, transaction| verdicts.reported_of(transaction).collect::<Vec<_>>();
    (0..found.verdicts.len() as u32)
        .find(|&transaction| {
            found.reported != other.reported && reports(found, transaction) != reports(other, transaction)
        })
        .map(|transaction| Difference::Report {
            transaction,
            index,
            index_reads: reports(found, transaction),
            reference,
            reference_reads: reports(other, transaction),
        })
}
