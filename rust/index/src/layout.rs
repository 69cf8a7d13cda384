//! The byte layout of every kind of block, and the one promise that lets the pool hand them out as typed
//! references. Sizes are asserted at compile time; no other file computes an offset into a block.
#![allow(unsafe_code)]

use crate::keys::Tail;
use crate::pool::{BLOCK_BYTES, BlockLayout};

const KEY_HEADER_BYTES: usize = 16;
/// Key bytes that one block holds.
pub(crate) const KEY_BLOCK_BYTES: usize = BLOCK_BYTES - KEY_HEADER_BYTES;

/// A block of key bytes: of the log, or of a separator's chain.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct KeyBlock {
    /// The block that follows in the log or chain, or none.
    pub(crate) next: u32,
    /// The greatest stamp of any tail that was appended here; 0 in a chain.
    pub(crate) greatest: u32,
    /// The generation that tails into this block carry; 0 in a chain.
    pub(crate) generation: u32,
    unused: u32,
    pub(crate) bytes: [u8; KEY_BLOCK_BYTES],
}

/// Bytes that the header of a node takes.
const NODE_HEADER_BYTES: usize = 32;

/// The head of every node.
#[derive(Clone, Copy)]
#[repr(C)]
pub(crate) struct NodeHeader {
    /// [`LEAF_SHORT`], [`LEAF_LONG`] or [`INNER`].
    pub(crate) kind: u8,
    /// The length of the subtree list's walk, only while the node is condemned: slots still to be released.
    pub(crate) condemned_slots: u8,
    /// Entries of a leaf, slots of an inner node.
    pub(crate) count: u16,
    /// How many bytes the node's bounds share: every key that is routed here begins with them.
    pub(crate) prefix: u16,
    /// Leaf: how many of the entries are boundaries. Inner: bytes of the separator heap in use.
    pub(crate) extra: u16,
    /// Leaf: the stamp of the keys from the node's lower bound up to the first boundary, 0 for a gap.
    pub(crate) carry: u32,
    /// Leaf: the greatest stamp of the carry and the entries.
    pub(crate) greatest: u32,
    /// While the node is condemned: the next condemned node.
    pub(crate) next_condemned: u32,
    pub(crate) unused: [u32; 3],
}
const _: () = assert!(size_of::<NodeHeader>() == NODE_HEADER_BYTES);

pub(crate) const LEAF_SHORT: u8 = 1;
pub(crate) const LEAF_LONG: u8 = 2;
pub(crate) const INNER: u8 = 3;

/// Any node, as far as its header goes.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Node {
    pub(crate) header: NodeHeader,
    body: [u8; BLOCK_BYTES - NODE_HEADER_BYTES],
}

/// Entries of a leaf none of which has a tail: 13 bytes an entry.
pub(crate) const SHORT_ENTRIES: usize = (BLOCK_BYTES - NODE_HEADER_BYTES) / (8 + 4 + 1);
const SHORT_SLACK: usize = BLOCK_BYTES - NODE_HEADER_BYTES - SHORT_ENTRIES * 13;

/// A leaf all of whose keys fit their heads.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct ShortLeaf {
    pub(crate) header: NodeHeader,
    pub(crate) heads: [u64; SHORT_ENTRIES],
    pub(crate) stamps: [u32; SHORT_ENTRIES],
    pub(crate) kinds: [u8; SHORT_ENTRIES],
    slack: [u8; SHORT_SLACK],
}

/// Entries of a leaf of which some have a tail: 21 bytes an entry.
pub(crate) const LONG_ENTRIES: usize = (BLOCK_BYTES - NODE_HEADER_BYTES) / (8 + 8 + 4 + 1);
const LONG_SLACK: usize = BLOCK_BYTES - NODE_HEADER_BYTES - LONG_ENTRIES * 21;

/// A leaf with a tail for every entry.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct LongLeaf {
    pub(crate) header: NodeHeader,
    pub(crate) heads: [u64; LONG_ENTRIES],
    pub(crate) stamps: [u32; LONG_ENTRIES],
    pub(crate) kinds: [u8; LONG_ENTRIES],
    pub(crate) tails: [Tail; LONG_ENTRIES],
    slack: [u8; LONG_SLACK],
}

/// Slots of an inner node.
pub(crate) const SLOTS: usize = 64;
/// Bytes of an inner node for what its separators' heads cannot hold: all that its slots leave.
pub(crate) const HEAP_BYTES: usize = BLOCK_BYTES - NODE_HEADER_BYTES - SLOTS * (8 + 4 + 4 + 4 + 2 + 2 + 1);

/// An inner node. Slot `i` covers the keys from its separator (slot 0: from the node's lower bound) up to the
/// next one.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct Inner {
    pub(crate) header: NodeHeader,
    /// The separators' heads; the one of slot 0 is not used.
    pub(crate) heads: [u64; SLOTS],
    /// The child's block, or none: the slot is vacant, all its keys have the stamp `greatest`.
    pub(crate) children: [u32; SLOTS],
    /// The greatest stamp of any key in the slot's range.
    pub(crate) greatest: [u32; SLOTS],
    /// The least of the greatest stamps of the leaves below; `u32::MAX` where there is none.
    pub(crate) oldest: [u32; SLOTS],
    /// Where in the heap the separator's tail stands: its bytes, or, over the inline limit, its chain's
    /// first block.
    pub(crate) tail_offsets: [u16; SLOTS],
    /// The length of the separator's tail.
    pub(crate) tail_lengths: [u16; SLOTS],
    /// The length of the separator as in [`crate::keys::Place`], and [`CHILD_IS_LEAF`].
    pub(crate) lengths: [u8; SLOTS],
    pub(crate) heap: [u8; HEAP_BYTES],
}

/// In [`Inner::lengths`]: the child is a leaf.
pub(crate) const CHILD_IS_LEAF: u8 = 0x80;

/// Stamps that one block of the version table holds. A power of two: a place is found without a division,
/// which is worth the quarter of these few blocks that it wastes.
pub(crate) const VERSIONS_PER_BLOCK: usize = 128;
const VERSION_SLACK: usize = BLOCK_BYTES - VERSIONS_PER_BLOCK * 12;

/// A block of the version table.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
pub(crate) struct VersionBlock {
    /// The commit version of each stamp, ascending.
    pub(crate) versions: [i64; VERSIONS_PER_BLOCK],
    /// How many entries of the tree's leaves carry the stamp.
    pub(crate) entries: [u32; VERSIONS_PER_BLOCK],
    slack: [u8; VERSION_SLACK],
}

// SAFETY: (all of them) `repr(C)` structs of integers and integer arrays, in declared order, whose fields add
// up to the block without padding (asserted below), for which every bit pattern is valid.
unsafe impl BlockLayout for KeyBlock {}
// SAFETY: as above.
unsafe impl BlockLayout for Node {}
// SAFETY: as above.
unsafe impl BlockLayout for ShortLeaf {}
// SAFETY: as above; `Tail` is a transparent u64.
unsafe impl BlockLayout for LongLeaf {}
// SAFETY: as above.
unsafe impl BlockLayout for Inner {}
// SAFETY: as above.
unsafe impl BlockLayout for VersionBlock {}

const _: () = assert!(size_of::<KeyBlock>() == BLOCK_BYTES);
const _: () = assert!(size_of::<Node>() == BLOCK_BYTES);
const _: () = assert!(
    size_of::<ShortLeaf>() == BLOCK_BYTES && (8 + 4 + 1) * SHORT_ENTRIES + SHORT_SLACK == BLOCK_BYTES - 32
);
const _: () = assert!(
    size_of::<LongLeaf>() == BLOCK_BYTES && (16 + 4 + 1) * LONG_ENTRIES + LONG_SLACK == BLOCK_BYTES - 32
);
const _: () = assert!(size_of::<Inner>() == BLOCK_BYTES && 25 * SLOTS + HEAP_BYTES == BLOCK_BYTES - 32);
const _: () = assert!(size_of::<VersionBlock>() == BLOCK_BYTES && HEAP_BYTES < 0x8000);
