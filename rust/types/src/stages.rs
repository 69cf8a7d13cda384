//! The stages of one batch, under the one name that code, statistics, benches and reports use, and their clock.

use std::time::{Duration, Instant};

/// A stage of one batch, in the order in which they run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Taking the batch in and sorting its endpoints.
    Sort,
    /// Checking read ranges against the history.
    CheckReads,
    /// Deciding conflicts between transactions of the batch.
    WithinBatch,
    /// Uniting the accepted write ranges.
    Combine,
    /// Overlaying them on the history.
    Apply,
    /// Forgetting what is no longer needed.
    Expire,
}

/// All stages, in order.
pub const STAGES: [Stage; 6] =
    [Stage::Sort, Stage::CheckReads, Stage::WithinBatch, Stage::Combine, Stage::Apply, Stage::Expire];

impl Stage {
    /// The stage's name in reports and JSON.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Sort => "sort",
            Stage::CheckReads => "check_reads",
            Stage::WithinBatch => "within_batch",
            Stage::Combine => "combine",
            Stage::Apply => "apply",
            Stage::Expire => "expire",
        }
    }
}

/// Time spent in each stage.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StageTimes([Duration; STAGES.len()]);

impl StageTimes {
    /// The time of one stage.
    pub fn get(&self, stage: Stage) -> Duration {
        self.0[stage as usize]
    }

    /// Adds to the time of one stage.
    pub fn add(&mut self, stage: Stage, time: Duration) {
        self.0[stage as usize] += time;
    }

    /// The time of all stages together.
    pub fn total(&self) -> Duration {
        self.0.iter().sum()
    }
}

/// The clock of a conflict set: off unless asked for, since one reading costs as much as a small batch's stage.
#[derive(Clone, Debug, Default)]
pub struct StageClock {
    times: StageTimes,
    on: bool,
    lap: Option<Instant>,
}

impl StageClock {
    /// Switches the clock on or off; the times so far stay.
    pub fn switch(&mut self, on: bool) {
        self.on = on;
        self.lap = None;
    }

    /// Starts measuring: the next [`StageClock::lap`] counts from here.
    #[inline]
    pub fn start(&mut self) {
        if self.on {
            self.lap = Some(Instant::now());
        }
    }

    /// Ends a stage: the time since the start or the last lap is its.
    #[inline]
    pub fn lap(&mut self, stage: Stage) {
        if self.on {
            let now = Instant::now();
            if let Some(last) = self.lap.replace(now) {
                self.times.add(stage, now - last);
            }
        }
    }

    /// The times so far.
    pub fn times(&self) -> StageTimes {
        self.times
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clock_counts_only_while_it_is_on() {
        let mut clock = StageClock::default();
        clock.start();
        clock.lap(Stage::Sort);
        assert_eq!(clock.times(), StageTimes::default());
        clock.switch(true);
        clock.start();
        std::thread::sleep(Duration::from_millis(1));
        clock.lap(Stage::Apply);
        assert!(clock.times().get(Stage::Apply) > Duration::ZERO);
        assert_eq!(clock.times().get(Stage::Sort), Duration::ZERO);
        assert_eq!(clock.times().total(), clock.times().get(Stage::Apply));
    }

    #[test]
    fn every_stage_stands_at_its_own_index() {
        for (index, stage) in STAGES.into_iter().enumerate() {
            assert_eq!(stage as usize, index, "{}", stage.name());
        }
    }
}
