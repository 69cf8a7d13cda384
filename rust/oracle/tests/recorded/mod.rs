//! A reference against the decisions that are written down: the named cases, and FoundationDB's recorded ones.

use resolver_types::{ConflictSet, Verdicts};
use resolver_workloads::capture::{CaptureReader, Record, captures_dir, captures_in, shared_captures_dir};
use resolver_workloads::cases;
use std::path::Path;

/// Replays a capture with the set's own verdicts; returns the batches and the transactions of each verdict.
fn replay(path: &Path, mut set: impl ConflictSet) -> (usize, [usize; 4]) {
    let mut reader = CaptureReader::open(path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
    let mut verdicts = Verdicts::default();
    let (mut batches, mut seen) = (0, [0; 4]);
    while let Some(record) = reader.next_record().unwrap_or_else(|error| panic!("{path:?}: {error}")) {
        match record {
            Record::Clear(version) => set.clear(version),
            Record::Batch { batch, recorded } => {
                let ranges = batch.ranges();
                let view = batch.batch(&ranges);
                set.judge(&view, &mut verdicts).unwrap();
                assert!(verdicts == recorded, "{path:?}, batch {batches} at version {}", view.version);
                set.commit(&view, &verdicts).unwrap();
                batches += 1;
                verdicts.verdicts.iter().for_each(|&verdict| seen[verdict as usize] += 1);
            }
        }
    }
    (batches, seen)
}

pub(crate) fn decides_the_named_cases<S: ConflictSet>(new: impl Fn() -> S) {
    let cases = cases::builtin();
    assert!(!cases.is_empty());
    for case in cases {
        assert_eq!(cases::run_case(&case, &mut new()), Ok(()));
    }
}

pub(crate) fn decides_the_committed_captures_like_foundationdb<S: ConflictSet>(new: impl Fn() -> S) {
    let paths = captures_in(&captures_dir()).unwrap();
    assert!(paths.len() >= 10, "{} captures", paths.len());
    let mut seen = [0; 4];
    for path in paths {
        let (batches, verdicts) = replay(&path, new());
        assert!(batches > 0, "{path:?} holds batches");
        verdicts.iter().zip(&mut seen).for_each(|(count, sum)| *sum += count);
    }
    assert!(seen[0] > 0 && seen[1] > 0 && seen[3] > 0, "every verdict occurs: {seen:?}");
}

#[allow(clippy::print_stderr, reason = "says that the full captures are not there")]
pub(crate) fn decides_the_full_captures_like_foundationdb<S: ConflictSet>(new: impl Fn() -> S) {
    let Some(folder) = shared_captures_dir() else {
        eprintln!("skipped: no full captures beside the repository");
        return;
    };
    for path in captures_in(&folder).unwrap() {
        let (batches, _) = replay(&path, new());
        assert!(batches > 0, "{path:?} holds batches");
    }
}
