//! Which leaf gets which part of which write, and how many blocks that can take at most.

use super::merge::Bound;
use super::{LeafPlan, Piece, Stop, Work};
use crate::batch::{Probes, Write};
use crate::keys::KeyLog;
use crate::layout::{HEAP_BYTES, SLOTS};
use crate::node::inner::{self, chain_blocks_at_most};
use crate::node::leaf::{self, Query};
use crate::planted::Bug;
use crate::route::{NO_VISIT, Routes, VISITS_ROOM};
use crate::tree::Tree;

/// The fullest that a leaf is made when its entries are spread over several: the rest is room for the writes
/// to come.
pub(crate) const fn spread_target(capacity: usize) -> usize {
    capacity * 3 / 4
}

/// The fullest that an inner node is made when its slots are spread over several.
pub(crate) const SLOTS_TARGET: usize = SLOTS * 3 / 4;

/// How many leaves ahead the plan prefetches the header of.
const HEADERS_AHEAD: usize = 16;

impl Tree {
    /// Cuts `writes` at the bounds of the leaves where their endpoints are.
    pub(crate) fn assign(&self, probes: &Probes<'_>, writes: &[Write], routes: &Routes, work: &mut Work) {
        work.pieces.clear();
        work.leaves.clear();
        work.covered.clear();
        let mut next = 0;
        // The leaf where the write began that is still to end, and the position of its end.
        let mut open: Option<(usize, u32)> = None;
        for (at, visit) in routes.leaves.iter().enumerate() {
            let first = work.pieces.len() as u32;
            if let Some((began, end)) = open {
                if end >= visit.high {
                    continue;
                }
                self.cover_between(routes, began, at, &mut work.covered);
                // A write that ends at the lower bound covers none of this leaf.
                if !self.is_lower_bound(probes, routes, (visit.parent, visit.slot), end)
                    || self.planted(Bug::WriteEndsBehindSeparator)
                {
                    work.pieces.push(Piece { begin: None, stop: Stop::At(end) });
                }
                open = None;
            }
            while let Some(write) = writes.get(next).filter(|write| write.begin < visit.high) {
                debug_assert!(write.begin >= visit.low, "every write begins in a leaf that was visited");
                let stop = match write.end {
                    Write::POINT => Stop::Point,
                    end if end < visit.high => Stop::At(end),
                    end => {
                        open = Some((at, end));
                        Stop::Upper
                    }
                };
                work.pieces.push(Piece { begin: Some(write.begin), stop });
                next += 1;
            }
            let last = work.pieces.len() as u32;
            if first < last {
                work.leaves.push(LeafPlan { visit: at as u32, first, last, added: 0, long: false });
            }
        }
        assert!(next == writes.len() && open.is_none(), "every write has found its leaves");
    }

    /// Notes the slots between two visited leaves, on the way from the left one up and down to the right one.
    fn cover_between(&self, routes: &Routes, left: usize, right: usize, covered: &mut Vec<(u32, u32, u32)>) {
        let (mut left, mut right) = {
            let (left, right) = (&routes.leaves[left], &routes.leaves[right]);
            ((left.parent, left.slot), (right.parent, right.slot))
        };
        // A child's visit stands after its parent's, so the later of two visits is never the earlier one's
        // ancestor.
        while left.0 != right.0 {
            if right.0 == NO_VISIT || left.0 != NO_VISIT && left.0 > right.0 {
                let visit = &routes.inner[left.0 as usize];
                let slots = inner::node(&self.pool, visit.block).len() as u32;
                if left.1 + 1 < slots {
                    covered.push((left.0, left.1 + 1, slots));
                }
                left = (visit.parent, visit.slot);
            } else {
                let visit = &routes.inner[right.0 as usize];
                if right.1 > 0 {
                    covered.push((right.0, 0, right.1));
                }
                right = (visit.parent, visit.slot);
            }
        }
        if left.1 + 1 < right.1 {
            covered.push((left.0, left.1 + 1, right.1));
        }
    }

    /// Whether the key of an endpoint is the lower bound of the slot it was routed to.
    pub(crate) fn is_lower_bound(
        &self,
        probes: &Probes<'_>,
        routes: &Routes,
        (mut parent, mut slot): (u32, u32),
        position: u32,
    ) -> bool {
        while parent != NO_VISIT {
            let visit = &routes.inner[parent as usize];
            if slot > 0 {
                let node = inner::node(&self.pool, visit.block);
                let query = Query::new(probes, position, node.prefix());
                return node.compare(&self.pool, slot as usize, &query, &mut Default::default()).is_eq();
            }
            (parent, slot) = (visit.parent, visit.slot);
        }
        false
    }

    /// How many blocks the assigned pieces can take at most.
    pub(crate) fn blocks_needed(&self, probes: &Probes<'_>, routes: &Routes, work: &mut Work) -> u64 {
        let mut blocks = u64::from(self.versions.needs_block());
        let mut tail_bytes = 0u64;
        work.added.clear();
        work.added.reserve(VISITS_ROOM);
        work.added.resize(routes.inner.len(), 0);
        let mut chains = 0;
        let mut root_slots = 1;
        for at in 0..work.leaves.len() {
            if let Some(ahead) = work.leaves.get(at + HEADERS_AHEAD) {
                self.pool.prefetch(routes.leaves[ahead.visit as usize].child.block, 0..1);
            }
            let plan = &mut work.leaves[at];
            let visit = &routes.leaves[plan.visit as usize];
            let leaf = self.open(probes, routes, visit, &mut work.bounds);
            let pieces = &work.pieces[plan.first as usize..plan.last as usize];
            let Bound { added, long, tail_bytes: tails } = super::merge::bound(probes, pieces, &leaf);
            (plan.added, plan.long) = (added as u32, long);
            let bound = leaf.len() + added;
            let prefix = leaf.prefix;
            tail_bytes += tails;
            let capacity = leaf::capacity(long);
            blocks += u64::from(visit.child.is_vacant());
            if bound > capacity && !self.planted(Bug::ReservationForgetsSplits) {
                // Of the leaves that they are spread over, each but the last takes at least an even share.
                let more = bound.div_ceil(spread_target(capacity)) as u32 - 1;
                let separator = if long { self.longest } else { prefix + 9 };
                chains = chains.max(chain_blocks_at_most(separator));
                match visit.parent {
                    NO_VISIT => root_slots += more,
                    parent => work.added[parent as usize] += more,
                }
                blocks += u64::from(more);
            }
        }
        blocks += KeyLog::blocks_for(tail_bytes);
        for at in (0..routes.inner.len()).rev() {
            let added = work.added[at];
            if added == 0 {
                continue;
            }
            blocks += u64::from(added) * chains;
            let node = inner::node(&self.pool, routes.inner[at].block);
            let slots = node.len() + added as usize;
            let heap = usize::from(node.header.extra) + added as usize * inner::INLINE_TAIL;
            if slots <= SLOTS && heap <= HEAP_BYTES {
                continue;
            }
            let pieces = inner_pieces_at_most(slots) as u32;
            blocks += u64::from(pieces);
            // A separator that moves up stands behind a shorter prefix there.
            chains = chains.max(chain_blocks_at_most(node.longest_separator() + node.prefix()));
            match routes.inner[at].parent {
                NO_VISIT => root_slots += pieces,
                parent => work.added[parent as usize] += pieces,
            }
        }
        if root_slots > 1 {
            let mut slots = root_slots as usize;
            while slots > 1 {
                blocks += slots as u64 * chains;
                slots = if slots <= inner::SURE_SLOTS { 1 } else { inner_pieces_at_most(slots) };
                blocks += slots as u64;
            }
        }
        blocks
    }
}

/// How many nodes a list of slots makes at most: each but the last takes at least what fits whatever the
/// separators are, or half the target.
fn inner_pieces_at_most(slots: usize) -> usize {
    slots.div_ceil(inner::SURE_SLOTS.min(SLOTS_TARGET / 2))
}
