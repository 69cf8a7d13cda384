//! The long trace: traffic of 32 batches a second, made for as long as it is asked for.

use super::Scale;
use super::zipf::Zipf;
use crate::{BatchBuf, Rng};
use resolver_types::Version;

/// Batches a second.
pub const BATCHES_PER_SECOND: u64 = 32;
/// Versions a second.
pub const VERSIONS_PER_SECOND: i64 = 1_000_000;
/// Versions from one batch to the next.
pub const VERSION_STEP: i64 = VERSIONS_PER_SECOND / BATCHES_PER_SECOND as i64;
/// A transaction reads at one of so many versions before its batch's.
pub const READ_LAG_BATCHES: u64 = 64;
/// How far back a batch's `oldest` lies.
pub const WINDOW_VERSIONS: i64 = 60_000_000;
/// The trace in full, in seconds.
pub const FULL_SECONDS: u64 = 5_400;
/// The budget of the trace in full.
pub const FULL_BUDGET_BYTES: u64 = 6 << 30;

const TRANSACTIONS: u64 = 2_048;
const PREFIXES: usize = 16;
const UNIFORM_IDS: u64 = 2_000_000_000;
const ZIPF_IDS: u64 = 100_000_000;
const ZIPF_EXPONENT: f64 = 0.99;
/// A prime: times a rank, modulo the number of ids, it spreads the ranks over the ids, each on its own.
const SPREAD: u64 = 48_271_033;
const LONGEST_RANGE: u64 = 100;
const LONGEST_CLEAR: u64 = 10_000;
/// A read of an appended id finds one of so many last ones.
const APPENDED_READ: u64 = 100_000;

/// The lengths of keys that there are.
pub const KEY_BYTES: [usize; 3] = [16, 32, 64];

/// Where ids come from and what is done to them, in hundredths.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mixture {
    /// The name on the command line.
    pub name: &'static str,
    /// Ids drawn evenly from all.
    pub uniform: u64,
    /// Ids drawn by Zipf's law.
    pub zipf: u64,
    /// Ids that only go up.
    pub append: u64,
    /// Ranges that are one key.
    pub points: u64,
    /// Ranges of 1 to 100 ids.
    pub ranges: u64,
    /// Ranges of 1 to 10,000 ids.
    pub clears: u64,
}

/// All mixtures; the first is the published one.
pub const MIXTURES: [Mixture; 6] = [
    mixture("mixed", [60, 25, 15], [90, 9, 1]),
    mixture("uniform", [100, 0, 0], [90, 9, 1]),
    mixture("zipf", [0, 100, 0], [90, 9, 1]),
    mixture("append", [0, 0, 100], [90, 9, 1]),
    mixture("ranges", [60, 25, 15], [0, 100, 0]),
    mixture("clears", [60, 25, 15], [80, 10, 10]),
];

const fn mixture(name: &'static str, ids: [u64; 3], kinds: [u64; 3]) -> Mixture {
    assert!(ids[0] + ids[1] + ids[2] == 100 && kinds[0] + kinds[1] + kinds[2] == 100);
    let [uniform, zipf, append] = ids;
    let [points, ranges, clears] = kinds;
    Mixture { name, uniform, zipf, append, points, ranges, clears }
}

impl Mixture {
    /// The mixture of that name.
    pub fn by_name(name: &str) -> Option<Mixture> {
        MIXTURES.into_iter().find(|mixture| mixture.name == name)
    }
}

/// The version of a batch of the trace, counted from 0: late enough for its transactions to have read before it.
pub fn batch_version(index: u64) -> Version {
    Version((index + READ_LAG_BATCHES) as i64 * VERSION_STEP)
}

/// Makes the batches of the trace.
#[derive(Clone, Debug)]
pub struct LongTrace {
    mixture: Mixture,
    key_bytes: usize,
    transactions: u64,
    uniform_ids: u64,
    zipf: Zipf,
    appended_read: u64,
    /// By prefix: how many ids were appended. They stand behind the uniform ones.
    appended: [u64; PREFIXES],
}

/// What a range is for: reads look back where writes append.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Read,
    Write,
}

impl LongTrace {
    /// The trace with keys of one of the [`KEY_BYTES`], at a scale.
    ///
    /// # Panics
    /// With another key length.
    pub fn new(key_bytes: usize, mixture: Mixture, scale: Scale) -> LongTrace {
        assert!(KEY_BYTES.contains(&key_bytes), "keys of {key_bytes} bytes");
        LongTrace {
            mixture,
            key_bytes,
            transactions: scale.of(TRANSACTIONS),
            uniform_ids: scale.of(UNIFORM_IDS),
            zipf: Zipf::new(scale.of(ZIPF_IDS), ZIPF_EXPONENT),
            appended_read: scale.of(APPENDED_READ),
            appended: [0; PREFIXES],
        }
    }

    /// The batch with a number, counted from 0; to be asked for in order.
    pub fn batch(&mut self, index: u64, rng: &mut Rng) -> BatchBuf {
        let version = batch_version(index);
        let mut batch = BatchBuf::new(version, Version(version.0 - WINDOW_VERSIONS));
        let (mut begin, mut end) = ([0; 65], [0; 65]);
        for _ in 0..self.transactions {
            let lag = 1 + rng.below(READ_LAG_BATCHES) as i64;
            batch.push_transaction(Version(version.0 - lag * VERSION_STEP), false);
            for side in [Side::Read, Side::Read, Side::Write, Side::Write] {
                let (begin, end) = self.range(side, rng, &mut begin, &mut end);
                match side {
                    Side::Read => batch.push_read(begin, end),
                    Side::Write => batch.push_write(begin, end),
                }
            }
        }
        batch
    }

    fn range<'a>(
        &mut self,
        side: Side,
        rng: &mut Rng,
        begin: &'a mut [u8; 65],
        end: &'a mut [u8; 65],
    ) -> (&'a [u8], &'a [u8]) {
        let kind = rng.below(100);
        let span = if kind < self.mixture.points {
            None
        } else if kind < self.mixture.points + self.mixture.ranges {
            Some(1 + rng.below(LONGEST_RANGE))
        } else {
            Some(1 + rng.below(LONGEST_CLEAR))
        };
        let prefix = rng.below(PREFIXES as u64) as usize;
        let id = self.id(side, prefix, span.unwrap_or(1), rng);
        let length = self.key_bytes;
        write_key(&mut begin[..length], prefix, id);
        match span {
            None => {
                end[..length].copy_from_slice(&begin[..length]);
                end[length] = 0;
                (&begin[..length], &end[..=length])
            }
            Some(span) => {
                write_key(&mut end[..length], prefix, id + span);
                (&begin[..length], &end[..length])
            }
        }
    }

    fn id(&mut self, side: Side, prefix: usize, span: u64, rng: &mut Rng) -> u64 {
        let source = rng.below(100);
        if source < self.mixture.uniform {
            rng.below(self.uniform_ids)
        } else if source < self.mixture.uniform + self.mixture.zipf {
            let ranks = self.zipf.ranks();
            ((u128::from(self.zipf.draw(rng) - 1) * u128::from(SPREAD)) % u128::from(ranks)) as u64
        } else {
            let appended = &mut self.appended[prefix];
            let id = match side {
                Side::Read => appended.saturating_sub(1 + rng.below(self.appended_read)),
                Side::Write => {
                    *appended += span;
                    *appended - span
                }
            };
            self.uniform_ids + id
        }
    }
}

/// A key of 12 bytes or more: 4 bytes of prefix, 8 of id, and what is left a hash of both.
pub(super) fn write_key(key: &mut [u8], prefix: usize, id: u64) {
    key[..4].copy_from_slice(&[b't', b'0', b'0', b'a' + prefix as u8]);
    key[4..12].copy_from_slice(&id.to_be_bytes());
    let mut state = id ^ (prefix as u64) << 56;
    for chunk in key[12..].chunks_mut(8) {
        let word = crate::rng::split_mix_64(&mut state).to_be_bytes();
        chunk.copy_from_slice(&word[..chunk.len()]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use resolver_types::KeyRange;

    fn trace(mixture: &str, key_bytes: usize) -> Vec<BatchBuf> {
        let mixture = Mixture::by_name(mixture).expect("it is named");
        let mut trace = LongTrace::new(key_bytes, mixture, Scale::FULL);
        let mut rng = Rng::new(9);
        (0..24).map(|index| trace.batch(index, &mut rng)).collect()
    }

    fn id(key: &[u8]) -> u64 {
        u64::from_be_bytes(key[4..12].try_into().expect("eight bytes"))
    }

    /// By hundredths of all: points, ranges, clears; ids below the Zipfian bound, below the uniform one, appended.
    fn shares(batches: &[BatchBuf], key_bytes: usize) -> [f64; 6] {
        let mut counts = [0u32; 6];
        let mut all = 0.0;
        let mut prefixes = [0u32; PREFIXES];
        for (index, buf) in batches.iter().enumerate() {
            let ranges = buf.ranges();
            let batch = buf.batch(&ranges);
            assert_eq!(batch.check(None, Version::ZERO), Ok(()));
            assert_eq!((batch.version, batch.transactions.len()), (batch_version(index as u64), 2_048));
            assert_eq!(batch.version.0 - batch.oldest.0, WINDOW_VERSIONS);
            for transaction in batch.transactions {
                assert_eq!((transaction.reads, transaction.writes, transaction.report), (2, 2, false));
                let lag = batch.version.0 - transaction.read_version.0;
                assert!((1..=64).contains(&(lag / VERSION_STEP)) && lag % VERSION_STEP == 0);
                assert!(transaction.read_version >= Version::ZERO);
            }
            for KeyRange { begin, end } in ranges.iter().copied() {
                all += 0.01;
                assert_eq!((begin.len(), &begin[..3]), (key_bytes, &b"t00"[..]));
                prefixes[(begin[3] - b'a') as usize] += 1;
                let kind = if (KeyRange { begin, end }).is_point() {
                    0
                } else {
                    assert_eq!((end.len(), &end[..4]), (key_bytes, &begin[..4]));
                    let span = id(end) - id(begin);
                    assert!((1..=LONGEST_CLEAR).contains(&span));
                    if span <= LONGEST_RANGE { 1 } else { 2 }
                };
                counts[kind] += 1;
                let source = match id(begin) {
                    id if id >= UNIFORM_IDS => 5,
                    id if id >= ZIPF_IDS => 4,
                    _ => 3,
                };
                counts[source] += 1;
            }
        }
        assert!(prefixes.iter().all(|&count| f64::from(count) > 0.9 * all * 100.0 / 16.0), "{prefixes:?}");
        counts.map(|count| f64::from(count) / all)
    }

    #[test]
    fn mixtures_are_what_they_are_defined_to_be() {
        let near = |found: f64, expected: f64| (found - expected).abs() < 0.5;
        for key_bytes in KEY_BYTES {
            let [points, ranges, clears, low, high, appended] = shares(&trace("mixed", key_bytes), key_bytes);
            // One clear in a hundred is no longer than a range; one uniform id in twenty lies among the Zipfian ones.
            assert!(
                near(points, 90.0) && near(ranges, 9.0) && near(clears, 1.0),
                "{points} {ranges} {clears}"
            );
            assert!(near(low, 28.0) && near(high, 57.0) && near(appended, 15.0), "{low} {high} {appended}");
        }
        let [_, _, _, low, high, _] = shares(&trace("uniform", 16), 16);
        assert!(near(low, 5.0) && near(high, 95.0), "{low} {high}");
        let [points, ranges, ..] = shares(&trace("ranges", 16), 16);
        assert_eq!((points, ranges.round()), (0.0, 100.0));
        assert!(near(shares(&trace("zipf", 16), 16)[3], 100.0));
        assert!(near(shares(&trace("append", 16), 16)[5], 100.0));
        assert!(near(shares(&trace("clears", 16), 16)[2], 9.9));
    }

    #[test]
    fn a_key_is_its_prefix_and_its_id() {
        let key = |length: usize, prefix, id| {
            let mut key = vec![0; length];
            write_key(&mut key, prefix, id);
            key
        };
        assert_eq!(key(16, 3, 77)[..12], *b"t00d\0\0\0\0\0\0\0\x4d");
        assert_eq!(key(64, 3, 77)[..32], key(32, 3, 77));
        assert_ne!(key(16, 3, 77)[12..], key(16, 4, 77)[12..]);
        assert_ne!(key(16, 3, 77)[12..], key(16, 3, 78)[12..]);
    }

    #[test]
    fn appended_ids_go_up_and_none_is_given_twice() {
        let mut next = [UNIFORM_IDS; PREFIXES];
        for buf in trace("append", 16) {
            let ranges = buf.ranges();
            let batch = buf.batch(&ranges);
            for range in batch.transactions.iter().flat_map(|transaction| batch.writes(transaction)) {
                let next = &mut next[(range.begin[3] - b'a') as usize];
                assert_eq!(id(range.begin), *next);
                *next = if range.is_point() { *next + 1 } else { id(range.end) };
            }
        }
    }
}
