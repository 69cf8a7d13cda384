//! What every conflict set of this project has in common: versions, keys, ranges, batches, verdicts, and the
//! trait that a conflict set implements. Plain data, no algorithm: the temporal tree, the skip list and the
//! reference model share nothing but this crate, so that agreement between them means something.
//!
//! # Glossary
//! | term | meaning |
//! | --- | --- |
//! | key | a byte string of 0 to [`MAX_KEY_LENGTH`] bytes, ordered bytewise, a proper prefix first |
//! | range `[b, e)` | the keys `k` with `b <= k < e`; `[k, k\0)` is the *point* range of `k` |
//! | read version | the version a transaction read at |
//! | commit version | the version of the batch that wrote an interval |
//! | base | the version of every key that no write covers |
//! | effective oldest | the greatest `oldest` of all batches so far: history at or below it may be forgotten |
//! | cutoff | the greatest version at or below which a history can no longer tell writes apart |
//! | floor | a bound that a *follower* is told: another history's cutoff, used like its own |

mod batch;
mod conflict_set;
mod error;
mod stages;
mod verdict;
mod version;

pub use batch::{Batch, KeyRange, MAX_END_LENGTH, MAX_KEY_LENGTH, Transaction};
pub use conflict_set::{ConflictSet, Retention};
pub use error::BatchError;
pub use stages::{STAGES, Stage, StageClock, StageTimes};
pub use verdict::{DecisionHasher, Verdict, Verdicts};
pub use version::Version;
