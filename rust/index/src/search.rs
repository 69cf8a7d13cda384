//! The loops inside a node: free functions on slices, each a scalar truth with a twin for AVX2 beside it.
//!
//! [`Search`] chooses once which of the two runs; both give the same answers for any slice of any length.

#[cfg(target_arch = "x86_64")]
mod avx2;
mod scalar;

use crate::batch::Endpoint;
#[cfg(target_arch = "x86_64")]
use avx2::Avx2;

/// Endpoints that one step of [`Search::below_moved`] compares.
pub(crate) const STRIDE: usize = 4;

/// The in-node primitives, by the instructions chosen when it was made.
#[derive(Clone, Copy, Debug)]
pub struct Search {
    /// Present when the processor has AVX2 and it is to be used.
    #[cfg(target_arch = "x86_64")]
    avx2: Option<Avx2>,
}

/// Calls the fast twin where it is chosen, else the scalar truth.
macro_rules! dispatch {
    ($search:ident.$name:ident($($argument:expr),*)) => {{
        #[cfg(target_arch = "x86_64")]
        if let Some(avx2) = $search.avx2 {
            return avx2.$name($($argument),*);
        }
        scalar::$name($($argument),*)
    }};
}

impl Search {
    /// The fastest that this processor has. Asks the processor: made once, then copied.
    pub fn detect() -> Search {
        Search {
            #[cfg(target_arch = "x86_64")]
            avx2: Avx2::detect(),
        }
    }

    /// The scalar truth.
    pub fn scalar() -> Search {
        Search {
            #[cfg(target_arch = "x86_64")]
            avx2: None,
        }
    }

    /// Whether the fast twin is chosen.
    #[cfg(test)]
    fn is_fast(self) -> bool {
        #[cfg(target_arch = "x86_64")]
        let fast = self.avx2.is_some();
        #[cfg(not(target_arch = "x86_64"))]
        let fast = false;
        fast
    }

    /// How many of the ascending heads are less than `probe`: its lower bound. O(log n).
    #[inline(always)]
    pub fn below(self, heads: &[u64], probe: u64) -> usize {
        debug_assert!(heads.is_sorted(), "heads ascend");
        dispatch!(self.below(heads, probe))
    }

    /// How many of the sorted endpoints have heads that, moved to the left by `bits`, are less than `probe`: their lower bound,
    /// found by a walk from the first. O(answer), [`STRIDE`] at a step.
    #[inline(always)]
    pub(crate) fn below_moved(self, endpoints: &[Endpoint], bits: u32, probe: u64) -> usize {
        dispatch!(self.below_moved(endpoints, bits, probe))
    }

    /// Whether some stamp is greater than `limit`. O(n).
    #[inline(always)]
    pub fn any_above(self, stamps: &[u32], limit: u32) -> bool {
        dispatch!(self.any_above(stamps, limit))
    }

    /// The greatest stamp, 0 when there is none. O(n).
    #[inline(always)]
    pub fn greatest(self, stamps: &[u32]) -> u32 {
        dispatch!(self.greatest(stamps))
    }

    /// The least stamp, `u32::MAX` when there is none. O(n).
    #[inline(always)]
    pub fn least(self, stamps: &[u32]) -> u32 {
        dispatch!(self.least(stamps))
    }

    /// How many stamps are from 1 up to and including `limit`: at most that, and no gaps. O(n).
    #[inline(always)]
    pub fn count_through(self, stamps: &[u32], limit: u32) -> usize {
        dispatch!(self.count_through(stamps, limit))
    }

    /// The last place before `before` whose kind has its high bit set. O(distance to it).
    ///
    /// # Panics
    /// When `before` exceeds the number of kinds.
    #[inline(always)]
    pub fn last_with_high_bit(self, kinds: &[u8], before: usize) -> Option<usize> {
        dispatch!(self.last_with_high_bit(&kinds[..before]))
    }
}

#[cfg(test)]
mod tests;
