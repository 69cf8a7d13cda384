//! From a block's number to a reference: the segment table, and the typed access to blocks.
//!
//! ```text
//! id:      | segment (upper bits) | block in the segment (13 bits) |
//! address: bases[segment] + block * BLOCK_BYTES
//! ```
//! Segments are reserved in ascending order, pages committed in ascending order within them. What is below
//! `committed` is initialised memory; nothing else is ever read.
#![allow(unsafe_code)]

use std::ops::Range;
use std::ptr::NonNull;

use super::backing::{Backing, Region};
use super::refusals::Refusals;
use super::{BLOCK_BYTES, BLOCKS_PER_PAGE, BlockId, LINE_BYTES, PAGE_BYTES, PoolError};

/// Bytes of one segment: small beside any limit on address space, big enough that a pool of 1 GiB has 64.
/// Under Miri two pages, so that its tests cross segments.
pub(super) const SEGMENT_BYTES: usize = if cfg!(miri) { 2 * PAGE_BYTES } else { 16 << 20 };
const BLOCKS_PER_SEGMENT: usize = SEGMENT_BYTES / BLOCK_BYTES;
const SEGMENT_SHIFT: u32 = BLOCKS_PER_SEGMENT.trailing_zeros();
const LINES_PER_BLOCK: usize = BLOCK_BYTES / LINE_BYTES;
const _: () = assert!(BLOCKS_PER_SEGMENT.is_power_of_two() && SEGMENT_BYTES.is_multiple_of(PAGE_BYTES));

/// A type that a block can be read and edited as.
///
/// # Safety
/// The type is exactly [`BLOCK_BYTES`] long and aligned to at most [`LINE_BYTES`] (both asserted where it is
/// used), every bit pattern is a valid value, and it has neither padding nor interior mutability.
pub unsafe trait BlockLayout: Copy {}

/// What the pool itself keeps in a free block: the free list.
#[derive(Clone, Copy)]
#[repr(C)]
pub(super) struct FreeBlock {
    /// The free block that was released before this one.
    pub(super) next: BlockId,
    _rest: [u8; BLOCK_BYTES - size_of::<BlockId>()],
}

// SAFETY: a `u32` and bytes, without padding since the bytes need no alignment; the length is asserted in
// `get`.
unsafe impl BlockLayout for FreeBlock {}

/// The memory of one pool.
pub(super) struct Memory {
    /// The address of each reserved segment, in ascending order of its blocks.
    bases: Vec<NonNull<u8>>,
    /// What owns the segments: one region each, or one for all under [`Backing::HugeTlb`].
    regions: Vec<Region>,
    backing: Backing,
    /// Blocks committed, whole pages.
    committed: u32,
    /// Blocks that may be committed, whole pages.
    budget: u32,
    /// Address space that is refused though the operating system has it.
    refusals: Refusals,
}

// SAFETY: the pointers are to memory that this value owns alone and reaches through its methods only, which
// follow the borrow rules; block types are plain data, without interior mutability (`BlockLayout`).
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// Memory for at most `budget` blocks, a positive number of whole pages. Sizes the tables for all of it.
    pub(super) fn new(backing: Backing, budget: u32) -> Result<Memory, PoolError> {
        assert!(budget > 0 && (budget as usize).is_multiple_of(BLOCKS_PER_PAGE), "a budget is whole pages");
        backing.check_supported()?;
        let bytes = budget as usize * BLOCK_BYTES;
        let segments = bytes.div_ceil(SEGMENT_BYTES);
        let mut memory = Memory {
            bases: Vec::new(),
            regions: Vec::new(),
            backing,
            committed: 0,
            budget,
            refusals: Refusals::default(),
        };
        let tables = memory.bases.try_reserve_exact(segments);
        tables
            .and_then(|()| memory.regions.try_reserve_exact(segments))
            .map_err(|_| PoolError::OutOfAddressSpace { needed: bytes as u64 })?;
        if backing == Backing::HugeTlb {
            let region = Region::huge(bytes)?;
            for segment in 0..segments {
                // SAFETY: the region is `bytes` long at least, and `segment * SEGMENT_BYTES < bytes`.
                memory.bases.push(unsafe { region.base().add(segment * SEGMENT_BYTES) });
            }
            memory.regions.push(region);
        }
        Ok(memory)
    }

    /// Reserves segments until `blocks` could be committed. `false` when they exceed the budget or the
    /// operating system refuses; segments reserved on the way are kept.
    #[inline]
    pub(super) fn reserve(&mut self, blocks: u64) -> bool {
        blocks <= u64::from(self.budget)
            && self.refusals.grant(blocks)
            && (blocks <= (self.bases.len() * BLOCKS_PER_SEGMENT) as u64
                || self.add_segments(blocks as usize))
    }

    #[cold]
    fn add_segments(&mut self, blocks: usize) -> bool {
        let budget_bytes = self.budget as usize * BLOCK_BYTES;
        while self.bases.len() * BLOCKS_PER_SEGMENT < blocks {
            // The last segment, or the only one of a small budget, ends with the budget.
            let bytes = SEGMENT_BYTES.min(budget_bytes - self.bases.len() * SEGMENT_BYTES);
            let Some(region) = Region::reserve(self.backing, bytes, self.bases.is_empty()) else {
                return false;
            };
            self.bases.push(region.base());
            self.regions.push(region);
        }
        true
    }

    /// Commits the next page. `false`, and nothing changed, when it exceeds the budget or the operating
    /// system refuses its segment.
    #[cold]
    pub(super) fn commit_page(&mut self) -> bool {
        if !self.reserve(u64::from(self.committed) + BLOCKS_PER_PAGE as u64) {
            return false;
        }
        if !self.backing.is_zeroed() {
            let page = self.address(BlockId(self.committed));
            // SAFETY: `reserve` found or made the segment of this page, and segments are whole pages, so that
            // `PAGE_BYTES` from its first block on are owned and, not being committed, referenced by nobody.
            unsafe { page.write_bytes(0, PAGE_BYTES) };
        }
        self.committed += BLOCKS_PER_PAGE as u32;
        true
    }

    /// Blocks committed.
    #[inline]
    pub(super) fn committed(&self) -> u32 {
        self.committed
    }

    /// Blocks that may be committed.
    #[inline]
    pub(super) fn budget(&self) -> u32 {
        self.budget
    }

    /// From here on, address space is refused as `refusals` says.
    pub(super) fn refuse(&mut self, refusals: Refusals) {
        self.refusals = refusals;
    }

    /// Where the memory comes from.
    pub(super) fn backing(&self) -> Backing {
        self.backing
    }

    /// The size of each region reserved.
    #[cfg(test)]
    pub(super) fn reserved(&self) -> Vec<usize> {
        self.regions.iter().map(Region::bytes).collect()
    }

    /// A committed block read as a `T`.
    #[inline(always)]
    pub(super) fn get<T: BlockLayout>(&self, id: BlockId) -> &T {
        const { assert_layout::<T>() };
        let block = self.committed_address(id).cast::<T>();
        // SAFETY: `committed_address` points to `BLOCK_BYTES` initialised bytes, aligned to `LINE_BYTES`,
        // that live as long as `self`; `assert_layout` says that a `T` fits, `BlockLayout` that any
        // bytes are one. Only `get_mut`, which borrows `self` alone, gives write access.
        unsafe { block.as_ref() }
    }

    /// A committed block edited as a `T`.
    #[inline(always)]
    pub(super) fn get_mut<T: BlockLayout>(&mut self, id: BlockId) -> &mut T {
        const { assert_layout::<T>() };
        let mut block = self.committed_address(id).cast::<T>();
        // SAFETY: as in `get`; `self` is borrowed alone, so that no other reference to any block exists. A
        // `T` has no padding, so that the block stays initialised.
        unsafe { block.as_mut() }
    }

    /// Fetches lines of a block into the caches; nothing for a block that is not committed, or on a processor
    /// without the instruction.
    #[inline(always)]
    pub(super) fn prefetch(&self, id: BlockId, lines: Range<usize>) {
        if id.0 >= self.committed {
            return;
        }
        let block = self.address(id);
        for line in lines.start..lines.end.min(LINES_PER_BLOCK) {
            // SAFETY: the block is committed, and the line lies in it.
            prefetch_line(unsafe { block.add(line * LINE_BYTES) });
        }
    }

    /// The address of a committed block; panics for any other.
    #[inline(always)]
    fn committed_address(&self, id: BlockId) -> NonNull<u8> {
        if id.0 >= self.committed {
            not_committed(id, self.committed);
        }
        self.address(id)
    }

    /// The address of a block of a reserved segment. Both callers have compared the id with `committed`, and
    /// `commit_page` has reserved the page it asks for.
    #[inline(always)]
    fn address(&self, id: BlockId) -> NonNull<u8> {
        let segment = (id.0 >> SEGMENT_SHIFT) as usize;
        debug_assert!(segment < self.bases.len(), "the segment of block {} is not reserved", id.0);
        // SAFETY: the id is that of a committed block or of the next page after `reserve`: `reserve` has
        // filled the table up to its segment.
        let base = unsafe { *self.bases.get_unchecked(segment) };
        // SAFETY: the segment is `SEGMENT_BYTES` long, or the last one and ends with the budget; the block is
        // below both.
        unsafe { base.add((id.0 as usize % BLOCKS_PER_SEGMENT) * BLOCK_BYTES) }
    }
}

/// The part of the contract of [`BlockLayout`] that the compiler can check.
const fn assert_layout<T: BlockLayout>() {
    assert!(size_of::<T>() == BLOCK_BYTES, "a block type is exactly one block long");
    assert!(align_of::<T>() <= LINE_BYTES, "a block type is aligned to a line at most");
}

#[cold]
#[inline(never)]
fn not_committed(id: BlockId, committed: u32) -> ! {
    panic!("block {} is used, but only {committed} are committed", id.0)
}

/// Fetches the line that something begins in.
#[inline(always)]
pub(crate) fn prefetch<T>(of: &T) {
    prefetch_line(NonNull::from(of).cast());
}

#[cfg(all(target_arch = "x86_64", not(miri)))]
#[inline(always)]
fn prefetch_line(line: NonNull<u8>) {
    use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
    // SAFETY: a hint, which reads nothing and faults at no address.
    unsafe { _mm_prefetch::<_MM_HINT_T0>(line.as_ptr().cast()) };
}

#[cfg(not(all(target_arch = "x86_64", not(miri))))]
#[inline(always)]
fn prefetch_line(_line: NonNull<u8>) {}
