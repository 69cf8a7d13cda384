//! How much history fits a budget: the tree's, and the skip list's.
//!
//! Both replay the long trace, or traffic of another shape. Of the skip list, which has no budget, the largest fixed window is sought whose peak stays within it. The tree
//! reclaims by itself: what counts is the smallest age of its cutoff once it has begun to. That the history down to the cutoff is
//! really there is not believed but asked: see [`Known`].

mod known;

use crate::decide::decide;
use crate::generators::long_trace::{
    BATCHES_PER_SECOND, LongTrace, Mixture, READ_LAG_BATCHES, VERSION_STEP, VERSIONS_PER_SECOND,
};
use crate::generators::{Generator, Scale};
use crate::input::{Maker, RunError};
use crate::process::ResidentPeak;
use crate::{BatchBuf, Rng};
use known::Known;
use resolver_types::{Batch, ConflictSet, Verdict, Verdicts, Version};
use serde::Serialize;
use std::time::{Duration, Instant};

/// A window is sought to one part in so many of what fills the budget without expiry, or until the budget is used
/// up to one part in so many.
const WINDOW_PARTS: u64 = 64;
const USED_UP_PARTS: u64 = 64;

/// Tries before those over the whole trace, and for how many windows each goes on: filled once, and then long
/// enough for the expiry, which goes round about once in a window, to have met all that it fills.
const SHORT_TRIES: usize = 2;
const WINDOWS_PER_TRY: u64 = 4;

/// The follower keeps this many batches: twice what any transaction looks back.
const FOLLOWER_BATCHES: u64 = 2 * READ_LAG_BATCHES;

/// The history is probed at least so often in a run, and at least every so many batches.
const PROBE_ROUNDS: u64 = 16;
const PROBE_EVERY: u64 = 256;

/// What is replayed, and what for.
#[derive(Clone, Copy, Debug)]
pub struct Plan<T = TraceShape> {
    /// The budget of either history.
    pub budget_bytes: u64,
    /// How many batches of the traffic.
    pub batches: u64,
    /// What the batches are.
    pub traffic: T,
    /// Their seed.
    pub seed: u64,
}

/// Batches without an end, as many every second.
pub trait Traffic: Copy {
    /// How many versions so many batches take.
    fn versions(&self, batches: u64) -> i64;

    /// Batches a second.
    fn batches_per_second(&self) -> u64;

    /// Makes the batches, from the first.
    fn generator(&self) -> Generator;

    /// How many seconds so many batches take.
    fn seconds(&self, batches: u64) -> f64 {
        batches as f64 / self.batches_per_second() as f64
    }
}

/// Which long trace.
#[derive(Clone, Copy, Debug)]
pub struct TraceShape {
    /// The length of its keys.
    pub key_bytes: usize,
    /// Its mixture.
    pub mixture: Mixture,
}

impl Traffic for TraceShape {
    fn versions(&self, batches: u64) -> i64 {
        batches as i64 * VERSION_STEP
    }

    fn batches_per_second(&self) -> u64 {
        BATCHES_PER_SECOND
    }

    fn generator(&self) -> Generator {
        let mut trace = LongTrace::new(self.key_bytes, self.mixture, Scale::FULL);
        Box::new(move |index, rng| trace.batch(index, rng))
    }
}

impl<T: Traffic> Plan<T> {
    /// The batches of the traffic, from the first.
    fn trace(&self) -> impl Iterator<Item = BatchBuf> + use<T> {
        let mut make = self.traffic.generator();
        let mut rng = Rng::new(self.seed);
        (0..self.batches).map(move |index| make(index, &mut rng))
    }

    /// A batch as seen by a history that keeps `window` batches; without a window, by one that keeps all.
    fn with_window<'a>(&self, batch: Batch<'a>, window: Option<u64>) -> Batch<'a> {
        let oldest =
            window.map_or(Version::LOWEST, |window| Version(batch.version.0 - self.traffic.versions(window)));
        Batch { oldest, ..batch }
    }
}

/// Seconds of that many versions.
pub fn seconds(versions: i64) -> f64 {
    versions as f64 / VERSIONS_PER_SECOND as f64
}

fn numbered(set: &'static str, batch: u64) -> impl Fn(resolver_types::BatchError) -> RunError {
    move |source| RunError::Refused { set, batch, source }
}

/// The largest window of a history without a budget.
#[derive(Clone, Debug)]
pub struct Calibrated {
    /// The window, in seconds.
    pub seconds: f64,
    /// The most that the history held with it, by its own count.
    pub peak_bytes: u64,
    /// The same as the process saw it.
    pub process_bytes: Option<u64>,
    /// What else was tried: windows in seconds, and whether each fitted.
    pub tried: Vec<(f64, bool)>,
}

/// Finds the largest fixed window with which a history stays within the budget. First, how many batches fill it
/// without any expiry; then short tries, each of which says by its peak, nearly in proportion to the window, what to
/// try next; then tries over the whole trace, since a history also fills slowly. The one that is accepted has run
/// over the whole, and uses the budget up or is followed by one that does not fit. `None` where the trace is too
/// short to fill the budget, or the budget too small for the shortest window.
///
/// # Errors
/// When the history cannot be made, or refuses a batch.
pub fn calibrate<T: Traffic>(
    plan: &Plan<T>,
    make: Maker<'_>,
    tick: &mut dyn FnMut(),
) -> Result<Option<Calibrated>, RunError> {
    let resident = ResidentPeak::start();
    let budget = plan.budget_bytes;
    let Some(mut too_large) = batches_to_fill(plan, make, tick)? else { return Ok(None) };
    let step = (too_large / WINDOW_PARTS).max(1);
    let mut tried = Vec::new();
    let mut guess = too_large * 5 / 8;
    let by_share =
        |window: u64, peak: u64| (u128::from(window) * u128::from(budget) / u128::from(peak.max(1))) as u64;
    for _ in 0..SHORT_TRIES {
        if too_large < 2 {
            break;
        }
        guess = guess.clamp(1, too_large - 1);
        let found = try_window(plan, make, Some(guess), guess * WINDOWS_PER_TRY, tick)?;
        tried.push((plan.traffic.seconds(guess), found.peak_bytes <= budget));
        if found.peak_bytes > budget {
            too_large = guess;
        }
        guess = by_share(guess, found.peak_bytes);
    }
    let mut fits = 0;
    let mut accepted = None;
    while too_large - fits > step {
        guess = guess.clamp(fits + 1, too_large - 1);
        resident.inspect(|resident| resident.reset());
        let found = try_window(plan, make, Some(guess), plan.batches, tick)?;
        let fitted = found.peak_bytes <= budget;
        tried.push((plan.traffic.seconds(guess), fitted));
        if fitted {
            fits = guess;
            accepted = Some(Calibrated {
                seconds: plan.traffic.seconds(guess),
                peak_bytes: found.peak_bytes,
                process_bytes: resident.and_then(|resident| resident.above_start()),
                tried: Vec::new(),
            });
            if found.peak_bytes >= budget - budget / USED_UP_PARTS {
                break;
            }
            guess = by_share(guess, found.peak_bytes).max(fits + step);
        } else {
            too_large = guess;
            guess = by_share(guess, found.peak_bytes);
        }
    }
    Ok(accepted.map(|accepted| Calibrated { tried, ..accepted }))
}

/// After how many batches the plan's budget is full when nothing expires: passed, or about to be, so that a history that
/// has a budget gives up its oldest. `None` if the plan's batches do not fill it.
///
/// # Errors
/// When the history cannot be made, or refuses a batch.
pub fn batches_to_fill<T: Traffic>(
    plan: &Plan<T>,
    make: Maker<'_>,
    tick: &mut dyn FnMut(),
) -> Result<Option<u64>, RunError> {
    let tried = try_window(plan, make, None, plan.batches, tick)?;
    Ok(tried.full.then_some(tried.batches))
}

/// The most that a history without a budget holds with a fixed window of so many batches, by its own count. What the plan
/// says of a budget does not matter.
///
/// # Errors
/// When the history cannot be made, or refuses a batch.
pub fn peak_of_window<T: Traffic>(
    plan: &Plan<T>,
    make: Maker<'_>,
    window: u64,
    tick: &mut dyn FnMut(),
) -> Result<u64, RunError> {
    let unbound = Plan { budget_bytes: u64::MAX, ..*plan };
    Ok(try_window(&unbound, make, Some(window), plan.batches, tick)?.peak_bytes)
}

struct Tried {
    peak_bytes: u64,
    /// Whether the budget was passed, or the history gave something up to stay within it.
    full: bool,
    /// How many batches it took: all that were asked for, or those after which the history held far more than the
    /// budget.
    batches: u64,
}

/// Replays so many batches with a window. Without one, until the budget is full.
fn try_window<T: Traffic>(
    plan: &Plan<T>,
    make: Maker<'_>,
    window: Option<u64>,
    batches: u64,
    tick: &mut dyn FnMut(),
) -> Result<Tried, RunError> {
    let mut set = make()?;
    let mut verdicts = Verdicts::default();
    let name = set.name();
    // A window that is a little too large tells by how much.
    let limit = if window.is_some() {
        plan.budget_bytes.saturating_add(plan.budget_bytes / 4)
    } else {
        plan.budget_bytes
    };
    let (mut done, mut full) = (0, false);
    for buf in plan.trace().take(usize::try_from(batches).unwrap_or(usize::MAX)) {
        let ranges = buf.ranges();
        let batch = plan.with_window(buf.batch(&ranges), window);
        let decided = decide(&mut *set, &batch, &mut verdicts).map_err(numbered(name, done))?;
        done += 1;
        tick();
        let given_up = decided.fell_back || window.is_none() && set.cutoff().is_some();
        full = given_up || set.peak_memory_bytes() > limit;
        if full {
            break;
        }
    }
    Ok(Tried { peak_bytes: set.peak_memory_bytes(), full, batches: done })
}

/// A batch of a replay under a budget, after its commit.
#[derive(Clone, Copy, Debug)]
pub struct Moment {
    /// The batch, counted from 0.
    pub batch: u64,
    /// The age of the cutoff, in seconds; `None` before the first reclamation.
    pub retained_seconds: Option<f64>,
    /// What the history holds.
    pub memory_bytes: u64,
    /// The time that judging and committing took.
    pub time: Duration,
}

/// A replay under a budget.
#[derive(Clone, Copy, Debug)]
pub struct Retained {
    /// The smallest age of the cutoff after any batch, in seconds; `None` if nothing was reclaimed.
    pub seconds: Option<f64>,
    /// When reclamation began, in seconds of the trace.
    pub begun_seconds: Option<f64>,
    /// The most that the history held, by its own count.
    pub peak_bytes: u64,
    /// The same as the process saw it.
    pub process_bytes: Option<u64>,
    /// Over the last tenth of the run: how far the retained time went up, in parts of what it was.
    pub retained_change: Option<f64>,
    /// The same of the memory held.
    pub memory_change: f64,
}

/// Replays the trace through a history that has the plan's budget, as often as asked, and gives every batch the least time that it took.
///
/// # Errors
/// When the history cannot be made, or refuses a batch.
///
/// # Panics
/// Without a replay.
pub fn retain<T: Traffic>(
    plan: &Plan<T>,
    make: Maker<'_>,
    replays: usize,
    tick: &mut dyn FnMut(),
) -> Result<(Retained, Vec<Moment>), RunError> {
    assert!(replays > 0, "something is replayed");
    let (retained, mut moments) = retain_once(plan, make, tick)?;
    for _ in 1..replays {
        let (_, again) = retain_once(plan, make, tick)?;
        moments.iter_mut().zip(again).for_each(|(moment, again)| moment.time = moment.time.min(again.time));
    }
    Ok((retained, moments))
}

fn retain_once<T: Traffic>(
    plan: &Plan<T>,
    make: Maker<'_>,
    tick: &mut dyn FnMut(),
) -> Result<(Retained, Vec<Moment>), RunError> {
    let resident = ResidentPeak::start();
    resident.inspect(|resident| resident.reset());
    let mut set = make()?;
    let name = set.name();
    let mut verdicts = Verdicts::default();
    let mut retained = Retained {
        seconds: None,
        begun_seconds: None,
        peak_bytes: 0,
        process_bytes: None,
        retained_change: None,
        memory_change: 0.0,
    };
    let mut moments = Vec::with_capacity(plan.batches as usize);
    for (index, buf) in (0..).zip(plan.trace()) {
        let ranges = buf.ranges();
        let batch = plan.with_window(buf.batch(&ranges), None);
        let start = Instant::now();
        set.judge(&batch, &mut verdicts)
            .and_then(|()| set.commit(&batch, &verdicts))
            .map_err(numbered(name, index))?;
        let time = start.elapsed();
        let age = set.cutoff().map(|cutoff| seconds(batch.version.0 - cutoff.0));
        let moment = Moment { batch: index, retained_seconds: age, memory_bytes: set.memory_bytes(), time };
        if let Some(age) = age {
            retained.seconds = Some(retained.seconds.map_or(age, |least| least.min(age)));
            retained.begun_seconds.get_or_insert(plan.traffic.seconds(index));
        }
        moments.push(moment);
        tick();
    }
    if let [.., last] = &moments[..] {
        let then = moments[moments.len() / 10 * 9];
        let change = |then: f64, now: f64| now / then - 1.0;
        retained.retained_change =
            then.retained_seconds.zip(last.retained_seconds).map(|(then, now)| change(then, now));
        retained.memory_change = change(then.memory_bytes as f64, last.memory_bytes as f64);
    }
    retained.peak_bytes = set.peak_memory_bytes();
    retained.process_bytes = resident.and_then(|resident| resident.above_start());
    Ok((retained, moments))
}

/// How long batches took once reclamation had begun.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct BatchTimes {
    /// How many batches.
    pub batches: u64,
    /// The median, in microseconds.
    pub median_us: f64,
    /// All but one in a hundred took no longer, in microseconds.
    pub p99_us: f64,
    /// All but one in a thousand took no longer, in microseconds.
    pub p999_us: f64,
    /// The longest, in microseconds.
    pub max_us: f64,
}

impl BatchTimes {
    /// The times of a replay's batches since its first reclamation; `None` if there was none.
    pub fn under_reclamation(moments: &[Moment]) -> Option<BatchTimes> {
        let under = moments.iter().filter(|moment| moment.retained_seconds.is_some());
        let mut times: Vec<Duration> = under.map(|moment| moment.time).collect();
        times.sort_unstable();
        let last = times.len().checked_sub(1)?;
        // The least time that so many thousandths of all do not exceed.
        let at = |thousandths: usize| {
            times[(times.len() * thousandths).div_ceil(1_000).saturating_sub(1)].as_secs_f64() * 1e6
        };
        Some(BatchTimes {
            batches: times.len() as u64,
            median_us: at(500),
            p99_us: at(990),
            p999_us: at(999),
            max_us: times[last].as_secs_f64() * 1e6,
        })
    }
}

/// How a history under a budget was held against what is known.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Checked {
    /// Transactions decided.
    pub decisions: u64,
    /// Of them, those that the follower could decide as well.
    pub compared: u64,
    /// Of those, the ones it decided otherwise.
    pub mismatches: u64,
    /// Probes: reads of keys whose last write is known, between the cutoff and now.
    pub probes: u64,
    /// Of them, those that had to find a conflict.
    pub probe_conflicts: u64,
    /// The oldest read version of a probe that had to find one, in seconds before its batch.
    pub deepest_probe_seconds: f64,
    /// Probes decided otherwise.
    pub probe_failures: u64,
}

impl Checked {
    /// Whether nothing was decided otherwise.
    pub fn all_equal(&self) -> bool {
        self.mismatches == 0 && self.probe_failures == 0
    }
}

/// Replays the trace through a history under the plan's budget, beside a follower that has none, and probes it.
///
/// The follower is told the cutoff, judges every batch for itself, and then commits what the checked history did, so that the two go on with the same
/// writes. It keeps a window of its own, longer than any transaction of the trace looks back, so that it stays small and yet decides all.
/// How far back the checked history reaches is for the probes to say.
///
/// # Errors
/// When a history cannot be made, or refuses a batch.
pub fn check<T: Traffic>(
    plan: &Plan<T>,
    make: Maker<'_>,
    make_follower: Maker<'_>,
    tick: &mut dyn FnMut(),
) -> Result<Checked, RunError> {
    let (mut set, mut follower) = (make()?, make_follower()?);
    let (name, follower_name) = (set.name(), follower.name());
    let (mut found, mut other) = (Verdicts::default(), Verdicts::default());
    let mut checked = Checked::default();
    let mut known = Known::new(plan.budget_bytes, plan.seed);
    let probe_every = (plan.batches / PROBE_ROUNDS).clamp(1, PROBE_EVERY);
    for (index, buf) in (0..).zip(plan.trace()) {
        let ranges = buf.ranges();
        let batch = plan.with_window(buf.batch(&ranges), None);
        let followed = plan.with_window(batch, Some(FOLLOWER_BATCHES));
        let cutoff = set.cutoff();
        set.judge(&batch, &mut found).map_err(numbered(name, index))?;
        if let Some(cutoff) = cutoff {
            follower.set_floor(cutoff);
        }
        follower.judge(&followed, &mut other).map_err(numbered(follower_name, index))?;
        for (transaction, pair) in batch.transactions.iter().zip(found.verdicts.iter().zip(&other.verdicts)) {
            checked.decisions += 1;
            let undecided = transaction.reads > 0
                && transaction.read_version < followed.oldest
                && cutoff.is_none_or(|cutoff| transaction.read_version >= cutoff);
            if !undecided {
                checked.compared += 1;
                checked.mismatches += u64::from(pair.0 != pair.1);
            }
        }
        set.commit(&batch, &found).map_err(numbered(name, index))?;
        follower.commit(&followed, &found).map_err(numbered(follower_name, index))?;
        known.note(&batch, &found);
        if (index + 1) % probe_every == 0 {
            probe(&mut *set, &mut known, &mut checked, batch.version).map_err(numbered(name, index))?;
        }
        tick();
    }
    Ok(checked)
}

/// Has the history judge a batch of known answers. It is not committed.
fn probe(
    set: &mut dyn ConflictSet,
    known: &mut Known,
    checked: &mut Checked,
    now: Version,
) -> Result<(), resolver_types::BatchError> {
    let probes = known.probes(set.cutoff().unwrap_or(Version::ZERO), now);
    let ranges = probes.batch.ranges();
    let mut verdicts = Verdicts::default();
    set.judge(&probes.batch.batch(&ranges), &mut verdicts)?;
    for ((verdict, expected), transaction) in
        verdicts.verdicts.iter().zip(&probes.expected).zip(probes.batch.transactions())
    {
        checked.probes += 1;
        checked.probe_failures += u64::from(verdict != expected);
        if *expected == Verdict::Conflict {
            checked.probe_conflicts += 1;
            let depth = seconds(now.0 - transaction.read_version.0);
            checked.deepest_probe_seconds = checked.deepest_probe_seconds.max(depth);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_of_the_batches_under_reclamation_alone() {
        let moment = |micros: u64, retained_seconds| Moment {
            batch: 0,
            retained_seconds,
            memory_bytes: 0,
            time: Duration::from_micros(micros),
        };
        let mut moments = vec![moment(1_000_000, None); 5];
        assert_eq!(BatchTimes::under_reclamation(&moments), None);
        moments.extend((1..=2_000).rev().map(|micros| moment(micros, Some(1.0))));
        let times = BatchTimes::under_reclamation(&moments).expect("there was reclamation");
        assert_eq!((times.batches, times.median_us.round(), times.p99_us.round()), (2_000, 1_000.0, 1_980.0));
        assert_eq!((times.p999_us.round(), times.max_us.round()), (1_998.0, 2_000.0));
    }
}
