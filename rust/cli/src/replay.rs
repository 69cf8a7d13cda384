//! `resolver replay`: recorded batches through a conflict set, every decision compared with the recorded one.

use crate::Outcome;
use crate::error::Error;
use crate::history::{Histories, HistoryArgs, Index};
use crate::output::{self, Phases, Table};
use crate::progress::Progress;
use crate::trace;
use resolver_types::{STAGES, Version};
use resolver_workloads::capture::CaptureReader;
use resolver_workloads::input::{Recording, Source};
use resolver_workloads::measure::Pass;
use resolver_workloads::replay::{Mismatch, Replay, Replayed};
use serde::Serialize;
use std::path::Path;

/// How many mismatches are printed; all are counted.
const PRINTED_MISMATCHES: usize = 20;

/// Replay captures and compare every verdict and report with the recorded one
///
/// Where the budget does not hold what the recorded history held, transactions become too old by the cutoff alone. They are counted
/// apart and are no mismatches; from there on, the decisions are compared with those of a skip list that follows the cutoff.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Captures, plain or compressed with zstd, or traces
    #[arg(required = true)]
    files: Vec<String>,
    /// The conflict set: tree, skiplist or model
    #[arg(long, default_value = "tree")]
    index: String,
    #[command(flatten)]
    history: HistoryArgs,
    /// Check the whole tree after every batch of the replay
    #[arg(long)]
    validate: bool,
    /// Timed passes over each file, each through a fresh history; the median counts
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = output::parse_positive)]
    rounds: usize,
    /// Print one JSON document instead of tables
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Document {
    files: Vec<File>,
}

#[derive(Serialize)]
struct File {
    file: String,
    batches: u64,
    transactions: u64,
    committed: u64,
    conflicts: u64,
    too_old: u64,
    too_old_by_cutoff: u64,
    fallbacks: u64,
    mismatches: u64,
    report_mismatches: u64,
    truncated: bool,
    seconds: f64,
    phases: Phases<f64>,
    memory_bytes: u64,
    peak_memory_bytes: u64,
    cutoff: Option<i64>,
    decision_hash: String,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Error> {
    let index = Index::parse(&args.index)?;
    let histories = args.history.histories()?;
    let mut files = Vec::new();
    let mut printed = 0;
    for name in &args.files {
        let (file, mismatches) = replay_file(name, index, &histories, args)?;
        for mismatch in mismatches.iter().take(PRINTED_MISMATCHES - printed) {
            output::note(format_args!("{name}: {mismatch}"));
            printed += 1;
        }
        files.push(file);
    }
    let differing: u64 = files.iter().map(|file| file.mismatches + file.report_mismatches).sum();
    if differing > printed as u64 {
        output::note(format_args!("and {} mismatches more", differing - printed as u64));
    }
    if args.json {
        output::print_json(&Document { files })?;
    } else {
        print_tables(&files)?;
    }
    Ok(if differing == 0 { Outcome::Fine } else { Outcome::Failed })
}

/// Reads a capture, with a warning where it is cut.
pub(crate) fn read(name: &str) -> Result<Recording, Error> {
    let recording = CaptureReader::open(Path::new(name))
        .and_then(Recording::read)
        .map_err(|source| Error::Capture { file: name.to_owned(), source })?;
    if recording.truncated {
        output::note(format_args!("{name}: warning: it ends inside a record; what is whole counts"));
    }
    Ok(recording)
}

fn replay_file(
    name: &str,
    index: Index,
    histories: &Histories,
    args: &Args,
) -> Result<(File, Vec<Mismatch>), Error> {
    let (recording, trace);
    let recorded;
    let (source, truncated): (&dyn Source, bool) = if trace::is_trace(name) {
        trace = trace::open(name)?;
        (&trace, trace.truncated())
    } else {
        recording = read(name)?;
        recorded = recording.views();
        (&recorded, recording.truncated)
    };
    let ended = |source| Error::Run { file: name.to_owned(), source };
    let batches = source.batches();
    let progress = Progress::new(name, batches * (args.rounds as u64 + 2));
    let make = || histories.make(index);
    let reference = || histories.make(Index::SkipList);

    let replay = Replay { make: &make, reference: &reference, validate: args.validate };
    let replayed = replay.run(source, &mut || progress.advance(1)).map_err(ended)?;
    let mut timed = Vec::new();
    for _ in 0..args.rounds {
        timed.push(Pass::run(source, &make, false).map_err(ended)?);
        progress.advance(batches);
    }
    let staged = Pass::run(source, &make, true).map_err(ended)?;

    let Replayed { counts, mismatches, report_mismatches, shown, .. } = replayed;
    let file = File {
        file: name.to_owned(),
        batches: counts.batches,
        transactions: counts.transactions,
        committed: counts.committed,
        conflicts: counts.conflicts,
        too_old: counts.too_old,
        too_old_by_cutoff: counts.too_old_by_cutoff,
        fallbacks: counts.fallbacks,
        mismatches,
        report_mismatches,
        truncated,
        seconds: Pass::median(&timed).seconds,
        phases: staged.stages.into(),
        memory_bytes: replayed.memory_bytes,
        peak_memory_bytes: replayed.peak_memory_bytes,
        cutoff: replayed.cutoff.map(|Version(cutoff)| cutoff),
        decision_hash: replayed.decision_hash,
    };
    Ok((file, shown))
}

fn print_tables(files: &[File]) -> Result<(), Error> {
    let mut decisions = Table::new(&[
        "file",
        "batches",
        "transactions",
        "committed",
        "conflicts",
        "too old",
        "by cutoff",
        "fallbacks",
        "mismatches",
        "report mismatches",
        "decision hash",
    ]);
    let header = ["file", "whole", "a transaction"].into_iter().chain(STAGES.map(|stage| stage.name()));
    let header: Vec<&str> = header.chain(["memory", "peak"]).collect();
    let mut times = Table::new(&header);
    let folder = common_folder(files);
    for file in files {
        let name = file.file[folder..].to_owned();
        let mut cells = vec![name.clone()];
        let counts = [
            file.batches,
            file.transactions,
            file.committed,
            file.conflicts,
            file.too_old,
            file.too_old_by_cutoff,
            file.fallbacks,
            file.mismatches,
            file.report_mismatches,
        ];
        cells.extend(counts.map(|count| count.to_string()));
        cells.push(file.decision_hash.clone());
        decisions.row(cells);

        let mut cells = vec![name, output::seconds(file.seconds)];
        cells.push(output::seconds(file.seconds / file.transactions.max(1) as f64));
        cells.extend(file.phases.values().map(output::seconds));
        cells.extend([file.memory_bytes, file.peak_memory_bytes].map(output::bytes));
        times.row(cells);
    }
    let mismatches: u64 = files.iter().map(|file| file.mismatches).sum();
    let reports: u64 = files.iter().map(|file| file.report_mismatches).sum();
    let transactions: u64 = files.iter().map(|file| file.transactions).sum();
    output::print(format_args!(
        "{decisions}\n{times}\n{transactions} transactions, {mismatches} mismatches, {reports} report mismatches\n"
    ))
}

/// The length of the folder that all files' names start with.
fn common_folder(files: &[File]) -> usize {
    let first = files.first().map_or("", |file| &file.file);
    let folders = first.rmatch_indices('/').map(|(slash, _)| slash + 1);
    let is_common = |&length: &usize| files.iter().all(|file| file.file.starts_with(&first[..length]));
    folders.into_iter().find(is_common).unwrap_or(0)
}
