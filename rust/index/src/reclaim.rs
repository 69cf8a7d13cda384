//! Reclamation: the cutoff moves forward, and what lies at or below it is given back.
//!
//! Three stores hold history, each with its own order of age:
//! - *key blocks* leave in allocation order, as soon as the greatest stamp of the oldest has expired;
//! - *leaves*, and whole subtrees, leave by their greatest stamp: every slot knows the least of the greatest
//!   stamps of the leaves below it, so that the oldest is found from the root, and a subtree whose greatest
//!   stamp has expired is condemned in one piece, whatever its size, and given back block by block as blocks
//!   are asked for;
//! - *mixed leaves* are compacted when writes visit them, and by the slow hand, which goes round in key
//!   order, takes dead entries out, and joins neighbours that fit one leaf.
//!
//! When a reservation does not find its blocks, the cutoff moves to the lowest version that frees something:
//! the oldest key block's, the oldest leaf's, or a small share of what lives. Since the entries of every
//! stamp are counted, what the hand has still to collect is known, and the cutoff does not run ahead of it. A
//! batch's own version is never reached.

use crate::batch::{Endpoint, EndpointKind, Probes};
use crate::keys::{self, KeyLog, LONG, Tail};
use crate::layout::{INNER, Inner, Node, SLOTS};
use crate::node::inner::{self, Child};
use crate::node::leaf::{self, Entries, Entry};
use crate::planted::Bug;
use crate::pool::BlockId;
use crate::route::{Descent, NO_VISIT, NoReads, Routes};
use crate::tree::Tree;
use crate::write::{Transfer, Work};
use resolver_types::KeyRange;

/// Neighbours are joined when they fit fewer leaves that are filled at most this far: room for the writes to come.
const fn join_limit(capacity: usize) -> usize {
    capacity * 17 / 20
}

/// Of so many neighbours, one leaf less is made where they fit: when space is short, and when it is not.
const JOINED_WHEN_SHORT: usize = 8;
const JOINED_AT_EASE: usize = 2;

/// The hand makes a step for so many leaves that writes visited.
const LEAVES_PER_STEP: u64 = 64;

/// When space is short the hand makes so many times as many.
const HASTE: u64 = 4;

/// About one node in so many is an inner one.
const INNER_SHARE: u64 = 32;

/// The hand rests while fewer than one in so many entries are dead.
const REST_SHARE: u64 = 16;

/// When space is short, the cutoff moves over one in so many of the live stamps at a time.
const RECLAIM_SHARE: u32 = 64;

/// Stamps that the cutoff moves over after a batch at most.
const STAMPS_PER_BATCH: u32 = 64;

/// A leaf that the hand visits is compacted when one in so many of its entries is dead.
const HAND_DEAD_SHARE: usize = 8;

/// Joining is to win blocks: it stores fewer key bytes than this anew.
const MOST_JOINED_BYTES: usize = 4 * crate::pool::BLOCK_BYTES;

/// Condemned blocks given back after a batch at most, beyond those the batch's leaves account for.
const RELEASED_PER_BATCH: u64 = 64;

/// What a join works in; the memory is kept.
#[derive(Debug, Default)]
pub(crate) struct JoinRoom {
    lower: Vec<u8>,
    upper: Vec<u8>,
    separator: Vec<u8>,
    key: Vec<u8>,
    /// What one of the leaves has left.
    own: Entries,
    /// Stamps of boundaries that came where leaves met.
    added: Vec<u32>,
    /// Tails that have to be stored anew: whose entry, and where its bytes stop in `tail_bytes`.
    tails: Vec<(usize, usize)>,
    tail_bytes: Vec<u8>,
}

impl Tree {
    /// Puts a subtree on the list of what is to be given back. O(1).
    pub(crate) fn condemn(&mut self, child: Child) {
        if child.is_vacant() {
            return;
        }
        self.stats.subtrees_released += 1;
        self.push_condemned(child.block);
    }

    fn push_condemned(&mut self, block: BlockId) {
        let header = &mut self.pool.get_mut::<Node>(block).header;
        header.next_condemned = self.condemned.0;
        header.condemned_slots = if header.kind == INNER { header.count as u8 } else { 0 };
        self.condemned = block;
    }

    /// Gives back at most `limit` condemned blocks; returns how many.
    pub(crate) fn release_condemned(&mut self, limit: u64) -> u64 {
        let mut released = 0;
        while released < limit && !self.condemned.is_none() {
            let block = self.condemned;
            let header = &mut self.pool.get_mut::<Node>(block).header;
            if header.condemned_slots == 0 {
                let inner = header.kind == INNER;
                self.condemned = BlockId(header.next_condemned);
                if inner {
                    released += inner::release_chains(&mut self.pool, block);
                }
                self.release_node(block);
                released += 1;
                continue;
            }
            header.condemned_slots -= 1;
            let slot = usize::from(header.condemned_slots);
            let child = inner::node(&self.pool, block).child(slot);
            if child.leaf {
                self.release_node(child.block);
                released += 1;
            } else if !child.is_vacant() {
                self.push_condemned(child.block);
            }
        }
        self.stats.blocks_reclaimed += released;
        released
    }

    /// Gives a node's block back, and takes a leaf's entries off the count.
    fn release_node(&mut self, block: BlockId) {
        if self.pool.get::<Node>(block).header.kind != INNER {
            let mut removed = std::mem::take(&mut self.removed);
            removed.clear();
            removed.extend_from_slice(leaf::view(&self.pool, block).stamps);
            self.count_removed(&removed);
            self.removed = removed;
        }
        self.pool.release(block);
    }

    /// Gives back the key blocks and the version blocks whose stamps have expired.
    fn release_expired(&mut self) {
        let early = u32::from(self.planted(Bug::KeyBlocksReleasedEarly));
        let released = self.log.release_expired(&mut self.pool, self.expired + early);
        self.stats.key_blocks_reclaimed += released;
        self.stats.blocks_reclaimed += released;
        self.versions.release_expired(&mut self.pool, self.expired);
    }

    /// Condemns every subtree of which the greatest stamp has expired, going down only where the oldest leaf
    /// has.
    fn release_dead(&mut self) {
        if self.root.is_vacant() || self.root.oldest > self.expired {
            return;
        }
        if self.root.greatest <= self.expired {
            self.condemn(self.root);
            self.root = Child::vacant(0);
        } else if !self.root.leaf {
            self.root = self.release_dead_below(self.root);
        }
    }

    fn release_dead_below(&mut self, node: Child) -> Child {
        for slot in 0..inner::node(&self.pool, node.block).len() {
            let child = inner::node(&self.pool, node.block).child(slot);
            if child.is_vacant() || child.oldest > self.expired {
                continue;
            }
            let left = if child.greatest <= self.expired {
                self.condemn(child);
                Child::vacant(0)
            } else if child.leaf {
                continue;
            } else {
                self.release_dead_below(child)
            };
            self.pool.get_mut::<Inner>(node.block).set_child(slot, left);
        }
        inner::node(&self.pool, node.block).summary(self.search, node.block)
    }

    /// The work of reclamation that follows a batch, bounded by what the batch did: key blocks and subtrees
    /// that have expired are given back, the slow hand moves on, and where free blocks run short the
    /// cutoff moves.
    pub fn tend(&mut self) {
        self.release_expired();
        self.release_dead();
        let leaves = self.hand_credit;
        self.release_condemned(RELEASED_PER_BATCH + leaves);
        let reserve = self.reserve();
        if self.pool.available() < reserve {
            self.advance_for(reserve);
            self.release_expired();
            self.release_dead();
        }
        let short = self.pool.available() < reserve;
        let mut steps = self.hand_credit / LEAVES_PER_STEP;
        self.hand_credit %= LEAVES_PER_STEP;
        if short {
            steps = HASTE * steps + 2;
        } else if self.dead * REST_SHARE < self.counted {
            steps = 0;
        }
        for _ in 0..steps {
            let round = !self.hand_step(if short { 1 } else { HAND_DEAD_SHARE });
            if short && round {
                self.uncollectable = self.beyond_need();
            }
            if short && self.pool.available() >= reserve {
                break;
            }
            if short && round {
                // A whole round has not sufficed: what was thought to be collectable is not.
                self.reclaim_step(self.versions.next() - 1 - u32::from(self.versions.next() > 1));
            }
        }
        self.release_condemned(RELEASED_PER_BATCH);
    }

    /// Blocks that are kept free for the next batches.
    fn reserve(&self) -> u64 {
        let blocks = self.pool.budget_bytes() / crate::pool::BLOCK_BYTES as u64;
        (blocks / 64 + self.recent_need).min(blocks / 4)
    }

    /// Blocks that the hand could still collect: what its last whole round has left behind is left behind
    /// again.
    fn collectable(&self) -> u64 {
        self.beyond_need().saturating_sub(self.uncollectable)
    }

    /// Blocks of nodes beyond what the live entries take in leaves three quarters full.
    fn beyond_need(&self) -> u64 {
        // Where much of what is used are key blocks, most leaves have tails.
        let long = self.log.blocks() * 4 > self.pool.used_blocks();
        let nodes = self.pool.used_blocks() - self.log.blocks() - self.versions.blocks();
        let leaves = nodes - nodes / INNER_SHARE;
        leaves.saturating_sub((self.counted - self.dead) / (leaf::capacity(long) as u64 * 3 / 4))
    }

    /// Moves the cutoff, a stamp at a time, until what is free and what the hand can collect make up
    /// `reserve` blocks.
    fn advance_for(&mut self, reserve: u64) {
        let newest = self.versions.next() - 1;
        for _ in 0..STAMPS_PER_BATCH {
            let next = (self.expired + 1).max(self.versions.first());
            if self.pool.available() + self.collectable() >= reserve
                || next >= newest + u32::from(self.planted(Bug::CutoffReachesBatch))
            {
                break;
            }
            self.reclaim_to(next);
            self.release_expired();
        }
    }

    /// Moves the cutoff to a stamp, for space.
    fn reclaim_to(&mut self, stamp: u32) {
        if stamp > self.expired && stamp >= self.versions.first() {
            self.stats.reclamations += 1;
            let version = self.versions.version(&self.pool, stamp);
            self.expire(version, true);
        }
    }

    /// Moves the cutoff by one small share of what lives, at most to `newest`, and gives back what can be
    /// found at once.
    pub(crate) fn reclaim_step(&mut self, newest: u32) {
        self.unroute();
        let first = (self.expired + 1).max(self.versions.first());
        let step = (newest - self.expired.min(newest)) / RECLAIM_SHARE;
        let by_age = first + step;
        // What the oldest key block and the oldest leaf wait for, where that is sooner.
        let heads = [self.log.oldest_stamp(&self.pool).unwrap_or(u32::MAX), self.root.oldest];
        let to = heads.into_iter().filter(|&head| head > self.expired).fold(by_age, u32::min);
        self.reclaim_to(to.min(newest));
        self.release_expired();
        self.release_dead();
    }

    /// Reclaims until `needed` blocks are free; stamps from `before` on stay. False when there is nothing
    /// left to reclaim.
    pub(crate) fn make_room(&mut self, needed: u64, before: u32) -> bool {
        loop {
            if self.can_have(needed) {
                return true;
            }
            let missing = needed.saturating_sub(self.pool.available());
            if self.release_condemned(missing.max(1)) > 0 {
                continue;
            }
            self.release_expired();
            self.release_dead();
            if self.can_have(needed) || !self.condemned.is_none() {
                continue;
            }
            // One round of the hand collects what is dead by now.
            if self.sweep(needed) {
                continue;
            }
            if self.expired + 1 >= before {
                return false;
            }
            self.reclaim_step(before - 1);
        }
    }

    /// Whether so many blocks can be allocated: the budget allows them, and the operating system does not refuse
    /// the address space.
    pub(crate) fn can_have(&mut self, blocks: u64) -> bool {
        self.pool.available() >= blocks && self.pool.secure(blocks)
    }

    /// Lets the hand go round until `needed` blocks can be had; false when a whole round frees nothing.
    fn sweep(&mut self, needed: u64) -> bool {
        let before = self.pool.available();
        self.hand.clear();
        loop {
            let more = self.hand_step(1);
            self.release_condemned(u64::MAX);
            if !more {
                self.uncollectable = self.beyond_need();
            }
            if self.can_have(needed) || !more {
                return self.pool.available() > before;
            }
        }
    }

    /// One step of the slow hand: from where it stands, the leaves side by side under one node. Dead entries
    /// go where at least one in `share` is dead, neighbours that fit one leaf are joined, a node with few
    /// slots gives them to its parent. False when it has come round.
    pub(crate) fn hand_step(&mut self, share: usize) -> bool {
        if self.root.is_vacant() {
            self.hand.clear();
            return false;
        }
        self.stats.hand_steps += 1;
        let key = std::mem::take(&mut self.hand);
        let mut next = std::mem::take(&mut self.next_hand);
        next.clear();
        let ranges = [KeyRange { begin: &key, end: &key }];
        let endpoints = [Endpoint::new(&key, 0, EndpointKind::WriteBegin, 0).into_point()];
        let probes = Probes {
            endpoints: &endpoints,
            behind: &[],
            ends: &[0],
            prefix: &[],
            suffix: &[],
            ranges: &ranges,
        };
        let mut routes = std::mem::take(&mut self.hand_routes);
        let mut work = std::mem::take(&mut self.hand_work);
        self.unroute();
        let mut stats = self.stats;
        let descent = Descent {
            pool: &self.pool,
            search: self.search,
            planted: self.planted,
            probes: &probes,
            for_writes: true,
            for_reads: false,
        };
        descent.run(self.root, (0, 1), &NoReads, &mut routes, &mut stats);
        self.stats.routing_head_comparisons = stats.routing_head_comparisons;
        self.stats.routing_byte_comparisons = stats.routing_byte_comparisons;
        work.start(routes.inner.len());
        work.covered.clear();
        let visit = routes.leaves[0];
        let more = if visit.parent == NO_VISIT {
            self.tidy(&probes, &routes, NO_VISIT, (0, 1), share, &mut work);
            false
        } else {
            let node = inner::node(&self.pool, routes.inner[visit.parent as usize].block);
            let from = visit.slot as usize;
            let to = (from..node.len())
                .find(|&slot| !node.child(slot).leaf && !node.child(slot).is_vacant())
                .unwrap_or(node.len());
            let above = &routes.inner[visit.parent as usize];
            let from_above = self.planted(Bug::HandSkipsNodes) && above.parent != NO_VISIT;
            let behind =
                if from_above { (above.parent, above.slot + 1) } else { (visit.parent, to as u32 - 1) };
            let more = self.upper_bound_key(&probes, &routes, behind, &mut next);
            self.tidy(&probes, &routes, visit.parent, (from, to), share, &mut work);
            more
        };
        // Slots that move up can split every node above, and stand behind shorter prefixes there.
        let room =
            2 * routes.inner.len() as u64 + 8 + 2 * SLOTS as u64 * inner::chain_blocks_at_most(self.longest);
        let pull_up = self.pool.available() > room && self.pool.secure(room);
        self.update_inner(&probes, &routes, 0, pull_up, &mut work);
        self.hand_routes = routes;
        self.hand_work = work;
        self.hand = next;
        self.next_hand = key;
        more
    }

    /// What hangs in a slot of a visited node, or in the root.
    fn child_at(&self, routes: &Routes, parent: u32, slot: usize) -> Child {
        match parent {
            NO_VISIT => self.root,
            parent => inner::node(&self.pool, routes.inner[parent as usize].block).child(slot),
        }
    }

    /// Compacts and joins the leaves in slots `from..to` of a visited node.
    fn tidy(
        &mut self,
        probes: &Probes<'_>,
        routes: &Routes,
        parent: u32,
        (from, to): (usize, usize),
        share: usize,
        work: &mut Work,
    ) {
        let mut found = std::mem::take(&mut work.found);
        found.clear();
        for slot in from..to {
            let child = self.child_at(routes, parent, slot);
            found.push(if child.is_vacant() { Found::default() } else { self.look_at(child) });
        }
        let window = if share == 1 { JOINED_WHEN_SHORT } else { JOINED_AT_EASE };
        let mut slot = from;
        while slot < to {
            let here = found[slot - from];
            if here.entries == 0 {
                slot += 1;
                continue;
            }
            if let Some((last, leaves)) = worth_joining(&found[slot - from..], window)
                && self.join(probes, routes, parent, (slot, slot + last), leaves, work)
            {
                slot += last + 1;
                continue;
            }
            if here.dead > 0 && here.dead * share >= here.entries {
                let child = self.child_at(routes, parent, slot);
                self.compact(routes, parent, slot, child, work);
            }
            slot += 1;
        }
        work.found = found;
    }

    /// What the hand has to know of a leaf.
    fn look_at(&self, child: Child) -> Found {
        let view = leaf::view(&self.pool, child.block);
        Found {
            entries: view.len(),
            dead: view.dead(self.search, self.expired),
            long: !view.tails.is_empty(),
        }
    }

    /// Takes the dead entries of one leaf out of its block.
    fn compact(&mut self, routes: &Routes, parent: u32, slot: usize, child: Child, work: &mut Work) {
        let mut removed = std::mem::take(&mut self.removed);
        removed.clear();
        leaf::compact(&mut self.pool, child.block, self.expired, &mut removed);
        self.stats.leaves_compacted += 1;
        self.count_removed(&removed);
        self.removed = removed;
        let left = leaf::view(&self.pool, child.block);
        if left.len() == 0 {
            let vacant = work.make(Child::vacant(left.carry));
            self.pool.release(child.block);
            self.note(routes, parent, slot as u32, 1, vacant, 1, work);
        }
    }

    /// Whether a leaf's heads, behind the shorter prefix, would push bytes into tails.
    fn loses_head_bytes(&self, child: Child, prefix: usize) -> bool {
        if child.is_vacant() {
            return false;
        }
        let view = leaf::view(&self.pool, child.block);
        let shift = view.prefix - prefix;
        shift > 0 && (0..view.len()).any(|at| usize::from(view.length(at)) + shift > 8)
    }

    /// Makes `leaves` leaves of those in slots `first..=last`, at least two of them, without their dead entries.
    /// False, and nothing changed, when that would take more key blocks than can be spared, or more room than
    /// the leaves have.
    fn join(
        &mut self,
        probes: &Probes<'_>,
        routes: &Routes,
        parent: u32,
        (first, last): (usize, usize),
        leaves: usize,
        work: &mut Work,
    ) -> bool {
        let mut room = std::mem::take(&mut self.join_room);
        let JoinRoom { lower, upper, separator, key, own, added, tails, tail_bytes } = &mut room;
        let bounded = self.lower_bound_key(probes, routes, (parent, first as u32), lower)
            & self.upper_bound_key(probes, routes, (parent, last as u32), upper);
        let prefix = if bounded { keys::common_prefix(lower, upper) } else { 0 };
        // Several leaves have longer prefixes again: tails that were stored for this one would be lost.
        if leaves > 1
            && (first..=last).any(|slot| self.loses_head_bytes(self.child_at(routes, parent, slot), prefix))
        {
            self.join_room = room;
            return false;
        }
        let mut entries = std::mem::take(&mut work.entries);
        let mut removed = std::mem::take(&mut self.removed);
        entries.clear();
        removed.clear();
        let mut segment = 0;
        added.clear();
        tails.clear();
        tail_bytes.clear();
        let mut fits = true;
        for slot in first..=last {
            let child = self.child_at(routes, parent, slot);
            let view = match child.is_vacant() {
                true => leaf::LeafView::vacant(&self.pool, prefix, child.greatest),
                false => leaf::view(&self.pool, child.block),
            };
            own.clear();
            let carry = if view.carry <= self.expired { 0 } else { view.carry };
            if slot == first {
                entries.carry = carry;
            } else if carry != segment && !self.planted(Bug::JoinLosesCarry) {
                // The segment changes at the separator: a boundary.
                self.lower_bound_key(probes, routes, (parent, slot as u32), separator);
                let place = keys::load_head(&separator[prefix..]);
                if place.length == LONG {
                    tail_bytes.extend_from_slice(&separator[prefix + 8..]);
                    tails.push((entries.len(), tail_bytes.len()));
                }
                entries.push(Entry { place, boundary: true, stamp: carry, tail: Tail::NONE });
                added.push(carry);
            }
            let mut transfer =
                Transfer { expired: self.expired, entries: own, segment: carry, removed: &mut removed };
            let from = view.prefix;
            transfer.take(self.search, &view);
            segment = transfer.segment;
            if from == prefix || own.len() == 0 {
                for at in 0..own.len() {
                    entries.push(own.entry(at));
                }
                continue;
            }
            // The prefix gets shorter: what it gives up goes in front of the heads, and pushes bytes into the
            // tails.
            let shared = match slot {
                slot if slot > first => {
                    self.lower_bound_key(probes, routes, (parent, slot as u32), separator);
                    &separator[prefix..from]
                }
                _ => {
                    self.upper_bound_key(probes, routes, (parent, slot as u32), separator);
                    &separator[prefix..from]
                }
            };
            for at in 0..own.len() {
                let (place, tail) = (own.place(at), own.tail(at));
                key.clear();
                key.extend_from_slice(shared);
                let longer = place.length == LONG || usize::from(place.length) + shared.len() > 8;
                if longer {
                    leaf::copy_key(&self.pool, place, tail, key);
                    tail_bytes.extend_from_slice(&key[8..]);
                    tails.push((entries.len(), tail_bytes.len()));
                } else {
                    key.extend_from_slice(&place.head.to_be_bytes()[..usize::from(place.length)]);
                }
                entries.push(Entry { place: keys::load_head(key), tail: Tail::NONE, ..own.entry(at) });
            }
        }
        let long = !tails.is_empty() || !entries.tails.is_empty();
        fits &= entries.len() <= leaves * join_limit(leaf::capacity(long));
        // Joining is to win blocks: at most what it wins, and a little, goes into new key bytes.
        let blocks = if tails.is_empty() { 0 } else { KeyLog::blocks_for(tail_bytes.len() as u64) + 1 };
        fits &= blocks == 0 || self.can_have(blocks + 1) && tail_bytes.len() < MOST_JOINED_BYTES;
        if fits {
            let unstamped = self.planted(Bug::JoinedTailsUnstamped);
            let newest = if unstamped { 0 } else { self.versions.next() - 1 };
            let mut start = 0;
            for &(at, stop) in &*tails {
                let bytes = &tail_bytes[start..stop];
                entries.set_tail(at, self.log.append(&mut self.pool, bytes, newest, &mut self.stats));
                start = stop;
            }
            self.stats.leaves_compacted += u64::from(!removed.is_empty());
            self.stats.leaves_joined += (last - first) as u64;
            self.count_removed(&removed);
            for &stamp in &*added {
                self.count(stamp, 1);
            }
            let mut blocks = std::mem::take(&mut work.blocks);
            blocks.clear();
            blocks.extend(
                (first..=last)
                    .map(|slot| self.child_at(routes, parent, slot))
                    .filter(|child| !child.is_vacant())
                    .map(|child| child.block),
            );
            let made = work.made.len() as u32;
            let used = if entries.len() == 0 {
                work.make(Child::vacant(entries.carry));
                0
            } else {
                let size = entries.len().div_ceil(leaves);
                let slots = (parent, first as u32, last as u32);
                self.spread(probes, routes, slots, &entries, (&lower[..prefix], size), &blocks, work)
            };
            for &block in &blocks[used..] {
                self.pool.release(block);
            }
            work.blocks = blocks;
            let count = work.made.len() as u32 - made;
            self.note(routes, parent, first as u32, (last - first + 1) as u32, made, count, work);
        }
        self.removed = removed;
        self.join_room = room;
        work.entries = entries;
        fits
    }

    /// Renumbers all stamps: the first in the version table becomes 1, and what is older, all of it expired,
    /// 0.
    pub(crate) fn renumber(&mut self) {
        if !self.planted(Bug::RenumberKeepsRoutes) {
            self.unroute();
        }
        self.stats.renumberings += 1;
        let shift = self.versions.renumber();
        self.expired = self.expired.saturating_sub(shift);
        if !self.planted(Bug::RenumberForgetsLog) {
            self.log.renumber(&mut self.pool, shift);
        }
        (self.counted, self.dead) = (0, 0);
        let forget = self.planted(Bug::RenumberForgetsCondemned);
        let mut condemned = if forget { BlockId::NONE } else { self.condemned };
        while !condemned.is_none() {
            let header = &self.pool.get::<Node>(condemned).header;
            let (next, slots) = (BlockId(header.next_condemned), usize::from(header.condemned_slots));
            self.renumber_node(condemned, slots, shift);
            condemned = next;
        }
        self.root = self.renumber_child(self.root, shift);
    }

    fn renumber_child(&mut self, mut child: Child, shift: u32) -> Child {
        child.greatest = child.greatest.saturating_sub(shift);
        if child.oldest != u32::MAX {
            child.oldest = child.oldest.saturating_sub(shift);
        }
        if !child.is_vacant() {
            let slots = usize::from(self.pool.get::<Node>(child.block).header.count);
            self.renumber_node(child.block, slots, shift);
        }
        child
    }

    /// Renumbers a node, an inner one with its first `slots` slots, and counts the entries below.
    fn renumber_node(&mut self, block: BlockId, slots: usize, shift: u32) {
        if self.pool.get::<Node>(block).header.kind == INNER {
            for slot in 0..slots {
                let child = inner::node(&self.pool, block).child(slot);
                let child = self.renumber_child(child, shift);
                self.pool.get_mut::<Inner>(block).set_child(slot, child);
            }
            return;
        }
        leaf::renumber(&mut self.pool, block, shift);
        for &stamp in leaf::view(&self.pool, block).stamps {
            self.counted += u64::from(stamp > 0);
            self.dead += u64::from(stamp > 0 && stamp <= self.expired);
        }
    }
}

/// What the hand finds in a slot; nothing, where it is vacant.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Found {
    entries: usize,
    dead: usize,
    long: bool,
}

/// How far from the first slot on leaves fit fewer leaves: the last of them, and how many it takes. At most `window` leaves are
/// looked at for the first that can be saved, and as many more as take none.
fn worth_joining(found: &[Found], window: usize) -> Option<(usize, usize)> {
    let mut worth = None;
    let (mut live, mut leaves, mut long) = (0, 0, false);
    for (at, slot) in found.iter().enumerate() {
        // Each separator may have to become a boundary.
        live += slot.entries - slot.dead + 1;
        if slot.entries == 0 {
            continue;
        }
        leaves += 1;
        long |= slot.long;
        let needed = live.div_ceil(join_limit(leaf::capacity(long))).max(1);
        match worth {
            Some((_, before)) if needed > before => break,
            None if needed >= leaves && leaves == window => break,
            None if needed >= leaves => {}
            _ => worth = Some((at, needed)),
        }
    }
    worth
}
