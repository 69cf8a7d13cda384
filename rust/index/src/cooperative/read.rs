//! Read tasks: the descent and the check of reads, a step at a time; and the write frontier.

use crate::batch::{EndpointKind, Probes, ReadSink};
use crate::keys;
use crate::node::inner::Child;
use crate::node::leaf::{self, Query};
use crate::planted::Bug;
use crate::read::{Check, LEAF_LINES, Looked, Reach};
use crate::route::{Descent, INNER_LINES, InnerVisit, LeafVisit, NO_VISIT, Routes};
use crate::stats::{Stats, TaskStats};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A visit that is a task's: its index among the inner visits, or among the leaves'.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Visit {
    Inner(u32),
    Leaf(u32),
}

/// What a task does when it is visited next.
#[derive(Clone, Copy, Debug)]
enum State {
    InspectNode(Visit),
    CompareKeys(u32),
    CompareLeafKey(u32),
    KeyMore(u32),
    ScanLeaf(u32),
    ScanRight(Wide),
}

/// A read that reaches past its leaf: the part to look at next, and the other edge, if it waits.
#[derive(Clone, Copy, Debug)]
struct Wide {
    range: u32,
    limit: u32,
    next: Reach,
    waits: Option<Reach>,
}

/// How a step ends.
enum Step {
    /// The next state's data are there.
    Chain(State),
    /// The next state's data have been hinted.
    Yield(State),
    Done,
}

/// The scheduler of read tasks.
pub(crate) struct ReadTasks {
    /// G.
    most: usize,
    resident: Vec<Option<State>>,
    /// Records of `resident` without a task.
    free: Vec<u32>,
    /// Tasks that are not resident yet, by the begin of their slices.
    pending: BinaryHeap<Reverse<(u32, Visit)>>,
    /// Wide reads that are resident or done.
    wide: usize,
    /// The level of every inner visit; the root's is 0.
    levels: Vec<u32>,
    frontier: Frontier,
    order: Order,
}

/// What the tasks of one batch share.
struct Shared<'a, 'b, S> {
    descent: &'a Descent<'a, 'b>,
    check: &'a Check<'a, 'b>,
    sink: &'a mut S,
    routes: &'a mut Routes,
    stats: &'a mut Stats,
    tasks: &'a mut TaskStats,
}

impl ReadTasks {
    pub(crate) fn new(most: usize) -> ReadTasks {
        ReadTasks {
            most,
            resident: vec![None; most],
            free: Vec::with_capacity(most),
            pending: BinaryHeap::new(),
            wide: 0,
            levels: Vec::new(),
            frontier: Frontier::default(),
            order: Order::default(),
        }
    }

    /// Routes endpoints `low..high` from the root and decides their reads; the routes are left as the writes
    /// need them: every inner visit, and the leaves where a write has an endpoint.
    pub(crate) fn run(
        &mut self,
        (descent, check): (&Descent<'_, '_>, &Check<'_, '_>),
        (low, high): (u32, u32),
        sink: &mut impl ReadSink,
        routes: &mut Routes,
        stats: &mut Stats,
        tasks: &mut TaskStats,
    ) {
        self.free.clear();
        self.free.extend((0..self.most as u32).rev());
        self.wide = 0;
        self.levels.clear();
        self.frontier.start(low, descent.planted.has(Bug::FrontierOutOfOrder));
        descent.start(check.root, (low, high), sink, routes, stats);
        let mut shared = Shared { descent, check, sink, routes, stats, tasks };
        if let Some(root) = self.discover((0, 0), &mut shared) {
            self.pending.push(Reverse((low, root)));
        }
        self.admit(&mut shared);
        while self.free.len() < self.most {
            for at in 0..self.most {
                if let Some(state) = self.resident[at].take() {
                    shared.tasks.task_visits += 1;
                    self.resident[at] = self.visit(state, &mut shared);
                    if self.resident[at].is_none() {
                        self.free.push(at as u32);
                    }
                }
            }
            self.admit(&mut shared);
        }
        stats.inner_visits += routes.inner.len() as u64;
        self.frontier.finish(routes);
        self.order.restore(&self.levels, routes);
    }

    /// Lets a task go on until it has to wait, or is done.
    fn visit<S: ReadSink>(&mut self, mut state: State, shared: &mut Shared<'_, '_, S>) -> Option<State> {
        loop {
            match self.step(state, shared) {
                Step::Chain(next) => state = next,
                Step::Yield(next) => {
                    shared.tasks.task_yields += 1;
                    return Some(next);
                }
                Step::Done => return None,
            }
            shared.tasks.chained_steps += 1;
        }
    }

    fn step<S: ReadSink>(&mut self, state: State, shared: &mut Shared<'_, '_, S>) -> Step {
        match state {
            State::InspectNode(Visit::Inner(visit)) => Step::Chain(State::CompareKeys(visit)),
            State::InspectNode(Visit::Leaf(ticket)) => {
                self.frontier.arrive(ticket, shared);
                Step::Chain(State::CompareLeafKey(ticket))
            }
            State::CompareKeys(visit) => {
                let before = (shared.routes.inner.len(), shared.routes.leaves.len());
                let Shared { descent, sink, routes, stats, .. } = shared;
                descent.partition(visit as usize, &**sink, routes, stats);
                match self.discover(before, shared) {
                    Some(first) => {
                        shared.hint(first);
                        Step::Yield(State::InspectNode(first))
                    }
                    None => Step::Done,
                }
            }
            State::CompareLeafKey(ticket) => match shared.hint_tails(ticket) {
                false => Step::Chain(State::ScanLeaf(ticket)),
                true => Step::Yield(State::KeyMore(ticket)),
            },
            State::KeyMore(ticket) => Step::Chain(State::ScanLeaf(ticket)),
            State::ScanLeaf(ticket) => {
                shared.scan(ticket);
                Step::Done
            }
            State::ScanRight(wide) => {
                if shared.sink.limit(wide.range) == u32::MAX {
                    return Step::Done;
                }
                match shared.check.look(wide.next, wide.limit, shared.stats) {
                    Looked::Decided(true) => shared.conflict(wide.range),
                    Looked::Decided(false) => shared.next_part([wide.waits, None], &wide),
                    // A read's edges part once, so that at most one of them waits.
                    Looked::Below([first, None]) => shared.next_part([first, wide.waits], &wide),
                    Looked::Below(parts) => {
                        debug_assert!(wide.waits.is_none() || parts[0].is_none());
                        shared.next_part([parts[0].or(wide.waits), parts[1]], &wide)
                    }
                }
            }
        }
    }

    /// Makes tasks of the visits noted since there were so many. The first in key order is returned, the
    /// others wait for the end of the round. A leaf none of whose reads has to be looked at is no task: its
    /// destination is known, and its reads are pruned at once.
    fn discover<S: ReadSink>(
        &mut self,
        (inner, leaves): (usize, usize),
        shared: &mut Shared<'_, '_, S>,
    ) -> Option<Visit> {
        for at in inner..shared.routes.inner.len() {
            let parent = shared.routes.inner[at].parent;
            let level = if parent == NO_VISIT { 0 } else { self.levels[parent as usize] + 1 };
            self.levels.push(level);
        }
        let mut first: Option<(u32, Visit)> = None;
        let mut found = |low: u32, visit: Visit| {
            let later = match first {
                Some((least, _)) if least < low => Some((low, visit)),
                _ => first.replace((low, visit)),
            };
            self.pending.extend(later.map(Reverse));
        };
        for at in inner as u32..shared.routes.inner.len() as u32 {
            found(shared.routes.inner[at as usize].low, Visit::Inner(at));
        }
        for ticket in leaves as u32..shared.routes.leaves.len() as u32 {
            let leaf = shared.routes.leaves[ticket as usize];
            if shared.is_read(&leaf) {
                found(leaf.low, Visit::Leaf(ticket));
            } else {
                shared.scan(ticket);
                self.frontier.arrive(ticket, shared);
            }
        }
        first.map(|(_, visit)| visit)
    }

    /// Fills free records at the end of a round: slices by their begins, then wide reads.
    fn admit<S: ReadSink>(&mut self, shared: &mut Shared<'_, '_, S>) {
        while let Some(&record) = self.free.last() {
            let state = if let Some(Reverse((_, visit))) = self.pending.pop() {
                shared.hint(visit);
                State::InspectNode(visit)
            } else if let Some(&position) = shared.routes.wide.get(self.wide) {
                self.wide += 1;
                match shared.start_wide(position) {
                    Step::Yield(state) => state,
                    _ => continue,
                }
            } else {
                break;
            };
            self.free.pop();
            self.resident[record as usize] = Some(state);
        }
    }
}

impl<S: ReadSink> Shared<'_, '_, S> {
    /// Hints what the first look at a visit's node touches.
    fn hint(&mut self, visit: Visit) {
        let (block, lines) = match visit {
            Visit::Inner(at) => (self.routes.inner[at as usize].block, INNER_LINES),
            Visit::Leaf(at) => (self.routes.leaves[at as usize].child.block, LEAF_LINES),
        };
        if !block.is_none() {
            self.tasks.hints += 1;
            self.check.pool.prefetch(block, 0..lines);
        }
    }

    /// The reads that begin in a leaf's slice and may meet something newer there.
    fn reads(&self, leaf: &LeafVisit) -> impl Iterator<Item = u32> {
        let (probes, greatest) = (self.check.probes, leaf.child.greatest);
        let sink = &*self.sink;
        (leaf.low..leaf.high).filter(move |&position| {
            let endpoint = probes.endpoints[position as usize];
            endpoint.kind() == EndpointKind::ReadBegin && sink.limit(endpoint.range()) < greatest
        })
    }

    /// Decides, prunes or notes as wide the reads that begin in a leaf's slice.
    fn scan(&mut self, ticket: u32) {
        let Shared { check, sink, routes, stats, .. } = self;
        check.leaf(&routes.leaves[ticket as usize], &mut routes.wide, *sink, stats);
    }

    fn is_read(&self, leaf: &LeafVisit) -> bool {
        self.reads(leaf).next().is_some()
    }

    /// Hints the tails that the reads of a leaf's slice are compared with first; whether there are any.
    fn hint_tails(&mut self, ticket: u32) -> bool {
        let leaf = self.routes.leaves[ticket as usize];
        if leaf.child.is_vacant() {
            return false;
        }
        let Check { pool, search, probes, .. } = *self.check;
        let view = leaf::view(pool, leaf.child.block);
        if view.tails.is_empty() {
            return false;
        }
        let mut hints = 0;
        for position in self.reads(&leaf) {
            if let Some(tail) = view.first_tail(search, &Query::new(probes, position, view.prefix)) {
                keys::prefetch_tail(pool, tail);
                hints += 1;
            }
        }
        self.tasks.hints += hints;
        hints > 0
    }

    /// The task of a read that reaches past the child it begins in.
    fn start_wide(&mut self, position: u32) -> Step {
        let range = self.check.probes.endpoints[position as usize].range();
        let limit = self.sink.limit(range);
        if limit == u32::MAX {
            return Step::Done;
        }
        let end = self.check.probes.ends[range as usize];
        let whole = Reach { child: self.check.root, begin: Some(position), end: Some(end) };
        self.next_part([Some(whole), None], &Wide { range, limit, next: whole, waits: None })
    }

    /// Goes on with the first part of a read that a look at its node is needed for, which is hinted.
    fn next_part(&mut self, parts: [Option<Reach>; 2], wide: &Wide) -> Step {
        let mut left = parts.into_iter().flatten();
        while let Some(next) = left.next() {
            match next.known(wide.limit, self.stats) {
                Some(true) => return self.conflict(wide.range),
                Some(false) => {}
                None => {
                    let Child { block, leaf, .. } = next.child;
                    self.tasks.hints += 1;
                    self.check.pool.prefetch(block, 0..if leaf { LEAF_LINES } else { INNER_LINES });
                    return Step::Yield(State::ScanRight(Wide { next, waits: left.next(), ..*wide }));
                }
            }
        }
        Step::Done
    }

    fn conflict(&mut self, range: u32) -> Step {
        self.sink.conflict(range);
        Step::Done
    }
}

/// Puts destinations, which become known in any order, into the order of begins.
#[derive(Default)]
struct Frontier {
    /// Known destinations behind one that is not: the begin of each slice, and its ticket in the arrival
    /// buffer, which are the routes' leaves as they were found.
    arrived: BinaryHeap<Reverse<(u32, u32)>>,
    /// No write endpoint before this one is without its destination.
    next: u32,
    emitted: Vec<LeafVisit>,
    /// The planted bug: destinations go on as they come.
    out_of_order: bool,
}

impl Frontier {
    fn start(&mut self, low: u32, out_of_order: bool) {
        self.arrived.clear();
        self.emitted.clear();
        self.next = low;
        self.out_of_order = out_of_order;
    }

    /// A slice has found its leaf.
    fn arrive<S>(&mut self, ticket: u32, shared: &mut Shared<'_, '_, S>) {
        let visit = shared.routes.leaves[ticket as usize];
        let endpoints = shared.check.probes.endpoints;
        if !endpoints[visit.low as usize..visit.high as usize].iter().any(|endpoint| endpoint.is_write()) {
            return;
        }
        self.arrived.push(Reverse((visit.low, ticket)));
        let before = self.emitted.len();
        self.advance(shared.check.probes, &shared.routes.leaves);
        shared.tasks.frontier_stalls += u64::from(self.emitted.len() == before);
    }

    /// Emits what has no unknown destination before it.
    fn advance(&mut self, probes: &Probes<'_>, leaves: &[LeafVisit]) {
        while let Some(&Reverse((low, ticket))) = self.arrived.peek() {
            let unknown = probes.endpoints[self.next as usize..low.max(self.next) as usize]
                .iter()
                .position(|endpoint| endpoint.is_write());
            if let Some(unknown) = unknown
                && !self.out_of_order
            {
                self.next += unknown as u32;
                return;
            }
            self.arrived.pop();
            let visit = leaves[ticket as usize];
            self.next = visit.high;
            self.emitted.push(visit);
        }
    }

    /// The emitted destinations become the routes' leaves.
    fn finish(&mut self, routes: &mut Routes) {
        debug_assert!(self.arrived.is_empty(), "every destination has been emitted");
        std::mem::swap(&mut routes.leaves, &mut self.emitted);
    }
}

/// Puts inner visits into the order of the level-by-level descent: what the writes do to inner nodes, they do
/// in this order.
#[derive(Default)]
struct Order {
    /// Level and slice of each visit, and where it stands.
    by_level: Vec<(u32, u32, u32)>,
    /// Where each visit goes.
    places: Vec<u32>,
    visits: Vec<InnerVisit>,
}

impl Order {
    fn restore(&mut self, levels: &[u32], routes: &mut Routes) {
        let visits = routes.inner.iter().zip(levels).zip(0..);
        self.by_level.clear();
        self.by_level.extend(visits.map(|((visit, &level), at)| (level, visit.low, at)));
        if self.by_level.is_sorted() {
            return;
        }
        self.by_level.sort_unstable();
        self.places.clear();
        self.places.resize(self.by_level.len(), 0);
        for (place, &(_, _, at)) in (0..).zip(&self.by_level) {
            self.places[at as usize] = place;
        }
        let moved = |parent: u32| if parent == NO_VISIT { NO_VISIT } else { self.places[parent as usize] };
        self.visits.clear();
        self.visits.extend(self.by_level.iter().map(|&(_, _, at)| {
            let visit = routes.inner[at as usize];
            InnerVisit { parent: moved(visit.parent), ..visit }
        }));
        for visit in &mut routes.leaves {
            visit.parent = moved(visit.parent);
        }
        std::mem::swap(&mut routes.inner, &mut self.visits);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{Endpoint, Write};
    use crate::config::{Config, Strategy, Tasks};
    use crate::pool::Backing;
    use crate::route::NoReads;
    use crate::tree::Tree;
    use resolver_types::{KeyRange, Version};

    /// So many that there are inner nodes on three levels.
    const KEYS: u64 = 900_000;

    /// Batches of single keys, the numbers from 0 in steps of so many, and the endpoints as a batch has them.
    fn write(tree: &mut Tree, step: usize, version: i64) {
        let keys: Vec<[u8; 8]> = (0..KEYS).step_by(step).map(u64::to_be_bytes).collect();
        let ranges: Vec<KeyRange<'_>> = keys.iter().map(|key| KeyRange { begin: key, end: key }).collect();
        let endpoints: Vec<Endpoint> = (0..)
            .zip(&keys)
            .map(|(at, key)| Endpoint::new(key, 0, EndpointKind::WriteBegin, at).into_point())
            .collect();
        let probes = Probes {
            endpoints: &endpoints,
            behind: &[],
            ends: &vec![0; keys.len()],
            prefix: &[],
            suffix: &[],
            ranges: &ranges,
        };
        let writes: Vec<Write> =
            (0..keys.len() as u32).map(|begin| Write { begin, end: Write::POINT }).collect();
        tree.check_reads(&probes, &mut NoReads);
        if version % 2 == 1 {
            tree.add_writes(&probes, &writes, Version(version)).expect("the budget holds them");
        }
    }

    fn tree(strategy: Strategy) -> Tree {
        let config = Config { backing: Backing::Heap, strategy, ..Config::default() };
        let mut tree = Tree::new(config).expect("the budget is enough");
        write(&mut tree, 1, 1);
        // Only looked up: as many leaves as there are, a few endpoints each.
        write(&mut tree, 50, 2);
        tree
    }

    #[test]
    fn inner_visits_and_destinations_stand_as_the_level_by_level_descent_leaves_them() {
        let expected = tree(Strategy::Pipelined).routes;
        assert!(expected.inner.len() > 100, "many more nodes than tasks");
        for reads in [1, 2, 16, 64] {
            let tree = tree(Strategy::Cooperative(Tasks { reads, ..Tasks::default() }));
            let tasks = tree.task_stats().expect("the tree has tasks");
            assert!(tasks.frontier_stalls > 0 || reads != 2, "destinations come out of order");
            let inner = |visit: &InnerVisit| (visit.block, visit.parent, visit.slot, visit.low, visit.high);
            let leaf = |visit: &LeafVisit| (visit.child, visit.parent, visit.slot, visit.low, visit.high);
            assert!(tree.routes.inner.iter().map(inner).eq(expected.inner.iter().map(inner)), "{reads}");
            assert!(tree.routes.leaves.iter().map(leaf).eq(expected.leaves.iter().map(leaf)), "{reads}");
        }
    }
}
