//! The trait that every history implements.

use crate::{Batch, BatchError, StageTimes, Verdicts, Version};

/// What a history may forget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Retention {
    /// What lies at or below the greatest `oldest` of all batches: what a server needs.
    #[default]
    Window,
    /// Nothing by `oldest`; only what a budget, or a floor that a follower is told, gives up. For replays and research on
    /// a history that starts at the beginning of all versions; wrong inside a server.
    Budget,
}

/// A conflict history and the rules to decide by it.
///
/// A batch is resolved in two steps, so that one set can apply another's verdicts: [`judge`](ConflictSet::judge) reads
/// only, [`commit`](ConflictSet::commit) applies the writes of the transactions that the given verdicts commit. Nothing
/// but the calls decides: the same calls give the same verdicts on every run and machine.
pub trait ConflictSet {
    /// The name on the command line: `tree`, `skiplist` or `model`.
    fn name(&self) -> &'static str;

    /// Decides every transaction of a batch; `verdicts` is overwritten. The history does not change, and judging again,
    /// or another batch, is allowed.
    ///
    /// # Errors
    /// [`BatchError::VersionNotNewer`] and [`BatchError::KeyTooLong`]; the history is untouched.
    fn judge(&mut self, batch: &Batch<'_>, verdicts: &mut Verdicts) -> Result<(), BatchError>;

    /// Applies the writes of the transactions that `verdicts` commits, at the batch's version, and then forgets what the
    /// retention lets it. `batch` is the one judged last; `verdicts` may be another set's.
    ///
    /// # Errors
    /// [`BatchError::NotJudged`]: the history is untouched. [`BatchError::OutOfBudget`]: part of the writes may have been
    /// applied, and the batch's version counts as committed.
    fn commit(&mut self, batch: &Batch<'_>, verdicts: &Verdicts) -> Result<(), BatchError>;

    /// Gives every key the version `base`, as in a new history: no last batch, no effective oldest, no cutoff, no floor.
    fn clear(&mut self, base: Version);

    /// Tells a follower another history's cutoff: from the next judgement on, a transaction that reads and whose read
    /// version lies below it is too old. It never goes down but by [`clear`](ConflictSet::clear).
    fn set_floor(&mut self, floor: Version);

    /// The greatest version at or below which this history can no longer tell writes apart, whether reclaimed for space or
    /// given up because it lay at or below the effective oldest. `None` before that.
    fn cutoff(&self) -> Option<Version>;

    /// The greatest `oldest` of all batches committed since creation or clear; [`Version::LOWEST`] before the first and
    /// under [`Retention::Budget`].
    fn effective_oldest(&self) -> Version;

    /// Bytes that the history holds now: everything that grows with it, batch arrays apart.
    fn memory_bytes(&self) -> u64;

    /// The greatest [`memory_bytes`](ConflictSet::memory_bytes) since creation.
    fn peak_memory_bytes(&self) -> u64;

    /// Switches the stage clock; it is off at first.
    fn time_stages(&mut self, on: bool);

    /// The time spent in each stage while the clock was on.
    fn stage_times(&self) -> StageTimes;

    /// Checks the whole history for what must always hold of it, in time linear in the history. For tests and fuzzing.
    ///
    /// # Errors
    /// The first invariant found broken, by its number, and what was found.
    fn validate(&self) -> Result<(), String> {
        Ok(())
    }

    /// What the history counts of its own work since creation, by name. Nothing of it takes part in a decision.
    fn counters(&self) -> Vec<(&'static str, u64)> {
        Vec::new()
    }
}
