//! The skip list against FoundationDB's recorded decisions, the named cases, and each rule by hand.

mod recorded;

use resolver_oracle::SkipList;
use resolver_types::{
    BatchError, ConflictSet, MAX_END_LENGTH, MAX_KEY_LENGTH, Retention, STAGES, Stage, Verdict, Verdicts,
    Version,
};
use resolver_workloads::BatchBuf;
use std::time::Duration;

use Verdict::{Committed, Conflict, TooOld};

#[test]
fn the_skip_list_decides_the_named_cases() {
    recorded::decides_the_named_cases(window);
}

#[test]
fn the_skip_list_decides_the_committed_captures_like_foundationdb() {
    recorded::decides_the_committed_captures_like_foundationdb(window);
}

#[test]
fn the_skip_list_decides_the_full_captures_like_foundationdb() {
    recorded::decides_the_full_captures_like_foundationdb(window);
}

type Ranges<'a> = &'a [(&'a [u8], &'a [u8])];

/// A batch under construction: transactions in order.
struct Written(BatchBuf);

impl Written {
    fn at(version: i64, oldest: i64) -> Written {
        Written(BatchBuf::new(Version(version), Version(oldest)))
    }

    fn transaction(
        mut self,
        read_version: i64,
        report: bool,
        reads: Ranges<'_>,
        writes: Ranges<'_>,
    ) -> Written {
        self.0.push_transaction(Version(read_version), report);
        reads.iter().for_each(|(begin, end)| self.0.push_read(begin, end));
        writes.iter().for_each(|(begin, end)| self.0.push_write(begin, end));
        self
    }

    /// A transaction that reports.
    fn reads(self, read_version: i64, reads: Ranges<'_>) -> Written {
        self.transaction(read_version, true, reads, &[])
    }

    fn writes(self, writes: Ranges<'_>) -> Written {
        self.transaction(-1, false, &[], writes)
    }

    fn judge(&self, list: &mut SkipList) -> Result<Verdicts, BatchError> {
        let ranges = self.0.ranges();
        let mut verdicts = Verdicts::default();
        list.judge(&self.0.batch(&ranges), &mut verdicts).map(|()| verdicts)
    }

    fn commit(&self, list: &mut SkipList, verdicts: &Verdicts) -> Result<(), BatchError> {
        let ranges = self.0.ranges();
        list.commit(&self.0.batch(&ranges), verdicts)
    }

    /// Judges and commits; returns verdicts and reports.
    fn run(&self, list: &mut SkipList) -> (Vec<Verdict>, Vec<(u32, u32)>) {
        let verdicts = self.judge(list).unwrap();
        self.commit(list, &verdicts).unwrap();
        (verdicts.verdicts, verdicts.reported)
    }

    /// Judges and commits; returns the verdicts.
    fn verdicts(&self, list: &mut SkipList) -> Vec<Verdict> {
        self.run(list).0
    }
}

fn window() -> SkipList {
    SkipList::new(Retention::Window)
}

const AB: (&[u8], &[u8]) = (b"a", b"b");
const BC: (&[u8], &[u8]) = (b"b", b"c");
const CD: (&[u8], &[u8]) = (b"c", b"d");
const AD: (&[u8], &[u8]) = (b"a", b"d");
const EF: (&[u8], &[u8]) = (b"e", b"f");
const ALL: (&[u8], &[u8]) = (b"", b"\xff\xff");
const EMPTY: (&[u8], &[u8]) = (b"b", b"b");
const INVERTED: (&[u8], &[u8]) = (b"d", b"a");

#[test]
fn too_old_is_who_reads_below_the_greatest_oldest() {
    let mut list = window();
    let batch = Written::at(100, 50).reads(49, &[AB]).reads(50, &[AB]).reads(49, &[EMPTY]).writes(&[EF]);
    assert_eq!(batch.run(&mut list), (vec![TooOld, Committed, TooOld, Committed], vec![]));
    assert_eq!(list.effective_oldest(), Version(50));
    let batch = Written::at(101, 10).reads(49, &[AB]).reads(50, &[AB]);
    assert_eq!(batch.verdicts(&mut list), [TooOld, Committed], "an oldest that goes back is ignored");
    let batch = Written::at(102, 60).transaction(59, true, &[CD], &[AB]).reads(101, &[AB]);
    assert_eq!(batch.verdicts(&mut list), [TooOld, Committed], "the writes of a too-old one do not count");
    assert_eq!(Written::at(103, 60).reads(60, &[AB]).verdicts(&mut list), [Committed]);
}

#[test]
fn a_read_conflicts_with_every_newer_write_that_shares_a_key_with_it() {
    let mut list = window();
    Written::at(10, -1).writes(&[BC]).verdicts(&mut list);
    let batch = Written::at(11, -1)
        .reads(10, &[ALL])
        .reads(9, &[AB, CD])
        .reads(9, &[(b"b", b"b\0")])
        .reads(9, &[(b"b\xff", b"d")])
        .reads(9, &[AB, BC, CD, ALL, EMPTY, INVERTED])
        .transaction(9, false, &[BC, BC], &[EF]);
    let (verdicts, reported) = batch.run(&mut list);
    assert_eq!(verdicts, [Committed, Committed, Conflict, Conflict, Conflict, Conflict]);
    assert_eq!(reported, [(2, 0), (3, 0), (4, 1), (4, 3)], "all that conflict, ascending; none unasked");
    let loser_left_no_trace = Written::at(12, -1).reads(10, &[EF]).verdicts(&mut list);
    assert_eq!(loser_left_no_trace, [Committed]);
}

#[test]
fn within_a_batch_earlier_committed_writes_count() {
    let mut list = window();
    Written::at(10, -1).writes(&[EF]).verdicts(&mut list);
    let batch = Written::at(20, -1)
        .reads(10, &[AB])
        .transaction(10, false, &[AB], &[AB])
        .reads(10, &[EMPTY, CD, AB, ALL])
        .transaction(10, false, &[AD], &[CD])
        .reads(10, &[BC, CD])
        .transaction(9, true, &[AB, EF, ALL], &[CD]);
    let (verdicts, reported) = batch.run(&mut list);
    assert_eq!(verdicts, [Committed, Committed, Conflict, Conflict, Committed, Conflict]);
    let only_the_first_within_and_only_history_after_history = [(2, 2), (5, 1), (5, 2)];
    assert_eq!(reported, only_the_first_within_and_only_history_after_history);
    let batch = Written::at(30, -1).reads(19, &[AB]).reads(19, &[CD]);
    assert_eq!(batch.verdicts(&mut list), [Conflict, Committed]);
}

#[test]
fn reads_below_the_base_conflict_and_empty_ranges_never() {
    let mut list = window();
    list.clear(Version(100));
    assert_eq!(list.cutoff(), None);
    let batch = Written::at(101, -1)
        .reads(99, &[ALL])
        .reads(100, &[ALL])
        .reads(99, &[EMPTY, INVERTED])
        .reads(99, &[])
        .writes(&[EMPTY, INVERTED]);
    let (verdicts, reported) = batch.run(&mut list);
    assert_eq!(verdicts, [Conflict, Committed, Committed, Committed, Committed]);
    assert_eq!(reported, [(0, 0)]);
    assert_eq!(
        Written::at(102, -1).reads(100, &[ALL]).verdicts(&mut list),
        [Committed],
        "nothing was written"
    );
}

#[test]
fn versions_must_ascend_and_keys_keep_the_limit() {
    let mut list = window();
    list.clear(Version(7));
    let newest = Version(7);
    let refused = Written::at(7, 0).judge(&mut list);
    assert_eq!(refused, Err(BatchError::VersionNotNewer { version: Version(7), newest }));
    let key = vec![1; MAX_KEY_LENGTH + 2];
    let longest = (&key[..MAX_KEY_LENGTH], &key[..MAX_END_LENGTH]);
    let too_long = (&key[..MAX_END_LENGTH], &key[..MAX_END_LENGTH + 1]);
    Written::at(10, 0).writes(&[longest]).verdicts(&mut list);
    let refused = Written::at(11, 0).writes(&[longest, too_long]).judge(&mut list);
    let length = MAX_END_LENGTH;
    assert_eq!(refused, Err(BatchError::KeyTooLong { range: 1, length, limit: MAX_KEY_LENGTH }));
    let batch = Written::at(11, 0).reads(9, &[longest]).reads(9, &[(b"\x01\x02", b"\x02")]);
    assert_eq!(batch.verdicts(&mut list), [Conflict, Committed]);
}

#[test]
fn versions_use_all_63_bits() {
    let mut list = window();
    let last = i64::MAX;
    Written::at(last - 2, -1).writes(&[AB]).verdicts(&mut list);
    Written::at(last - 1, last - 3).writes(&[BC]).verdicts(&mut list);
    let batch =
        Written::at(last, last - 2).reads(last - 2, &[AB]).reads(last - 2, &[BC]).reads(last - 3, &[CD]);
    assert_eq!(batch.verdicts(&mut list), [Committed, Conflict, TooOld]);
    assert_eq!(list.cutoff(), Some(Version(last - 2)));
}

#[test]
fn judging_changes_nothing_and_only_the_batch_judged_last_is_committed() {
    let mut list = window();
    let first = Written::at(10, 5).transaction(5, true, &[AB], &[AB]);
    let verdicts = first.judge(&mut list).unwrap();
    assert_eq!(first.judge(&mut list).unwrap(), verdicts);
    let other = Written::at(11, 9).transaction(9, true, &[AB], &[AB]);
    let not_judged = |version| Err(BatchError::NotJudged { version: Version(version) });
    assert_eq!(other.commit(&mut list, &verdicts), not_judged(11), "another version");
    let longer = Written::at(10, 5).transaction(5, true, &[AB, AB], &[AB]);
    assert_eq!(longer.commit(&mut list, &verdicts), not_judged(10), "other ranges");
    assert_eq!(first.commit(&mut list, &Verdicts::default()), not_judged(10), "verdicts of another batch");
    other.judge(&mut list).unwrap();
    assert_eq!(first.commit(&mut list, &verdicts), not_judged(10), "no longer the last");
    assert_eq!((list.effective_oldest(), list.cutoff()), (Version::LOWEST, None));

    assert_eq!(first.verdicts(&mut list), [Committed]);
    assert_eq!(first.commit(&mut list, &verdicts), not_judged(10), "a second time");
    assert_eq!(Written::at(12, 5).reads(9, &[AB]).verdicts(&mut list), [Conflict]);
    first.judge(&mut list).unwrap_err();
    list.clear(Version(1));
    assert_eq!(first.commit(&mut list, &verdicts), not_judged(10), "judged before the clear");
}

#[test]
fn other_keys_under_the_same_shape_are_refused_before_the_history_changes() {
    let mut list = window();
    let judged = Written::at(10, -1).writes(&[AB, CD]);
    let swapped = Written::at(10, -1).writes(&[CD, AB]);
    let verdicts = judged.judge(&mut list).unwrap();
    let refused = swapped.commit(&mut list, &verdicts);
    assert_eq!(refused, Err(BatchError::NotJudged { version: Version(10) }));
    assert_eq!(judged.commit(&mut list, &verdicts), Ok(()));
    assert_eq!(Written::at(11, -1).reads(9, &[AB]).reads(9, &[CD]).verdicts(&mut list), [Conflict; 2]);
}

#[test]
fn another_sets_verdicts_decide_what_is_written() {
    let mut list = window();
    let batch = Written::at(10, 5)
        .transaction(5, false, &[], &[AB])
        .transaction(5, false, &[AB], &[BC])
        .transaction(4, false, &[EF], &[CD, INVERTED])
        .transaction(4, false, &[EF], &[EF]);
    let mut verdicts = batch.judge(&mut list).unwrap();
    assert_eq!(verdicts.verdicts, [Committed, Conflict, TooOld, TooOld]);
    verdicts.verdicts = vec![Conflict, Committed, Committed, TooOld];
    batch.commit(&mut list, &verdicts).unwrap();
    let reads = Written::at(11, 5).reads(9, &[AB]).reads(9, &[BC]).reads(9, &[CD]).reads(9, &[EF]);
    assert_eq!(reads.verdicts(&mut list), [Committed, Conflict, Conflict, Committed]);
}

#[test]
fn a_follower_is_told_a_floor() {
    let mut list = window();
    Written::at(10, -1).writes(&[AB]).verdicts(&mut list);
    list.set_floor(Version(20));
    list.set_floor(Version(15));
    assert_eq!(list.cutoff(), None, "nothing was given up yet");
    let batch = Written::at(30, -1).reads(19, &[EF]).reads(20, &[AB]).reads(0, &[]);
    assert_eq!(batch.verdicts(&mut list), [TooOld, Committed, Committed], "a floor does not go down");
    assert_eq!((list.cutoff(), list.effective_oldest()), (Some(Version(20)), Version(-1)));
    list.clear(Version(0));
    assert_eq!(list.cutoff(), None);
    assert_eq!(Written::at(30, -1).reads(0, &[EF]).verdicts(&mut list), [Committed], "clear lifts the floor");
}

#[test]
fn a_budget_ignores_oldest_and_gives_up_only_what_lies_below_the_floor() {
    let mut list = SkipList::new(Retention::Budget);
    let keys: Vec<[u8; 2]> = (0..100).map(|key| [key, 0]).collect();
    let points: Vec<(&[u8], &[u8])> = keys.iter().map(|key| (&key[..1], &key[..])).collect();
    Written::at(10, 5).writes(&points).verdicts(&mut list);
    let full = list.memory_bytes();
    for version in 11..50 {
        let batch = Written::at(version, version).reads(9, &[points[3]]).reads(10, &[points[3]]);
        assert_eq!(batch.verdicts(&mut list), [Conflict, Committed]);
    }
    assert_eq!((list.cutoff(), list.effective_oldest()), (None, Version::LOWEST));
    assert_eq!(list.memory_bytes(), full);
    for version in 50..100 {
        list.set_floor(Version(version - 20));
        Written::at(version, 5).verdicts(&mut list);
    }
    assert_eq!((list.cutoff(), list.effective_oldest()), (Some(Version(79)), Version::LOWEST));
    assert!(list.memory_bytes() < full / 4, "{} of {full} bytes left", list.memory_bytes());
    assert_eq!(list.peak_memory_bytes(), full);
}

#[test]
fn the_cutoff_follows_the_effective_oldest_from_zero_on() {
    let mut list = window();
    Written::at(10, -5).verdicts(&mut list);
    assert_eq!((list.cutoff(), list.effective_oldest()), (None, Version(-5)));
    Written::at(11, 0).verdicts(&mut list);
    assert_eq!(list.cutoff(), Some(Version(0)));
    Written::at(12, 8).verdicts(&mut list);
    Written::at(13, 7).verdicts(&mut list);
    assert_eq!((list.cutoff(), list.effective_oldest()), (Some(Version(8)), Version(8)));
}

#[test]
fn the_stage_clock_runs_when_asked() {
    let mut list = window();
    let batch = Written::at(10, 5).transaction(5, false, &[AB], &[BC]);
    batch.verdicts(&mut list);
    assert_eq!(list.stage_times().total(), Duration::ZERO);
    list.time_stages(true);
    let is_timed = |list: &SkipList, stage: &Stage| list.stage_times().get(*stage) > Duration::ZERO;
    // A stage of so small a batch is shorter than some clocks can tell.
    for version in 11..200_000 {
        Written::at(version, version - 5).transaction(10, false, &[AB], &[BC]).verdicts(&mut list);
        if STAGES.iter().all(|stage| is_timed(&list, stage)) {
            return;
        }
    }
    panic!("never timed: {:?}", STAGES.iter().find(|stage| !is_timed(&list, stage)));
}
