//! `resolver report`: the measurements of the other commands, on one page with pictures.

mod page;
mod plot;

use crate::Outcome;
use crate::bench::{self, DEFAULT_RUN, Entry, Runs};
use crate::error::Error;
use crate::history::{HistoryArgs, Index};
use crate::output::{self, WholeFile};
use crate::retention::{self, PlanArgs};
use crate::{compare_strategies, doctor, latency};
use resolver_workloads::capture::captures_in;
use resolver_workloads::captures_dir;
use resolver_workloads::generators::long_trace::BATCHES_PER_SECOND;
use resolver_workloads::retention::{BatchTimes, Moment};
use serde::Serialize;
use std::io::Write;

/// What runs beside bench's own default: where keys go on alike for long, and where they differ at once.
const MORE_RUNS: [(&str, usize); 3] =
    [("skiplisttest-128-prefix", 12), ("skiplisttest-128-suffix", 12), ("integrated-ranges", 150)];

/// The recorded captures that run as well, where they are: small batches over small histories.
const CAPTURES: &str = "driver-";

/// The trace's seed, and that of the chase.
const SEED: u64 = 1;

/// At most so many points of a line, and bars of the histogram.
const POINTS: usize = 400;
const BINS: usize = 80;

/// Write a page with pictures of what bench, compare-strategies, retention, latency and doctor measure
///
/// The page is one file that needs nothing else: ratios, phases, strategies, retained history and memory over time, batch
/// times and the latency of memory, each with its table. It takes the place of the file under that name once it is
/// whole. Minutes by default; a quick look: --batches 9 --rounds 2 --budget 8MiB --replays 1 --largest 16MiB.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The page
    #[arg(long, value_name = "FILE.html")]
    out: String,
    #[command(flatten)]
    runs: Runs,
    #[command(flatten)]
    plan: PlanArgs,
    /// Replay the tree's run under the budget so often, and let the least time of each batch count
    #[arg(long, value_name = "N", default_value_t = 3, value_parser = output::parse_positive)]
    replays: usize,
    /// The largest memory of the latency curve, from 16KiB to 64GiB
    #[arg(long, value_name = "SIZE", default_value = "512MiB")]
    largest: String,
    /// Print what the page's tables hold as one JSON document
    #[arg(long)]
    json: bool,
}

/// Everything on the page.
#[derive(Serialize)]
struct Document {
    /// What this command was built from; nothing where that was no repository.
    commit: Option<&'static str>,
    version: &'static str,
    /// Whether it was built with them: such times mean little.
    debug_assertions: bool,
    machine: doctor::Document,
    settings: Settings,
    workloads: Vec<Entry>,
    strategies: compare_strategies::Document,
    replay: Replay,
    /// Nothing where the trace was too short to fill the budget.
    retention: Option<retention::Document>,
    latency: latency::Document,
}

#[derive(Serialize)]
struct Settings {
    rounds: usize,
    batches: Option<usize>,
    scale: f64,
    budget_bytes: u64,
    trace_seconds: u64,
    key_bytes: usize,
    mixture: &'static str,
    seed: u64,
    replays: usize,
}

/// The tree's replay of the long trace under the budget.
#[derive(Serialize)]
struct Replay {
    peak_bytes: u64,
    process_bytes: Option<u64>,
    reclaims_from_seconds: Option<f64>,
    points: Vec<Point>,
    /// Since the first reclamation; nothing without one.
    batch_times: Option<BatchTimes>,
    histogram: Vec<HistogramBin>,
}

/// The tree after one batch of the replay.
#[derive(Clone, Copy, Serialize)]
struct Point {
    seconds: f64,
    /// Nothing before the first reclamation: all is held.
    retained_seconds: Option<f64>,
    memory_bytes: u64,
}

/// How many batches took from so long to so long, in microseconds.
#[derive(Clone, Copy, Serialize)]
struct HistogramBin {
    from_us: f64,
    to_us: f64,
    batches: u64,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Error> {
    let write_error = |source| Error::Write { file: args.out.clone(), source };
    // Whatever is wrong with the arguments shows before minutes of measuring.
    WholeFile::create(&args.out).map(drop).map_err(write_error)?;
    let plan = args.plan.plan(SEED)?;
    let largest = latency::parse_largest(&args.largest)?;
    let sources = sources(&args.runs)?;

    let machine = doctor::Document::here();
    let histories = HistoryArgs::default().histories()?;
    // First of all, since the process's memory is looked at.
    let replayed = retention::replay(&plan, args.replays)?;
    let retention = match retention::hold_against_skip_list(&plan, &replayed) {
        Ok(retention) => Some(retention),
        Err(Error::TraceTooShort { .. }) => None,
        Err(error) => return Err(error),
    };
    let workloads = bench::measure_all(sources, &args.runs, &histories, Index::Tree, Some(Index::SkipList))?;
    let strategies = compare_strategies::compare(&args.runs, &compare_strategies::default_tasks())?;
    let batch_times = BatchTimes::under_reclamation(&replayed.moments);
    let document = Document {
        commit: Some(env!("RESOLVER_COMMIT")).filter(|commit| !commit.is_empty()),
        version: env!("CARGO_PKG_VERSION"),
        debug_assertions: cfg!(debug_assertions),
        machine,
        settings: Settings {
            rounds: args.runs.rounds,
            batches: args.runs.batches,
            scale: args.runs.scale.factor(),
            budget_bytes: plan.budget_bytes,
            trace_seconds: plan.batches / BATCHES_PER_SECOND,
            key_bytes: plan.traffic.key_bytes,
            mixture: plan.traffic.mixture.name,
            seed: plan.seed,
            replays: args.replays,
        },
        workloads,
        strategies,
        replay: Replay {
            peak_bytes: replayed.retained.peak_bytes,
            process_bytes: replayed.retained.process_bytes,
            reclaims_from_seconds: replayed.retained.begun_seconds,
            points: points(&replayed.moments),
            histogram: batch_times.map_or(Vec::new(), |times| histogram(&replayed.moments, &times)),
            batch_times,
        },
        retention,
        latency: latency::measure(largest, SEED)?,
    };
    let mut out = WholeFile::create(&args.out).map_err(write_error)?;
    let page = page::page(&document).into_string();
    out.write_all(page.as_bytes()).and_then(|()| out.finish()).map_err(write_error)?;
    if args.json {
        output::print_json(&document)?;
    } else {
        output::print(format_args!("{} is written\n", args.out))?;
    }
    let equal = document.retention.as_ref().is_none_or(|retention| retention.verdicts_equal);
    Ok(if equal { Outcome::Fine } else { Outcome::Failed })
}

/// What bench is to run: what was asked for, or its default and more.
fn sources(runs: &Runs) -> Result<Vec<(String, bench::Source)>, Error> {
    let default = [&DEFAULT_RUN[..], &MORE_RUNS].concat();
    let mut sources = bench::sources(runs, None, &default)?;
    if runs.inputs.is_empty() {
        // Without the repository there are none.
        let captures = captures_in(&captures_dir()).unwrap_or_default();
        let names = captures.into_iter().filter_map(|path| path.into_os_string().into_string().ok());
        let chosen = names.filter(|name| label(name).starts_with(CAPTURES));
        sources.extend(chosen.map(|name| (name, bench::Source::File)));
    }
    Ok(sources)
}

/// A workload's name, or a file's without its folder and ending.
fn label(name: &str) -> &str {
    let file = name.rsplit(['/', '\\']).next().unwrap_or(name);
    [".fdbcap.zst", ".fdbcap"].into_iter().find_map(|ending| file.strip_suffix(ending)).unwrap_or(file)
}

/// Every so many batches, a point; the last batch is one.
fn points(moments: &[Moment]) -> Vec<Point> {
    let every = moments.len().div_ceil(POINTS).max(1);
    let chosen = moments.iter().rev().step_by(every).map(|moment| Point {
        seconds: moment.batch as f64 / BATCHES_PER_SECOND as f64,
        retained_seconds: moment.retained_seconds,
        memory_bytes: moment.memory_bytes,
    });
    let mut points: Vec<Point> = chosen.collect();
    points.reverse();
    points
}

/// Sorts the times under reclamation into bins of one width, from 0 to somewhat beyond the longest and three times
/// the median.
fn histogram(moments: &[Moment], times: &BatchTimes) -> Vec<HistogramBin> {
    let width = times.max_us.max(3.0 * times.median_us) * 1.05 / BINS as f64;
    let mut bins: Vec<HistogramBin> = (0..BINS)
        .map(|bin| HistogramBin { from_us: bin as f64 * width, to_us: (bin + 1) as f64 * width, batches: 0 })
        .collect();
    for moment in moments.iter().filter(|moment| moment.retained_seconds.is_some()) {
        let bin = moment.time.as_secs_f64() * 1e6 / width;
        bins[(bin as usize).min(BINS - 1)].batches += 1;
    }
    bins
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn moment(batch: u64, micros: u64, retained_seconds: Option<f64>) -> Moment {
        Moment { batch, retained_seconds, memory_bytes: batch, time: Duration::from_micros(micros) }
    }

    #[test]
    fn a_histogram_holds_every_batch_under_reclamation() {
        let mut moments = vec![moment(0, 9_000, None)];
        moments.extend((1..=1_000).map(|batch| moment(batch, batch, Some(1.0))));
        let times = BatchTimes::under_reclamation(&moments).expect("there was reclamation");
        let bins = histogram(&moments, &times);
        assert_eq!(bins.iter().map(|bin| bin.batches).sum::<u64>(), 1_000);
        assert!(bins.windows(2).all(|pair| pair[0].to_us == pair[1].from_us));
        let last = bins.iter().rfind(|bin| bin.batches > 0).expect("a bin with batches");
        assert!(last.from_us <= 1_000.0 && 1_000.0 < last.to_us);
    }

    #[test]
    fn points_are_few_and_end_with_the_last_batch() {
        for batches in [0, 1, 399, 400, 401, 12_345] {
            let moments: Vec<Moment> = (0..batches).map(|batch| moment(batch, 1, None)).collect();
            let points = points(&moments);
            assert!(points.len() <= POINTS && points.len() * 2 >= moments.len().min(POINTS));
            assert_eq!(points.last().map(|point| point.memory_bytes), batches.checked_sub(1));
        }
    }

    #[test]
    fn a_capture_is_called_by_its_name() {
        assert_eq!(label("a/b/driver-tiny.fdbcap.zst"), "driver-tiny");
        assert_eq!(label("skiplisttest"), "skiplisttest");
    }
}
