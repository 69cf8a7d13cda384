//! Conflicts between the transactions of one batch: a bit for every distinct key.
//!
//! The distinct keys of a batch cut the key space into slots, each from one key up to the next. Every range
//! covers whole slots, or, a point, the first key of one; whatever covers a part of a slot covers its first
//! key. So two ranges overlap exactly when they have a slot in common, and the slots that committed writes
//! cover are all that has to be remembered.

/// The slots that the writes of committed transactions cover.
#[derive(Debug, Default)]
pub(crate) struct Covered {
    words: Vec<u64>,
}

/// The bits of a word from `from` on, up to (not including) `to`.
fn mask(from: u32, to: u32) -> u64 {
    debug_assert!(from < to && to <= 64);
    (u64::MAX << from) & (u64::MAX >> (64 - to))
}

impl Covered {
    /// Nothing of `slots` slots is covered.
    pub(crate) fn start(&mut self, slots: u32) {
        self.words.clear();
        self.words.resize(slots as usize / 64 + 1, 0);
    }

    /// Calls `visit` with every word of slots `from..to` and the bits there, until it says stop; whether it
    /// did.
    #[inline]
    fn any_word(&mut self, (from, to): (u32, u32), mut visit: impl FnMut(&mut u64, u64) -> bool) -> bool {
        if from >= to {
            return false;
        }
        let (first, last) = (from as usize / 64, (to - 1) as usize / 64);
        if first == last {
            return visit(&mut self.words[first], mask(from % 64, (to - 1) % 64 + 1));
        }
        visit(&mut self.words[first], mask(from % 64, 64))
            || self.words[first + 1..last].iter_mut().any(|word| visit(word, u64::MAX))
            || visit(&mut self.words[last], mask(0, (to - 1) % 64 + 1))
    }

    /// Whether any of slots `from..to` is covered.
    #[inline]
    pub(crate) fn any(&mut self, slots: (u32, u32)) -> bool {
        self.any_word(slots, |word, bits| *word & bits != 0)
    }

    /// Covers slots `from..to`.
    #[inline]
    pub(crate) fn cover(&mut self, slots: (u32, u32)) {
        self.any_word(slots, |word, bits| {
            *word |= bits;
            false
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn slots_are_found_exactly_where_they_were_covered() {
        for (from, to) in [(0, 1), (3, 64), (63, 65), (60, 200), (64, 128), (199, 200)] {
            let mut covered = Covered::default();
            covered.start(200);
            covered.cover((from, to));
            for slot in 0..200 {
                assert_eq!(
                    covered.any((slot, slot + 1)),
                    (from..to).contains(&slot),
                    "{from}..{to} at {slot}"
                );
            }
            assert!(!covered.any((0, from)) && !covered.any((to, 200)) && !covered.any((from, from)));
            assert!(covered.any((0, 200)));
        }
    }
}
