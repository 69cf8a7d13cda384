//! A sample of the keys that were written, with the version of the last write to each: what a history has to answer, on grounds that share
//! nothing with it.

use crate::{BatchBuf, Rng};
use resolver_types::{Batch, Verdict, Verdicts, Version};
use std::collections::BTreeMap;

/// Probes of one round, and how many of them go to the oldest keys that a history must still know.
const PROBES: usize = 512;
const OLDEST_PROBES: usize = 128;

/// About so many keys are known at once.
const KEYS: u64 = 50_000;

/// A key takes a history at least about so many bytes: what the sample's share is derived from.
const BYTES_PER_KEY: u64 = 16;

/// The sampled keys, each with the version of the last write that covered it.
pub(super) struct Known {
    keys: BTreeMap<Vec<u8>, Version>,
    /// One key in so many is sampled; a power of two.
    one_in: u64,
    rng: Rng,
}

/// Reads whose answers are known.
pub(super) struct Probes {
    /// A read of one key in each transaction.
    pub(super) batch: BatchBuf,
    /// What has to be decided about each.
    pub(super) expected: Vec<Verdict>,
}

impl Known {
    /// Nothing yet, with a sample's share that suits a history of that size.
    pub(super) fn new(budget_bytes: u64, seed: u64) -> Known {
        let one_in = (budget_bytes / BYTES_PER_KEY / KEYS).max(1).next_power_of_two();
        Known { keys: BTreeMap::new(), one_in, rng: Rng::new(seed ^ 0x6b6e_6f77) }
    }

    /// Takes the writes of the transactions that were committed.
    pub(super) fn note(&mut self, batch: &Batch<'_>, verdicts: &Verdicts) {
        for (transaction, verdict) in batch.transactions.iter().zip(&verdicts.verdicts) {
            if *verdict != Verdict::Committed {
                continue;
            }
            for range in batch.writes(transaction) {
                if range.is_point() {
                    if hash(range.begin) & (self.one_in - 1) == 0 {
                        self.keys.insert(range.begin.to_vec(), batch.version);
                    }
                } else if !range.is_empty() {
                    let covered = self.keys.range_mut::<[u8], _>((
                        std::ops::Bound::Included(range.begin),
                        std::ops::Bound::Excluded(range.end),
                    ));
                    covered.for_each(|(_, version)| *version = batch.version);
                }
            }
        }
    }

    /// Reads across all that lies above the cutoff: of keys drawn from the sample, at their last write, right before it, and anywhere; and of
    /// the oldest keys above the cutoff, at the cutoff. Forgets the keys that lie at or below it.
    pub(super) fn probes(&mut self, cutoff: Version, now: Version) -> Probes {
        self.keys.retain(|_, version| *version > cutoff);
        let mut by_age: Vec<(Version, &[u8])> =
            self.keys.iter().map(|(key, version)| (*version, &key[..])).collect();
        by_age.sort_unstable();
        let mut probes =
            Probes { batch: BatchBuf::new(Version(now.0 + 1), Version::LOWEST), expected: Vec::new() };
        for &(version, key) in by_age.iter().take(OLDEST_PROBES) {
            probes.push(key, version, cutoff);
        }
        for nth in 0..if by_age.is_empty() { 0 } else { PROBES - OLDEST_PROBES } {
            let (version, key) = self.rng.pick(&by_age);
            let read_version = match nth % 3 {
                0 => version,
                1 => Version(version.0 - 1),
                _ => Version(self.rng.between(cutoff.0, now.0)),
            };
            probes.push(key, version, read_version);
        }
        probes
    }
}

impl Probes {
    fn push(&mut self, key: &[u8], version: Version, read_version: Version) {
        self.batch.push_transaction(read_version, false);
        self.batch.push_read(key, &[key, &[0]].concat());
        self.expected.push(if version > read_version { Verdict::Conflict } else { Verdict::Committed });
    }
}

/// FNV-1a: which keys are sampled.
fn hash(key: &[u8]) -> u64 {
    let hash = key.iter().fold(0xcbf2_9ce4_8422_2325, |hash: u64, &byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3)
    });
    hash ^ hash >> 32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_committed_write_is_what_is_known() {
        let mut known = Known::new(1, 1);
        let mut buf = BatchBuf::new(Version(10), Version(0));
        buf.push_transaction(Version(9), false);
        buf.push_write(b"a", b"a\0");
        buf.push_write(b"c", b"c\0");
        buf.push_transaction(Version(9), false);
        buf.push_write(b"d", b"d\0");
        let verdicts = |verdicts: &[Verdict]| Verdicts { verdicts: verdicts.to_vec(), reported: Vec::new() };
        known.note(&buf.batch(&buf.ranges()), &verdicts(&[Verdict::Committed, Verdict::Conflict]));
        let mut buf = BatchBuf::new(Version(20), Version(0));
        buf.push_transaction(Version(9), false);
        buf.push_write(b"b", b"d");
        known.note(&buf.batch(&buf.ranges()), &verdicts(&[Verdict::Committed]));
        assert_eq!(
            known.keys.iter().map(|(key, version)| (&key[..], version.0)).collect::<Vec<_>>(),
            [(&b"a"[..], 10), (b"c", 20)]
        );

        let probes = known.probes(Version(10), Version(30));
        assert_eq!(known.keys.len(), 1, "what lies at the cutoff is forgotten");
        let conflicts = probes.expected.iter().filter(|&&verdict| verdict == Verdict::Conflict).count();
        assert!(conflicts > 100 && probes.expected.len() - conflicts > 100);
        for (transaction, expected) in probes.batch.transactions().iter().zip(&probes.expected) {
            assert!((10..=30).contains(&transaction.read_version.0));
            assert_eq!(*expected == Verdict::Conflict, transaction.read_version < Version(20));
        }
    }

    #[test]
    fn a_large_budget_samples_fewer_keys() {
        let mut known = Known::new(6 << 30, 1);
        let mut buf = BatchBuf::new(Version(10), Version(0));
        buf.push_transaction(Version(9), false);
        for number in 0..100_000u32 {
            let key = number.to_be_bytes();
            buf.push_write(&key, &[&key[..], &[0]].concat());
        }
        let verdicts = Verdicts { verdicts: vec![Verdict::Committed], reported: Vec::new() };
        known.note(&buf.batch(&buf.ranges()), &verdicts);
        assert!((3..40).contains(&known.keys.len()), "{} of one in {}", known.keys.len(), known.one_in);
    }
}
