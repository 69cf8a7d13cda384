//! The tree beside another history that answers: judge, compare, apply what the other committed.
//!
//! # What is a difference
//! Both histories hold the same writes, so that every decision must be the same, with one exception:
//! what lies below the tree's cutoff the tree cannot decide. A transaction that is too old there, and
//! was not read below `oldest`, is *excused*: it is counted and no difference. Other transactions of the
//! batch are decided as if the tree had decided the excused ones as the other did: whether they commit
//! is what later transactions of the batch depend on.

use crate::bridge::ffi::Decided;
use crate::history::{Fallback, Resolver};
use resolver_types::{Batch, BatchError, ConflictSet, KeyRange, Transaction, Verdict, Verdicts, Version};
use std::fmt::Write as _;

/// How many reported reads a message names of each side.
const SHOWN_READS: usize = 16;

/// What the comparison keeps from batch to batch.
#[derive(Default)]
pub(crate) struct Shadow {
    /// Transactions decided differently so far.
    pub(crate) differences: u64,
    /// The version of the last batch that was not compared: up to it, the histories may hold different
    /// writes.
    unsure: Option<Version>,
    theirs: Verdicts,
    excused: Vec<bool>,
}

impl Shadow {
    /// Both histories have been cleared: they hold the same again.
    pub(crate) fn cleared(&mut self) {
        self.unsure = None;
    }
}

/// The differences in one batch.
pub(crate) struct Differences {
    pub(crate) count: u64,
    /// The first one, described in one line.
    pub(crate) first: String,
}

fn verdict(byte: u8) -> Verdict {
    match byte {
        0 => Verdict::Conflict,
        1 => Verdict::TooOld,
        3 => Verdict::Committed,
        other => panic!("{other} is no verdict"),
    }
}

impl Resolver {
    /// Judges a batch that another history has decided, compares (if it is to), and applies what that
    /// one committed.
    pub(crate) fn follow(
        &mut self,
        batch: &Batch<'_>,
        decided: &Decided<'_>,
    ) -> Result<(Option<Fallback>, Option<Differences>), BatchError> {
        let Decided { verdicts, reported, compare } = *decided;
        assert_eq!(verdicts.len(), batch.transactions.len(), "a verdict per transaction");
        if self.begins(batch) {
            return Ok((None, None));
        }
        let mut shadow = std::mem::take(&mut self.shadow);
        shadow.theirs.clear();
        shadow.theirs.verdicts.extend(verdicts.iter().map(|&byte| verdict(byte)));
        shadow.theirs.reported.extend(reported.iter().map(|read| (read.transaction, read.read)));
        shadow.theirs.reported.sort_unstable();
        shadow.theirs.reported.dedup();
        if !compare {
            shadow.unsure = Some(batch.version);
        }
        let result = self.follow_with(&mut shadow, batch);
        self.shadow = shadow;
        result
    }

    fn follow_with(
        &mut self,
        shadow: &mut Shadow,
        batch: &Batch<'_>,
    ) -> Result<(Option<Fallback>, Option<Differences>), BatchError> {
        self.set.judge(batch, &mut self.verdicts)?;
        self.empty_ranges += u64::from(self.set.empty_ranges());
        let oldest = self.set.effective_oldest().max(batch.oldest);
        let mut excused_any = 0;
        shadow.excused.clear();
        let decided = batch.transactions.iter().zip(&self.verdicts.verdicts).zip(&shadow.theirs.verdicts);
        shadow.excused.extend(decided.map(|((transaction, ours), theirs)| {
            let excused =
                *ours == Verdict::TooOld && *theirs != Verdict::TooOld && transaction.read_version >= oldest;
            excused_any += u64::from(excused);
            excused
        }));
        self.too_old_by_cutoff += excused_any;
        // Transactions that read below `unsure` may have seen what only one of the histories holds.
        let comparable = shadow.unsure.is_none_or(|unsure| oldest >= unsure);
        let (ended, differences) = if excused_any > 0 {
            let (transactions, ranges) = substitute(batch, &shadow.excused, &shadow.theirs.verdicts);
            let batch = Batch { transactions: &transactions, ranges: &ranges, ..*batch };
            self.set.judge(&batch, &mut self.verdicts)?;
            let differences = self.compare(shadow, &batch, comparable);
            (self.set.commit(&batch, &shadow.theirs), differences)
        } else {
            let differences = self.compare(shadow, batch, comparable);
            (self.set.commit(batch, &shadow.theirs), differences)
        };
        let fallback = self.fall_back(batch.version, ended)?;
        if fallback.is_some() {
            // The other history goes on with what it has: what was read before is undecidable here, not
            // in conflict.
            self.set.set_floor(batch.version);
        }
        shadow.differences += differences.as_ref().map_or(0, |differences| differences.count);
        Ok((fallback, differences))
    }

    fn compare(&self, shadow: &Shadow, batch: &Batch<'_>, comparable: bool) -> Option<Differences> {
        let (ours, theirs) = (&self.verdicts, &shadow.theirs);
        if !comparable || ours == theirs {
            return None;
        }
        let mut differences: Option<Differences> = None;
        for (index, transaction) in batch.transactions.iter().enumerate() {
            let decisions = [ours, theirs].map(|verdicts| verdicts.reported_of(index as u32));
            let [our_reads, their_reads] = decisions.map(Vec::from_iter);
            let (our, their) = (ours.verdicts[index], theirs.verdicts[index]);
            if shadow.excused[index] || (our == their && our_reads == their_reads) {
                continue;
            }
            let found = differences.get_or_insert_with(|| Differences {
                count: 0,
                first: format!(
                    "transaction {index}, read version {}: the skip list decides {}, the tree {}",
                    transaction.read_version,
                    decision(their, &their_reads),
                    decision(our, &our_reads)
                ),
            });
            found.count += 1;
        }
        differences
    }
}

fn decision(verdict: Verdict, reads: &[u32]) -> String {
    let mut text = verdict.name().to_owned();
    if !reads.is_empty() {
        let shown = &reads[..reads.len().min(SHOWN_READS)];
        let more = if shown.len() < reads.len() { " and more" } else { "" };
        write!(text, " on reads {shown:?}{more}").expect("a string takes everything");
    }
    text
}

/// The batch in which excused transactions read nothing, and write only if the other history committed
/// them: so the tree decides them like the other, and everybody else beside them.
fn substitute<'a>(
    batch: &Batch<'a>,
    excused: &[bool],
    theirs: &[Verdict],
) -> (Vec<Transaction>, Vec<KeyRange<'a>>) {
    let mut transactions = Vec::with_capacity(batch.transactions.len());
    let mut ranges = Vec::with_capacity(batch.ranges.len());
    for (index, transaction) in batch.transactions.iter().enumerate() {
        let (mut reads, mut writes) = (batch.reads(transaction), batch.writes(transaction));
        if excused[index] {
            reads = &[];
            if theirs[index] != Verdict::Committed {
                writes = &[];
            }
        }
        transactions.push(Transaction {
            first: ranges.len() as u32,
            reads: reads.len() as u32,
            writes: writes.len() as u32,
            ..*transaction
        });
        ranges.extend_from_slice(reads);
        ranges.extend_from_slice(writes);
    }
    (transactions, ranges)
}
