//! What a run must never show.

use crate::check::Unexplained;
use crate::history::Position;
use resolver_types::{BatchError, Verdict, Version};
use thiserror::Error;

/// What ends a run as failed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Violation {
    /// The tree and the skip list that follows it decide differently.
    #[error(
        "resolver {resolver}, version {version}, transaction {transaction}: the tree decides {}, the skip list {}",
        tree.name(),
        list.name()
    )]
    VerdictsDiffer {
        /// The resolver's number.
        resolver: usize,
        /// The batch's version.
        version: Version,
        /// The transaction's place in what the resolver was sent.
        transaction: usize,
        /// The tree's verdict.
        tree: Verdict,
        /// The skip list's.
        list: Verdict,
    },
    /// The same verdicts, other reports.
    #[error(
        "resolver {resolver}, version {version}: the tree reports (transaction, read) {tree:?}, the skip list {list:?}"
    )]
    ReportsDiffer {
        /// The resolver's number.
        resolver: usize,
        /// The batch's version.
        version: Version,
        /// What the tree reports and the skip list does not.
        tree: Vec<(u32, u32)>,
        /// What the skip list reports and the tree does not.
        list: Vec<(u32, u32)>,
    },
    /// A conflict set refused a batch that a proxy may send.
    #[error("resolver {resolver}, version {version}: {set} refuses the batch: {source}")]
    Refused {
        /// The resolver's number.
        resolver: usize,
        /// The batch's version.
        version: Version,
        /// The conflict set's name.
        set: &'static str,
        /// Why.
        source: BatchError,
    },
    /// A history holds more than its budget, or its figures contradict each other.
    #[error(
        "resolver {resolver}, version {version}: the tree holds {held} bytes, at most {peak}, of {budget}"
    )]
    Memory {
        /// The resolver's number.
        resolver: usize,
        /// The batch's version.
        version: Version,
        /// Bytes held.
        held: u64,
        /// The greatest number of bytes held so far.
        peak: u64,
        /// The budget.
        budget: u64,
    },
    /// The cutoff went down.
    #[error("resolver {resolver}, version {version}: the tree's cutoff went down from {before} to {after}")]
    CutoffWentDown {
        /// The resolver's number.
        resolver: usize,
        /// The batch's version.
        version: Version,
        /// The cutoff before the batch.
        before: Version,
        /// The cutoff after it.
        after: Version,
    },
    /// The tree's checker found a broken invariant.
    #[error("resolver {resolver}, version {version}: the tree is broken: {broken}")]
    BrokenTree {
        /// The resolver's number.
        resolver: usize,
        /// The batch's version.
        version: Version,
        /// What the checker says.
        broken: String,
    },
    /// Two answers to one request differ.
    #[error("resolver {resolver} answers the batch at version {version} once like this and once like that")]
    AnswersDiffer {
        /// The resolver's number.
        resolver: usize,
        /// The batch's version.
        version: Version,
    },
    /// A report that the commit proxy cannot use, or that names another read than the resolver meant.
    #[error("transaction {attempt}: its report is wrong: {why}")]
    WrongReport {
        /// The transaction's number in the history.
        attempt: usize,
        /// What is wrong.
        why: &'static str,
    },
    /// A client was answered twice.
    #[error("transaction {attempt} was answered {answers} times")]
    AnsweredTwice {
        /// The transaction's number in the history.
        attempt: usize,
        /// How often.
        answers: u32,
    },
    /// A client was never answered, though its generation lived on.
    #[error("transaction {attempt} was never answered")]
    NeverAnswered {
        /// The transaction's number in the history.
        attempt: usize,
    },
    /// A client was told another place than the log has.
    #[error("transaction {attempt} was told that it committed at {told:?}, the log has it at {logged:?}")]
    WrongPosition {
        /// The transaction's number in the history.
        attempt: usize,
        /// What the client was told.
        told: Position,
        /// Where the log has it, if at all.
        logged: Option<Position>,
    },
    /// A new generation's own transaction was rejected.
    #[error("the recovery transaction of generation {0} was rejected")]
    RecoveryRejected(u32),
    /// The run does not come to rest.
    #[error("the run did not end after {0} events")]
    Endless(u64),
    /// The committed history is not strictly serializable.
    #[error(transparent)]
    History(#[from] Unexplained),
    /// The same seed gave another run.
    #[error("two runs of the seed differ: trace hashes {first} and {second}")]
    NotRepeatable {
        /// The first run's hash.
        first: String,
        /// The second run's.
        second: String,
    },
    /// Something panicked.
    #[error("panic: {0}")]
    Panicked(String),
}
