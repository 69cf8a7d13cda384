//! Timing conflict sets, and one against another: alternating rounds, medians of per-round ratios, a noise floor.

use crate::counts::Counts;
use crate::decide::{Decided, decide};
use crate::input::{Maker, RunError, Source, Step};
use resolver_types::{Batch, ConflictSet, DecisionHasher, STAGES, Stage, Verdicts};
use std::ops::ControlFlow;
use std::time::{Duration, Instant};
use thiserror::Error;

/// A round goes on until its faster candidate has run this long.
const SHORTEST_ROUND: Duration = Duration::from_millis(50);

/// The stages of a batch that the index spends.
const INDEX_STAGES: [Stage; 3] = [Stage::CheckReads, Stage::Apply, Stage::Expire];

/// The time of one pass over the input: making and dropping the history are outside, untimed batches as well.
#[derive(Clone, Copy, Debug, Default)]
pub struct Pass {
    /// The whole, in seconds.
    pub seconds: f64,
    /// Each stage, in seconds; zero unless the stage clock was on.
    pub stages: [f64; STAGES.len()],
    /// What the history held at the end.
    pub memory_bytes: u64,
}

impl Pass {
    /// Runs the input once through a fresh set, with or without the stage clock. Of a prepared input, the stage clock gives the
    /// whole, too.
    ///
    /// # Errors
    /// When the set cannot be made or refuses a batch.
    pub fn run(source: &dyn Source, make: Maker<'_>, stage_clock: bool) -> Result<Pass, RunError> {
        let mut set = make()?;
        let mut verdicts = Verdicts::default();
        let mut batch_number = 0;
        let mut run = |step: Step<'_>, set: &mut dyn ConflictSet| match step {
            Step::Clear(version) => {
                set.clear(version);
                Ok(())
            }
            Step::Batch(batch) => {
                batch_number += 1;
                decide_numbered(set, batch_number - 1, &batch, &mut verdicts).map(drop)
            }
        };
        let mut untimed = source.untimed();
        let mut seconds = 0.0;
        source.stretches(&mut |views, _| {
            let mut steps = views.steps();
            for step in steps.by_ref().take(untimed) {
                run(step, &mut *set)?;
                untimed -= 1;
            }
            set.time_stages(stage_clock || source.index_alone());
            let start = Instant::now();
            for step in steps {
                run(step, &mut *set)?;
            }
            seconds += start.elapsed().as_secs_f64();
            set.time_stages(false);
            Ok(ControlFlow::Continue(()))
        })?;
        let times = set.stage_times();
        let mut stages = STAGES.map(|stage| times.get(stage).as_secs_f64());
        if source.index_alone() {
            for stage in STAGES.into_iter().filter(|stage| !INDEX_STAGES.contains(stage)) {
                stages[stage as usize] = 0.0;
            }
            seconds = stages.iter().sum();
        }
        Ok(Pass { seconds, stages, memory_bytes: set.memory_bytes() })
    }

    fn add(&mut self, other: &Pass) {
        self.seconds += other.seconds;
        self.stages.iter_mut().zip(other.stages).for_each(|(sum, stage)| *sum += stage);
        self.memory_bytes = other.memory_bytes;
    }

    fn divide(&mut self, passes: f64) {
        self.seconds /= passes;
        self.stages.iter_mut().for_each(|stage| *stage /= passes);
    }

    /// The median of each time.
    pub fn median(passes: &[Pass]) -> Pass {
        let of = |value: &dyn Fn(&Pass) -> f64| median(passes.iter().map(value).collect());
        Pass {
            seconds: of(&|pass| pass.seconds),
            stages: std::array::from_fn(|stage| of(&|pass| pass.stages[stage])),
            memory_bytes: passes.last().map_or(0, |pass| pass.memory_bytes),
        }
    }
}

/// The median; of an even number of values, the mean of the two in the middle.
///
/// # Panics
/// Without values.
fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    if values.len() % 2 == 1 { values[middle] } else { (values[middle - 1] + values[middle]) / 2.0 }
}

/// Why a measurement has no result.
#[derive(Clone, Debug, Error)]
pub enum MeasureError {
    /// A candidate could not be made, or refused a batch.
    #[error(transparent)]
    Run(#[from] RunError),
    /// The input has no batch that is timed.
    #[error("there is no batch to time")]
    NothingToTime,
    /// The candidates decide differently; their times mean nothing.
    #[error(
        "the candidates decide differently: decision hash {index} against {against}; {by_cutoff} transactions \
         were too old by a cutoff alone, and after {fallbacks} batches a history was cleared"
    )]
    Decisions {
        /// The measured candidate's hash.
        index: String,
        /// The other's.
        against: String,
        /// What a budget that is too small would explain: transactions that were too old by either's cutoff alone.
        by_cutoff: u64,
        /// And batches whose writes one of them could not hold.
        fallbacks: u64,
    },
}

/// What a measurement found.
#[derive(Clone, Debug)]
pub struct Measured {
    /// The decisions about the timed batches, equal for both candidates.
    pub counts: Counts,
    /// The hash over all decisions, those about untimed batches included.
    pub decision_hash: String,
    /// Per round, the candidate's time over the other's (over its own second run where there is no other).
    pub rounds: Vec<f64>,
    /// The median of the rounds; `None` without another candidate.
    pub ratio: Option<f64>,
    /// How far apart the ratios of a candidate against itself lie, 1 included: a smaller difference means nothing.
    pub noise: f64,
    /// Per stage, the median of per-round ratios; `None` without another candidate, or where it spent no time.
    pub stage_ratios: [Option<f64>; STAGES.len()],
    /// The medians of the candidate and, where there is one, of the other: whole passes without the stage clock, stages
    /// from rounds of their own.
    pub candidates: Vec<Pass>,
}

/// How many times [`measure`] will call its `tick`.
pub fn measure_ticks(rounds: usize, against: bool) -> u64 {
    (1 + 2 * rounds + if against { 1 + rounds } else { 0 }) as u64
}

/// Measures `index`, against another candidate if there is one, in `rounds` alternating rounds after an excluded warm-up
/// each. `tick` is called after each warm-up and each round.
///
/// # Errors
/// When a set cannot be made or refuses a batch, nothing is timed, or the candidates' decisions differ.
///
/// # Panics
/// With no rounds.
pub fn measure(
    source: &dyn Source,
    index: Maker<'_>,
    against: Option<Maker<'_>>,
    rounds: usize,
    tick: &mut dyn FnMut(),
) -> Result<Measured, MeasureError> {
    assert!(rounds > 0, "a measurement has at least one round");
    let WarmUp { counts, decision_hash, .. } = warm_up(source, index)?;
    tick();
    if counts.batches == 0 {
        return Err(MeasureError::NothingToTime);
    }
    if let Some(against) = against {
        let other = warm_up(source, against)?;
        tick();
        agree((&counts, &decision_hash), &other)?;
    }
    let pair = [index, against.unwrap_or(index)];
    let whole = run_rounds(source, pair, rounds, false, tick)?;
    let itself = match against {
        Some(against) => ratios(&run_rounds(source, [against, against], rounds, false, tick)?, whole_time),
        None => ratios(&whole, whole_time),
    };
    let staged = run_rounds(source, pair, rounds, true, tick)?;

    let rounds = ratios(&whole, whole_time);
    let candidate = |side: usize| {
        let side_of =
            |rounds: &[[Pass; 2]]| Pass::median(&rounds.iter().map(|round| round[side]).collect::<Vec<_>>());
        Pass { seconds: side_of(&whole).seconds, ..side_of(&staged) }
    };
    Ok(Measured {
        counts,
        decision_hash,
        ratio: against.map(|_| median(rounds.clone())),
        noise: itself.iter().fold(1.0, |most, &ratio| ratio.max(most))
            - itself.iter().fold(1.0, |least, &ratio| ratio.min(least)),
        stage_ratios: std::array::from_fn(|stage| {
            let ratio = median(ratios(&staged, |pass| pass.stages[stage]));
            against.is_some().then_some(ratio).filter(|ratio| ratio.is_finite())
        }),
        candidates: (0..if against.is_some() { 2 } else { 1 }).map(candidate).collect(),
        rounds,
    })
}

/// What a measurement of several candidates found.
#[derive(Clone, Debug)]
pub struct MeasuredRow {
    /// The decisions about the timed batches, equal for all candidates.
    pub counts: Counts,
    /// The hash over all decisions, those about untimed batches included.
    pub decision_hash: String,
    /// In the order of the makers.
    pub candidates: Vec<MeasuredCandidate>,
}

/// One candidate of several.
#[derive(Clone, Debug)]
pub struct MeasuredCandidate {
    /// The median of each time, stages included, with the stage clock on.
    pub pass: Pass,
    /// The median of the rounds' ratios of the whole time over the first candidate's.
    pub ratio: f64,
    /// What its set counted in one pass.
    pub counters: Vec<(&'static str, u64)>,
}

/// How many times [`measure_row`] will call its `tick`.
pub fn measure_row_ticks(candidates: usize, rounds: usize) -> u64 {
    (candidates * (1 + rounds)) as u64
}

/// Measures several candidates in `rounds` rounds after an excluded warm-up each: in a round each runs once, and another
/// one starts. `tick` is called after each pass.
///
/// # Errors
/// When a set cannot be made or refuses a batch, nothing is timed, or a candidate's decisions are not the first one's.
///
/// # Panics
/// With no rounds, or no candidates.
pub fn measure_row(
    source: &dyn Source,
    makers: &[Maker<'_>],
    rounds: usize,
    tick: &mut dyn FnMut(),
) -> Result<MeasuredRow, MeasureError> {
    assert!(rounds > 0 && !makers.is_empty(), "a measurement has at least one round of one candidate");
    let mut warm = Vec::with_capacity(makers.len());
    for make in makers {
        warm.push(warm_up(source, *make)?);
        tick();
        agree((&warm[0].counts, &warm[0].decision_hash), &warm[warm.len() - 1])?;
    }
    if warm[0].counts.batches == 0 {
        return Err(MeasureError::NothingToTime);
    }
    let mut passes = vec![Vec::with_capacity(rounds); makers.len()];
    for round in 0..rounds {
        for turn in 0..makers.len() {
            let at = (round + turn) % makers.len();
            passes[at].push(Pass::run(source, makers[at], true)?);
            tick();
        }
    }
    let ratio = |own: &[Pass]| {
        median(own.iter().zip(&passes[0]).map(|(own, first)| own.seconds / first.seconds).collect())
    };
    let (counts, decision_hash) = (warm[0].counts, warm[0].decision_hash.clone());
    let candidates = passes.iter().zip(warm).map(|(own, warm)| MeasuredCandidate {
        pass: Pass::median(own),
        ratio: ratio(own),
        counters: warm.counters,
    });
    Ok(MeasuredRow { counts, decision_hash, candidates: candidates.collect() })
}

/// What a pass outside the figures found.
struct WarmUp {
    counts: Counts,
    decision_hash: String,
    counters: Vec<(&'static str, u64)>,
}

/// Whether two candidates decide alike.
fn agree((counts, decision_hash): (&Counts, &str), other: &WarmUp) -> Result<(), MeasureError> {
    if other.decision_hash == decision_hash {
        return Ok(());
    }
    Err(MeasureError::Decisions {
        index: decision_hash.to_owned(),
        against: other.decision_hash.clone(),
        by_cutoff: counts.too_old_by_cutoff + other.counts.too_old_by_cutoff,
        fallbacks: counts.fallbacks + other.counts.fallbacks,
    })
}

/// One pass outside the figures: it finds the decisions.
fn warm_up(source: &dyn Source, make: Maker<'_>) -> Result<WarmUp, RunError> {
    let mut set = make()?;
    let (mut hasher, mut counts, mut verdicts) =
        (DecisionHasher::default(), Counts::default(), Verdicts::default());
    let mut batch_number = 0;
    let mut untimed = source.untimed();
    source.stretches(&mut |views, _| {
        for step in views.steps() {
            match step {
                Step::Clear(version) => set.clear(version),
                Step::Batch(batch) => {
                    let decided = decide_numbered(&mut *set, batch_number, &batch, &mut verdicts)?;
                    batch_number += 1;
                    hasher.add(&verdicts);
                    if untimed == 0 {
                        counts.add(&batch, &verdicts, &decided);
                    }
                }
            }
            untimed = untimed.saturating_sub(1);
        }
        Ok(ControlFlow::Continue(()))
    })?;
    Ok(WarmUp { counts, decision_hash: hasher.hex(), counters: set.counters() })
}

fn decide_numbered(
    set: &mut dyn ConflictSet,
    batch_number: u64,
    batch: &Batch<'_>,
    verdicts: &mut Verdicts,
) -> Result<Decided, RunError> {
    decide(set, batch, verdicts).map_err(|source| RunError::Refused {
        set: set.name(),
        batch: batch_number,
        source,
    })
}

/// Per round, the time of a single pass of each candidate. The candidate that starts changes from round to round; a short
/// input is repeated, by both equally often.
fn run_rounds(
    source: &dyn Source,
    pair: [Maker<'_>; 2],
    rounds: usize,
    stage_clock: bool,
    tick: &mut dyn FnMut(),
) -> Result<Vec<[Pass; 2]>, RunError> {
    let mut measured = Vec::with_capacity(rounds);
    for round in 0..rounds {
        let mut sums = [Pass::default(); 2];
        let mut passes = 0.0;
        while sums[0].seconds.min(sums[1].seconds) < SHORTEST_ROUND.as_secs_f64() {
            for turn in 0..2 {
                let side = (round + turn) % 2;
                sums[side].add(&Pass::run(source, pair[side], stage_clock)?);
            }
            passes += 1.0;
        }
        sums.iter_mut().for_each(|sum| sum.divide(passes));
        measured.push(sums);
        tick();
    }
    Ok(measured)
}

fn whole_time(pass: &Pass) -> f64 {
    pass.seconds
}

fn ratios(rounds: &[[Pass; 2]], time: impl Fn(&Pass) -> f64) -> Vec<f64> {
    rounds.iter().map(|[index, against]| time(index) / time(against)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_is_between_the_two_in_the_middle() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), 2.0);
        assert_eq!(median(vec![4.0, 1.0, 2.0, 8.0]), 3.0);
    }
}
