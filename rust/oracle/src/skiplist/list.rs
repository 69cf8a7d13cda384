//! The skip list: for every key, the version of the last write that covered it.
//!
//! A node holds from its key up to the next node's key; both ends of a written range are nodes. A node stands on the
//! levels below its height, and on each of them knows the greatest version up to the next node there, so that a search
//! can accept or descend. The head is a node before all keys, on every level; its key is never compared.
//!
//! 1. On every level the keys ascend, and a node on a level stands on all levels below it.
//! 2. A version on a level is at least every version that its span holds on the level below. It exceeds them only if
//!    it is below what the list was last told to expire.
//!
//! Every node that is linked from the head is alive: nodes are made in [`List::insert_after`] and at creation, released in
//! [`List::cut`], [`List::expire`] and on drop, always after they are unlinked on every level, and everything that holds a
//! node across a release says why it is another one. That is what the SAFETY lines below call *linked*.
#![allow(unsafe_code)]

use super::combine::Unions;
use super::node::{Node, Nodes};
use super::random::Heights;
use resolver_types::{KeyRange, Version};
use std::mem::MaybeUninit;

/// How many levels there are. Level 0 holds every node.
pub(super) const LEVELS: usize = 26;

/// How many reads are searched for at a time, so that their cache misses overlap.
const LANES: usize = 16;

/// How many ends of written ranges are searched for at a time.
const STRIPE: usize = 16;
const _: () = assert!(STRIPE.is_multiple_of(2), "both ends of a range stand in one stripe");

/// A read range to check.
#[derive(Clone, Copy, Debug)]
pub(super) struct Read<'k> {
    pub(super) range: KeyRange<'k>,
    /// The version it was read at.
    pub(super) version: Version,
    /// The transaction, by index in the batch.
    pub(super) transaction: u32,
    /// The range's index in its transaction's reads.
    pub(super) index: u32,
}

/// A search for a key, from the top level down.
#[derive(Clone, Copy)]
struct Finger<'k> {
    /// Per finished level, the last node with a lesser key; set on the levels from `level` on.
    before: [MaybeUninit<Node>; LEVELS],
    /// The lowest finished level.
    level: usize,
    /// Where the search on the level below stands: a node with a lesser key.
    at: Node,
    /// The node that ended the search on the level above: it needs no second comparison.
    beyond: Option<Node>,
    key: &'k [u8],
}

impl<'k> Finger<'k> {
    /// A search that starts at `at`, a node on level `level - 1` with a lesser key. Levels from `level` on count as
    /// finished, and nobody asks for them.
    #[inline(always)]
    fn new(key: &'k [u8], at: Node, level: usize) -> Finger<'k> {
        Finger { before: [const { MaybeUninit::uninit() }; LEVELS], level, at, beyond: None, key }
    }

    /// Starts over for another key. Leaves alone what the search before left behind.
    #[inline(always)]
    fn restart(&mut self, key: &'k [u8], head: Node) {
        self.level = LEVELS;
        self.at = head;
        self.beyond = None;
        self.key = key;
    }

    #[inline(always)]
    fn finished(&self) -> bool {
        self.level == 0
    }

    /// The last node on `level` with a lesser key.
    ///
    /// # Safety
    /// The level was finished since the last start.
    #[inline(always)]
    unsafe fn before(&self, level: usize) -> Node {
        debug_assert!(level >= self.level, "the level is finished");
        // SAFETY: `advance` and `List::find` set the entry when the level was finished.
        unsafe { self.before[level].assume_init() }
    }

    /// Goes one node on, or finishes a level; true if it did that.
    ///
    /// # Safety
    /// The search is not finished and the list's nodes are linked as when it started.
    #[inline(always)]
    unsafe fn advance(&mut self) -> bool {
        // SAFETY: `at` is linked on the level that is searched, and so is its successor there.
        unsafe {
            let next = self.at.next(self.level - 1);
            if let Some(node) = next
                && next != self.beyond
                && node.key() < self.key
            {
                self.at = node;
                return false;
            }
            self.beyond = next;
            self.level -= 1;
            self.before[self.level].write(self.at);
            true
        }
    }

    /// Finishes the next level.
    ///
    /// # Safety
    /// As for [`advance`](Finger::advance).
    #[inline(always)]
    unsafe fn descend(&mut self) {
        // SAFETY: passed on; the level is finished by the call that says so.
        while !unsafe { self.advance() } {}
    }

    /// Asks for the node that the next step will look at.
    ///
    /// # Safety
    /// As for [`advance`](Finger::advance).
    #[inline(always)]
    unsafe fn prefetch(&self) {
        // SAFETY: `at` is linked on the level that is searched.
        if let Some(next) = unsafe { self.at.next(self.level - 1) } {
            next.prefetch();
        }
    }

    /// The first node whose key is not less, as it is linked now.
    ///
    /// # Safety
    /// The search is finished, and the node before it on level 0 is still linked.
    #[inline(always)]
    unsafe fn successor(&self) -> Option<Node> {
        // SAFETY: passed on.
        unsafe { self.before(0).next(0) }
    }
}

/// The check of one read range.
#[derive(Clone, Copy)]
struct Lane<'k> {
    begin: Finger<'k>,
    end: Finger<'k>,
    version: Version,
    /// The read, by index in the slice that is checked.
    read: usize,
}

impl<'k> Lane<'k> {
    fn new(reads: &[Read<'k>], read: usize, head: Node) -> Lane<'k> {
        let Read { range, version, .. } = reads[read];
        let (begin, end) = (Finger::new(range.begin, head, LEVELS), Finger::new(range.end, head, LEVELS));
        Lane { begin, end, version, read }
    }

    #[inline(always)]
    fn restart(&mut self, reads: &[Read<'k>], read: usize, head: Node) {
        let Read { range, version, .. } = reads[read];
        self.begin.restart(range.begin, head);
        self.end.restart(range.end, head);
        self.version = version;
        self.read = read;
    }

    /// Goes on until it would wait for memory, or to the end: then whether the range holds a greater version.
    ///
    /// As long as both ends of the range lie between the same two nodes of a level, one search serves both.
    ///
    /// A call, not inlined: it makes a step cost what one costs in FoundationDB's code (inlined, a tenth less).
    ///
    /// # Safety
    /// The check is not decided, the range is not empty, and the list did not change since the check was started.
    #[inline(never)]
    unsafe fn step(&mut self) -> Option<bool> {
        // SAFETY: the list did not change. The search for the begin is not finished: where it finishes level 0, this
        // returns a decision. Levels are asked for after they were finished.
        unsafe {
            loop {
                if !self.begin.advance() {
                    self.begin.prefetch();
                    return None;
                }
                self.end.at = self.begin.at;
                self.end.descend();
                let level = self.begin.level;
                let left = self.begin.before(level);
                if left != self.end.before(level) {
                    return Some(self.conflicts_left_of_end() || self.conflicts_right_of_begin());
                }
                if left.version(level) <= self.version {
                    return Some(false);
                }
                if level == 0 {
                    return Some(true);
                }
            }
        }
    }

    /// Whether the span that the end lies in holds a greater version left of the end; down the levels from where the
    /// ends' ways part.
    ///
    /// # Safety
    /// Both ends have finished the same level, and stand before different nodes there.
    #[inline(always)]
    unsafe fn conflicts_left_of_end(&mut self) -> bool {
        // SAFETY: nodes before the end are linked; a level is descended to only if the search is not finished.
        unsafe {
            let mut node = self.end.before(self.end.level);
            while node.version(self.end.level) > self.version {
                if self.end.finished() {
                    return true;
                }
                self.end.descend();
                let last = self.end.before(self.end.level);
                while node != last {
                    if node.version(self.end.level) > self.version {
                        return true;
                    }
                    node = node.next(self.end.level).expect("the end lies beyond");
                }
            }
            false
        }
    }

    /// Whether a greater version stands between the begin and the span that the end lies in, or right of the begin in
    /// the begin's own span.
    ///
    /// # Safety
    /// As for [`conflicts_left_of_end`](Lane::conflicts_left_of_end), but the end may have gone further down.
    #[inline(always)]
    unsafe fn conflicts_right_of_begin(&mut self) -> bool {
        // SAFETY: nodes between the begin and the end are linked, and the begin's own node stands on each level it
        // finished; a level is descended to only if the search is not finished.
        unsafe {
            let mut stop = self.end.before(self.begin.level);
            loop {
                let level = self.begin.level;
                let left = self.begin.before(level);
                let first = left.next(level).expect("a node stands between the ends");
                let mut node = first;
                while node != stop {
                    if node.version(level) > self.version {
                        return true;
                    }
                    node = node.next(level).expect("the stop stands beyond");
                }
                if left.version(level) <= self.version {
                    return false;
                }
                if self.begin.finished() {
                    return first.key() != self.begin.key;
                }
                stop = first;
                self.begin.descend();
            }
        }
    }
}

/// The skip list.
#[derive(Debug)]
pub(super) struct List {
    head: Node,
    nodes: Nodes,
    heights: Heights,
    /// Where the next call of [`List::expire`] goes on.
    resume: Vec<u8>,
}

impl List {
    /// A list that gives every key the version `base`.
    pub(super) fn new(base: Version) -> List {
        let mut nodes = Nodes::new();
        let head = nodes.create(&[], LEVELS, base);
        List { head, nodes, heights: Heights::new(), resume: Vec::new() }
    }

    /// The bytes of all nodes, in size classes, and the greatest number of them so far.
    pub(super) fn live_and_peak_bytes(&self) -> (u64, u64) {
        (self.nodes.live_bytes(), self.nodes.peak_bytes())
    }

    /// Finds every read whose range, which is not empty, holds a version greater than the read's. The order of the
    /// findings is that in which the searches end.
    pub(super) fn check(&self, reads: &[Read<'_>], mut conflicting: impl FnMut(&Read<'_>)) {
        if reads.is_empty() {
            return;
        }
        let mut started = LANES.min(reads.len());
        let mut lanes: [Lane<'_>; LANES] =
            std::array::from_fn(|lane| Lane::new(reads, lane.min(started - 1), self.head));
        // The undecided lanes form a ring: a lane's successor stands at its own index.
        let mut after: [usize; LANES] = std::array::from_fn(|lane| (lane + 1) % started);
        let mut previous = started - 1;
        let mut current = 0;
        loop {
            let lane = &mut lanes[current];
            // SAFETY: `&self` keeps the list from changing; a decided lane is restarted or leaves the ring; the caller
            // passes no empty range.
            if let Some(conflict) = unsafe { lane.step() } {
                if conflict {
                    conflicting(&reads[lane.read]);
                }
                if started < reads.len() {
                    lane.restart(reads, started, self.head);
                    started += 1;
                    previous = current;
                } else if previous == current {
                    break;
                } else {
                    after[previous] = after[current];
                }
            } else {
                previous = current;
            }
            current = after[current];
        }
    }

    /// Gives the keys of `unions` the version `version`, which is greater than every version in the list.
    pub(super) fn overlay(&mut self, unions: &Unions<'_>, version: Version) {
        let mut fingers = [Finger::new(&[], self.head, LEVELS); STRIPE];
        for stripe in unions.ranges().chunks(STRIPE / 2).rev() {
            let fingers = &mut fingers[..stripe.len() * 2];
            for (range, [begin, end]) in stripe.iter().zip(fingers.as_chunks_mut().0) {
                begin.key = range.begin;
                end.key = range.end;
            }
            self.find(fingers);
            for [begin, end] in fingers.as_chunks().0.iter().rev() {
                // SAFETY: `find` finished the fingers on this list. The stripe's later ranges released only nodes between
                // their own ends, which stand behind this range; what they inserted stands there too. Both fingers
                // stand before.
                unsafe { self.write(begin, end, version) };
            }
        }
    }

    /// Finishes the searches for the keys of `fingers`, which ascend.
    fn find(&self, fingers: &mut [Finger<'_>]) {
        let (first, rest) = fingers.split_first_mut().expect("there is something to find");
        let last = rest.last().map_or(first.key, |finger| finger.key);
        first.restart(first.key, self.head);
        // SAFETY: `&self` keeps the list from changing, so what the searches meet is linked.
        unsafe {
            // The first search alone, as long as all keys lie in the same span.
            while first.level > 1 {
                first.descend();
                if first.beyond.is_some_and(|node| node.key() < last) {
                    break;
                }
            }
            // The others go on from there: on the last level where the span was common.
            let level = first.level + 1;
            let at = if level < LEVELS { first.before(level) } else { self.head };
            for finger in rest {
                finger.level = level;
                finger.at = at;
                finger.beyond = None;
                finger.before[level..].copy_from_slice(&first.before[level..]);
            }
            let count = fingers.len();
            let mut after: [usize; STRIPE] = std::array::from_fn(|index| (index + 1) % count);
            let mut previous = count - 1;
            let mut current = 0;
            loop {
                let finger = &mut fingers[current];
                finger.advance();
                if finger.finished() {
                    if previous == current {
                        break;
                    }
                    after[previous] = after[current];
                } else {
                    finger.prefetch();
                    previous = current;
                }
                current = after[current];
            }
        }
    }

    /// Gives the keys from `begin`'s to `end`'s the version.
    ///
    /// # Safety
    /// Both searches are finished, `begin`'s key is less than `end`'s, and since then nothing changed in front of `end`'s
    /// key.
    unsafe fn write(&mut self, begin: &Finger<'_>, end: &Finger<'_>, version: Version) {
        // SAFETY: passed on. Inserting at the end and cutting up to it leave what stands before the begin alone.
        unsafe {
            if end.successor().is_none_or(|node| node.key() != end.key) {
                self.insert_after(end, end.before(0).version(0));
            }
            self.cut(begin, end);
            self.insert_after(begin, version);
        }
    }

    /// Takes out the nodes between two searches' positions: those whose keys are at least the first's key and less than
    /// the second's.
    ///
    /// # Safety
    /// As for [`write`](List::write).
    unsafe fn cut(&mut self, begin: &Finger<'_>, end: &Finger<'_>) {
        // SAFETY: the nodes before either position are linked. After the loop over the levels the nodes between them are
        // unlinked everywhere, still linked among themselves, and no finger but `end`, which is not used again, knows
        // them.
        unsafe {
            let last = end.before(0);
            if begin.before(0) == last {
                return;
            }
            let mut node = begin.successor().expect("a node stands between the positions");
            for level in 0..LEVELS {
                let (left, right) = (begin.before(level), end.before(level));
                if left != right {
                    left.set_next(level, right.next(level));
                }
            }
            loop {
                let next = node.next(0);
                self.nodes.release(node);
                if node == last {
                    break;
                }
                node = next.expect("the last node to take out stands beyond");
            }
        }
    }

    /// Puts a node for the finger's key behind its position.
    ///
    /// # Safety
    /// The search is finished, and the nodes before its position are linked.
    unsafe fn insert_after(&mut self, finger: &Finger<'_>, version: Version) {
        let height = self.heights.next();
        let node = self.nodes.create(finger.key, height, version);
        // SAFETY: the nodes before the position are linked on the levels that the finger has them for; the new one stands
        // on the levels below `height`.
        unsafe {
            for level in 0..height {
                let before = finger.before(level);
                node.set_next(level, before.next(level));
                before.set_next(level, Some(node));
            }
            for level in 1..height {
                raise_from_below(finger.before(level), level);
                raise_from_below(node, level);
            }
            for level in height..LEVELS {
                let before = finger.before(level);
                if before.version(level) >= version {
                    break;
                }
                before.set_version(level, version);
            }
        }
    }

    /// Forgets versions less than `horizon`, in at most `visits` nodes, going on where the last call stopped.
    ///
    /// A node goes if its version and that of the node visited before it are less: their keys may then be told apart no
    /// more.
    pub(super) fn expire(&mut self, horizon: Version, visits: usize) {
        let mut finger = [Finger::new(&self.resume, self.head, LEVELS)];
        self.find(&mut finger);
        let [mut finger] = finger;
        let mut kept_before = true;
        for _ in 0..visits {
            // SAFETY: the finger's nodes are linked: a node that is released was not made one of them, and is unlinked on
            // all its levels first.
            unsafe {
                let Some(node) = finger.successor() else { break };
                let height = node.height();
                if let Some(next) = node.next(0) {
                    next.prefetch_head();
                }
                if height > 1
                    && let Some(next) = node.next(1)
                {
                    next.prefetch_head();
                }
                let kept = node.version(0) >= horizon;
                if kept || kept_before {
                    for level in 0..height {
                        finger.before[level].write(node);
                    }
                } else {
                    for level in 0..height {
                        finger.before(level).set_next(level, node.next(level));
                    }
                    for level in 1..height {
                        let before = finger.before(level);
                        before.set_version(level, before.version(level).max(node.version(level)));
                    }
                    self.nodes.release(node);
                }
                kept_before = kept;
            }
        }
        // SAFETY: as above; the key is copied before anything is released.
        let resume = unsafe { finger.successor().map_or(&[][..], |node| node.key()) };
        self.resume.clear();
        self.resume.extend_from_slice(resume);
    }
}

/// Sets a node's version on a level to the greatest that its span holds on the level below.
///
/// # Safety
/// The node is linked on the level, which is not 0.
#[inline(always)]
unsafe fn raise_from_below(node: Node, level: usize) {
    // SAFETY: the node is linked, and the nodes of its span are linked on the level below.
    unsafe {
        let stop = node.next(level);
        let mut greatest = node.version(level - 1);
        let mut inner = node.next(level - 1);
        while inner != stop {
            let Some(below) = inner else { break };
            greatest = greatest.max(below.version(level - 1));
            inner = below.next(level - 1);
        }
        node.set_version(level, greatest);
    }
}

impl Drop for List {
    /// Releases the nodes that have an allocation of their own; the others go with their chunks.
    fn drop(&mut self) {
        let mut node = Some(self.head);
        while let Some(current) = node {
            // SAFETY: all nodes are linked on level 0, and each is left before it is released.
            unsafe {
                node = current.next(0);
                if Nodes::owns_allocation(current) {
                    self.nodes.release(current);
                }
            }
        }
    }
}

#[cfg(test)]
impl List {
    /// Every node of a level: its key, its height, its version there.
    pub(super) fn level(&self, level: usize) -> Vec<(Vec<u8>, usize, Version)> {
        let mut nodes = Vec::new();
        let mut node = Some(self.head);
        while let Some(current) = node {
            // SAFETY: `&self` keeps the list from changing, so the nodes are linked.
            unsafe {
                nodes.push((current.key().to_vec(), current.height(), current.version(level)));
                node = current.next(level);
            }
        }
        nodes
    }

    /// Panics if an invariant of the module's documentation is broken, or the memory count is wrong. `expired` is the
    /// horizon of the last expiry.
    pub(super) fn validate(&self, expired: Version) {
        let bottom = self.level(0);
        assert_eq!(bottom[0].1, LEVELS, "the head stands on every level");
        let sizes = bottom.iter().map(|(key, height, _)| 8 + 16 * height + key.len());
        let bytes =
            sizes.map(|size| [64, 128].into_iter().find(|&class| size <= class).unwrap_or(size) as u64);
        assert_eq!(self.nodes.live_bytes(), bytes.sum::<u64>(), "live bytes");
        let mut below = bottom;
        for level in 0..LEVELS {
            let nodes = self.level(level);
            assert!(nodes[1..].is_sorted_by(|left, right| left.0 < right.0), "level {level} ascends");
            // The level below, cut where a node stands on this one; on level 0 every node for itself.
            let mut spans = below.chunk_by(|_, right| right.1 <= level);
            for (key, height, version) in &nodes {
                let span = spans.next().expect("as many spans as nodes");
                assert_eq!((key, height), (&span[0].0, &span[0].1), "level {level} holds what stands on it");
                let greatest = span.iter().map(|node| node.2).max().expect("a span is not empty");
                let forgotten = level > 0 && *version > greatest && *version < expired;
                assert!(
                    *version == greatest || forgotten,
                    "level {level}, {key:?}: {version} over {greatest}"
                );
            }
            assert!(spans.next().is_none(), "no span without a node on level {level}");
            below = nodes;
        }
    }
}
