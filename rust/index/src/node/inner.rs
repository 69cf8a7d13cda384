//! Inner nodes: slots with a separator, a child, and what is known of the stamps below.

use crate::keys::{self, Chain, LONG, Place};
use crate::layout::{CHILD_IS_LEAF, HEAP_BYTES, INNER, Inner, NodeHeader, SLOTS};
use crate::node::leaf::{LENGTH_BITS, Query};
use crate::pool::{BlockId, Pool};
use crate::search::Search;
use crate::stats::Stats;
use std::cmp::Ordering;

/// The longest separator tail that stands in the node; a longer one has a chain of its own.
pub(crate) const INLINE_TAIL: usize = 32;
const CHAIN_REFERENCE: usize = 4;

/// What hangs in a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Child {
    /// The node, or none: the slot is vacant and all of its keys have the stamp `greatest`.
    pub(crate) block: BlockId,
    /// Whether the node is a leaf.
    pub(crate) leaf: bool,
    /// The greatest stamp of any key of the slot's range. Exact as long as it has not expired.
    pub(crate) greatest: u32,
    /// The least of the greatest stamps of the leaves below.
    pub(crate) oldest: u32,
}

impl Child {
    /// No node: all keys have one stamp.
    pub(crate) fn vacant(stamp: u32) -> Child {
        Child { block: BlockId::NONE, leaf: false, greatest: stamp, oldest: u32::MAX }
    }

    pub(crate) fn is_vacant(&self) -> bool {
        self.block.is_none()
    }
}

/// Reads the inner node in a block.
pub(crate) fn node(pool: &Pool, id: BlockId) -> &Inner {
    let node = pool.get::<Inner>(id);
    debug_assert_eq!(node.header.kind, INNER);
    node
}

impl Inner {
    pub(crate) fn len(&self) -> usize {
        usize::from(self.header.count)
    }

    pub(crate) fn prefix(&self) -> usize {
        usize::from(self.header.prefix)
    }

    pub(crate) fn child(&self, slot: usize) -> Child {
        Child {
            block: BlockId(self.children[slot]),
            leaf: self.lengths[slot] & CHILD_IS_LEAF != 0,
            greatest: self.greatest[slot],
            oldest: self.oldest[slot],
        }
    }

    /// Replaces what hangs in a slot; its separator stays.
    pub(crate) fn set_child(&mut self, slot: usize, child: Child) {
        self.children[slot] = child.block.0;
        self.greatest[slot] = child.greatest;
        self.oldest[slot] = child.oldest;
        self.lengths[slot] = self.lengths[slot] & LENGTH_BITS | if child.leaf { CHILD_IS_LEAF } else { 0 };
    }

    /// The node as its parent sees it.
    pub(crate) fn summary(&self, search: Search, id: BlockId) -> Child {
        let count = self.len();
        Child {
            block: id,
            leaf: false,
            greatest: search.greatest(&self.greatest[..count]),
            oldest: search.least(&self.oldest[..count]),
        }
    }

    /// The place of a slot's separator; slot 0 has none.
    pub(crate) fn place(&self, slot: usize) -> Place {
        debug_assert_ne!(slot, 0);
        Place { head: self.heads[slot], length: self.lengths[slot] & LENGTH_BITS }
    }

    fn tail_length(&self, slot: usize) -> usize {
        usize::from(self.tail_lengths[slot])
    }

    /// The chain of a slot's separator, if it has one.
    pub(crate) fn chain(&self, slot: usize) -> Option<Chain> {
        let length = self.tail_length(slot);
        (length > INLINE_TAIL).then(|| {
            let at = usize::from(self.tail_offsets[slot]);
            let bytes = self.heap[at..at + CHAIN_REFERENCE].try_into().expect("four bytes");
            Chain { first: BlockId(u32::from_le_bytes(bytes)), length }
        })
    }

    /// The length of the longest separator, after the node's prefix.
    pub(crate) fn longest_separator(&self) -> usize {
        8 + self.tail_lengths[1..self.len()].iter().copied().max().map_or(0, usize::from)
    }

    fn inline_tail(&self, slot: usize) -> &[u8] {
        let at = usize::from(self.tail_offsets[slot]);
        &self.heap[at..at + self.tail_length(slot)]
    }

    /// Appends a separator's bytes after the node's prefix to `to`.
    pub(crate) fn copy_separator(&self, pool: &Pool, slot: usize, to: &mut Vec<u8>) {
        let place = self.place(slot);
        to.extend_from_slice(&place.head.to_be_bytes()[..usize::from(place.length.min(8))]);
        match self.chain(slot) {
            Some(chain) => chain.copy_to(pool, to),
            None => to.extend_from_slice(self.inline_tail(slot)),
        }
    }

    /// Compares a slot's separator with a query.
    #[inline]
    pub(crate) fn compare(&self, pool: &Pool, slot: usize, query: &Query<'_>, stats: &mut Stats) -> Ordering {
        let place = self.place(slot);
        match place.cmp(&query.place) {
            Ordering::Equal if place.length == LONG => {
                stats.routing_byte_comparisons += 1;
                match self.chain(slot) {
                    Some(chain) => chain.compare(pool, query.rest()),
                    None => self.inline_tail(slot).cmp(query.rest()),
                }
            }
            order => order,
        }
    }

    /// The slot that a query falls in: the last whose separator is at or below it (`inclusive`), or below it.
    #[inline]
    pub(crate) fn slot_of(
        &self,
        pool: &Pool,
        search: Search,
        query: &Query<'_>,
        inclusive: bool,
        stats: &mut Stats,
    ) -> usize {
        let count = self.len();
        stats.routing_head_comparisons += u64::from(count.ilog2()) + 1;
        let mut slot = 1 + search.below(&self.heads[1..count], query.place.head);
        while slot < count && self.heads[slot] == query.place.head {
            match self.compare(pool, slot, query, stats) {
                Ordering::Less => slot += 1,
                Ordering::Equal => return if inclusive { slot } else { slot - 1 },
                Ordering::Greater => break,
            }
        }
        slot - 1
    }
}

/// Slots being put together: separators (after a prefix) and children.
#[derive(Debug, Default)]
pub(crate) struct Slots {
    pub(crate) children: Vec<Child>,
    /// Where each separator's bytes stop; it starts where the one before stops. The first slot's separator
    /// is not used.
    stops: Vec<usize>,
    bytes: Vec<u8>,
}

impl Slots {
    pub(crate) fn clear(&mut self) {
        self.children.clear();
        self.stops.clear();
        self.bytes.clear();
    }

    pub(crate) fn len(&self) -> usize {
        self.children.len()
    }

    /// Adds a slot; its separator's bytes are what `separator` appends.
    pub(crate) fn push(&mut self, child: Child, separator: impl FnOnce(&mut Vec<u8>)) {
        separator(&mut self.bytes);
        self.stops.push(self.bytes.len());
        self.children.push(child);
    }

    /// The separator of a slot, after the prefix that the list was made for.
    pub(crate) fn separator(&self, slot: usize) -> &[u8] {
        let start = if slot == 0 { 0 } else { self.stops[slot - 1] };
        &self.bytes[start..self.stops[slot]]
    }

    /// Heap bytes that a slot's separator takes in a node whose prefix is `shift` bytes longer.
    fn heap_bytes(&self, slot: usize, shift: usize) -> usize {
        heap_bytes((self.separator(slot).len() - shift).saturating_sub(8))
    }

    /// The part of the slots `from..to` that goes into one node: where it stops, and by how many bytes the node's
    /// prefix is longer than the list's, which `shift` says of the part up to a given slot. A shorter part can
    /// have a longer prefix, which then can take fewer slots still.
    pub(crate) fn part(
        &self,
        from: usize,
        to: usize,
        mut shift: impl FnMut(usize) -> usize,
    ) -> (usize, usize) {
        let mut stop = from + self.fit(from, to, 0);
        loop {
            let shifted = shift(stop);
            let fit = from + self.fit(from, stop, shifted);
            if fit == stop {
                return (stop, shifted);
            }
            stop = fit;
        }
    }

    /// How many of the slots `from..to` a node takes whose prefix is `shift` bytes longer than the list's: a
    /// prefix of all separators but the first. A longer prefix can take fewer of them, since a tail that had a
    /// chain may then stand in the node.
    pub(crate) fn fit(&self, from: usize, to: usize, shift: usize) -> usize {
        let mut heap = 0;
        let mut slot = from;
        while slot < to && slot - from < SLOTS {
            if slot > from {
                heap += self.heap_bytes(slot, shift);
                if heap > HEAP_BYTES {
                    break;
                }
            }
            slot += 1;
        }
        slot - from
    }
}

/// Heap bytes of a separator's tail.
fn heap_bytes(tail: usize) -> usize {
    if tail > INLINE_TAIL { CHAIN_REFERENCE } else { tail }
}

/// Blocks outside its node that a separator of `length` bytes can take at most.
pub(crate) fn chain_blocks_at_most(length: usize) -> u64 {
    if length > INLINE_TAIL + 8 { Chain::blocks_for(length) } else { 0 }
}

/// The most slots whose separators' tails all fit a node, whatever they are.
pub(crate) const SURE_SLOTS: usize = HEAP_BYTES / INLINE_TAIL + 1;

/// Writes slots `from..to` into a block as an inner node whose prefix is `prefix`, `shift` bytes longer than
/// the list's.
pub(crate) fn write(
    pool: &mut Pool,
    id: BlockId,
    slots: &Slots,
    (from, to): (usize, usize),
    prefix: usize,
    shift: usize,
) {
    let count = to - from;
    assert!((1..=SLOTS).contains(&count), "{count} slots do not make an inner node");
    let mut heap_used = 0;
    for at in from..to {
        let slot = at - from;
        let separator = if slot == 0 { &[] } else { &slots.separator(at)[shift..] };
        let place = keys::load_head(separator);
        let tail = separator.get(8..).unwrap_or_default();
        let reference;
        let stored = if tail.len() > INLINE_TAIL {
            reference = Chain::store(pool, tail).first.0.to_le_bytes();
            &reference[..]
        } else {
            tail
        };
        let node = pool.get_mut::<Inner>(id);
        node.heads[slot] = place.head;
        node.tail_offsets[slot] = heap_used as u16;
        node.tail_lengths[slot] = tail.len() as u16;
        node.lengths[slot] = place.length;
        node.heap[heap_used..heap_used + stored.len()].copy_from_slice(stored);
        heap_used += stored.len();
        node.set_child(slot, slots.children[at]);
    }
    pool.get_mut::<Inner>(id).header = NodeHeader {
        kind: INNER,
        condemned_slots: 0,
        count: count as u16,
        prefix: prefix as u16,
        extra: heap_used as u16,
        carry: 0,
        greatest: 0,
        next_condemned: BlockId::NONE.0,
        unused: [0; 3],
    };
}

/// Gives back the chains of a node's separators; the node itself stays. Returns how many blocks.
pub(crate) fn release_chains(pool: &mut Pool, id: BlockId) -> u64 {
    let count = node(pool, id).len();
    let mut released = 0;
    for slot in 1..count {
        if let Some(chain) = node(pool, id).chain(slot) {
            released += chain.release(pool);
        }
    }
    released
}
