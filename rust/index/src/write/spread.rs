//! One leaf's entries over several leaves.

use super::plan::spread_target;
use super::{Made, Work};
use crate::batch::Probes;
use crate::keys;
use crate::layout::Inner;
use crate::node::inner::{self, Child};
use crate::node::leaf::{self, Entries, LeafView, Part};
use crate::planted::Bug;
use crate::pool::BlockId;
use crate::route::{LeafVisit, NO_VISIT, Routes};
use crate::tree::Tree;

impl Tree {
    /// Spreads the entries of a visited leaf over new leaves, the first of them in its own block.
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn spread_leaf(
        &mut self,
        probes: &Probes<'_>,
        routes: &Routes,
        visit: u32,
        entries: &Entries,
        prefix: usize,
        appending: bool,
        work: &mut Work,
    ) {
        let visit = routes.leaves[visit as usize];
        let shared = &probes.key(probes.endpoints[visit.low as usize])[..prefix];
        self.stats.leaves_split += 1;
        // Where new keys only follow the old ones, more will: the leaves are left nearly full.
        let target = match appending {
            true => entries.capacity() * 15 / 16,
            false => spread_target(entries.capacity()),
        };
        let count = entries.len();
        let size = if appending { target } else { count.div_ceil(count.div_ceil(target)) };
        let slots = (visit.parent, visit.slot, visit.slot);
        let block = self.block_for(visit.child);
        self.spread(probes, routes, slots, entries, (shared, size), &[block], work);
    }

    /// Makes leaves of at most `size` entries for the range of slots `first..=last` of a visited node, out of entries that were made
    /// for the prefix `shared`. The leaves take the blocks of `own`, and new ones when there are no more. Returns how many.
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn spread(
        &mut self,
        probes: &Probes<'_>,
        routes: &Routes,
        (parent, first, last): (u32, u32, u32),
        entries: &Entries,
        (shared, size): (&[u8], usize),
        own: &[BlockId],
        work: &mut Work,
    ) -> usize {
        let count = entries.len();
        let prefix = shared.len();
        let mut blocks = own.iter().copied();
        let mut leaves = 0;
        let mut lower = std::mem::take(&mut work.left);
        let mut upper = std::mem::take(&mut work.right);
        let mut bounded = self.lower_bound_key(probes, routes, (parent, first), &mut lower);
        let mut carry = entries.carry;
        let mut from = 0;
        loop {
            let block = match blocks.next() {
                Some(block) => block,
                None => self.pool.allocate().expect("the blocks of a leaf are reserved before it is merged"),
            };
            leaves += 1;
            let mut to = (from + size).min(count);
            if to < count && entries.same_key(&self.pool, to) {
                to += 1;
            }
            // The separator in front of entry `to`: as much of its key as tells it from the one before.
            let has_upper = if to < count {
                upper.clear();
                upper.extend_from_slice(shared);
                entries.copy_key(&self.pool, to - 1, &mut upper);
                let before = upper.len();
                entries.copy_key(&self.pool, to, &mut upper);
                let common = keys::common_prefix(&upper[prefix..before], &upper[before..]);
                let length = common + usize::from(!self.planted(Bug::SeparatorTooShort));
                upper.copy_within(before..before + length, prefix);
                upper.truncate(prefix + length);
                true
            } else {
                self.upper_bound_key(probes, routes, (parent, last), &mut upper)
            };
            let own = if bounded && has_upper { keys::common_prefix(&lower, &upper) } else { 0 };
            self.stats.prefix_changes += u64::from(own != prefix);
            let own = if self.planted(Bug::SplitKeepsPrefix) { prefix } else { own };
            let shift = if self.planted(Bug::SplitForgetsToShift) { 0 } else { own - prefix };
            let part = Part { from, to, carry, prefix: own, shift };
            let greatest = leaf::write(&mut self.pool, self.search, block, entries, part);
            let separator = if from == 0 { (0, 0) } else { work.separate(&[&lower]) };
            let forget = from > 0 && self.planted(Bug::SplitForgetsHalf);
            let greatest = if forget { 0 } else { greatest };
            let child = Child { block, leaf: true, greatest, oldest: greatest };
            work.made.push(Made { child, separator });
            if to == count {
                break;
            }
            if let Some(boundary) = self.search.last_with_high_bit(&entries.kinds[from..to], to - from) {
                carry = entries.stamps[from + boundary];
            }
            from = to;
            // A boundary at the separator is the carry of its leaf.
            let mut key = std::mem::take(&mut work.key);
            key.clear();
            entries.copy_key(&self.pool, from, &mut key);
            if entries.is_boundary(from) && key == upper[prefix..] {
                carry = entries.stamps[from];
                self.count(carry, -1);
                from += 1;
            }
            work.key = key;
            std::mem::swap(&mut lower, &mut upper);
            bounded = true;
            if from == count {
                // Nothing but that boundary was left.
                let separator = work.separate(&[&lower]);
                work.made.push(Made { child: Child::vacant(carry), separator });
                break;
            }
        }
        work.left = lower;
        work.right = upper;
        leaves
    }

    /// The whole key of a visited slot's lower bound, in `to`; false if it has none.
    pub(crate) fn lower_bound_key(
        &self,
        probes: &Probes<'_>,
        routes: &Routes,
        (mut parent, mut slot): (u32, u32),
        to: &mut Vec<u8>,
    ) -> bool {
        to.clear();
        while parent != NO_VISIT {
            if slot > 0 {
                self.separator_key(probes, routes, parent, slot, to);
                return true;
            }
            let visit = &routes.inner[parent as usize];
            (parent, slot) = (visit.parent, visit.slot);
        }
        false
    }

    /// The whole key of a visited slot's upper bound, in `to`; false if it has none.
    pub(crate) fn upper_bound_key(
        &self,
        probes: &Probes<'_>,
        routes: &Routes,
        (mut parent, mut slot): (u32, u32),
        to: &mut Vec<u8>,
    ) -> bool {
        to.clear();
        while parent != NO_VISIT {
            let visit = &routes.inner[parent as usize];
            if (slot as usize) + 1 < inner::node(&self.pool, visit.block).len() {
                self.separator_key(probes, routes, parent, slot + 1, to);
                return true;
            }
            (parent, slot) = (visit.parent, visit.slot);
        }
        false
    }

    fn separator_key(&self, probes: &Probes<'_>, routes: &Routes, visit: u32, slot: u32, to: &mut Vec<u8>) {
        let visit = &routes.inner[visit as usize];
        let node = inner::node(&self.pool, visit.block);
        // Every key routed to a node begins with the node's prefix.
        to.extend_from_slice(&probes.key(probes.endpoints[visit.low as usize])[..node.prefix()]);
        node.copy_separator(&self.pool, slot as usize, to);
    }

    /// How many bytes the bounds of a visited slot share.
    fn slot_prefix(
        &self,
        probes: &Probes<'_>,
        routes: &Routes,
        at: (u32, u32),
        [lower, upper]: &mut [Vec<u8>; 2],
    ) -> usize {
        if self.lower_bound_key(probes, routes, at, lower) && self.upper_bound_key(probes, routes, at, upper)
        {
            keys::common_prefix(lower, upper)
        } else {
            0
        }
    }

    /// A visited slot's leaf; a vacant slot as a leaf without entries. `bounds` is room for the slot's
    /// bounds.
    pub(crate) fn open(
        &self,
        probes: &Probes<'_>,
        routes: &Routes,
        visit: &LeafVisit,
        bounds: &mut [Vec<u8>; 2],
    ) -> LeafView<'_> {
        if visit.child.is_vacant() {
            let prefix = self.slot_prefix(probes, routes, (visit.parent, visit.slot), bounds);
            LeafView::vacant(&self.pool, prefix, visit.child.greatest)
        } else {
            leaf::view(&self.pool, visit.child.block)
        }
    }

    /// Notes what becomes of `span` slots of a visited node, or of the root: made children `first..first +
    /// count`. Where the slots stay as they are but for the child, the child is put there at once.
    #[allow(clippy::too_many_arguments)]
    pub(crate) fn note(
        &mut self,
        routes: &Routes,
        parent: u32,
        slot: u32,
        span: u32,
        first: u32,
        count: u32,
        work: &mut Work,
    ) {
        let child = work.made[first as usize].child;
        if parent == NO_VISIT {
            work.root = Some((first, count));
        } else if span == 1 && count == 1 && !child.is_vacant() {
            let block = routes.inner[parent as usize].block;
            self.pool.get_mut::<Inner>(block).set_child(slot as usize, child);
            work.touched[parent as usize] = true;
        } else {
            work.update(parent, slot, span, first, count);
        }
    }
}
