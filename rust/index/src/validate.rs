//! The checker: every numbered invariant of the crate's front page, over the whole tree. For tests and
//! fuzzing; it allocates, and takes time linear in the history.

use crate::keys::{self, LONG, Tail};
use crate::layout::{INNER, Node, SLOTS};
use crate::node::inner::{self, Child};
use crate::node::leaf::{self, LeafView};
use crate::pool::BlockId;
use crate::tree::Tree;
use std::collections::HashMap;

/// A broken invariant: its number on the crate's front page, and what was found.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invariant {number}: {found}")]
pub struct Broken {
    /// The invariant's number.
    pub number: u32,
    /// What was found, where.
    pub found: String,
}

macro_rules! require {
    ($number:literal, $condition:expr, $($found:tt)+) => {
        if !$condition {
            return Err(Broken { number: $number, found: format!($($found)+) });
        }
    };
}

/// The shape of a tree, as the checker walked it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shape {
    /// Levels from the root to the deepest leaf; 0 for a tree without nodes.
    pub height: u32,
    /// Inner nodes.
    pub inner_nodes: u64,
    /// Leaves.
    pub leaves: u64,
    /// Vacant slots.
    pub vacant_slots: u64,
    /// Entries of leaves, gaps and dead ones included.
    pub entries: u64,
    /// Of these, points.
    pub points: u64,
    /// Of the leaves, those that have tails.
    pub long_leaves: u64,
}

/// A routing range: bounds as whole keys.
#[derive(Clone, Copy)]
struct Bounds<'a> {
    lower: Option<&'a [u8]>,
    upper: Option<&'a [u8]>,
}

impl Bounds<'_> {
    fn prefix(&self) -> usize {
        match (self.lower, self.upper) {
            (Some(lower), Some(upper)) => keys::common_prefix(lower, upper),
            _ => 0,
        }
    }
}

/// What the walk collects.
#[derive(Default)]
struct Walk {
    owned: HashMap<u32, &'static str>,
    /// Entries by stamp.
    entries: HashMap<u32, u64>,
    shape: Shape,
}

impl Walk {
    fn own(&mut self, block: BlockId, owner: &'static str) -> Result<(), Broken> {
        let before = self.owned.insert(block.0, owner);
        require!(
            9,
            before.is_none(),
            "block {} belongs to {owner} and to {}",
            block.0,
            before.unwrap_or_default()
        );
        Ok(())
    }
}

/// What the parent of a child must say of it.
struct Truth {
    /// The greatest stamp of any key, as far as it has not expired.
    greatest: u32,
    oldest: u32,
}

impl Tree {
    /// Checks every numbered invariant.
    ///
    /// # Errors
    /// The first one found broken.
    pub fn validate(&self) -> Result<Shape, Broken> {
        let mut walk = Walk::default();
        self.walk(self.root, Bounds { lower: None, upper: None }, &mut walk, 0)?;
        let shape = walk.shape;
        self.check_condemned(&mut walk)?;
        self.check_log(&mut walk)?;
        self.check_versions(&walk)?;
        for block in self.versions.block_ids() {
            walk.own(block, "the version table")?;
        }
        if let Err(found) = self.pool.validate_free_list() {
            return Err(Broken { number: 9, found });
        }
        for block in self.pool.free_ids() {
            walk.own(block, "the free list")?;
        }
        let committed = self.pool.committed_blocks();
        let owned = walk.owned.len() as u64;
        require!(9, owned == committed, "{committed} blocks are committed, {owned} of them have an owner");
        require!(
            10,
            self.peak_memory_bytes() <= self.most_bytes && self.budget_bytes() <= self.most_bytes,
            "{} bytes were held, {} may be, under a budget of {}",
            self.peak_memory_bytes(),
            self.budget_bytes(),
            self.most_bytes
        );
        Ok(shape)
    }

    fn walk(&self, child: Child, bounds: Bounds<'_>, walk: &mut Walk, depth: u32) -> Result<Truth, Broken> {
        if let (Some(lower), Some(upper)) = (bounds.lower, bounds.upper) {
            require!(2, lower < upper, "the routing range from {lower:?} to {upper:?} is empty");
        }
        if child.is_vacant() {
            walk.shape.vacant_slots += 1;
            require!(
                1,
                child.greatest < self.versions.next(),
                "a vacant slot has stamp {}, which was not given yet",
                child.greatest
            );
            require!(7, child.oldest == u32::MAX, "a vacant slot has an oldest leaf");
            return Ok(Truth { greatest: self.live(child.greatest), oldest: u32::MAX });
        }
        walk.own(child.block, "the tree")?;
        let header = &self.pool.get::<Node>(child.block).header;
        require!(
            8,
            child.leaf == (header.kind != INNER),
            "a slot has block {} for what it is not",
            child.block.0
        );
        let prefix = usize::from(header.prefix);
        require!(
            3,
            prefix == bounds.prefix(),
            "block {} drops {prefix} bytes where its bounds share {}",
            child.block.0,
            bounds.prefix()
        );
        walk.shape.height = walk.shape.height.max(depth + 1);
        if child.leaf {
            let shared = &bounds.lower.unwrap_or_default()[..prefix];
            return self.check_leaf(child, shared, bounds, walk);
        }
        walk.shape.inner_nodes += 1;
        let node = inner::node(&self.pool, child.block);
        require!(8, (1..=SLOTS).contains(&node.len()), "block {} has {} slots", child.block.0, node.len());
        let mut truth = Truth { greatest: 0, oldest: u32::MAX };
        let mut lower = bounds.lower.map(<[u8]>::to_vec);
        for slot in 0..node.len() {
            let upper = if slot + 1 == node.len() {
                bounds.upper.map(<[u8]>::to_vec)
            } else {
                let mut key = bounds.lower.unwrap_or_default()[..prefix].to_vec();
                node.copy_separator(&self.pool, slot + 1, &mut key);
                if let Some(chain) = node.chain(slot + 1) {
                    let mut owned = Ok(());
                    chain.for_each_block(&self.pool, |block| {
                        owned = owned.clone().and(walk.own(block, "a separator"));
                    });
                    owned?;
                }
                let place = keys::load_head(&key[prefix..]);
                require!(
                    3,
                    place == node.place(slot + 1),
                    "the head of separator {} of block {}",
                    slot + 1,
                    child.block.0
                );
                Some(key)
            };
            let slot_child = node.child(slot);
            let below = Bounds { lower: lower.as_deref(), upper: upper.as_deref() };
            let found = self.walk(slot_child, below, walk, depth + 1)?;
            self.check_maximum(slot_child, &found, slot)?;
            truth.greatest = truth.greatest.max(found.greatest);
            truth.oldest = truth.oldest.min(found.oldest);
            lower = upper;
        }
        if depth == 0 {
            self.check_maximum(child, &truth, 0)?;
        }
        Ok(truth)
    }

    /// Invariant 6 and 7, of one slot.
    fn check_maximum(&self, child: Child, truth: &Truth, slot: usize) -> Result<(), Broken> {
        require!(
            6,
            self.live(child.greatest) == truth.greatest,
            "slot {slot} for block {} says {} is its greatest stamp, {} is ({} have expired)",
            child.block.0,
            child.greatest,
            truth.greatest,
            self.expired
        );
        require!(
            7,
            child.oldest == truth.oldest,
            "slot {slot} for block {} says {} is its oldest leaf's stamp, {} is",
            child.block.0,
            child.oldest,
            truth.oldest
        );
        Ok(())
    }

    fn live(&self, stamp: u32) -> u32 {
        if stamp <= self.expired { 0 } else { stamp }
    }

    fn check_leaf(
        &self,
        child: Child,
        shared: &[u8],
        bounds: Bounds<'_>,
        walk: &mut Walk,
    ) -> Result<Truth, Broken> {
        let block = child.block.0;
        let view = leaf::view(&self.pool, child.block);
        walk.shape.leaves += 1;
        walk.shape.entries += view.len() as u64;
        walk.shape.long_leaves += u64::from(!view.tails.is_empty());
        require!(8, view.len() > 0, "leaf {block} is empty");
        require!(
            1,
            view.carry < self.versions.next(),
            "leaf {block} carries stamp {}, which was not given yet",
            view.carry
        );
        let mut segment = view.carry;
        let mut greatest = self.live(view.carry);
        let mut boundaries = 0;
        let mut last: Option<(Vec<u8>, bool)> = None;
        for at in 0..view.len() {
            let stamp = view.stamps[at];
            let boundary = view.is_boundary(at);
            require!(
                1,
                stamp < self.versions.next(),
                "entry {at} of leaf {block} has stamp {stamp}, which was not given yet"
            );
            if stamp > 0 {
                *walk.entries.entry(stamp).or_default() += 1;
            }
            walk.shape.points += u64::from(!boundary);
            boundaries += usize::from(boundary);
            // What has no meaning any more may have lost its bytes.
            let dead = self.live(stamp) == 0 && (!boundary || self.live(segment) == 0);
            if boundary {
                segment = stamp;
            }
            if dead {
                continue;
            }
            greatest = greatest.max(self.live(stamp));
            let key = self.key_of(&view, at, shared, block)?;
            require!(
                2,
                bounds.lower.is_none_or(|lower| *lower <= key[..])
                    && bounds.upper.is_none_or(|upper| key[..] < *upper),
                "entry {at} of leaf {block} lies outside the leaf's range"
            );
            require!(
                4,
                !(boundary && bounds.lower == Some(&key)),
                "leaf {block} has a boundary at its lower bound"
            );
            if let Some((before, was_boundary)) = &last {
                let ordered = *before < key || *before == key && *was_boundary && !boundary;
                require!(
                    1,
                    ordered,
                    "entries {at} of leaf {block} and the one before are out of order: {before:?} {key:?}"
                );
            }
            if !boundary {
                require!(
                    5,
                    stamp > segment,
                    "the point {at} of leaf {block} has stamp {stamp}, its segment {segment}"
                );
            }
            last = Some((key, boundary));
        }
        require!(
            1,
            boundaries == view.boundaries,
            "leaf {block} counts {} boundaries of {boundaries}",
            view.boundaries
        );
        require!(
            7,
            view.greatest == child.greatest,
            "leaf {block} says {} is its greatest stamp, its slot {}",
            view.greatest,
            child.greatest
        );
        Ok(Truth { greatest, oldest: view.greatest })
    }

    /// The whole key of a live entry; invariants 3 and 11 on the way.
    fn key_of(&self, view: &LeafView<'_>, at: usize, shared: &[u8], block: u32) -> Result<Vec<u8>, Broken> {
        let tail = view.tail(at);
        let place = view.place(at);
        require!(
            3,
            (place.length == LONG) == (tail != Tail::NONE),
            "entry {at} of leaf {block}: tail and length differ"
        );
        require!(
            11,
            place.length != LONG || keys::is_current(&self.pool, tail),
            "the tail of entry {at} of leaf {block} is of a block that was given away"
        );
        let mut key = shared.to_vec();
        leaf::copy_key(&self.pool, place, tail, &mut key);
        require!(
            3,
            keys::load_head(&key[shared.len()..]) == place,
            "the head of entry {at} of leaf {block} is not its key's"
        );
        Ok(key)
    }

    fn check_condemned(&self, walk: &mut Walk) -> Result<(), Broken> {
        let mut at = self.condemned;
        while !at.is_none() {
            let header = &self.pool.get::<Node>(at).header;
            let slots = usize::from(header.condemned_slots);
            self.check_condemned_node(at, slots, walk)?;
            at = BlockId(header.next_condemned);
        }
        Ok(())
    }

    fn check_condemned_node(&self, block: BlockId, slots: usize, walk: &mut Walk) -> Result<(), Broken> {
        walk.own(block, "the condemned")?;
        if self.pool.get::<Node>(block).header.kind != INNER {
            for &stamp in leaf::view(&self.pool, block).stamps {
                if stamp > 0 {
                    *walk.entries.entry(stamp).or_default() += 1;
                }
            }
            return Ok(());
        }
        let node = inner::node(&self.pool, block);
        for slot in 1..node.len() {
            if let Some(chain) = node.chain(slot) {
                let mut owned = Ok(());
                chain.for_each_block(&self.pool, |block| {
                    owned = owned.clone().and(walk.own(block, "a condemned separator"));
                });
                owned?;
            }
        }
        for slot in 0..slots {
            let child = node.child(slot);
            if !child.is_vacant() {
                let slots = usize::from(self.pool.get::<Node>(child.block).header.count);
                self.check_condemned_node(child.block, slots, walk)?;
            }
        }
        Ok(())
    }

    fn check_log(&self, walk: &mut Walk) -> Result<(), Broken> {
        let mut last = 0;
        let mut blocks = 0;
        let mut result = Ok(());
        self.log.for_each_block(&self.pool, |block, greatest| {
            blocks += 1;
            let owned = walk.own(block, "the key log");
            if result.is_ok() {
                result = owned;
            }
            if result.is_ok() && greatest < last {
                let found = format!("key block {} has stamp {greatest}, the one before {last}", block.0);
                result = Err(Broken { number: 12, found });
            }
            last = greatest;
        });
        result?;
        require!(
            9,
            blocks == self.log.blocks(),
            "the key log counts {} blocks of {blocks}",
            self.log.blocks()
        );
        Ok(())
    }

    fn check_versions(&self, walk: &Walk) -> Result<(), Broken> {
        for stamp in self.versions.first()..self.versions.next() {
            let version = self.versions.version(&self.pool, stamp);
            require!(
                13,
                stamp == self.versions.first() || version > self.versions.version(&self.pool, stamp - 1),
                "stamp {stamp} has version {version}, not above the one before"
            );
            require!(
                13,
                (stamp <= self.expired) == self.cutoff().is_some_and(|cutoff| version <= cutoff),
                "stamp {stamp} has version {version}, the cutoff is {:?} and stamps up to {} have expired",
                self.cutoff(),
                self.expired
            );
            if stamp > self.expired {
                let found = walk.entries.get(&stamp).copied().unwrap_or_default();
                let counted = u64::from(self.versions.entries(&self.pool, stamp));
                require!(14, found == counted, "stamp {stamp} counts {counted} entries, there are {found}");
            }
        }
        let counted: u64 = walk.entries.values().sum();
        let dead: u64 =
            walk.entries.iter().filter(|&(&stamp, _)| stamp <= self.expired).map(|(_, &count)| count).sum();
        require!(
            14,
            (counted, dead) == (self.counted, self.dead),
            "{counted} entries, {dead} of them dead, are counted as {} and {}",
            self.counted,
            self.dead
        );
        Ok(())
    }
}
