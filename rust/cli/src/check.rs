//! `resolver check`: random batches through a conflict set and its references.

use crate::Outcome;
use crate::error::Error;
use crate::history::{Histories, HistoryArgs, Index, make_witness, retention_name};
use crate::output::{self, Table};
use crate::progress::Progress;
use crate::wide_reads;
use resolver_index::{Config, LEAST_BUDGET};
use resolver_types::Retention;
use resolver_workloads::compare::{Comparison, Difference};
use resolver_workloads::counts::Counts;
use resolver_workloads::input::Unmade;
use resolver_workloads::part::{Part, Shown};
use resolver_workloads::shrink::shrink;
use resolver_workloads::{BatchBuf, RandomBatches};
use serde::{Serialize, Serializer};
use std::mem::discriminant;
use std::time::Instant;

/// A history lives this many transactions long; then a fresh one starts, from the next seed.
const TRANSACTIONS_PER_HISTORY: u64 = 25_000;

/// The same where reads are wide: model and witness go through all that a read covers.
const TRANSACTIONS_PER_WIDE_HISTORY: u64 = 5_000;

/// From this many transactions on, every kind of decision has to have occurred.
const ENOUGH_FOR_EVERY_KIND: u64 = 10_000;

/// How many transactions may be decided while a failing input is made smaller.
const SHRINKING_EFFORT: u64 = 3_000_000;

/// From this many transactions on, every counter of the tree has to have moved, if the shape is [`EVERYTHING`] and the histories are
/// the command's own choice.
const ENOUGH_FOR_EVERY_COUNTER: u64 = 5_000_000;

/// The shape that has everything in it.
const EVERYTHING: &str = "adversarial";

/// The tree's budgets, one a history in turn where none is asked for: from the least, under which reclamation goes on all the time.
const BUDGETS: [u64; 4] = [LEAST_BUDGET, LEAST_BUDGET + (64 << 10), 2 * LEAST_BUDGET, 16 * LEAST_BUDGET];

/// In one in so many histories, the tree searches without vector instructions.
const SCALAR_SEARCH: u64 = 3;

/// In one in so many histories, the tree has so few stamps that it renumbers them all the time.
const FEW_STAMPS: u64 = 5;
const STAMPS: u32 = 1_000;

/// The most batches of a failing input that are printed.
const PRINTED_BATCHES: usize = 20;

/// Run random batches through a conflict set and references that follow it, and compare every verdict and report
///
/// Without --budget and --retention, both change from history to history: small budgets, under which the tree reclaims all the time.
/// With --shape wide-reads, the tree is also filled with up to 5,000,000 intervals, and the nodes are counted that a read of the
/// whole key space visits.
#[derive(clap::Args)]
pub(crate) struct Args {
    /// How many transactions
    #[arg(long, default_value_t = 1_000_000, value_parser = clap::value_parser!(u64).range(1..))]
    transactions: u64,
    /// Seed of the first history; each further one takes the next
    #[arg(long, default_value_t = 1)]
    seed: u64,
    #[arg(long, default_value = "adversarial", help = shape_help())]
    shape: String,
    /// The conflict set to check: tree, skiplist or model
    #[arg(long, default_value = "tree")]
    index: String,
    /// The references, separated by commas
    #[arg(long, default_value = "skiplist,model", value_delimiter = ',')]
    against: Vec<String>,
    #[command(flatten)]
    history: HistoryArgs,
    /// Check the whole tree after every batch
    #[arg(long)]
    validate: bool,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

#[derive(Serialize)]
struct Document {
    seed: u64,
    shape: String,
    transactions: u64,
    batches: u64,
    committed: u64,
    conflicts: u64,
    too_old: u64,
    too_old_by_cutoff: u64,
    reports: u64,
    fallbacks: u64,
    counters: Counters,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    wide_reads: Vec<wide_reads::Entry>,
    failures: u64,
    seconds: f64,
}

/// The tree's counters, summed over all histories.
#[derive(Default)]
struct Counters(Vec<(&'static str, u64)>);

impl Counters {
    fn add(&mut self, counters: Vec<(&'static str, u64)>) {
        if self.0.is_empty() {
            self.0 = counters;
            return;
        }
        self.0.iter_mut().zip(counters).for_each(|((_, sum), (_, count))| *sum += count);
    }
}

impl Serialize for Counters {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().copied())
    }
}

/// The sets that are compared.
struct Sets {
    index: Index,
    against: Vec<Index>,
    histories: Histories,
    /// What the command line does not leave open.
    budget: Option<u64>,
    retention: Option<Retention>,
    validate: bool,
}

impl Sets {
    fn new(args: &Args) -> Result<Sets, Error> {
        Ok(Sets {
            index: Index::parse(&args.index)?,
            against: args.against.iter().map(|name| Index::parse(name)).collect::<Result<_, _>>()?,
            histories: args.history.histories()?,
            budget: args.history.budget()?,
            retention: args.history.retention()?,
            validate: args.validate,
        })
    }

    /// How the history of a seed is made: what the command line leaves open changes from seed to seed.
    fn histories(&self, seed: u64) -> Histories {
        let in_turn = if seed.is_multiple_of(2) { Retention::Window } else { Retention::Budget };
        let budget = BUDGETS[(seed / 2 % BUDGETS.len() as u64) as usize];
        let default = self.histories.tree;
        Histories {
            retention: self.retention.unwrap_or(in_turn),
            tree: Config {
                budget_bytes: self.budget.unwrap_or(budget),
                vector_search: !seed.is_multiple_of(SCALAR_SEARCH),
                stamp_limit: if seed.is_multiple_of(FEW_STAMPS) { STAMPS } else { default.stamp_limit },
                ..default
            },
        }
    }

    /// Fresh sets. The budget is the checked set's alone: a reference that reclaims by itself could follow nobody.
    fn fresh(&self, seed: u64) -> Result<Comparison, Unmade> {
        let histories = self.histories(seed);
        let unbounded = Histories { tree: Config::default(), ..histories };
        let references = self.against.iter().map(|&index| unbounded.make(index)).collect::<Result<_, _>>()?;
        let comparison = Comparison::new(histories.make(self.index)?, references, make_witness());
        Ok(if self.validate { comparison.validating() } else { comparison })
    }

    /// Whether every counter has to move in a long run.
    fn moves_every_counter(&self, shape: &str) -> bool {
        shape == EVERYTHING && self.budget.is_none() && self.retention.is_none()
    }
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Error> {
    let sets = Sets::new(args)?;
    let start = Instant::now();
    let progress = Progress::new(&args.shape, args.transactions);
    let mut counts = Counts::default();
    let mut counters = Counters::default();
    let mut failures = 0;
    let mut seed = args.seed;
    while counts.transactions < args.transactions && failures == 0 {
        let left = args.transactions - counts.transactions;
        let batches = || batches(&args.shape, seed, left.min(transactions_per_history(&args.shape)));
        let mut comparison = sets.fresh(seed)?;
        for (number, buf) in batches()?.enumerate() {
            if let Err(difference) = comparison.step(&buf.batch(&buf.ranges())) {
                failures += 1;
                let prefix = batches()?.take(number + 1);
                explain(args, &sets, seed, &difference, &prefix.collect::<Vec<_>>());
                break;
            }
            progress.advance(buf.transactions().len() as u64);
        }
        counts.merge(comparison.counts());
        counters.add(comparison.index().counters());
        seed = seed.wrapping_add(1);
    }
    drop(progress);
    if failures == 0 {
        for missing in missing(&sets, &args.shape, &counts, &counters) {
            failures += 1;
            output::note(format_args!("check failed: shape {}, seed {}: {missing}", args.shape, args.seed));
        }
    }
    let wide_reads = match sets.index {
        Index::Tree if args.shape == wide_reads::SHAPE => wide_reads::run(sets.histories.tree_config())?,
        _ => Vec::new(),
    };
    for failure in wide_reads::failures(&wide_reads) {
        failures += 1;
        output::note(format_args!("check failed: wide reads: {failure}"));
    }
    let document = Document {
        seed: args.seed,
        shape: args.shape.clone(),
        transactions: counts.transactions,
        batches: counts.batches,
        committed: counts.committed,
        conflicts: counts.conflicts,
        too_old: counts.too_old,
        too_old_by_cutoff: counts.too_old_by_cutoff,
        reports: counts.reports,
        fallbacks: counts.fallbacks,
        counters,
        wide_reads,
        failures,
        seconds: start.elapsed().as_secs_f64(),
    };
    if args.json {
        output::print_json(&document)?;
    } else {
        document.print(&sets)?;
    }
    Ok(if failures == 0 { Outcome::Fine } else { Outcome::Failed })
}

fn batches(shape: &str, seed: u64, transactions: u64) -> Result<RandomBatches, Error> {
    RandomBatches::new(shape, seed, transactions).ok_or_else(|| Error::UnknownShape(shape.to_owned()))
}

fn transactions_per_history(shape: &str) -> u64 {
    if shape == wide_reads::SHAPE { TRANSACTIONS_PER_WIDE_HISTORY } else { TRANSACTIONS_PER_HISTORY }
}

fn shape_help() -> String {
    format!("Shape of the batches: {}", RandomBatches::shapes().join(", "))
}

/// What a run this long has to have brought about and did not.
fn missing(sets: &Sets, shape: &str, counts: &Counts, counters: &Counters) -> Vec<String> {
    let mut kinds = vec![
        ("a committed transaction", counts.committed),
        ("a conflict", counts.conflicts),
        ("a report", counts.reports),
    ];
    if sets.retention != Some(Retention::Budget) {
        kinds.push(("a transaction that is too old", counts.too_old));
    }
    if counts.transactions < ENOUGH_FOR_EVERY_KIND {
        kinds.clear();
    }
    let occurred = kinds.into_iter().map(|(kind, count)| (format!("{kind} never occurred"), count));
    let moved = counters.0.iter().map(|&(name, count)| (format!("the counter {name} is zero"), count));
    let every = counts.transactions >= ENOUGH_FOR_EVERY_COUNTER && sets.moves_every_counter(shape);
    let required = occurred.chain(moved.filter(|_| every));
    required.filter(|&(_, count)| count == 0).map(|(what, _)| what).collect()
}

/// Prints what differs, how to see it again, and the smallest input found that shows it.
fn explain(args: &Args, sets: &Sets, seed: u64, difference: &Difference, prefix: &[BatchBuf]) {
    let Args { shape, index, against, .. } = args;
    let histories = sets.histories(seed);
    let views: Vec<_> = prefix.iter().map(BatchBuf::ranges).collect();
    let batches = prefix.iter().zip(&views).map(|(buf, ranges)| buf.batch(ranges));
    let parts: Vec<Part<'_>> = batches.map(|batch| Part::of(&batch, |_| true)).collect();
    let transactions =
        |parts: &[Part<'_>]| -> usize { parts.iter().map(|part| part.batch().transactions.len()).sum() };
    output::note(format_args!(
        "check failed: shape {shape}, seed {seed}, batch {}: {difference}\n\
         the smallest failing prefix is {} batches; to run it again: resolver check --shape {shape} --seed {seed} \
         --transactions {} --index {index} --against {} --budget {} --retention {}",
        parts.len() - 1,
        parts.len(),
        transactions(&parts),
        against.join(","),
        histories.tree.budget_bytes,
        retention_name(histories.retention)
    ));
    let small = shrink(parts, SHRINKING_EFFORT, &mut |parts| {
        let Ok(mut comparison) = sets.fresh(seed) else { return false };
        let first = parts.iter().find_map(|part| comparison.step(&part.batch()).err());
        first.is_some_and(|first| discriminant(&first) == discriminant(difference))
    });
    let unprinted = small.len().saturating_sub(PRINTED_BATCHES);
    let only_last = if unprinted > 0 { format!(", the last {PRINTED_BATCHES}") } else { String::new() };
    output::note(format_args!(
        "smallest input found that fails: {} batches, {} transactions{only_last}:",
        small.len(),
        transactions(&small)
    ));
    for part in &small[unprinted..] {
        output::note(format_args!("{}", Shown(part.batch())));
    }
}

impl Document {
    fn print(&self, sets: &Sets) -> Result<(), Error> {
        let Document { seed, shape, transactions, batches, .. } = self;
        let against: Vec<&str> = sets.against.iter().map(|index| index.name()).collect();
        let mut counters = Table::new(&["counter", "count"]);
        for (name, count) in &self.counters.0 {
            counters.row(vec![name.replace('_', " "), count.to_string()]);
        }
        let counters = if self.counters.0.is_empty() { String::new() } else { format!("\n{counters}") };
        output::print(format_args!(
            "{} against {}, shape {shape}, seed {seed}: {transactions} transactions in {batches} batches\n\
             {} committed, {} conflicts, {} too old ({} by the cutoff alone), {} reports, {} fallbacks\n\
             {} failures in {}\n{counters}",
            sets.index.name(),
            against.join(", "),
            self.committed,
            self.conflicts,
            self.too_old,
            self.too_old_by_cutoff,
            self.reports,
            self.fallbacks,
            self.failures,
            output::seconds(self.seconds)
        ))?;
        if self.wide_reads.is_empty() { Ok(()) } else { wide_reads::print(&self.wide_reads) }
    }
}
