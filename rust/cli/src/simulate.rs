//! `resolver simulate`: seeds of the simulated commit path.

use crate::Outcome;
use crate::error::Error;
use crate::history::StrategyArgs;
use crate::output;
use crate::progress::Progress;
#[cfg(feature = "planted-bugs")]
use resolver_simulation::PlantedBug;
use resolver_simulation::{Counters, Options, Run, Violation, check_seed, schedule, shrink, write_history};
use serde::Serialize;
use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufWriter;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Instant;

/// So many failing seeds get a smaller schedule; the others are only named.
const SHRUNK_SEEDS: usize = 3;

/// How many runs may be spent on making one schedule smaller.
const SHRINKING_EFFORT: usize = 150;

/// Run seeds of a simulated commit path around resolvers, with faults, and check what clients see
///
/// Each seed is run twice, and must do the same twice.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The seeds, from the first to before the last: 0..100
    #[arg(long, default_value = "0..20", value_parser = parse_seeds)]
    seeds: Range<u64>,
    /// Only these faults of the schedule strike: numbers separated by commas, or none
    #[arg(long, value_parser = parse_faults)]
    faults: Option<Faults>,
    #[command(flatten)]
    strategy: StrategyArgs,
    /// Write the history of the last seed to this file, for check-history
    #[arg(long, value_name = "FILE")]
    history: Option<PathBuf>,
    /// Plant a mistake, to see that it is found
    #[cfg(feature = "planted-bugs")]
    #[arg(long, value_name = "NAME", value_parser = parse_bug)]
    planted_bug: Option<PlantedBug>,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

/// Places in a schedule of faults.
#[derive(Clone, Debug)]
struct Faults(Vec<usize>);

/// Reads a half-open range of seeds.
pub(crate) fn parse_seeds(text: &str) -> Result<Range<u64>, String> {
    let (first, last) = text.split_once("..").ok_or("it must be like 0..100")?;
    let number = |text: &str| text.parse::<u64>().map_err(|error| format!("{text:?}: {error}"));
    let seeds = number(first)?..number(last)?;
    if seeds.is_empty() { Err("there is no seed in it".to_owned()) } else { Ok(seeds) }
}

fn parse_faults(text: &str) -> Result<Faults, String> {
    if text == "none" {
        return Ok(Faults(Vec::new()));
    }
    let number = |text: &str| text.parse().map_err(|error| format!("{text:?}: {error}"));
    text.split(',').map(number).collect::<Result<_, _>>().map(Faults)
}

#[cfg(feature = "planted-bugs")]
fn parse_bug(text: &str) -> Result<PlantedBug, String> {
    let names: Vec<&str> = PlantedBug::ALL.iter().map(|bug| bug.name()).collect();
    let found = PlantedBug::ALL.iter().find(|bug| bug.name() == text);
    found.copied().ok_or_else(|| format!("there are {}", names.join(", ")))
}

#[derive(Serialize)]
struct Document {
    seeds: u64,
    failed: Vec<u64>,
    faults: BTreeMap<&'static str, u64>,
    trace_hashes: BTreeMap<u64, String>,
    committed: u64,
    read_only: u64,
    without_effect: u64,
    reads: u64,
    events: u64,
    seconds: f64,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Error> {
    let start = Instant::now();
    let options = args.options()?;
    let seeds = args.seeds.end - args.seeds.start;
    let progress = Progress::new("seeds", seeds);
    let mut counters = Counters::default();
    let mut document = Document {
        seeds,
        failed: Vec::new(),
        faults: BTreeMap::new(),
        trace_hashes: BTreeMap::new(),
        committed: 0,
        read_only: 0,
        without_effect: 0,
        reads: 0,
        events: 0,
        seconds: 0.0,
    };
    for seed in args.seeds.clone() {
        let run = check_seed(seed, &options);
        counters.merge(&run.counters);
        document.add(seed, &run);
        if let Some(violation) = &run.violation {
            args.explain(seed, &options, violation, document.failed.len() <= SHRUNK_SEEDS);
        }
        if let Some(path) = args.history.as_ref().filter(|_| seed + 1 == args.seeds.end) {
            write_history(&run.history, BufWriter::new(File::create(path)?))?;
        }
        progress.advance(1);
    }
    drop(progress);
    document.faults = counters.iter().collect();
    document.seconds = start.elapsed().as_secs_f64();
    if args.json {
        output::print_json(&document)?;
    } else {
        document.print()?;
    }
    Ok(if document.failed.is_empty() { Outcome::Fine } else { Outcome::Failed })
}

impl Args {
    fn options(&self) -> Result<Options, Error> {
        let mut options = Options::default().with_strategy(self.strategy.strategy()?);
        if let Some(Faults(faults)) = &self.faults {
            options = options.with_faults(faults.clone());
        }
        #[cfg(feature = "planted-bugs")]
        if let Some(bug) = self.planted_bug {
            options = options.with_bug(bug);
        }
        Ok(options)
    }

    /// What repeats a seed with these faults.
    fn command(&self, seed: u64, faults: Option<&[usize]>) -> String {
        let mut command = format!("resolver simulate --seeds {seed}..{}", seed + 1);
        if let Some(faults) = faults {
            let numbers: Vec<String> = faults.iter().map(usize::to_string).collect();
            let list = if numbers.is_empty() { "none".to_owned() } else { numbers.join(",") };
            command += &format!(" --faults {list}");
        }
        command += &self.strategy.text();
        #[cfg(feature = "planted-bugs")]
        if let Some(bug) = self.planted_bug {
            command += &format!(" --planted-bug {}", bug.name());
        }
        command
    }

    /// Says what a seed shows and how to see it again, with as few faults as are found to do.
    fn explain(&self, seed: u64, options: &Options, violation: &Violation, shrinks: bool) {
        output::note(format_args!("seed {seed} failed: {violation}"));
        if !shrinks {
            let given = self.faults.as_ref().map(|Faults(faults)| &**faults);
            output::note(format_args!("to run it again: {}", self.command(seed, given)));
            return;
        }
        let shrunk = shrink(seed, options, violation, SHRINKING_EFFORT);
        let schedule = schedule(seed);
        output::note(format_args!(
            "to run it again with {} of {} faults: {}\nthen: {}",
            shrunk.faults.len(),
            schedule.len(),
            self.command(seed, Some(&shrunk.faults)),
            shrunk.violation
        ));
        for &place in &shrunk.faults {
            let Some(fault) = schedule.get(place) else { continue };
            output::note(format_args!(
                "  fault {place}: {} from {} us on, {}",
                fault.kind.name(),
                fault.at,
                fault.amount
            ));
        }
    }
}

impl Document {
    fn add(&mut self, seed: u64, run: &Run) {
        if run.violation.is_some() {
            self.failed.push(seed);
        }
        self.trace_hashes.insert(seed, run.trace_hash.clone());
        self.committed += run.checked.committed;
        self.read_only += run.checked.read_only;
        self.without_effect += run.checked.without_effect;
        self.reads += run.checked.reads;
        self.events += run.events;
    }

    fn print(&self) -> Result<(), Error> {
        let mut table = output::Table::new(&["fault or effect", "count"]);
        for (name, count) in &self.faults {
            table.row(vec![(*name).to_owned(), count.to_string()]);
        }
        output::print(format_args!(
            "{} seeds, each run twice: {} failed, in {}\n\
             {} transactions committed, {} only read, {} without effect; {} reads explained; {} events\n\n{table}",
            self.seeds,
            self.failed.len(),
            output::seconds(self.seconds),
            self.committed,
            self.read_only,
            self.without_effect,
            self.reads,
            self.events,
        ))
    }
}
