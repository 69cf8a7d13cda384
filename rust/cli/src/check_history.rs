//! `resolver check-history`: the simulation's checker over a history in a file.

use crate::Outcome;
use crate::error::Error;
use crate::output;
use resolver_simulation::{Checked, check_history, read_history};
use serde::Serialize;
use std::fs::File;
use std::io::BufReader;

/// Check that a committed history is strictly serializable
///
/// The file has one transaction a line, as JSON: simulation/README.md says how, and `resolver simulate --history` writes one.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The history
    file: String,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Document {
    file: String,
    transactions: usize,
    committed: u64,
    read_only: u64,
    without_effect: u64,
    reads: u64,
    failure: Option<String>,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Error> {
    let failed = |source| Error::History { file: args.file.clone(), source };
    let file = File::open(&args.file).map_err(|error| failed(error.into()))?;
    let records = read_history(BufReader::new(file)).map_err(failed)?;
    let result = check_history(&records);
    let Checked { committed, read_only, without_effect, reads } =
        *result.as_ref().unwrap_or(&Checked::default());
    let document = Document {
        file: args.file.clone(),
        transactions: records.len(),
        committed,
        read_only,
        without_effect,
        reads,
        failure: result.as_ref().err().map(ToString::to_string),
    };
    if args.json {
        output::print_json(&document)?;
    } else if result.is_ok() {
        output::print(format_args!(
            "{}: strictly serializable: {committed} transactions committed, {read_only} only read, {without_effect} without \
             effect; {reads} reads explained\n",
            args.file
        ))?;
    }
    if let Err(unexplained) = &result {
        output::note(format_args!("{}: {unexplained}", args.file));
    }
    Ok(if result.is_ok() { Outcome::Fine } else { Outcome::Failed })
}
