//! The named workloads that figures are measured on, seeded.
//!
//! To add one: a function that makes its batches, and a line in `DEFINITIONS`.

pub mod long_trace;
pub mod steady;
mod zipf;

use crate::input::{Input, RunError, STRETCH_BYTES, Source, Visit};
use crate::trace::{FORMAT_VERSION, GeneratorHeader, Header, LongTraceHeader};
use crate::{BatchBuf, Rng};
use long_trace::{LongTrace, MIXTURES, Mixture};
use resolver_types::Version;
use std::iter::FusedIterator;

/// Makes the batch with a given number, counted from 0; called in order.
pub type Generator = Box<dyn FnMut(u64, &mut Rng) -> BatchBuf + Send>;

/// The size of a workload against its definition: transactions a batch and keys are multiplied by it, so that conflicts stay as likely.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Scale(f64);

impl Scale {
    /// As defined.
    pub const FULL: Scale = Scale(1.0);

    /// The scale of a factor; `None` unless it is above 0 and at most 1.
    pub fn new(factor: f64) -> Option<Scale> {
        (factor > 0.0 && factor <= 1.0).then_some(Scale(factor))
    }

    /// The factor.
    pub fn factor(self) -> f64 {
        self.0
    }

    /// A number of the definition at this scale, at least 1.
    fn of(self, number: u64) -> u64 {
        ((number as f64 * self.0 + 0.5) as u64).max(1)
    }
}

/// A workload as it is defined.
struct Definition {
    name: &'static str,
    /// Batches that only fill the history.
    untimed: usize,
    /// Batches that are measured.
    timed: usize,
    /// The published seed, or 1.
    seed: u64,
    make: Make,
}

/// How a definition's batches are made.
enum Make {
    Of(fn(Scale) -> Generator),
    /// The long trace, with keys of this length, of this mixture.
    LongTrace(usize, Mixture),
}

impl Definition {
    const fn new(name: &'static str, batches: (usize, usize), make: fn(Scale) -> Generator) -> Definition {
        Definition { name, untimed: batches.0, timed: batches.1, seed: 1, make: Make::Of(make) }
    }

    const fn long_trace(name: &'static str, key_bytes: usize, mixture: Mixture) -> Definition {
        let (untimed, timed) = LONG_TRACE;
        Definition { name, untimed, timed, seed: 1, make: Make::LongTrace(key_bytes, mixture) }
    }

    const fn seeded(self, seed: u64) -> Definition {
        Definition { seed, ..self }
    }

    fn generator(&self, scale: Scale) -> Generator {
        match self.make {
            Make::Of(make) => make(scale),
            Make::LongTrace(key_bytes, mixture) => {
                let mut trace = LongTrace::new(key_bytes, mixture, scale);
                Box::new(move |index, rng| trace.batch(index, rng))
            }
        }
    }
}

/// Batches of the long trace in full, of which the first minute fills its window.
const LONG_TRACE: (usize, usize) = {
    let all = long_trace::FULL_SECONDS * long_trace::BATCHES_PER_SECOND;
    let untimed = long_trace::WINDOW_VERSIONS / long_trace::VERSION_STEP;
    (untimed as usize, all as usize - untimed as usize)
};

const DEFINITIONS: &[Definition] = &[
    Definition::new("skiplisttest", (0, 500), |scale| skiplisttest(scale, 2_500, 50, Layout::DOTTED)),
    Definition::new("skiplisttest-16", (0, 500), |scale| layout(scale, 16, Distinguishing::Last)),
    Definition::new("skiplisttest-32-prefix", (0, 500), |scale| layout(scale, 32, Distinguishing::Last)),
    Definition::new("skiplisttest-32-suffix", (0, 500), |scale| layout(scale, 32, Distinguishing::First)),
    Definition::new("skiplisttest-64-prefix", (0, 500), |scale| layout(scale, 64, Distinguishing::Last)),
    Definition::new("skiplisttest-64-suffix", (0, 500), |scale| layout(scale, 64, Distinguishing::First)),
    Definition::new("skiplisttest-128-prefix", (0, 500), |scale| layout(scale, 128, Distinguishing::Last)),
    Definition::new("skiplisttest-128-suffix", (0, 500), |scale| layout(scale, 128, Distinguishing::First)),
    Definition::new("skiplisttest-deep", (1_000, 200), |scale| {
        skiplisttest(scale, 2_500, 1_050, Layout::DOTTED)
    }),
    Definition::new("conflictset-points", (1_000, 2_000), conflictset_points),
    Definition::new("conflictset-ranges", (1_000, 2_000), conflictset_ranges),
    Definition::new("integrated-points", (0, 3_000), |scale| integrated(scale, false)).seeded(1_234),
    Definition::new("integrated-ranges", (0, 3_000), |scale| integrated(scale, true)).seeded(1_234),
    Definition::new("standalone-points", (0, 3_000), |scale| integrated(scale, false)).seeded(1_234),
    Definition::new("standalone-ranges", (0, 3_000), |scale| integrated(scale, true)).seeded(1_234),
    Definition::long_trace("long-trace", 16, MIXTURES[0]),
    Definition::long_trace("long-trace-32", 32, MIXTURES[0]),
    Definition::long_trace("long-trace-64", 64, MIXTURES[0]),
    Definition::long_trace("long-trace-uniform", 16, MIXTURES[1]),
    Definition::long_trace("long-trace-zipf", 16, MIXTURES[2]),
    Definition::long_trace("long-trace-append", 16, MIXTURES[3]),
    Definition::long_trace("long-trace-ranges", 16, MIXTURES[4]),
    Definition::long_trace("long-trace-clears", 16, MIXTURES[5]),
];

/// Workloads of this name are measured without the stages around the index.
const INDEX_ALONE: &str = "standalone-";

/// A workload: an iterator over its batches, which depend on nothing but its name, its seed and its scale. A shorter run is a
/// prefix of a longer one.
pub struct Workload {
    definition: &'static Definition,
    seed: u64,
    scale: Scale,
    rng: Rng,
    generator: Generator,
    next: usize,
    batches: usize,
}

impl Workload {
    /// The workload of that name, at its full length; without a seed, with the published one.
    pub fn by_name(name: &str, seed: impl Into<Option<u64>>) -> Option<Workload> {
        let definition = DEFINITIONS.iter().find(|definition| definition.name == name)?;
        let batches = definition.untimed + definition.timed;
        Some(Workload::new(definition, seed.into().unwrap_or(definition.seed), Scale::FULL, batches))
    }

    fn new(definition: &'static Definition, seed: u64, scale: Scale, batches: usize) -> Workload {
        let generator = definition.generator(scale);
        Workload { definition, seed, scale, rng: Rng::new(seed), generator, next: 0, batches }
    }

    /// The same workload from its first batch on.
    pub fn restarted(&self) -> Workload {
        Workload::new(self.definition, self.seed, self.scale, self.batches)
    }

    /// The names of all workloads.
    pub fn names() -> Vec<&'static str> {
        DEFINITIONS.iter().map(|definition| definition.name).collect()
    }

    /// The workload's name.
    pub fn name(&self) -> &'static str {
        self.definition.name
    }

    /// The seed.
    pub fn seed(&self) -> u64 {
        self.seed
    }

    /// What a trace of the workload says about itself.
    pub fn trace_header(&self) -> Header {
        let long_trace = match self.definition.make {
            Make::Of(_) => None,
            Make::LongTrace(key_bytes, mixture) => Some(LongTraceHeader {
                key_bytes: key_bytes as u64,
                ids: [mixture.uniform, mixture.zipf, mixture.append],
                ranges: [mixture.points, mixture.ranges, mixture.clears],
            }),
        };
        let generator = GeneratorHeader {
            workload: self.name().to_owned(),
            seed: self.seed,
            scale: self.scale.factor(),
            batches: self.batches as u64,
            long_trace,
        };
        Header { format: FORMAT_VERSION, generator: Some(generator), untimed: self.untimed_batches() as u64 }
    }

    /// How many batches its definition has, untimed ones included.
    pub fn default_batches(&self) -> usize {
        self.definition.untimed + self.definition.timed
    }

    /// The same workload, from its first batch on, with that many batches, untimed ones included.
    pub fn with_batches(self, batches: usize) -> Workload {
        Workload::new(self.definition, self.seed, self.scale, batches)
    }

    /// The same workload, from its first batch on, at another scale.
    pub fn with_scale(self, scale: Scale) -> Workload {
        Workload::new(self.definition, self.seed, scale, self.batches)
    }

    /// How many of the first batches only fill the history: the definition's share of all batches, rounded down, and not more than
    /// defined.
    pub fn untimed_batches(&self) -> usize {
        let share = self.batches as u128 * self.definition.untimed as u128 / self.default_batches() as u128;
        share as usize
    }
}

impl Source for Workload {
    fn untimed(&self) -> usize {
        self.untimed_batches()
    }

    fn batches(&self) -> u64 {
        self.batches as u64
    }

    fn index_alone(&self) -> bool {
        self.name().starts_with(INDEX_ALONE)
    }

    fn stretches(&self, visit: &mut Visit<'_>) -> Result<(), RunError> {
        let mut batches = self.restarted();
        while batches.len() > 0 {
            let mut bytes = 0;
            let stretch = std::iter::from_fn(|| {
                let batch = (bytes < STRETCH_BYTES).then(|| batches.next()).flatten()?;
                bytes += batch.bytes();
                Some(batch)
            });
            if visit(&Input::new(stretch).views(), &[])?.is_break() {
                break;
            }
        }
        Ok(())
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

/// A number at the end of a key, or at its begin.
#[derive(Clone, Copy)]
enum Distinguishing {
    Last,
    First,
}

/// How a number becomes a key: four bytes, big-endian, behind dots or before them.
#[derive(Clone, Copy)]
struct Layout {
    length: usize,
    place: Distinguishing,
}

impl Layout {
    const DOTTED: Layout = Layout { length: 16, place: Distinguishing::Last };

    fn write(self, key: &mut [u8; 128], number: u32) -> &[u8] {
        let at = match self.place {
            Distinguishing::Last => self.length - 4,
            Distinguishing::First => 0,
        };
        key.fill(b'.');
        key[at..at + 4].copy_from_slice(&number.to_be_bytes());
        &key[..self.length]
    }
}

/// Versions of `skiplisttest` and those after it: batch i reads at i, commits at i + 50, and needs nothing `window` versions before
/// that.
fn stepped_batch(index: u64, window: i64) -> (BatchBuf, Version) {
    let version = index as i64 + 50;
    (BatchBuf::new(Version(version), Version(version - window)), Version(index as i64))
}

/// FoundationDB's own: transactions of one read and one write, `[k, k + 1 + rand(0..10))`.
fn skiplisttest(scale: Scale, transactions: u64, window: i64, layout: Layout) -> Generator {
    let (transactions, keys) = (scale.of(transactions), scale.of(20_000_000));
    Box::new(move |index, rng| {
        let (mut batch, read_version) = stepped_batch(index, window);
        let (mut begin_key, mut end_key) = ([0; 128], [0; 128]);
        for _ in 0..transactions {
            batch.push_transaction(read_version, false);
            for push in [BatchBuf::push_read, BatchBuf::push_write] {
                let begin = rng.below(keys) as u32;
                let end = begin + 1 + rng.below(10) as u32;
                push(&mut batch, layout.write(&mut begin_key, begin), layout.write(&mut end_key, end));
            }
        }
        batch
    })
}

/// The posts' layouts: 40,000 ranges a batch.
fn layout(scale: Scale, length: usize, place: Distinguishing) -> Generator {
    skiplisttest(scale, 20_000, 50, Layout { length, place })
}

/// 500 transactions of 4 reads and 2 writes, all points.
fn conflictset_points(scale: Scale) -> Generator {
    let (transactions, keys) = (scale.of(500), scale.of(10_000_000));
    Box::new(move |index, rng| {
        let (mut batch, read_version) = stepped_batch(index, 50);
        for _ in 0..transactions {
            batch.push_transaction(read_version, false);
            for _ in 0..4 {
                let key = dotted_key(rng.below(keys) as u32);
                batch.push_read(&key, &point(&key));
            }
            for _ in 0..2 {
                let key = dotted_key(rng.below(keys) as u32);
                batch.push_write(&key, &point(&key));
            }
        }
        batch
    })
}

/// The same with ranges: reads of 1 to 1,000 keys, writes of 1 to 10.
fn conflictset_ranges(scale: Scale) -> Generator {
    let (transactions, keys) = (scale.of(500), scale.of(10_000_000));
    Box::new(move |index, rng| {
        let (mut batch, read_version) = stepped_batch(index, 50);
        let mut range = |longest: u64| {
            let begin = rng.below(keys) as u32;
            (dotted_key(begin), dotted_key(begin + 1 + rng.below(longest) as u32))
        };
        for _ in 0..transactions {
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
    })
}

/// The versions of the integrated workload: a batch's step, how far back `oldest` lies, how far back reads go.
const INTEGRATED_STEP: i64 = 100;
const INTEGRATED_WINDOW: i64 = 5_000;
const INTEGRATED_LAG: i64 = 500;

/// 4,000 transactions of one read each, then one of 1,000 disjoint writes: reads and writes apart from each other.
fn integrated(scale: Scale, spans: bool) -> Generator {
    let (transactions, writes, keys) = (scale.of(4_000), scale.of(1_000), scale.of(10_000_000));
    Box::new(move |index, rng| {
        // The first batch reads before its version, and not below 0.
        let version = INTEGRATED_LAG + (index as i64 + 1) * INTEGRATED_STEP;
        let mut batch = BatchBuf::new(Version(version), Version(version - INTEGRATED_WINDOW));
        let range = |rng: &mut Rng| {
            let begin = rng.below(keys) as u32;
            let length = match spans {
                false => 1,
                true if rng.one_in(10) => 1 + rng.below(2_000) as u32,
                true => 1 + rng.below(20) as u32,
            };
            (begin, begin + length)
        };
        let ends = |(begin, end): (u32, u32)| -> ([u8; 12], [u8; 13], usize) {
            let key = |number: u32| -> [u8; 12] {
                let mut key = [b'.'; 12];
                key[8..].copy_from_slice(&number.to_be_bytes());
                key
            };
            let mut last = [0; 13];
            last[..12].copy_from_slice(&key(if spans { end } else { begin }));
            (key(begin), last, if spans { 12 } else { 13 })
        };
        for _ in 0..transactions {
            let lag = 1 + rng.below(INTEGRATED_LAG as u64) as i64;
            batch.push_transaction(Version(version - lag), false);
            let (begin, end, length) = ends(range(rng));
            batch.push_read(&begin, &end[..length]);
        }
        batch.push_transaction(Version(version - 1), false);
        let mut ranges: Vec<(u32, u32)> = (0..writes).map(|_| range(rng)).collect();
        ranges.sort_unstable();
        let mut free_from = 0;
        for (begin, end) in ranges {
            if begin >= free_from {
                free_from = end;
                let (begin, end, length) = ends((begin, end));
                batch.push_write(&begin, &end[..length]);
            }
        }
        batch
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::input::Step;
    use resolver_types::KeyRange;
    use std::ops::ControlFlow;

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
            assert_eq!(batches(1, 2), batches(1, 3)[..2], "{name}");
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

    /// Keys of the layouts: where the number stands, and that the rest is dots.
    #[test]
    fn layouts_put_four_bytes_before_or_behind_what_is_common() {
        for (name, length, at) in [
            ("skiplisttest-16", 16, 12),
            ("skiplisttest-32-prefix", 32, 28),
            ("skiplisttest-64-suffix", 64, 0),
            ("skiplisttest-128-prefix", 128, 124),
            ("skiplisttest-128-suffix", 128, 0),
        ] {
            let buf = Workload::by_name(name, None).unwrap().next().expect("a batch");
            let ranges = buf.ranges();
            assert_eq!((buf.transactions().len(), ranges.len()), (20_000, 40_000), "{name}");
            for range in &ranges {
                let number = |key: &[u8]| {
                    assert_eq!(key.len(), length, "{name}");
                    assert!(key[..at].iter().chain(&key[at + 4..]).all(|&byte| byte == b'.'), "{name}");
                    u32::from_be_bytes(key[at..at + 4].try_into().expect("four bytes"))
                };
                assert!((1..=10).contains(&(number(range.end) - number(range.begin))), "{name}");
            }
        }
    }

    #[test]
    fn the_deep_one_keeps_a_thousand_versions() {
        let deep = Workload::by_name("skiplisttest-deep", None).unwrap();
        assert_eq!((deep.default_batches(), deep.untimed_batches()), (1_200, 1_000));
        for (index, buf) in deep.with_batches(4).enumerate() {
            let index = index as i64;
            assert_eq!((buf.version(), buf.oldest()), (Version(index + 50), Version(index - 1_000)));
            assert_eq!(buf.transactions().len(), 2_500);
        }
    }

    #[test]
    fn integrated_batches_read_in_thousands_and_write_at_once() {
        for (name, longest) in [("integrated-points", 1), ("integrated-ranges", 2_000)] {
            let workload = Workload::by_name(name, None).unwrap();
            assert_eq!((workload.seed(), workload.default_batches()), (1_234, 3_000));
            let mut lengths = Vec::new();
            for buf in workload.with_batches(8) {
                let ranges = buf.ranges();
                let batch = buf.batch(&ranges);
                assert_eq!(batch.check(None, Version::ZERO), Ok(()));
                assert_eq!(batch.version.0 - batch.oldest.0, 5_000);
                let (last, readers) = batch.transactions.split_last().expect("transactions");
                assert_eq!((readers.len(), last.reads), (4_000, 0));
                for reader in readers {
                    assert_eq!((reader.reads, reader.writes), (1, 0));
                    assert!((1..=500).contains(&(batch.version.0 - reader.read_version.0)));
                }
                let writes = batch.writes(last);
                assert!(writes.len() > 600 && writes.len() <= 1_000, "{}", writes.len());
                assert!(writes.is_sorted_by(|left, right| left.end <= right.begin));
                let number = |key: &[u8]| {
                    assert_eq!(key[..8], [b'.'; 8]);
                    u32::from_be_bytes(key[8..12].try_into().expect("12 bytes"))
                };
                lengths.extend(
                    ranges.iter().map(|range| {
                        if range.is_point() { 1 } else { number(range.end) - number(range.begin) }
                    }),
                );
            }
            let above = |length: u32| lengths.iter().filter(|&&other| other > length).count();
            assert!(
                above(longest) == 0 && lengths.iter().max() >= Some(&(longest - longest / 100)),
                "{name}"
            );
            if longest > 1 {
                let wide = above(20) as f64 / lengths.len() as f64;
                assert!((0.09..0.11).contains(&wide), "{wide}");
            }
        }
    }

    #[test]
    fn a_scale_shrinks_batches_and_keys_alike() {
        assert_eq!([0.0, -1.0, 1.5, f64::NAN].map(Scale::new), [None; 4]);
        let tenth = Scale::new(0.1).expect("legal");
        for name in Workload::names() {
            let full = Workload::by_name(name, 3).unwrap().next().expect("a batch");
            let small = Workload::by_name(name, 3).unwrap().with_scale(tenth).next().expect("a batch");
            let (full, small) = (full.transactions().len(), small.transactions().len());
            assert!(small.abs_diff(full / 10) <= 1, "{name}: {small} of {full}");
        }
        let keys = Workload::by_name("conflictset-points", 3).unwrap().with_scale(tenth).with_batches(20);
        let greatest = keys.flat_map(|buf| buf.ranges().iter().map(|range| number(range.begin)).max()).max();
        assert!((990_000..1_000_000).contains(&greatest.expect("keys")));
    }

    #[test]
    fn a_stream_gives_the_batches_of_the_workload_in_stretches() {
        let workload = Workload::by_name("skiplisttest-128-prefix", 1).unwrap().with_batches(7);
        let (mut sizes, mut versions) = (Vec::new(), Vec::new());
        workload
            .stretches(&mut |views, recorded| {
                assert!(recorded.is_empty());
                sizes.push(views.batches());
                versions.extend(views.steps().map(|step| match step {
                    Step::Batch(batch) => batch.version,
                    Step::Clear(_) => panic!("a workload clears nothing"),
                }));
                Ok(ControlFlow::Continue(()))
            })
            .expect("nothing is refused");
        assert!(sizes.len() > 1 && sizes.iter().sum::<u64>() == Source::batches(&workload), "{sizes:?}");
        assert_eq!(versions, (50..57).map(Version).collect::<Vec<_>>());
    }
}
