//! One body for both twins: the expected answers are computed here, place by place.

use super::Search;
use crate::batch::{Endpoint, EndpointKind};

/// Longer than any node's arrays, and past several whole vectors of each kind.
const LONGEST: usize = 200;
/// Every length, or the few that Miri has time for.
const STEP: usize = if cfg!(miri) { 37 } else { 1 };

/// The scalar truth, and the fast twin where there is one.
fn twins() -> Vec<Search> {
    let twins = vec![Search::scalar(), Search::detect()];
    assert!(!twins[0].is_fast());
    #[cfg(target_arch = "x86_64")]
    assert_eq!(twins[1].is_fast(), std::arch::is_x86_feature_detected!("avx2"));
    twins
}

/// Numbers that look random, the same in every run.
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (self.0 ^ self.0 >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ mixed >> 31
    }

    /// From a few values around 0, the sign bit and the maximum (so that many are equal), or from all.
    fn head(&mut self, round: usize) -> u64 {
        let anchor = [0, 1 << 63, u64::MAX - 3][self.next() as usize % 3];
        match round % 3 {
            0 => self.next(),
            1 => anchor + self.next() % 4,
            _ => (1 << 63) - 50 + self.next() % 100,
        }
    }

    fn stamp(&mut self, round: usize) -> u32 {
        (self.head(round) >> 32) as u32 | self.head(round) as u32 & 3
    }
}

/// Calls `check` with every length and several fillings of it.
fn for_all_lengths(check: impl Fn(&mut Numbers, usize, usize)) {
    let mut numbers = Numbers(11);
    for length in (0..=LONGEST).step_by(STEP) {
        for round in 0..if cfg!(miri) { 1 } else { 12 } {
            check(&mut numbers, length, length + round);
        }
    }
}

#[test]
fn below_is_the_lower_bound() {
    for search in twins() {
        for_all_lengths(|numbers, length, round| {
            let mut heads: Vec<u64> = (0..length).map(|_| numbers.head(round)).collect();
            heads.sort_unstable();
            let around =
                heads.iter().flat_map(|&head| [head.saturating_sub(1), head, head.saturating_add(1)]);
            let others = [0, 1, (1 << 63) - 1, 1 << 63, u64::MAX - 1, u64::MAX, numbers.next()];
            for probe in around.chain(others).step_by(STEP) {
                let expected = heads.iter().filter(|&&head| head < probe).count();
                assert_eq!(search.below(&heads, probe), expected, "{search:?}: {probe} in {heads:?}");
            }
        });
    }
}

#[test]
fn endpoints_are_walked_to_the_first_whose_moved_head_is_at_or_above_a_probe() {
    for search in twins() {
        for_all_lengths(|numbers, length, round| {
            for bits in [0, 8, 24, 56, 64] {
                // What is moved out of a head is the same in all.
                let kept = u64::MAX.checked_shr(bits).unwrap_or(0);
                let mut heads: Vec<u64> = (0..length).map(|_| numbers.head(round) & kept).collect();
                heads.sort_unstable();
                let endpoint = |head: &u64| Endpoint::new(&head.to_be_bytes(), 0, EndpointKind::ReadBegin, 9);
                let endpoints: Vec<Endpoint> = heads.iter().map(endpoint).collect();
                let moved: Vec<u64> = heads.iter().map(|head| head.checked_shl(bits).unwrap_or(0)).collect();
                let around =
                    moved.iter().flat_map(|&head| [head.saturating_sub(1), head, head.saturating_add(1)]);
                for probe in around.chain([0, 1 << 63, u64::MAX]).step_by(STEP * (1 + length / 16)) {
                    let expected = moved.iter().filter(|&&head| head < probe).count();
                    assert_eq!(
                        search.below_moved(&endpoints, bits, probe),
                        expected,
                        "{search:?}: {probe} in {moved:?}"
                    );
                }
            }
        });
    }
}

#[test]
fn stamps_are_compared_without_sign() {
    for search in twins() {
        for_all_lengths(|numbers, length, round| {
            let stamps: Vec<u32> = (0..length).map(|_| numbers.stamp(round)).collect();
            let mut sorted = stamps.clone();
            sorted.sort_unstable();
            let (least, greatest) = (sorted.first().copied(), sorted.last().copied());
            assert_eq!(search.least(&stamps), least.unwrap_or(u32::MAX), "{search:?}: {stamps:?}");
            assert_eq!(search.greatest(&stamps), greatest.unwrap_or(0), "{search:?}: {stamps:?}");
            let others = [0, 1, (1 << 31) - 1, 1 << 31, u32::MAX - 1, u32::MAX];
            let around = stamps.iter().flat_map(|&stamp| [stamp.saturating_sub(1), stamp]);
            for limit in around.chain(others).step_by(STEP) {
                let through = stamps.iter().filter(|&&stamp| (1..=limit).contains(&stamp)).count();
                assert_eq!(
                    search.count_through(&stamps, limit),
                    through,
                    "{search:?}: {limit} in {stamps:?}"
                );
                assert_eq!(
                    search.any_above(&stamps, limit),
                    stamps.iter().any(|&stamp| stamp > limit),
                    "{search:?}: {limit} in {stamps:?}"
                );
            }
        });
    }
}

#[test]
fn one_stamp_above_is_found_in_every_place() {
    for search in twins() {
        for length in (1..=LONGEST).step_by(STEP) {
            for place in 0..length {
                let mut stamps = vec![7; length];
                stamps[place] = 8;
                assert!(search.any_above(&stamps, 7) && !search.any_above(&stamps, 8));
                assert_eq!((search.greatest(&stamps), search.count_through(&stamps, 7)), (8, length - 1));
                stamps[place] = 6;
                assert_eq!((search.least(&stamps), search.count_through(&stamps, 6)), (6, 1));
            }
        }
    }
}

#[test]
fn the_last_high_bit_before_a_place() {
    for search in twins() {
        for_all_lengths(|numbers, length, round| {
            // From none set to half of them.
            let rarity = [u64::MAX, 100, 20, 2][round % 4];
            let kinds: Vec<u8> = (0..length)
                .map(|_| {
                    (numbers.next() as u8 & 0x7f)
                        | if numbers.next().is_multiple_of(rarity) { 0x80 } else { 0 }
                })
                .collect();
            for before in 0..=length {
                let expected = (0..before).rev().find(|&place| kinds[place] & 0x80 != 0);
                assert_eq!(
                    search.last_with_high_bit(&kinds, before),
                    expected,
                    "{search:?}: {before} of {kinds:?}"
                );
            }
        });
    }
}

#[test]
#[should_panic(expected = "out of range")]
fn a_place_past_the_end_is_refused() {
    Search::detect().last_with_high_bit(&[0x80; 4], 5);
}
