//! `resolver latency`: what one dependent load costs, by how much memory it may touch.

use crate::Outcome;
use crate::error::Error;
use crate::output::{self, Table};
use crate::progress::Progress;
use resolver_workloads::chase::{self, Pages};
use serde::Serialize;

/// The smallest cycle fits every first-level cache; the largest that can be asked for needs no more lines than a
/// cycle may have.
const LEAST_BYTES: u64 = 16 << 10;
const MOST_BYTES: u64 = 64 << 30;

/// Measure the latency of memory: a dependent pointer chase, with ordinary and with huge pages
///
/// Each row is a cycle through so much memory in random order, a cache line at a step; the least of three timings
/// counts.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// The largest memory: bytes, or a number of KiB, MiB or GiB, from 16KiB to 64GiB
    #[arg(long, value_name = "SIZE", default_value = "512MiB")]
    largest: String,
    /// Seed of the order
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
pub(crate) struct Row {
    pub(crate) bytes: u64,
    pub(crate) ordinary_ns: f64,
    /// Where huge pages were asked for; nothing where the system has none.
    pub(crate) huge_ns: Option<f64>,
}

#[derive(Serialize)]
pub(crate) struct Document {
    line_bytes: usize,
    seed: u64,
    pub(crate) rows: Vec<Row>,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Error> {
    let document = measure(parse_largest(&args.largest)?, args.seed)?;
    if args.json {
        output::print_json(&document)?;
    } else {
        output::print(document.table())?;
    }
    Ok(Outcome::Fine)
}

/// Reads the size of the largest memory.
pub(crate) fn parse_largest(size: &str) -> Result<u64, Error> {
    let largest = output::parse_size(size).ok_or_else(|| Error::NoSize(size.to_owned()))?;
    if (LEAST_BYTES..=MOST_BYTES).contains(&largest) { Ok(largest) } else { Err(Error::LatencySize(largest)) }
}

/// Measures every doubling of the least memory up to the largest.
pub(crate) fn measure(largest: u64, seed: u64) -> Result<Document, Error> {
    let sizes: Vec<u64> = std::iter::successors(Some(LEAST_BYTES), |&size| size.checked_mul(2))
        .take_while(|&size| size <= largest)
        .collect();
    let progress = Progress::new("latency", sizes.len() as u64);
    let mut rows = Vec::new();
    for bytes in sizes {
        let nanoseconds = |pages| chase::nanoseconds(bytes as usize, pages, seed);
        let ordinary_ns =
            nanoseconds(Pages::Ordinary).map_err(|source| Error::LatencyMemory { bytes, source })?;
        rows.push(Row { bytes, ordinary_ns, huge_ns: nanoseconds(Pages::Huge).ok() });
        progress.advance(1);
    }
    Ok(Document { line_bytes: chase::LINE_BYTES, seed, rows })
}

impl Document {
    pub(crate) fn table(&self) -> Table {
        let mut table = Table::new(&["memory", "ordinary pages", "huge pages asked for"]);
        for row in &self.rows {
            let huge = row.huge_ns.map_or("-".to_owned(), |ns| format!("{ns:.1} ns"));
            table.row(vec![output::bytes(row.bytes), format!("{:.1} ns", row.ordinary_ns), huge]);
        }
        table
    }
}
