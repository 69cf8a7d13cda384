//! Keys as nodes hold them: a head of eight bytes, and what a head cannot hold in linked key blocks.
//!
//! # Where a key's bytes are
//! ```text
//! key:   | prefix: the node's, not stored | head: 8 bytes, in the node | tail: in key blocks |
//! ```
//! A [`Tail`] names its bytes by block, offset and length. Key blocks form one log: tails are appended to the
//! newest block and run on into the next, so that blocks stand in allocation order and, versions only
//! growing, in the order of the greatest stamp that was appended to them. The oldest block is released as
//! soon as that stamp has expired. A node therefore looks at an entry's stamp before it follows its tail; the
//! generation in the tail, compared with the block's, proves that nobody forgot.
//!
//! Keys of one shape often end alike: a tail that one of the last few ends with is not stored again, as long as
//! the newest block has those bytes.
//!
//! A separator does not expire with an entry, so a long one owns a chain of blocks of its own ([`Chain`]).

use crate::layout::{KEY_BLOCK_BYTES, KeyBlock};
use crate::pool::{BlockId, LINE_BYTES, Pool};
use crate::stats::Stats;
use std::cmp::Ordering;
use std::mem::offset_of;

/// A key as seen in a node: the eight bytes that follow the node's prefix, and how many follow it (9: more
/// than 8).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Place {
    /// Big-endian, padded with zero bytes.
    pub(crate) head: u64,
    /// 0 to 8, or [`LONG`].
    pub(crate) length: u8,
}

/// The length of a [`Place`] whose key has a tail.
pub(crate) const LONG: u8 = 9;

/// The head of what follows a prefix.
#[inline]
pub(crate) fn load_head(rest: &[u8]) -> Place {
    if let Some(bytes) = rest.first_chunk::<8>() {
        return Place { head: u64::from_be_bytes(*bytes), length: if rest.len() > 8 { LONG } else { 8 } };
    }
    let mut head = 0;
    for (&byte, shift) in rest.iter().zip([56, 48, 40, 32, 24, 16, 8]) {
        head |= u64::from(byte) << shift;
    }
    Place { head, length: rest.len() as u8 }
}

/// The head of what follows the first `prefix` bytes of a key. A key of eight bytes or more is read in one
/// piece, however few of them follow.
#[inline]
pub(crate) fn load_head_of(key: &[u8], prefix: usize) -> Place {
    let left = key.len() - prefix;
    match key.last_chunk::<8>() {
        Some(last) if left < 8 => {
            let last = u64::from_be_bytes(*last);
            Place { head: if left == 0 { 0 } else { last << (64 - 8 * left) }, length: left as u8 }
        }
        _ => load_head(&key[prefix..]),
    }
}

/// How many leading bytes two keys share.
pub(crate) fn common_prefix(left: &[u8], right: &[u8]) -> usize {
    let limit = left.len().min(right.len());
    let mut at = 0;
    while let (Some(a), Some(b)) = (left[at..].first_chunk::<8>(), right[at..].first_chunk::<8>()) {
        let differing = u64::from_be_bytes(*a) ^ u64::from_be_bytes(*b);
        if differing != 0 {
            return at + differing.leading_zeros() as usize / 8;
        }
        at += 8;
    }
    while at < limit && left[at] == right[at] {
        at += 1;
    }
    at
}

/// Where the bytes of a key are that its head does not hold: block, offset (11 bits), generation (5 bits),
/// length.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(crate) struct Tail(u64);

const OFFSET_BITS: u32 = 11;
const GENERATION_BITS: u32 = 5;
/// Generations count modulo this.
const GENERATIONS: u32 = 1 << GENERATION_BITS;
const _: () = assert!(KEY_BLOCK_BYTES <= 1 << OFFSET_BITS);
// A tail is at most the longest end without the eight bytes of a head.
const _: () = assert!(resolver_types::MAX_END_LENGTH - 8 <= u16::MAX as usize);

impl Tail {
    /// Of a key without a tail.
    pub(crate) const NONE: Tail = Tail(0);

    fn new(block: BlockId, offset: usize, generation: u32, length: usize) -> Tail {
        debug_assert!(
            offset < KEY_BLOCK_BYTES && generation < GENERATIONS && length <= usize::from(u16::MAX)
        );
        Tail(
            u64::from(block.0) << 32
                | (offset as u64) << (16 + GENERATION_BITS)
                | u64::from(generation) << 16
                | length as u64,
        )
    }

    fn block(self) -> BlockId {
        BlockId((self.0 >> 32) as u32)
    }

    fn offset(self) -> usize {
        (self.0 >> (16 + GENERATION_BITS)) as usize & ((1 << OFFSET_BITS) - 1)
    }

    fn generation(self) -> u32 {
        (self.0 >> 16) as u32 & (GENERATIONS - 1)
    }

    /// The tail's length in bytes.
    pub(crate) fn len(self) -> usize {
        (self.0 & 0xffff) as usize
    }
}

/// A run of key bytes over linked blocks.
pub(crate) struct Run<'a> {
    pool: &'a Pool,
    block: BlockId,
    offset: usize,
    left: usize,
}

impl<'a> Iterator for Run<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        if self.left == 0 {
            return None;
        }
        let block = self.pool.get::<KeyBlock>(self.block);
        let end = (self.offset + self.left).min(KEY_BLOCK_BYTES);
        let part = &block.bytes[self.offset..end];
        self.left -= part.len();
        self.offset = 0;
        self.block = BlockId(block.next);
        Some(part)
    }
}

impl Run<'_> {
    /// Compares the run with a byte string.
    fn compare(self, mut other: &[u8]) -> Ordering {
        for part in self {
            let length = part.len().min(other.len());
            match part.cmp(&other[..length]) {
                Ordering::Equal if length < part.len() => return Ordering::Greater,
                Ordering::Equal => other = &other[length..],
                unequal => return unequal,
            }
        }
        if other.is_empty() { Ordering::Equal } else { Ordering::Less }
    }

    fn copy_to(self, to: &mut Vec<u8>) {
        for part in self {
            to.extend_from_slice(part);
        }
    }
}

/// The log of key blocks.
#[derive(Debug)]
pub(crate) struct KeyLog {
    oldest: BlockId,
    newest: BlockId,
    /// Where the next tail goes in the newest block.
    offset: usize,
    generation: u32,
    blocks: u64,
    /// Tails that lie in the newest block, by offset and length; none where the length is 0.
    recent: [(usize, usize); RECENT],
    /// Which of them the next one replaces.
    replaced: usize,
}

/// A tail is looked for among so many that were stored last.
const RECENT: usize = 4;

impl KeyLog {
    pub(crate) fn new() -> KeyLog {
        KeyLog {
            oldest: BlockId::NONE,
            newest: BlockId::NONE,
            offset: KEY_BLOCK_BYTES,
            generation: 0,
            blocks: 0,
            recent: [(0, 0); RECENT],
            replaced: 0,
        }
    }

    /// Blocks in the log.
    pub(crate) fn blocks(&self) -> u64 {
        self.blocks
    }

    /// How many blocks `bytes` more bytes can need at most: tails stand one behind the other, over the bounds of blocks.
    pub(crate) fn blocks_for(bytes: u64) -> u64 {
        bytes.div_ceil(KEY_BLOCK_BYTES as u64)
    }

    /// Appends `bytes` for an entry with the given stamp, or shares them. The caller has reserved the blocks.
    #[inline]
    pub(crate) fn append(&mut self, pool: &mut Pool, bytes: &[u8], stamp: u32, stats: &mut Stats) -> Tail {
        if bytes.is_empty() { Tail::NONE } else { self.store(pool, bytes, stamp, stats) }
    }

    fn store(&mut self, pool: &mut Pool, bytes: &[u8], stamp: u32, stats: &mut Stats) -> Tail {
        if let Some(tail) = self.share(pool, bytes, stamp) {
            stats.tails_shared += 1;
            return tail;
        }
        if self.offset == KEY_BLOCK_BYTES {
            self.grow(pool);
        }
        let generation = pool.get::<KeyBlock>(self.newest).generation;
        let tail = Tail::new(self.newest, self.offset, generation, bytes.len());
        let mut rest = bytes;
        while !rest.is_empty() {
            if self.offset == KEY_BLOCK_BYTES {
                self.grow(pool);
            }
            let block = pool.get_mut::<KeyBlock>(self.newest);
            let fit = rest.len().min(KEY_BLOCK_BYTES - self.offset);
            block.bytes[self.offset..self.offset + fit].copy_from_slice(&rest[..fit]);
            block.greatest = block.greatest.max(stamp);
            self.offset += fit;
            rest = &rest[fit..];
        }
        stats.key_bytes_stored += bytes.len() as u64;
        if bytes.len() <= self.offset {
            // It lies in the newest block from its first byte to its last.
            self.recent[self.replaced] = (self.offset - bytes.len(), bytes.len());
            self.replaced = (self.replaced + 1) % RECENT;
        }
        tail
    }

    /// The tail of bytes that the newest block has from one of the last few, for an entry with the given stamp.
    fn share(&self, pool: &mut Pool, bytes: &[u8], stamp: u32) -> Option<Tail> {
        if self.newest.is_none() {
            return None;
        }
        let block = pool.get_mut::<KeyBlock>(self.newest);
        let (offset, length) = self.recent.into_iter().find(|&(offset, length)| {
            length >= bytes.len() && block.bytes[offset..offset + length].ends_with(bytes)
        })?;
        block.greatest = block.greatest.max(stamp);
        Some(Tail::new(self.newest, offset + length - bytes.len(), block.generation, bytes.len()))
    }

    fn grow(&mut self, pool: &mut Pool) {
        let id = pool.allocate().expect("the write that appends a tail has reserved its key blocks");
        let block = pool.get_mut::<KeyBlock>(id);
        (block.next, block.greatest, block.generation) = (BlockId::NONE.0, 0, self.generation);
        self.generation = (self.generation + 1) % GENERATIONS;
        if self.newest.is_none() {
            self.oldest = id;
        } else {
            pool.get_mut::<KeyBlock>(self.newest).next = id.0;
        }
        self.newest = id;
        self.offset = 0;
        self.recent = [(0, 0); RECENT];
        self.blocks += 1;
    }

    /// The greatest stamp of the oldest block: what must expire for it to be released.
    pub(crate) fn oldest_stamp(&self, pool: &Pool) -> Option<u32> {
        (!self.oldest.is_none()).then(|| pool.get::<KeyBlock>(self.oldest).greatest)
    }

    /// Releases the blocks of which every entry has expired; returns how many.
    pub(crate) fn release_expired(&mut self, pool: &mut Pool, expired: u32) -> u64 {
        let before = self.blocks;
        while !self.oldest.is_none() && pool.get::<KeyBlock>(self.oldest).greatest <= expired {
            let next = BlockId(pool.get::<KeyBlock>(self.oldest).next);
            pool.release(self.oldest);
            self.blocks -= 1;
            self.oldest = next;
            if next.is_none() {
                self.newest = BlockId::NONE;
                self.offset = KEY_BLOCK_BYTES;
            }
        }
        before - self.blocks
    }

    /// Takes `shift` off the stamps of all blocks.
    pub(crate) fn renumber(&mut self, pool: &mut Pool, shift: u32) {
        let mut at = self.oldest;
        while !at.is_none() {
            let block = pool.get_mut::<KeyBlock>(at);
            block.greatest = block.greatest.saturating_sub(shift);
            at = BlockId(block.next);
        }
    }

    /// Calls `found` with every block of the log and its greatest stamp, oldest first.
    pub(crate) fn for_each_block(&self, pool: &Pool, mut found: impl FnMut(BlockId, u32)) {
        let mut at = self.oldest;
        while !at.is_none() {
            let block = pool.get::<KeyBlock>(at);
            found(at, block.greatest);
            at = BlockId(block.next);
        }
    }
}

fn run(pool: &Pool, tail: Tail) -> Run<'_> {
    debug_assert!(tail.len() == 0 || is_current(pool, tail), "a tail is followed only while its entry lives");
    Run { pool, block: tail.block(), offset: tail.offset(), left: tail.len() }
}

/// Whether the block that a tail names still carries the tail's generation.
pub(crate) fn is_current(pool: &Pool, tail: Tail) -> bool {
    pool.get::<KeyBlock>(tail.block()).generation == tail.generation()
}

/// Fetches the first two lines of a tail's bytes; which block they are in is all that it needs to know.
pub(crate) fn prefetch_tail(pool: &Pool, tail: Tail) {
    let line = (offset_of!(KeyBlock, bytes) + tail.offset()) / LINE_BYTES;
    pool.prefetch(tail.block(), line..line + 2);
}

/// Compares the bytes of a tail with a byte string.
pub(crate) fn compare_tail(pool: &Pool, tail: Tail, other: &[u8]) -> Ordering {
    run(pool, tail).compare(other)
}

/// Whether two tails have the same bytes.
pub(crate) fn same_tail(pool: &Pool, left: Tail, right: Tail) -> bool {
    if left.len() != right.len() {
        return false;
    }
    let (mut left, mut right) = (run(pool, left), run(pool, right));
    let (mut some, mut others): (&[u8], &[u8]) = (&[], &[]);
    loop {
        if some.is_empty() {
            match left.next() {
                Some(part) => some = part,
                None => return true,
            }
        }
        if others.is_empty() {
            others = right.next().expect("the tails are of one length");
        }
        let both = some.len().min(others.len());
        if some[..both] != others[..both] {
            return false;
        }
        (some, others) = (&some[both..], &others[both..]);
    }
}

/// Appends a tail's bytes to `to`.
pub(crate) fn copy_tail(pool: &Pool, tail: Tail, to: &mut Vec<u8>) {
    run(pool, tail).copy_to(to);
}

/// The first `count` bytes of a tail (as many as it has), big-endian in the low end of the result.
pub(crate) fn tail_bytes(pool: &Pool, tail: Tail, count: usize) -> ([u8; 8], usize) {
    let mut bytes = [0; 8];
    let mut filled = 0;
    for part in run(pool, tail) {
        let fit = part.len().min(count - filled);
        bytes[filled..filled + fit].copy_from_slice(&part[..fit]);
        filled += fit;
        if filled == count {
            break;
        }
    }
    (bytes, filled)
}

/// The tail without its first `count` bytes: the bytes stay where they are.
pub(crate) fn advance_tail(pool: &Pool, tail: Tail, count: usize) -> Tail {
    if count >= tail.len() {
        return Tail::NONE;
    }
    let (mut block, mut offset) = (tail.block(), tail.offset() + count);
    while offset >= KEY_BLOCK_BYTES {
        block = BlockId(pool.get::<KeyBlock>(block).next);
        offset -= KEY_BLOCK_BYTES;
    }
    Tail::new(block, offset, pool.get::<KeyBlock>(block).generation, tail.len() - count)
}

/// The key bytes of a long separator in blocks of its own, which it gives back with itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chain {
    pub(crate) first: BlockId,
    pub(crate) length: usize,
}

impl Chain {
    /// How many blocks a chain of `length` bytes takes.
    pub(crate) fn blocks_for(length: usize) -> u64 {
        length.div_ceil(KEY_BLOCK_BYTES) as u64
    }

    /// Stores `bytes`. The caller has reserved the blocks.
    pub(crate) fn store(pool: &mut Pool, bytes: &[u8]) -> Chain {
        let mut next = BlockId::NONE;
        for part in bytes.chunks(KEY_BLOCK_BYTES).rev() {
            let id = pool.allocate().expect("the write that makes a separator has reserved its blocks");
            let block = pool.get_mut::<KeyBlock>(id);
            (block.next, block.greatest, block.generation) = (next.0, 0, 0);
            block.bytes[..part.len()].copy_from_slice(part);
            next = id;
        }
        Chain { first: next, length: bytes.len() }
    }

    /// Gives the blocks back; returns how many.
    pub(crate) fn release(self, pool: &mut Pool) -> u64 {
        let mut at = self.first;
        let mut released = 0;
        while !at.is_none() {
            let next = BlockId(pool.get::<KeyBlock>(at).next);
            pool.release(at);
            released += 1;
            at = next;
        }
        released
    }

    fn run(self, pool: &Pool) -> Run<'_> {
        Run { pool, block: self.first, offset: 0, left: self.length }
    }

    /// Compares the chain's bytes with a byte string.
    pub(crate) fn compare(self, pool: &Pool, other: &[u8]) -> Ordering {
        self.run(pool).compare(other)
    }

    /// Appends the chain's bytes to `to`.
    pub(crate) fn copy_to(self, pool: &Pool, to: &mut Vec<u8>) {
        self.run(pool).copy_to(to);
    }

    /// Calls `found` with every block of the chain.
    pub(crate) fn for_each_block(self, pool: &Pool, mut found: impl FnMut(BlockId)) {
        let mut at = self.first;
        while !at.is_none() {
            found(at);
            at = BlockId(pool.get::<KeyBlock>(at).next);
        }
    }
}
