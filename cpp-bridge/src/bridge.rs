//! The boundary: every type and function that C++ sees. What it holds is plain: numbers, views, and
//! handles to what Rust owns.
#![allow(unsafe_code)]

use crate::history::{TreeHistory, make_tree};
use crate::settings::{Settings, load_settings};

#[allow(missing_docs, unreachable_pub, unused_qualifications, clippy::needless_lifetimes)]
#[cxx::bridge(namespace = "resolver_bridge")]
pub(crate) mod ffi {
    /// Which history answers.
    #[derive(Debug)]
    enum Choice {
        Tree,
        SkipList,
        Shadow,
    }

    /// How a call ended.
    #[derive(Debug)]
    enum Status {
        /// As it should.
        Done,
        /// The verdicts stand, but the budget could not hold the writes: the history was cleared at the
        /// batch's version.
        FellBack,
        /// The batch cannot be resolved, and the history is as it was before. The message says why.
        Refused,
        /// There is no history (any more). The message says why.
        Broken,
    }

    /// A key range `[begin, end)`: two views of bytes. No pointer is null, not even of an empty key.
    struct RangeView {
        begin: *const u8,
        begin_length: usize,
        end: *const u8,
        end_length: usize,
    }

    /// A transaction: its reads are `reads` ranges from `first` on, its writes the `writes` ranges after
    /// them.
    struct TransactionView {
        read_version: i64,
        report: bool,
        first: u32,
        reads: u32,
        writes: u32,
    }

    /// A batch: its transactions, and the ranges of all of them.
    struct BatchView<'a> {
        version: i64,
        oldest: i64,
        transactions: &'a [TransactionView],
        ranges: &'a [RangeView],
    }

    /// A read range that a transaction in conflict gets reported.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    struct ReportedRead {
        transaction: u32,
        read: u32,
    }

    /// What `resolve` has decided. The views hold until the next call.
    struct Outcome<'a> {
        status: Status,
        /// For `FellBack`: bytes that a write needed, and bytes that it could have had.
        needed: u64,
        available: u64,
        /// Whether any transaction is too old.
        any_too_old: bool,
        /// A verdict per transaction: 0 conflict, 1 too old, 3 committed.
        verdicts: &'a [u8],
        /// Ascending, without duplicates.
        reported: &'a [ReportedRead],
    }

    /// What another history has decided about a batch.
    struct Decided<'a> {
        /// As in `Outcome`.
        verdicts: &'a [u8],
        /// In any order.
        reported: &'a [ReportedRead],
        /// Whether the tree must agree. If not, the two may hold different writes up to this batch.
        compare: bool,
    }

    /// What `shadow` has found.
    struct Comparison {
        status: Status,
        needed: u64,
        available: u64,
        /// Transactions that the two histories decide differently, the cutoff's work apart. If there are
        /// any, the message describes the first.
        differences: u64,
    }

    /// The tree's figures.
    #[derive(Default)]
    struct Figures {
        memory_bytes: u64,
        peak_memory_bytes: u64,
        budget_bytes: u64,
        /// How far back from the last batch's version the history reaches.
        retained_versions: i64,
        /// The greatest version at or below which the history can no longer tell writes apart; -1 before
        /// there is one.
        cutoff: i64,
        /// Transactions that were too old by the cutoff alone.
        too_old_by_cutoff: u64,
        /// Times the cutoff was moved to make room.
        reclamations: u64,
        /// Batches that the budget could not hold.
        fallbacks: u64,
        /// Ranges that covered no key, and were left out.
        empty_ranges: u64,
        /// Transactions that the two histories decided differently, in shadow mode.
        differences: u64,
    }

    extern "Rust" {
        type Settings;
        /// Reads the environment variables. Whether they are legal says `error`.
        fn load_settings() -> Box<Settings>;
        /// One line that names the variable, its value and what is allowed; empty if all is well.
        fn error(self: &Settings) -> &str;
        fn history(self: &Settings) -> Choice;
        fn history_name(self: &Settings) -> &str;
        fn backing_name(self: &Settings) -> &str;

        type TreeHistory;
        /// An empty history at version 0. `message` is empty if it could be made.
        fn make_tree(layout: u64, settings: &Settings) -> Box<TreeHistory>;
        /// What the last `Refused`, `Broken` or difference was about.
        fn message(self: &TreeHistory) -> &str;
        /// Gives every key the version `base`, as in a new history.
        fn clear(self: &mut TreeHistory, base: i64) -> Status;
        /// Decides a batch and applies it.
        ///
        /// # Safety
        /// The views are of memory that nobody changes during the call.
        unsafe fn resolve<'a, 'b>(self: &'a mut TreeHistory, batch: &BatchView<'b>) -> Outcome<'a>;
        /// Judges a batch that another history has decided, compares, and applies what that one
        /// committed.
        ///
        /// # Safety
        /// As for `resolve`.
        unsafe fn shadow<'b>(
            self: &mut TreeHistory,
            batch: &BatchView<'b>,
            theirs: &Decided<'b>,
        ) -> Comparison;
        fn figures(self: &TreeHistory) -> Figures;
    }
}
