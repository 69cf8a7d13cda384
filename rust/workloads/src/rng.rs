//! The project's own random numbers: a stream that no library version can change.
//!
//! The state of xoshiro256** (Blackman and Vigna) is filled by SplitMix64 from the seed. Both are published with
//! reference code; the tests hold their known outputs.

/// SplitMix64: one step of its state and the output for it.
pub(crate) fn split_mix_64(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mut mixed = *state;
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// A seeded stream of random numbers; equal seeds give equal streams, on every machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rng {
    state: [u64; 4],
}

impl Rng {
    /// The stream of a seed.
    pub fn new(seed: u64) -> Rng {
        let mut mix = seed;
        Rng { state: std::array::from_fn(|_| split_mix_64(&mut mix)) }
    }

    /// The next 64 bits.
    #[inline]
    pub fn next_u64(&mut self) -> u64 {
        let [a, b, c, d] = &mut self.state;
        let output = b.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        let shifted = *b << 17;
        *c ^= *a;
        *d ^= *b;
        *b ^= *c;
        *a ^= *d;
        *c ^= shifted;
        *d = d.rotate_left(45);
        output
    }

    /// A number in `0..bound`, each equally likely: Lemire's multiplication, with the draws that would favour some
    /// numbers thrown away.
    ///
    /// # Panics
    /// If `bound` is 0.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "there is no number below 0");
        loop {
            let product = u128::from(self.next_u64()) * u128::from(bound);
            // 2^64 mod bound of the low halves stand for one number more than the others.
            if product as u64 >= bound || product as u64 >= bound.wrapping_neg() % bound {
                return (product >> 64) as u64;
            }
        }
    }

    /// A number in `low..=high`, each equally likely.
    ///
    /// # Panics
    /// If `low` is above `high`, or they are `high - low >= u64::MAX` apart.
    #[inline]
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        assert!(low <= high, "no number from {low} to {high}");
        low.wrapping_add_unsigned(self.below(low.abs_diff(high) + 1))
    }

    /// True with a chance of one in `bound`.
    ///
    /// # Panics
    /// If `bound` is 0.
    #[inline]
    pub fn one_in(&mut self, bound: u64) -> bool {
        self.below(bound) == 0
    }

    /// One of the choices, each equally likely.
    ///
    /// # Panics
    /// If there are none.
    #[inline]
    pub fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len() as u64) as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn split_mix_64_gives_its_published_stream() {
        let mut state = 1_234_567;
        let stream: [u64; 3] = std::array::from_fn(|_| split_mix_64(&mut state));
        assert_eq!(stream, [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423]);
    }

    #[test]
    fn xoshiro_gives_its_published_stream() {
        let mut rng = Rng { state: [1, 2, 3, 4] };
        let stream: [u64; 6] = std::array::from_fn(|_| rng.next_u64());
        assert_eq!(
            stream,
            [
                11_520,
                0,
                1_509_978_240,
                1_215_971_899_390_074_240,
                1_216_172_134_540_287_360,
                607_988_272_756_665_600
            ]
        );
    }

    #[test]
    fn bounded_draws_are_even_and_stay_inside() {
        let mut rng = Rng::new(7);
        let mut seen = [0u32; 6];
        for _ in 0..60_000 {
            seen[rng.below(6) as usize] += 1;
        }
        assert!(seen.iter().all(|count| (9_500..10_500).contains(count)), "{seen:?}");
        // With two thirds of all numbers as bound, a draw without rejection would favour every other number twofold.
        let bound = u64::MAX / 3 * 2;
        let even = (0..30_000).filter(|_| rng.below(bound).is_multiple_of(2)).count();
        assert!((14_500..15_500).contains(&even), "{even}");
        assert_eq!(rng.below(1), 0);
        assert!((0..1_000).map(|_| rng.between(-2, 1)).all(|drawn| (-2..=1).contains(&drawn)));
        assert_eq!(rng.between(i64::MIN, i64::MIN), i64::MIN);
        assert!((0..1_000).any(|_| rng.between(-2, 1) == -2) && (0..1_000).any(|_| rng.between(-2, 1) == 1));
    }

    #[test]
    fn equal_seeds_give_equal_streams() {
        let stream = |seed| -> Vec<u64> {
            let mut rng = Rng::new(seed);
            (0..100).map(|_| rng.below(1_000)).collect()
        };
        assert_eq!(stream(3), stream(3));
        assert_ne!(stream(3), stream(4));
    }
}
