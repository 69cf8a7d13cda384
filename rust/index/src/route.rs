//! The batched descent: one sorted row of endpoints, split over the children of every node on its way down.
//!
//! At an inner node its slice of the endpoints and its separators are partitioned recursively, as the second
//! of the posts has it: the middle separator cuts the slice (equal keys go right), each side goes on with its
//! half of the separators, empty sides vanish, and a side with one endpoint is an ordinary search. With S
//! separators and K endpoints this takes O(S log(1 + K/S)) comparisons for K >= S and O(K log(1 + S/K))
//! below. Where neither is far more than the other, which is the rule above the leaves, a walk along both is
//! faster: its steps compare four endpoints at a time. The nodes found are the next nodes to visit, so that they
//! are known, and prefetched, well before their turn.
//!
//! On the way, reads that no stamp below can touch are left behind: where a child's greatest stamp is not
//! above the limit of any read that begins in its slice, and no write does, the child is not visited. A read
//! whose end lies outside the child goes on the list of *wide* reads, which are decided by the greatest
//! stamps along both edges of the read (see `read`).

use crate::batch::{EndpointKind, Probes, ReadSink};
use crate::keys::{self, LONG, Place};
use crate::layout::{Inner, SLOTS};
use crate::node::inner::{self, Child};
use crate::node::leaf::Query;
use crate::planted::{Bug, Planted};
use crate::pool::{BlockId, LINE_BYTES, Pool};
use crate::search::{STRIDE, Search};
use crate::stats::Stats;
use std::mem::offset_of;

/// No visit: the parent of the root.
pub(crate) const NO_VISIT: u32 = u32::MAX;

/// An inner node on the way of a batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct InnerVisit {
    pub(crate) block: BlockId,
    /// The visit of its parent, and the slot there.
    pub(crate) parent: u32,
    pub(crate) slot: u32,
    /// Its slice of the endpoints.
    pub(crate) low: u32,
    pub(crate) high: u32,
}

/// A leaf, or a vacant slot, where endpoints of a batch arrived.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeafVisit {
    pub(crate) child: Child,
    pub(crate) parent: u32,
    pub(crate) slot: u32,
    pub(crate) low: u32,
    pub(crate) high: u32,
}

/// Where the endpoints of one batch went. Parents stand before their children.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    pub(crate) inner: Vec<InnerVisit>,
    pub(crate) leaves: Vec<LeafVisit>,
    /// Positions of the begins of reads that reach past the child they begin in.
    pub(crate) wide: Vec<u32>,
    stack: Vec<Part>,
    /// Room for a separator's bytes.
    separator: Vec<u8>,
}

/// A part of a node still to be partitioned: slots `first..=last`, endpoints `low..high`.
#[derive(Clone, Copy, Debug)]
struct Part {
    first: u32,
    last: u32,
    low: u32,
    high: u32,
}

/// A separator as endpoints are compared with it.
#[derive(Clone, Copy, Debug)]
struct Separator {
    slot: usize,
    /// How many bytes of the endpoints' keys are passed over: all of them share those.
    prefix: usize,
    /// What stands behind them in the separator; [`Separator::LEAST`] or [`Separator::GREATEST`] if it differs in them.
    place: Place,
}

impl Separator {
    /// At or below every key's place.
    const LEAST: Place = Place { head: 0, length: 0 };
    /// Above every key's place.
    const GREATEST: Place = Place { head: u64::MAX, length: u8::MAX };
}

/// How many visits ahead an inner node is prefetched.
const INNER_AHEAD: usize = 6;
/// The lines of an inner node that the descent touches: what stands before the column that only the hand asks for.
pub(crate) const INNER_LINES: usize = offset_of!(Inner, oldest).div_ceil(LINE_BYTES);

/// What the descent needs to know besides the endpoints.
pub(crate) struct Descent<'a, 'b> {
    pub(crate) pool: &'a Pool,
    pub(crate) search: Search,
    pub(crate) planted: Planted,
    pub(crate) probes: &'a Probes<'b>,
    /// Whether leaves are needed for writes. A descent for reads alone passes writes by.
    pub(crate) for_writes: bool,
    /// Whether reads are looked at. A descent for writes alone passes reads by.
    pub(crate) for_reads: bool,
}

impl Descent<'_, '_> {
    /// Routes endpoints `low..high` from the root.
    pub(crate) fn run(
        &self,
        root: Child,
        (low, high): (u32, u32),
        sink: &impl ReadSink,
        routes: &mut Routes,
        stats: &mut Stats,
    ) {
        self.start(root, (low, high), sink, routes, stats);
        let mut at = 0;
        while at < routes.inner.len() {
            if let Some(ahead) = routes.inner.get(at + INNER_AHEAD) {
                self.pool.prefetch(ahead.block, 0..INNER_LINES);
            }
            self.partition(at, sink, routes, stats);
            at += 1;
        }
        if !routes.leaves.is_sorted_by_key(|visit| visit.low) {
            // Leaves hang at different depths; their slices are disjoint.
            routes.leaves.sort_unstable_by_key(|visit| visit.low);
        }
        stats.inner_visits += routes.inner.len() as u64;
    }

    /// Forgets the last descent, and lets endpoints `low..high` arrive at the root.
    pub(crate) fn start(
        &self,
        root: Child,
        (low, high): (u32, u32),
        sink: &impl ReadSink,
        routes: &mut Routes,
        stats: &mut Stats,
    ) {
        routes.inner.clear();
        routes.leaves.clear();
        routes.wide.clear();
        routes.inner.reserve(VISITS_ROOM);
        routes.stack.reserve(STACK_ROOM);
        routes.separator.reserve(SEPARATOR_ROOM);
        // A wide read has two endpoints, and is noted once.
        routes.wide.reserve(self.probes.endpoints.len() / 2);
        if low < high {
            self.arrive(root, NO_VISIT, 0, (low, high), sink, routes, stats);
        }
    }

    /// Splits a node's slice over its slots; the visits that come of it are noted in key order.
    pub(crate) fn partition(&self, at: usize, sink: &impl ReadSink, routes: &mut Routes, stats: &mut Stats) {
        let visit = routes.inner[at];
        let node = inner::node(self.pool, visit.block);
        let last = node.len() as u32 - 1;
        let arrived = (visit.high - visit.low) as usize;
        let shift = node.prefix().saturating_sub(self.probes.prefix.len());
        if walks(arrived, node.len())
            && let Some(bits) = self.probes.moved_by(shift, (visit.low, visit.high))
        {
            return self.partition_by_walk(at, bits, sink, routes, stats);
        }
        let mut room = std::mem::take(&mut routes.separator);
        let mut stack = std::mem::take(&mut routes.stack);
        stack.push(Part { first: 0, last, low: visit.low, high: visit.high });
        while let Some(part) = stack.pop() {
            if part.low == part.high {
                continue;
            }
            let slot = if part.first == part.last {
                part.first
            } else if part.high - part.low == 1 {
                let query = Query::new(self.probes, part.low, node.prefix());
                node.slot_of(self.pool, self.search, &query, true, stats) as u32
            } else {
                let middle = part.first + (part.last - part.first).div_ceil(2);
                let separator = self.separator(node, middle as usize, &mut room);
                let cut = self.first_at_or_above(node, separator, (part.low, part.high), stats);
                // The left part is on top of the stack: children are found in key order.
                stack.push(Part { first: middle, last: part.last, low: cut, high: part.high });
                stack.push(Part { first: part.first, last: middle - 1, low: part.low, high: cut });
                continue;
            };
            self.arrive(
                node.child(slot as usize),
                at as u32,
                slot,
                (part.low, part.high),
                sink,
                routes,
                stats,
            );
        }
        routes.stack = stack;
        routes.separator = room;
    }

    /// The same by a walk along slots and endpoints. The node sees the endpoints' heads moved to the left by `bits`.
    fn partition_by_walk(
        &self,
        at: usize,
        bits: u32,
        sink: &impl ReadSink,
        routes: &mut Routes,
        stats: &mut Stats,
    ) {
        let InnerVisit { block, mut low, high, .. } = routes.inner[at];
        let node = inner::node(self.pool, block);
        let last = node.len() - 1;
        let mut room = std::mem::take(&mut routes.separator);
        for slot in 0..=last {
            if low == high {
                break;
            }
            let cut = if slot < last {
                let separator = self.separator(node, slot + 1, &mut room);
                self.walk(node, separator, bits, (low, high), stats)
            } else {
                high
            };
            if low < cut {
                self.arrive(node.child(slot), at as u32, slot as u32, (low, cut), sink, routes, stats);
            }
            low = cut;
        }
        routes.separator = room;
    }

    /// A slot's separator as the keys of the batch are compared with it. A node that sees less of them than the batch would
    /// find the same head in all: there, what follows the batch's prefix is compared.
    fn separator(&self, node: &Inner, slot: usize, room: &mut Vec<u8>) -> Separator {
        let (prefix, own) = (node.prefix(), self.probes.prefix);
        if prefix >= own.len() {
            return Separator { slot, prefix, place: node.place(slot) };
        }
        room.clear();
        node.copy_separator(self.pool, slot, room);
        let ahead = &own[prefix..];
        let place = match room.strip_prefix(ahead) {
            Some(rest) => keys::load_head(rest),
            None if room.as_slice() < ahead => Separator::LEAST,
            None => Separator::GREATEST,
        };
        Separator { slot, prefix: own.len(), place }
    }

    /// The first of the endpoints `low..high` whose key is at or above a separator, found by a walk from the first.
    fn walk(
        &self,
        node: &Inner,
        separator: Separator,
        bits: u32,
        (low, high): (u32, u32),
        stats: &mut Stats,
    ) -> u32 {
        let rest = &self.probes.endpoints[low as usize..high as usize];
        let Separator { prefix, place, .. } = separator;
        let mut below = self.search.below_moved(rest, bits, place.head);
        stats.routing_head_comparisons += walk_steps(rest.len(), below) as u64;
        while let Some(endpoint) = rest.get(below)
            && endpoint.moved_head(bits) == place.head
        {
            let at = low + below as u32;
            let seen = self.probes.place(at, prefix);
            if seen == place && place.length == LONG {
                return self.first_at_or_above(node, separator, (at, high), stats);
            }
            if seen >= place {
                break;
            }
            // The same head, but shorter.
            below += 1;
        }
        low + below as u32
    }

    /// The first of the endpoints `low..high` whose key is at or above a separator.
    fn first_at_or_above(
        &self,
        node: &Inner,
        separator: Separator,
        (low, high): (u32, u32),
        stats: &mut Stats,
    ) -> u32 {
        let Separator { slot, prefix, place } = separator;
        let (mut low, mut length) = (low, high - low);
        while length > 0 {
            stats.routing_head_comparisons += 1;
            let half = length / 2;
            let seen = self.probes.place(low + half, prefix);
            let below = if seen == place && place.length == LONG {
                let query = Query::new(self.probes, low + half, node.prefix());
                node.compare(self.pool, slot, &query, stats).is_gt()
            } else {
                seen < place
            };
            low = if below { low + half + 1 } else { low };
            length = if below { length - half - 1 } else { half };
        }
        low
    }

    /// A slice has arrived at a child: note the visit, unless nobody needs it.
    #[allow(clippy::too_many_arguments)]
    fn arrive(
        &self,
        child: Child,
        parent: u32,
        slot: u32,
        (low, high): (u32, u32),
        sink: &impl ReadSink,
        routes: &mut Routes,
        stats: &mut Stats,
    ) {
        let inner = !(child.leaf || child.is_vacant());
        let slice = &self.probes.endpoints[low as usize..high as usize];
        let needed = inner && slice.len() > PRUNE_SLICE
            || self.for_writes && slice.iter().fold(false, |any, endpoint| any | endpoint.is_write())
            || self.for_reads && self.any_read_in(child, (low, high), sink, routes, stats);
        if !needed {
            return;
        }
        if !inner {
            routes.leaves.push(LeafVisit { child, parent, slot, low, high });
        } else {
            routes.inner.push(InnerVisit { block: child.block, parent, slot, low, high });
        }
    }

    /// Whether a child must be visited for a read that begins in its slice. If not, all of them are pruned: those that
    /// reach further are noted. If so, whoever visits it sees them again.
    fn any_read_in(
        &self,
        child: Child,
        (low, high): (u32, u32),
        sink: &impl ReadSink,
        routes: &mut Routes,
        stats: &mut Stats,
    ) -> bool {
        let wide = routes.wide.len();
        let mut pruned = 0;
        for position in low..high {
            let endpoint = self.probes.endpoints[position as usize];
            if endpoint.kind() != EndpointKind::ReadBegin {
                continue;
            }
            let range = endpoint.range();
            let limit = sink.limit(range);
            if child.greatest > limit.saturating_add(self.planted.has(Bug::PrunedByOne).into()) {
                routes.wide.truncate(wide);
                return true;
            }
            if limit != u32::MAX {
                pruned += 1;
                if !endpoint.is_point() && self.probes.ends[range as usize] >= high {
                    routes.wide.push(position);
                }
            }
        }
        stats.pruned_reads += pruned;
        false
    }
}

/// Of a descent for writes alone.
pub(crate) struct NoReads;

impl ReadSink for NoReads {
    fn limit(&self, _: u32) -> u32 {
        u32::MAX
    }

    fn conflict(&mut self, _: u32) {
        unreachable!("nothing is newer than the greatest limit");
    }
}

/// Whether a slice of so many endpoints is split over a node of so many slots by a walk along both: a step of it costs far
/// less than one of a search, so that it pays until slots would be walked through in vain, or endpoints.
pub fn walks(endpoints: usize, slots: usize) -> bool {
    endpoints > 1 && slots / 8 <= endpoints && endpoints <= slots * 32
}

/// The steps of a walk over `length` endpoints that ends behind the first `below`.
pub fn walk_steps(length: usize, below: usize) -> usize {
    (below / STRIDE + 1).min(length.div_ceil(STRIDE))
}

/// Inner visits that lists have room for from the start: small trees grow without asking for more.
pub(crate) const VISITS_ROOM: usize = 256;

/// Parts of a node that wait to be partitioned at most: two for each time that its slots can be halved.
const STACK_ROOM: usize = 2 * (SLOTS.ilog2() as usize + 1);

/// Bytes of a separator that there is room for from the start.
const SEPARATOR_ROOM: usize = 256;

/// The longest slice that is searched for reads to leave behind at an inner child.
const PRUNE_SLICE: usize = 16;
