//! `resolver retention`: how many seconds of history the tree and the skip list keep in the same memory.

use crate::Outcome;
use crate::error::Error;
use crate::history::{Histories, Index};
use crate::output::{self, Table, WholeFile};
use crate::progress::Progress;
use resolver_types::ConflictSet;
use resolver_workloads::generators::long_trace::{
    BATCHES_PER_SECOND, FULL_BUDGET_BYTES, FULL_SECONDS, KEY_BYTES, MIXTURES, Mixture,
};
use resolver_workloads::input::{RunError, Unmade};
use resolver_workloads::retention::{self, BatchTimes, Moment, Plan, Retained, TraceShape};
use serde::Serialize;
use std::io::{self, Write};

/// The budget of a run that ends within minutes.
const DEFAULT_BUDGET: u64 = 64 << 20;

/// Measure how much history fits a budget: the tree's, and the skip list's largest fixed window
///
/// Both replay the long trace. The skip list's window is found by trying; the tree reclaims by itself, and what counts is the
/// smallest age of its cutoff from the first reclamation on. Then the tree's decisions are compared with those of a follower, and its
/// history is probed with reads of keys whose last write is known.
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    plan: PlanArgs,
    /// Seed of the trace
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Replay the tree's run so often, and let the least time of each batch count
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = output::parse_positive)]
    replays: usize,
    /// Write a line for every batch of the tree's run: seconds, retained seconds, bytes, microseconds
    #[arg(long, value_name = "FILE")]
    out: Option<String>,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

/// Which budget, and which trace.
#[derive(clap::Args)]
pub(crate) struct PlanArgs {
    /// The budget: bytes, or a number of KiB, MiB or GiB, from 64MiB on [default: 64MiB]
    #[arg(long, value_name = "SIZE")]
    budget: Option<String>,
    /// Seconds of the long trace [default: in proportion to the budget, 5,400 for 6GiB]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..))]
    seconds: Option<u64>,
    /// The published run: 6GiB and 5,400 seconds
    #[arg(long, conflicts_with_all = ["budget", "seconds"])]
    full: bool,
    /// The length of the long trace's keys: 16, 32 or 64 bytes
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = parse_key_bytes)]
    key_bytes: usize,
    #[arg(long, value_name = "NAME", default_value = "mixed", value_parser = parse_mixture, help = mixtures_help())]
    mixture: Mixture,
}

impl PlanArgs {
    /// The trace with that seed.
    pub(crate) fn plan(&self, seed: u64) -> Result<Plan, Error> {
        let budget_bytes = match &self.budget {
            Some(size) => output::parse_size(size).ok_or_else(|| Error::NoSize(size.clone()))?,
            None if self.full => FULL_BUDGET_BYTES,
            None => DEFAULT_BUDGET,
        };
        let in_proportion =
            u128::from(FULL_SECONDS) * u128::from(budget_bytes) / u128::from(FULL_BUDGET_BYTES);
        let seconds = self.seconds.unwrap_or((in_proportion as u64).max(1));
        Ok(Plan {
            budget_bytes,
            batches: seconds * BATCHES_PER_SECOND,
            traffic: TraceShape { key_bytes: self.key_bytes, mixture: self.mixture },
            seed,
        })
    }
}

#[derive(Serialize)]
pub(crate) struct Document {
    pub(crate) ratio: f64,
    pub(crate) budget_bytes: u64,
    pub(crate) tree_seconds: f64,
    pub(crate) skiplist_seconds: f64,
    pub(crate) tree_peak_bytes: u64,
    pub(crate) skiplist_peak_bytes: u64,
    pub(crate) verdicts_equal: bool,
    pub(crate) decisions: u64,
    pub(crate) decisions_compared: u64,
    pub(crate) mismatches: u64,
    pub(crate) probes: u64,
    pub(crate) probe_conflicts: u64,
    pub(crate) probe_failures: u64,
    pub(crate) deepest_probe_seconds: f64,
    pub(crate) tree_process_bytes: Option<u64>,
    pub(crate) skiplist_process_bytes: Option<u64>,
    pub(crate) tree_reclaims_from_seconds: f64,
    pub(crate) tree_seconds_change: Option<f64>,
    pub(crate) tree_memory_change: f64,
    /// Under reclamation, of each batch the least of all replays.
    pub(crate) tree_batch_times: Option<BatchTimes>,
    pub(crate) replays: usize,
    pub(crate) skiplist_windows_tried: Vec<(f64, bool)>,
    pub(crate) trace_seconds: u64,
    pub(crate) key_bytes: usize,
    pub(crate) mixture: &'static str,
    pub(crate) seed: u64,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Error> {
    let plan = args.plan.plan(args.seed)?;
    let replayed = replay(&plan, args.replays)?;
    if let Some(name) = &args.out {
        write_moments(name, &replayed.moments)
            .map_err(|source| Error::Write { file: name.clone(), source })?;
    }
    let document = hold_against_skip_list(&plan, &replayed)?;
    if args.json {
        output::print_json(&document)?;
    } else {
        document.print()?;
    }
    Ok(if document.verdicts_equal { Outcome::Fine } else { Outcome::Failed })
}

/// The tree's replays under a budget.
pub(crate) struct Replayed {
    pub(crate) retained: Retained,
    pub(crate) moments: Vec<Moment>,
    replays: usize,
}

fn run_error(source: RunError) -> Error {
    Error::Run { file: "long-trace".to_owned(), source }
}

fn make_tree(plan: &Plan) -> Result<Box<dyn ConflictSet>, Unmade> {
    Histories::under_budget(plan.budget_bytes).make(Index::Tree)
}

/// Replays the trace through the tree, as often as asked.
pub(crate) fn replay(plan: &Plan, replays: usize) -> Result<Replayed, Error> {
    let progress = Progress::new("the tree", plan.batches * replays as u64);
    let retained = retention::retain(plan, &|| make_tree(plan), replays, &mut || progress.advance(1));
    let (retained, moments) = retained.map_err(run_error)?;
    Ok(Replayed { retained, moments, replays })
}

/// Seeks the skip list's window for the same budget, and compares the tree's decisions.
pub(crate) fn hold_against_skip_list(plan: &Plan, replayed: &Replayed) -> Result<Document, Error> {
    let make_skip_list = || Histories::default().make(Index::SkipList);
    let trace_seconds = plan.batches / BATCHES_PER_SECOND;
    let too_short = || Error::TraceTooShort { seconds: trace_seconds, budget: plan.budget_bytes };
    let retained = &replayed.retained;
    let (tree_seconds, begun) = retained.seconds.zip(retained.begun_seconds).ok_or_else(too_short)?;

    let progress = Progress::new("the skip list's window", 0);
    let calibrated = retention::calibrate(plan, &make_skip_list, &mut || progress.advance(1));
    let calibrated = calibrated.map_err(run_error)?.ok_or_else(too_short)?;
    drop(progress);

    let progress = Progress::new("decisions and probes", plan.batches);
    let checked = retention::check(plan, &|| make_tree(plan), &make_skip_list, &mut || progress.advance(1))
        .map_err(run_error)?;
    drop(progress);
    Ok(Document {
        ratio: tree_seconds / calibrated.seconds,
        budget_bytes: plan.budget_bytes,
        tree_seconds,
        skiplist_seconds: calibrated.seconds,
        tree_peak_bytes: retained.peak_bytes,
        skiplist_peak_bytes: calibrated.peak_bytes,
        verdicts_equal: checked.all_equal(),
        decisions: checked.decisions,
        decisions_compared: checked.compared,
        mismatches: checked.mismatches,
        probes: checked.probes,
        probe_conflicts: checked.probe_conflicts,
        probe_failures: checked.probe_failures,
        deepest_probe_seconds: checked.deepest_probe_seconds,
        tree_process_bytes: retained.process_bytes,
        skiplist_process_bytes: calibrated.process_bytes,
        tree_reclaims_from_seconds: begun,
        tree_seconds_change: retained.retained_change,
        tree_memory_change: retained.memory_change,
        tree_batch_times: BatchTimes::under_reclamation(&replayed.moments),
        replays: replayed.replays,
        skiplist_windows_tried: calibrated.tried,
        trace_seconds,
        key_bytes: plan.traffic.key_bytes,
        mixture: plan.traffic.mixture.name,
        seed: plan.seed,
    })
}

/// Writes a table of all batches, separated by commas.
fn write_moments(name: &str, moments: &[Moment]) -> io::Result<()> {
    let mut out = WholeFile::create(name)?;
    writeln!(out, "seconds,retained_seconds,memory_bytes,batch_microseconds")?;
    for moment in moments {
        let seconds = moment.batch as f64 / BATCHES_PER_SECOND as f64;
        let retained = moment.retained_seconds.map_or(String::new(), |age| age.to_string());
        let micros = moment.time.as_secs_f64() * 1e6;
        writeln!(out, "{seconds},{retained},{},{micros:.1}", moment.memory_bytes)?;
    }
    out.finish()
}

fn parse_key_bytes(text: &str) -> Result<usize, String> {
    let length = text.parse().map_err(|error| format!("{error}"))?;
    KEY_BYTES.contains(&length).then_some(length).ok_or_else(|| "it must be 16, 32 or 64".to_owned())
}

fn parse_mixture(text: &str) -> Result<Mixture, String> {
    Mixture::by_name(text)
        .ok_or_else(|| format!("there are {}", MIXTURES.map(|mixture| mixture.name).join(", ")))
}

fn mixtures_help() -> String {
    format!("What the trace is mixed of: {}", MIXTURES.map(|mixture| mixture.name).join(", "))
}

impl Document {
    pub(crate) fn table(&self) -> Table {
        let mut table = Table::new(&["", "retains", "peak, counted", "peak, process"]);
        for (name, seconds, peak, process) in [
            ("tree", self.tree_seconds, self.tree_peak_bytes, self.tree_process_bytes),
            ("skiplist", self.skiplist_seconds, self.skiplist_peak_bytes, self.skiplist_process_bytes),
        ] {
            let process = process.map_or("-".to_owned(), output::bytes);
            table.row(vec![name.to_owned(), format!("{seconds:.2} s"), output::bytes(peak), process]);
        }
        table
    }

    fn print(&self) -> Result<(), Error> {
        let table = self.table();
        let Document { ratio, trace_seconds, key_bytes, mixture, seed, .. } = self;
        let change =
            self.tree_seconds_change.map_or("-".to_owned(), |change| format!("{:+.2} %", change * 100.0));
        let times = self.tree_batch_times.map_or(String::new(), |times| {
            let us = |micros: f64| output::seconds(micros / 1e6);
            format!(
                "the tree's batches under reclamation, each the least of {} replays: median {}, p99 {}, p99.9 {}, longest {}\n",
                self.replays,
                us(times.median_us),
                us(times.p99_us),
                us(times.p999_us),
                us(times.max_us)
            )
        });
        output::print(format_args!(
            "{} budget, {trace_seconds} s of the long trace, keys of {key_bytes} bytes, mixture {mixture}, seed {seed}\n\
             {table}ratio {ratio:.2}x; the tree reclaims from {:.2} s on; over the last tenth its retained time changes by {change}, \
             its memory by {:+.2} %\n\
             {} of {} decisions compared, following: {} mismatches; {} probes, {} of them conflicts, back to {:.2} s: {} wrong\n{times}",
            output::bytes(self.budget_bytes),
            self.tree_reclaims_from_seconds,
            self.tree_memory_change * 100.0,
            self.decisions_compared,
            self.decisions,
            self.mismatches,
            self.probes,
            self.probe_conflicts,
            self.deepest_probe_seconds,
            self.probe_failures
        ))
    }
}
