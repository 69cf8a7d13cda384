//! Running a seed: once, twice to compare, and again and again to make a failing schedule smaller.

use crate::check::Checked;
use crate::fault::{Counters, Fault};
use crate::history::Record;
use crate::plan::Plan;
use crate::planted::Planted;
#[cfg(feature = "planted-bugs")]
use crate::planted::PlantedBug;
use crate::violation::Violation;
use crate::world::World;
use resolver_index::Strategy;
use std::mem::discriminant;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How a seed is run.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The faults that strike, by place in the [`schedule`]; all if `None`.
    faults: Option<Vec<usize>>,
    strategy: Strategy,
    planted: Planted,
}

impl Options {
    /// The trees of the resolvers hide the latency of memory in this way.
    pub fn with_strategy(mut self, strategy: Strategy) -> Options {
        self.strategy = strategy;
        self
    }

    /// Plants a mistake.
    #[cfg(feature = "planted-bugs")]
    pub fn with_bug(mut self, bug: PlantedBug) -> Options {
        self.planted.bug = Some(bug);
        self
    }

    /// Only these faults strike, by place in the [`schedule`].
    pub fn with_faults(mut self, faults: Vec<usize>) -> Options {
        self.faults = Some(faults);
        self
    }
}

/// What a run showed.
#[derive(Debug)]
pub struct Run {
    /// What it must never show, if it did.
    pub violation: Option<Violation>,
    /// The hash of everything that happened.
    pub trace_hash: String,
    /// How often each fault and effect occurred.
    pub counters: Counters,
    /// What the clients did and saw.
    pub history: Vec<Record>,
    /// What the history's checker counted.
    pub checked: Checked,
    /// How many events happened.
    pub events: u64,
}

/// The faults that a seed schedules.
pub fn schedule(seed: u64) -> Vec<Fault> {
    Plan::new(seed).faults
}

/// Runs a seed once. A panic inside is a violation too; then there is nothing but that.
pub fn simulate(seed: u64, options: &Options) -> Run {
    let mut plan = Plan::new(seed);
    if let Some(chosen) = &options.faults {
        let fault = |place: &usize| plan.faults.get(*place).copied();
        plan.faults = chosen.iter().filter_map(fault).collect();
    }
    let world = World::new(plan, options.strategy, options.planted);
    match catch_unwind(AssertUnwindSafe(|| world.run())) {
        Ok(ended) => Run {
            violation: ended.violation,
            trace_hash: ended.trace_hash,
            counters: ended.counters,
            history: ended.history,
            checked: ended.checked,
            events: ended.events,
        },
        Err(panic) => Run {
            violation: Some(Violation::Panicked(message_of(&*panic))),
            trace_hash: String::new(),
            counters: Counters::default(),
            history: Vec::new(),
            checked: Checked::default(),
            events: 0,
        },
    }
}

fn message_of(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a message").to_owned()
}

/// Runs a seed twice: the second run must be the first one again.
pub fn check_seed(seed: u64, options: &Options) -> Run {
    let mut run = simulate(seed, options);
    let again = simulate(seed, options);
    if run.trace_hash != again.trace_hash || run.violation != again.violation {
        let first = run.trace_hash.clone();
        run.violation = Some(Violation::NotRepeatable { first, second: again.trace_hash });
    }
    run
}

/// A smaller schedule that fails in the same way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shrunk {
    /// The faults that are left, by place in the [`schedule`].
    pub faults: Vec<usize>,
    /// What the run with these shows.
    pub violation: Violation,
}

/// Leaves faults out as long as the run fails in the same way, in parts that get smaller and smaller; at most `effort` runs.
pub fn shrink(seed: u64, options: &Options, violation: &Violation, effort: usize) -> Shrunk {
    let all = options.faults.clone().unwrap_or_else(|| (0..schedule(seed).len()).collect());
    let mut shrunk = Shrunk { faults: all, violation: violation.clone() };
    let mut part = shrunk.faults.len();
    let mut runs = 0;
    while part > 0 {
        let mut at = 0;
        while at < shrunk.faults.len() && runs < effort {
            let mut fewer = shrunk.faults.clone();
            fewer.drain(at..(at + part).min(fewer.len()));
            runs += 1;
            match same_failure(seed, &options.clone().with_faults(fewer.clone()), violation) {
                Some(violation) => shrunk = Shrunk { faults: fewer, violation },
                None => at += part,
            }
        }
        part /= 2;
    }
    shrunk
}

/// The violation of a run, if it is of the wanted kind.
fn same_failure(seed: u64, options: &Options, wanted: &Violation) -> Option<Violation> {
    let repeats = matches!(wanted, Violation::NotRepeatable { .. });
    let run = if repeats { check_seed(seed, options) } else { simulate(seed, options) };
    run.violation.filter(|violation| discriminant(violation) == discriminant(wanted))
}
