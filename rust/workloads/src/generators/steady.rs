//! Steady traffic: so many writes a second, for as long as it is asked for, of a shape that is given.
//!
//! Only what a history keeps is made: writes that commit. Reads, and writes of transactions that lose, leave nothing
//! behind.

use super::Generator;
use super::long_trace::{READ_LAG_BATCHES, VERSIONS_PER_SECOND, write_key};
use crate::retention::Traffic;
use crate::{BatchBuf, Rng};
use resolver_types::Version;
use std::ops::RangeInclusive;
use thiserror::Error;

/// The writes a second that there can be.
pub const WRITES: RangeInclusive<u64> = 1..=100_000_000;
/// The lengths of keys that there can be: the least holds a prefix and a number, the most is what FoundationDB takes.
pub const KEY_BYTES: RangeInclusive<usize> = 12..=10_000;
/// How many different keys there can be.
pub const KEYS: RangeInclusive<u64> = 1..=1 << 48;
/// How many keys the longest range can cover.
pub const SPANS: RangeInclusive<u64> = 1..=1_000_000;

/// Keys have one of so many prefixes.
const PREFIXES: u64 = 16;
/// A share is kept in parts of so many.
const PARTS: u64 = 1 << 32;
/// Batches a second, where nothing asks for more of them, and the most that leave each a version of its own.
const BATCHES_PER_SECOND: RangeInclusive<u64> = 32..=100_000;

/// A shape that cannot be.
#[derive(Clone, Copy, Debug, PartialEq, Error)]
pub enum NoShape {
    /// Not a number of writes.
    #[error("{0} writes a second: it must be {least} to {most}", least = WRITES.start(), most = WRITES.end())]
    Writes(u64),
    /// Not a length of keys.
    #[error("keys of {0} bytes: it must be {least} to {most}", least = KEY_BYTES.start(), most = KEY_BYTES.end())]
    KeyBytes(usize),
    /// Not a share.
    #[error("a share of points of {0}: it must be 0 to 1")]
    Points(f64),
    /// Not a number of keys.
    #[error("{0} different keys: it must be {least} to {most}", least = KEYS.start(), most = KEYS.end())]
    Keys(u64),
    /// Not a length of ranges.
    #[error("ranges of up to {0} keys: it must be {least} to {most}", least = SPANS.start(), most = SPANS.end())]
    Span(u64),
}

/// What is written.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Writes {
    /// Write ranges a second.
    pub a_second: u64,
    /// The length of their keys.
    pub key_bytes: usize,
    /// The share of them that are one key, 0 to 1.
    pub points: f64,
    /// How many different keys they are drawn from, evenly.
    pub keys: u64,
    /// The others cover 1 to so many keys.
    pub longest_span: u64,
}

/// Traffic of one shape.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Steady {
    writes: Writes,
    /// The share of points, in parts of [`PARTS`].
    points: u64,
    batches_per_second: u64,
}

impl Steady {
    /// The traffic, in batches of about so many writes, but at least 32 of them a second where each has a write, and at
    /// most 100,000.
    ///
    /// # Errors
    /// [`NoShape`].
    pub fn new(writes: Writes, batch_writes: u64) -> Result<Steady, NoShape> {
        let Writes { a_second, key_bytes, points, keys, longest_span } = writes;
        if !WRITES.contains(&a_second) {
            return Err(NoShape::Writes(a_second));
        }
        if !KEY_BYTES.contains(&key_bytes) {
            return Err(NoShape::KeyBytes(key_bytes));
        }
        if !(0.0..=1.0).contains(&points) {
            return Err(NoShape::Points(points));
        }
        if !KEYS.contains(&keys) {
            return Err(NoShape::Keys(keys));
        }
        if !SPANS.contains(&longest_span) {
            return Err(NoShape::Span(longest_span));
        }
        let batches = a_second
            .div_ceil(batch_writes.max(1))
            .clamp(*BATCHES_PER_SECOND.start(), *BATCHES_PER_SECOND.end());
        Ok(Steady {
            writes,
            points: (points * PARTS as f64) as u64,
            batches_per_second: batches.min(a_second),
        })
    }

    /// The batch with a number, counted from 0: one transaction that writes.
    fn batch(&self, index: u64, rng: &mut Rng) -> BatchBuf {
        let Writes { a_second, key_bytes, keys, longest_span, .. } = self.writes;
        let version = Version(self.versions(index + READ_LAG_BATCHES));
        let mut batch = BatchBuf::new(version, Version::LOWEST);
        batch.push_transaction(Version(version.0 - 1), false);
        let until =
            |batches: u64| u128::from(a_second) * u128::from(batches) / u128::from(self.batches_per_second);
        let (mut begin, mut end) = (vec![0; key_bytes], vec![0; key_bytes + 1]);
        for _ in until(index)..until(index + 1) {
            let number = rng.below(keys);
            let (prefix, id) = ((number % PREFIXES) as usize, number / PREFIXES);
            write_key(&mut begin, prefix, id);
            if rng.below(PARTS) < self.points {
                end[..key_bytes].copy_from_slice(&begin);
                end[key_bytes] = 0;
                batch.push_write(&begin, &end);
            } else {
                write_key(&mut end[..key_bytes], prefix, id + 1 + rng.below(longest_span));
                batch.push_write(&begin, &end[..key_bytes]);
            }
        }
        batch
    }
}

impl Traffic for Steady {
    fn versions(&self, batches: u64) -> i64 {
        (i128::from(batches) * i128::from(VERSIONS_PER_SECOND) / i128::from(self.batches_per_second)) as i64
    }

    fn batches_per_second(&self) -> u64 {
        self.batches_per_second
    }

    fn generator(&self) -> Generator {
        let steady = *self;
        Box::new(move |index, rng| steady.batch(index, rng))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WRITES: Writes =
        Writes { a_second: 1_000, key_bytes: 24, points: 0.75, keys: 1 << 30, longest_span: 100 };

    #[test]
    fn traffic_is_of_its_shape() {
        for (a_second, batch_writes, batches_per_second) in
            [(1_000, 4_096, 32), (1, 4_096, 1), (100_000, 1_000, 100), (7, 1, 7), (200_000, 1, 100_000)]
        {
            let steady = Steady::new(Writes { a_second, ..WRITES }, batch_writes).expect("a shape");
            assert_eq!(steady.batches_per_second(), batches_per_second);
            let seconds = 10_000 / a_second + 1;
            let (mut rng, mut writes, mut points) = (Rng::new(5), 0, 0);
            let mut last = Version::ZERO;
            for index in 0..seconds * batches_per_second {
                let buf = steady.batch(index, &mut rng);
                let ranges = buf.ranges();
                assert_eq!(buf.batch(&ranges).check(Some(last), Version::ZERO), Ok(()));
                last = buf.version();
                for range in &ranges {
                    assert!(range.begin.len() == 24 && !range.is_empty());
                    points += u64::from(range.is_point());
                }
                writes += ranges.len() as u64;
            }
            assert_eq!(writes, seconds * a_second, "a whole second's writes are all there");
            let share = points as f64 / writes as f64;
            assert!((share - 0.75).abs() < 0.02, "{share}");
            assert_eq!(steady.versions(seconds * batches_per_second), seconds as i64 * VERSIONS_PER_SECOND);
        }
    }

    #[test]
    fn shares_of_nothing_and_of_all_are_exact() {
        for (points, expected) in [(0.0, 0), (1.0, 320)] {
            let steady = Steady::new(Writes { points, a_second: 320, ..WRITES }, 1_000).expect("a shape");
            let mut rng = Rng::new(1);
            let found = (0..32).map(|index| {
                let buf = steady.batch(index, &mut rng);
                buf.ranges().iter().filter(|range| range.is_point()).count()
            });
            assert_eq!(found.sum::<usize>(), expected);
        }
    }

    #[test]
    fn what_cannot_be_is_an_error() {
        let error = |writes| Steady::new(writes, 1).expect_err("no shape");
        assert_eq!(error(Writes { a_second: 0, ..WRITES }), NoShape::Writes(0));
        assert_eq!(error(Writes { key_bytes: 11, ..WRITES }), NoShape::KeyBytes(11));
        assert_eq!(error(Writes { points: 1.5, ..WRITES }), NoShape::Points(1.5));
        assert!(matches!(error(Writes { points: f64::NAN, ..WRITES }), NoShape::Points(_)));
        assert_eq!(error(Writes { keys: 0, ..WRITES }), NoShape::Keys(0));
        assert_eq!(error(Writes { longest_span: 0, ..WRITES }), NoShape::Span(0));
    }
}
