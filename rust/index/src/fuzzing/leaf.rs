//! Leaves: searched, edited in the block, put together anew, compacted.
//!
//! # Strategy
//! One leaf lives through inserts, removals, splits with a longer prefix, expiry and renumbering, in a block
//! and as a list of entries at once; keys are alike in their heads more often than not. The log never gives a
//! block back here, so that every tail can be followed.
//!
//! # Invariants
//! - Block, list and model hold the same entries, the same carry and as many boundaries.
//! - A search finds the first entry at or above the query; of entries that have expired it may pass some.
//! - The halves of a split hold what the whole held, their keys without the bytes that they share.
//! - Compaction takes out what has expired and changes no answer: the newest stamp of any key, as far as it
//!   has not expired, stays.

use super::ShortKey;
use crate::keys::{self, KeyLog, LONG, Tail};
use crate::layout::{LEAF_SHORT, Node};
use crate::node::leaf::{self, Change, Entries, Entry, LeafView, Part};
use crate::planted::{Bug, Planted};
use crate::pool::{Backing, BlockId, PAGE_BYTES, Pool};
use crate::search::Search;
use crate::stats::Stats;

/// One operation on a leaf.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "fuzzing", derive(arbitrary::Arbitrary))]
pub enum LeafOp {
    /// Puts an entry in, or takes the place of the one that is there.
    Insert {
        /// Its key.
        key: ShortKey,
        /// Whether it starts a segment, or is one key's.
        boundary: bool,
    },
    /// Takes entries out.
    Remove {
        /// From the first at or above this key on.
        key: ShortKey,
        /// So many.
        count: u8,
        /// Whether the newest stamp becomes the carry.
        carry: bool,
    },
    /// Looks for a key.
    Search {
        /// The key.
        key: ShortKey,
        /// Where to start, if that is before it.
        from: u8,
        /// How many stamps count as expired.
        expire: u8,
    },
    /// Writes the leaf as two, and keeps the first half.
    Split {
        /// Where.
        at: u8,
    },
    /// Expires the oldest stamps and takes out what they leave behind.
    Compact {
        /// How many stamps.
        expire: u8,
    },
    /// Takes what has expired off all stamps.
    Renumber,
    /// A new stamp for the inserts that follow.
    Stamp,
}

/// An entry of the model. They are in the order of keys; at one key the boundary stands first.
#[derive(Clone, Debug, PartialEq)]
struct Known {
    key: Vec<u8>,
    boundary: bool,
    stamp: u32,
}

struct Leaf {
    pool: Pool,
    log: KeyLog,
    stats: Stats,
    id: BlockId,
    list: Entries,
    known: Vec<Known>,
    carry: u32,
    stamp: u32,
    expired: u32,
    planted: Planted,
    checks: usize,
}

/// Runs a script; how many times something was compared with the model.
pub fn leaf(script: &[LeafOp], planted: Planted) -> usize {
    let mut pool = Pool::new(Backing::Heap, 64 * PAGE_BYTES as u64).expect("pages of heap");
    let id = pool.allocate().expect("a block");
    let mut leaf = Leaf {
        pool,
        log: KeyLog::new(),
        stats: Stats::default(),
        id,
        list: Entries::default(),
        known: Vec::new(),
        carry: 0,
        stamp: 1,
        expired: 0,
        planted,
        checks: 0,
    };
    leaf.list.clear();
    leaf.rewrite();
    for op in script {
        leaf.step(*op);
        leaf.check();
    }
    leaf.checks
}

impl Leaf {
    fn step(&mut self, op: LeafOp) {
        match op {
            LeafOp::Insert { key, boundary } => self.insert(key.bytes(), boundary),
            LeafOp::Remove { key, count, carry } => {
                let at = self.lower_bound(&key.bytes());
                let mut change = Change::at(at);
                change.remove = usize::from(count).min(self.known.len() - at);
                change.carry = carry.then_some(self.stamp);
                self.carry = change.carry.unwrap_or(self.carry);
                self.known.drain(at..at + change.remove);
                self.apply(&change);
            }
            LeafOp::Search { key, from, expire } => {
                self.search(&key.bytes(), usize::from(from), self.expired + u32::from(expire));
            }
            LeafOp::Split { at } => self.split(usize::from(at)),
            LeafOp::Compact { expire } => self.compact(u32::from(expire)),
            LeafOp::Renumber => {
                let shift = self.expired;
                leaf::renumber(&mut self.pool, self.id, shift);
                self.log.renumber(&mut self.pool, shift);
                self.known.iter_mut().for_each(|known| known.stamp = known.stamp.saturating_sub(shift));
                self.carry = self.carry.saturating_sub(shift);
                (self.stamp, self.expired) = (self.stamp - shift, 0);
                self.rebuild_list();
            }
            LeafOp::Stamp => self.stamp += 1,
        }
    }

    /// The first entry of the model at or above a key.
    fn lower_bound(&self, key: &[u8]) -> usize {
        self.known.partition_point(|known| known.key[..] < *key)
    }

    fn insert(&mut self, key: Vec<u8>, boundary: bool) {
        let long = key.len() > 8;
        if self.known.len() >= leaf::capacity(long || !self.list.tails.is_empty()) {
            return;
        }
        let needed = KeyLog::blocks_for(key.len() as u64);
        if self.pool.available() < needed {
            return;
        }
        let tail = if long {
            self.log.append(&mut self.pool, &key[8..], self.stamp, &mut self.stats)
        } else {
            Tail::NONE
        };
        let mut at = self.lower_bound(&key);
        if !boundary && self.known.get(at).is_some_and(|known| known.key == key && known.boundary) {
            at += 1;
        }
        let replaces = self.known.get(at).is_some_and(|known| known.key == key && known.boundary == boundary);
        let mut change = Change::at(at);
        change.remove = usize::from(replaces);
        change.insert(Entry { place: keys::load_head(&key), boundary, stamp: self.stamp, tail });
        self.known.splice(at..at + change.remove, [Known { key, boundary, stamp: self.stamp }]);
        self.apply(&change);
    }

    /// Makes a change in the list and, where the block takes it, in the block.
    fn apply(&mut self, change: &Change) {
        self.list.splice(change);
        let header = self.pool.get::<Node>(self.id).header;
        let long = !self.list.tails.is_empty();
        let count = usize::from(header.count) + change.inserted() - change.remove;
        if count > leaf::capacity(header.kind != LEAF_SHORT) || (header.kind == LEAF_SHORT && long) {
            self.rewrite();
        } else {
            leaf::splice(&mut self.pool, self.id, change, self.stamp);
        }
    }

    /// Writes the list into the block.
    fn rewrite(&mut self) {
        let whole = self.list.whole(0);
        let greatest = leaf::write(&mut self.pool, Search::detect(), self.id, &self.list, whole);
        assert_eq!(greatest, self.known.iter().map(|known| known.stamp).fold(self.carry, u32::max));
    }

    /// Makes the list anew from what stands in the block.
    fn rebuild_list(&mut self) {
        self.list.clear();
        let view = leaf::view(&self.pool, self.id);
        self.list.carry = view.carry;
        (0..view.len()).for_each(|at| self.list.push(view.entry(at)));
    }

    fn search(&mut self, key: &[u8], from: usize, expired: u32) {
        let expected = self.lower_bound(key);
        let view = leaf::view(&self.pool, self.id);
        for search in [Search::scalar(), Search::detect()] {
            let mut find = |from, expired| {
                super::asked(key, |query| view.lower_bound(search, query, from, expired, &mut self.stats))
            };
            let (at, found) = find(from.min(expected), 0);
            let is_there = self.known.get(expected).is_some_and(|known| known.key == key);
            assert_eq!((at, found), (expected, is_there), "{key:?}");
            // What has expired may be passed; nothing else may.
            let (at, found) = find(0, expired);
            let lives = |at: usize| {
                let known = &self.known[at];
                let segment = self.known[..at].iter().rfind(|known| known.boundary);
                let ends = segment.map_or(self.carry, |known| known.stamp);
                known.stamp > expired || known.boundary && ends > expired
            };
            assert!(self.known[at..].iter().all(|known| known.key[..] >= *key));
            assert!((expected..at).all(|at| !lives(at)), "a live entry is passed");
            assert!(!found || self.known[at].key == key);
            let segment = self.known[..expected].iter().rfind(|known| known.boundary);
            let expected = segment.map_or(self.carry, |known| known.stamp);
            assert_eq!(view.segment_before(search, self.lower_bound(key)), expected);
            let gone = |known: &&Known| known.stamp <= expired && known.stamp > 0;
            let dead = if expired == 0 { 0 } else { self.known.iter().filter(gone).count() };
            assert_eq!(view.dead(search, expired), dead);
        }
        self.checks += 1;
    }

    fn split(&mut self, at: usize) {
        if self.known.len() < 2 {
            return;
        }
        let at = 1 + at % (self.known.len() - 1);
        let (head, tail) = self.known.split_at(at);
        let shared = |part: &[Known]| keys::common_prefix(&part[0].key, &part[part.len() - 1].key);
        for (part, from, to) in [(head, 0, at), (tail, at, self.known.len())] {
            let shift = shared(part);
            let other = self.pool.allocate().expect("a block for the half");
            let planted = self.planted.has(Bug::SplitForgetsToShift);
            let told = if planted { 0 } else { shift };
            let part_of = Part { from, to, carry: self.carry, prefix: shift, shift: told };
            let greatest = leaf::write(&mut self.pool, Search::scalar(), other, &self.list, part_of);
            assert_eq!(greatest, part.iter().map(|known| known.stamp).fold(self.carry, u32::max));
            let view = leaf::view(&self.pool, other);
            assert_eq!((view.prefix, view.greatest), (shift, greatest));
            compare(&view, part, shift);
            self.pool.release(other);
        }
        // The first half goes on.
        let mut change = Change::at(at);
        change.remove = self.known.len() - at;
        self.known.truncate(at);
        self.apply(&change);
        self.rebuild_list();
        self.rewrite();
        self.checks += 1;
    }

    fn compact(&mut self, expire: u32) {
        self.expired = (self.expired + expire).min(self.stamp - 1);
        let expired = self.expired;
        let live = |stamp: u32| if stamp <= expired { 0 } else { stamp };
        let keys: Vec<Vec<u8>> = self.known.iter().map(|known| known.key.clone()).collect();
        let answers = |known: &[Known], carry: u32| -> Vec<u32> {
            keys.iter().map(|key| live(newest(known, carry, key))).collect()
        };
        let before = answers(&self.known, self.carry);
        let mut removed = Vec::new();
        leaf::compact(&mut self.pool, self.id, expired, &mut removed);
        let view = leaf::view(&self.pool, self.id);
        let (mut left, mut copy) = (Vec::new(), Vec::new());
        for at in 0..view.len() {
            copy.clear();
            leaf::copy_key(&self.pool, view.place(at), view.tail(at), &mut copy);
            let (boundary, stamp) = (view.is_boundary(at), view.stamps[at]);
            assert!(stamp > expired || boundary && stamp == 0, "an expired entry stays");
            left.push(Known { key: copy.clone(), boundary, stamp });
        }
        let stamped = |known: &[Known]| {
            let mut stamps: Vec<u32> =
                known.iter().map(|known| known.stamp).filter(|&stamp| stamp > 0).collect();
            stamps.sort_unstable();
            stamps
        };
        let (all, kept) = (stamped(&self.known), stamped(&left));
        let mut counted = [kept, removed.into_iter().filter(|&stamp| stamp > 0).collect()].concat();
        counted.sort_unstable();
        assert_eq!(counted, all, "what went and what stays is what there was");
        self.carry = view.carry;
        assert!(self.carry == 0 || self.carry > expired);
        assert_eq!(answers(&left, self.carry), before, "compaction changes an answer");
        self.known = left;
        self.rebuild_list();
        self.checks += 1;
    }

    /// Compares block and list with the model.
    fn check(&mut self) {
        let view = leaf::view(&self.pool, self.id);
        compare(&view, &self.known, 0);
        assert_eq!(view.carry, self.carry);
        let list = self.list.view(&self.pool, 0);
        compare(&list, &self.known, 0);
        assert_eq!(list.carry, self.carry);
        let pairs = 1..self.known.len();
        for at in pairs {
            let same = self.known[at - 1].key == self.known[at].key;
            assert_eq!(self.list.same_key(&self.pool, at), same);
        }
    }
}

/// The newest stamp that a key has.
fn newest(known: &[Known], carry: u32, key: &[u8]) -> u32 {
    let segment = known.iter().rfind(|known| known.boundary && known.key[..] <= *key);
    let point = known.iter().find(|known| !known.boundary && known.key == key);
    segment.map_or(carry, |known| known.stamp).max(point.map_or(0, |known| known.stamp))
}

/// Compares a leaf with the model's entries, whose keys have `shift` bytes more in front.
fn compare(view: &LeafView<'_>, known: &[Known], shift: usize) {
    assert_eq!(view.len(), known.len());
    assert_eq!(view.boundaries, known.iter().filter(|known| known.boundary).count());
    let mut copy = Vec::new();
    for (at, known) in known.iter().enumerate() {
        let entry = view.entry(at);
        assert_eq!((entry.boundary, entry.stamp), (known.boundary, known.stamp), "entry {at}");
        assert_eq!(entry.tail == Tail::NONE, entry.place.length != LONG, "entry {at}");
        copy.clear();
        leaf::copy_key(view.pool, entry.place, entry.tail, &mut copy);
        assert_eq!(copy, known.key[shift..], "entry {at}");
    }
}
