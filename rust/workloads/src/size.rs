//! How many seconds of history a budget buys, and what budget a window takes: measured on traffic of the shape that is
//! asked about.
//!
//! What would take long is measured smaller: budget, window and the number of different keys divided by one factor, so
//! that as large a share of the writes as before finds its key in the history. [`Bought::drift`] says what another
//! halving does to the result.

use crate::generators::steady::{NoShape, Steady, Writes};
use crate::input::{Maker, RunError, Unmade};
use crate::retention::{self, Plan, Traffic};
use resolver_types::ConflictSet;
use thiserror::Error;

/// The least budget that is measured.
pub const LEAST_BUDGET: u64 = 1 << 20;

/// Batches are so small that the least budget measured holds about so many of them in the history that takes more.
const BATCHES_PER_BUDGET: u64 = 256;
/// A write takes the skip list so many bytes and twice its key, about.
const SKIP_LIST_BYTES: u64 = 128;

/// A replay goes on for so many times as long as it took to fill the budget.
const FILLS: u64 = 3;
/// A write that is new takes a history more bytes than this: after as many writes as that allows, a budget that is not
/// full will not be.
const LEAST_WRITE_BYTES: u64 = 8;

/// With a window, the skip list takes about so many times as much as what was written in the window: expiry goes round
/// and comes late.
const EXPIRY_SLACK: f64 = 1.6;
/// Its peak is that of so many windows.
const WINDOWS: u64 = 6;

/// Where the search for a budget begins, in parts of the most that may be measured.
const FIRST_GUESS: u64 = 8;
/// A budget is good when it holds the window, and at most one part in so many more.
const CLOSE_PARTS: f64 = 64.0;
/// Tries for a budget, after which the least that held the window counts.
const TRIES: usize = 12;

/// Makes a history under a budget.
pub type BudgetMaker<'a> = &'a dyn Fn(u64) -> Result<Box<dyn ConflictSet>, Unmade>;

/// Why nothing was measured.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum SizeError {
    /// The traffic cannot be made.
    #[error(transparent)]
    Shape(#[from] NoShape),
    /// Too little to measure.
    #[error("a budget of {0} bytes: it must be at least {LEAST_BUDGET}")]
    Budget(u64),
    /// Not a window.
    #[error("a window of {0} seconds: it must be above 0 and at most 1000000")]
    Window(f64),
    /// History stops growing before it fills the budget.
    #[error("{keys} different keys do not fill {budget} bytes of the {set}: no window is too long for it")]
    NeverFull {
        /// The history.
        set: &'static str,
        /// The keys that the traffic writes.
        keys: u64,
        /// The budget.
        budget: u64,
    },
    /// One batch fills it, or not even the shortest window fits.
    #[error("a budget of {budget} bytes does not hold the {set} a window of one batch")]
    TooSmall {
        /// The history.
        set: &'static str,
        /// The budget.
        budget: u64,
    },
    /// A run ended early.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// A budget, and the seconds of history that it was seen to hold.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bought {
    /// The budget, in bytes.
    pub budget_bytes: u64,
    /// The seconds.
    pub seconds: f64,
    /// By what both were divided to be measured; 1: not at all.
    pub scaled_by: f64,
    /// The most that the history held while it was measured, in bytes by its own count.
    pub measured_peak_bytes: u64,
    /// Measured at half the size again: how far seconds for each byte are then off, in parts. `None` if nothing was
    /// scaled.
    pub drift: Option<f64>,
}

/// What is measured, and how large at most.
#[derive(Clone, Copy, Debug)]
pub struct Question {
    /// The traffic.
    pub writes: Writes,
    /// Its seed.
    pub seed: u64,
    /// The largest budget that is measured as it is.
    pub measure_at_most: u64,
}

/// Of which history, and how it is made.
#[derive(Clone, Copy)]
pub enum Candidate<'a> {
    /// One that reclaims by itself under a budget.
    Tree(BudgetMaker<'a>),
    /// One without a budget: what its peak says is what it takes.
    SkipList(Maker<'a>),
}

/// What one measurement saw.
#[derive(Clone, Copy, Debug)]
struct Seen {
    seconds: f64,
    peak_bytes: u64,
}

impl Question {
    /// The seconds of history that a budget buys. O(writes that fill it), a few times.
    ///
    /// # Errors
    /// [`SizeError`].
    pub fn seconds_in(
        &self,
        budget: u64,
        candidate: Candidate<'_>,
        tick: &mut dyn FnMut(),
    ) -> Result<Bought, SizeError> {
        if budget < LEAST_BUDGET || self.measure_at_most < LEAST_BUDGET {
            return Err(SizeError::Budget(budget.min(self.measure_at_most)));
        }
        let measured = budget.min(self.measure_at_most);
        let factor = budget as f64 / measured as f64;
        let seen = self.seen(measured, factor, candidate, tick)?;
        let scaled = Bought {
            budget_bytes: budget,
            seconds: seen.seconds * factor,
            scaled_by: factor,
            measured_peak_bytes: seen.peak_bytes,
            drift: None,
        };
        self.with_drift(measured, scaled, candidate, tick)
    }

    /// The budget that a window takes, the least that was seen to hold it. O(writes that fill it), some ten times.
    ///
    /// # Errors
    /// [`SizeError`].
    pub fn budget_for(
        &self,
        window: f64,
        candidate: Candidate<'_>,
        tick: &mut dyn FnMut(),
    ) -> Result<Bought, SizeError> {
        if !(window > 0.0 && window <= 1e6) {
            return Err(SizeError::Window(window));
        }
        if self.measure_at_most < LEAST_BUDGET {
            return Err(SizeError::Budget(self.measure_at_most));
        }
        match candidate {
            Candidate::Tree(_) => self.search_budget(window, candidate, tick),
            Candidate::SkipList(make) => self.peak_of(window, make, tick),
        }
    }

    /// The budget that a history without one takes: its peak with that window.
    fn peak_of(&self, window: f64, make: Maker<'_>, tick: &mut dyn FnMut()) -> Result<Bought, SizeError> {
        let (plan, filled) = self.filling(self.measure_at_most, 1.0, Candidate::SkipList(make), tick)?;
        let estimate = window / plan.traffic.seconds(filled) * EXPIRY_SLACK * self.measure_at_most as f64;
        let factor = (estimate / self.measure_at_most as f64).log2().ceil().max(0.0).exp2();
        let bought = |factor: f64, tick: &mut dyn FnMut()| -> Result<Bought, SizeError> {
            let traffic = self.traffic((estimate / factor) as u64, factor)?;
            let batches = (window / factor / traffic.seconds(1)).ceil();
            let plan = Plan { traffic, batches: batches as u64 * WINDOWS, ..plan };
            let peak = retention::peak_of_window(&plan, make, batches as u64, tick)?;
            Ok(Bought {
                budget_bytes: (peak as f64 * factor) as u64,
                seconds: traffic.seconds(batches as u64) * factor,
                scaled_by: factor,
                measured_peak_bytes: peak,
                drift: None,
            })
        };
        let found = bought(factor, tick)?;
        if factor == 1.0 {
            return Ok(found);
        }
        let half = bought(factor * 2.0, tick)?;
        Ok(Bought { drift: Some(half.seconds_a_byte() / found.seconds_a_byte() - 1.0), ..found })
    }

    /// The least budget that was seen to hold a window, by trying.
    fn search_budget(
        &self,
        window: f64,
        candidate: Candidate<'_>,
        tick: &mut dyn FnMut(),
    ) -> Result<Bought, SizeError> {
        let (mut factor, mut guess) = (1.0, (self.measure_at_most / FIRST_GUESS).max(LEAST_BUDGET));
        let (mut too_small, mut best) = (0, None::<(u64, Seen)>);
        for _ in 0..TRIES {
            let target = window / factor;
            let seen = match self.seen(guess, factor, candidate, tick) {
                Err(SizeError::TooSmall { .. }) => Seen { seconds: 0.0, peak_bytes: 0 },
                Err(SizeError::NeverFull { .. }) if guess > LEAST_BUDGET => {
                    guess = (guess / FIRST_GUESS).max(LEAST_BUDGET);
                    continue;
                }
                seen => seen?,
            };
            let holds = seen.seconds >= target;
            if holds && best.is_none_or(|(least, _)| guess < least) {
                best = Some((guess, seen));
            } else if !holds {
                too_small = too_small.max(guess);
            }
            let close = holds && seen.seconds <= target * (1.0 + 1.0 / CLOSE_PARTS);
            if close || holds && guess == LEAST_BUDGET {
                break;
            }
            // In proportion, and a little more than what would just do.
            let next = guess as f64 * (target / seen.seconds.max(target / 64.0)) * (1.0 + 0.25 / CLOSE_PARTS);
            guess = next as u64;
            if next > self.measure_at_most as f64 {
                let halvings = (next / self.measure_at_most as f64).log2().ceil();
                factor *= halvings.exp2();
                guess = (next / halvings.exp2()) as u64;
                (too_small, best) = (0, None);
            }
            guess = guess.max(LEAST_BUDGET);
            if let Some((least, _)) = best
                && (guess >= least || guess <= too_small)
            {
                guess = too_small + (least - too_small) / 2;
                if least - too_small <= least / CLOSE_PARTS as u64 {
                    break;
                }
            } else if guess <= too_small {
                guess = too_small + too_small / CLOSE_PARTS as u64;
            }
        }
        let (measured, seen) =
            best.ok_or(SizeError::TooSmall { set: candidate.name(), budget: self.measure_at_most })?;
        let found = Bought {
            budget_bytes: (measured as f64 * factor) as u64,
            seconds: seen.seconds * factor,
            scaled_by: factor,
            measured_peak_bytes: seen.peak_bytes,
            drift: None,
        };
        self.with_drift(measured, found, candidate, tick)
    }

    /// Of a scaled result: what another halving of what was measured does to it.
    fn with_drift(
        &self,
        measured: u64,
        bought: Bought,
        candidate: Candidate<'_>,
        tick: &mut dyn FnMut(),
    ) -> Result<Bought, SizeError> {
        if bought.scaled_by == 1.0 || measured / 2 < LEAST_BUDGET {
            return Ok(bought);
        }
        let factor = bought.scaled_by * 2.0;
        let half = self.seen(measured / 2, factor, candidate, tick)?;
        Ok(Bought { drift: Some(half.seconds * factor / bought.seconds - 1.0), ..bought })
    }

    /// The traffic with its keys divided by a factor.
    fn traffic(&self, budget: u64, factor: f64) -> Result<Steady, NoShape> {
        let Writes { key_bytes, keys, .. } = self.writes;
        let write = SKIP_LIST_BYTES + 2 * key_bytes as u64;
        let keys = if keys == 0 { 0 } else { ((keys as f64 / factor) as u64).max(1) };
        Steady::new(Writes { keys, ..self.writes }, budget / (BATCHES_PER_BUDGET * write))
    }

    /// The seconds that a budget holds, measured.
    fn seen(
        &self,
        budget: u64,
        factor: f64,
        candidate: Candidate<'_>,
        tick: &mut dyn FnMut(),
    ) -> Result<Seen, SizeError> {
        let (plan, filled) = self.filling(budget, factor, candidate, tick)?;
        let plan = Plan { batches: filled * FILLS, ..plan };
        match candidate {
            Candidate::Tree(make) => {
                let (retained, _) = retention::retain(&plan, &|| make(budget), 1, tick)?;
                let seconds = retained.seconds.expect("it reclaims once the budget is full");
                Ok(Seen { seconds, peak_bytes: retained.peak_bytes })
            }
            Candidate::SkipList(make) => {
                let found = retention::calibrate(&plan, make, tick)?;
                let found = found.ok_or(SizeError::TooSmall { set: candidate.name(), budget })?;
                Ok(Seen { seconds: found.seconds, peak_bytes: found.peak_bytes })
            }
        }
    }

    /// A plan for a budget, and how many batches fill it.
    fn filling(
        &self,
        budget: u64,
        factor: f64,
        candidate: Candidate<'_>,
        tick: &mut dyn FnMut(),
    ) -> Result<(Plan<Steady>, u64), SizeError> {
        let steady = self.traffic(budget, factor)?;
        let writes = u128::from(budget / LEAST_WRITE_BYTES);
        let batches = writes * u128::from(steady.batches_per_second()) / u128::from(self.writes.a_second);
        let plan =
            Plan { budget_bytes: budget, batches: (batches as u64).max(1), traffic: steady, seed: self.seed };
        let filled = match candidate {
            Candidate::Tree(make) => retention::batches_to_fill(&plan, &|| make(budget), tick),
            Candidate::SkipList(make) => retention::batches_to_fill(&plan, make, tick),
        }?;
        let asked = (budget as f64 * factor) as u64;
        let never = SizeError::NeverFull { set: candidate.name(), keys: self.writes.keys, budget: asked };
        match filled.ok_or(never)? {
            1 => Err(SizeError::TooSmall { set: candidate.name(), budget: asked }),
            filled => Ok((plan, filled)),
        }
    }
}

impl Bought {
    fn seconds_a_byte(&self) -> f64 {
        self.seconds / self.budget_bytes as f64
    }
}

impl Candidate<'_> {
    fn name(self) -> &'static str {
        match self {
            Candidate::Tree(_) => "tree",
            Candidate::SkipList(_) => "skip list",
        }
    }
}
