//! The tree beside the model and the skip list, on captures, cases and random batches, with the whole tree
//! checked after every batch.

#![allow(clippy::print_stderr)] // tells what is skipped

use crate::config;
use crate::trial::Trial;
use resolver_index::LEAST_BUDGET;
use resolver_resolve::TreeSet;
use resolver_types::{ConflictSet, Retention, Verdicts};
use resolver_workloads::capture::{CaptureReader, Record, captures_dir, captures_in, shared_captures_dir};
use resolver_workloads::{RandomBatches, cases};

fn tree(retention: Retention, budget: u64) -> TreeSet {
    TreeSet::new(config(retention, budget)).expect("the tree can be made")
}

#[test]
fn every_shape_under_a_window() {
    for shape in RandomBatches::shapes() {
        for seed in 0..3 {
            let trial = Trial::new(shape, seed, 5_000, config(Retention::Window, 256 << 20));
            let run = trial.run();
            run.unwrap_or_else(|(batch, finding)| panic!("{trial:?}, batch {batch}: {finding}"));
        }
    }
}

/// Short enough for Miri, which `ci/sanitize` runs it under.
#[test]
fn short_histories() {
    for (seed, shape) in (20..).zip(["knots", "tuple", "long-keys"]) {
        let trial = Trial::new(shape, seed, 16, config(Retention::Budget, LEAST_BUDGET));
        let run = trial.run();
        run.unwrap_or_else(|(batch, finding)| panic!("{trial:?}, batch {batch}: {finding}"));
    }
}

#[test]
fn every_shape_under_small_budgets() {
    for shape in RandomBatches::shapes() {
        for (seed, budget) in [(10, 4 << 20), (11, 2 << 20), (12, 1 << 20)] {
            for retention in [Retention::Window, Retention::Budget] {
                let trial = Trial::new(shape, seed, 4_000, config(retention, budget));
                let run = trial.run();
                run.unwrap_or_else(|(batch, finding)| panic!("{trial:?}, batch {batch}: {finding}"));
            }
        }
    }
}

#[test]
fn named_cases() {
    for case in cases::builtin() {
        cases::run_case(&case, &mut tree(Retention::Window, LEAST_BUDGET)).expect(&case.name);
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
        let mut set = tree(Retention::Window, 256 << 20);
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
