//! `resolver size`: the seconds of history that a budget buys for given traffic, and the budget that a window takes.

use crate::Outcome;
use crate::error::Error;
use crate::history::{Histories, Index};
use crate::output::{self, Table};
use crate::progress::Progress;
use resolver_workloads::generators::steady::Writes;
use resolver_workloads::size::{Bought, Candidate, Question};
use serde::Serialize;

/// Measure how many seconds of history a budget buys, in the tree and in the skip list, or what budget a window takes
///
/// Writes of the given shape are made and replayed: the tree's seconds are the smallest age of its cutoff once it reclaims,
/// the skip list's the largest fixed window whose peak fits. Keys are 4 bytes of one of 16 prefixes, 8 of a number, and a
/// hash. What is larger than --measure-at-most is measured smaller, with budget, window and number of keys divided alike,
/// and multiplied; the drift is how far off half of what was measured would have been.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Committed write ranges a second
    #[arg(long, value_name = "N", default_value_t = 100_000)]
    writes: u64,
    /// The length of the keys: 12 to 10,000 bytes
    #[arg(long, value_name = "N", default_value_t = 16)]
    key_bytes: usize,
    /// The share of the writes that are one key, 0 to 1; the others are ranges
    #[arg(long, value_name = "SHARE", default_value_t = 0.9)]
    points: f64,
    /// How many keys the longest range covers
    #[arg(long, value_name = "N", default_value_t = 100)]
    span: u64,
    /// How many different keys are written, evenly
    #[arg(long, value_name = "N", default_value_t = 32_000_000_000)]
    keys: u64,
    /// The budget: bytes, or a number of KiB, MiB, GiB or TiB
    #[arg(long, value_name = "SIZE", default_value = "1GiB")]
    budget: String,
    /// Find the budget that holds so many seconds instead
    #[arg(long, value_name = "SECONDS", conflicts_with = "budget")]
    window: Option<f64>,
    /// The largest budget that is measured as it is
    #[arg(long, value_name = "SIZE", default_value = "32MiB")]
    measure_at_most: String,
    /// Seed of the writes
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Document {
    writes_per_second: u64,
    key_bytes: usize,
    points: f64,
    span: u64,
    keys: u64,
    seed: u64,
    /// What was asked for, if it was a window.
    window_seconds: Option<f64>,
    /// Seconds of the tree over those of the skip list for each byte.
    ratio: f64,
    tree: History,
    skiplist: History,
}

#[derive(Serialize)]
struct History {
    budget_bytes: u64,
    seconds: f64,
    bytes_per_second: f64,
    measured_budget_bytes: u64,
    measured_peak_bytes: u64,
    scaled_by: f64,
    /// How far half the size is off, in parts; nothing where nothing was scaled.
    drift: Option<f64>,
}

impl History {
    fn new(bought: Bought) -> History {
        let Bought { budget_bytes, seconds, scaled_by, measured_peak_bytes, drift } = bought;
        History {
            budget_bytes,
            seconds,
            bytes_per_second: budget_bytes as f64 / seconds,
            measured_budget_bytes: (budget_bytes as f64 / scaled_by).round() as u64,
            measured_peak_bytes,
            scaled_by,
            drift,
        }
    }
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Error> {
    let size = |text: &String| output::parse_size(text).ok_or_else(|| Error::NoSize(text.clone()));
    let question = Question {
        writes: Writes {
            a_second: args.writes,
            key_bytes: args.key_bytes,
            points: args.points,
            keys: args.keys,
            longest_span: args.span,
        },
        seed: args.seed,
        measure_at_most: size(&args.measure_at_most)?,
    };
    let budget = size(&args.budget)?;
    let make_tree = |budget| Histories::under_budget(budget).make(Index::Tree);
    let make_skip_list = || Histories::default().make(Index::SkipList);
    let measure = |label: &str, candidate: Candidate<'_>| -> Result<History, Error> {
        let progress = Progress::new(label, 0);
        let mut tick = || progress.advance(1);
        let bought = match args.window {
            None => question.seconds_in(budget, candidate, &mut tick),
            Some(window) => question.budget_for(window, candidate, &mut tick),
        };
        Ok(History::new(bought?))
    };
    let tree = measure("the tree", Candidate::Tree(&make_tree))?;
    let skiplist = measure("the skip list", Candidate::SkipList(&make_skip_list))?;
    let document = Document {
        writes_per_second: args.writes,
        key_bytes: args.key_bytes,
        points: args.points,
        span: args.span,
        keys: args.keys,
        seed: args.seed,
        window_seconds: args.window,
        ratio: skiplist.bytes_per_second / tree.bytes_per_second,
        tree,
        skiplist,
    };
    if args.json {
        output::print_json(&document)?;
    } else {
        document.print()?;
    }
    Ok(Outcome::Fine)
}

impl Document {
    fn print(&self) -> Result<(), Error> {
        let mut table =
            Table::new(&["", "budget", "seconds", "bytes a second", "measured at", "scaled by", "drift"]);
        for (name, history) in [("tree", &self.tree), ("skiplist", &self.skiplist)] {
            table.row(vec![
                name.to_owned(),
                output::bytes(history.budget_bytes),
                output::seconds(history.seconds),
                output::bytes(history.bytes_per_second.round() as u64),
                output::bytes(history.measured_budget_bytes),
                format!("{:.2}", history.scaled_by),
                history.drift.map_or("-".to_owned(), |drift| format!("{:+.2} %", drift * 100.0)),
            ]);
        }
        let Document { writes_per_second, key_bytes, points, span, keys, seed, ratio, .. } = self;
        output::print(format_args!(
            "{writes_per_second} writes a second, {:.0} % of them points, the others of up to {span} keys; keys of \
             {key_bytes} bytes, {keys} different ones, seed {seed}\n{table}for each byte, the tree keeps {ratio:.2}x the \
             skip list's seconds\n",
            points * 100.0
        ))
    }
}
