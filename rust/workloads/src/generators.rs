//! The named workloads that figures are measured on, seeded.
//!
//! To add one: a function that makes its batches, and a line in `DEFINITIONS`.

use crate::{BatchBuf, Rng};
use resolver_types::Version;
use std::iter::FusedIterator;

/// Makes the batch with a given number, counted from 0; called in order.
type Generator = Box<dyn FnMut(u64, &mut Rng) -> BatchBuf + Send>;

/// A workload as it is defined.
struct Definition {
    name: &'static str,
    /// Batches that only fill the history.
    untimed: usize,
    /// Batches that are measured.
    timed: usize,
    make: fn() -> Generator,
}

const DEFINITIONS: &[Definition] = &[
    Definition { name: "skiplisttest", untimed: 0, timed: 500, make: || Box::new(skiplisttest) },
    Definition {
        name: "conflictset-points",
        untimed: 1_000,
        timed: 2_000,
        make: || Box::new(conflictset_points),
    },
    Definition {
        name: "conflictset-ranges",
        untimed: 1_000,
        timed: 2_000,
        make: || Box::new(conflictset_ranges),
    },
];

/// A workload: an iterator over its batches, which depend on nothing but its name and its seed. A shorter run is a prefix
/// of a longer one.
pub struct Workload {
    definition: &'static Definition,
    rng: Rng,
    generator: Generator,
    next: usize,
    batches: usize,
}

impl Workload {
    /// The workload of that name, at its full length.
    pub fn by_name(name: &str, seed: u64) -> Option<Workload> {
        let definition = DEFINITIONS.iter().find(|definition| definition.name == name)?;
        let batches = definition.untimed + definition.timed;
        Some(Workload { definition, rng: Rng::new(seed), generator: (definition.make)(), next: 0, batches })
    }

    /// The names of all workloads.
    pub fn names() -> Vec<&'static str> {
        DEFINITIONS.iter().map(|definition| definition.name).collect()
    }

    /// The workload's name.
    pub fn name(&self) -> &'static str {
        self.definition.name
    }

    /// How many batches its definition has, untimed ones included.
    pub fn default_batches(&self) -> usize {
        self.definition.untimed + self.definition.timed
    }

    /// The same workload with that many batches, untimed ones included.
    pub fn with_batches(mut self, batches: usize) -> Workload {
        self.batches = batches;
        self
    }

    /// How many of the first batches only fill the history: the definition's share of all batches, rounded down.
    pub fn untimed_batches(&self) -> usize {
        let share = self.batches as u128 * self.definition.untimed as u128 / self.default_batches() as u128;
        share as usize
    }
}

impl Iterator for Workload {
    type Item = BatchBuf;

    fn next(&mut self) -> Option<BatchBuf> {
        if self.next == self.batches {
            return None;
        }
        let batch = (self.generator)(self.next as u64, &mut self.rng);
        self.next += 1;
        Some(batch)
    }

    fn size_hint(&self) -> (usize, Option<usize>) {
        let left = self.batches - self.next;
        (left, Some(left))
    }
}

impl ExactSizeIterator for Workload {}

impl FusedIterator for Workload {}

/// "16-byte key k": 12 dots and k as 4 bytes, big-endian.
fn dotted_key(number: u32) -> [u8; 16] {
    let mut key = [b'.'; 16];
    key[12..].copy_from_slice(&number.to_be_bytes());
    key
}

/// The point range of a key.
fn point(key: &[u8; 16]) -> [u8; 17] {
    let mut end = [0; 17];
    end[..16].copy_from_slice(key);
    end
}

/// Versions of `skiplisttest` and those after it: batch i reads at i, commits at i + 50, and needs nothing before i.
fn stepped_batch(index: u64) -> (BatchBuf, Version) {
    let read_version = Version(index as i64);
    (BatchBuf::new(Version(index as i64 + 50), read_version), read_version)
}

/// FoundationDB's own: 2,500 transactions of one read and one write, `[k, k + 1 + rand(0..10))`.
fn skiplisttest(index: u64, rng: &mut Rng) -> BatchBuf {
    let (mut batch, read_version) = stepped_batch(index);
    let mut range = || {
        let begin = rng.below(20_000_000) as u32;
        (dotted_key(begin), dotted_key(begin + 1 + rng.below(10) as u32))
    };
    for _ in 0..2_500 {
        batch.push_transaction(read_version, false);
        let (begin, end) = range();
        batch.push_read(&begin, &end);
        let (begin, end) = range();
        batch.push_write(&begin, &end);
    }
    batch
}

/// 500 transactions of 4 reads and 2 writes, all points.
fn conflictset_points(index: u64, rng: &mut Rng) -> BatchBuf {
    let (mut batch, read_version) = stepped_batch(index);
    for _ in 0..500 {
        batch.push_transaction(read_version, false);
        for _ in 0..4 {
            let key = dotted_key(rng.below(10_000_000) as u32);
            batch.push_read(&key, &point(&key));
        }
        for _ in 0..2 {
            let key = dotted_key(rng.below(10_000_000) as u32);
            batch.push_write(&key, &point(&key));
        }
    }
    batch
}

/// The same with ranges: reads of 1 to 1,000 keys, writes of 1 to 10.
fn conflictset_ranges(index: u64, rng: &mut Rng) -> BatchBuf {
    let (mut batch, read_version) = stepped_batch(index);
    let mut range = |longest: u64| {
        let begin = rng.below(10_000_000) as u32;
        (dotted_key(begin), dotted_key(begin + 1 + rng.below(longest) as u32))
    };
    for _ in 0..500 {
        batch.push_transaction(read_version, false);
        for _ in 0..4 {
            let (begin, end) = range(1_000);
            batch.push_read(&begin, &end);
        }
        for _ in 0..2 {
            let (begin, end) = range(10);
            batch.push_write(&begin, &end);
        }
    }
    batch
}

#[cfg(test)]
mod tests {
    use super::*;
    use resolver_types::KeyRange;

    fn number(key: &[u8]) -> u32 {
        assert_eq!(key[..12], [b'.'; 12]);
        u32::from_be_bytes(key[12..].try_into().expect("16 bytes"))
    }

    /// Keys in the range.
    fn span(range: &KeyRange<'_>) -> u32 {
        if range.is_point() { 1 } else { number(range.end) - number(range.begin) }
    }

    #[test]
    fn a_workload_is_its_name_and_its_seed() {
        assert!(Workload::by_name("no-such-workload", 1).is_none());
        for name in Workload::names() {
            let batches = |seed, count| -> Vec<BatchBuf> {
                Workload::by_name(name, seed).expect("it is named").with_batches(count).collect()
            };
            assert_eq!(batches(1, 4), batches(1, 6)[..4], "{name}");
            assert_ne!(batches(1, 1), batches(2, 1), "{name}");
        }
    }

    #[test]
    fn untimed_batches_shrink_with_the_run() {
        let points = Workload::by_name("conflictset-points", 1).unwrap();
        assert_eq!((points.default_batches(), points.len(), points.untimed_batches()), (3_000, 3_000, 1_000));
        let points = points.with_batches(31);
        assert_eq!((points.default_batches(), points.len(), points.untimed_batches()), (3_000, 31, 10));
        assert_eq!(Workload::by_name("skiplisttest", 1).unwrap().untimed_batches(), 0);
    }

    /// Transactions a batch, reads and writes a transaction, keys, and the greatest span of each side.
    fn check_shape(name: &str, shape: (usize, u32, u32), keys: u32, spans: (u32, u32), points: bool) {
        let (mut greatest, mut spans_seen) = (0, (0, 0));
        for (index, buf) in Workload::by_name(name, 5).unwrap().with_batches(20).enumerate() {
            let index = index as i64;
            assert_eq!((buf.version(), buf.oldest()), (Version(index + 50), Version(index)));
            let ranges = buf.ranges();
            let batch = buf.batch(&ranges);
            assert_eq!(batch.check(None, Version::ZERO), Ok(()));
            assert_eq!(batch.transactions.len(), shape.0);
            for transaction in batch.transactions {
                assert_eq!((transaction.reads, transaction.writes), (shape.1, shape.2));
                assert_eq!((transaction.read_version, transaction.report), (Version(index), false));
                let widest = |ranges: &[KeyRange<'_>]| ranges.iter().map(span).max().expect("there are some");
                spans_seen.0 = spans_seen.0.max(widest(batch.reads(transaction)));
                spans_seen.1 = spans_seen.1.max(widest(batch.writes(transaction)));
            }
            for range in &ranges {
                assert_eq!(range.is_point(), points);
                assert!(!range.is_empty());
                greatest = greatest.max(number(range.begin));
            }
        }
        assert!(greatest < keys && greatest > keys / 100 * 99, "{greatest} of {keys}");
        assert_eq!(spans_seen, spans);
    }

    #[test]
    fn the_workloads_are_what_they_are_defined_to_be() {
        check_shape("skiplisttest", (2_500, 1, 1), 20_000_000, (10, 10), false);
        check_shape("conflictset-points", (500, 4, 2), 10_000_000, (1, 1), true);
        check_shape("conflictset-ranges", (500, 4, 2), 10_000_000, (1_000, 10), false);
    }
}
