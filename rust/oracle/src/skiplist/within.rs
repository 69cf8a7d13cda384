//! Stage 3: conflicts between transactions of one batch, by a bitset over the ranks of the sorted endpoints.

/// A set of ranks, 64 to a word.
#[derive(Debug, Default)]
pub(super) struct RankSet {
    words: Vec<u64>,
}

/// The bits of `word` that stand for ranks of the non-empty span `begin..end`.
#[inline(always)]
fn mask(word: usize, begin: usize, end: usize) -> u64 {
    let mut mask = u64::MAX;
    if word == begin / 64 {
        mask &= u64::MAX << (begin % 64);
    }
    if word == (end - 1) / 64 {
        mask &= u64::MAX >> (63 - (end - 1) % 64);
    }
    mask
}

impl RankSet {
    /// Empties the set and makes room for the ranks `0..ranks`.
    pub(super) fn reset(&mut self, ranks: usize) {
        self.words.clear();
        self.words.resize(ranks.div_ceil(64), 0);
    }

    /// Adds the ranks `begin..end`; nothing if that is empty.
    pub(super) fn insert(&mut self, begin: u32, end: u32) {
        let (begin, end) = (begin as usize, end as usize);
        if begin < end {
            let first = begin / 64;
            for (offset, bits) in self.words[first..=(end - 1) / 64].iter_mut().enumerate() {
                *bits |= mask(first + offset, begin, end);
            }
        }
    }

    /// Whether any of the ranks `begin..end` is in the set.
    pub(super) fn intersects(&self, begin: u32, end: u32) -> bool {
        let (begin, end) = (begin as usize, end as usize);
        if begin >= end {
            return false;
        }
        let first = begin / 64;
        let words = &self.words[first..=(end - 1) / 64];
        words.iter().enumerate().any(|(offset, bits)| bits & mask(first + offset, begin, end) != 0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_around_word_borders_are_exact() {
        let borders = [0, 1, 62, 63, 64, 65, 127, 128, 129, 190, 191, 192];
        let mut set = RankSet::default();
        for begin in borders {
            for end in borders {
                set.reset(192);
                set.insert(begin, end);
                for rank in 0..192 {
                    assert_eq!(
                        set.intersects(rank, rank + 1),
                        (begin..end).contains(&rank),
                        "{begin}..{end}"
                    );
                }
                for (from, to) in borders.into_iter().flat_map(|from| borders.map(|to| (from, to))) {
                    let expected = from.max(begin) < to.min(end);
                    assert_eq!(set.intersects(from, to), expected, "{from}..{to} in {begin}..{end}");
                }
            }
        }
    }
}
