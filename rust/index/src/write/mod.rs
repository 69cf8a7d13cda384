//! Writes: assigned to the leaves where the descent left them, planned, merged leaf by leaf, and taken up by
//! the inner nodes.
//!
//! A leaf answers for its routing range alone, so the leaves of a batch do not depend on each other: a write
//! that reaches past its leaf is cut at the bounds. Where it begins it covers the rest of the leaf; where it
//! ends it covers the leaf's first part and becomes its carry; every slot in between becomes vacant, with the
//! write's stamp for all of its keys, and what hung there is condemned in one piece.

mod inner_update;
mod merge;
mod plan;
mod spread;

pub(crate) use merge::Transfer;

use crate::node::inner::{Child, Slots};
use crate::node::leaf::Entries;
use crate::route::VISITS_ROOM;

/// Where a piece of a write stops in its leaf.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// Right after its begin: one key.
    Point,
    /// Before the key of an endpoint in the leaf's slice.
    At(u32),
    /// At the leaf's upper bound.
    Upper,
}

/// The part of a write that lies in one leaf.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Piece {
    /// The endpoint where it begins; none: at the leaf's lower bound.
    pub(crate) begin: Option<u32>,
    pub(crate) stop: Stop,
}

impl Piece {
    /// Where its endpoints stand.
    pub(crate) fn positions(&self) -> impl Iterator<Item = u32> {
        let end = if let Stop::At(end) = self.stop { Some(end) } else { None };
        self.begin.into_iter().chain(end)
    }
}

/// The pieces of one leaf.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LeafPlan {
    /// Index of the leaf's visit.
    pub(crate) visit: u32,
    pub(crate) first: u32,
    pub(crate) last: u32,
    /// Entries that the pieces add at most, and whether the leaf then has some with tails. From the plan on.
    pub(crate) added: u32,
    pub(crate) long: bool,
}

/// What becomes of `span` slots of an inner node: `count` of the made children, from `first` on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Update {
    pub(crate) slot: u32,
    pub(crate) span: u32,
    pub(crate) first: u32,
    pub(crate) count: u32,
    /// A write covers the slots: what hangs in them goes.
    pub(crate) covered: bool,
    /// The next update of the same visit.
    next: u32,
}

const NO_UPDATE: u32 = u32::MAX;

/// Bytes of separators that there is room for from the start.
const SEPARATOR_ROOM: usize = 16 << 10;

/// A child that was made, and where its separator (the whole key) stands. The first of an update has none: it
/// keeps the slot's.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Made {
    pub(crate) child: Child,
    pub(crate) separator: (usize, usize),
}

/// What the phases of one batch's writes hand to each other; the memory is kept from batch to batch.
#[derive(Debug, Default)]
pub(crate) struct Work {
    pub(crate) pieces: Vec<Piece>,
    pub(crate) leaves: Vec<LeafPlan>,
    /// Slots `from..to` of a visited inner node that a write covers.
    pub(crate) covered: Vec<(u32, u32, u32)>,
    pub(crate) entries: Entries,
    /// The first update of each inner visit.
    heads: Vec<u32>,
    /// Whether a visited inner node's slots have changed in place.
    touched: Vec<bool>,
    updates: Vec<Update>,
    pub(crate) made: Vec<Made>,
    pub(crate) separators: Vec<u8>,
    /// Slots that a visit may gain, for the plan.
    added: Vec<u32>,
    slots: Slots,
    gathered: Vec<Update>,
    /// What the hand finds side by side, and the blocks of leaves that it joins.
    pub(crate) found: Vec<crate::reclaim::Found>,
    pub(crate) blocks: Vec<crate::pool::BlockId>,
    /// What becomes of the root: the made children.
    root: Option<(u32, u32)>,
    /// What becomes of the root, level by level.
    level: Vec<Made>,
    above: Vec<Made>,
    key: Vec<u8>,
    /// Room for the bounds of a slot.
    bounds: [Vec<u8>; 2],
    left: Vec<u8>,
    right: Vec<u8>,
}

impl Work {
    /// Forgets the last batch; `visits` inner nodes take part in this one.
    pub(crate) fn start(&mut self, visits: usize) {
        self.heads.clear();
        self.heads.reserve(VISITS_ROOM);
        self.heads.resize(visits, NO_UPDATE);
        self.touched.clear();
        self.touched.reserve(VISITS_ROOM);
        self.touched.resize(visits, false);
        self.updates.clear();
        self.made.clear();
        self.separators.clear();
        self.separators.reserve(SEPARATOR_ROOM);
        self.root = None;
    }

    /// Stores a separator, put together from its parts; returns where it stands.
    pub(crate) fn separate(&mut self, parts: &[&[u8]]) -> (usize, usize) {
        let start = self.separators.len();
        for part in parts {
            self.separators.extend_from_slice(part);
        }
        (start, self.separators.len())
    }

    /// Notes a child without a separator of its own; returns its index.
    pub(crate) fn make(&mut self, child: Child) -> u32 {
        self.made.push(Made { child, separator: (0, 0) });
        self.made.len() as u32 - 1
    }

    /// Notes what becomes of slots of a visited node.
    pub(crate) fn update(&mut self, visit: u32, slot: u32, span: u32, first: u32, count: u32) {
        self.push(visit, Update { slot, span, first, count, covered: false, next: NO_UPDATE });
    }

    /// Notes that a write covers slots of a visited node, which get the made child `vacant`.
    fn cover(&mut self, visit: u32, slot: u32, span: u32, vacant: u32) {
        self.push(visit, Update { slot, span, first: vacant, count: 1, covered: true, next: NO_UPDATE });
    }

    fn push(&mut self, visit: u32, mut update: Update) {
        update.next = std::mem::replace(&mut self.heads[visit as usize], self.updates.len() as u32);
        self.updates.push(update);
    }

    /// The updates of a visit, by slot, in `gathered`.
    fn gather(&mut self, visit: u32) {
        self.gathered.clear();
        let mut at = self.heads[visit as usize];
        while at != NO_UPDATE {
            let update = self.updates[at as usize];
            self.gathered.push(update);
            at = update.next;
        }
        self.gathered.sort_unstable_by_key(|update| update.slot);
    }
}
