//! Stage 4: the accepted write ranges of a batch, united.

use resolver_types::{Batch, KeyRange, Verdict};

/// One end of a write range of the batch. Kept from judging to committing, so it holds no key.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct WriteEndpoint {
    /// The transaction, by index in the batch.
    pub(super) transaction: u32,
    /// Twice the range's index in the batch; one more at its end.
    pub(super) id: u32,
}

/// Ranges that are not empty, ascend and do not overlap; that is checked when one is added.
#[derive(Debug, Default)]
pub(super) struct Unions<'a>(Vec<KeyRange<'a>>);

impl<'a> Unions<'a> {
    /// No ranges yet, in the memory of `storage`.
    pub(super) fn in_memory_of(storage: Vec<KeyRange<'a>>) -> Unions<'a> {
        assert!(storage.is_empty(), "only the memory is taken over");
        Unions(storage)
    }

    /// Adds a range behind the others; false, and nothing added, if it is empty or not behind them.
    #[must_use]
    pub(super) fn push(&mut self, range: KeyRange<'a>) -> bool {
        let behind = self.0.last().is_none_or(|last| last.end <= range.begin);
        let fits = behind && !range.is_empty();
        if fits {
            self.0.push(range);
        }
        fits
    }

    /// The ranges, ascending.
    pub(super) fn ranges(&self) -> &[KeyRange<'a>] {
        &self.0
    }

    /// The memory, for the next batch.
    pub(super) fn into_storage(self) -> Vec<KeyRange<'a>> {
        self.0
    }
}

/// Unites the write ranges of the transactions that `verdicts` commits. `writes` holds the batch's write endpoints in
/// sorted order. Ranges that only touch stay apart.
///
/// False if the ranges do not come out ascending: then `writes` was sorted by the keys of another batch.
#[must_use]
pub(super) fn unite<'a>(
    batch: &Batch<'a>,
    writes: &[WriteEndpoint],
    verdicts: &[Verdict],
    unions: &mut Unions<'a>,
) -> bool {
    let mut open = 0u32;
    let mut begin: &[u8] = &[];
    for &WriteEndpoint { transaction, id } in writes {
        if verdicts[transaction as usize] != Verdict::Committed {
            continue;
        }
        let range = &batch.ranges[id as usize / 2];
        if id % 2 == 0 {
            if open == 0 {
                begin = range.begin;
            }
            open += 1;
        } else {
            open -= 1;
            if open == 0 && !unions.push(KeyRange { begin, end: range.end }) {
                return false;
            }
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_ranges_behind_the_last_one_are_taken() {
        let range = |begin, end| KeyRange { begin, end };
        let mut unions = Unions::default();
        assert!(unions.push(range(b"b", b"d")));
        assert!(!unions.push(range(b"c", b"e")), "overlaps");
        assert!(!unions.push(range(b"a", b"b")), "stands before");
        assert!(!unions.push(range(b"e", b"e")), "empty");
        assert!(unions.push(range(b"d", b"d\0")), "touching is allowed");
        assert_eq!(unions.ranges(), [range(b"b", b"d"), range(b"d", b"d\0")]);
    }
}
