//! `resolver check`: random batches through a conflict set and its references.

use crate::Outcome;
use crate::error::Error;
use crate::history::{Histories, HistoryArgs, Index, make_witness};
use crate::output::{self, Table};
use crate::progress::Progress;
use resolver_index::{Config, LEAST_BUDGET};
use resolver_workloads::compare::{Comparison, Difference};
use resolver_workloads::counts::Counts;
use resolver_workloads::input::Unmade;
use resolver_workloads::part::{Part, Shown};
use resolver_workloads::shrink::shrink;
use resolver_workloads::{BatchBuf, RandomBatches};
use serde::Serialize;
use std::collections::BTreeMap;
use std::mem::discriminant;
use std::time::Instant;

/// A history lives this many transactions long; then a fresh one starts, from the next seed.
const TRANSACTIONS_PER_HISTORY: u64 = 25_000;

/// From this many transactions on, every kind of decision has to have occurred.
const ENOUGH_FOR_EVERY_KIND: u64 = 10_000;

/// How many transactions may be decided while a failing input is made smaller.
const SHRINKING_EFFORT: u64 = 3_000_000;

/// The tree's budgets where none is asked for, one a history in turn: so small that reclamation goes on all the time, and ever larger.
const BUDGETS: [u64; 4] = [LEAST_BUDGET, 2 * LEAST_BUDGET, 4 * LEAST_BUDGET, 32 * LEAST_BUDGET];

/// The most batches of a failing input that are printed.
const PRINTED_BATCHES: usize = 20;

/// Run random batches through a conflict set and references that follow it, and compare every verdict and report
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
    counters: BTreeMap<&'static str, u64>,
    failures: u64,
    seconds: f64,
}

/// The sets that are compared.
struct Sets {
    index: Index,
    against: Vec<Index>,
    histories: Histories,
    budget: Option<u64>,
    validate: bool,
}

impl Sets {
    fn new(args: &Args) -> Result<Sets, Error> {
        Ok(Sets {
            index: Index::parse(&args.index)?,
            against: args.against.iter().map(|name| Index::parse(name)).collect::<Result<_, _>>()?,
            histories: args.history.histories()?,
            budget: args.history.budget()?,
            validate: args.validate,
        })
    }

    /// The tree's budget for the history that a seed makes.
    fn budget(&self, seed: u64) -> u64 {
        self.budget.unwrap_or(BUDGETS[(seed % BUDGETS.len() as u64) as usize])
    }

    /// Fresh sets. The budget is the checked set's alone: a reference that reclaims by itself can follow nobody.
    fn fresh(&self, seed: u64) -> Result<Comparison, Unmade> {
        let index = self.histories.with_budget(self.budget(seed)).make(self.index)?;
        let unbounded = self.histories.with_budget(Config::default().budget_bytes);
        let references = self.against.iter().map(|&index| unbounded.make(index)).collect::<Result<_, _>>()?;
        let comparison = Comparison::new(index, references, make_witness());
        Ok(if self.validate { comparison.validating() } else { comparison })
    }
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Error> {
    let sets = Sets::new(args)?;
    let start = Instant::now();
    let progress = Progress::new(&args.shape, args.transactions);
    let mut counts = Counts::default();
    let mut counters = BTreeMap::new();
    let mut failures = 0;
    let mut seed = args.seed;
    while counts.transactions < args.transactions && failures == 0 {
        let left = args.transactions - counts.transactions;
        let batches = || batches(&args.shape, seed, left.min(TRANSACTIONS_PER_HISTORY));
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
        for (name, count) in comparison.index().counters() {
            *counters.entry(name).or_default() += count;
        }
        seed = seed.wrapping_add(1);
    }
    drop(progress);
    if failures == 0 && counts.transactions >= ENOUGH_FOR_EVERY_KIND {
        for kind in missing_kinds(&counts) {
            failures += 1;
            output::note(format_args!(
                "check failed: shape {}, seed {}: {kind} never occurred",
                args.shape, args.seed
            ));
        }
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

fn shape_help() -> String {
    format!("Shape of the batches: {}", RandomBatches::shapes().join(", "))
}

/// The kinds of decision that have to occur and did not.
fn missing_kinds(counts: &Counts) -> Vec<&'static str> {
    let kinds = [
        ("a committed transaction", counts.committed),
        ("a conflict", counts.conflicts),
        ("a transaction that is too old", counts.too_old),
        ("a report", counts.reports),
    ];
    kinds.into_iter().filter(|&(_, count)| count == 0).map(|(kind, _)| kind).collect()
}

/// Prints what differs, how to see it again, and the smallest input found that shows it.
fn explain(args: &Args, sets: &Sets, seed: u64, difference: &Difference, prefix: &[BatchBuf]) {
    let Args { shape, index, against, .. } = args;
    let views: Vec<_> = prefix.iter().map(BatchBuf::ranges).collect();
    let batches = prefix.iter().zip(&views).map(|(buf, ranges)| buf.batch(ranges));
    let parts: Vec<Part<'_>> = batches.map(|batch| Part::of(&batch, |_| true)).collect();
    let transactions =
        |parts: &[Part<'_>]| -> usize { parts.iter().map(|part| part.batch().transactions.len()).sum() };
    output::note(format_args!(
        "check failed: shape {shape}, seed {seed}, batch {}: {difference}\n\
         the smallest failing prefix is {} batches; to run it again: resolver check --shape {shape} --seed {seed} \
         --transactions {} --index {index} --against {} --budget {}",
        parts.len() - 1,
        parts.len(),
        transactions(&parts),
        against.join(","),
        sets.budget(seed)
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
        for (name, count) in &self.counters {
            counters.row(vec![name.replace('_', " "), count.to_string()]);
        }
        let counters = if self.counters.is_empty() { String::new() } else { format!("\n{counters}") };
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
        ))
    }
}
