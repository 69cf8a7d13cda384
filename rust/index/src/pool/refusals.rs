//! Address space that is refused on purpose, so that a fuzzer can choose where an allocation fails.
//!
//! Without the feature `fuzzing` nothing can be refused, and the type takes no space.

#[cfg(feature = "fuzzing")]
use super::BLOCKS_PER_PAGE;

/// Which requests for more address space are refused, as if by the operating system. What was granted stays
/// so.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Refusals {
    /// Bit by bit, the lowest first, whether a request is refused; after 64 requests none is.
    #[cfg(feature = "fuzzing")]
    script: u64,
    /// Blocks granted so far, whole pages.
    #[cfg(feature = "fuzzing")]
    granted: u64,
}

impl Refusals {
    /// Refuses the requests whose bits are set, the first request the lowest.
    #[cfg(feature = "fuzzing")]
    pub fn new(script: u64) -> Refusals {
        Refusals { script, granted: 0 }
    }

    /// Whether address space up to so many blocks is granted; more than before takes a bit of the script.
    #[cfg(feature = "fuzzing")]
    pub(super) fn grant(&mut self, blocks: u64) -> bool {
        if blocks <= self.granted {
            return true;
        }
        let refused = self.script & 1 != 0;
        self.script >>= 1;
        if !refused {
            self.granted = blocks.next_multiple_of(BLOCKS_PER_PAGE as u64);
        }
        !refused
    }

    /// Whether address space up to so many blocks is granted: always in this build.
    #[cfg(not(feature = "fuzzing"))]
    #[inline(always)]
    pub(super) fn grant(&mut self, _blocks: u64) -> bool {
        true
    }
}
