//! One batch through a conflict set, as a server takes it.

use resolver_types::{Batch, BatchError, ConflictSet, Verdicts, Version};

/// What a batch did to the history, its verdicts apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decided {
    /// The effective oldest that the batch was judged by.
    pub effective_oldest: Version,
    /// Whether the budget could not hold the batch's writes, so that the history was cleared to the batch's version.
    pub fell_back: bool,
}

/// Judges a batch and commits it with the set's own verdicts. Where the budget cannot hold the writes, the verdicts stand, and the
/// history falls back on what a server can always do safely: every key gets the batch's version.
///
/// # Errors
/// When the set refuses the batch.
pub fn decide(
    set: &mut dyn ConflictSet,
    batch: &Batch<'_>,
    verdicts: &mut Verdicts,
) -> Result<Decided, BatchError> {
    set.judge(batch, verdicts)?;
    let committed = set.commit(batch, verdicts);
    let effective_oldest = set.effective_oldest();
    let fell_back = match committed {
        Ok(()) => false,
        Err(BatchError::OutOfBudget { .. }) => {
            set.clear(batch.version);
            true
        }
        Err(refused) => return Err(refused),
    };
    Ok(Decided { effective_oldest, fell_back })
}

/// Has a follower judge the same batch, commit its own verdicts, and fall back where the followed set did. A follower has no budget.
///
/// # Errors
/// When the follower refuses the batch.
pub(crate) fn follow(
    follower: &mut dyn ConflictSet,
    decided: &Decided,
    batch: &Batch<'_>,
    verdicts: &mut Verdicts,
) -> Result<(), BatchError> {
    follower.judge(batch, verdicts)?;
    follower.commit(batch, verdicts)?;
    if decided.fell_back {
        follower.clear(batch.version);
    }
    Ok(())
}
