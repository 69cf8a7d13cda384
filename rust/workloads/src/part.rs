//! Parts of a batch, and batches in a form to read.

use resolver_types::{Batch, KeyRange, Transaction, Version};
use std::fmt;

/// Bytes of a key that are shown before it is cut.
const SHOWN_KEY_BYTES: usize = 40;

/// Some of a batch's transactions and ranges, with the keys borrowed from it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part<'a> {
    version: Version,
    oldest: Version,
    transactions: Vec<Transaction>,
    ranges: Vec<KeyRange<'a>>,
}

impl<'a> Part<'a> {
    /// The transactions of a batch for which `keep`, given their place in it, answers yes.
    pub fn of(batch: &Batch<'a>, keep: impl FnMut(usize) -> bool) -> Part<'a> {
        Part::select(batch.version, batch.oldest, batch.transactions, batch.ranges, keep)
    }

    /// The transactions of this part for which `keep`, given their place in it, answers yes.
    pub fn with_transactions(&self, keep: impl FnMut(usize) -> bool) -> Part<'a> {
        Part::select(self.version, self.oldest, &self.transactions, &self.ranges, keep)
    }

    fn select(
        version: Version,
        oldest: Version,
        transactions: &[Transaction],
        ranges: &[KeyRange<'a>],
        mut keep: impl FnMut(usize) -> bool,
    ) -> Part<'a> {
        let mut part = Part { version, oldest, transactions: Vec::new(), ranges: Vec::new() };
        for (index, transaction) in transactions.iter().enumerate() {
            if keep(index) {
                let first = transaction.first as usize;
                let end = first + transaction.reads as usize + transaction.writes as usize;
                part.transactions.push(Transaction { first: part.ranges.len() as u32, ..*transaction });
                part.ranges.extend_from_slice(&ranges[first..end]);
            }
        }
        part
    }

    /// All transactions, without the ranges whose place in [`Batch::ranges`] is in `left_out`.
    pub fn without_ranges(&self, left_out: std::ops::Range<usize>) -> Part<'a> {
        let mut part = Part { transactions: Vec::new(), ranges: Vec::new(), ..*self };
        for transaction in &self.transactions {
            let first = transaction.first as usize;
            let writes = first + transaction.reads as usize;
            let end = writes + transaction.writes as usize;
            let mut kept =
                Transaction { first: part.ranges.len() as u32, reads: 0, writes: 0, ..*transaction };
            for index in (first..end).filter(|index| !left_out.contains(index)) {
                part.ranges.push(self.ranges[index]);
                if index < writes {
                    kept.reads += 1;
                } else {
                    kept.writes += 1;
                }
            }
            part.transactions.push(kept);
        }
        part
    }

    /// The part as a batch.
    pub fn batch(&self) -> Batch<'_> {
        Batch {
            version: self.version,
            oldest: self.oldest,
            transactions: &self.transactions,
            ranges: &self.ranges,
        }
    }
}

/// Shows a batch with every range, keys in hexadecimal digits.
#[derive(Clone, Copy, Debug)]
pub struct Shown<'a>(pub Batch<'a>);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Shown(batch) = self;
        write!(f, "batch at version {}, oldest {}", batch.version, batch.oldest)?;
        for (index, transaction) in batch.transactions.iter().enumerate() {
            let report = if transaction.report { ", report" } else { "" };
            write!(f, "\n  transaction {index}: read version {}{report}", transaction.read_version)?;
            let reads = batch.reads(transaction).iter().map(|range| ("read ", range));
            let writes = batch.writes(transaction).iter().map(|range| ("write", range));
            for (kind, range) in reads.chain(writes) {
                write!(f, "\n    {kind} [{}, {})", Key(range.begin), Key(range.end))?;
            }
        }
        Ok(())
    }
}

struct Key<'a>(&'a [u8]);

impl fmt::Display for Key<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return f.write_str("\"\"");
        }
        self.0.iter().take(SHOWN_KEY_BYTES).try_for_each(|byte| write!(f, "{byte:02x}"))?;
        if self.0.len() > SHOWN_KEY_BYTES {
            write!(f, "... of {} bytes", self.0.len())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::BatchBuf;

    fn sample() -> BatchBuf {
        let mut buf = BatchBuf::new(Version(9), Version(2));
        buf.push_transaction(Version(3), true);
        buf.push_read(b"", b"\x00\xff");
        buf.push_write(b"a", &[0x61; 60]);
        buf.push_transaction(Version(4), false);
        buf.push_read(b"b", b"c");
        buf.push_write(b"d", b"e");
        buf
    }

    #[test]
    fn a_batch_is_shown_with_its_keys_in_hex() {
        let buf = sample();
        let ranges = buf.ranges();
        let cut = "61".repeat(40);
        let lines = [
            "batch at version 9, oldest 2",
            "  transaction 0: read version 3, report",
            "    read  [\"\", 00ff)",
            &format!("    write [61, {cut}... of 60 bytes)"),
            "  transaction 1: read version 4",
            "    read  [62, 63)",
            "    write [64, 65)",
        ];
        assert_eq!(Shown(buf.batch(&ranges)).to_string(), lines.join("\n"));
    }

    #[test]
    fn a_part_tiles_its_own_ranges() {
        let buf = sample();
        let ranges = buf.ranges();
        let batch = buf.batch(&ranges);
        let second = Part::of(&batch, |index| index == 1);
        assert_eq!(second.batch().check(None, Version::ZERO), Ok(()));
        assert_eq!(second.batch().ranges, &ranges[2..]);

        let bare = Part::of(&batch, |_| true).without_ranges(1..3);
        assert_eq!(bare.batch().check(None, Version::ZERO), Ok(()));
        let [first, second] = bare.batch().transactions else { panic!("both transactions stay") };
        assert_eq!((first.reads, first.writes, second.reads, second.writes), (1, 0, 0, 1));
        assert_eq!(bare.batch().ranges, [ranges[0], ranges[3]]);
    }
}
