//! The memory of the skip list: how a node lies in it, and where it comes from.
//!
//! Layout of a node of height `h`, 8-byte aligned:
//!
//! | bytes | content |
//! | --- | --- |
//! | 0..4 | height `h`: on how many levels it stands |
//! | 4..8 | length of the key |
//! | 8..8 + 8h | per level, the next node on it, or null |
//! | 8 + 8h..8 + 16h | per level, the greatest version between this node and the next on that level |
//! | 8 + 16h.. | the key |
//!
//! A node has an allocation of its own, in one of three size classes: 64 bytes, 128 bytes, or exactly its size. The first
//! two are cut from chunks and recycled through a list of free blocks each, last freed first.
#![allow(unsafe_code)]

use resolver_types::{MAX_END_LENGTH, Version};
use std::alloc::{Layout, alloc, dealloc, handle_alloc_error};
use std::ptr::{NonNull, null_mut};

/// A node's fixed part.
#[repr(C)]
struct Header {
    height: u32,
    key_length: u32,
}

const HEADER: usize = size_of::<Header>();
/// One link and one version: what a level costs a node.
const PER_LEVEL: usize = size_of::<Option<Node>>() + size_of::<Version>();
const _: () = assert!(HEADER == 8 && PER_LEVEL == 16 && align_of::<Header>() <= align_of::<Node>());

/// The size of a node in bytes.
fn node_size(height: usize, key_length: usize) -> usize {
    HEADER + height * PER_LEVEL + key_length
}

/// A node, by address. Copies are plain pointers: it is the list that knows which of them are alive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(transparent)]
pub(super) struct Node(NonNull<Header>);

/// Every accessor requires a node that came from [`Nodes::create`] and was not released since, and a level below its
/// height.
impl Node {
    /// On how many levels the node stands.
    ///
    /// # Safety
    /// The node is alive.
    #[inline(always)]
    pub(super) unsafe fn height(self) -> usize {
        // SAFETY: the node is alive, and `create` wrote its header.
        unsafe { (*self.0.as_ptr()).height as usize }
    }

    #[inline(always)]
    fn link(self, level: usize) -> *mut Option<Node> {
        self.0.as_ptr().wrapping_add(1).cast::<Option<Node>>().wrapping_add(level)
    }

    /// # Safety
    /// The node is alive and `level` below its height.
    #[inline(always)]
    unsafe fn version_slot(self, level: usize) -> *mut Version {
        // SAFETY: passed on.
        let height = unsafe { self.height() };
        debug_assert!(level < height, "the node stands on this level");
        self.link(height).cast::<Version>().wrapping_add(level)
    }

    /// The next node on a level.
    ///
    /// # Safety
    /// The node is alive and `level` below its height.
    #[inline(always)]
    pub(super) unsafe fn next(self, level: usize) -> Option<Node> {
        // SAFETY: the node is alive and the level below its height: the link is inside it and was written by `create`.
        unsafe { self.link(level).read() }
    }

    /// Sets the next node on a level.
    ///
    /// # Safety
    /// The node is alive and `level` below its height.
    #[inline(always)]
    pub(super) unsafe fn set_next(self, level: usize, next: Option<Node>) {
        // SAFETY: as in `next`.
        unsafe { self.link(level).write(next) }
    }

    /// The greatest version between this node and the next on a level. On level 0: of the keys between them.
    ///
    /// # Safety
    /// The node is alive and `level` below its height.
    #[inline(always)]
    pub(super) unsafe fn version(self, level: usize) -> Version {
        // SAFETY: the node is alive and the level below its height: the version is inside it and was written by `create`.
        unsafe { self.version_slot(level).read() }
    }

    /// Sets the greatest version between this node and the next on a level.
    ///
    /// # Safety
    /// The node is alive and `level` below its height.
    #[inline(always)]
    pub(super) unsafe fn set_version(self, level: usize, version: Version) {
        // SAFETY: as in `version`.
        unsafe { self.version_slot(level).write(version) }
    }

    /// The key from which on the node's level 0 version holds.
    ///
    /// # Safety
    /// The node is alive, and stays so as long as the key is used.
    #[inline(always)]
    pub(super) unsafe fn key<'k>(self) -> &'k [u8] {
        // SAFETY: the node is alive: `create` wrote the header and, behind the versions, as many bytes as it says.
        unsafe {
            let Header { height, key_length } = *self.0.as_ptr();
            let start = self.0.as_ptr().cast::<u8>().add(HEADER + height as usize * PER_LEVEL);
            std::slice::from_raw_parts(start, key_length as usize)
        }
    }

    /// Asks for the node's first two cache lines: all of a node in the first two size classes.
    #[inline(always)]
    pub(super) fn prefetch(self) {
        let address = self.0.as_ptr().cast::<u8>();
        prefetch_line(address);
        prefetch_line(address.wrapping_add(64));
    }

    /// Asks for the node's first cache line.
    #[inline(always)]
    pub(super) fn prefetch_head(self) {
        prefetch_line(self.0.as_ptr().cast());
    }
}

/// Asks for a cache line. Nothing where the target has no such instruction.
#[inline(always)]
fn prefetch_line(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    // SAFETY: a prefetch is a hint; it reads nothing that the program could see and faults on no address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(address.cast());
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}

/// The block sizes of the two classes that are cut from chunks.
const CLASSES: [usize; 2] = [64, 128];
const CHUNK: usize = 128 << 10;
const CHUNK_LAYOUT: Layout = match Layout::from_size_align(CHUNK, 4096) {
    Ok(layout) => layout,
    Err(_) => panic!("a power of two"),
};

/// A free block; the rest of it is unused.
struct FreeBlock {
    next: *mut FreeBlock,
}

/// Makes and releases the nodes of one list, and counts them in size classes.
#[derive(Debug)]
pub(super) struct Nodes {
    free: [*mut FreeBlock; CLASSES.len()],
    chunks: Vec<NonNull<u8>>,
    live_bytes: u64,
    peak_bytes: u64,
}

/// The size class of a node: an index in [`CLASSES`], or none for an allocation of exactly its size.
#[inline(always)]
fn class_of(size: usize) -> Option<usize> {
    CLASSES.iter().position(|&class| size <= class)
}

fn exact_layout(size: usize) -> Layout {
    Layout::from_size_align(size, align_of::<Node>()).expect("a node is far smaller than the address space")
}

impl Nodes {
    /// No nodes yet.
    pub(super) fn new() -> Nodes {
        Nodes { free: [null_mut(); CLASSES.len()], chunks: Vec::new(), live_bytes: 0, peak_bytes: 0 }
    }

    /// The bytes of all nodes alive, in size classes.
    pub(super) fn live_bytes(&self) -> u64 {
        self.live_bytes
    }

    /// The greatest [`live_bytes`](Nodes::live_bytes) so far.
    pub(super) fn peak_bytes(&self) -> u64 {
        self.peak_bytes
    }

    /// Makes a node without successors, with `version` on all its levels.
    ///
    /// # Panics
    /// If the key is longer than any that a batch may carry.
    pub(super) fn create(&mut self, key: &[u8], height: usize, version: Version) -> Node {
        assert!(key.len() <= MAX_END_LENGTH, "a batch's keys are checked before they get here");
        let size = node_size(height, key.len());
        let block = match class_of(size) {
            Some(class) => {
                self.live_bytes += CLASSES[class] as u64;
                self.take_block(class)
            }
            None => {
                self.live_bytes += size as u64;
                let layout = exact_layout(size);
                // SAFETY: the size is not zero: a node has a header.
                let block = unsafe { alloc(layout) };
                NonNull::new(block).unwrap_or_else(|| handle_alloc_error(layout))
            }
        };
        self.peak_bytes = self.peak_bytes.max(self.live_bytes);
        let node = Node(block.cast());
        // SAFETY: the block is ours alone, 8-byte aligned and at least `size` bytes long; header, `height` links,
        // `height` versions and the key lie behind one another in them.
        unsafe {
            node.0.write(Header { height: height as u32, key_length: key.len() as u32 });
            for level in 0..height {
                node.set_next(level, None);
                node.set_version(level, version);
            }
            let start = block.as_ptr().add(HEADER + height * PER_LEVEL);
            start.copy_from_nonoverlapping(key.as_ptr(), key.len());
        }
        node
    }

    /// Takes back the memory of a node.
    ///
    /// # Safety
    /// The node is alive, made by this set's [`create`](Nodes::create), and nobody uses it any more.
    pub(super) unsafe fn release(&mut self, node: Node) {
        // SAFETY: the node is alive until here.
        let size = unsafe { node_size(node.height(), (*node.0.as_ptr()).key_length as usize) };
        match class_of(size) {
            Some(class) => {
                self.live_bytes -= CLASSES[class] as u64;
                let block = node.0.as_ptr().cast::<FreeBlock>();
                // SAFETY: the block came from `take_block` of this class, and nobody uses it any more.
                unsafe { block.write(FreeBlock { next: self.free[class] }) };
                self.free[class] = block;
            }
            None => {
                self.live_bytes -= size as u64;
                // SAFETY: `create` made a node of this size by `alloc` with this layout.
                unsafe { dealloc(node.0.as_ptr().cast(), exact_layout(size)) };
            }
        }
    }

    #[inline(always)]
    fn take_block(&mut self, class: usize) -> NonNull<u8> {
        if self.free[class].is_null() {
            self.cut_chunk(class);
        }
        // SAFETY: the list of free blocks is not empty; its links were written by `cut_chunk` and `release`.
        unsafe {
            let block = self.free[class];
            self.free[class] = (*block).next;
            NonNull::new_unchecked(block.cast())
        }
    }

    /// Cuts a new chunk into blocks of a class whose free list is empty.
    #[cold]
    fn cut_chunk(&mut self, class: usize) {
        // SAFETY: the layout's size is not zero.
        let chunk = unsafe { alloc(CHUNK_LAYOUT) };
        let chunk = NonNull::new(chunk).unwrap_or_else(|| handle_alloc_error(CHUNK_LAYOUT));
        self.chunks.push(chunk);
        for offset in (0..CHUNK).step_by(CLASSES[class]).rev() {
            // SAFETY: the block is whole inside the new chunk, since the chunk is a multiple of the class.
            unsafe {
                let block = chunk.as_ptr().add(offset).cast::<FreeBlock>();
                block.write(FreeBlock { next: self.free[class] });
                self.free[class] = block;
            }
        }
    }

    /// Whether a node's memory is its own allocation, which dropping the set does not give back.
    ///
    /// # Safety
    /// The node is alive.
    pub(super) unsafe fn owns_allocation(node: Node) -> bool {
        // SAFETY: passed on.
        class_of(unsafe { node_size(node.height(), node.key().len()) }).is_none()
    }
}

const _: () = assert!(CHUNK.is_multiple_of(CLASSES[0]) && CHUNK.is_multiple_of(CLASSES[1]));

impl Drop for Nodes {
    /// Gives back the chunks. The list has released the nodes that are not in one.
    fn drop(&mut self) {
        for chunk in self.chunks.drain(..) {
            // SAFETY: every chunk was made by `cut_chunk` with this layout, and the list that used it is gone.
            unsafe { dealloc(chunk.as_ptr(), CHUNK_LAYOUT) };
        }
    }
}
