//! The `resolver` command: replays captures, measures and checks conflict sets.
//!
//! Everything that is not about the terminal lives in the crates: this one reads arguments, prints results, and turns
//! what happened into an exit code. 0: fine; 1: a mismatch, or a check that failed; 2: bad usage or input that cannot be read.

mod bench;
mod check;
mod check_history;
mod compare_strategies;
mod comparisons;
mod doctor;
mod error;
mod fdb_sim;
mod history;
mod latency;
mod output;
mod progress;
mod replay;
mod report;
mod retention;
mod simulate;
mod size;
mod trace;
mod wide_reads;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

#[derive(Parser)]
#[command(
    version,
    about = "Replays, measures and checks transaction conflict sets that decide like FoundationDB's resolver"
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    Replay(replay::Args),
    Bench(bench::Args),
    Check(check::Args),
    Simulate(simulate::Args),
    CheckHistory(check_history::Args),
    CompareStrategies(compare_strategies::Args),
    FdbSim(fdb_sim::Args),
    Retention(retention::Args),
    Size(size::Args),
    Comparisons(comparisons::Args),
    Trace(trace::Args),
    Latency(latency::Args),
    Doctor(doctor::Args),
    Report(report::Args),
}

/// How a command that ran to its end ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Fine,
    Failed,
}

fn main() -> ExitCode {
    let outcome = match Cli::parse().command {
        Command::Replay(args) => replay::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Check(args) => check::run(&args),
        Command::Simulate(args) => simulate::run(&args),
        Command::CheckHistory(args) => check_history::run(&args),
        Command::CompareStrategies(args) => compare_strategies::run(&args),
        Command::FdbSim(args) => fdb_sim::run(&args),
        Command::Retention(args) => retention::run(&args),
        Command::Size(args) => size::run(&args),
        Command::Comparisons(args) => comparisons::run(&args),
        Command::Trace(args) => trace::run(&args),
        Command::Latency(args) => latency::run(&args),
        Command::Doctor(args) => doctor::run(&args),
        Command::Report(args) => report::run(&args),
    };
    match outcome {
        Ok(Outcome::Fine) => ExitCode::SUCCESS,
        Ok(Outcome::Failed) => ExitCode::from(1),
        Err(error) => {
            output::note(format_args!("resolver: {error}"));
            ExitCode::from(error.exit_code())
        }
    }
}
