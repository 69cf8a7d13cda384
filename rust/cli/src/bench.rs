//! `resolver bench`: conflict sets timed on the same input, one against another.

use crate::Outcome;
use crate::error::Error;
use crate::history::{Histories, HistoryArgs, Index};
use crate::output::{self, Phases, Table};
use crate::progress::Progress;
use crate::{replay, trace};
use resolver_types::{STAGES, Stage};
use resolver_workloads::Workload;
use resolver_workloads::generators::Scale;
use resolver_workloads::input::{self, Input, Maker, Source as _};
use resolver_workloads::measure::{Measured, Pass, measure, measure_ticks};
use resolver_workloads::trace::Trace;
use serde::Serialize;
use std::path::Path;

/// What runs without arguments, and how many batches of it: every kind of input, and short.
pub(crate) const DEFAULT_RUN: [(&str, usize); 3] =
    [("skiplisttest", 80), ("conflictset-points", 150), ("conflictset-ranges", 150)];

/// Measure a conflict set, or one against another, on workloads or captures
///
/// Candidates run in alternating rounds, each pass through a fresh history, after an excluded warm-up, and only if their
/// decision hashes agree. The ratio is the median of the rounds' ratios, index over against; the noise says how far apart the
/// ratios of one candidate against itself lie.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    runs: Runs,
    /// The conflict set to measure: tree, skiplist or model [default: tree, against skiplist]
    #[arg(long)]
    index: Option<String>,
    /// The conflict set to measure it against; without one where --index alone is given
    #[arg(long)]
    against: Option<String>,
    #[command(flatten)]
    history: HistoryArgs,
    /// Seed of the generators instead of each workload's own
    #[arg(long)]
    seed: Option<u64>,
    /// Print what a range costs in each phase, too
    #[arg(long, conflicts_with = "json")]
    phases: bool,
    /// Print one JSON document instead of tables
    #[arg(long)]
    json: bool,
}

/// What is run, how much of it, and how often.
#[derive(clap::Args)]
pub(crate) struct Runs {
    #[arg(value_name = "WORKLOAD | FILE", help = inputs_help())]
    pub(crate) inputs: Vec<String>,
    /// Rounds
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = output::parse_positive)]
    pub(crate) rounds: usize,
    /// The first N batches instead of all; of a workload, its untimed share included
    #[arg(long, value_name = "N", value_parser = output::parse_positive)]
    pub(crate) batches: Option<usize>,
    /// The workloads at another size, above 0 and at most 1: transactions a batch and keys times this
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = parse_scale)]
    pub(crate) scale: Scale,
}

#[derive(Serialize)]
struct Document {
    results: Vec<Entry>,
}

#[derive(Serialize)]
pub(crate) struct Entry {
    pub(crate) workload: String,
    pub(crate) batches: u64,
    pub(crate) transactions: u64,
    pub(crate) read_ranges: u64,
    pub(crate) write_ranges: u64,
    pub(crate) committed: u64,
    pub(crate) conflicts: u64,
    pub(crate) too_old: u64,
    pub(crate) too_old_by_cutoff: u64,
    pub(crate) fallbacks: u64,
    pub(crate) rounds: Vec<f64>,
    pub(crate) ratio: Option<f64>,
    pub(crate) noise: f64,
    pub(crate) phase_ratios: Phases<Option<f64>>,
    pub(crate) decision_hash: String,
    pub(crate) candidates: Vec<Candidate>,
}

#[derive(Serialize)]
pub(crate) struct Candidate {
    pub(crate) name: String,
    pub(crate) seconds: f64,
    pub(crate) phases: Phases<f64>,
    pub(crate) memory_bytes: u64,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Error> {
    let index = args.index.as_deref().map_or(Ok(Index::Tree), Index::parse)?;
    let against = match (&args.index, &args.against) {
        (_, Some(against)) => Some(Index::parse(against)?),
        (Some(_), None) => None,
        (None, None) => Some(Index::SkipList),
    };
    let histories = args.history.histories()?;
    let sources = sources(&args.runs, args.seed, &DEFAULT_RUN)?;
    let results = measure_all(sources, &args.runs, &histories, index, against)?;
    if args.json {
        output::print_json(&Document { results })?;
    } else {
        for entry in &results {
            entry.print()?;
            if args.phases {
                output::print(format_args!("{}\n", entry.phase_table()))?;
            }
        }
    }
    Ok(Outcome::Fine)
}

/// Measures a conflict set, or one against another, on one input after the other.
pub(crate) fn measure_all(
    sources: Vec<(String, Source)>,
    runs: &Runs,
    histories: &Histories,
    index: Index,
    against: Option<Index>,
) -> Result<Vec<Entry>, Error> {
    let make_index = || histories.make(index);
    let make_against = against.map(|against| move || histories.make(against));
    let make_against = make_against.as_ref().map(|make| make as Maker<'_>);
    let names: Vec<&str> = [Some(index), against].into_iter().flatten().map(Index::name).collect();
    let rounds = runs.rounds;

    let mut results = Vec::new();
    for (name, source) in sources {
        let against = match &source {
            Source::Workload(workload) if workload.index_alone() => {
                if index != Index::Tree {
                    return Err(Error::TreeAlone(name));
                }
                None
            }
            _ => make_against,
        };
        let progress = Progress::new(&name, measure_ticks(rounds, against.is_some()));
        let mut tick = || progress.advance(1);
        let loaded = source.load(&name, runs.batches)?;
        let measured = loaded
            .with(|source| measure(source, &make_index, against, rounds, &mut tick))
            .map_err(|source| Error::Measure { workload: name.clone(), source })?;
        results.push(Entry::new(name, &names, measured));
    }
    Ok(results)
}

fn inputs_help() -> String {
    let names = Workload::names().join(", ");
    format!(
        "Workloads ({names}), captures or traces; a name that is a file wins. Without any: a short run over several workloads"
    )
}

pub(crate) fn parse_scale(text: &str) -> Result<Scale, String> {
    let factor = text.parse().map_err(|error| format!("{error}"))?;
    Scale::new(factor).ok_or_else(|| "it must be above 0 and at most 1".to_owned())
}

/// Input that is ready to run.
pub(crate) enum Loaded {
    Memory(Input),
    Stream(Workload),
    Trace(Trace),
}

impl Loaded {
    /// Runs something on it.
    pub(crate) fn with<T>(&self, run: impl FnOnce(&dyn input::Source) -> T) -> T {
        match self {
            Loaded::Memory(input) => run(&input.views()),
            Loaded::Trace(trace) => run(trace),
            Loaded::Stream(workload) => run(workload),
        }
    }
}

/// Where an input comes from.
pub(crate) enum Source {
    File,
    Workload(Workload),
}

/// What to run, under the names as given; without any, the default.
pub(crate) fn sources(
    runs: &Runs,
    seed: Option<u64>,
    default: &[(&str, usize)],
) -> Result<Vec<(String, Source)>, Error> {
    let workload = |name: &str| -> Result<Workload, Error> {
        let workload = Workload::by_name(name, seed);
        let workload = workload.ok_or_else(|| Error::UnknownWorkload(name.to_owned()))?;
        Ok(workload.with_scale(runs.scale))
    };
    if runs.inputs.is_empty() {
        let short = |&(name, batches): &(&str, usize)| {
            let workload = workload(name)?.with_batches(runs.batches.unwrap_or(batches));
            Ok((name.to_owned(), Source::Workload(workload)))
        };
        return default.iter().map(short).collect();
    }
    let source = |name: &String| {
        let source = if Path::new(name).is_file() {
            Source::File
        } else {
            let workload = workload(name)?;
            let batches = runs.batches.unwrap_or(workload.default_batches());
            Source::Workload(workload.with_batches(batches))
        };
        Ok((name.clone(), source))
    };
    runs.inputs.iter().map(source).collect()
}

impl Source {
    pub(crate) fn load(self, name: &str, batches: Option<usize>) -> Result<Loaded, Error> {
        match self {
            Source::File if trace::is_trace(name) => {
                let trace = trace::open(name)?;
                let batches = batches.map_or(u64::MAX, |batches| batches as u64);
                Ok(Loaded::Trace(trace.with_batches(batches)))
            }
            Source::File => {
                let mut recording = replay::read(name)?;
                if let Some(batches) = batches {
                    recording.input.truncate(batches);
                }
                Ok(Loaded::Memory(recording.input))
            }
            Source::Workload(workload) => Ok(Loaded::Stream(workload)),
        }
    }
}

impl Entry {
    fn new(workload: String, names: &[&str], measured: Measured) -> Entry {
        let candidate = |(name, pass): (&&str, Pass)| Candidate {
            name: (*name).to_owned(),
            seconds: pass.seconds,
            phases: pass.stages.into(),
            memory_bytes: pass.memory_bytes,
        };
        Entry {
            workload,
            batches: measured.counts.batches,
            transactions: measured.counts.transactions,
            read_ranges: measured.counts.reads,
            write_ranges: measured.counts.writes,
            committed: measured.counts.committed,
            conflicts: measured.counts.conflicts,
            too_old: measured.counts.too_old,
            too_old_by_cutoff: measured.counts.too_old_by_cutoff,
            fallbacks: measured.counts.fallbacks,
            rounds: measured.rounds,
            ratio: measured.ratio,
            noise: measured.noise,
            phase_ratios: measured.stage_ratios.into(),
            decision_hash: measured.decision_hash,
            candidates: names.iter().zip(measured.candidates).map(candidate).collect(),
        }
    }

    /// The ranges that a stage deals with, as they come in: which, and how many.
    fn ranges_of(&self, stage: Stage) -> (&'static str, u64) {
        match stage {
            Stage::CheckReads => ("reads", self.read_ranges),
            Stage::Combine | Stage::Apply | Stage::Expire => ("writes", self.write_ranges),
            Stage::Sort | Stage::WithinBatch => ("all", self.read_ranges + self.write_ranges),
        }
    }

    /// What each phase costs a range that it deals with.
    pub(crate) fn phase_table(&self) -> Table {
        let names = self.candidates.iter().map(|candidate| candidate.name.as_str());
        let ratio = self.ratio.map(|_| "ratio");
        let mut table =
            Table::new(&["phase", "of", "ranges"].into_iter().chain(names).chain(ratio).collect::<Vec<_>>());
        let ratios = self.phase_ratios.values();
        for stage in STAGES {
            let (which, ranges) = self.ranges_of(stage);
            let mut cells = vec![stage.name().to_owned(), which.to_owned(), ranges.to_string()];
            cells.extend(self.candidates.iter().map(|candidate| {
                format!("{:.1} ns", candidate.phases.values()[stage as usize] * 1e9 / ranges.max(1) as f64)
            }));
            cells.extend(ratio.map(|_| ratio_cell(ratios[stage as usize])));
            table.row(cells);
        }
        table
    }

    fn print(&self) -> Result<(), Error> {
        let Entry { workload, batches, transactions, committed, conflicts, too_old, .. } = self;
        let fallbacks = match self.fallbacks {
            0 => String::new(),
            fallbacks => format!(", {fallbacks} fallbacks"),
        };
        let header = ["", "whole", "a transaction"].into_iter().chain(STAGES.map(|stage| stage.name()));
        let mut table = Table::new(&header.chain(["memory"]).collect::<Vec<_>>());
        for candidate in &self.candidates {
            let mut cells = vec![candidate.name.clone()];
            cells.push(output::seconds(candidate.seconds));
            cells.push(output::seconds(candidate.seconds / (*transactions).max(1) as f64));
            cells.extend(candidate.phases.values().map(output::seconds));
            cells.push(output::bytes(candidate.memory_bytes));
            table.row(cells);
        }
        let noise = self.noise;
        let verdict = match self.ratio {
            Some(ratio) => {
                let mut cells = vec!["ratio".to_owned(), format!("{ratio:.3}x"), String::new()];
                cells.extend(self.phase_ratios.values().map(ratio_cell));
                cells.push(String::new());
                table.row(cells);
                format!("{ratio:.3}x the time of {}, noise {noise:.3}", self.candidates[1].name)
            }
            None => format!("noise {noise:.3}"),
        };
        output::print(format_args!(
            "{workload}: {batches} batches, {transactions} transactions: {committed} committed, {conflicts} \
             conflicts, {too_old} too old ({} by the cutoff alone){fallbacks}; decision hash {}\n{table}{} rounds: {verdict}\n\n",
            self.too_old_by_cutoff,
            self.decision_hash,
            self.rounds.len()
        ))
    }
}

fn ratio_cell(ratio: Option<f64>) -> String {
    ratio.map_or("-".to_owned(), |ratio| format!("{ratio:.3}x"))
}
