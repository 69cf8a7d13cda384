//! The loops behind the command, over conflict sets that are bent on purpose: a history that gives up early is followed, one
//! that loses writes is found out.

use resolver_index::{Config, LEAST_BUDGET};
use resolver_oracle::{Model, SkipList};
use resolver_resolve::{TreeConfig, TreeSet};
use resolver_types::{Batch, BatchError, ConflictSet, Retention, StageTimes, Verdict, Verdicts, Version};
use resolver_workloads::capture::CaptureReader;
use resolver_workloads::compare::{Comparison, Difference};
use resolver_workloads::generators::long_trace::Mixture;
use resolver_workloads::input::{Input, Maker, Recording, RunError, Unmade};
use resolver_workloads::measure::{MeasureError, measure, measure_ticks};
use resolver_workloads::part::Part;
use resolver_workloads::replay::{Expectation, Replay, Replayed};
use resolver_workloads::retention::{Plan, TraceShape, check};
use resolver_workloads::shrink::shrink;
use resolver_workloads::{BatchBuf, RandomBatches, captures_dir};

/// Every so many batches a bent history loses the writes of one.
const LOSS: u64 = 7;

/// Every so many batches it gives up all but its newest history.
const RECLAMATION: u64 = 28;

/// A model that, now and then, gives up all but its newest history and says so, or loses a batch's writes and says nothing.
struct Bent {
    inner: Model,
    gives_up: bool,
    loses_writes: bool,
    commits: u64,
    given_up: Option<Version>,
}

impl Bent {
    fn new(gives_up: bool, loses_writes: bool) -> Bent {
        let inner = Model::new(Retention::Window);
        Bent { inner, gives_up, loses_writes, commits: 0, given_up: None }
    }
}

impl ConflictSet for Bent {
    fn name(&self) -> &'static str {
        "bent"
    }

    fn judge(&mut self, batch: &Batch<'_>, verdicts: &mut Verdicts) -> Result<(), BatchError> {
        self.inner.judge(batch, verdicts)
    }

    fn commit(&mut self, batch: &Batch<'_>, verdicts: &Verdicts) -> Result<(), BatchError> {
        self.commits += 1;
        if self.loses_writes && self.commits % LOSS == 1 {
            let nobody = vec![Verdict::Conflict; verdicts.verdicts.len()];
            self.inner.commit(batch, &Verdicts { verdicts: nobody, reported: Vec::new() })?;
        } else {
            self.inner.commit(batch, verdicts)?;
        }
        if self.gives_up && self.commits.is_multiple_of(RECLAMATION) {
            let newest = Version(batch.version.0 - 1);
            self.given_up = self.given_up.max(Some(newest));
            self.inner.set_floor(newest);
        }
        Ok(())
    }

    fn clear(&mut self, base: Version) {
        self.inner.clear(base);
        self.given_up = None;
    }

    fn set_floor(&mut self, floor: Version) {
        self.inner.set_floor(floor);
    }

    fn cutoff(&self) -> Option<Version> {
        self.inner.cutoff().max(self.given_up)
    }

    fn effective_oldest(&self) -> Version {
        self.inner.effective_oldest()
    }

    fn memory_bytes(&self) -> u64 {
        self.inner.memory_bytes()
    }

    fn peak_memory_bytes(&self) -> u64 {
        self.inner.peak_memory_bytes()
    }

    fn time_stages(&mut self, on: bool) {
        self.inner.time_stages(on);
    }

    fn stage_times(&self) -> StageTimes {
        self.inner.stage_times()
    }

    fn validate(&self) -> Result<(), String> {
        match self.loses_writes && self.commits % LOSS == 1 {
            true => Err("invariant 99: the writes are in".to_owned()),
            false => Ok(()),
        }
    }
}

type Made = Result<Box<dyn ConflictSet>, Unmade>;

fn bent(gives_up: bool, loses_writes: bool) -> impl Fn() -> Made {
    move || Ok(Box::new(Bent::new(gives_up, loses_writes)))
}

fn model() -> Made {
    Ok(Box::new(Model::new(Retention::Window)))
}

fn skip_list() -> Made {
    Ok(Box::new(SkipList::new(Retention::Window)))
}

fn never_forgetting() -> Made {
    Ok(Box::new(Model::new(Retention::Budget)))
}

/// Replays beside a skip list that follows where that is needed.
fn replay(recording: &Recording, make: Maker<'_>) -> Replayed {
    let replay = Replay { make, reference: &skip_list, validate: false };
    replay.run(&recording.views(), &mut || ()).expect("a committed capture")
}

fn recording(name: &str) -> Recording {
    CaptureReader::open(&captures_dir().join(name)).and_then(Recording::read).expect("a committed capture")
}

#[test]
fn a_replay_follows_a_history_that_gives_up_early() {
    for name in ["sim-inventory.fdbcap.zst", "bench-ranges.fdbcap.zst", "driver-mixed.fdbcap.zst"] {
        let recording = recording(name);
        let found = replay(&recording, &bent(true, false));
        assert_eq!((found.mismatches, found.report_mismatches), (0, 0), "{name}: {:?}", found.shown);
        let exact = replay(&recording, &model);
        assert_eq!((exact.mismatches, exact.counts.too_old_by_cutoff), (0, 0), "{name}");
        if name.starts_with("sim") {
            assert!(found.counts.too_old_by_cutoff > 0, "{name}");
            assert_ne!(found.decision_hash, exact.decision_hash, "{name}");
        }
    }
}

#[test]
fn a_replay_finds_lost_writes_whether_it_follows_or_not() {
    let recording = recording("sim-cycle.fdbcap.zst");
    for (gives_up, expectation) in [(false, Expectation::Recorded), (true, Expectation::Following)] {
        let found = replay(&recording, &bent(gives_up, true));
        assert!(found.mismatches > 0);
        assert_eq!(found.counts.batches, recording.recorded.len() as u64, "it goes on to the end");
        assert!(found.shown.len() as u64 <= found.mismatches + found.report_mismatches);
        let last = found.shown.last().expect("a mismatch is shown");
        assert_eq!(last.expectation, expectation);
        assert!(last.to_string().contains("bent decides"), "{last}");
    }
}

#[test]
fn a_replay_follows_where_the_retention_ignores_oldest() {
    let recording = recording("driver-tiny.fdbcap.zst");
    let replay = Replay { make: &never_forgetting, reference: &never_forgetting, validate: true };
    let found = replay.run(&recording.views(), &mut || ()).unwrap();
    assert_eq!((found.mismatches, found.report_mismatches), (0, 0), "{:?}", found.shown);
    assert_eq!(found.counts.too_old, 0);
    assert_eq!(found.cutoff, None);
}

fn comparison(index: impl Fn() -> Made, references: Vec<Box<dyn ConflictSet>>) -> Comparison {
    Comparison::new(index().unwrap(), references, never_forgetting().unwrap())
}

/// The first difference between a set and its references over the batches of a seed, and which batch it is.
fn first_difference(
    comparison: &mut Comparison,
    shape: &str,
    transactions: u64,
) -> Option<(usize, Difference)> {
    let batches = RandomBatches::new(shape, 3, transactions).expect("a known shape");
    batches.enumerate().find_map(|(number, buf)| {
        let difference = comparison.step(&buf.batch(&buf.ranges())).err()?;
        Some((number, difference))
    })
}

#[test]
fn references_follow_a_history_that_gives_up_early() {
    for shape in RandomBatches::shapes() {
        let references = vec![skip_list().unwrap(), model().unwrap()];
        let mut comparison = comparison(bent(true, false), references);
        let transactions = if shape == "long-keys" { 500 } else { 5_000 };
        assert_eq!(first_difference(&mut comparison, shape, transactions), None, "{shape}");
        let counts = comparison.counts();
        assert_eq!(counts.transactions, transactions);
        assert!(counts.too_old_by_cutoff > 0, "{shape}: {counts:?}");
    }
}

#[test]
fn the_witness_alone_finds_lost_writes() {
    let mut comparison = comparison(bent(true, true), Vec::new());
    let (_, difference) = first_difference(&mut comparison, "hot", 5_000).expect("a difference");
    assert!(matches!(difference, Difference::Forgotten { index: "bent", .. }), "{difference}");
}

#[test]
fn a_difference_shrinks_to_a_few_transactions() {
    let compare = || comparison(bent(false, true), vec![model().unwrap()]);
    let (number, _) = first_difference(&mut compare(), "adversarial", 5_000).expect("a difference");
    let prefix: Vec<BatchBuf> =
        RandomBatches::new("adversarial", 3, 5_000).expect("a known shape").take(number + 1).collect();
    let views: Vec<_> = prefix.iter().map(BatchBuf::ranges).collect();
    let batches = prefix.iter().zip(&views).map(|(buf, ranges)| buf.batch(ranges));
    let parts = batches.map(|batch| Part::of(&batch, |_| true)).collect();
    let mut fails = |parts: &[Part<'_>]| {
        let mut comparison = compare();
        parts.iter().any(|part| comparison.step(&part.batch()).is_err())
    };
    let small = shrink(parts, 1_000_000, &mut fails);
    assert!(fails(&small));
    let transactions: usize = small.iter().map(|part| part.batch().transactions.len()).sum();
    assert_eq!(transactions, 2, "one that writes, and one that reads what was lost");
}

#[test]
fn candidates_that_decide_differently_are_not_timed() {
    let recording = recording("sim-inventory.fdbcap.zst");
    let views = recording.input.views();
    let lossy = bent(false, true);
    let error = measure(&views, &lossy, Some(&model), 1, &mut || ()).unwrap_err();
    assert!(matches!(error, MeasureError::Decisions { .. }), "{error}");
}

#[test]
fn a_measurement_has_a_ratio_only_against_another() {
    let recording = recording("sim-cycle.fdbcap.zst");
    let views = recording.input.views();
    for against in [None, Some(&model as Maker<'_>)] {
        let mut ticks = 0;
        let found = measure(&views, &skip_list, against, 2, &mut || ticks += 1).unwrap();
        assert_eq!(ticks, measure_ticks(2, against.is_some()));
        assert_eq!((found.rounds.len(), found.ratio.is_some()), (2, against.is_some()));
        assert_eq!(found.candidates.len(), 1 + usize::from(against.is_some()));
        assert_eq!(found.counts.transactions, 3_259);
        assert!(found.noise >= 0.0 && found.rounds.iter().all(|&ratio| ratio > 0.0));
        assert_eq!(found.stage_ratios.iter().any(Option::is_some), against.is_some());
    }
}

#[test]
fn a_retention_check_follows_early_losses_and_its_probes_find_silent_ones() {
    let plan = Plan {
        budget_bytes: 1 << 20,
        batches: 40,
        traffic: TraceShape { key_bytes: 16, mixture: Mixture::by_name("mixed").expect("it is named") },
        seed: 4,
    };
    let found = check(&plan, &bent(true, false), &skip_list, &mut || ()).unwrap();
    assert!(found.all_equal(), "{found:?}");
    assert_eq!((found.decisions, found.compared), (40 * 2_048, 40 * 2_048));
    assert!(found.probe_conflicts > 1_000 && found.probes > found.probe_conflicts + 1_000, "{found:?}");
    assert!(found.deepest_probe_seconds > 0.5, "{found:?}");
    let lost = check(&plan, &bent(false, true), &skip_list, &mut || ()).unwrap();
    assert!(lost.probe_failures > 0 && lost.mismatches > 0, "{lost:?}");
}

/// The tree under the least budget.
fn least_tree() -> Made {
    let index = Config { budget_bytes: LEAST_BUDGET, ..Config::default() };
    let tree = TreeSet::new(TreeConfig { retention: Retention::Window, index });
    tree.map(|tree| Box::new(tree) as Box<dyn ConflictSet>).map_err(|error| Unmade(error.to_string()))
}

/// Every third batch writes more key bytes than the least budget holds; in every batch, a key is read at all versions so far.
fn batches_beyond_the_least_budget() -> Vec<BatchBuf> {
    let batch = |number: i64| {
        let mut buf = BatchBuf::new(Version(10 * number), Version::ZERO);
        for read_version in 0..number {
            buf.push_transaction(Version(10 * read_version), true);
            buf.push_read(b"read", b"read\0");
            buf.push_write(&[b'w', read_version as u8], &[b'w', read_version as u8, 0]);
        }
        if number % 3 == 0 {
            buf.push_transaction(Version::ZERO, false);
            for letter in b'a'..=b'h' {
                let key = vec![letter; 60_000];
                buf.push_write(&key, &[&key[..], &[0]].concat());
            }
        }
        buf
    };
    (1..=12).map(batch).collect()
}

#[test]
fn a_comparison_goes_on_after_a_batch_that_the_budget_cannot_hold() {
    let references = vec![skip_list().unwrap(), model().unwrap()];
    let mut comparison = comparison(least_tree, references).validating();
    for buf in batches_beyond_the_least_budget() {
        comparison.step(&buf.batch(&buf.ranges())).expect("all fall back together");
    }
    let counts = comparison.counts();
    assert_eq!((counts.batches, counts.fallbacks), (12, 4), "{counts:?}");
    // Reads from below the last fallback conflict, and only they.
    assert_eq!(counts.conflicts, (4..=12).map(|number: u64| (number - 1) / 3 * 3).sum::<u64>());
    assert!(comparison.index().counters().contains(&("inner_split", 0)));
}

#[test]
fn a_replay_follows_after_a_batch_that_the_budget_cannot_hold() {
    let batches = batches_beyond_the_least_budget();
    let mut recording = Recording { input: Input::new(batches.iter().cloned()), ..Recording::default() };
    let mut exact = model().unwrap();
    for buf in &batches {
        let ranges = buf.ranges();
        let mut verdicts = Verdicts::default();
        exact.judge(&buf.batch(&ranges), &mut verdicts).unwrap();
        exact.commit(&buf.batch(&ranges), &verdicts).unwrap();
        recording.recorded.push(verdicts);
    }
    let found = replay(&recording, &least_tree);
    assert_eq!((found.mismatches, found.report_mismatches), (0, 0), "{:?}", found.shown);
    assert_eq!((found.counts.batches, found.counts.fallbacks), (12, 4));
    let exact = replay(&recording, &model);
    assert_eq!((exact.mismatches, exact.counts.fallbacks), (0, 0), "{:?}", exact.shown);
    assert_ne!(found.decision_hash, exact.decision_hash);

    let error = measure(&recording.input.views(), &least_tree, Some(&model), 1, &mut || ()).unwrap_err();
    assert!(matches!(error, MeasureError::Decisions { fallbacks: 4, .. }), "{error}");
}

#[test]
fn a_broken_history_is_found_after_its_batch() {
    let recording = recording("sim-cycle.fdbcap.zst");
    let lossy = bent(false, true);
    let replay = Replay { make: &lossy, reference: &skip_list, validate: true };
    let error = replay.run(&recording.views(), &mut || ()).unwrap_err();
    assert!(matches!(error, RunError::Broken { set: "bent", batch: 0, .. }), "{error}");
    assert!(error.to_string().contains("invariant 99"), "{error}");

    let mut comparison = comparison(lossy, Vec::new()).validating();
    let (number, difference) = first_difference(&mut comparison, "hot", 5_000).expect("a difference");
    assert_eq!(number, 0);
    assert!(matches!(difference, Difference::Broken { index: "bent", .. }), "{difference}");
}
