//! Every planted bug against the suite that claims to find it: `ci/negative`.
//!
//! The parent starts itself once for each bug, so that a bug that never ends is found by the clock; it prints
//! a table and fails when a bug survives, or when a tree without a bug is accused of one.

#![allow(clippy::print_stdout, clippy::print_stderr)] // the table is what this is for

#[path = "tree/huge.rs"]
mod huge;
#[path = "tree/kit.rs"]
mod kit;
#[path = "tree/scenarios.rs"]
mod scenarios;
#[path = "tree/trial.rs"]
mod trial;
#[path = "tree/twins.rs"]
mod twins;
#[path = "tree/waning.rs"]
mod waning;

use resolver_index::{Backing, Bug, Config, LEAST_BUDGET, Planted, Tasks};
use resolver_resolve::{TreeConfig, TreeSet};
use resolver_types::{ConflictSet, Retention, Verdicts, Version};
use resolver_workloads::capture::{CaptureReader, Record, captures_dir, captures_in};
use resolver_workloads::{BatchBuf, RandomBatches, cases};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::process::{Command, ExitCode, Stdio};
use std::sync::Mutex;
use std::time::{Duration, Instant};
use trial::Trial;
use twins::Twins;

/// Who claims to find a bug.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Suite {
    /// The checker of the whole tree, after every batch.
    Validate,
    /// Verdicts and reports beside model and skip list, and what is committed beside a model that never
    /// forgets.
    Differential,
    /// The same where another set's verdicts are committed.
    Foreign,
    /// The named cases.
    Cases,
    /// The recorded captures.
    Captures,
    /// Histories made by hand.
    Scenarios,
    /// What the slow hand has to collect.
    Hand,
    /// The cooperative strategy beside the pipelined one.
    Twins,
}

impl Suite {
    const ALL: [Suite; 8] = [
        Suite::Validate,
        Suite::Differential,
        Suite::Foreign,
        Suite::Cases,
        Suite::Captures,
        Suite::Scenarios,
        Suite::Hand,
        Suite::Twins,
    ];

    fn name(self) -> &'static str {
        match self {
            Suite::Validate => "validate",
            Suite::Differential => "differential",
            Suite::Foreign => "foreign verdicts",
            Suite::Cases => "cases",
            Suite::Captures => "captures",
            Suite::Scenarios => "scenarios",
            Suite::Hand => "hand",
            Suite::Twins => "twins",
        }
    }

    /// The suite that claims to find a bug.
    fn guarding(bug: Bug) -> Suite {
        match bug {
            Bug::CoveredSlotsKeepOld
            | Bug::SplitForgetsHalf
            | Bug::PrunedByOne
            | Bug::BetweenUnseen
            | Bug::ExteriorLost
            | Bug::CarryNotWritten
            | Bug::PointBehindBoundaryUnseen
            | Bug::SegmentUnseen
            | Bug::CutoffReachesBatch
            | Bug::BoundWithoutCutoff
            | Bug::SuffixOfBegins
            | Bug::TouchingOverlaps
            | Bug::CombineSwallowsTouching
            | Bug::ReportFirstOnly => Suite::Differential,
            Bug::JoinLosesCarry
            | Bug::VacanciesMerge
            | Bug::ReadEndsBehindSeparator
            | Bug::BoundaryAtLowerBound
            | Bug::EmptyLeafStays
            | Bug::LeafLeaks
            | Bug::RenumberForgetsCondemned
            | Bug::RenumberKeepsRoutes => Suite::Scenarios,
            Bug::TooOldNeverWrites => Suite::Foreign,
            Bug::BelowBaseUndecided => Suite::Cases,
            Bug::HandSkipsNodes => Suite::Hand,
            Bug::RankOutlivesCompaction
            | Bug::RankOutlivesEdit
            | Bug::RankOutlivesSplit
            | Bug::InnerAtOnce
            | Bug::FrontierOutOfOrder => Suite::Twins,
            _ => Suite::Validate,
        }
    }

    /// Runs it over trees made with `planted`; what it finds first.
    fn run(self, planted: Planted) -> Option<String> {
        match self {
            Suite::Validate => trials(planted, |trial| Trial { compare: false, ..trial }),
            Suite::Differential => trials(planted, |trial| Trial { validate_every: 0, ..trial }),
            Suite::Foreign => trials(planted, |trial| Trial { validate_every: 0, foreign: true, ..trial }),
            Suite::Cases => cases::builtin().iter().find_map(|case| {
                let mut set = set(Retention::Window, LEAST_BUDGET, planted);
                caught(|| cases::run_case(case, &mut set).err())
            }),
            Suite::Captures => captures_in(&captures_dir())
                .expect("the captures can be listed")
                .iter()
                .find_map(|file| caught(|| replay(file, &mut set(Retention::Window, 64 << 20, planted)))),
            Suite::Scenarios => [
                scenarios::at_separators,
                scenarios::vacant_neighbours,
                scenarios::joined_segments,
                scenarios::renumbered_vacancy,
                scenarios::renumbered_condemned,
            ]
            .into_iter()
            .find_map(|scenario| {
                caught(|| {
                    scenario(planted);
                    None
                })
            }),
            Suite::Hand => caught(|| hand(&mut set(Retention::Window, 64 << 20, planted))),
            Suite::Twins => twin_runs(planted),
        }
    }
}

fn set(retention: Retention, budget_bytes: u64, planted: Planted) -> TreeSet {
    let index = Config { budget_bytes, backing: Backing::Heap, planted, ..Config::default() };
    TreeSet::new(TreeConfig { retention, index }).expect("the tree can be made")
}

/// Runs `suite`; a panic is a finding too.
fn caught(suite: impl FnOnce() -> Option<String>) -> Option<String> {
    catch_unwind(AssertUnwindSafe(suite)).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().map(String::as_str);
        let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("?");
        Some(format!("panic: {text}"))
    })
}

/// Random runs, the cheap ones first.
fn trials(planted: Planted, mode: impl Fn(Trial) -> Trial) -> Option<String> {
    let runs = [
        ("knots", Retention::Window, 4 << 20, u32::MAX - 1, 2_000),
        ("tuple", Retention::Window, 4 << 20, u32::MAX - 1, 2_000),
        ("append", Retention::Budget, LEAST_BUDGET, u32::MAX - 1, 2_000),
        ("knots", Retention::Budget, LEAST_BUDGET, u32::MAX - 1, 2_000),
        ("adversarial", Retention::Window, 1 << 20, 340, 8_000),
        ("long-keys", Retention::Window, 1 << 20, 340, 3_000),
        ("knots", Retention::Window, 1 << 20, 340, 8_000),
        ("wide-reads", Retention::Window, 8 << 20, u32::MAX - 1, 4_000),
        ("wide-reads", Retention::Budget, 1 << 20, 340, 8_000),
        ("ranges", Retention::Window, 4 << 20, 500, 8_000),
    ];
    for (seed, (shape, retention, budget_bytes, stamp_limit, transactions)) in (1..).zip(runs) {
        let index =
            Config { budget_bytes, backing: Backing::Heap, stamp_limit, planted, ..Config::default() };
        let trial = mode(Trial::new(shape, seed, transactions, TreeConfig { retention, index }));
        let found = caught(|| trial.run().err().map(|(batch, finding)| format!("{finding} (batch {batch})")));
        if found.is_some() {
            return found.map(|found| format!("{shape}: {found}"));
        }
    }
    for (long, budget_bytes) in [(false, 16 << 20), (true, 16 << 20), (true, 1 << 20)] {
        let index = Config { budget_bytes, backing: Backing::Heap, planted, ..Config::default() };
        let trial = mode(Trial::new("waning", 1, 0, TreeConfig { retention: Retention::Window, index }));
        let found = caught(|| {
            let run = trial.run_batches(waning::batches(1, 250, long));
            run.err().map(|(batch, finding)| format!("waning: {finding} (batch {batch})"))
        });
        if found.is_some() {
            return found;
        }
    }
    let index = Config { budget_bytes: LEAST_BUDGET, backing: Backing::Heap, planted, ..Config::default() };
    let trial = mode(Trial::new("huge keys", 43, 0, TreeConfig { retention: Retention::Budget, index }));
    caught(|| {
        let run = trial.run_batches(huge::batches(43, 200));
        run.err().map(|(batch, finding)| format!("huge keys: {finding} (batch {batch})"))
    })
}

/// Random runs of both strategies.
fn twin_runs(planted: Planted) -> Option<String> {
    let runs = [
        ("knots", Retention::Budget, LEAST_BUDGET, u32::MAX - 1, 2_000),
        ("tuple", Retention::Window, 4 << 20, u32::MAX - 1, 4_000),
        ("adversarial", Retention::Window, 1 << 20, 340, 8_000),
        ("long-keys", Retention::Budget, 1 << 20, 340, 4_000),
        ("wide-reads", Retention::Budget, 1 << 20, u32::MAX - 1, 8_000),
    ];
    (1..).zip(runs).find_map(|(seed, (shape, retention, budget_bytes, stamp_limit, transactions))| {
        let index =
            Config { budget_bytes, backing: Backing::Heap, stamp_limit, planted, ..Config::default() };
        let found = caught(|| {
            let mut twins = Twins::new(TreeConfig { retention, index }, Tasks::default());
            let mut batches = RandomBatches::new(shape, seed, transactions).expect("a shape");
            batches.find_map(|buf| twins.step(&buf, 1))
        });
        found.map(|found| format!("{shape}: {found}"))
    })
}

fn replay(file: &std::path::Path, set: &mut TreeSet) -> Option<String> {
    let mut reader = CaptureReader::open(file).expect("the capture can be read");
    let mut found = Verdicts::default();
    while let Some(record) = reader.next_record().expect("the capture is well-formed") {
        match record {
            Record::Clear(version) => set.clear(version),
            Record::Batch { batch: buf, recorded } => {
                let ranges = buf.ranges();
                let batch = buf.batch(&ranges);
                set.judge(&batch, &mut found).expect("the batch is legal");
                if found != recorded {
                    return Some(format!("{}: other decisions", file.display()));
                }
                set.commit(&batch, &found).expect("the batch fits");
            }
        }
    }
    None
}

/// A history of which all but a little has expired, in leaves that nobody writes to: it has to be given back.
fn hand(set: &mut TreeSet) -> Option<String> {
    let mut verdicts = Verdicts::default();
    let mut write = |set: &mut TreeSet, version: i64, oldest: i64, keys: &mut dyn Iterator<Item = u64>| {
        let mut buf = BatchBuf::new(Version(version), Version(oldest));
        buf.push_transaction(Version(version), false);
        for key in keys {
            let begin = key.to_be_bytes();
            buf.push_write(&begin, &[&begin[..], &[0]].concat());
        }
        let ranges = buf.ranges();
        set.judge(&buf.batch(&ranges), &mut verdicts).expect("the batch is legal");
        set.commit(&buf.batch(&ranges), &verdicts).expect("the batch fits");
    };
    const KEYS: u64 = 400_000;
    write(set, 1, -1, &mut (0..KEYS));
    // One key in a hundred stays alive, so that no leaf dies whole.
    write(set, 2, -1, &mut (0..KEYS / 100).map(|key| key * 100));
    let full = set.tree().blocks().used;
    for version in 3..2_000 {
        // All at the end of the key space, in many leaves: what the hand's steps are counted by.
        write(set, version, 1, &mut (0..200).map(|key| KEYS + (key * 7_919 + version as u64) % 20_000));
    }
    let left = set.tree().blocks().used;
    (left > full / 4).then(|| format!("{left} blocks are still used, of {full} that were"))
}

/// How long one bug may take.
const LIMIT: Duration = Duration::from_secs(60);

/// Runs one bug in a process of its own: whether it is found, and how.
fn run_apart(bug: Bug) -> (bool, String) {
    let this = std::env::current_exe().expect("the program knows itself");
    let mut child = Command::new(this)
        .arg(bug.name())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program can start itself");
    let start = Instant::now();
    while child.try_wait().expect("the child can be waited for").is_none() {
        if start.elapsed() > LIMIT {
            child.kill().expect("the child can be stopped");
            child.wait().expect("the child ends");
            return (true, format!("it does not end in {} seconds", LIMIT.as_secs()));
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    let output = child.wait_with_output().expect("the child's output can be read");
    let text = String::from_utf8_lossy(&output.stdout);
    match (output.status.code(), text.trim()) {
        (Some(1), "") => (false, "SURVIVES".to_owned()),
        (Some(0), found) => (true, found.to_owned()),
        (code, _) => (true, format!("the process ends with {code:?}")),
    }
}

/// One line of at most so many characters.
fn cut(text: &str, most: usize) -> String {
    text.lines().next().unwrap_or_default().chars().take(most).collect()
}

fn main() -> ExitCode {
    let names: Vec<String> = std::env::args().skip(1).filter(|argument| !argument.starts_with('-')).collect();
    if let [name] = &names[..] {
        let bug = Bug::by_name(name).expect("the name of a bug");
        return match Suite::guarding(bug).run(Planted::new(bug)) {
            Some(found) => {
                println!("{}", cut(&found, 100));
                ExitCode::SUCCESS
            }
            None => ExitCode::FAILURE,
        };
    }
    let mut failed = false;
    for suite in Suite::ALL {
        if let Some(found) = suite.run(Planted::default()) {
            failed = true;
            println!("without a bug, {} finds one: {found}", suite.name());
        }
    }
    let next = Mutex::new(Bug::ALL.iter().copied());
    let survived = Mutex::new(failed);
    println!("{:<30} | {:<16} | found by", "bug", "guarded by");
    std::thread::scope(|scope| {
        for _ in 0..std::thread::available_parallelism().map_or(1, usize::from).min(4) {
            scope.spawn(|| {
                loop {
                    let Some(bug) = next.lock().expect("nobody panics").next() else { return };
                    let (is_found, how) = run_apart(bug);
                    println!("{:<30} | {:<16} | {how}", bug.name(), Suite::guarding(bug).name());
                    if !is_found {
                        println!("    {}", bug.sentence());
                        *survived.lock().expect("nobody panics") = true;
                    }
                }
            });
        }
    });
    if *survived.lock().expect("nobody panics") { ExitCode::FAILURE } else { ExitCode::SUCCESS }
}
