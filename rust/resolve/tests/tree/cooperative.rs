//! The cooperative strategy beside the pipelined one: the same decisions and the same tree, whatever the number of
//! tasks.

use crate::config;
use crate::huge;
use crate::trial::Trial;
use crate::twins::Twins;
use crate::waning;
use resolver_index::{Config, ConfigError, LEAST_BUDGET, Strategy, TaskStats, Tasks, Tree};
use resolver_resolve::{TreeConfig, TreeSet};
use resolver_types::Retention;
use resolver_workloads::capture::{CaptureReader, Record, captures_dir, captures_in};
use resolver_workloads::{BatchBuf, RandomBatches, cases};

/// The numbers of tasks that are tried: G, and the groups of write tasks, both from one task on.
const TASKS: [Tasks; 6] = [
    Tasks { reads: 1, groups: 1, group_size: 1 },
    Tasks { reads: 16, groups: 2, group_size: 8 },
    Tasks { reads: 64, groups: 4, group_size: 4 },
    Tasks { reads: 2, groups: 2, group_size: 8 },
    Tasks { reads: 64, groups: 1, group_size: 1 },
    Tasks { reads: 1, groups: 4, group_size: 4 },
];

/// A twin run over batches; what the tasks did.
fn run(config: TreeConfig, tasks: Tasks, batches: impl Iterator<Item = BatchBuf>, whole: usize) -> TaskStats {
    let mut twins = Twins::new(config, tasks);
    for buf in batches {
        if let Some(found) = twins.step(&buf, whole) {
            panic!("{tasks:?}: {found}");
        }
    }
    *twins.cooperative.tree().task_stats().expect("the tree has tasks")
}

fn shape(shape: &str, seed: u64, transactions: u64) -> impl Iterator<Item = BatchBuf> {
    RandomBatches::new(shape, seed, transactions).expect("a shape")
}

#[test]
fn every_shape_for_every_number_of_tasks() {
    for (seed, name) in (0..).zip(RandomBatches::shapes()) {
        for tasks in TASKS {
            for (retention, budget) in [(Retention::Window, 64 << 20), (Retention::Budget, 1 << 20)] {
                run(config(retention, budget), tasks, shape(name, seed, 2_000), 1);
            }
        }
    }
}

#[test]
fn under_the_least_budget_and_few_stamps() {
    for tasks in TASKS {
        for (seed, name) in (40..).zip(["knots", "append", "long-keys", "adversarial"]) {
            let plain = config(Retention::Budget, LEAST_BUDGET);
            run(plain, tasks, shape(name, seed, 3_000), 4);
            let few = TreeConfig { index: Config { stamp_limit: 340, ..plain.index }, ..plain };
            run(few, tasks, shape(name, seed, 3_000), 4);
        }
        run(config(Retention::Budget, LEAST_BUDGET), tasks, huge::batches(43, 100), 4);
        for long in [false, true] {
            run(config(Retention::Window, 1 << 20), tasks, waning::batches(5, 60, long), 8);
        }
    }
}

#[test]
fn captures_for_every_number_of_tasks() {
    for file in captures_in(&captures_dir()).expect("the captures can be listed") {
        for tasks in TASKS {
            for budget in [256 << 20, 1 << 20] {
                let mut twins = Twins::new(config(Retention::Window, budget), tasks);
                let mut reader = CaptureReader::open(&file).expect("the capture can be read");
                while let Some(record) = reader.next_record().expect("the capture is well-formed") {
                    match record {
                        Record::Clear(version) => twins.clear(version),
                        Record::Batch { batch, .. } => {
                            if let Some(found) = twins.step(&batch, 64) {
                                panic!("{} {tasks:?} {budget}: {found}", file.display());
                            }
                        }
                    }
                }
            }
        }
    }
}

#[test]
fn cases_for_every_number_of_tasks() {
    for tasks in TASKS {
        for case in cases::builtin() {
            let plain = config(Retention::Window, LEAST_BUDGET);
            let index = Config { strategy: Strategy::Cooperative(tasks), ..plain.index };
            let mut set = TreeSet::new(TreeConfig { index, ..plain }).expect("the tree can be made");
            cases::run_case(&case, &mut set).unwrap_or_else(|error| panic!("{tasks:?}: {error}"));
        }
    }
}

#[test]
fn beside_the_references() {
    for (seed, name) in (60..).zip(RandomBatches::shapes()) {
        let plain = config(Retention::Budget, 2 << 20);
        let index = Config { strategy: Strategy::Cooperative(Tasks::default()), ..plain.index };
        let trial = Trial::new(name, seed, 3_000, TreeConfig { index, ..plain });
        trial.run().unwrap_or_else(|(batch, finding)| panic!("{trial:?}, batch {batch}: {finding}"));
    }
}

#[test]
fn every_counter_of_the_tasks_moves() {
    let plain = config(Retention::Window, 16 << 20);
    let runs = ["long-keys", "knots", "tuple"]
        .map(|name| run(plain, Tasks::default(), shape(name, 70, 20_000), usize::MAX));
    for at in 0..runs[0].fields().count() {
        let counts = runs.each_ref().map(|stats| stats.fields().nth(at).expect("a counter"));
        assert!(counts.iter().any(|&(_, count)| count > 0), "{counts:?}");
    }
}

/// One task of each kind finds nothing ahead, and never waits for another.
#[test]
fn one_task_of_each_kind_is_a_sequential_run() {
    let one = Tasks { reads: 1, groups: 1, group_size: 1 };
    let stats = run(config(Retention::Window, 16 << 20), one, shape("knots", 71, 5_000), usize::MAX);
    assert_eq!((stats.parked_writes, stats.redirected_writes, stats.moved_writes), (0, 0, 0));
    assert!(stats.unready_writes > 0);
}

#[test]
fn numbers_of_tasks_that_do_not_work_are_refused() {
    let made = |tasks| {
        let config = Config { strategy: Strategy::Cooperative(tasks), ..Config::default() };
        Tree::new(config).map(drop)
    };
    let standard = Tasks::default();
    for (tasks, kind, given) in [
        (Tasks { reads: 0, ..standard }, "read", 0),
        (Tasks { reads: Tasks::MOST + 1, ..standard }, "read", Tasks::MOST + 1),
        (Tasks { groups: 0, ..standard }, "write", 0),
        (Tasks { group_size: 0, ..standard }, "write", 0),
        (Tasks { groups: usize::MAX, ..standard }, "write", usize::MAX),
    ] {
        assert_eq!(made(tasks), Err(ConfigError::Tasks { kind, given }));
    }
    assert_eq!(made(standard), Ok(()));
}
