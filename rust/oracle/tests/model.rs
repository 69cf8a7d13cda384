//! The model against FoundationDB's recorded decisions, the named cases, and each rule by hand.

mod recorded;

use resolver_oracle::Model;
use resolver_types::{BatchError, ConflictSet, MAX_END_LENGTH, Retention, Verdict, Verdicts, Version};
use resolver_workloads::BatchBuf;

use Verdict::{Committed, Conflict, TooOld};

#[test]
fn the_model_decides_the_named_cases() {
    recorded::decides_the_named_cases(window);
}

#[test]
fn the_model_decides_the_committed_captures_like_foundationdb() {
    recorded::decides_the_committed_captures_like_foundationdb(window);
}

#[test]
fn the_model_decides_the_full_captures_like_foundationdb() {
    recorded::decides_the_full_captures_like_foundationdb(window);
}

/// A transaction written down: read version, report, reads, writes.
type Written<'a> = (i64, bool, &'a [(&'a [u8], &'a [u8])], &'a [(&'a [u8], &'a [u8])]);

fn buf(version: i64, oldest: i64, transactions: &[Written<'_>]) -> BatchBuf {
    let mut buf = BatchBuf::new(Version(version), Version(oldest));
    for &(read_version, report, reads, writes) in transactions {
        buf.push_transaction(Version(read_version), report);
        reads.iter().for_each(|(begin, end)| buf.push_read(begin, end));
        writes.iter().for_each(|(begin, end)| buf.push_write(begin, end));
    }
    buf
}

/// Judges and commits a batch; returns the verdicts and the reports.
fn run(model: &mut Model, buf: &BatchBuf) -> (Vec<Verdict>, Vec<(u32, u32)>) {
    let ranges = buf.ranges();
    let batch = buf.batch(&ranges);
    let mut verdicts = Verdicts::default();
    model.judge(&batch, &mut verdicts).unwrap();
    model.commit(&batch, &verdicts).unwrap();
    (verdicts.verdicts, verdicts.reported)
}

fn window() -> Model {
    Model::new(Retention::Window)
}

const NONE: &[(&[u8], &[u8])] = &[];
const A_C: &[(&[u8], &[u8])] = &[(b"a", b"c")];
const A_B: &[(&[u8], &[u8])] = &[(b"a", b"b")];
const C_B: &[(&[u8], &[u8])] = &[(b"c", b"b")];
const D_E: &[(&[u8], &[u8])] = &[(b"d", b"e")];
const CFF_D: &[(&[u8], &[u8])] = &[(b"c\xff\xff", b"d")];
const K_K: &[(&[u8], &[u8])] = &[(b"k", b"k")];
const X_Y: &[(&[u8], &[u8])] = &[(b"x", b"y")];
const B_D: &[(&[u8], &[u8])] = &[(b"b", b"d")];
const C_E: &[(&[u8], &[u8])] = &[(b"c", b"e")];
const ALL: &[(&[u8], &[u8])] = &[(b"", b"\xff\xff\xff")];

#[test]
fn an_overlay_keeps_both_exteriors_at_their_own_version() {
    let mut model = window();
    run(&mut model, &buf(10, -1, &[(0, false, NONE, &[(b"b", b"m")])]));
    run(&mut model, &buf(20, -1, &[(0, false, NONE, &[(b"d", b"f"), (b"e", b"g")])]));
    let versions: Vec<i64> = [&b""[..], b"a", b"b", b"c\xff", b"d", b"f", b"g", b"l", b"m"]
        .map(|key| model.version_of(key).0)
        .to_vec();
    assert_eq!(versions, [0, 0, 10, 10, 20, 20, 10, 10, 0]);
    run(&mut model, &buf(30, -1, &[(0, false, NONE, ALL)]));
    assert_eq!(model.segments(), 2);
    assert_eq!((model.version_of(b"\xff\xff"), model.version_of(b"\xff\xff\xff")), (Version(30), Version(0)));
}

#[test]
fn too_old_needs_a_read_range_even_an_empty_one_and_counts_this_batchs_oldest() {
    let mut model = window();
    let transactions =
        [(49, true, A_C, C_E), (50, true, A_C, NONE), (-1, true, NONE, A_C), (49, true, K_K, NONE)];
    let (verdicts, reports) = run(&mut model, &buf(100, 50, &transactions));
    assert_eq!((verdicts, reports), (vec![TooOld, Committed, Committed, TooOld], Vec::new()));
    assert!(model.version_of(b"c") < Version(100), "a transaction that is too old writes nothing");
    // `oldest` going back does not take the effective oldest back.
    let (verdicts, _) = run(&mut model, &buf(101, 20, &[(49, false, C_E, NONE), (50, false, C_E, NONE)]));
    assert_eq!(verdicts, [TooOld, Committed]);
    assert_eq!(model.effective_oldest(), Version(50));
}

#[test]
fn a_read_conflicts_with_what_is_newer_than_its_read_version() {
    let mut model = window();
    run(&mut model, &buf(10, -5, &[(0, false, NONE, B_D)]));
    let reads: Vec<Written<'_>> =
        [(9, A_C), (10, A_C), (9, A_B), (9, D_E), (9, CFF_D), (9, ALL), (9, C_B), (-1, X_Y)]
            .map(|(read_version, reads)| (read_version, false, reads, NONE))
            .to_vec();
    let (verdicts, _) = run(&mut model, &buf(20, -5, &reads));
    assert_eq!(
        verdicts,
        [Conflict, Committed, Committed, Committed, Conflict, Conflict, Committed, Conflict]
    );
}

#[test]
fn all_reads_that_conflict_with_history_are_reported_and_no_other() {
    let mut model = window();
    run(&mut model, &buf(10, 0, &[(0, false, NONE, B_D)]));
    let reads: &[(&[u8], &[u8])] = &[(b"c", b"c\0"), (b"c", b"c"), (b"x", b"y"), (b"a", b"z"), (b"d", b"a")];
    let transactions = [(10, false, NONE, X_Y), (9, true, reads, NONE), (9, false, reads, NONE)];
    let (verdicts, reports) = run(&mut model, &buf(20, 0, &transactions));
    assert_eq!(verdicts, [Committed, Conflict, Conflict]);
    assert_eq!(reports, [(1, 0), (1, 3)], "the read that only meets this batch's write is not reported");
}

#[test]
fn within_the_batch_only_earlier_committed_writes_count_and_the_first_read_is_reported() {
    let reads: &[(&[u8], &[u8])] = &[(b"x", b"y"), (b"d", b"e"), (b"c", b"d")];
    let transactions = [
        (5, true, A_C, A_C),   // its own writes do not count
        (5, true, C_E, B_D),   // only touches the write before
        (5, true, reads, C_E), // loses by its third read; its write does not count
        (5, true, D_E, NONE),
        (5, false, B_D, NONE),
    ];
    let (verdicts, reports) = run(&mut window(), &buf(20, 0, &transactions));
    assert_eq!(verdicts, [Committed, Committed, Conflict, Committed, Conflict]);
    assert_eq!(reports, [(2, 2)]);
}

#[test]
fn a_loser_by_history_leaves_no_write_behind() {
    let mut model = window();
    run(&mut model, &buf(10, -1, &[(0, false, NONE, A_C)]));
    let (verdicts, _) = run(&mut model, &buf(20, -1, &[(9, false, A_C, C_E), (10, false, C_E, NONE)]));
    assert_eq!(verdicts, [Conflict, Committed]);
    assert_eq!(model.version_of(b"c"), Version(0));
}

#[test]
fn judging_changes_nothing_and_another_sets_verdicts_can_be_applied() {
    let mut model = window();
    let first = buf(10, -1, &[(0, false, NONE, A_C), (0, false, A_C, C_E)]);
    let ranges = first.ranges();
    let batch = first.batch(&ranges);
    let mut verdicts = Verdicts::default();
    for _ in 0..2 {
        model.judge(&batch, &mut verdicts).unwrap();
        assert_eq!(verdicts.verdicts, [Committed, Conflict]);
        assert_eq!(model.version_of(b"a"), Version(0));
    }
    let others = Verdicts { verdicts: vec![TooOld, Committed], reported: Vec::new() };
    model.commit(&batch, &others).unwrap();
    assert_eq!((model.version_of(b"a"), model.version_of(b"c")), (Version(0), Version(10)));
}

#[test]
fn a_commit_without_its_judgement_is_refused() {
    let mut model = window();
    let (first, second) = (buf(10, 0, &[(0, false, NONE, A_C)]), buf(11, 0, &[(0, false, NONE, A_C)]));
    let (first_ranges, second_ranges) = (first.ranges(), second.ranges());
    let (first, second) = (first.batch(&first_ranges), second.batch(&second_ranges));
    let mut verdicts = Verdicts::default();
    model.judge(&first, &mut verdicts).unwrap();
    let refused = |version| Err(BatchError::NotJudged { version: Version(version) });
    assert_eq!(model.commit(&second, &verdicts), refused(11));
    assert_eq!(model.commit(&first, &Verdicts::default()), refused(10));
    assert_eq!(model.commit(&first, &verdicts), Ok(()));
    assert_eq!(model.commit(&first, &verdicts), refused(10));
}

#[test]
fn a_version_must_exceed_the_last_and_the_base_and_keys_have_a_limit() {
    let mut model = window();
    let judge = |model: &mut Model, buf: &BatchBuf| {
        let ranges = buf.ranges();
        model.judge(&buf.batch(&ranges), &mut Verdicts::default())
    };
    model.clear(Version(500));
    let not_newer = |version, newest| {
        Err(BatchError::VersionNotNewer { version: Version(version), newest: Version(newest) })
    };
    assert_eq!(judge(&mut model, &buf(500, 0, &[])), not_newer(500, 500));
    run(&mut model, &buf(501, 0, &[]));
    assert_eq!(judge(&mut model, &buf(501, 0, &[])), not_newer(501, 501));
    let long = vec![b'k'; MAX_END_LENGTH + 1];
    let refused = judge(&mut model, &buf(502, 0, &[(0, false, NONE, &[(b"a", &long)])]));
    assert!(matches!(refused, Err(BatchError::KeyTooLong { length, .. }) if length == long.len()));
    assert_eq!(judge(&mut model, &buf(502, 0, &[(0, false, NONE, &[(b"a", &long[1..])])])), Ok(()));
}

#[test]
fn clear_makes_a_new_history_with_its_base() {
    let mut model = window();
    run(&mut model, &buf(1_000, 900, &[(0, false, NONE, A_C)]));
    model.set_floor(Version(950));
    model.clear(Version(300));
    assert_eq!((model.effective_oldest(), model.cutoff()), (Version::LOWEST, None));
    let transactions = [(300, false, A_C, NONE), (299, false, A_C, NONE), (299, false, NONE, B_D)];
    let (verdicts, _) = run(&mut model, &buf(301, 0, &transactions));
    assert_eq!(verdicts, [Committed, Conflict, Committed]);
}

#[test]
fn a_follower_uses_its_floor_and_never_lowers_it() {
    let mut model = Model::new(Retention::Budget);
    model.set_floor(Version(7));
    model.set_floor(Version(5));
    let transactions = [(6, true, A_C, C_E), (7, true, A_C, NONE), (6, true, NONE, A_C)];
    let (verdicts, reports) = run(&mut model, &buf(10, 9, &transactions));
    assert_eq!((verdicts, reports), (vec![TooOld, Committed, Committed], Vec::new()));
    assert_eq!(model.effective_oldest(), Version::LOWEST);
}

#[test]
fn a_budget_ignores_oldest_and_never_forgets() {
    let mut model = Model::new(Retention::Budget);
    for version in 1..=1_000i64 {
        let key = version.to_be_bytes();
        run(&mut model, &buf(version, version, &[(0, false, NONE, &[(&key, &[&key[..], b"\0"].concat())])]));
    }
    assert_eq!((model.cutoff(), model.segments()), (None, 2_001));
    let key = 500i64.to_be_bytes();
    let end = [&key[..], b"\0"].concat();
    let transactions = [(499, false, &[(&key[..], &end[..])][..], NONE), (500, false, &[(&key, &end)], NONE)];
    let (verdicts, _) = run(&mut model, &buf(1_001, 1_000, &transactions));
    assert_eq!(verdicts, [Conflict, Committed]);
}

#[test]
fn a_window_forgets_and_says_up_to_where() {
    let (mut model, mut peak) = (window(), 0);
    for version in 1..=10_000i64 {
        let key = version.to_be_bytes();
        let end = [&key[..], b"\0"].concat();
        run(&mut model, &buf(version, version - 10, &[(version - 1, false, NONE, &[(&key, &end)])]));
        assert!(model.segments() < 200, "{} segments at {version}", model.segments());
        assert!(model.cutoff().is_none_or(|cutoff| cutoff <= model.effective_oldest()));
        peak = peak.max(model.memory_bytes());
    }
    assert!(model.cutoff().unwrap() > Version(9_800));
    assert_eq!(model.version_of(&9_999i64.to_be_bytes()), Version(9_999));
    assert!(model.peak_memory_bytes() >= peak && peak > 0);
}

#[test]
fn nothing_is_given_up_while_oldest_is_negative() {
    let mut model = window();
    for version in 1..=200i64 {
        let key = version.to_be_bytes();
        let end = [&key[..], b"\0"].concat();
        run(&mut model, &buf(version, version - 1_000, &[(0, false, NONE, &[(&key, &end)])]));
    }
    assert_eq!((model.cutoff(), model.segments()), (None, 401));
}

#[test]
fn memory_is_counted_by_boundary() {
    let mut model = window();
    let empty = model.memory_bytes();
    run(&mut model, &buf(1, 0, &[(0, false, NONE, &[(b"key", b"longer key")])]));
    let boundary = (size_of::<Vec<u8>>() + size_of::<Version>()) as u64;
    assert_eq!((empty, model.memory_bytes()), (boundary, 3 * boundary + 13));
    run(&mut model, &buf(2, 0, &[(0, false, NONE, ALL)]));
    assert_eq!(model.memory_bytes(), 2 * boundary + 3);
    assert_eq!(model.peak_memory_bytes(), 3 * boundary + 13);
}
