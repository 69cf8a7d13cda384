//! The merge of one leaf with its pieces, each a change at one place, in key order.
//!
//! Where the leaf has room the changes are made in its block: what lies behind them moves, nothing else does.
//! A leaf that would overflow, or of which much is dead, is taken out of its block without its dead entries,
//! changed in the same way, and put where it fits.

use super::{LeafPlan, Piece, Stop, Work};
use crate::batch::Probes;
use crate::cooperative::Finder;
use crate::keys::LONG;
use crate::node::inner::Child;
use crate::node::leaf::{self, Change, Entries, Entry, LeafView, Query};
use crate::planted::Bug;
use crate::pool::BlockId;
use crate::route::{LeafVisit, Routes};
use crate::search::Search;
use crate::stats::Stats;
use crate::tree::Tree;

/// A leaf is compacted when one in so many of its entries is dead, or when it would overflow.
const DEAD_SHARE: usize = 8;

/// Entries on their way from a leaf into a list, without the dead ones.
pub(crate) struct Transfer<'a> {
    pub(crate) expired: u32,
    pub(crate) entries: &'a mut Entries,
    /// The stamp of the segment that the list's last keys lie in, 0 if it has expired.
    pub(crate) segment: u32,
    /// Stamps of entries that were left out.
    pub(crate) removed: &'a mut Vec<u32>,
}

impl Transfer<'_> {
    /// Takes a leaf's entries over.
    pub(crate) fn take(&mut self, search: Search, leaf: &LeafView<'_>) {
        if self.segment == leaf.carry && leaf.dead(search, self.expired) == 0 {
            self.entries.extend(leaf);
            self.segment = leaf.segment_before(search, leaf.len());
            return;
        }
        for at in 0..leaf.len() {
            let (stamp, boundary) = (leaf.stamps[at], leaf.is_boundary(at));
            let (live, stays) = leaf::left_of(stamp, boundary, self.segment, self.expired);
            if !stays || live != stamp {
                self.removed.push(stamp);
            }
            if boundary {
                self.segment = live;
            }
            if stays {
                self.entries.push(Entry { stamp: live, ..leaf.entry(at) });
            }
        }
    }
}

/// Where a leaf's entries are while pieces are merged into it.
enum Place<'a> {
    Block(BlockId),
    List(&'a mut Entries),
}

impl Tree {
    /// Merges the pieces of one leaf into it, and notes what becomes of its slot.
    pub(crate) fn merge_leaf(
        &mut self,
        probes: &Probes<'_>,
        routes: &Routes,
        plan: LeafPlan,
        stamp: u32,
        work: &mut Work,
        finder: &mut impl Finder,
    ) {
        let visit = routes.leaves[plan.visit as usize];
        let pieces = &work.pieces[plan.first as usize..plan.last as usize];
        self.stats.leaves_merged += 1;
        let mut removed = std::mem::take(&mut self.removed);
        removed.clear();
        let (search, expired) = (self.search, self.expired);
        if !visit.child.is_vacant() {
            let block = visit.child.block;
            let leaf = leaf::view(&self.pool, block);
            let (prefix, long) = (leaf.prefix, !leaf.tails.is_empty());
            let mut bound = leaf.len() + plan.added as usize;
            let capacity = leaf::capacity(plan.long);
            let dead = leaf.dead(search, expired);
            if dead * DEAD_SHARE > leaf.len() || dead > 0 && bound > capacity {
                leaf::compact(&mut self.pool, block, expired, &mut removed);
                bound = leaf::view(&self.pool, block).len() + plan.added as usize;
                self.stats.leaves_compacted += 1;
                finder.compacted();
            }
            if bound <= capacity && plan.long == long {
                self.stats.leaves_edited += 1;
                let mut place = Place::Block(block);
                self.merge_pieces(
                    probes,
                    routes,
                    &visit,
                    pieces,
                    prefix,
                    stamp,
                    &mut place,
                    &mut removed,
                    finder,
                );
                self.count_removed(&removed);
                self.removed = removed;
                let child = self.edited(block);
                let first = work.make(child);
                self.note(routes, visit.parent, visit.slot, 1, first, 1, work);
                return;
            }
        }
        let mut entries = std::mem::take(&mut work.entries);
        entries.clear();
        let leaf = self.open(probes, routes, &visit, &mut work.bounds);
        let prefix = leaf.prefix;
        let length = leaf.len();
        entries.carry = if leaf.carry <= expired { 0 } else { leaf.carry };
        let mut transfer =
            Transfer { expired, segment: entries.carry, entries: &mut entries, removed: &mut removed };
        transfer.take(search, &leaf);
        finder.taken_apart();
        let mut place = Place::List(&mut entries);
        let appending = self.merge_pieces(
            probes,
            routes,
            &visit,
            pieces,
            prefix,
            stamp,
            &mut place,
            &mut removed,
            finder,
        ) && length > 0;
        self.count_removed(&removed);
        self.removed = removed;
        work.entries = entries;
        self.place_leaf(probes, routes, plan.visit, prefix, appending, work);
    }

    /// Makes the changes of all pieces of a leaf; whether each came behind all entries that there were.
    #[allow(clippy::too_many_arguments)]
    fn merge_pieces(
        &mut self,
        probes: &Probes<'_>,
        routes: &Routes,
        visit: &LeafVisit,
        pieces: &[Piece],
        prefix: usize,
        stamp: u32,
        place: &mut Place<'_>,
        removed: &mut Vec<u32>,
        finder: &mut impl Finder,
    ) -> bool {
        let search = self.search;
        let expired = if self.planted(Bug::ExpiredTailFollowed) { 0 } else { self.expired };
        let mut from = 0;
        let mut appending = true;
        let mut added = 0;
        for piece in pieces {
            let leaf = match place {
                Place::Block(block) => leaf::view(&self.pool, *block),
                Place::List(entries) => entries.view(&self.pool, prefix),
            };
            let begin = piece.begin.map(|position| Query::new(probes, position, prefix));
            let known = piece.begin.and_then(|position| finder.find(position, &self.pool));
            let (first, exact) = match (&begin, known) {
                (Some(begin), Some(known)) => {
                    debug_assert_eq!(
                        known,
                        leaf.lower_bound(search, begin, from, expired, &mut Stats::default())
                    );
                    known
                }
                (Some(begin), None) => leaf.lower_bound(search, begin, from, expired, &mut self.stats),
                (None, _) => (0, false),
            };
            appending &= first == leaf.len();
            from = first;
            let mut change = Change::at(first);
            match (begin, piece.stop) {
                (Some(begin), Stop::Point) => {
                    let mut found = exact;
                    if exact && leaf.is_boundary(first) {
                        change.at = first + usize::from(!self.planted(Bug::PointBeforeBoundary));
                        found = change.at < leaf.len()
                            && !leaf.is_boundary(change.at)
                            && leaf.lower_bound(search, &begin, change.at, expired, &mut self.stats).1;
                    }
                    if self.planted(Bug::PointReplacesBoundary) {
                        (change.at, found) = (first, exact);
                    }
                    change.remove = usize::from(found);
                    removed.extend_from_slice(&leaf.stamps[change.at..change.at + change.remove]);
                    added += 1;
                    let stamp = match self.planted(Bug::PointAsOldAsSegment) {
                        true => leaf.segment_before(search, change.at),
                        false => stamp,
                    };
                    let tail = self.log.append(&mut self.pool, begin.rest(), stamp, &mut self.stats);
                    change.insert(Entry { place: begin.place, boundary: false, stamp, tail });
                }
                (None, Stop::Point) => unreachable!("a point begins at its key"),
                (begin, stop) => {
                    // From the leaf's lower bound on it is the carry. What seems to stand before that has
                    // expired, and lost its bytes.
                    let at_lower = piece.begin.is_some_and(|position| {
                        (first == 0 || begin.is_some_and(|begin| begin.place.length == LONG))
                            && self.is_lower_bound(probes, routes, (visit.parent, visit.slot), position)
                    });
                    let at_lower = at_lower && !self.planted(Bug::BoundaryAtLowerBound);
                    let first = if at_lower { 0 } else { first };
                    (from, change.at) = (first, first);
                    let end = match stop {
                        Stop::At(position) => Some(Query::new(probes, position, prefix)),
                        _ => None,
                    };
                    let before = leaf.segment_before(search, first);
                    let mut after = 0;
                    let mut last = leaf.len();
                    let mut old_end = false;
                    if let Some(end) = &end {
                        let at_end;
                        (last, at_end) = leaf.lower_bound(search, end, first, expired, &mut self.stats);
                        old_end = at_end && leaf.is_boundary(last) && self.planted(Bug::EndKeepsOldTail);
                        let at_end = at_end && !old_end;
                        after = if last == first { before } else { leaf.segment_before(search, last) };
                        if at_end && leaf.is_boundary(last) {
                            // It stays the end, but for its bytes: they must live as long as the segment that
                            // it ends now.
                            after = leaf.stamps[last];
                            last += 1;
                        }
                        after = if after <= expired || self.planted(Bug::ExteriorLost) { 0 } else { after };
                    }
                    change.remove = last - first;
                    removed.extend_from_slice(&leaf.stamps[first..last]);
                    match begin.filter(|_| !at_lower) {
                        None if self.planted(Bug::CarryNotWritten) && piece.begin.is_none() => {}
                        None => change.carry = Some(stamp),
                        Some(begin) if before != stamp => {
                            added += 1;
                            let tail = self.log.append(&mut self.pool, begin.rest(), stamp, &mut self.stats);
                            change.insert(Entry { place: begin.place, boundary: true, stamp, tail });
                        }
                        // The write before this one ends where this one begins: one segment.
                        Some(_) => {}
                    }
                    if let Some(end) = end.filter(|_| !old_end) {
                        if !self.planted(Bug::EndNotCounted) {
                            self.count(after, 1);
                        }
                        let tail = self.log.append(&mut self.pool, end.rest(), stamp, &mut self.stats);
                        change.insert(Entry { place: end.place, boundary: true, stamp: after, tail });
                    }
                }
            }
            self.stats.entries_added += change.inserted() as u64;
            match place {
                Place::Block(block) => leaf::splice(&mut self.pool, *block, &change, stamp),
                Place::List(entries) => entries.splice(&change),
            }
            let end = if let Stop::At(end) = piece.stop { Some(end) } else { None };
            finder.written(&self.pool, end, &change, &mut self.stats);
        }
        self.count(stamp, added);
        appending
    }

    /// A leaf that was edited in its block, as its parent sees it. Its block is given back if it has no
    /// entries left.
    fn edited(&mut self, block: BlockId) -> Child {
        let leaf = leaf::view(&self.pool, block);
        let (entries, carry, greatest) = (leaf.len(), leaf.carry, leaf.greatest);
        if entries > 0 || self.planted(Bug::EmptyLeafStays) {
            return Child { block, leaf: true, greatest, oldest: greatest };
        }
        if !self.planted(Bug::LeafLeaks) {
            self.pool.release(block);
        }
        Child::vacant(carry)
    }

    /// Puts a merged leaf's entries where they fit, and notes what becomes of its slot.
    fn place_leaf(
        &mut self,
        probes: &Probes<'_>,
        routes: &Routes,
        visit: u32,
        prefix: usize,
        appending: bool,
        work: &mut Work,
    ) {
        let LeafVisit { child, parent, slot, .. } = routes.leaves[visit as usize];
        let entries = std::mem::take(&mut work.entries);
        let first = work.made.len() as u32;
        if entries.len() == 0 {
            if !child.is_vacant() {
                self.pool.release(child.block);
            }
            work.make(Child::vacant(entries.carry));
        } else if entries.len() <= entries.capacity() {
            let block = self.block_for(child);
            let greatest = leaf::write(&mut self.pool, self.search, block, &entries, entries.whole(prefix));
            self.stats.leaves_rewritten += 1;
            work.make(Child { block, leaf: true, greatest, oldest: greatest });
        } else {
            self.spread_leaf(probes, routes, visit, &entries, prefix, appending, work);
        }
        work.entries = entries;
        let count = work.made.len() as u32 - first;
        self.note(routes, parent, slot, 1, first, count, work);
    }

    /// The block that a child's content goes to: its own, or a new one for what was vacant.
    pub(crate) fn block_for(&mut self, child: Child) -> BlockId {
        if child.is_vacant() {
            self.pool.allocate().expect("the blocks of a leaf are reserved before it is merged")
        } else {
            child.block
        }
    }
}

/// What a leaf can come to when its pieces are merged into it.
pub(crate) struct Bound {
    /// Entries that are added to its own.
    pub(crate) added: usize,
    /// Whether some of all have tails.
    pub(crate) long: bool,
    /// Bytes of the tails that are stored for the pieces.
    pub(crate) tail_bytes: u64,
}

/// What a leaf can come to at most: what the plan reserves for, and hands on to the merge.
pub(crate) fn bound(probes: &Probes<'_>, pieces: &[Piece], leaf: &LeafView<'_>) -> Bound {
    let mut bound = Bound { added: 0, long: !leaf.tails.is_empty(), tail_bytes: 0 };
    let mut add = |position: u32| {
        bound.added += 1;
        let tail = probes.key_length(position).saturating_sub(leaf.prefix + 8);
        bound.long |= tail > 0;
        bound.tail_bytes += tail as u64;
    };
    for piece in pieces {
        piece.positions().for_each(&mut add);
    }
    bound
}
