//! Leaves: the history of one routing range.
//!
//! A leaf answers for every key of its routing range alone. It starts with the `carry`, the stamp of the keys
//! from the lower bound on, and holds entries in key order:
//! - a *boundary* starts a segment: the keys from it up to the next boundary (or the upper bound) have its
//!   stamp, 0 for a gap;
//! - a *point* gives one key a stamp of its own, newer than the segment around it.
//!
//! At one key there may be a boundary and a point, in this order. Since a point is never older than the
//! segment it lies in, the newest stamp in `[b, e)` is the greatest of the segment's at `b` and of all
//! entries `k` with `b <= k < e`: what a point hides is older than the point.

use crate::batch::Probes;
use crate::keys::{self, LONG, Place, Tail};
use crate::layout::{
    INNER, LEAF_LONG, LEAF_SHORT, LONG_ENTRIES, LongLeaf, Node, NodeHeader, SHORT_ENTRIES, ShortLeaf,
};
use crate::pool::{BlockId, LINE_BYTES, Pool};
use crate::search::Search;
use crate::stats::Stats;
use std::cmp::Ordering;
use std::mem::offset_of;

/// In an entry's kind byte: it is a boundary. The low bits are the length of [`Place`].
pub(crate) const BOUNDARY: u8 = 0x80;
pub(crate) const LENGTH_BITS: u8 = 0x0f;

/// The key of a query in a node's terms: its place, and where the bytes after its head are found, which few searches
/// need.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Query<'a> {
    pub(crate) place: Place,
    probes: &'a Probes<'a>,
    position: u32,
    prefix: usize,
}

impl<'a> Query<'a> {
    /// An endpoint's key as a node with the given prefix is asked for it.
    #[inline]
    pub(crate) fn new(probes: &'a Probes<'a>, position: u32, prefix: usize) -> Query<'a> {
        Query { place: probes.place(position, prefix), probes, position, prefix }
    }

    /// The bytes after the head.
    #[inline]
    pub(crate) fn rest(&self) -> &'a [u8] {
        if self.place.length == LONG { self.probes.rest(self.position, self.prefix) } else { &[] }
    }
}

/// A leaf to read.
#[derive(Clone, Copy)]
pub(crate) struct LeafView<'a> {
    pub(crate) pool: &'a Pool,
    pub(crate) prefix: usize,
    pub(crate) carry: u32,
    pub(crate) greatest: u32,
    /// How many of the entries are boundaries.
    pub(crate) boundaries: usize,
    pub(crate) heads: &'a [u64],
    pub(crate) stamps: &'a [u32],
    pub(crate) kinds: &'a [u8],
    /// Empty in a leaf none of whose keys has one.
    pub(crate) tails: &'a [Tail],
}

/// Fetches what an edit of a leaf touches: its entries, as far as they go. Reads the header, which the plan has fetched.
pub(crate) fn prefetch(pool: &Pool, id: BlockId) {
    let header = &pool.get::<Node>(id).header;
    let count = usize::from(header.count);
    let fetch = |offset: usize, size: usize| {
        pool.prefetch(id, offset / LINE_BYTES..(offset + count * size).div_ceil(LINE_BYTES));
    };
    if header.kind == LEAF_SHORT {
        fetch(offset_of!(ShortLeaf, heads), 8);
        fetch(offset_of!(ShortLeaf, stamps), 4);
        fetch(offset_of!(ShortLeaf, kinds), 1);
    } else {
        fetch(offset_of!(LongLeaf, heads), 8);
        fetch(offset_of!(LongLeaf, stamps), 4);
        fetch(offset_of!(LongLeaf, kinds), 1);
        fetch(offset_of!(LongLeaf, tails), 8);
    }
}

/// Reads the leaf in a block.
pub(crate) fn view(pool: &Pool, id: BlockId) -> LeafView<'_> {
    let header = &pool.get::<Node>(id).header;
    debug_assert_ne!(header.kind, INNER);
    let count = usize::from(header.count);
    let (heads, stamps, kinds, tails) = if header.kind == LEAF_SHORT {
        let leaf = pool.get::<ShortLeaf>(id);
        (&leaf.heads[..count], &leaf.stamps[..count], &leaf.kinds[..count], &[][..])
    } else {
        let leaf = pool.get::<LongLeaf>(id);
        (&leaf.heads[..count], &leaf.stamps[..count], &leaf.kinds[..count], &leaf.tails[..count])
    };
    LeafView {
        pool,
        prefix: usize::from(header.prefix),
        carry: header.carry,
        greatest: header.greatest,
        boundaries: usize::from(header.extra),
        heads,
        stamps,
        kinds,
        tails,
    }
}

impl<'a> LeafView<'a> {
    /// A vacant slot seen as a leaf: no entries, one stamp throughout.
    pub(crate) fn vacant(pool: &'a Pool, prefix: usize, carry: u32) -> LeafView<'a> {
        LeafView {
            pool,
            prefix,
            carry,
            greatest: carry,
            boundaries: 0,
            heads: &[],
            stamps: &[],
            kinds: &[],
            tails: &[],
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.heads.len()
    }

    pub(crate) fn is_boundary(&self, at: usize) -> bool {
        self.kinds[at] & BOUNDARY != 0
    }

    pub(crate) fn length(&self, at: usize) -> u8 {
        self.kinds[at] & LENGTH_BITS
    }

    pub(crate) fn place(&self, at: usize) -> Place {
        Place { head: self.heads[at], length: self.length(at) }
    }

    pub(crate) fn entry(&self, at: usize) -> Entry {
        Entry {
            place: self.place(at),
            boundary: self.is_boundary(at),
            stamp: self.stamps[at],
            tail: self.tail(at),
        }
    }

    /// The tail of an entry; [`Tail::NONE`] if it has none.
    pub(crate) fn tail(&self, at: usize) -> Tail {
        self.tails.get(at).copied().unwrap_or(Tail::NONE)
    }

    /// Compares an entry whose head equals the query's with the query.
    fn compare_equal_heads(&self, at: usize, query: &Query<'_>, stats: &mut Stats) -> Ordering {
        match self.length(at).cmp(&query.place.length) {
            Ordering::Equal if query.place.length == LONG => {
                stats.leaf_byte_comparisons += 1;
                keys::compare_tail(self.pool, self.tail(at), query.rest())
            }
            order => order,
        }
    }

    /// The first entry whose key is at or above the query, and whether its key is the query's.
    ///
    /// `expired`: the tail of an entry that no longer matters may be gone, so it is never compared; with
    /// equal heads and lengths it counts as below the query, which is as good as any place for an entry
    /// that is no longer there.
    #[inline(always)]
    pub(crate) fn lower_bound(
        &self,
        search: Search,
        query: &Query<'_>,
        from: usize,
        expired: u32,
        stats: &mut Stats,
    ) -> (usize, bool) {
        stats.leaf_head_comparisons += 1;
        if self.heads.get(from).is_none_or(|&head| head > query.place.head) {
            // The end of a short range mostly falls where its begin did.
            return (from, false);
        }
        self.lower_bound_behind(search, query, from, expired, stats)
    }

    /// The same, where entry `from` may be below the query or the query's.
    fn lower_bound_behind(
        &self,
        search: Search,
        query: &Query<'_>,
        from: usize,
        expired: u32,
        stats: &mut Stats,
    ) -> (usize, bool) {
        let mut at = from + search.below(&self.heads[from..], query.place.head);
        if query.place.length == LONG {
            // Keys alike for as long as their heads: halve the row of them first.
            let stop = match query.place.head.checked_add(1) {
                Some(next) => from + search.below(&self.heads[from..], next),
                None => self.len(),
            };
            let mut high = stop;
            while high - at > 4 {
                let middle = at + (high - at) / 2;
                if self.is_dead_tail(search, middle, query, expired) {
                    break;
                }
                match self.compare_equal_heads(middle, query, stats) {
                    Ordering::Less => at = middle + 1,
                    Ordering::Equal | Ordering::Greater => high = middle,
                }
            }
        }
        while at < self.len() && self.heads[at] == query.place.head {
            if self.is_dead_tail(search, at, query, expired) {
                at += 1;
                continue;
            }
            match self.compare_equal_heads(at, query, stats) {
                Ordering::Less => at += 1,
                Ordering::Equal => return (at, true),
                Ordering::Greater => break,
            }
        }
        (at, false)
    }

    /// The tail that a search for the query compares first, if it compares any.
    pub(crate) fn first_tail(&self, search: Search, query: &Query<'_>) -> Option<Tail> {
        if query.place.length != LONG || self.tails.is_empty() {
            return None;
        }
        let at = search.below(self.heads, query.place.head);
        let alike = self.heads[at..].iter().take_while(|&&head| head == query.place.head).count();
        let first = at + if alike > 4 { alike / 2 } else { 0 };
        (alike > 0 && self.length(first) == LONG).then(|| self.tail(first))
    }

    /// Whether comparing the entry with the query would follow a tail that may be gone: a point's with the
    /// point, a boundary's only when the segment that it ends has expired as well as the one that it
    /// starts.
    #[inline]
    fn is_dead_tail(&self, search: Search, at: usize, query: &Query<'_>, expired: u32) -> bool {
        query.place.length == LONG
            && self.length(at) == LONG
            && self.stamps[at] <= expired
            && (!self.is_boundary(at) || self.segment_before(search, at) <= expired)
    }

    /// The stamp of the segment that covers the keys right before entry `at`.
    #[inline]
    pub(crate) fn segment_before(&self, search: Search, at: usize) -> u32 {
        if self.boundaries == 0 {
            return self.carry;
        }
        search.last_with_high_bit(self.kinds, at).map_or(self.carry, |boundary| self.stamps[boundary])
    }

    /// How many entries have expired and are still here; gaps do not count.
    pub(crate) fn dead(&self, search: Search, expired: u32) -> usize {
        if expired == 0 { 0 } else { search.count_through(self.stamps, expired) }
    }
}

/// One entry.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Entry {
    pub(crate) place: Place,
    pub(crate) boundary: bool,
    pub(crate) stamp: u32,
    pub(crate) tail: Tail,
}

impl Entry {
    fn kind(&self) -> u8 {
        self.place.length | if self.boundary { BOUNDARY } else { 0 }
    }
}

/// What one piece of a write does to a leaf: at one place some entries go, and at most two come.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Change {
    pub(crate) at: usize,
    pub(crate) remove: usize,
    /// The new carry, if the piece begins at the leaf's lower bound.
    pub(crate) carry: Option<u32>,
    new: [Entry; 2],
    inserted: usize,
}

impl Change {
    /// No change yet, at a place.
    pub(crate) fn at(at: usize) -> Change {
        let none = Entry { place: Place { head: 0, length: 0 }, boundary: false, stamp: 0, tail: Tail::NONE };
        Change { at, remove: 0, carry: None, new: [none; 2], inserted: 0 }
    }

    pub(crate) fn insert(&mut self, entry: Entry) {
        self.new[self.inserted] = entry;
        self.inserted += 1;
    }

    pub(crate) fn inserted(&self) -> usize {
        self.inserted
    }

    fn entries(&self) -> &[Entry] {
        &self.new[..self.inserted]
    }
}

/// Moves what lies behind a change in the first `count` items, and puts the new items in.
#[inline]
fn splice_items<T: Copy>(items: &mut [T], count: usize, change: &Change, item: impl Fn(&Entry) -> T) {
    let (at, behind) = (change.at, change.at + change.remove);
    if change.remove != change.inserted {
        items.copy_within(behind..count, at + change.inserted);
    }
    for (to, new) in items[at..].iter_mut().zip(change.entries()) {
        *to = item(new);
    }
}

/// Makes a change in a leaf's block, which has room for it and for the kind of its entries. The leaf's
/// greatest stamp becomes `stamp`.
pub(crate) fn splice(pool: &mut Pool, id: BlockId, change: &Change, stamp: u32) {
    let count = usize::from(pool.get::<Node>(id).header.count);
    let gone = change.at..change.at + change.remove;
    let boundaries = |kinds: &[u8]| kinds.iter().filter(|&&kind| kind & BOUNDARY != 0).count();
    let went = if pool.get::<Node>(id).header.kind == LEAF_SHORT {
        let leaf = pool.get_mut::<ShortLeaf>(id);
        let went = boundaries(&leaf.kinds[gone]);
        splice_items(&mut leaf.heads, count, change, |entry| entry.place.head);
        splice_items(&mut leaf.stamps, count, change, |entry| entry.stamp);
        splice_items(&mut leaf.kinds, count, change, Entry::kind);
        went
    } else {
        let leaf = pool.get_mut::<LongLeaf>(id);
        let went = boundaries(&leaf.kinds[gone]);
        splice_items(&mut leaf.heads, count, change, |entry| entry.place.head);
        splice_items(&mut leaf.tails, count, change, |entry| entry.tail);
        splice_items(&mut leaf.stamps, count, change, |entry| entry.stamp);
        splice_items(&mut leaf.kinds, count, change, Entry::kind);
        went
    };
    let header = &mut pool.get_mut::<Node>(id).header;
    let came = change.entries().iter().filter(|entry| entry.boundary).count();
    header.count = (count + change.inserted - change.remove) as u16;
    header.extra = (usize::from(header.extra) + came - went) as u16;
    header.carry = change.carry.unwrap_or(header.carry);
    header.greatest = stamp;
}

/// Takes the dead entries of a leaf out of its block. `removed` gets their stamps, and those that became
/// gaps.
pub(crate) fn compact(pool: &mut Pool, id: BlockId, expired: u32, removed: &mut Vec<u32>) {
    let header = pool.get::<Node>(id).header;
    let count = usize::from(header.count);
    let carry = if header.carry <= expired { 0 } else { header.carry };
    let (left, boundaries) = if header.kind == LEAF_SHORT {
        let leaf = pool.get_mut::<ShortLeaf>(id);
        let heads = &mut leaf.heads[..count];
        compact_items(
            (&mut leaf.stamps[..count], &mut leaf.kinds[..count]),
            (carry, expired),
            removed,
            |to, from| {
                heads[to] = heads[from];
            },
        )
    } else {
        let leaf = pool.get_mut::<LongLeaf>(id);
        let (heads, tails) = (&mut leaf.heads[..count], &mut leaf.tails[..count]);
        compact_items(
            (&mut leaf.stamps[..count], &mut leaf.kinds[..count]),
            (carry, expired),
            removed,
            |to, from| {
                heads[to] = heads[from];
                tails[to] = tails[from];
            },
        )
    };
    let header = &mut pool.get_mut::<Node>(id).header;
    header.carry = carry;
    header.count = left as u16;
    header.extra = boundaries as u16;
}

/// What is left of an entry behind a segment: its stamp, 0 if that has expired, and whether it stays. It goes if it is
/// an expired point, or a boundary that no longer starts anything new. Compaction in the block and on the way
/// into a list agree on this.
#[inline]
pub(crate) fn left_of(stamp: u32, boundary: bool, segment: u32, expired: u32) -> (u32, bool) {
    let live = if stamp <= expired { 0 } else { stamp };
    (live, if boundary { live != segment } else { live != 0 })
}

/// Moves what lives to the front, in order, and calls `follow` with where each went and came from. Returns
/// how many are left, and how many boundaries.
///
/// What goes, and with which stamp the rest stays, is [`left_of`]'s word.
#[inline]
fn compact_items(
    (stamps, kinds): (&mut [u32], &mut [u8]),
    (carry, expired): (u32, u32),
    removed: &mut Vec<u32>,
    mut follow: impl FnMut(usize, usize),
) -> (usize, usize) {
    let (mut to, mut boundaries) = (0, 0);
    let mut segment = carry;
    for from in 0..stamps.len() {
        let (stamp, kind) = (stamps[from], kinds[from]);
        let boundary = kind & BOUNDARY != 0;
        let (live, keep) = left_of(stamp, boundary, segment, expired);
        if !keep || live != stamp {
            removed.push(stamp);
        }
        segment = if boundary { live } else { segment };
        stamps[to] = live;
        kinds[to] = kind;
        follow(to, from);
        boundaries += usize::from(boundary & keep);
        to += usize::from(keep);
    }
    (to, boundaries)
}

/// Entries that a list has room for from the start: eight leaves full.
pub(crate) const LIST_ROOM: usize = 8 * SHORT_ENTRIES;

/// Entries being put together: a leaf's content on its way to blocks.
#[derive(Debug, Default)]
pub(crate) struct Entries {
    pub(crate) carry: u32,
    boundaries: usize,
    pub(crate) heads: Vec<u64>,
    pub(crate) stamps: Vec<u32>,
    pub(crate) kinds: Vec<u8>,
    /// Empty until the first entry with a tail; then as long as the others.
    pub(crate) tails: Vec<Tail>,
}

impl Entries {
    pub(crate) fn clear(&mut self) {
        // From the start, what the hand takes out of neighbours at a time: a list that grows later grows seldom.
        self.heads.clear();
        self.heads.reserve(LIST_ROOM);
        self.stamps.clear();
        self.stamps.reserve(LIST_ROOM);
        self.kinds.clear();
        self.kinds.reserve(LIST_ROOM);
        self.tails.clear();
        self.tails.reserve(LIST_ROOM);
        self.boundaries = 0;
        self.carry = 0;
    }

    pub(crate) fn len(&self) -> usize {
        self.heads.len()
    }

    /// The list as a leaf to read.
    pub(crate) fn view<'a>(&'a self, pool: &'a Pool, prefix: usize) -> LeafView<'a> {
        LeafView {
            pool,
            prefix,
            carry: self.carry,
            greatest: 0,
            boundaries: self.boundaries,
            heads: &self.heads,
            stamps: &self.stamps,
            kinds: &self.kinds,
            tails: &self.tails,
        }
    }

    /// Adds an entry behind the others.
    pub(crate) fn push(&mut self, entry: Entry) {
        if entry.tail != Tail::NONE && self.tails.is_empty() {
            self.tails.resize(self.heads.len(), Tail::NONE);
        }
        if entry.tail != Tail::NONE || !self.tails.is_empty() {
            self.tails.push(entry.tail);
        }
        self.heads.push(entry.place.head);
        self.stamps.push(entry.stamp);
        self.kinds.push(entry.kind());
        self.boundaries += usize::from(entry.boundary);
    }

    /// Adds all entries of a leaf behind the others.
    pub(crate) fn extend(&mut self, leaf: &LeafView<'_>) {
        if leaf.tails.iter().any(|&tail| tail != Tail::NONE) {
            self.tails.resize(self.heads.len(), Tail::NONE);
            self.tails.extend_from_slice(leaf.tails);
        } else if !self.tails.is_empty() {
            self.tails.resize(self.heads.len() + leaf.len(), Tail::NONE);
        }
        self.heads.extend_from_slice(leaf.heads);
        self.stamps.extend_from_slice(leaf.stamps);
        self.kinds.extend_from_slice(leaf.kinds);
        self.boundaries += leaf.boundaries;
    }

    /// Makes a change.
    pub(crate) fn splice(&mut self, change: &Change) {
        let gone = change.at..change.at + change.remove;
        let went = self.kinds[gone.clone()].iter().filter(|&&kind| kind & BOUNDARY != 0).count();
        let came = change.entries().iter().filter(|entry| entry.boundary).count();
        self.boundaries = self.boundaries + came - went;
        if !self.tails.is_empty() || change.entries().iter().any(|entry| entry.tail != Tail::NONE) {
            self.tails.resize(self.heads.len(), Tail::NONE);
            self.tails.splice(gone.clone(), change.entries().iter().map(|entry| entry.tail));
        }
        self.heads.splice(gone.clone(), change.entries().iter().map(|entry| entry.place.head));
        self.stamps.splice(gone.clone(), change.entries().iter().map(|entry| entry.stamp));
        self.kinds.splice(gone, change.entries().iter().map(Entry::kind));
        self.carry = change.carry.unwrap_or(self.carry);
    }

    /// Gives an entry a tail.
    pub(crate) fn set_tail(&mut self, at: usize, tail: Tail) {
        self.tails.resize(self.heads.len(), Tail::NONE);
        self.tails[at] = tail;
    }

    pub(crate) fn is_boundary(&self, at: usize) -> bool {
        self.kinds[at] & BOUNDARY != 0
    }

    pub(crate) fn place(&self, at: usize) -> Place {
        Place { head: self.heads[at], length: self.kinds[at] & LENGTH_BITS }
    }

    pub(crate) fn tail(&self, at: usize) -> Tail {
        self.tails.get(at).copied().unwrap_or(Tail::NONE)
    }

    pub(crate) fn entry(&self, at: usize) -> Entry {
        Entry {
            place: self.place(at),
            boundary: self.is_boundary(at),
            stamp: self.stamps[at],
            tail: self.tail(at),
        }
    }

    /// All of the entries, as one leaf with the prefix that they were made for.
    pub(crate) fn whole(&self, prefix: usize) -> Part {
        Part { from: 0, to: self.len(), carry: self.carry, prefix, shift: 0 }
    }

    /// Whether entries `at - 1` and `at` have the same key: its boundary and its point.
    pub(crate) fn same_key(&self, pool: &Pool, at: usize) -> bool {
        self.place(at - 1) == self.place(at)
            && (self.place(at).length != LONG || keys::same_tail(pool, self.tail(at - 1), self.tail(at)))
    }

    /// Appends the bytes of an entry's key after the prefix.
    pub(crate) fn copy_key(&self, pool: &Pool, at: usize, to: &mut Vec<u8>) {
        copy_key(pool, self.place(at), self.tail(at), to);
    }

    /// How many entries a leaf of this kind of content takes.
    pub(crate) fn capacity(&self) -> usize {
        if self.tails.is_empty() { SHORT_ENTRIES } else { LONG_ENTRIES }
    }
}

/// What a leaf takes at most whose entries have tails (`long`) or not.
pub(crate) fn capacity(long: bool) -> usize {
    if long { LONG_ENTRIES } else { SHORT_ENTRIES }
}

/// Takes `shift` off all stamps of a leaf.
pub(crate) fn renumber(pool: &mut Pool, id: BlockId, shift: u32) {
    let header = &mut pool.get_mut::<Node>(id).header;
    header.carry = header.carry.saturating_sub(shift);
    header.greatest = header.greatest.saturating_sub(shift);
    let count = usize::from(header.count);
    let stamps = match header.kind {
        LEAF_SHORT => &mut pool.get_mut::<ShortLeaf>(id).stamps[..count],
        _ => &mut pool.get_mut::<LongLeaf>(id).stamps[..count],
    };
    for stamp in stamps {
        *stamp = stamp.saturating_sub(shift);
    }
}

/// The part of a list of entries that becomes a leaf.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Part {
    pub(crate) from: usize,
    pub(crate) to: usize,
    /// The stamp of the keys before the first boundary.
    pub(crate) carry: u32,
    /// How many bytes the leaf's bounds share, and how many more that is than the entries were made for:
    /// heads move up by so much, and take over what they can of their tails.
    pub(crate) prefix: usize,
    pub(crate) shift: usize,
}

/// Writes a part of a list of entries into a block as a leaf. Returns the leaf's greatest stamp.
pub(crate) fn write(pool: &mut Pool, search: Search, id: BlockId, entries: &Entries, part: Part) -> u32 {
    let Part { from, to, carry, prefix, shift } = part;
    let count = to - from;
    let greatest = search.greatest(&entries.stamps[from..to]).max(carry);
    let mut header = NodeHeader {
        kind: LEAF_SHORT,
        condemned_slots: 0,
        count: count as u16,
        prefix: prefix as u16,
        extra: entries.kinds[from..to].iter().filter(|&&kind| kind & BOUNDARY != 0).count() as u16,
        carry,
        greatest,
        next_condemned: BlockId::NONE.0,
        unused: [0; 3],
    };
    let long = !entries.tails.is_empty()
        && (from..to).any(|at| {
            entries.tails[at].len() > 0 && usize::from(LONG) - 1 + entries.tails[at].len() > shift + 8
        });
    if !long {
        assert!(count <= SHORT_ENTRIES, "{count} entries are more than a leaf holds");
        if shift == 0 {
            let leaf = pool.get_mut::<ShortLeaf>(id);
            leaf.header = header;
            leaf.heads[..count].copy_from_slice(&entries.heads[from..to]);
            leaf.stamps[..count].copy_from_slice(&entries.stamps[from..to]);
            leaf.kinds[..count].copy_from_slice(&entries.kinds[from..to]);
            return greatest;
        }
        for at in from..to {
            let (place, tail) = shifted(pool, entries.place(at), entries.tail(at), shift);
            debug_assert_eq!(tail, Tail::NONE);
            let boundary = entries.kinds[at] & BOUNDARY;
            let leaf = pool.get_mut::<ShortLeaf>(id);
            leaf.heads[at - from] = place.head;
            leaf.kinds[at - from] = place.length | boundary;
            leaf.stamps[at - from] = entries.stamps[at];
        }
        pool.get_mut::<ShortLeaf>(id).header = header;
        return greatest;
    }
    assert!(count <= LONG_ENTRIES, "{count} entries are more than a leaf with tails holds");
    header.kind = LEAF_LONG;
    for at in from..to {
        let (place, tail) = shifted(pool, entries.place(at), entries.tail(at), shift);
        let boundary = entries.kinds[at] & BOUNDARY;
        let leaf = pool.get_mut::<LongLeaf>(id);
        leaf.heads[at - from] = place.head;
        leaf.kinds[at - from] = place.length | boundary;
        leaf.stamps[at - from] = entries.stamps[at];
        leaf.tails[at - from] = tail;
    }
    pool.get_mut::<LongLeaf>(id).header = header;
    greatest
}

/// A key whose prefix grew by `shift` bytes: the head gives them up at its front and takes as many from the
/// tail.
pub(crate) fn shifted(pool: &Pool, place: Place, tail: Tail, shift: usize) -> (Place, Tail) {
    if shift == 0 {
        return (place, tail);
    }
    if place.length != LONG {
        let head = if shift < 8 { place.head << (8 * shift) } else { 0 };
        return (Place { head, length: place.length.saturating_sub(shift.min(9) as u8) }, Tail::NONE);
    }
    // The head's bytes that stay, and behind them the tail's.
    let skipped = shift.saturating_sub(8);
    let tail = keys::advance_tail(pool, tail, skipped);
    let want = shift.min(8);
    let (bytes, got) = if tail == Tail::NONE { ([0; 8], 0) } else { keys::tail_bytes(pool, tail, want) };
    let kept = if shift < 8 { place.head << (8 * shift) } else { 0 };
    let head = kept | u64::from_be_bytes(bytes) >> (8 * (8 - want));
    let length = (8 - want + got) as u8;
    let left = if tail == Tail::NONE { Tail::NONE } else { keys::advance_tail(pool, tail, want) };
    (Place { head, length: if left == Tail::NONE { length } else { LONG } }, left)
}

/// Appends the bytes of a key after the prefix.
pub(crate) fn copy_key(pool: &Pool, place: Place, tail: Tail, to: &mut Vec<u8>) {
    to.extend_from_slice(&place.head.to_be_bytes()[..usize::from(place.length.min(8))]);
    if place.length == LONG {
        keys::copy_tail(pool, tail, to);
    }
}
