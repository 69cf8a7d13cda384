//! What `resolver check --shape wide-reads` measures beside its comparison.

use crate::error::Error;
use crate::output::{self, Table};
use crate::progress::Progress;
use resolver_resolve::TreeConfig;
use resolver_resolve::wide_reads::{SIZES, TIME_BAR, WideReads, measure};
use serde::Serialize;

/// The shape of `resolver check` to which this belongs.
pub(crate) const SHAPE: &str = "wide-reads";

#[derive(Serialize)]
pub(crate) struct Entry {
    intervals: u64,
    height: u64,
    most_visits: u64,
    point_seconds: f64,
    pruned_point_seconds: f64,
    reads: Vec<Read>,
    #[serde(skip)]
    failures: Vec<String>,
}

#[derive(Serialize)]
struct Read {
    name: &'static str,
    conflict: bool,
    visits: u64,
    seconds: f64,
    /// Time over that of as many point reads that look at their leaves.
    ratio: f64,
    /// Time over that of as many point reads that have seen as much.
    pruned_ratio: f64,
}

/// Measures every size.
pub(crate) fn run(config: TreeConfig) -> Result<Vec<Entry>, Error> {
    let progress = Progress::new("wide reads", SIZES.iter().sum());
    let mut entries = Vec::new();
    for intervals in SIZES {
        entries.push(Entry::new(&measure(intervals, config)?));
        progress.advance(intervals);
    }
    Ok(entries)
}

/// What failed, in lines.
pub(crate) fn failures(entries: &[Entry]) -> impl Iterator<Item = &String> {
    entries.iter().flat_map(|entry| &entry.failures)
}

impl Entry {
    fn new(measured: &WideReads) -> Entry {
        let reads = measured.reads.iter().map(|read| Read {
            name: read.name,
            conflict: read.found_conflict,
            visits: read.visits,
            seconds: read.seconds,
            ratio: read.seconds / measured.point_seconds,
            pruned_ratio: read.seconds / measured.pruned_point_seconds,
        });
        Entry {
            intervals: measured.intervals,
            height: measured.height,
            most_visits: measured.most_visits(),
            point_seconds: measured.point_seconds,
            pruned_point_seconds: measured.pruned_point_seconds,
            reads: reads.collect(),
            failures: measured.failures(),
        }
    }
}

/// A row for every read over every history.
pub(crate) fn print(entries: &[Entry]) -> Result<(), Error> {
    let mut table = Table::new(&[
        "wide read",
        "intervals",
        "height",
        "visits",
        "at most",
        "1,000 reads",
        "over points",
        "over pruned points",
    ]);
    for entry in entries {
        for read in &entry.reads {
            table.row(vec![
                read.name.to_owned(),
                entry.intervals.to_string(),
                entry.height.to_string(),
                read.visits.to_string(),
                entry.most_visits.to_string(),
                output::seconds(read.seconds),
                format!("{:.2}x", read.ratio),
                format!("{:.2}x", read.pruned_ratio),
            ]);
        }
    }
    output::print(format_args!(
        "\n{table}the bar is {TIME_BAR}x the time of 1,000 point reads that look at their leaves; pruned ones have seen as much \
         as the wide reads, and are mostly answered above\n"
    ))
}
