//! Small batches by hand.

use resolver_resolve::TreeSet;
use resolver_types::{ConflictSet, Verdict, Verdicts, Version};
use resolver_workloads::BatchBuf;

/// A range as it is written or read.
pub(crate) type Range = (Vec<u8>, Vec<u8>);

/// The range of one key.
pub(crate) fn point(key: impl Into<Vec<u8>>) -> Range {
    let begin = key.into();
    let end = [&begin[..], &[0]].concat();
    (begin, end)
}

pub(crate) fn range(begin: impl Into<Vec<u8>>, end: impl Into<Vec<u8>>) -> Range {
    (begin.into(), end.into())
}

/// A batch of one transaction that writes.
pub(crate) fn writes(version: i64, oldest: i64, ranges: impl IntoIterator<Item = Range>) -> BatchBuf {
    let mut buf = BatchBuf::new(Version(version), Version(oldest));
    buf.push_transaction(Version(version), false);
    for (begin, end) in ranges {
        buf.push_write(&begin, &end);
    }
    buf
}

/// A batch of one transaction that reads.
pub(crate) fn read(version: i64, oldest: i64, read_version: i64, (begin, end): Range) -> BatchBuf {
    let mut buf = BatchBuf::new(Version(version), Version(oldest));
    buf.push_transaction(Version(read_version), false);
    buf.push_read(&begin, &end);
    buf
}

/// Judges and commits a batch that is sure to fit, and checks the whole tree.
pub(crate) fn step(set: &mut TreeSet, buf: &BatchBuf) -> Vec<Verdict> {
    let ranges = buf.ranges();
    let batch = buf.batch(&ranges);
    let mut verdicts = Verdicts::default();
    set.judge(&batch, &mut verdicts).expect("the batch is legal");
    set.commit(&batch, &verdicts).expect("the batch fits");
    set.tree().validate().expect("the tree is valid");
    verdicts.verdicts
}
