//! Why a batch was refused.

use crate::Version;
use thiserror::Error;

/// Why a conflict set refused a batch: one variant per reaction that a caller can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BatchError {
    /// The batch is not newer than what the history holds. The history is untouched; the caller's order is wrong.
    #[error("batch version {version} is not above {newest}, the newest version of the history")]
    VersionNotNewer {
        /// The batch's version.
        version: Version,
        /// The greater of the last batch's version and the base.
        newest: Version,
    },
    /// A key is longer than the limit. The history is untouched; the batch can be sent again without it.
    #[error("range {range} of the batch has a key of {length} bytes, over the limit of {limit}")]
    KeyTooLong {
        /// Index in the batch's ranges.
        range: usize,
        /// The key's length in bytes.
        length: usize,
        /// The limit in bytes: for a begin the longest key, for an end one more.
        limit: usize,
    },
    /// `commit` was given a batch or verdicts that do not belong to the batch judged last. The history is untouched.
    #[error("the batch to commit at version {version} is not the one that was judged last")]
    NotJudged {
        /// The version of the batch that was to be committed.
        version: Version,
    },
    /// The budget cannot hold a write even with all older history given up. The verdicts stand and the writes that
    /// were applied before this one stay; the safe reaction is `clear(version)`.
    #[error("write {write} of the batch needs {needed} bytes, and only {available} of the budget can be had")]
    OutOfBudget {
        /// Position of the write in the batch's combined writes, in key order.
        write: usize,
        /// Bytes that the write needs.
        needed: u64,
        /// Bytes that an otherwise empty history could give it.
        available: u64,
    },
}
