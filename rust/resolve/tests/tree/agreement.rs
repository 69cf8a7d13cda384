//! What must not matter does not: the backing, the instructions, and the budget as long as it is enough.

use crate::config;
use crate::trial::Trial;
use crate::waning;
use resolver_index::{Backing, Blocks, Config, LEAST_BUDGET, LeafLayout, Stats, Tree};
use resolver_resolve::{TreeConfig, TreeSet};
use resolver_types::{ConflictSet, DecisionHasher, Retention, Verdicts, Version};
use resolver_workloads::capture::{CaptureReader, Record, captures_dir, captures_in};
use resolver_workloads::{BatchBuf, RandomBatches, cases};
use std::path::Path;
use std::sync::OnceLock;

/// Everything about a run that may be compared.
#[derive(Debug, PartialEq)]
struct Found {
    decisions: String,
    cutoff: Option<Version>,
    blocks: Blocks,
    leaves: Vec<LeafLayout>,
    stats: Stats,
}

/// A run over batches, and over clears (`Err`).
fn run(config: TreeConfig, input: impl Iterator<Item = Result<BatchBuf, Version>>) -> Found {
    let mut set = TreeSet::new(config).expect("the tree can be made");
    let mut hasher = DecisionHasher::default();
    let mut verdicts = Verdicts::default();
    for item in input {
        match item {
            Err(version) => set.clear(version),
            Ok(buf) => {
                let ranges = buf.ranges();
                let batch = buf.batch(&ranges);
                set.judge(&batch, &mut verdicts).expect("the batch is legal");
                hasher.add(&verdicts);
                set.commit(&batch, &verdicts).expect("the batch fits");
            }
        }
    }
    set.tree().validate().expect("the tree is valid");
    let tree = set.tree();
    Found {
        decisions: hasher.hex(),
        cutoff: tree.cutoff(),
        blocks: tree.blocks(),
        leaves: tree.layout(),
        stats: *tree.stats(),
    }
}

fn capture(file: &Path) -> impl Iterator<Item = Result<BatchBuf, Version>> {
    let mut reader = CaptureReader::open(file).expect("the capture can be read");
    std::iter::from_fn(move || {
        reader.next_record().expect("the capture is well-formed").map(|record| match record {
            Record::Clear(version) => Err(version),
            Record::Batch { batch, .. } => Ok(batch),
        })
    })
}

/// The backings that this machine has. Asked for once, before any test holds huge pages, and with a budget that holds what
/// all of them take at once.
fn backings() -> &'static [Backing] {
    static HERE: OnceLock<Vec<Backing>> = OnceLock::new();
    let config = |backing| Config { budget_bytes: 64 << 20, backing, ..Config::default() };
    HERE.get_or_init(|| {
        Backing::ALL.into_iter().filter(|&backing| Tree::new(config(backing)).is_ok()).collect()
    })
}

#[test]
fn captures_are_decided_alike_on_every_backing_and_under_every_budget_that_holds_them() {
    let backings = backings();
    assert!(backings.contains(&Backing::Heap));
    for file in captures_in(&captures_dir()).expect("the captures can be listed") {
        let of = |backing, budget_bytes| {
            let plain = config(Retention::Window, budget_bytes);
            run(TreeConfig { index: Config { backing, ..plain.index }, ..plain }, capture(&file))
        };
        let first = of(Backing::Heap, 16 << 20);
        for &backing in &backings[1..] {
            assert_eq!(of(backing, 16 << 20), first, "{} {}", file.display(), backing.name());
        }
        // From the least budget on: as soon as nothing is reclaimed for space, nothing differs.
        let mut held = false;
        for budget in [LEAST_BUDGET, 1 << 20, 2 << 20, 4 << 20, 64 << 20, 1 << 30] {
            let found = of(Backing::Heap, budget);
            assert!(!held || found.stats.reclamations == 0, "{} {budget}", file.display());
            held = found.stats.reclamations == 0;
            if held {
                assert_eq!(found.decisions, first.decisions, "{} {budget}", file.display());
                assert_eq!(found.cutoff, first.cutoff, "{} {budget}", file.display());
            }
        }
        assert!(held, "1 GiB holds any capture");
    }
}

#[test]
fn cases_on_every_backing() {
    for &backing in backings() {
        for case in cases::builtin() {
            let plain = config(Retention::Window, LEAST_BUDGET);
            let config = TreeConfig { index: Config { backing, ..plain.index }, ..plain };
            let mut set = TreeSet::new(config).expect("the tree can be made");
            cases::run_case(&case, &mut set).unwrap_or_else(|error| panic!("{}: {error}", backing.name()));
        }
    }
}

#[test]
fn scalar_search_gives_the_same_everything() {
    for shape in RandomBatches::shapes() {
        let of = |vector_search| {
            let plain = config(Retention::Window, 1 << 20);
            let config = TreeConfig { index: Config { vector_search, ..plain.index }, ..plain };
            run(config, RandomBatches::new(shape, 50, 3_000).expect("a shape").map(Ok))
        };
        assert_eq!(of(true), of(false), "{shape}");
    }
}

#[test]
fn every_counter_moves() {
    let mut sum: Vec<(&'static str, u64)> = Vec::new();
    let mut add = |stats: Stats| {
        for (at, (name, value)) in stats.fields().enumerate() {
            if at == sum.len() {
                sum.push((name, 0));
            }
            sum[at].1 += value;
        }
    };
    for shape in ["long-keys", "knots", "wide-reads"] {
        let plain = config(Retention::Window, 1 << 20);
        let config = TreeConfig { index: Config { stamp_limit: 340, ..plain.index }, ..plain };
        let trial = Trial { compare: false, validate_every: 0, ..Trial::new(shape, 51, 20_000, config) };
        add(trial
            .run()
            .unwrap_or_else(|(batch, finding)| panic!("{trial:?}, batch {batch}: {finding}"))
            .stats);
    }
    for (long, retention) in
        [(false, Retention::Window), (true, Retention::Window), (true, Retention::Budget)]
    {
        add(run(config(retention, 1 << 20), waning::batches(52, 300, long).map(Ok)).stats);
    }
    let idle: Vec<&str> = sum.iter().filter(|&&(_, value)| value == 0).map(|&(name, _)| name).collect();
    assert!(idle.is_empty(), "{idle:?} never moved, of {sum:?}");
}
