//! What a read of the whole key space costs: node visits and time, over histories of any size.
//!
//! Small intervals fill the history. Then a few are written anew, and everything but them is read by transactions that have seen all
//! the others: the greatest stamps have to answer for what lies between a read's two edges, whatever its size.

use crate::{TreeConfig, TreeSet};
use resolver_index::{ConfigError, Stats};
use resolver_types::{Batch, BatchError, ConflictSet, KeyRange, Transaction, Verdict, Verdicts, Version};
use std::time::Instant;
use thiserror::Error;

/// How many intervals the history holds, one measurement each.
pub const SIZES: [u64; 3] = [50_000, 500_000, 5_000_000];

/// How many times the time of as many point reads the wide reads of a case may take.
pub const TIME_BAR: f64 = 20.0;

/// A read visits each level at most three times: on the descent to its begin, and along both of its edges.
const VISITS_PER_LEVEL: u64 = 3;

/// How many reads are timed at once.
const READS: usize = 1_000;

/// How often; the median counts.
const TIMES: usize = 9;

/// Intervals that are written in one batch.
const BATCH: u64 = 10_000;

/// Intervals that are crowded into one gap, so that leaves and inner nodes split there.
const CROWD: u64 = 20_000;

/// Why a measurement has no result.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum WideReadsError {
    /// The tree could not be made.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The tree refused a batch.
    #[error(transparent)]
    Batch(#[from] BatchError),
    /// The budget does not hold the intervals: older ones were given up.
    #[error("the budget does not hold {intervals} intervals")]
    Reclaimed {
        /// The intervals that should have been held.
        intervals: u64,
    },
}

/// One kind of wide read.
#[derive(Clone, Copy, Debug)]
pub struct WideRead {
    /// What is newer than the read, and where.
    pub name: &'static str,
    /// Whether the read is to be in conflict, since what is newer lies in it.
    pub conflict: bool,
    /// Whether it was.
    pub found_conflict: bool,
    /// Nodes that one read visits.
    pub visits: u64,
    /// Of 1,000 such reads, in seconds.
    pub seconds: f64,
}

/// What was measured over one history.
#[derive(Clone, Debug)]
pub struct WideReads {
    /// The intervals that the history holds at first.
    pub intervals: u64,
    /// Levels of the tree.
    pub height: u64,
    /// Of 1,000 point reads that have to look at their leaves, since they have seen half the history, in seconds.
    pub point_seconds: f64,
    /// Of 1,000 point reads that have seen as much as the wide ones, most of which the greatest stamps answer, in seconds.
    pub pruned_point_seconds: f64,
    /// Each kind of wide read.
    pub reads: Vec<WideRead>,
}

impl WideReads {
    /// The most nodes that a read may visit.
    pub fn most_visits(&self) -> u64 {
        VISITS_PER_LEVEL * self.height
    }

    /// What is wrong: reads that are not decided as they must be, or that visit more nodes than the height allows.
    pub fn failures(&self) -> Vec<String> {
        let most = self.most_visits();
        let wrong = |read: &WideRead| {
            let WideRead { name, conflict, found_conflict, visits, .. } = *read;
            if conflict != found_conflict {
                Some(format!("{} intervals, {name}: conflict {found_conflict}", self.intervals))
            } else if visits > most {
                Some(format!("{} intervals, {name}: {visits} visits, at most {most} allowed", self.intervals))
            } else {
                None
            }
        };
        self.reads.iter().filter_map(wrong).collect()
    }
}

/// Keys of equal length, one after the other.
#[derive(Default)]
struct Keys(Vec<u8>);

/// A letter and two numbers, big-endian: intervals by number, and places in the gap behind one.
const KEY_LENGTH: usize = 13;

impl Keys {
    fn push(&mut self, number: u64, place: u32) {
        self.0.push(b'k');
        self.0.extend_from_slice(&number.to_be_bytes());
        self.0.extend_from_slice(&place.to_be_bytes());
    }

    fn get(&self, at: usize) -> &[u8] {
        &self.0[at * KEY_LENGTH..][..KEY_LENGTH]
    }
}

/// An interval's begin and end: two neighbouring numbers, with a gap of one behind them.
fn push_interval(keys: &mut Keys, interval: u64) {
    keys.push(3 * interval, 0);
    keys.push(3 * interval + 1, 0);
}

/// A key behind all others.
const LAST: &[u8] = &[0xff];

/// A history under measurement.
struct History {
    set: TreeSet,
    version: Version,
    verdicts: Verdicts,
}

impl History {
    /// Gives the intervals between each pair of keys the next version.
    fn write(&mut self, keys: &Keys) -> Result<(), BatchError> {
        let count = keys.0.len() / KEY_LENGTH / 2;
        let ranges: Vec<KeyRange<'_>> =
            (0..count).map(|at| KeyRange { begin: keys.get(2 * at), end: keys.get(2 * at + 1) }).collect();
        let transaction = Transaction {
            read_version: self.version,
            report: false,
            first: 0,
            reads: 0,
            writes: ranges.len() as u32,
        };
        self.version.0 += 1;
        let batch = Batch {
            version: self.version,
            oldest: Version(-1),
            transactions: &[transaction],
            ranges: &ranges,
        };
        self.set.judge(&batch, &mut self.verdicts)?;
        self.set.commit(&batch, &self.verdicts)
    }

    /// All but the newest version.
    fn seen(&self) -> Version {
        Version(self.version.0 - 1)
    }

    /// Judges one transaction for each read; returns seconds.
    fn judge(&mut self, reads: &[KeyRange<'_>], read_version: Version) -> Result<f64, BatchError> {
        let transaction = |first: usize| Transaction {
            read_version,
            report: false,
            first: first as u32,
            reads: 1,
            writes: 0,
        };
        let transactions: Vec<Transaction> = (0..reads.len()).map(transaction).collect();
        let batch = Batch {
            version: Version(self.version.0 + 1),
            oldest: Version(-1),
            transactions: &transactions,
            ranges: reads,
        };
        let start = Instant::now();
        self.set.judge(&batch, &mut self.verdicts)?;
        Ok(start.elapsed().as_secs_f64())
    }

    /// The median time of some reads.
    fn time(&mut self, reads: &[KeyRange<'_>], read_version: Version) -> Result<f64, BatchError> {
        let mut seconds = [0.0; TIMES];
        for time in &mut seconds {
            *time = self.judge(reads, read_version)?;
        }
        seconds.sort_by(f64::total_cmp);
        Ok(seconds[TIMES / 2])
    }

    /// The nodes that one read visits.
    fn visits(&mut self, read: KeyRange<'_>) -> Result<u64, BatchError> {
        let visits = |stats: &Stats| stats.inner_visits + stats.leaf_reads + stats.wide_visits;
        let before = visits(self.set.tree().stats());
        self.judge(&[read], self.seen())?;
        Ok(visits(self.set.tree().stats()) - before)
    }

    fn measure(
        &mut self,
        name: &'static str,
        conflict: bool,
        read: KeyRange<'_>,
    ) -> Result<WideRead, BatchError> {
        let visits = self.visits(read)?;
        let found_conflict = self.verdicts.verdicts[0] == Verdict::Conflict;
        let seconds = self.time(&[read; READS], self.seen())?;
        Ok(WideRead { name, conflict, found_conflict, visits, seconds })
    }
}

/// Measures wide reads over a history of that many intervals.
///
/// # Errors
/// A tree that cannot be made, or a budget that does not hold the intervals.
///
/// # Panics
/// With fewer than 3 intervals.
pub fn measure(intervals: u64, config: TreeConfig) -> Result<WideReads, WideReadsError> {
    assert!(intervals >= 3, "one in the middle, and one on each side");
    let set = TreeSet::new(config)?;
    let mut history = History { set, version: Version::ZERO, verdicts: Verdicts::default() };
    fill(&mut history, intervals)?;
    let half = Version(history.version.0 / 2);
    let whole = KeyRange { begin: &[], end: LAST };
    let middle = intervals / 2;
    let mut reads = Vec::new();

    // Around everything, the first and the last interval.
    let mut keys = Keys::default();
    push_interval(&mut keys, 0);
    push_interval(&mut keys, intervals - 1);
    history.write(&keys)?;
    let between = KeyRange { begin: keys.get(1), end: keys.get(2) };
    reads.push(history.measure("newer just outside, on both sides", false, between)?);

    // The one in the middle.
    let mut keys = Keys::default();
    push_interval(&mut keys, middle);
    history.write(&keys)?;
    let (before, behind) =
        (KeyRange { begin: &[], end: keys.get(0) }, KeyRange { begin: keys.get(1), end: LAST });
    reads.push(history.measure("newer in the middle", true, whole)?);
    reads.push(history.measure("newer just behind", false, before)?);
    reads.push(history.measure("newer just before", false, behind)?);
    // A point read of what is newer cannot be answered before its leaf: one node a level.
    let height = history.visits(KeyRange { begin: keys.get(0), end: &[keys.get(0), &[0]].concat() })?;

    // Many in the gap behind it: nodes split, and each half has to get its own greatest stamps.
    let mut keys = Keys::default();
    for place in 0..CROWD {
        keys.push(3 * middle + 1, 2 * place as u32 + 1);
        keys.push(3 * middle + 1, 2 * place as u32 + 2);
    }
    history.write(&keys)?;
    let end = keys.get(2 * CROWD as usize - 1);
    let (before, behind) = (KeyRange { end: keys.get(0), ..before }, KeyRange { begin: end, ..behind });
    reads.push(history.measure("newer just behind, after splits", false, before)?);
    reads.push(history.measure("newer just before, after splits", false, behind)?);

    let points = points(intervals);
    let points: Vec<KeyRange<'_>> =
        points.iter().map(|end| KeyRange { begin: &end[..KEY_LENGTH], end }).collect();
    let point_seconds = history.time(&points, half)?;
    let pruned_point_seconds = history.time(&points, history.seen())?;

    if history.set.cutoff().is_some() {
        return Err(WideReadsError::Reclaimed { intervals });
    }
    Ok(WideReads { intervals, height, point_seconds, pruned_point_seconds, reads })
}

/// Writes the intervals, a batch of them at a time, from all over the key space.
fn fill(history: &mut History, intervals: u64) -> Result<(), BatchError> {
    for first in (0..intervals).step_by(BATCH as usize) {
        let mut keys = Keys::default();
        for nth in first..(first + BATCH).min(intervals) {
            push_interval(&mut keys, scattered(nth, intervals));
        }
        history.write(&keys)?;
    }
    Ok(())
}

/// The ends of point reads all over the key space.
fn points(intervals: u64) -> Vec<Vec<u8>> {
    let end = |nth| {
        let mut key = Keys::default();
        key.push(3 * scattered(nth, intervals), 0);
        key.0.push(0);
        key.0
    };
    (0..READS as u64).map(end).collect()
}

/// The `nth` number below `count` in an order that jumps about: each once, since the factor is a prime that is no divisor.
fn scattered(nth: u64, count: u64) -> u64 {
    const PRIME: u64 = 2_147_483_647;
    (u128::from(nth) * u128::from(PRIME) % u128::from(count)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn visits_grow_with_the_height() {
        let found = [1_000, 10_000, 100_000]
            .map(|intervals| measure(intervals, TreeConfig::default()).expect("the default budget is large"));
        for reads in &found {
            assert_eq!(reads.failures(), Vec::<String>::new());
            assert_eq!(reads.reads.iter().filter(|read| read.conflict).count(), 1);
            assert!(reads.reads.iter().all(|read| read.visits > 0), "none is pruned at once: {reads:?}");
        }
        assert!(found[2].height > found[0].height && found[2].height < 5, "{found:?}");
    }

    #[test]
    fn visits_beyond_the_height_and_wrong_decisions_are_failures() {
        let read = WideRead { name: "a", conflict: false, found_conflict: false, visits: 6, seconds: 0.0 };
        let reads = |read| WideReads {
            intervals: 9,
            height: 2,
            point_seconds: 0.0,
            pruned_point_seconds: 0.0,
            reads: vec![read],
        };
        assert_eq!(reads(read).failures(), Vec::<String>::new());
        assert_eq!(
            reads(WideRead { visits: 7, ..read }).failures(),
            ["9 intervals, a: 7 visits, at most 6 allowed"]
        );
        assert_eq!(
            reads(WideRead { found_conflict: true, ..read }).failures(),
            ["9 intervals, a: conflict true"]
        );
    }

    #[test]
    fn a_budget_that_is_too_small_is_an_error() {
        let mut config = TreeConfig::default();
        config.index.budget_bytes = 1 << 20;
        let error = measure(100_000, config).expect_err("100,000 intervals take more");
        assert_eq!(error, WideReadsError::Reclaimed { intervals: 100_000 });
    }

    #[test]
    fn every_interval_is_written_once() {
        for count in [3, 10, 50_000] {
            let mut numbers: Vec<u64> = (0..count).map(|nth| scattered(nth, count)).collect();
            numbers.sort_unstable();
            assert!(numbers.into_iter().eq(0..count));
        }
    }
}
