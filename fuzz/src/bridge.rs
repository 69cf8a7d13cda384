//! Target `bridge`: batches through FoundationDB's C++ surface, flattened, over the boundary, and back.
//!
//! # Strategy
//! A script of `tree` is handed to `ConflictBatch` as a resolver would, every key in memory of its own; the C++ side is
//! the one that fdbserver gets, over the stand-in headers of its tests. The settings choose whether the tree answers,
//! or the original skip list (its stand-in) with the tree as its shadow.
//!
//! # Invariants
//! - Verdicts and reported reads are those of a tree that is asked directly.
//! - Nothing is traced as an error: no difference between shadow and original, no history that failed.
//! - What crosses is read where it stands and no further: the address sanitizer sees both sides.
#![allow(unsafe_code)] // the boundary: what stands behind it is `cpp/set.cpp`, which takes no pointer from here

use crate::script::{Script, Step};
use crate::target::{Target, planted_in_bridge};
// Its symbols are what the C++ side calls.
use resolver_bridge as _;
use resolver_index::{Backing, Config};
use resolver_resolve::{TreeConfig, TreeSet};
use resolver_types::{ConflictSet, Retention, Verdicts, Version};
use resolver_workloads::BatchBuf;

/// The target.
pub const TARGET: Target = Target { name: "bridge", body, canary: "reports-kept" };

#[allow(missing_docs, unreachable_pub, unused_qualifications, clippy::needless_lifetimes)]
#[cxx::bridge(namespace = "resolver_fuzz")]
mod ffi {
    /// A transaction; its ranges stand in the batch's row.
    struct TransactionData {
        read_version: i64,
        report: bool,
        reads: u32,
        writes: u32,
    }

    /// A reported read.
    struct Reported {
        transaction: u32,
        read: u32,
    }

    /// What a batch came to.
    struct Decisions {
        /// 0 conflict, 1 too old, 3 committed.
        verdicts: Vec<u8>,
        reported: Vec<Reported>,
        /// The first error that was traced, with its details; empty if none was.
        error: String,
    }

    unsafe extern "C++" {
        include!("set.h");

        type Set;
        fn new_set(shadow: bool) -> UniquePtr<Set>;
        fn clear(self: Pin<&mut Set>, version: i64);
        fn decide(
            self: Pin<&mut Set>,
            version: i64,
            oldest: i64,
            transactions: &[TransactionData],
            keys: &[u8],
            lengths: &[u32],
        ) -> Decisions;
    }
}

fn decide(set: &mut cxx::UniquePtr<ffi::Set>, batch: &BatchBuf) -> ffi::Decisions {
    let transactions: Vec<ffi::TransactionData> = batch
        .transactions()
        .iter()
        .map(|transaction| ffi::TransactionData {
            read_version: transaction.read_version.0,
            report: transaction.report,
            reads: transaction.reads,
            writes: transaction.writes,
        })
        .collect();
    let (mut keys, mut lengths) = (Vec::new(), Vec::new());
    for range in batch.ranges() {
        for key in [range.begin, range.end] {
            keys.extend_from_slice(key);
            lengths.push(key.len() as u32);
        }
    }
    set.pin_mut().decide(batch.version().0, batch.oldest().0, &transactions, &keys, &lengths)
}

/// The batch as fdbserver would send it: with an `oldest` that does not go down, since the original looks at each
/// batch's own, and without ranges that cover no key, on which the original is undefined.
fn tamed(batch: &BatchBuf, oldest: &mut Version) -> BatchBuf {
    *oldest = batch.oldest().max(*oldest);
    let ranges = batch.ranges();
    let view = batch.batch(&ranges);
    let mut kept = BatchBuf::new(batch.version(), *oldest);
    for transaction in view.transactions {
        kept.push_transaction(transaction.read_version, transaction.report);
        for range in view.reads(transaction).iter().filter(|range| !range.is_empty()) {
            kept.push_read(range.begin, range.end);
        }
        for range in view.writes(transaction).iter().filter(|range| !range.is_empty()) {
            kept.push_write(range.begin, range.end);
        }
    }
    kept
}

fn body(input: &[u8], bug: Option<&'static str>) -> bool {
    planted_in_bridge(bug);
    let script = Script::new(input);
    let shadow = script.settings[0] & 1 != 0;
    let mut set = ffi::new_set(shadow);
    let index = Config { budget_bytes: 64 << 20, backing: Backing::Heap, ..Config::default() };
    let mut direct =
        TreeSet::new(TreeConfig { retention: Retention::Window, index }).expect("the budget holds a tree");
    let mut verdicts = Verdicts::default();
    let mut oldest = Version::LOWEST;
    let mut decided = false;
    for (number, step) in script.steps.iter().enumerate() {
        match step {
            Step::Clear(version) => {
                set.pin_mut().clear(version.0);
                direct.clear(*version);
                oldest = Version::LOWEST;
            }
            Step::Batch(batch) => {
                let batch = if shadow { &tamed(batch, &mut oldest) } else { batch };
                let decisions = decide(&mut set, batch);
                assert!(decisions.error.is_empty(), "step {number}: {}", decisions.error);
                let ranges = batch.ranges();
                let view = batch.batch(&ranges);
                direct.judge(&view, &mut verdicts).expect("a script's versions ascend");
                direct.commit(&view, &verdicts).expect("the budget holds what a script writes");
                let bytes: Vec<u8> = verdicts.verdicts.iter().map(|&verdict| verdict as u8).collect();
                assert_eq!(decisions.verdicts, bytes, "step {number}: verdicts");
                let mut reported: Vec<(u32, u32)> =
                    decisions.reported.iter().map(|report| (report.transaction, report.read)).collect();
                if shadow {
                    // The original's come in its own order, and more than once.
                    reported.sort_unstable();
                    reported.dedup();
                }
                assert_eq!(reported, verdicts.reported, "step {number}: reported reads");
                decided |= batch.version() > Version::ZERO && !batch.transactions().is_empty();
            }
        }
    }
    decided
}
