//! `resolver fdb-sim`: seeds of FoundationDB's own simulation, in a built fdbserver.

use crate::Outcome;
use crate::error::Error;
use crate::output::{self, Table};
use crate::progress::Progress;
use crate::simulate::parse_seeds;
use resolver_simulation::{FdbSeed, Fdbserver};
use serde::Serialize;
use std::ops::Range;
use std::path::PathBuf;
use std::time::Duration;

/// Run FoundationDB's own simulation in a built fdbserver, each seed twice, and read what it says
///
/// Builds nothing. A seed fails if fdbserver does, if its trace has an error, or if both runs do not end with the same unseed.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Test specifications, such as those in simulation/fdb
    #[arg(required = true)]
    specs: Vec<PathBuf>,
    /// The fdbserver to run
    #[arg(long, value_name = "FILE")]
    fdbserver: PathBuf,
    /// The seeds, from the first to before the last: 0..3
    #[arg(long, value_parser = parse_seeds)]
    seeds: Range<u64>,
    /// Where failed runs are kept; must not hold the same ones already
    #[arg(long, value_name = "FOLDER")]
    out: PathBuf,
    /// Without faults that fdbserver injects into its own code
    #[arg(long)]
    no_buggify: bool,
    /// Seconds after which a run is ended
    #[arg(long, value_name = "SECONDS", default_value_t = 3600)]
    timeout: u64,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
    /// More arguments for fdbserver
    #[arg(last = true)]
    extra: Vec<String>,
}

#[derive(Serialize)]
struct Document {
    failed: usize,
    seeds: Vec<SeedDocument>,
}

#[derive(Serialize)]
struct SeedDocument {
    spec: String,
    seed: u64,
    unseed: Option<i64>,
    sim_seconds: f64,
    warnings: u64,
    problem: Option<String>,
    folder: Option<PathBuf>,
}

impl From<FdbSeed> for SeedDocument {
    fn from(seed: FdbSeed) -> SeedDocument {
        SeedDocument {
            spec: seed.spec,
            seed: seed.seed,
            unseed: seed.first.unseed,
            sim_seconds: seed.first.sim_seconds,
            warnings: seed.first.warnings,
            problem: seed.problem.map(|problem| problem.to_string()),
            folder: seed.folder,
        }
    }
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Error> {
    let fdbserver = Fdbserver {
        program: args.fdbserver.clone(),
        out: args.out.clone(),
        buggify: !args.no_buggify,
        timeout: Duration::from_secs(args.timeout),
        extra: args.extra.clone(),
    };
    let count = args.specs.len() as u64 * (args.seeds.end - args.seeds.start);
    let progress = Progress::new("seeds", count);
    let mut document = Document { failed: 0, seeds: Vec::new() };
    for spec in &args.specs {
        for seed in args.seeds.clone() {
            let result = SeedDocument::from(fdbserver.run_seed(spec, seed)?);
            document.failed += usize::from(result.problem.is_some());
            document.seeds.push(result);
            progress.advance(1);
        }
    }
    drop(progress);
    if args.json {
        output::print_json(&document)?;
    } else {
        output::print(document.table())?;
    }
    Ok(if document.failed == 0 { Outcome::Fine } else { Outcome::Failed })
}

impl Document {
    fn table(&self) -> Table {
        let mut table =
            Table::new(&["spec", "seed", "unseed", "simulated", "warnings", "problem", "kept in"]);
        for seed in &self.seeds {
            table.row(vec![
                seed.spec.clone(),
                seed.seed.to_string(),
                seed.unseed.map_or("-".to_owned(), |unseed| unseed.to_string()),
                output::seconds(seed.sim_seconds),
                seed.warnings.to_string(),
                seed.problem.clone().unwrap_or("none".to_owned()),
                seed.folder.as_ref().map_or("-".to_owned(), |folder| folder.display().to_string()),
            ]);
        }
        table
    }
}
