//! The tree beside the model and the skip list, on captures, cases and random batches, with the whole tree checked after every batch.

#![allow(clippy::print_stderr)] // tells what is skipped

use resolver_index::{Backing, Config, LEAST_BUDGET};
use resolver_oracle::{Model, SkipList};
use resolver_resolve::{TreeConfig, TreeSet};
use resolver_types::{ConflictSet, Retention, Verdict, Verdicts};
use resolver_workloads::capture::{CaptureReader, Record, captures_dir, captures_in, shared_captures_dir};
use resolver_workloads::{RandomBatches, cases};

fn tree(retention: Retention, index: Config) -> TreeSet {
    TreeSet::new(TreeConfig { retention, index }).expect("the tree can be made")
}

/// Runs a shape through the tree, the following model and skip list, and the model that never forgets; validates every `every` batches.
fn compare(
    shape: &str,
    seed: u64,
    transactions: u64,
    retention: Retention,
    index: Config,
    every: usize,
) -> TreeSet {
    let mut tree = tree(retention, index);
    let mut model = Model::new(retention);
    let mut list = SkipList::new(retention);
    let mut witness = Model::new(Retention::Budget);
    let (mut own, mut other) = (Verdicts::default(), Verdicts::default());
    for (number, buf) in RandomBatches::new(shape, seed, transactions).expect("a shape").enumerate() {
        let at = format!("{shape} seed {seed} batch {number}");
        let ranges = buf.ranges();
        let batch = buf.batch(&ranges);
        let cutoff = tree.cutoff();
        tree.judge(&batch, &mut own).expect(&at);
        for reference in [&mut model as &mut dyn ConflictSet, &mut list] {
            if let Some(cutoff) = cutoff {
                reference.set_floor(cutoff);
            }
            reference.judge(&batch, &mut other).expect(&at);
            assert_eq!(own, other, "{at}: {}", reference.name());
            reference.commit(&batch, &own).expect(&at);
        }
        witness.judge(&batch, &mut other).expect(&at);
        for (index, verdict) in own.verdicts.iter().enumerate() {
            if *verdict == Verdict::Committed {
                // Within the batch it may lose to one that the tree rejects; against history it may not.
                assert_ne!((*verdict, other.verdicts[index]), (Verdict::Committed, Verdict::TooOld), "{at}");
            }
        }
        witness.commit(&batch, &own).expect(&at);
        tree.commit(&batch, &own).expect(&at);
        if number % every == 0 {
            tree.tree().validate().unwrap_or_else(|broken| panic!("{at}: {broken}"));
        }
    }
    tree.tree().validate().expect("the last state is valid");
    tree
}

fn small(budget_bytes: u64) -> Config {
    Config { budget_bytes, backing: Backing::Heap, ..Config::default() }
}

#[test]
fn every_shape_under_a_window() {
    for shape in RandomBatches::shapes() {
        for seed in 0..3 {
            compare(shape, seed, 6_000, Retention::Window, small(256 << 20), 1);
        }
    }
}

#[test]
fn every_shape_under_tiny_budgets() {
    for shape in RandomBatches::shapes() {
        for (seed, budget) in [(10, 4 << 20), (11, 2 << 20), (12, 1 << 20)] {
            for retention in [Retention::Window, Retention::Budget] {
                compare(shape, seed, 6_000, retention, small(budget), 1);
            }
        }
    }
}

#[test]
fn named_cases() {
    for case in cases::builtin() {
        cases::run_case(&case, &mut tree(Retention::Window, small(LEAST_BUDGET))).expect(&case.name);
    }
}

#[test]
fn captures() {
    let mut files = captures_in(&captures_dir()).expect("the project's captures can be listed");
    match shared_captures_dir() {
        Some(folder) => files.extend(captures_in(&folder).expect("the captures can be listed")),
        None => eprintln!("skipped: no shared captures beside the project"),
    }
    assert!(!files.is_empty());
    for file in files {
        let mut set = tree(Retention::Window, small(256 << 20));
        let mut reader = CaptureReader::open(&file).expect("the capture can be read");
        let mut found = Verdicts::default();
        let mut number = 0;
        while let Some(record) = reader.next_record().expect("the capture is well-formed") {
            match record {
                Record::Clear(version) => set.clear(version),
                Record::Batch { batch: buf, recorded } => {
                    let ranges = buf.ranges();
                    let batch = buf.batch(&ranges);
                    set.judge(&batch, &mut found).expect("the batch is legal");
                    assert_eq!(found, recorded, "{} batch {number}", file.display());
                    set.commit(&batch, &found).expect("the batch fits");
                    if number % 64 == 0 {
                        set.tree()
                            .validate()
                            .unwrap_or_else(|broken| panic!("{} {number}: {broken}", file.display()));
                    }
                    number += 1;
                }
            }
        }
    }
}
