//! What a batch did to the leaves, taken up by the inner nodes: from the last visited to the first, each
//! once.

use super::plan::SLOTS_TARGET;
use super::{Made, NO_UPDATE, Work};
use crate::batch::Probes;
use crate::keys;
use crate::node::inner::{self, Child, Slots};
use crate::planted::Bug;
use crate::pool::BlockId;
use crate::route::{InnerVisit, NO_VISIT, Routes};
use crate::tree::Tree;

/// A node with so few slots gives them to its parent, when the slow hand comes by.
pub(crate) const PULL_UP: usize = 8;

impl Tree {
    /// Takes all noted updates up, to the root. `stamp`: what covered slots get.
    pub(crate) fn update_inner(
        &mut self,
        probes: &Probes<'_>,
        routes: &Routes,
        stamp: u32,
        pull_up: bool,
        work: &mut Work,
    ) {
        for at in 0..work.covered.len() {
            let (visit, from, to) = work.covered[at];
            let old = self.planted(Bug::CoveredSlotsKeepOld);
            let vacant = work.make(Child::vacant(if old { 0 } else { stamp }));
            work.cover(visit, from, to - from, vacant);
        }
        // A visit's index is above its parent's.
        for at in (0..routes.inner.len() as u32).rev() {
            let updated = work.heads[at as usize] != NO_UPDATE;
            if !updated && !work.touched[at as usize] {
                continue;
            }
            let visit = routes.inner[at as usize];
            let few =
                pull_up && visit.parent != NO_VISIT && inner::node(&self.pool, visit.block).len() <= PULL_UP;
            if updated || few {
                work.gather(at);
                self.rebuild(probes, routes, visit, pull_up, work);
            } else {
                let child = self.summary(visit.block);
                let first = work.make(child);
                self.note(routes, visit.parent, visit.slot, 1, first, 1, work);
            }
        }
        if let Some((first, count)) = work.root.take() {
            self.grow_root(first, count, work);
        }
    }

    /// Puts a node's slots together anew, with its updates, and notes what becomes of the node.
    fn rebuild(
        &mut self,
        probes: &Probes<'_>,
        routes: &Routes,
        visit: InnerVisit,
        pull_up: bool,
        work: &mut Work,
    ) {
        let mut slots = std::mem::take(&mut work.slots);
        slots.clear();
        let updates = std::mem::take(&mut work.gathered);
        let mut updates_left = updates.iter().peekable();
        let (count, prefix) = {
            let node = inner::node(&self.pool, visit.block);
            (node.len(), node.prefix())
        };
        let mut slot = 0;
        while slot < count {
            let node = inner::node(&self.pool, visit.block);
            let Some(update) = updates_left.next_if(|update| update.slot as usize == slot) else {
                let mut child = node.child(slot);
                if !child.is_vacant() && child.greatest <= self.expired {
                    self.condemn(child);
                    child = Child::vacant(0);
                }
                self.push_slot(&mut slots, visit, slot, child);
                slot += 1;
                continue;
            };
            let made = update.first as usize..(update.first + update.count) as usize;
            for (at, made) in work.made[made].iter().enumerate() {
                if at == 0 {
                    self.push_slot(&mut slots, visit, slot, made.child);
                } else if !self.is_repeated_vacancy(&slots, made.child) {
                    let separator = &work.separators[made.separator.0 + prefix..made.separator.1];
                    slots.push(made.child, |to| to.extend_from_slice(separator));
                }
            }
            if update.covered {
                for gone in slot..slot + update.span as usize {
                    let child = inner::node(&self.pool, visit.block).child(gone);
                    self.condemn(child);
                }
            }
            slot += update.span as usize;
        }
        debug_assert!(updates_left.next().is_none(), "every update is taken up");
        if !self.planted(Bug::ChainsLeak) {
            self.stats.blocks_reclaimed += inner::release_chains(&mut self.pool, visit.block);
        }
        self.finish(probes, routes, visit, prefix, &slots, pull_up, work);
        work.slots = slots;
        work.gathered = updates;
    }

    /// Adds a slot of a node that is put together anew, with its own separator.
    fn push_slot(&self, slots: &mut Slots, visit: InnerVisit, slot: usize, child: Child) {
        if !self.is_repeated_vacancy(slots, child) {
            let node = inner::node(&self.pool, visit.block);
            slots.push(child, |to| {
                if slot > 0 {
                    node.copy_separator(&self.pool, slot, to);
                }
            });
        }
    }

    /// Whether a child is as vacant as the slot before it: then that one's range grows by it.
    fn is_repeated_vacancy(&self, slots: &Slots, child: Child) -> bool {
        let stamp = |child: Child| if child.greatest <= self.expired { 0 } else { child.greatest };
        child.is_vacant()
            && slots.children.last().is_some_and(|last| {
                last.is_vacant() && (stamp(*last) == stamp(child) || self.planted(Bug::VacanciesMerge))
            })
    }

    /// An inner node as its parent sees it.
    fn summary(&self, block: BlockId) -> Child {
        let mut child = inner::node(&self.pool, block).summary(self.search, block);
        if self.planted(Bug::OldestForgotten) {
            child.oldest = u32::MAX;
        }
        if self.planted(Bug::GreatestNotRaised) {
            child.greatest -= 1;
        }
        child
    }

    /// Puts a list of slots where it fits, and notes what becomes of the node that it was.
    #[allow(clippy::too_many_arguments)]
    fn finish(
        &mut self,
        probes: &Probes<'_>,
        routes: &Routes,
        visit: InnerVisit,
        prefix: usize,
        slots: &Slots,
        pull_up: bool,
        work: &mut Work,
    ) {
        let count = slots.len();
        let first = work.made.len() as u32;
        let shared = probes.key(probes.endpoints[visit.low as usize]);
        if count == 1 || pull_up && count <= PULL_UP && visit.parent != NO_VISIT {
            // The slots hang where the node hung: the same range, so nothing else changes.
            self.pool.release(visit.block);
            for slot in 0..count {
                let separator = if slot == 0 {
                    (0, 0)
                } else {
                    work.separate(&[&shared[..prefix], slots.separator(slot)])
                };
                work.made.push(Made { child: slots.children[slot], separator });
            }
        } else if slots.fit(0, count, 0) == count {
            inner::write(&mut self.pool, visit.block, slots, (0, count), prefix, 0);
            let child = self.summary(visit.block);
            work.make(child);
        } else {
            self.stats.inner_split += 1;
            let at = (visit.parent, visit.slot);
            let mut lower = std::mem::take(&mut work.left);
            let mut upper = std::mem::take(&mut work.right);
            let mut bounded = self.lower_bound_key(probes, routes, at, &mut lower);
            let size = count.div_ceil(count.div_ceil(SLOTS_TARGET));
            let mut block = visit.block;
            let mut from = 0;
            while from < count {
                let (to, shift) = slots.part(from, count.min(from + size), |to| {
                    let has_upper = if to < count {
                        upper.clear();
                        upper.extend_from_slice(&shared[..prefix]);
                        upper.extend_from_slice(slots.separator(to));
                        true
                    } else {
                        self.upper_bound_key(probes, routes, at, &mut upper)
                    };
                    let own = if bounded && has_upper { keys::common_prefix(&lower, &upper) } else { 0 };
                    own - prefix
                });
                let own = prefix + shift;
                self.stats.prefix_changes += u64::from(own != prefix);
                let separator = if from == 0 {
                    (0, 0)
                } else {
                    let start = work.separators.len();
                    work.separators.extend_from_slice(&lower);
                    block = self
                        .pool
                        .allocate()
                        .expect("the blocks of inner nodes are reserved with the leaves'");
                    (start, work.separators.len())
                };
                inner::write(&mut self.pool, block, slots, (from, to), own, shift);
                let mut child = self.summary(block);
                if from > 0 && self.planted(Bug::InnerSplitForgetsHalf) {
                    child.greatest = 0;
                }
                work.made.push(Made { child, separator });
                std::mem::swap(&mut lower, &mut upper);
                bounded = true;
                from = to;
            }
            work.left = lower;
            work.right = upper;
        }
        let made = work.made.len() as u32 - first;
        self.note(routes, visit.parent, visit.slot, 1, first, made, work);
    }

    /// Makes what the root became the root: one child, or nodes over all of them.
    fn grow_root(&mut self, first: u32, count: u32, work: &mut Work) {
        let (mut level, mut above) = (std::mem::take(&mut work.level), std::mem::take(&mut work.above));
        level.clear();
        level.extend_from_slice(&work.made[first as usize..(first + count) as usize]);
        while level.len() > 1 {
            let mut slots = std::mem::take(&mut work.slots);
            slots.clear();
            for made in &level {
                slots.push(made.child, |to| {
                    to.extend_from_slice(&work.separators[made.separator.0..made.separator.1])
                });
            }
            let count = slots.len();
            above.clear();
            let mut from = 0;
            let size = if slots.fit(0, count, 0) == count {
                count
            } else {
                count.div_ceil(count.div_ceil(SLOTS_TARGET))
            };
            while from < count {
                let (to, own) = slots.part(from, count.min(from + size), |to| match from > 0 && to < count {
                    true => keys::common_prefix(slots.separator(from), slots.separator(to)),
                    false => 0,
                });
                let block =
                    self.pool.allocate().expect("the blocks of inner nodes are reserved with the leaves'");
                inner::write(&mut self.pool, block, &slots, (from, to), own, own);
                let child = self.summary(block);
                above.push(Made { child, separator: level[from].separator });
                from = to;
            }
            work.slots = slots;
            std::mem::swap(&mut level, &mut above);
        }
        self.root = level[0].child;
        (work.level, work.above) = (level, above);
    }
}
