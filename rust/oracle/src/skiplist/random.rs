//! How high a new node stands.

use super::list::LEVELS;

/// A generator of heights, each level half as likely as the one below. Every list starts with the same sequence.
#[derive(Debug)]
pub(super) struct Heights(u64);

impl Heights {
    pub(super) fn new() -> Heights {
        Heights(0x9e37_79b9_7f4a_7c15)
    }

    /// The height of the next node: 1 to [`LEVELS`].
    pub(super) fn next(&mut self) -> usize {
        // xorshift64*: its upper bits are the good ones.
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        let bits = self.0.wrapping_mul(0x2545_f491_4f6c_dd1d) >> (64 - (LEVELS - 1));
        1 + bits.trailing_ones() as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_level_is_half_as_likely_as_the_one_below() {
        let mut heights = Heights::new();
        let mut at_least = [0u32; LEVELS + 1];
        const DRAWS: u32 = 1 << 20;
        for _ in 0..DRAWS {
            let height = heights.next();
            at_least[1..=height].iter_mut().for_each(|count| *count += 1);
        }
        assert_eq!(at_least[1], DRAWS);
        for (height, &count) in at_least.iter().enumerate().take(11).skip(2) {
            let expected = f64::from(DRAWS >> (height - 1));
            let error = (f64::from(count) - expected).abs() / expected;
            assert!(error < 5.0 / expected.sqrt(), "height {height}: {count} of {expected}");
        }
    }
}
