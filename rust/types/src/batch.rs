//! One batch as a resolver receives it. Keys are borrowed; nothing here owns a key byte.

use crate::{BatchError, Version};

/// The longest legal key, in bytes.
pub const MAX_KEY_LENGTH: usize = 65_535;

/// The longest legal end of a range, in bytes: one more than a key, so that the longest key has a point range.
pub const MAX_END_LENGTH: usize = MAX_KEY_LENGTH + 1;

/// The half-open key range `[begin, end)`. Empty or inverted ranges (`begin >= end`) are legal and cover no key.
///
/// The fields stand in memory as they are declared: a bridge to C++ hands over rows of them without a copy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct KeyRange<'a> {
    /// The first key covered.
    pub begin: &'a [u8],
    /// The first key after it that is not covered.
    pub end: &'a [u8],
}

impl KeyRange<'_> {
    /// Whether the range covers no key.
    pub fn is_empty(&self) -> bool {
        self.begin >= self.end
    }

    /// Whether the range is `[k, k\0)`: exactly one key.
    pub fn is_point(&self) -> bool {
        self.end.len() == self.begin.len() + 1
            && self.end[self.begin.len()] == 0
            && self.end[..self.begin.len()] == *self.begin
    }
}

/// One transaction of a batch: where its ranges stand in [`Batch::ranges`] and how to judge them.
///
/// The fields stand in memory as they are declared, for the same reason as a [`KeyRange`]'s.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(C)]
pub struct Transaction {
    /// The version the transaction read at.
    pub read_version: Version,
    /// Whether a loser's conflicting read ranges are to be reported (`report_conflicting_keys`).
    pub report: bool,
    /// Index in [`Batch::ranges`] of the first read range; the reads stand first, the writes right behind them.
    pub first: u32,
    /// How many read ranges.
    pub reads: u32,
    /// How many write ranges.
    pub writes: u32,
}

/// A batch of transactions that commit at one version.
///
/// All ranges of all transactions stand in one array, in transaction order, each transaction's reads before its
/// writes, without gaps: a range is one small integer to everybody who handles it.
#[derive(Clone, Copy, Debug)]
pub struct Batch<'a> {
    /// The version at which the batch commits.
    pub version: Version,
    /// `newOldestVersion`: history at or below it is no longer needed.
    pub oldest: Version,
    /// The transactions, in order.
    pub transactions: &'a [Transaction],
    /// The ranges of all transactions.
    pub ranges: &'a [KeyRange<'a>],
}

impl<'a> Batch<'a> {
    /// The read ranges of a transaction of this batch.
    pub fn reads(&self, transaction: &Transaction) -> &'a [KeyRange<'a>] {
        let first = transaction.first as usize;
        &self.ranges[first..first + transaction.reads as usize]
    }

    /// The write ranges of a transaction of this batch.
    pub fn writes(&self, transaction: &Transaction) -> &'a [KeyRange<'a>] {
        let first = transaction.first as usize + transaction.reads as usize;
        &self.ranges[first..first + transaction.writes as usize]
    }

    /// Checks what every conflict set requires before it touches its history: a version above `last` (the last
    /// committed batch's) and `base`, and no key over the limit.
    ///
    /// Linear in the number of ranges.
    ///
    /// # Panics
    /// If the transactions' spans do not tile [`Batch::ranges`]: that is a mistake of the caller's code, not of its
    /// input.
    pub fn check(&self, last: Option<Version>, base: Version) -> Result<(), BatchError> {
        let newest = last.map_or(base, |last| last.max(base));
        if self.version <= newest {
            return Err(BatchError::VersionNotNewer { version: self.version, newest });
        }
        let mut next = 0u64;
        for transaction in self.transactions {
            assert_eq!(u64::from(transaction.first), next, "the transactions' spans must tile the ranges");
            next += u64::from(transaction.reads) + u64::from(transaction.writes);
        }
        assert_eq!(next, self.ranges.len() as u64, "the transactions' spans must tile the ranges");
        // Seldom is one too long: which one, only then is asked.
        let longest = self.ranges.iter().fold((0, 0), |(begin, end): (usize, usize), range| {
            (begin.max(range.begin.len()), end.max(range.end.len()))
        });
        if longest.0 <= MAX_KEY_LENGTH && longest.1 <= MAX_END_LENGTH {
            return Ok(());
        }
        for (index, range) in self.ranges.iter().enumerate() {
            if range.begin.len() > MAX_KEY_LENGTH {
                return Err(BatchError::KeyTooLong {
                    range: index,
                    length: range.begin.len(),
                    limit: MAX_KEY_LENGTH,
                });
            }
            if range.end.len() > MAX_END_LENGTH {
                return Err(BatchError::KeyTooLong {
                    range: index,
                    length: range.end.len(),
                    limit: MAX_END_LENGTH,
                });
            }
        }
        Ok(())
    }
}
