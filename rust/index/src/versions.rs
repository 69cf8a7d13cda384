//! Stamps: the numbers that stand for commit versions in nodes.
//!
//! Every batch that writes takes the next stamp, so that 32 bits hold any row of versions, however far they
//! jump (recoveries jump by 100,000,000, an operator can set nearly 2^63), and two stamps compare as their
//! versions do. This table has the version of every stamp that has not expired, in blocks of the pool, and
//! counts the entries that carry it.
//!
//! Stamp 0 is a gap: no write. When the stamps run out (after some four billion batches, or at the limit a
//! test sets), all that are left are renumbered from 1.

use crate::layout::{VERSIONS_PER_BLOCK, VersionBlock};
use crate::pool::{BlockId, Pool};
use resolver_types::Version;
use std::collections::VecDeque;

/// The version table: stamps `first..next` in blocks.
#[derive(Debug)]
pub(crate) struct Versions {
    /// The blocks, oldest first; capacity for the most there can be, so that it never grows.
    blocks: VecDeque<BlockId>,
    limit_blocks: usize,
    /// The stamp of the first place of the first block.
    first: u32,
    /// The next stamp to be given.
    next: u32,
}

/// Of a pool's blocks, the part that may hold versions: one in so many.
const VERSION_SHARE: u64 = 4;

impl Versions {
    /// A table for a pool of `pool_blocks` blocks.
    pub(crate) fn new(pool_blocks: u64) -> Versions {
        let limit_blocks = Versions::limit_blocks(pool_blocks);
        Versions { blocks: VecDeque::with_capacity(limit_blocks), limit_blocks, first: 1, next: 1 }
    }

    fn limit_blocks(pool_blocks: u64) -> usize {
        (pool_blocks / VERSION_SHARE).max(2) as usize
    }

    /// Bytes outside the pool that a table for `pool_blocks` blocks takes, all its life.
    pub(crate) fn side_bytes(pool_blocks: u64) -> u64 {
        Versions::limit_blocks(pool_blocks) as u64 * size_of::<BlockId>() as u64
    }

    /// Blocks in use.
    pub(crate) fn blocks(&self) -> u64 {
        self.blocks.len() as u64
    }

    /// The block ids in use.
    pub(crate) fn block_ids(&self) -> impl Iterator<Item = BlockId> + '_ {
        self.blocks.iter().copied()
    }

    /// Forgets all; the blocks are the pool's again.
    pub(crate) fn clear(&mut self) {
        self.blocks.clear();
        (self.first, self.next) = (1, 1);
    }

    /// The stamp that the next batch takes.
    pub(crate) fn next(&self) -> u32 {
        self.next
    }

    /// Whether the next stamp needs a block.
    pub(crate) fn needs_block(&self) -> bool {
        (self.next - self.first) as usize == self.blocks.len() * VERSIONS_PER_BLOCK
    }

    /// Whether the table has used up its share of the pool: older stamps must expire first.
    pub(crate) fn is_full(&self) -> bool {
        self.needs_block() && self.blocks.len() == self.limit_blocks
    }

    /// Gives `version` the next stamp. The caller has seen to the room.
    pub(crate) fn push(&mut self, pool: &mut Pool, version: Version) -> u32 {
        assert!(!self.is_full(), "a full version table is made room in before a batch is applied");
        if self.needs_block() {
            let id = pool.allocate().expect("the batch has reserved the block of its version");
            self.blocks.push_back(id);
        }
        let stamp = self.next;
        let (block, place) = self.place(stamp);
        let block = pool.get_mut::<VersionBlock>(block);
        (block.versions[place], block.entries[place]) = (version.0, 0);
        self.next += 1;
        stamp
    }

    fn place(&self, stamp: u32) -> (BlockId, usize) {
        let at = (stamp - self.first) as usize;
        (self.blocks[at / VERSIONS_PER_BLOCK], at % VERSIONS_PER_BLOCK)
    }

    /// The version of a stamp that is in the table.
    pub(crate) fn version(&self, pool: &Pool, stamp: u32) -> Version {
        let (block, place) = self.place(stamp);
        Version(pool.get::<VersionBlock>(block).versions[place])
    }

    /// The number of entries that carry a stamp of the table.
    pub(crate) fn entries(&self, pool: &Pool, stamp: u32) -> u32 {
        let (block, place) = self.place(stamp);
        pool.get::<VersionBlock>(block).entries[place]
    }

    /// Counts entries that came with a stamp of the table, or went (negative).
    #[inline]
    pub(crate) fn count(&self, pool: &mut Pool, stamp: u32, by: i32) {
        let (block, place) = self.place(stamp);
        let entries = &mut pool.get_mut::<VersionBlock>(block).entries[place];
        *entries = entries.wrapping_add_signed(by);
    }

    /// The greatest stamp whose version is at or below `version`, 0 if none of the table's is. Stamps before
    /// the table's count as its first one's predecessor, which is what they are to every read that is not
    /// too old. Galloping from the newest: logarithmic in the distance.
    pub(crate) fn at_or_below(&self, pool: &Pool, version: Version) -> u32 {
        let mut low = self.first - 1;
        let mut high = self.next;
        // Stamps at or below `low` are at or below `version`; those from `high` on are above it.
        let mut step = 1;
        while high > low + 1 {
            let probe = high.saturating_sub(step).max(low + 1);
            if self.version(pool, probe) <= version {
                low = probe;
                break;
            }
            high = probe;
            step *= 2;
        }
        while high > low + 1 {
            let middle = low + (high - low) / 2;
            if self.version(pool, middle) <= version {
                low = middle;
            } else {
                high = middle;
            }
        }
        low
    }

    /// Gives back the blocks all of whose stamps have expired.
    pub(crate) fn release_expired(&mut self, pool: &mut Pool, expired: u32) {
        while let Some(&oldest) = self.blocks.front() {
            if self.first + VERSIONS_PER_BLOCK as u32 - 1 > expired {
                break;
            }
            pool.release(oldest);
            self.blocks.pop_front();
            self.first += VERSIONS_PER_BLOCK as u32;
        }
    }

    /// Renumbers the stamps from 1, so that the table's first place has it; returns what was taken off each.
    pub(crate) fn renumber(&mut self) -> u32 {
        let shift = self.first - 1;
        self.first = 1;
        self.next -= shift;
        shift
    }

    /// The first stamp in the table.
    pub(crate) fn first(&self) -> u32 {
        self.first
    }
}
