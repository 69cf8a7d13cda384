//! The twins for AVX2. Loads are of whole vectors inside the slice; what is left over is done by the scalar truth.
//!
//! AVX2 compares signed numbers only: heads are compared after turning the top bit of both sides over, stamps by
//! what an unsigned minimum leaves unchanged.
#![allow(unsafe_code)]

use std::arch::x86_64::*;

use super::scalar;

/// Heads in one vector.
const HEADS: usize = 4;
/// Stamps in one vector.
const STAMPS: usize = 8;
/// Kinds in one vector.
const KINDS: usize = 32;
/// Heads that are compared all at once at the end of a search.
const WINDOW: usize = 4 * HEADS;

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

    /// See [`super::Search::count_at_or_below`].
    #[inline(always)]
    pub(super) fn count_at_or_below(self, stamps: &[u32], limit: u32) -> usize {
        // SAFETY: the processor has AVX2: `self` proves it.
        unsafe { count_at_or_below(stamps, limit) }
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

/// `probe` in every place, ready for [`count_below`].
#[inline]
#[target_feature(enable = "avx2")]
fn spread(probe: u64) -> __m256i {
    _mm256_set1_epi64x((probe ^ 1 << 63) as i64)
}

/// Counts the heads of a vector below the probe, each place for itself: what is subtracted from `counts` is -1 there.
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

/// Halves what is left without a branch down to a window, then compares the window at once.
#[target_feature(enable = "avx2")]
fn below(heads: &[u64], probe: u64) -> usize {
    if heads.len() < WINDOW {
        let (vectors, rest) = heads.as_chunks::<HEADS>();
        let probes = spread(probe);
        let counts =
            vectors.iter().fold(_mm256_setzero_si256(), |counts, vector| count_below(counts, vector, probes));
        return sum(counts) + rest.iter().filter(|&&head| head < probe).count();
    }
    // The answer lies in `start..=start + left`.
    let (mut start, mut left) = (0, heads.len());
    while left > WINDOW {
        let half = left / 2;
        start = std::hint::select_unpredictable(heads[start + half - 1] < probe, start + half, start);
        left -= half;
    }
    // The window may begin earlier: what it then holds before `start` is below the probe, and counted.
    let start = start.min(heads.len() - WINDOW);
    let (vectors, _) = heads[start..start + WINDOW].as_chunks::<HEADS>();
    let probes = spread(probe);
    start
        + sum(vectors
            .iter()
            .fold(_mm256_setzero_si256(), |counts, vector| count_below(counts, vector, probes)))
}

/// All ones in the places whose stamp is at most the limit.
#[inline]
#[target_feature(enable = "avx2")]
fn at_or_below(stamps: &[u32; STAMPS], limit: __m256i) -> __m256i {
    let stamps = load(stamps);
    _mm256_cmpeq_epi32(_mm256_min_epu32(stamps, limit), stamps)
}

#[target_feature(enable = "avx2")]
fn any_above(stamps: &[u32], limit: u32) -> bool {
    let (vectors, rest) = stamps.as_chunks::<STAMPS>();
    let limits = _mm256_set1_epi32(limit as i32);
    let (groups, vectors) = vectors.as_chunks::<4>();
    let all = |vectors: &[[u32; STAMPS]]| {
        let within = |all, vector| _mm256_and_si256(all, at_or_below(vector, limits));
        _mm256_movemask_epi8(vectors.iter().fold(_mm256_set1_epi8(-1), within)) == -1
    };
    !(groups.iter().all(|group| all(group)) && all(vectors)) || scalar::any_above(rest, limit)
}

#[target_feature(enable = "avx2")]
fn greatest(stamps: &[u32]) -> u32 {
    stamps.iter().fold(0, |greatest, &stamp| greatest.max(stamp))
}

#[target_feature(enable = "avx2")]
fn least(stamps: &[u32]) -> u32 {
    stamps.iter().fold(u32::MAX, |least, &stamp| least.min(stamp))
}

#[target_feature(enable = "avx2")]
fn count_at_or_below(stamps: &[u32], limit: u32) -> usize {
    let (vectors, rest) = stamps.as_chunks::<STAMPS>();
    let limits = _mm256_set1_epi32(limit as i32);
    let count = |counts, vector| _mm256_sub_epi32(counts, at_or_below(vector, limits));
    let counts = vectors.iter().fold(_mm256_setzero_si256(), count);
    // SAFETY: a vector is eight numbers, whatever their bits.
    let counts: [u32; STAMPS] = unsafe { std::mem::transmute(counts) };
    counts.iter().sum::<u32>() as usize + scalar::count_at_or_below(rest, limit)
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
