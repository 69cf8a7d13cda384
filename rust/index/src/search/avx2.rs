//! The twins for AVX2. Every load is of a whole vector inside the slice: where the length is no multiple of
//! one, the last vector overlaps the one before, and a slice shorter than a vector is left to the scalar
//! truth.
//!
//! AVX2 compares signed numbers only: heads are compared after turning the top bit of both sides over, stamps
//! by what an unsigned minimum leaves unchanged.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::{STRIDE, scalar};
use crate::batch::Endpoint;

/// Heads in one vector.
const HEADS: usize = 4;
/// Stamps in one vector.
const STAMPS: usize = 8;
/// Stamps that one step of a loop takes: few steps, so that their number is rarely mispredicted.
const GROUP: usize = 4 * STAMPS;
/// Kinds in one vector.
const KINDS: usize = 32;
/// Heads that are compared all at once at the end of a search: three cache lines.
const WINDOW: usize = 24;
/// Heads that are compared to find the window: the last of each window but the last.
const SAMPLES: usize = 6;
/// The most heads that samples and window settle: 168, more than a node has.
const SAMPLED: usize = WINDOW * (SAMPLES + 1);
const _: () = assert!(WINDOW.is_multiple_of(HEADS));

/// The proof that the processor has AVX2: only [`Avx2::detect`] makes one.
#[derive(Clone, Copy, Debug)]
pub(super) struct Avx2(());

impl Avx2 {
    /// Asks the processor.
    pub(super) fn detect() -> Option<Avx2> {
        std::arch::is_x86_feature_detected!("avx2").then_some(Avx2(()))
    }

    /// See [`super::Search::below`].
    #[inline(always)]
    pub(super) fn below(self, heads: &[u64], probe: u64) -> usize {
        // SAFETY: the processor has AVX2: `self` proves it.
        unsafe { below(heads, probe) }
    }

    /// See [`super::Search::below_moved`].
    #[inline(always)]
    pub(super) fn below_moved(self, endpoints: &[Endpoint], bits: u32, probe: u64) -> usize {
        // SAFETY: the processor has AVX2: `self` proves it.
        unsafe { below_moved(endpoints, bits, probe) }
    }

    /// See [`super::Search::any_above`].
    #[inline(always)]
    pub(super) fn any_above(self, stamps: &[u32], limit: u32) -> bool {
        // SAFETY: the processor has AVX2: `self` proves it.
        unsafe { any_above(stamps, limit) }
    }

    /// See [`super::Search::greatest`].
    #[inline(always)]
    pub(super) fn greatest(self, stamps: &[u32]) -> u32 {
        // SAFETY: the processor has AVX2: `self` proves it.
        unsafe { greatest(stamps) }
    }

    /// See [`super::Search::least`].
    #[inline(always)]
    pub(super) fn least(self, stamps: &[u32]) -> u32 {
        // SAFETY: the processor has AVX2: `self` proves it.
        unsafe { least(stamps) }
    }

    /// See [`super::Search::count_through`].
    #[inline(always)]
    pub(super) fn count_through(self, stamps: &[u32], limit: u32) -> usize {
        // SAFETY: the processor has AVX2: `self` proves it.
        unsafe { count_through(stamps, limit) }
    }

    /// See [`super::Search::last_with_high_bit`]; all of `kinds` is before.
    #[inline(always)]
    pub(super) fn last_with_high_bit(self, kinds: &[u8]) -> Option<usize> {
        // SAFETY: the processor has AVX2: `self` proves it.
        unsafe { last_with_high_bit(kinds) }
    }
}

/// Loads 32 bytes of numbers.
#[inline]
#[target_feature(enable = "avx2")]
fn load<T: Number, const N: usize>(numbers: &[T; N]) -> __m256i {
    const { assert!(size_of::<[T; N]>() == size_of::<__m256i>()) };
    // SAFETY: the array is as long as the vector (asserted above), and an unaligned load reads just that.
    unsafe { _mm256_loadu_si256(numbers.as_ptr().cast()) }
}

/// The types that vectors are loaded from.
trait Number: Copy {}
impl Number for u64 {}
impl Number for u32 {}
impl Number for u8 {}
/// Two numbers, as the record is declared (`repr(C)`): the head first.
impl Number for Endpoint {}

/// `probe` in every place, ready for [`count_below`].
#[inline]
#[target_feature(enable = "avx2")]
fn spread(probe: u64) -> __m256i {
    _mm256_set1_epi64x((probe ^ 1 << 63) as i64)
}

/// Counts the heads of a vector below the probe, each place for itself: what is subtracted from `counts` is
/// -1 there.
#[inline]
#[target_feature(enable = "avx2")]
fn count_below(counts: __m256i, heads: &[u64; HEADS], probe: __m256i) -> __m256i {
    let heads = _mm256_xor_si256(load(heads), _mm256_set1_epi64x(i64::MIN));
    _mm256_sub_epi64(counts, _mm256_cmpgt_epi64(probe, heads))
}

/// The sum of four numbers.
#[inline]
#[target_feature(enable = "avx2")]
fn sum(counts: __m256i) -> usize {
    let pair = _mm_add_epi64(_mm256_castsi256_si128(counts), _mm256_extracti128_si256::<1>(counts));
    (_mm_cvtsi128_si64(pair) + _mm_extract_epi64::<1>(pair)) as usize
}

/// Counts samples to find the window that holds the answer, then counts in the window. The samples do not
/// wait for each other, as the steps of halving do, and no branch depends on the number of heads of a node.
#[target_feature(enable = "avx2")]
fn below(heads: &[u64], probe: u64) -> usize {
    let (mut start, mut heads) = (0, heads);
    while heads.len() > SAMPLED {
        let half = heads.len() / 2;
        let is_right = heads[half - 1] < probe;
        start += if is_right { half } else { 0 };
        heads = if is_right { &heads[half..] } else { &heads[..half] };
    }
    if heads.len() < WINDOW {
        return start + count(heads, probe);
    }
    let last = heads.len() - 1;
    let windows = (1..=SAMPLES).filter(|window| heads[(window * WINDOW - 1).min(last)] < probe).count();
    // Samples past the end are the last head: if that is below the probe, the answer is the length, and the
    // last window gives it. A window moved left holds heads of the one before, which are below the probe,
    // and counted.
    let window = (windows * WINDOW).min(heads.len() - WINDOW);
    start + window + count(&heads[window..window + WINDOW], probe)
}

/// Counts the heads below the probe, whatever their order.
#[inline]
#[target_feature(enable = "avx2")]
fn count(heads: &[u64], probe: u64) -> usize {
    let (vectors, rest) = heads.as_chunks::<HEADS>();
    let probes = spread(probe);
    let counts =
        vectors.iter().fold(_mm256_setzero_si256(), |counts, vector| count_below(counts, vector, probes));
    sum(counts) + rest.iter().filter(|&&head| head < probe).count()
}

/// Counts [`STRIDE`] endpoints at a time, up to the first step that not all of them pass.
#[target_feature(enable = "avx2")]
fn below_moved(endpoints: &[Endpoint], bits: u32, probe: u64) -> usize {
    let probes = spread(probe);
    let left = _mm_cvtsi32_si128(bits as i32);
    let (steps, rest) = endpoints.as_chunks::<STRIDE>();
    let mut all = 0;
    for [a, b, c, d] in steps {
        // The order within a step is of no account.
        let heads = _mm256_unpacklo_epi64(load(&[*a, *b]), load(&[*c, *d]));
        let heads = _mm256_xor_si256(_mm256_sll_epi64(heads, left), _mm256_set1_epi64x(i64::MIN));
        let less = _mm256_cmpgt_epi64(probes, heads);
        let count = _mm256_movemask_pd(_mm256_castsi256_pd(less)).count_ones() as usize;
        all += count;
        if count < STRIDE {
            return all;
        }
    }
    all + scalar::below_moved(rest, bits, probe)
}

/// All ones in the places whose stamp is at most the limit.
#[inline]
#[target_feature(enable = "avx2")]
fn at_or_below(stamps: &[u32; STAMPS], limit: __m256i) -> __m256i {
    let stamps = load(stamps);
    _mm256_cmpeq_epi32(_mm256_min_epu32(stamps, limit), stamps)
}

/// Folds vectors that together hold every stamp, some of them twice; none when there are fewer than eight.
#[inline]
#[target_feature(enable = "avx2")]
fn fold(stamps: &[u32], from: __m256i, step: impl Fn(__m256i, &[u32; STAMPS]) -> __m256i) -> __m256i {
    let mut folded = from;
    let mut rest = stamps;
    if let Some(last) = stamps.last_chunk::<GROUP>() {
        for group in stamps.as_chunks::<GROUP>().0 {
            folded = group.as_chunks().0.iter().fold(folded, &step);
        }
        rest = last;
    }
    folded = rest.as_chunks().0.iter().fold(folded, &step);
    stamps.last_chunk().map_or(folded, |last| step(folded, last))
}

/// The eight stamps of a vector.
#[inline]
#[target_feature(enable = "avx2")]
fn stamps_of(vector: __m256i) -> [u32; STAMPS] {
    // SAFETY: a vector is eight numbers, whatever their bits.
    unsafe { std::mem::transmute(vector) }
}

#[target_feature(enable = "avx2")]
fn any_above(stamps: &[u32], limit: u32) -> bool {
    if stamps.len() < STAMPS {
        return scalar::any_above(stamps, limit);
    }
    let limits = _mm256_set1_epi32(limit as i32);
    let both = |within, vector: &_| _mm256_and_si256(within, at_or_below(vector, limits));
    _mm256_movemask_epi8(fold(stamps, _mm256_set1_epi8(-1), both)) != -1
}

#[target_feature(enable = "avx2")]
fn greatest(stamps: &[u32]) -> u32 {
    if stamps.len() < STAMPS {
        return scalar::greatest(stamps);
    }
    let greater = |greatest, vector: &_| _mm256_max_epu32(greatest, load(vector));
    scalar::greatest(&stamps_of(fold(stamps, _mm256_setzero_si256(), greater)))
}

#[target_feature(enable = "avx2")]
fn least(stamps: &[u32]) -> u32 {
    if stamps.len() < STAMPS {
        return scalar::least(stamps);
    }
    let lesser = |least, vector: &_| _mm256_min_epu32(least, load(vector));
    scalar::least(&stamps_of(fold(stamps, _mm256_set1_epi8(-1), lesser)))
}

/// All ones in the places whose stamp is 0 or above the limit: less one, it is not less than the limit.
#[inline]
#[target_feature(enable = "avx2")]
fn gap_or_above(stamps: &[u32; STAMPS], limit: __m256i) -> __m256i {
    let less_one = _mm256_add_epi32(load(stamps), _mm256_set1_epi32(-1));
    _mm256_cmpeq_epi32(_mm256_max_epu32(less_one, limit), less_one)
}

#[target_feature(enable = "avx2")]
fn count_through(stamps: &[u32], limit: u32) -> usize {
    let Some(last) = stamps.last_chunk() else { return scalar::count_through(stamps, limit) };
    let limits = _mm256_set1_epi32(limit as i32);
    let count = |counts, vector| _mm256_sub_epi32(counts, gap_or_above(vector, limits));
    let counts = stamps.as_chunks().0.iter().fold(_mm256_setzero_si256(), count);
    // Of the last eight, those that no whole vector has counted: the upper places.
    let counted = (STAMPS - stamps.len() % STAMPS) as i32;
    let places = _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7);
    let open = _mm256_cmpgt_epi32(places, _mm256_set1_epi32(counted - 1));
    let counts = _mm256_sub_epi32(counts, _mm256_and_si256(gap_or_above(last, limits), open));
    stamps.len() - stamps_of(counts).iter().sum::<u32>() as usize
}

#[target_feature(enable = "avx2")]
fn last_with_high_bit(kinds: &[u8]) -> Option<usize> {
    let (rest, vectors) = kinds.as_rchunks::<KINDS>();
    for (index, vector) in vectors.iter().enumerate().rev() {
        let high = _mm256_movemask_epi8(load(vector)) as u32;
        if high != 0 {
            return Some(rest.len() + index * KINDS + high.ilog2() as usize);
        }
    }
    scalar::last_with_high_bit(rest)
}
