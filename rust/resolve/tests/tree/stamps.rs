//! Stamps run out: a limit of a few hundred has them renumbered all the time, and nobody notices.

use crate::config;
use crate::trial::Trial;
use resolver_index::{Config, LEAST_BUDGET};
use resolver_resolve::{TreeConfig, TreeSet};
use resolver_types::{ConflictSet, Retention, Verdict, Verdicts, Version};
use resolver_workloads::{BatchBuf, RandomBatches};

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
    assert!(renumberings > 50, "{renumberings} renumberings");
}

/// A batch of one transaction that writes the given ranges.
fn writes<'a>(version: i64, oldest: i64, ranges: impl IntoIterator<Item = (&'a [u8], &'a [u8])>) -> BatchBuf {
    let mut buf = BatchBuf::new(Version(version), Version(oldest));
    buf.push_transaction(Version(version), false);
    for (begin, end) in ranges {
        buf.push_write(begin, end);
    }
    buf
}

/// Judges and commits a batch of one transaction.
fn step(set: &mut TreeSet, buf: &BatchBuf) -> Verdict {
    let ranges = buf.ranges();
    let batch = buf.batch(&ranges);
    let mut verdicts = Verdicts::default();
    set.judge(&batch, &mut verdicts).expect("the batch is legal");
    set.commit(&batch, &verdicts).expect("the batch fits");
    set.tree().validate().expect("the tree is valid");
    verdicts.verdicts[0]
}

/// Point ranges `k00000` to `k00999`: several leaves.
fn thousand() -> Vec<(Vec<u8>, Vec<u8>)> {
    (0..1_000)
        .map(|number| (format!("k{number:05}").into_bytes(), format!("k{number:05}\0").into_bytes()))
        .collect()
}

fn borrowed(ranges: &[(Vec<u8>, Vec<u8>)]) -> impl Iterator<Item = (&[u8], &[u8])> {
    ranges.iter().map(|(begin, end)| (&begin[..], &end[..]))
}

#[test]
fn a_vacant_slot_that_the_batch_writes_into_is_renumbered_with_the_rest() {
    let mut set = TreeSet::new(with_limit(Retention::Window, 4 << 20, 300)).expect("the tree can be made");
    let keys = thousand();
    step(&mut set, &writes(1, -1, borrowed(&keys)));
    for version in 2..300 {
        let range: (&[u8], &[u8]) = if version == 250 { (b"k00100", b"k00900") } else { (b"z", b"z\0") };
        step(&mut set, &writes(version, version - 100, [range]));
    }
    let middle: (&[u8], &[u8]) = (b"k00500", b"k00500\0");
    step(&mut set, &writes(300, 200, [middle]));
    assert_eq!(set.tree().stats().renumberings, 1);
    let mut read = BatchBuf::new(Version(301), Version(200));
    read.push_transaction(Version(250), false);
    read.push_read(b"k00500\0", b"k00502");
    assert_eq!(step(&mut set, &read), Verdict::Committed);
}

#[test]
fn a_full_version_table_gives_up_leaves_that_the_batch_was_routed_to() {
    let keys = thousand();
    // Every batch takes a stamp, and none but the first and the last touches the leaf of the key in the middle.
    let run = |batches: i64| {
        let config = with_limit(Retention::Budget, LEAST_BUDGET, u32::MAX - 1);
        let mut set = TreeSet::new(config).expect("the tree can be made");
        step(&mut set, &writes(1, -1, borrowed(&keys)));
        for version in 2..batches {
            step(&mut set, &writes(version, -1, [(&b"z"[..], &b"z\0"[..])]));
            if set.tree().stats().reclamations > 0 {
                return (version, set);
            }
        }
        step(&mut set, &writes(batches, -1, [(&b"k00500"[..], &b"k00500\0"[..])]));
        (batches, set)
    };
    let (full, _) = run(i64::MAX);
    let (_, mut set) = run(full);
    assert!(set.tree().stats().reclamations > 0 && set.cutoff() < Some(Version(full)));
    let mut read = BatchBuf::new(Version(full + 1), Version(-1));
    read.push_transaction(Version(full - 1), false);
    read.push_read(b"k00500", b"k00501");
    assert_eq!(step(&mut set, &read), Verdict::Conflict);
}
