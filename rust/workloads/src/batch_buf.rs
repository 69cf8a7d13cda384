//! A batch that owns its keys.

use resolver_types::{Batch, KeyRange, Transaction, Version};

/// A batch that owns its keys: what readers and generators produce.
///
/// The key bytes stand in one array; [`BatchBuf::ranges`] makes the views that a [`Batch`] is built from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BatchBuf {
    version: Version,
    oldest: Version,
    transactions: Vec<Transaction>,
    keys: Vec<u8>,
    /// Where each range's begin and end stop in `keys`; the begin starts where the range before it stops.
    stops: Vec<(u32, u32)>,
    /// Whether the open transaction already has a write.
    writing: bool,
}

impl BatchBuf {
    /// A batch without transactions.
    pub fn new(version: Version, oldest: Version) -> BatchBuf {
        BatchBuf { version, oldest, ..BatchBuf::default() }
    }

    /// The version at which the batch commits.
    pub fn version(&self) -> Version {
        self.version
    }

    /// The batch's `newOldestVersion`.
    pub fn oldest(&self) -> Version {
        self.oldest
    }

    /// The transactions, in order.
    pub fn transactions(&self) -> &[Transaction] {
        &self.transactions
    }

    /// Opens the next transaction; the ranges pushed from here on are its.
    pub fn push_transaction(&mut self, read_version: Version, report: bool) {
        let first = self.stops.len() as u32;
        self.transactions.push(Transaction { read_version, report, first, reads: 0, writes: 0 });
        self.writing = false;
    }

    fn push_range(&mut self, begin: &[u8], end: &[u8]) {
        self.keys.extend_from_slice(begin);
        let begin_stop = self.keys.len();
        self.keys.extend_from_slice(end);
        let end_stop = u32::try_from(self.keys.len()).expect("a batch holds less than 4 GiB of key bytes");
        self.stops.push((begin_stop as u32, end_stop));
    }

    /// Adds a read range to the open transaction.
    ///
    /// # Panics
    /// Without an open transaction, after its first write, or when the batch's keys pass 4 GiB.
    pub fn push_read(&mut self, begin: &[u8], end: &[u8]) {
        assert!(!self.writing, "a transaction's reads stand before its writes");
        self.push_range(begin, end);
        self.transactions.last_mut().expect("a transaction is open").reads += 1;
    }

    /// Adds a write range to the open transaction.
    ///
    /// # Panics
    /// Without an open transaction, or when the batch's keys pass 4 GiB.
    pub fn push_write(&mut self, begin: &[u8], end: &[u8]) {
        self.writing = true;
        self.push_range(begin, end);
        self.transactions.last_mut().expect("a transaction is open").writes += 1;
    }

    /// The bytes that the batch takes in memory with the views of its ranges.
    pub fn bytes(&self) -> usize {
        self.keys.len()
            + size_of_val(&self.transactions[..])
            + self.stops.len() * (size_of::<(u32, u32)>() + size_of::<KeyRange<'_>>())
    }

    /// Views of all ranges, for [`BatchBuf::batch`].
    pub fn ranges(&self) -> Vec<KeyRange<'_>> {
        let mut start = 0;
        let range = |&(begin_stop, end_stop): &(u32, u32)| {
            let (begin_stop, end_stop) = (begin_stop as usize, end_stop as usize);
            let range =
                KeyRange { begin: &self.keys[start..begin_stop], end: &self.keys[begin_stop..end_stop] };
            start = end_stop;
            range
        };
        self.stops.iter().map(range).collect()
    }

    /// The batch over views made by [`BatchBuf::ranges`].
    pub fn batch<'a>(&'a self, ranges: &'a [KeyRange<'a>]) -> Batch<'a> {
        assert_eq!(ranges.len(), self.stops.len(), "the views are of this batch");
        Batch { version: self.version, oldest: self.oldest, transactions: &self.transactions, ranges }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_gives_back_what_was_pushed() {
        let mut buf = BatchBuf::new(Version(9), Version(-4));
        buf.push_transaction(Version(3), true);
        buf.push_read(b"a", b"b");
        buf.push_read(b"", b"\x00");
        buf.push_write(b"k", b"k\x00");
        buf.push_transaction(Version(-1), false);
        buf.push_write(b"z", b"y");
        let ranges = buf.ranges();
        let batch = buf.batch(&ranges);
        assert_eq!((batch.version, batch.oldest), (Version(9), Version(-4)));
        assert_eq!(batch.check(None, Version::ZERO), Ok(()));
        let [first, second] = batch.transactions else { panic!("two transactions") };
        assert_eq!(batch.reads(first)[1], KeyRange { begin: b"", end: b"\x00" });
        assert!(batch.reads(first)[1].is_point() && !batch.reads(first)[0].is_point());
        assert!(batch.writes(first)[0].is_point());
        assert_eq!((batch.reads(second).len(), batch.writes(second)[0].is_empty()), (0, true));
    }
}
