//! Stamps run out: a limit of a few hundred has them renumbered all the time, and nobody notices.

use crate::kit::{point, range, read, step, writes};
use crate::scenarios::{self, numbered};
use crate::trial::Trial;
use crate::{config, waning};
use resolver_index::{Config, LEAST_BUDGET, Planted};
use resolver_resolve::{TreeConfig, TreeSet};
use resolver_types::{ConflictSet, Retention, Verdict, Version};
use resolver_workloads::RandomBatches;

fn with_limit(retention: Retention, budget: u64, stamp_limit: u32) -> TreeConfig {
    let plain = config(retention, budget);
    TreeConfig { index: Config { stamp_limit, ..plain.index }, ..plain }
}

#[test]
fn renumbering_never_changes_a_decision() {
    let mut renumberings = 0;
    for shape in RandomBatches::shapes() {
        for (seed, retention, budget) in [
            (20, Retention::Window, 4 << 20),
            (21, Retention::Budget, 1 << 20),
            (22, Retention::Window, LEAST_BUDGET),
        ] {
            let trial = Trial::new(shape, seed, 4_000, with_limit(retention, budget, 500));
            let outcome =
                trial.run().unwrap_or_else(|(batch, finding)| panic!("{trial:?}, batch {batch}: {finding}"));
            renumberings += outcome.stats.renumberings;
        }
    }
    for long in [false, true] {
        let trial = Trial::new("waning", 23, 0, with_limit(Retention::Window, 16 << 20, 340));
        let run = trial.run_batches(waning::batches(23, 400, long));
        run.unwrap_or_else(|(batch, finding)| panic!("{trial:?}, batch {batch}: {finding}"));
    }
    assert!(renumberings > 50, "{renumberings} renumberings");
}

#[test]
fn a_vacant_slot_that_the_batch_writes_into_is_renumbered_with_the_rest() {
    scenarios::renumbered_vacancy(Planted::default());
}

#[test]
fn what_waits_to_be_given_back_is_renumbered_with_the_rest() {
    scenarios::renumbered_condemned(Planted::default());
}

#[test]
fn a_full_version_table_gives_up_leaves_that_the_batch_was_routed_to() {
    // Every batch takes a stamp, and none but the first and the last touches the leaf of the key in the
    // middle.
    let run = |batches: i64| {
        let config = with_limit(Retention::Budget, LEAST_BUDGET, u32::MAX - 1);
        let mut set = TreeSet::new(config).expect("the tree can be made");
        step(&mut set, &writes(1, -1, numbered(1_000)));
        for version in 2..batches {
            step(&mut set, &writes(version, -1, [point("z")]));
            if set.tree().stats().reclamations > 0 {
                return (version, set);
            }
        }
        step(&mut set, &writes(batches, -1, [point("k00500")]));
        (batches, set)
    };
    let (full, _) = run(i64::MAX);
    let (_, mut set) = run(full);
    assert!(set.tree().stats().reclamations > 0 && set.cutoff() < Some(Version(full)));
    let found = step(&mut set, &read(full + 1, -1, full - 1, range("k00500", "k00501")));
    assert_eq!(found, [Verdict::Conflict]);
}
