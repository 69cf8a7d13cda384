//! The tree applies verdicts that are not its own.

use crate::config;
use crate::trial::Trial;
use resolver_resolve::TreeSet;
use resolver_types::{ConflictSet, Retention, Verdict, Verdicts, Version};
use resolver_workloads::{BatchBuf, RandomBatches};

#[test]
fn any_verdicts_can_be_committed() {
    for shape in RandomBatches::shapes() {
        for (seed, retention, budget) in [(30, Retention::Window, 64 << 20), (31, Retention::Budget, 1 << 20)]
        {
            let trial = Trial { foreign: true, ..Trial::new(shape, seed, 4_000, config(retention, budget)) };
            trial.run().unwrap_or_else(|(batch, finding)| panic!("{trial:?}, batch {batch}: {finding}"));
        }
    }
}

#[test]
fn what_the_tree_calls_too_old_is_written_when_another_commits_it() {
    let mut tree = TreeSet::new(config(Retention::Window, 1 << 20)).expect("the tree can be made");
    let mut verdicts = Verdicts::default();
    let mut step = |buf: &BatchBuf, expected: Verdict, committed: Verdict| {
        let ranges = buf.ranges();
        let batch = buf.batch(&ranges);
        tree.judge(&batch, &mut verdicts).expect("the batch is legal");
        assert_eq!(verdicts.verdicts, [expected]);
        verdicts.verdicts[0] = committed;
        tree.commit(&batch, &verdicts).expect("the batch fits");
        tree.tree().validate().expect("the tree is valid");
    };
    let batch = |version, oldest, read_version| {
        let mut buf = BatchBuf::new(Version(version), Version(oldest));
        buf.push_transaction(Version(read_version), false);
        buf.push_read(b"k", b"k\x00");
        buf.push_write(b"k", b"k\x00");
        buf
    };
    step(&batch(10, 5, 4), Verdict::TooOld, Verdict::Committed);
    step(&batch(20, 5, 9), Verdict::Conflict, Verdict::TooOld);
    step(&batch(30, 5, 10), Verdict::Committed, Verdict::Conflict);
    step(&batch(40, 5, 10), Verdict::Committed, Verdict::Committed);
    step(&batch(50, 5, 39), Verdict::Conflict, Verdict::Conflict);
}
