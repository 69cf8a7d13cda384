//! The merge of one leaf with its pieces: one pass over both, in key order.

use super::{LeafPlan, Piece, Stop, Work};
use crate::batch::Probes;
use crate::keys::{KeyLog, LONG, Tail};
use crate::node::inner::Child;
use crate::node::leaf::{self, Entries, LeafView};
use crate::pool::{BlockId, Pool};
use crate::route::{LeafVisit, Routes, query};
use crate::search::Search;
use crate::stats::Stats;
use crate::tree::Tree;

/// A leaf is compacted when one in so many of its entries is dead, or when it would overflow.
const DEAD_SHARE: usize = 8;

/// Entries on their way from a leaf into a list, with what is known of the segments on both sides.
pub(crate) struct Transfer<'a> {
    pub(crate) search: Search,
    pub(crate) expired: u32,
    /// Whether dead entries stay behind.
    pub(crate) compact: bool,
    pub(crate) entries: &'a mut Entries,
    /// The stamp of the segment that the list's last keys lie in.
    pub(crate) segment: u32,
    /// Stamps of entries that were left out or overwritten.
    pub(crate) removed: &'a mut Vec<u32>,
}

impl Transfer<'_> {
    /// A stamp, or a gap if it has expired.
    pub(crate) fn live(&self, stamp: u32) -> u32 {
        if stamp <= self.expired { 0 } else { stamp }
    }

    /// Takes entries `from..to` over, without the dead ones when compacting.
    pub(crate) fn take(&mut self, leaf: &LeafView<'_>, from: usize, to: usize) {
        if from == to {
            return;
        }
        if !self.compact {
            self.entries.copy(leaf, from, to);
            if leaf.boundaries > 0
                && let Some(boundary) = self.search.last_with_high_bit(&leaf.kinds[from..to], to - from)
            {
                self.segment = leaf.stamps[from + boundary];
            }
            return;
        }
        for at in from..to {
            let stamp = leaf.stamps[at];
            if leaf.is_boundary(at) {
                let live = self.live(stamp);
                if live == self.live(self.segment) {
                    // It starts nothing new.
                    self.removed.push(stamp);
                } else {
                    if live != stamp {
                        self.removed.push(stamp);
                    }
                    self.entries.push(leaf.place(at), true, live, leaf.tail(at));
                    self.segment = live;
                }
            } else if stamp > self.expired {
                self.entries.push(leaf.place(at), false, stamp, leaf.tail(at));
            } else {
                self.removed.push(stamp);
            }
        }
    }
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
    ) {
        let visit = routes.leaves[plan.visit as usize];
        let vacant = visit.child.is_vacant();
        let prefix = if vacant {
            self.slot_prefix(probes, routes, (visit.parent, visit.slot))
        } else {
            leaf::view(&self.pool, visit.child.block).prefix
        };
        self.stats.leaves_merged += 1;

        let mut entries = std::mem::take(&mut work.entries);
        let mut removed = std::mem::take(&mut self.removed);
        removed.clear();
        entries.clear();
        let pieces = &work.pieces[plan.first as usize..plan.last as usize];
        let (search, expired) = (self.search, self.expired);
        let leaf = open(&self.pool, visit.child, prefix);
        let bound = bound(probes, pieces, &leaf);
        let dead = leaf.dead(search, expired);
        let compact = bound.entries > leaf::capacity(bound.long) || dead * DEAD_SHARE > leaf.len();
        self.stats.leaves_compacted += u64::from(compact && dead > 0);
        entries.carry = if leaf.carry <= expired { 0 } else { leaf.carry };
        let mut transfer = Transfer {
            search,
            expired,
            compact,
            segment: entries.carry,
            entries: &mut entries,
            removed: &mut removed,
        };
        let mut added = 0;
        // Entries before `at` are dealt with.
        let mut at = 0;
        let mut only_appends = leaf.len() > 0;
        let mut last_end = None;
        for piece in pieces {
            let leaf = open(&self.pool, visit.child, prefix);
            let mut begin = piece.begin.map(|position| query(probes, position, prefix));
            let (first, exact) = match &begin {
                Some(begin) => leaf.lower_bound(search, begin, at, expired, &mut self.stats),
                None => (0, false),
            };
            only_appends &= first == leaf.len();
            transfer.take(&leaf, at, first);
            at = first;
            if piece.stop == Stop::Point {
                let begin = begin.expect("a point begins at its key");
                let mut found = exact;
                if exact && leaf.is_boundary(at) {
                    transfer.take(&leaf, at, at + 1);
                    at += 1;
                    found = at < leaf.len()
                        && !leaf.is_boundary(at)
                        && leaf.lower_bound(search, &begin, at, expired, &mut self.stats) == (at, true);
                }
                if found {
                    transfer.removed.push(leaf.stamps[at]);
                    at += 1;
                }
                let tail = store(&mut self.pool, &mut self.log, begin.rest, stamp, &mut self.stats);
                transfer.entries.push(begin.place, false, stamp, tail);
                added += 1;
                continue;
            }
            let end = match piece.stop {
                Stop::At(position) => Some(query(probes, position, prefix)),
                _ => None,
            };
            let (last, at_end) = match &end {
                Some(end) => leaf.lower_bound(search, end, at, expired, &mut self.stats),
                None => (leaf.len(), false),
            };
            transfer.removed.extend_from_slice(&leaf.stamps[at..last]);
            let mut after = leaf.segment_before(search, last);
            at = last;
            // A boundary at the end stays the end, but for its bytes: they must live as long as the segment that it ends now.
            if at_end && leaf.is_boundary(at) {
                after = leaf.stamps[at];
                transfer.removed.push(after);
                at += 1;
            }
            let after = transfer.live(after);
            if let (Some(ended), Some(begin)) = (last_end, piece.begin)
                && same_key(probes, ended, begin)
            {
                // The write before this one ends where this one begins: one segment.
                let boundary = transfer.entries.pop();
                self.count(boundary, -1);
                transfer.segment = stamp;
            } else if let Some(position) = piece.begin
                && first == 0
                && self.is_lower_bound(probes, routes, (visit.parent, visit.slot), position)
            {
                begin = None;
            }
            match begin {
                Some(begin) => {
                    if transfer.segment != stamp {
                        let tail = store(&mut self.pool, &mut self.log, begin.rest, stamp, &mut self.stats);
                        transfer.entries.push(begin.place, true, stamp, tail);
                        added += 1;
                    }
                }
                None => transfer.entries.carry = stamp,
            }
            transfer.segment = stamp;
            last_end = None;
            if let (Some(end), Stop::At(position)) = (end, piece.stop) {
                let tail = store(&mut self.pool, &mut self.log, end.rest, stamp, &mut self.stats);
                transfer.entries.push(end.place, true, after, tail);
                transfer.segment = after;
                self.count(after, 1);
                last_end = Some(position);
            }
        }
        let leaf = open(&self.pool, visit.child, prefix);
        let length = leaf.len();
        transfer.take(&leaf, at, length);
        self.count(stamp, added);
        self.stats.entries_added += added as u64;
        self.count_removed(&removed);
        self.removed = removed;
        work.entries = entries;
        self.place_leaf(probes, routes, plan.visit, prefix, only_appends, work);
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
        self.note(parent, slot, 1, first, count, work);
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

/// A visited slot's leaf; a vacant slot as a leaf without entries.
fn open(pool: &Pool, child: Child, prefix: usize) -> LeafView<'_> {
    if child.is_vacant() {
        LeafView::vacant(pool, prefix, child.greatest)
    } else {
        leaf::view(pool, child.block)
    }
}

/// Puts the bytes that a head does not hold into the log.
fn store(pool: &mut Pool, log: &mut KeyLog, rest: &[u8], stamp: u32, stats: &mut Stats) -> Tail {
    if rest.is_empty() { Tail::NONE } else { log.append(pool, &[rest], stamp, stats) }
}

/// What a leaf can come to when its pieces are merged into it.
pub(crate) struct Bound {
    /// Entries.
    pub(crate) entries: usize,
    /// Whether some of them have tails.
    pub(crate) long: bool,
    /// Bytes of the tails that are stored for the pieces.
    pub(crate) tail_bytes: u64,
}

/// What a leaf can come to at most: what the plan reserves for, and what the merge goes by.
pub(crate) fn bound(probes: &Probes<'_>, pieces: &[Piece], leaf: &LeafView<'_>) -> Bound {
    let mut bound = Bound { entries: leaf.len(), long: !leaf.tails.is_empty(), tail_bytes: 0 };
    let mut add = |position: u32| {
        let endpoint = probes.endpoints[position as usize];
        bound.entries += 1;
        if probes.place(endpoint, leaf.prefix).length == LONG {
            bound.long = true;
            bound.tail_bytes += probes.rest(endpoint, leaf.prefix).len() as u64;
        }
    };
    for piece in pieces {
        if let Some(begin) = piece.begin {
            add(begin);
        }
        if let Stop::At(end) = piece.stop {
            add(end);
        }
    }
    bound
}

/// Whether two endpoints have the same key.
fn same_key(probes: &Probes<'_>, left: u32, right: u32) -> bool {
    let [left, right] = [left, right].map(|position| probes.endpoints[position as usize]);
    left.head() == right.head()
        && left.length() == right.length()
        && (!left.is_long() || probes.key(left) == probes.key(right))
}
