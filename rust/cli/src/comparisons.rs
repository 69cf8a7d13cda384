//! `resolver comparisons`: what routing a sorted batch costs, by formula, in the model and in the tree.

use crate::Outcome;
use crate::error::Error;
use crate::history::HistoryArgs;
use crate::output::{self, Table};
use crate::progress::Progress;
use resolver_resolve::comparisons::{Comparisons, Counter, Rule, Shape, analytical, counted};
use resolver_workloads::Rng;
use serde::Serialize;
use std::ops::Range;

/// Clustered begins lie within so many neighbouring intervals, or within the fiftieth part of a smaller tree.
const CLUSTER: u64 = 100_000;
const CLUSTER_PART: u64 = 50;

/// Count the comparisons that route a sorted batch: by a formula, in the published model, and in the tree
///
/// First the published tree of 6 GiB, which is a model only; then a tree that is filled with one-key intervals in random
/// order, and the model of the very shape that it has. Begins are drawn evenly from all intervals, or from a cluster of
/// neighbours. `independent` searches each begin by itself, `grouped` partitions them together; a leaf is searched for each
/// begin, or once. The tree looks for a begin that is alone in a node in the whole node, and takes the lower of two middle
/// separators; `as the tree` is the model with these rules.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// Intervals in the tree: 1,000 to 100,000,000
    #[arg(long, value_name = "N", default_value_t = 2_000_000, value_parser = clap::value_parser!(u32).range(1_000..=100_000_000))]
    intervals: u32,
    /// Begins in the batch: 1 to 1,000,000
    #[arg(long, value_name = "N", default_value_t = 10_000, value_parser = clap::value_parser!(u32).range(1..=1_000_000))]
    reads: u32,
    #[command(flatten)]
    history: HistoryArgs,
    /// Seed of the order and of the begins
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Document {
    reads: u32,
    seed: u64,
    rows: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    /// Of which tree: `published`, or the one that was made.
    shape: &'static str,
    intervals: u64,
    /// How begins are drawn.
    begins: &'static str,
    /// How this row was had.
    by: &'static str,
    independent: f64,
    grouped: f64,
    leaves: f64,
    /// Inside the leaves; the tree does not count these.
    leaf_independent: Option<f64>,
    leaf_grouped: Option<f64>,
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Error> {
    let config = args.history.histories()?.tree_config();
    let mut rng = Rng::new(args.seed);
    let progress = Progress::new("comparisons", 4);
    let mut rows = Vec::new();
    let published = Shape::published();
    for (name, region) in regions(&published) {
        let begins = draw(&mut rng, args.reads, &region);
        rows.extend(model_rows("published", name, &published, region, &begins, &[Rule::Model]));
        progress.advance(1);
    }
    let mut order: Vec<u32> = (0..args.intervals).collect();
    for last in (1..order.len()).rev() {
        order.swap(last, rng.below(last as u64 + 1) as usize);
    }
    let mut tree = Counter::new(config, &order)?;
    let shape = tree.shape();
    for (name, region) in regions(&shape) {
        let begins = draw(&mut rng, args.reads, &region);
        rows.extend(model_rows("tree", name, &shape, region, &begins, &[Rule::Model, Rule::Tree]));
        let found = tree.count(&begins)?;
        rows.push(Row {
            shape: "tree",
            intervals: shape.intervals(),
            begins: name,
            by: "tree",
            independent: found.independent as f64,
            grouped: found.grouped as f64,
            leaves: found.leaves as f64,
            leaf_independent: None,
            leaf_grouped: None,
        });
        progress.advance(1);
    }
    drop(progress);
    let document = Document { reads: args.reads, seed: args.seed, rows };
    if args.json {
        output::print_json(&document)?;
    } else {
        document.print()?;
    }
    Ok(Outcome::Fine)
}

/// Where begins may fall, by name.
fn regions(shape: &Shape) -> [(&'static str, Range<u64>); 2] {
    let all = shape.intervals();
    let cluster = CLUSTER.min(all / CLUSTER_PART).max(1);
    [("uniform", 0..all), ("clustered", all / 2..all / 2 + cluster)]
}

fn draw(rng: &mut Rng, reads: u32, region: &Range<u64>) -> Vec<u64> {
    let mut begins: Vec<u64> =
        (0..reads).map(|_| region.start + rng.below(region.end - region.start)).collect();
    begins.sort_unstable();
    begins
}

fn model_rows(
    name: &'static str,
    begins_name: &'static str,
    shape: &Shape,
    region: Range<u64>,
    begins: &[u64],
    rules: &[Rule],
) -> Vec<Row> {
    let row = |by, found: Comparisons| Row {
        shape: name,
        intervals: shape.intervals(),
        begins: begins_name,
        by,
        independent: found.independent,
        grouped: found.grouped,
        leaves: found.leaves,
        leaf_independent: Some(found.leaf_independent),
        leaf_grouped: Some(found.leaf_grouped),
    };
    let mut rows = vec![row("formula", analytical(shape, begins.len() as u64, region))];
    rows.extend(rules.iter().map(|&rule| {
        let by = match rule {
            Rule::Model => "counted",
            Rule::Tree => "as the tree",
        };
        row(by, counted(shape, begins, rule))
    }));
    rows
}

impl Document {
    fn print(&self) -> Result<(), Error> {
        let mut table = Table::new(&[
            "tree",
            "intervals",
            "begins",
            "by",
            "independent",
            "grouped",
            "saved",
            "leaves",
            "with leaves",
            "grouped",
            "saved",
        ]);
        let number = |value: f64| format!("{value:.0}");
        let saved =
            |independent: f64, grouped: f64| format!("{:.1} %", (1.0 - grouped / independent) * 100.0);
        for row in &self.rows {
            let whole = row.leaf_independent.zip(row.leaf_grouped);
            let whole = whole.map(|(each, once)| (row.independent + each, row.grouped + once));
            let [independent, grouped, share] = match whole {
                Some((independent, grouped)) => {
                    [number(independent), number(grouped), saved(independent, grouped)]
                }
                None => ["-"; 3].map(str::to_owned),
            };
            table.row(vec![
                row.shape.to_owned(),
                row.intervals.to_string(),
                row.begins.to_owned(),
                row.by.to_owned(),
                number(row.independent),
                number(row.grouped),
                saved(row.independent, row.grouped),
                number(row.leaves),
                independent,
                grouped,
                share,
            ]);
        }
        output::print(format_args!("{} begins, seed {}\n{table}", self.reads, self.seed))
    }
}
