//! `resolver compare-strategies`: the pipelined and the cooperative tree on the same input, in one run.

use crate::Outcome;
use crate::bench::{self, Runs};
use crate::error::Error;
use crate::history::{Histories, HistoryArgs, Index, parse_groups, parse_reads};
use crate::output::{self, Phases, Table};
use crate::progress::Progress;
use resolver_index::{Config, Strategy, Tasks};
use resolver_types::Stage;
use resolver_workloads::input::Maker;
use resolver_workloads::measure::{MeasuredRow, measure_row, measure_row_ticks};
use serde::{Serialize, Serializer};

/// What runs without arguments, and how many batches of it: histories that fit the caches, and one that does not.
const DEFAULT_RUN: [(&str, usize); 4] = [
    ("conflictset-points", 60),
    ("conflictset-ranges", 60),
    ("skiplisttest", 30),
    ("skiplisttest-deep", 1_200),
];

/// The cooperative settings that run beside the sequential one where none are asked for.
const READ_TASKS: [usize; 4] = [2, 16, 64, 16];
const WRITE_GROUPS: [(usize, usize); 4] = [(2, 8), (2, 8), (2, 8), (4, 4)];

/// The sequential run: one task of each kind.
const SEQUENTIAL: Tasks = Tasks { reads: 1, groups: 1, group_size: 1 };

/// Compare the tree's strategies: pipelined, cooperative, and one task of each kind as the sequential base
///
/// All run in alternating rounds through fresh histories, after an excluded warm-up, and only if their decision hashes agree.
/// The ratio is the median of the rounds' ratios over the pipelined strategy; the gain is the sequential run's time over the
/// candidate's. Without any input: a short run over workloads that fit the caches, and one that does not.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    runs: Runs,
    /// Settings of the cooperative strategy, separated by commas: read tasks and write groups, as 16:2x8
    #[arg(long, value_name = "N:AxB", value_delimiter = ',')]
    tasks: Vec<String>,
    /// Print one JSON document instead of tables
    #[arg(long)]
    json: bool,
}

/// What was measured.
#[derive(Serialize)]
pub(crate) struct Document {
    pub(crate) rounds: usize,
    pub(crate) workloads: Vec<Entry>,
}

/// One input.
#[derive(Serialize)]
pub(crate) struct Entry {
    pub(crate) workload: String,
    pub(crate) batches: u64,
    pub(crate) transactions: u64,
    pub(crate) decision_hash: String,
    pub(crate) memory_bytes: u64,
    pub(crate) candidates: Vec<Candidate>,
}

/// One strategy with its settings.
#[derive(Serialize)]
pub(crate) struct Candidate {
    pub(crate) strategy: &'static str,
    pub(crate) read_tasks: Option<usize>,
    pub(crate) write_groups: Option<String>,
    pub(crate) seconds: f64,
    /// Over the pipelined strategy's time.
    pub(crate) ratio: f64,
    /// The sequential run's time over this one.
    pub(crate) gain: f64,
    pub(crate) phases: Phases<f64>,
    counters: Counters,
}

impl Candidate {
    /// The strategy with its settings: read tasks, and write groups.
    pub(crate) fn name(&self) -> String {
        match (self.read_tasks, &self.write_groups) {
            (Some(reads), Some(groups)) => format!("{} {reads}:{groups}", self.strategy),
            _ => self.strategy.to_owned(),
        }
    }
}

struct Counters(Vec<(&'static str, u64)>);

impl Serialize for Counters {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().copied())
    }
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Error> {
    let tasks = if args.tasks.is_empty() {
        default_tasks()
    } else {
        args.tasks.iter().map(|text| parse_tasks(text)).collect::<Result<Vec<Tasks>, Error>>()?
    };
    let document = compare(&args.runs, &tasks)?;
    if args.json {
        output::print_json(&document)?;
    } else {
        for entry in &document.workloads {
            entry.print()?;
        }
    }
    Ok(Outcome::Fine)
}

/// The cooperative settings where none are asked for.
pub(crate) fn default_tasks() -> Vec<Tasks> {
    let settings = READ_TASKS.into_iter().zip(WRITE_GROUPS);
    settings.map(|(reads, (groups, group_size))| Tasks { reads, groups, group_size }).collect()
}

/// Measures both strategies, the cooperative one with these settings and sequentially; without inputs on the default ones.
pub(crate) fn compare(runs: &Runs, tasks: &[Tasks]) -> Result<Document, Error> {
    let strategies: Vec<Strategy> = [Strategy::Pipelined, Strategy::Cooperative(SEQUENTIAL)]
        .into_iter()
        .chain(tasks.iter().copied().map(Strategy::Cooperative))
        .collect();
    let plain = HistoryArgs::default().histories()?;
    let histories: Vec<Histories> = strategies
        .iter()
        .map(|&strategy| Histories { tree: Config { strategy, ..plain.tree }, ..plain })
        .collect();
    let makers: Vec<_> = histories.iter().map(|histories| || histories.make(Index::Tree)).collect();
    let makers: Vec<Maker<'_>> = makers.iter().map(|make| make as Maker<'_>).collect();
    let mut workloads = Vec::new();
    let rounds = runs.rounds;
    for (name, source) in bench::sources(runs, None, &DEFAULT_RUN)? {
        let loaded = source.load(&name, runs.batches)?;
        let progress = Progress::new(&name, measure_row_ticks(makers.len(), rounds));
        let measured =
            loaded.with(|source| measure_row(source, &makers, rounds, &mut || progress.advance(1)));
        let measured = measured.map_err(|source| Error::Measure { workload: name.clone(), source })?;
        workloads.push(Entry::new(name, &strategies, measured));
    }
    Ok(Document { rounds, workloads })
}

/// Reads settings like 16:2x8.
fn parse_tasks(text: &str) -> Result<Tasks, Error> {
    let (reads, groups) = text.split_once(':').ok_or_else(|| Error::NoTasks(text.to_owned()))?;
    let (groups, group_size) = parse_groups(groups)?;
    Ok(Tasks { reads: parse_reads(reads)?, groups, group_size }.checked()?)
}

impl Entry {
    fn new(workload: String, strategies: &[Strategy], measured: MeasuredRow) -> Entry {
        let sequential = measured.candidates[1].ratio;
        let memory_bytes = measured.candidates[0].pass.memory_bytes;
        let candidates = strategies.iter().zip(measured.candidates).map(|(strategy, measured)| {
            let (name, tasks) = match strategy {
                Strategy::Pipelined => ("pipelined", None),
                Strategy::Cooperative(tasks) => ("cooperative", Some(tasks)),
            };
            Candidate {
                strategy: name,
                read_tasks: tasks.map(|tasks| tasks.reads),
                write_groups: tasks.map(|tasks| format!("{}x{}", tasks.groups, tasks.group_size)),
                seconds: measured.pass.seconds,
                ratio: measured.ratio,
                gain: sequential / measured.ratio,
                phases: measured.pass.stages.into(),
                counters: Counters(measured.counters),
            }
        });
        Entry {
            workload,
            batches: measured.counts.batches,
            transactions: measured.counts.transactions,
            decision_hash: measured.decision_hash,
            memory_bytes,
            candidates: candidates.collect(),
        }
    }

    /// A row for every candidate.
    pub(crate) fn table(&self) -> Table {
        let shown = ["task_visits", "hints", "parked_writes", "redirected_writes", "frontier_stalls"];
        let header = ["strategy", "whole", "check reads", "apply", "ratio", "gain"];
        let mut table = Table::new(
            &header
                .into_iter()
                .chain(["visits", "hints", "parked", "redirected", "stalls"])
                .collect::<Vec<_>>(),
        );
        for candidate in &self.candidates {
            let phases = candidate.phases.values();
            let mut cells = vec![candidate.name(), output::seconds(candidate.seconds)];
            cells.extend(
                [Stage::CheckReads, Stage::Apply].map(|stage| output::seconds(phases[stage as usize])),
            );
            cells.push(format!("{:.3}x", candidate.ratio));
            cells.push(format!("{:.2}x", candidate.gain));
            let count = |name: &str| candidate.counters.0.iter().find(|(counter, _)| *counter == name);
            cells
                .extend(shown.map(|name| count(name).map_or("-".to_owned(), |(_, count)| count.to_string())));
            table.row(cells);
        }
        table
    }

    fn print(&self) -> Result<(), Error> {
        output::print(format_args!(
            "{}: {} batches, {} transactions, {} of history; decision hash {}\n{}\n",
            self.workload,
            self.batches,
            self.transactions,
            output::bytes(self.memory_bytes),
            self.decision_hash,
            self.table()
        ))
    }
}
