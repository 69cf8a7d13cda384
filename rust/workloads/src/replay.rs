//! Replaying a capture: are the decisions those that were recorded?

use crate::counts::Counts;
use crate::decide::{decide, follow};
use crate::input::{Maker, RunError, Source, Step};
use resolver_types::{Batch, BatchError, ConflictSet, DecisionHasher, Verdict, Verdicts, Version};
use std::fmt;
use std::ops::ControlFlow;

/// How many mismatches are kept to be shown; all are counted.
const SHOWN_MISMATCHES: usize = 20;

/// Whose decisions a replay is held against.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Expectation {
    /// The recorded ones.
    Recorded,
    /// Those of a reference that follows the replayed set's cutoff: once the cutoff alone made a transaction too old, or
    /// the set fell back, the history holds other writes than the one that was recorded.
    Following,
}

/// A decision about one transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    /// The verdict.
    pub verdict: Verdict,
    /// The reported read ranges.
    pub reported: Vec<u32>,
}

impl Decision {
    fn of(verdicts: &Verdicts, transaction: usize) -> Decision {
        Decision {
            verdict: verdicts.verdicts[transaction],
            reported: verdicts.reported_of(transaction as u32).collect(),
        }
    }
}

impl fmt::Display for Decision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.verdict.name())?;
        if !self.reported.is_empty() {
            write!(f, " on reads {:?}", self.reported)?;
        }
        Ok(())
    }
}

/// A transaction that was not decided as expected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The batch, counted from 0.
    pub batch: u64,
    /// The transaction's place in its batch, counted from 0.
    pub transaction: usize,
    /// Where the expected decision comes from.
    pub expectation: Expectation,
    /// The expected decision.
    pub expected: Decision,
    /// The name of the replayed set.
    pub set: &'static str,
    /// Its decision.
    pub found: Decision,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let whose = match self.expectation {
            Expectation::Recorded => "recorded",
            Expectation::Following => "expected (following the cutoff)",
        };
        let Mismatch { batch, transaction, expected, set, found, .. } = self;
        write!(f, "batch {batch}, transaction {transaction}: {whose} {expected}, {set} decides {found}")
    }
}

/// What a replay found.
#[derive(Clone, Debug, Default)]
pub struct Replayed {
    /// The replayed set's decisions.
    pub counts: Counts,
    /// Transactions with another verdict than expected.
    pub mismatches: u64,
    /// Transactions with the expected verdict, but with other reported reads.
    pub report_mismatches: u64,
    /// The first mismatches of either kind.
    pub shown: Vec<Mismatch>,
    /// What the history holds at the end.
    pub memory_bytes: u64,
    /// The most that it held.
    pub peak_memory_bytes: u64,
    /// The cutoff at the end.
    pub cutoff: Option<Version>,
    /// The hash over all decisions.
    pub decision_hash: String,
}

impl Replayed {
    fn compare(
        &mut self,
        batch: u64,
        set: &'static str,
        expectation: Expectation,
        (expected, found): (&Verdicts, &Verdicts),
    ) {
        if expected == found {
            return;
        }
        for transaction in 0..found.verdicts.len() {
            let (expected, found) = (Decision::of(expected, transaction), Decision::of(found, transaction));
            if expected == found {
                continue;
            }
            if expected.verdict == found.verdict {
                self.report_mismatches += 1;
            } else {
                self.mismatches += 1;
            }
            if self.shown.len() < SHOWN_MISMATCHES {
                self.shown.push(Mismatch { batch, transaction, expectation, expected, set, found });
            }
        }
    }
}

/// What a replay runs.
#[derive(Clone, Copy)]
pub struct Replay<'a> {
    /// Makes the set that is replayed through.
    pub make: Maker<'a>,
    /// Makes the reference that follows it where that is needed.
    pub reference: Maker<'a>,
    /// Whether the set's whole history is checked after every batch.
    pub validate: bool,
}

impl Replay<'_> {
    /// Replays recorded batches through a fresh set and compares every decision with the recorded one. Where the set's cutoff, or a
    /// fall back, parts its history from the recorded one, the replay is done again beside a fresh reference that follows
    /// the set, and compares with the reference from that batch on. The set goes on with its own verdicts after a mismatch.
    /// `tick` is called after every batch.
    ///
    /// # Errors
    /// When a set cannot be made, refuses a batch, or is found broken.
    pub fn run(&self, source: &dyn Source, tick: &mut dyn FnMut()) -> Result<Replayed, RunError> {
        let mut set = (self.make)()?;
        if let Some(replayed) = self.pass(source, &mut *set, None, tick)? {
            return Ok(replayed);
        }
        drop(set);
        let (mut set, mut follower) = ((self.make)()?, (self.reference)()?);
        let replayed = self.pass(source, &mut *set, Some(&mut *follower), tick)?;
        Ok(replayed.expect("with a follower, a pass runs to its end"))
    }

    /// One pass; `None` as soon as it needs a follower and has none.
    fn pass(
        &self,
        source: &dyn Source,
        set: &mut dyn ConflictSet,
        mut follower: Option<&mut dyn ConflictSet>,
        tick: &mut dyn FnMut(),
    ) -> Result<Option<Replayed>, RunError> {
        let mut replayed = Replayed::default();
        let mut hasher = DecisionHasher::default();
        let (mut found, mut following) = (Verdicts::default(), Verdicts::default());
        let mut parted = false;
        let mut needs_follower = false;
        source.stretches(&mut |views, recorded| {
            let mut recorded = recorded.iter();
            for step in views.steps() {
                let batch = match step {
                    Step::Batch(batch) => batch,
                    Step::Clear(version) => {
                        set.clear(version);
                        if let Some(follower) = follower.as_deref_mut() {
                            follower.clear(version);
                        }
                        parted = false;
                        continue;
                    }
                };
                let number = replayed.counts.batches;
                let refused = |set: &dyn ConflictSet| {
                    let set = set.name();
                    move |source: BatchError| RunError::Refused { set, batch: number, source }
                };
                let cutoff = set.cutoff();
                let decided = decide(set, &batch, &mut found).map_err(refused(set))?;
                if let Some(follower) = follower.as_deref_mut() {
                    if let Some(cutoff) = cutoff {
                        follower.set_floor(cutoff);
                    }
                    follow(follower, &decided, &batch, &mut following).map_err(refused(follower))?;
                }
                if self.validate {
                    let broken = |found| RunError::Broken { set: set.name(), batch: number, found };
                    set.validate().map_err(broken)?;
                }
                hasher.add(&found);
                let expected = recorded.next();
                let by_cutoff = replayed.counts.add(&batch, &found, &decided);
                parted |= by_cutoff > 0
                    || expected
                        .is_some_and(|expected| ignores_oldest(decided.effective_oldest, &batch, expected));
                let (expectation, expected) = match (expected, &follower) {
                    (Some(expected), _) if !parted => (Expectation::Recorded, expected),
                    (_, Some(_)) => (Expectation::Following, &following),
                    (_, None) => {
                        needs_follower = true;
                        return Ok(ControlFlow::Break(()));
                    }
                };
                replayed.compare(number, set.name(), expectation, (expected, &found));
                // The verdicts of the batch stand; the next ones meet another history.
                parted |= decided.fell_back;
                tick();
            }
            Ok(ControlFlow::Continue(()))
        })?;
        if needs_follower {
            return Ok(None);
        }
        replayed.memory_bytes = set.memory_bytes();
        replayed.peak_memory_bytes = set.peak_memory_bytes();
        replayed.cutoff = set.cutoff();
        replayed.decision_hash = hasher.hex();
        Ok(Some(replayed))
    }
}

/// Whether the recorded decisions rest on an `oldest` that the set's retention ignores.
fn ignores_oldest(effective_oldest: Version, batch: &Batch<'_>, recorded: &Verdicts) -> bool {
    effective_oldest < batch.oldest && recorded.verdicts.contains(&Verdict::TooOld)
}
