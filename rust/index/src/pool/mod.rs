//! One pool of 2 KiB blocks: nodes and keys come out of it, and nothing else holds history.
//!
//! # Glossary
//! | term | meaning |
//! | --- | --- |
//! | block | [`BLOCK_BYTES`] bytes, the unit of allocation, named by a [`BlockId`] |
//! | page | [`PAGE_BYTES`] bytes, the unit of commitment: the budget is counted in pages, whatever the backing |
//! | segment | the unit in which address space is reserved; its memory is not touched before its pages are committed |
//! | committed | part of the pool: used or free |
//! | fresh | committed, and not handed out since the pool was made or cleared |
//! | listed | released, and waiting on the free list |
//!
//! # Order of allocation
//! A released block is handed out again first (last in, first out), then the fresh ones, lowest first, and
//! only when there is neither is another page committed. The order depends on the calls alone, never on the
//! backing or the operating system.
//!
//! # Files
//! This one keeps the accounts and holds no unsafe code; `memory.rs` turns a number into a reference,
//! `backing.rs` obtains address space and gives it back, `refusals.rs` has it refused where a fuzzer wants.
//!
//! # Invariants
//! - used + listed + fresh = committed, and committed <= budget.
//! - The free list names blocks below the fresh ones, each once.

mod backing;
mod memory;
mod refusals;

use std::ops::Range;

pub use backing::{Backing, UnknownBacking};
pub use memory::BlockLayout;
pub(crate) use memory::prefetch;
use memory::{FreeBlock, Memory};
pub use refusals::Refusals;

/// Bytes of one block.
pub const BLOCK_BYTES: usize = 2048;

/// Bytes of one page, in which memory is committed and the budget is counted.
pub const PAGE_BYTES: usize = 64 * 1024;

/// Blocks of one page: 32.
pub const BLOCKS_PER_PAGE: usize = PAGE_BYTES / BLOCK_BYTES;
const _: () = assert!(BLOCKS_PER_PAGE * BLOCK_BYTES == PAGE_BYTES);

/// Bytes of one cache line, the unit of [`Pool::prefetch`].
pub const LINE_BYTES: usize = 64;

/// The most blocks that a pool can number: whole pages, and [`BlockId::NONE`] stays free.
const MAX_BLOCKS: u64 = (u32::MAX as u64 / BLOCKS_PER_PAGE as u64) * BLOCKS_PER_PAGE as u64;

/// The number of a block in its pool: its distance from the first one, in blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
#[repr(transparent)]
pub struct BlockId(pub(crate) u32);

impl BlockId {
    /// No block.
    pub const NONE: BlockId = BlockId(u32::MAX);

    /// Whether this is [`BlockId::NONE`].
    #[inline]
    pub fn is_none(self) -> bool {
        self == BlockId::NONE
    }
}

/// Why a pool could not be made.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PoolError {
    /// The budget does not hold a single page.
    #[error("a budget of {budget} bytes is below one page of {minimum} bytes")]
    BudgetTooSmall {
        /// What was asked for, in bytes.
        budget: u64,
        /// The least that can be asked for, in bytes.
        minimum: u64,
    },
    /// HugeTLB memory cannot be had; nothing was kept.
    #[error("{needed} huge pages of {page_bytes} bytes are needed, {free} are free")]
    OutOfHugePages {
        /// Huge pages that the whole budget takes.
        needed: u64,
        /// Huge pages that are neither in use nor promised to anyone. It can exceed `needed`: then another
        /// limit (a control group's) refused them.
        free: u64,
        /// Bytes of one huge page.
        page_bytes: u64,
    },
    /// This machine does not have this backing.
    #[error("the backing {} is not available: {reason}", backing.name())]
    Unsupported {
        /// The backing asked for.
        backing: Backing,
        /// What is missing.
        reason: &'static str,
    },
    /// So much address space cannot be had, or its blocks cannot be numbered.
    #[error("{needed} bytes of address space cannot be had")]
    OutOfAddressSpace {
        /// Bytes needed.
        needed: u64,
    },
}

/// A pool of blocks under one budget. Dropping it gives everything back to the operating system.
///
/// The contents of a block just allocated are unspecified, but always initialised memory: zeros, or what its
/// former owner and the free list left.
pub struct Pool {
    memory: Memory,
    /// The free list's first block; the others follow through their own first bytes.
    free_head: BlockId,
    /// Blocks on the free list.
    listed: u32,
    /// The lowest block not handed out since the last [`Pool::clear`]; all committed ones from here on are
    /// free.
    fresh: u32,
    /// Blocks handed out and not released.
    used: u32,
    /// One bit a block below `fresh`, set while it is used: finds double releases and uses after release.
    #[cfg(debug_assertions)]
    in_use: Vec<u64>,
}

impl Pool {
    /// A pool of at most `budget_bytes`, rounded down to whole pages. Reserves and commits nothing, except
    /// under [`Backing::HugeTlb`], where the huge pages for the whole budget are mapped and faulted in
    /// now or not at all.
    pub fn new(backing: Backing, budget_bytes: u64) -> Result<Pool, PoolError> {
        let pages = budget_bytes / PAGE_BYTES as u64;
        if pages == 0 {
            return Err(PoolError::BudgetTooSmall { budget: budget_bytes, minimum: PAGE_BYTES as u64 });
        }
        let blocks = pages * BLOCKS_PER_PAGE as u64;
        if blocks > MAX_BLOCKS {
            return Err(PoolError::OutOfAddressSpace { needed: pages * PAGE_BYTES as u64 });
        }
        Ok(Pool {
            memory: Memory::new(backing, blocks as u32)?,
            free_head: BlockId::NONE,
            listed: 0,
            fresh: 0,
            used: 0,
            #[cfg(debug_assertions)]
            in_use: Vec::new(),
        })
    }

    /// The pool, with address space refused as `refusals` says.
    pub fn refusing(mut self, refusals: Refusals) -> Pool {
        self.memory.refuse(refusals);
        self
    }

    /// A block: the last one released, else the lowest fresh one, else the first of one more page. `None`
    /// when the budget is exhausted or the operating system refuses address space; the pool is then as
    /// before. O(1).
    #[inline]
    pub fn allocate(&mut self) -> Option<BlockId> {
        let id = if !self.free_head.is_none() {
            let id = self.free_head;
            self.free_head = self.memory.get::<FreeBlock>(id).next;
            self.listed -= 1;
            id
        } else {
            if self.fresh == self.memory.committed() && !self.memory.commit_page() {
                return None;
            }
            let id = BlockId(self.fresh);
            self.fresh += 1;
            id
        };
        self.used += 1;
        self.mark(id, true);
        Some(id)
    }

    /// Gives a block back; it is the next to be handed out. Its first bytes are overwritten at once. O(1).
    ///
    /// # Panics
    /// When the block was never handed out; in debug builds also when it was released before.
    #[inline]
    pub fn release(&mut self, id: BlockId) {
        assert!(id.0 < self.fresh && self.used > 0, "block {} is released, but was never handed out", id.0);
        self.mark(id, false);
        self.memory.get_mut::<FreeBlock>(id).next = self.free_head;
        self.free_head = id;
        self.listed += 1;
        self.used -= 1;
    }

    /// Reserves address space so that the next `blocks` calls of [`Pool::allocate`] cannot fail (as long as
    /// nothing else is allocated); `false` when the budget or the operating system does not allow it.
    /// O(1) unless a new segment is needed. A reservation that must hold calls this; [`Pool::available`]
    /// knows the budget only.
    #[inline]
    pub fn secure(&mut self, blocks: u64) -> bool {
        let fresh_or_new = blocks.saturating_sub(u64::from(self.listed));
        self.memory.reserve(u64::from(self.fresh) + fresh_or_new)
    }

    /// Blocks that the budget lets [`Pool::allocate`] still give: those free and those not committed yet.
    /// O(1).
    #[inline]
    pub fn available(&self) -> u64 {
        u64::from(self.memory.budget() - self.used)
    }

    /// Blocks handed out and not released. O(1).
    #[inline]
    pub fn used_blocks(&self) -> u64 {
        u64::from(self.used)
    }

    /// Blocks committed and free. O(1).
    #[inline]
    pub fn free_blocks(&self) -> u64 {
        u64::from(self.memory.committed() - self.used)
    }

    /// Blocks committed: used and free. O(1).
    #[inline]
    pub fn committed_blocks(&self) -> u64 {
        u64::from(self.memory.committed())
    }

    /// Bytes of the committed blocks, always whole pages. O(1).
    ///
    /// The same under every backing. What the operating system holds for the pool can differ: transparent
    /// huge pages come 2 MiB at a time (never beyond the budget), HugeTLB pages all at once (the budget,
    /// rounded up to 2 MiB).
    #[inline]
    pub fn committed_bytes(&self) -> u64 {
        self.committed_blocks() * BLOCK_BYTES as u64
    }

    /// The most that [`Pool::committed_bytes`] has been. O(1).
    #[inline]
    pub fn peak_committed_bytes(&self) -> u64 {
        // A page once committed stays so until the pool is dropped.
        self.committed_bytes()
    }

    /// The budget in bytes, rounded down to whole pages. O(1).
    #[inline]
    pub fn budget_bytes(&self) -> u64 {
        u64::from(self.memory.budget()) * BLOCK_BYTES as u64
    }

    /// Where the memory comes from.
    pub fn backing(&self) -> Backing {
        self.memory.backing()
    }

    /// A block read as a `T`. O(1): one bound check, one load from the segment table.
    ///
    /// # Panics
    /// When the block is not committed; in debug builds also when it is free.
    #[inline(always)]
    pub fn get<T: BlockLayout>(&self, id: BlockId) -> &T {
        self.check_used(id);
        self.memory.get(id)
    }

    /// A block edited as a `T`. O(1): one bound check, one load from the segment table.
    ///
    /// # Panics
    /// When the block is not committed; in debug builds also when it is free.
    #[inline(always)]
    pub fn get_mut<T: BlockLayout>(&mut self, id: BlockId) -> &mut T {
        self.check_used(id);
        self.memory.get_mut(id)
    }

    /// Asks the processor to fetch these 64-byte lines of a block. A hint: any id and any lines may be given,
    /// and what does not exist is left out.
    #[inline(always)]
    pub fn prefetch(&self, id: BlockId, lines: Range<usize>) {
        self.memory.prefetch(id, lines);
    }

    /// Makes every block free. The committed pages stay committed, and their blocks are handed out in
    /// ascending order, as from a pool just made. O(1).
    pub fn clear(&mut self) {
        self.free_head = BlockId::NONE;
        self.listed = 0;
        self.fresh = 0;
        self.used = 0;
        #[cfg(debug_assertions)]
        self.in_use.clear();
    }

    /// The free blocks, in the order in which they would be handed out. Ends early where the free list is
    /// corrupt.
    pub fn free_ids(&self) -> impl Iterator<Item = BlockId> + '_ {
        let mut next = self.free_head;
        let listed = (0..self.listed).map_while(move |_| {
            let id = next;
            if id.0 >= self.fresh {
                return None;
            }
            next = self.memory.get::<FreeBlock>(id).next;
            Some(id)
        });
        listed.chain((self.fresh..self.memory.committed()).map(BlockId))
    }

    /// Checks the accounts and the free list: used + free = committed <= budget, every free block in bounds
    /// and listed once. Walks the free blocks and takes one bit a committed block.
    pub fn validate_free_list(&self) -> Result<(), String> {
        let committed = self.memory.committed();
        if committed > self.memory.budget() {
            return Err(format!("{committed} blocks committed, budget of {}", self.memory.budget()));
        }
        if self.fresh > committed {
            return Err(format!("fresh blocks begin at {}, {committed} are committed", self.fresh));
        }
        if u64::from(self.used) + u64::from(self.listed) != u64::from(self.fresh) {
            return Err(format!(
                "{} used and {} listed blocks are not the {} that were handed out",
                self.used, self.listed, self.fresh
            ));
        }
        let mut seen = vec![false; self.fresh as usize];
        let mut next = self.free_head;
        for position in 0..self.listed {
            if next.0 >= self.fresh {
                return Err(format!("free list: entry {position} of {} is block {}", self.listed, next.0));
            }
            if std::mem::replace(&mut seen[next.0 as usize], true) {
                return Err(format!("free list: block {} is listed twice", next.0));
            }
            next = self.memory.get::<FreeBlock>(next).next;
        }
        if !next.is_none() {
            return Err(format!("free list: block {} follows the last of {} entries", next.0, self.listed));
        }
        #[cfg(debug_assertions)]
        for (id, &listed) in seen.iter().enumerate() {
            let used = self.is_marked(BlockId(id as u32));
            if used == listed {
                return Err(format!("block {id} is in use: {used}, on the free list: {listed}"));
            }
        }
        Ok(())
    }

    /// Debug builds: notes that a block changes hands, and that it was on the other side before.
    #[inline(always)]
    fn mark(&mut self, _id: BlockId, _used: bool) {
        #[cfg(debug_assertions)]
        {
            let (word, bit) = (_id.0 as usize / 64, 1 << (_id.0 % 64));
            if word >= self.in_use.len() {
                self.in_use.resize(word + 1, 0);
            }
            let was_used = self.in_use[word] & bit != 0;
            assert!(
                was_used != _used,
                "block {} is {} twice",
                _id.0,
                if _used { "handed out" } else { "released" }
            );
            self.in_use[word] ^= bit;
        }
    }

    /// Debug builds: panics when a block is free.
    #[inline(always)]
    fn check_used(&self, _id: BlockId) {
        #[cfg(debug_assertions)]
        assert!(self.is_marked(_id), "block {} is used, but free", _id.0);
    }

    #[cfg(debug_assertions)]
    fn is_marked(&self, id: BlockId) -> bool {
        self.in_use.get(id.0 as usize / 64).is_some_and(|word| word >> (id.0 % 64) & 1 != 0)
    }
}

#[cfg(test)]
mod tests;
