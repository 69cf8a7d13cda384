//! The check of reads: each leaf once per slice, and the reads that reach past their leaf by the greatest
//! stamps on their way.

use crate::batch::{EndpointKind, Probes, ReadSink};
use crate::layout::{LongLeaf, ShortLeaf};
use crate::node::inner::{self, Child};
use crate::node::leaf::{self, LeafView, Query};
use crate::planted::{Bug, Planted};
use crate::pool::{LINE_BYTES, Pool};
use crate::route::{LeafVisit, Routes};
use crate::search::Search;
use crate::stats::Stats;
use std::mem::offset_of;

/// How many leaves ahead are prefetched.
const LEAVES_AHEAD: usize = 8;
/// The lines of a leaf that are prefetched for a search: the header and the heads of a short one, all but the tails of a
/// long one. What is beyond is seldom needed, and lines that nobody needs cost as much as the others.
pub(crate) const LEAF_LINES: usize = offset_of!(LongLeaf, tails).div_ceil(LINE_BYTES);
const _: () = assert!(offset_of!(ShortLeaf, stamps) <= LEAF_LINES * LINE_BYTES);
/// Endpoints of a leaf's slice that are looked through at a time.
const GATHERED: usize = 64;

/// What the check of reads needs of the tree.
pub(crate) struct Check<'a, 'b> {
    pub(crate) pool: &'a Pool,
    pub(crate) search: Search,
    pub(crate) planted: Planted,
    pub(crate) probes: &'a Probes<'b>,
    pub(crate) root: Child,
    /// Stamps up to this one have expired.
    pub(crate) expired: u32,
}

impl Check<'_, '_> {
    /// Decides every read that the descent did not leave behind.
    pub(crate) fn run(&self, routes: &mut Routes, sink: &mut impl ReadSink, stats: &mut Stats) {
        for at in 0..routes.leaves.len() {
            if let Some(ahead) = routes.leaves.get(at + LEAVES_AHEAD)
                && ahead.child.leaf
            {
                self.pool.prefetch(ahead.child.block, 0..LEAF_LINES);
            }
            self.leaf(&routes.leaves[at], &mut routes.wide, sink, stats);
        }
        for &position in &routes.wide {
            let begin = self.probes.endpoints[position as usize];
            let limit = sink.limit(begin.range());
            if limit != u32::MAX && self.wide(position, limit, stats) {
                sink.conflict(begin.range());
            }
        }
    }

    /// The reads that begin in one leaf: pruned where nothing in it is newer, decided, or noted as wide where they reach further.
    pub(crate) fn leaf(
        &self,
        visit: &LeafVisit,
        wide: &mut Vec<u32>,
        sink: &mut impl ReadSink,
        stats: &mut Stats,
    ) {
        let mut view = None;
        let mut from = 0;
        let mut low = visit.low;
        while low < visit.high {
            // Reads and writes come in no order that a processor could foretell: the reads are gathered without a branch.
            let mut begins = [0; GATHERED];
            let mut count = 0;
            let high = visit.high.min(low + GATHERED as u32);
            for (position, endpoint) in (low..high).zip(&self.probes.endpoints[low as usize..high as usize]) {
                begins[count] = position;
                count += usize::from(endpoint.kind() == EndpointKind::ReadBegin);
            }
            low = high;
            for &position in &begins[..count] {
                self.read(position, visit, &mut view, &mut from, wide, sink, stats);
            }
        }
    }

    /// One of the reads that begin in a leaf. `view` is the leaf, once a read has needed it; `from` as [`Check::in_leaf`] has it.
    #[inline(always)]
    #[allow(clippy::too_many_arguments)]
    fn read<'s>(
        &'s self,
        position: u32,
        visit: &LeafVisit,
        view: &mut Option<LeafView<'s>>,
        from: &mut usize,
        wide: &mut Vec<u32>,
        sink: &mut impl ReadSink,
        stats: &mut Stats,
    ) {
        let endpoint = self.probes.endpoints[position as usize];
        let limit = sink.limit(endpoint.range());
        if limit == u32::MAX {
            return;
        }
        let end = if endpoint.is_point() { None } else { Some(self.probes.ends[endpoint.range() as usize]) };
        let conflict = if limit >= visit.child.greatest {
            // Nothing in this leaf is newer.
            stats.pruned_reads += 1;
            false
        } else if visit.child.is_vacant() {
            stats.decided_by_version += 1;
            true
        } else {
            let view = &*view.get_or_insert_with(|| {
                stats.leaf_reads += 1;
                leaf::view(self.pool, visit.child.block)
            });
            let begin = Query::new(self.probes, position, view.prefix);
            let inside =
                end.filter(|&end| end < visit.high).map(|end| Query::new(self.probes, end, view.prefix));
            self.in_leaf(view, &begin, endpoint.is_point(), inside.as_ref(), limit, from, stats)
        };
        if conflict {
            sink.conflict(endpoint.range());
        } else if end.is_some_and(|end| end >= visit.high) {
            wide.push(position);
        }
    }

    /// Whether a key from `begin` on, before `end` or the leaf's upper bound, is newer than `limit`. `from`:
    /// entries before it are known to be below `begin`; moved up to the first that is not.
    #[inline]
    #[allow(clippy::too_many_arguments)]
    fn in_leaf(
        &self,
        view: &LeafView<'_>,
        begin: &Query<'_>,
        point: bool,
        end: Option<&Query<'_>>,
        limit: u32,
        from: &mut usize,
        stats: &mut Stats,
    ) -> bool {
        let (first, exact) = view.lower_bound(self.search, begin, *from, self.expired, stats);
        *from = first;
        // A boundary at the begin hides the segment before it.
        let hidden = exact && view.is_boundary(first);
        let unseen = self.planted.has(Bug::SegmentUnseen);
        if !hidden && !unseen && view.segment_before(self.search, first) > limit {
            return true;
        }
        if point {
            // At the key itself there is a point, a boundary, or a boundary and a point.
            if !exact {
                return false;
            }
            if view.stamps[first] > limit {
                return true;
            }
            let next = first + 1;
            return hidden
                && !self.planted.has(Bug::PointBehindBoundaryUnseen)
                && next < view.len()
                && !view.is_boundary(next)
                && view.stamps[next] > limit
                && view.lower_bound(self.search, begin, next, self.expired, stats) == (next, true);
        }
        let last = match end {
            Some(end) => view.lower_bound(self.search, end, first, self.expired, stats).0,
            None => view.len(),
        };
        self.search.any_above(&view.stamps[first..last], limit)
    }

    /// Whether a range read that begins at a position conflicts anywhere, from the root.
    fn wide(&self, position: u32, limit: u32, stats: &mut Stats) -> bool {
        let range = self.probes.endpoints[position as usize].range();
        let end = self.probes.ends[range as usize];
        let whole = Reach { child: self.root, begin: Some(position), end: Some(end) };
        self.newer_than(whole, limit, stats)
    }

    /// Whether some key of the part of a child that a read covers is newer than `limit`. Only the two edges of
    /// the read are descended; what lies between is answered by the greatest stamps.
    fn newer_than(&self, part: Reach, limit: u32, stats: &mut Stats) -> bool {
        let known = part.known(limit, stats);
        known.unwrap_or_else(|| match self.look(part, limit, stats) {
            Looked::Decided(newer) => newer,
            Looked::Below(parts) => {
                parts.into_iter().flatten().any(|part| self.newer_than(part, limit, stats))
            }
        })
    }

    /// One node's part in the answer: it reads the node, and names the children that are left to ask.
    pub(crate) fn look(&self, part: Reach, limit: u32, stats: &mut Stats) -> Looked {
        let Reach { child, begin, end } = part;
        stats.wide_visits += 1;
        if child.leaf {
            let view = leaf::view(self.pool, child.block);
            let end = end.map(|end| Query::new(self.probes, end, view.prefix));
            return Looked::Decided(match begin {
                Some(begin) => {
                    let begin = Query::new(self.probes, begin, view.prefix);
                    self.in_leaf(&view, &begin, false, end.as_ref(), limit, &mut 0, stats)
                }
                None => {
                    let last = end.map_or(view.len(), |end| {
                        view.lower_bound(self.search, &end, 0, self.expired, stats).0
                    });
                    view.carry > limit || self.search.any_above(&view.stamps[..last], limit)
                }
            });
        }
        let node = inner::node(self.pool, child.block);
        let slot = |position: u32, inclusive: bool, stats: &mut Stats| {
            let query = Query::new(self.probes, position, node.prefix());
            node.slot_of(self.pool, self.search, &query, inclusive, stats)
        };
        let first = begin.map(|begin| slot(begin, true, stats));
        let behind = self.planted.has(Bug::ReadEndsBehindSeparator);
        let last = end.map(|end| slot(end, behind, stats));
        match (first, last) {
            (Some(first), Some(last)) if first == last => {
                Looked::Below([Some(Reach { child: node.child(first), begin, end }), None])
            }
            _ => {
                let between = first.map_or(0, |first| first + 1)..last.unwrap_or(node.len());
                let unseen = self.planted.has(Bug::BetweenUnseen);
                if !unseen && self.search.any_above(&node.greatest[between], limit) {
                    stats.decided_by_version += 1;
                    return Looked::Decided(true);
                }
                let first = first.map(|first| Reach { child: node.child(first), begin, end: None });
                let last = last.map(|last| Reach { child: node.child(last), begin: None, end });
                Looked::Below([first, last])
            }
        }
    }
}

/// The part of a child's range that a read covers: from the endpoint `begin` (or the range's lower bound) on,
/// and before the endpoint `end` (or the upper bound).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reach {
    pub(crate) child: Child,
    pub(crate) begin: Option<u32>,
    pub(crate) end: Option<u32>,
}

impl Reach {
    /// Whether some key of it is newer than `limit`, where that is known without a look at the node.
    #[inline]
    pub(crate) fn known(&self, limit: u32, stats: &mut Stats) -> Option<bool> {
        if self.child.greatest <= limit {
            return Some(false);
        }
        let decided = self.begin.is_none() && self.end.is_none() || self.child.is_vacant();
        stats.decided_by_version += u64::from(decided);
        decided.then_some(true)
    }
}

/// What a look at one node says about a read.
pub(crate) enum Looked {
    /// Whether some key is newer than the limit.
    Decided(bool),
    /// So far there is none; these children are left to ask.
    Below([Option<Reach>; 2]),
}
