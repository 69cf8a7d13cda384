//! Write tasks: scouts that look up where writes begin, ahead of the one writer.

use crate::batch::Probes;
use crate::keys::{self, LONG};
use crate::node::leaf::{self, Change, Query};
use crate::planted::{Bug, Planted};
use crate::pool::{BlockId, Pool};
use crate::route::Routes;
use crate::search::Search;
use crate::stats::{Stats, TaskStats};
use crate::write::Work;

/// Who tells the writer where a piece begins in its leaf, and is told what the writer does.
pub(crate) trait Finder {
    /// The writer comes to the next leaf of the plan.
    fn open(&mut self, leaf: u32);
    /// It has compacted the leaf.
    fn compacted(&mut self);
    /// It has taken the leaf's entries out of their block, to write them anew.
    fn taken_apart(&mut self);
    /// What a search for an endpoint in the leaf would find, where that is known.
    fn find(&mut self, position: u32, pool: &Pool) -> Option<(usize, bool)>;
    /// It has written a piece, which ends before the endpoint `end` if it ends in the leaf.
    fn written(&mut self, pool: &Pool, end: Option<u32>, change: &Change, stats: &mut Stats);
}

/// A writer without tasks.
pub(crate) struct Alone;

impl Finder for Alone {
    #[inline(always)]
    fn open(&mut self, _: u32) {}

    #[inline(always)]
    fn compacted(&mut self) {}

    #[inline(always)]
    fn taken_apart(&mut self) {}

    #[inline(always)]
    fn find(&mut self, _: u32, _: &Pool) -> Option<(usize, bool)> {
        None
    }

    #[inline(always)]
    fn written(&mut self, _: &Pool, _: Option<u32>, _: &Change, _: &mut Stats) {}
}

/// A piece that begins in a leaf, as the frontier and the plan hand it on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Destination {
    /// Its leaf's place in the plan.
    leaf: u32,
    block: BlockId,
    /// The endpoint that it begins at.
    begin: u32,
}

/// What a task does when it is visited next.
#[derive(Clone, Copy, Debug)]
enum State {
    Inspect,
    Search,
    KeyMore,
    SearchReady(Saved),
    Parked,
}

/// What a task has found, and of which state of the leaf that holds.
#[derive(Clone, Copy, Debug)]
struct Saved {
    rank: usize,
    exact: bool,
    seen: Mutations,
}

/// What the writer has done to the leaf at which it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Mutations {
    compactions: u32,
    pieces: u32,
    /// How far the entries behind the last piece have moved.
    moved: isize,
}

/// The leaf at which the writer is: the representative of all destinations there.
#[derive(Clone, Copy, Debug, Default)]
struct Anchor {
    leaf: u32,
    mutations: Mutations,
    taken_apart: bool,
    /// Where the last piece ended in the leaf.
    end: Option<u32>,
}

/// The scheduler of write tasks.
pub(crate) struct WriteTasks {
    groups: usize,
    group_size: usize,
    /// Destination `n` is the task at `n` modulo their number.
    tasks: Vec<State>,
    destinations: Vec<Destination>,
    /// The destination whose piece the writer writes next; the group that it is in is the oldest.
    turn: usize,
    /// Destinations before this one have tasks.
    filled: usize,
    /// Whether the writer is at the destination whose turn it is.
    is_writing: bool,
    anchor: Anchor,
    /// The tree's mutations and expired stamps when the tasks started, if nothing has been written since.
    started: Option<(u64, u32)>,
}

impl WriteTasks {
    pub(crate) fn new(groups: usize, group_size: usize) -> WriteTasks {
        WriteTasks {
            groups,
            group_size,
            tasks: vec![State::Parked; groups * group_size],
            destinations: Vec::new(),
            turn: 0,
            filled: 0,
            is_writing: false,
            anchor: Anchor::default(),
            started: None,
        }
    }

    /// The tasks' destinations no longer hold, or all of them are written.
    pub(crate) fn stop(&mut self) {
        self.started = None;
    }
}

/// The write tasks at work on one batch.
pub(crate) struct Scouts<'a, 'b> {
    pub(crate) tasks: &'a mut WriteTasks,
    pub(crate) counts: &'a mut TaskStats,
    pub(crate) probes: &'a Probes<'b>,
    pub(crate) search: Search,
    /// Stamps up to this one have expired.
    pub(crate) expired: u32,
    pub(crate) planted: Planted,
}

/// Visits that bring a task to `SearchReady`: one for each state that waits.
const VISITS_TO_READY: usize = 3;

impl Scouts<'_, '_> {
    /// Takes over the destinations of assigned pieces, before room is reserved for them. Tasks that stand at the
    /// same destinations already are kept, if the tree has not changed since: `mutations` tells.
    pub(crate) fn start(
        &mut self,
        pool: &Pool,
        routes: &Routes,
        work: &Work,
        mutations: u64,
        stats: &mut Stats,
    ) {
        let tasks = &mut *self.tasks;
        tasks.destinations.clear();
        for (leaf, plan) in (0..).zip(&work.leaves) {
            let child = routes.leaves[plan.visit as usize].child;
            if !child.is_vacant() {
                let pieces = &work.pieces[plan.first as usize..plan.last as usize];
                let begins = pieces.iter().filter_map(|piece| piece.begin);
                tasks.destinations.extend(begins.map(|begin| Destination {
                    leaf,
                    block: child.block,
                    begin,
                }));
            }
        }
        let now = Some((mutations, self.expired));
        if std::mem::replace(&mut tasks.started, now) == now {
            // The same writes, or the first of them.
            tasks.filled = tasks.filled.min(tasks.destinations.len());
            return;
        }
        tasks.turn = 0;
        tasks.filled = 0;
        tasks.anchor = Anchor { leaf: u32::MAX, ..Anchor::default() };
        self.fill(pool);
        for _ in 0..VISITS_TO_READY {
            self.round(pool, stats);
        }
    }

    /// Gives every group from the oldest on its tasks.
    fn fill(&mut self, pool: &Pool) {
        let tasks = &mut *self.tasks;
        let oldest = tasks.turn - tasks.turn % tasks.group_size;
        let stop = (oldest + tasks.groups * tasks.group_size).min(tasks.destinations.len());
        for at in tasks.filled..stop {
            let slot = at % tasks.tasks.len();
            tasks.tasks[slot] = State::Inspect;
            if tasks.is_first_of_leaf(at) {
                self.counts.hints += 1;
                pool.prefetch(tasks.destinations[at].block, 0..1);
            }
        }
        tasks.filled = tasks.filled.max(stop);
    }

    /// Visits every task that may run, but the oldest, which is the writer.
    fn round(&mut self, pool: &Pool, stats: &mut Stats) {
        let WriteTasks { group_size, turn, filled, .. } = *self.tasks;
        let written = turn % group_size;
        let runnable = if 2 * written >= group_size { 2 * group_size } else { group_size };
        for at in turn + 1..(turn - written + runnable).min(filled) {
            let slot = at % self.tasks.tasks.len();
            let state = self.tasks.tasks[slot];
            if matches!(state, State::SearchReady(_) | State::Parked) {
                continue;
            }
            self.counts.task_visits += 1;
            self.tasks.tasks[slot] = self.visit(at, state, pool, stats);
        }
    }

    fn visit(&mut self, at: usize, state: State, pool: &Pool, stats: &mut Stats) -> State {
        let Destination { leaf, block, begin } = self.tasks.destinations[at];
        let Anchor { leaf: current, taken_apart, mutations, .. } = self.tasks.anchor;
        if leaf == current && taken_apart && !self.planted.has(Bug::RankOutlivesSplit) {
            return State::Parked;
        }
        match state {
            State::Inspect => {
                if self.tasks.is_first_of_leaf(at) {
                    self.counts.hints += 1;
                    leaf::prefetch(pool, block);
                }
                self.counts.task_yields += 1;
                State::Search
            }
            State::Search | State::KeyMore => {
                let view = leaf::view(pool, block);
                let begin = Query::new(self.probes, begin, view.prefix);
                if matches!(state, State::Search)
                    && let Some(tail) = view.first_tail(self.search, &begin)
                {
                    keys::prefetch_tail(pool, tail);
                    self.counts.hints += 1;
                    self.counts.task_yields += 1;
                    return State::KeyMore;
                }
                let (rank, exact) = view.lower_bound(self.search, &begin, 0, self.expired, stats);
                self.counts.chained_steps += 1;
                self.counts.parked_writes += 1;
                let seen = if leaf == current { mutations } else { Mutations::default() };
                State::SearchReady(Saved { rank, exact, seen })
            }
            State::SearchReady(_) | State::Parked => unreachable!("parked tasks are not visited"),
        }
    }

    /// What a parked task has saved, as far as it still holds at its turn.
    fn validated(&mut self, saved: Saved, pool: &Pool) -> Option<(usize, bool)> {
        let Saved { rank, exact, seen } = saved;
        let Anchor { mutations, taken_apart, end, .. } = self.tasks.anchor;
        let Destination { block, begin, .. } = self.tasks.destinations[self.tasks.turn];
        let holds = (!taken_apart || self.planted.has(Bug::RankOutlivesSplit))
            && (seen.compactions == mutations.compactions || self.planted.has(Bug::RankOutlivesCompaction));
        if holds && (seen.pieces == mutations.pieces || self.planted.has(Bug::RankOutlivesEdit)) {
            return Some((rank, exact));
        }
        if holds {
            let endpoints = self.probes.endpoints;
            let touches =
                end.is_some_and(|end| endpoints[end as usize].head() == endpoints[begin as usize].head());
            let place = self.probes.place(begin, leaf::view(pool, block).prefix);
            if !touches && place.length != LONG {
                self.counts.moved_writes += 1;
                return Some((rank.strict_add_signed(mutations.moved - seen.moved), exact));
            }
        }
        self.counts.redirected_writes += 1;
        None
    }
}

impl WriteTasks {
    /// Whether no destination before this one is in its leaf.
    fn is_first_of_leaf(&self, at: usize) -> bool {
        at == 0 || self.destinations[at - 1].leaf != self.destinations[at].leaf
    }
}

impl Finder for Scouts<'_, '_> {
    fn open(&mut self, leaf: u32) {
        self.tasks.stop();
        self.tasks.anchor = Anchor { leaf, ..Anchor::default() };
    }

    fn compacted(&mut self) {
        self.tasks.anchor.mutations.compactions += 1;
    }

    fn taken_apart(&mut self) {
        self.tasks.anchor.taken_apart = true;
    }

    fn find(&mut self, position: u32, pool: &Pool) -> Option<(usize, bool)> {
        let destination = self.tasks.destinations.get(self.tasks.turn);
        if destination.is_none_or(|destination| destination.begin != position) {
            // A piece in a vacant slot: there is nothing to search.
            return None;
        }
        self.tasks.is_writing = true;
        match self.tasks.tasks[self.tasks.turn % self.tasks.tasks.len()] {
            State::SearchReady(saved) => self.validated(saved, pool),
            _ => {
                self.counts.unready_writes += 1;
                None
            }
        }
    }

    fn written(&mut self, pool: &Pool, end: Option<u32>, change: &Change, stats: &mut Stats) {
        let anchor = &mut self.tasks.anchor;
        anchor.mutations.pieces += 1;
        anchor.mutations.moved += change.inserted() as isize - change.remove as isize;
        anchor.end = end;
        if std::mem::take(&mut self.tasks.is_writing) {
            self.tasks.turn += 1;
            if self.tasks.turn.is_multiple_of(self.tasks.group_size) {
                self.fill(pool);
            }
        }
        self.round(pool, stats);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::{Endpoint, EndpointKind, Write};
    use crate::node::inner::Child;
    use crate::pool::Backing;
    use crate::route::{Descent, NoReads};
    use crate::stats::TaskStats;
    use crate::tree::Tree;
    use crate::{Config, Strategy};
    use resolver_types::{KeyRange, Version};

    /// Reclamation between the start of the tasks and the writer's turn: what they have found is of leaves that may be
    /// other ones by now.
    #[test]
    fn tasks_start_again_when_the_tree_or_the_cutoff_has_changed() {
        let keys: Vec<[u8; 8]> = (0..8_u64).map(u64::to_be_bytes).collect();
        let ranges: Vec<KeyRange<'_>> = keys.iter().map(|key| KeyRange { begin: key, end: key }).collect();
        let endpoints: Vec<Endpoint> = (0..)
            .zip(&keys)
            .map(|(at, key)| Endpoint::new(key, 0, EndpointKind::WriteBegin, at).into_point())
            .collect();
        let probes = Probes {
            endpoints: &endpoints,
            behind: &[],
            ends: &[0; 8],
            prefix: &[],
            suffix: &[],
            ranges: &ranges,
        };
        let writes: Vec<Write> = (0..8).map(|begin| Write { begin, end: Write::POINT }).collect();
        let config = Config { backing: Backing::Heap, strategy: Strategy::Pipelined, ..Config::default() };
        let mut tree = Tree::new(config).expect("the budget is enough");
        tree.check_reads(&probes, &mut NoReads);
        tree.add_writes(&probes, &writes, Version(1)).expect("the budget holds them");

        let mut routes = Routes::default();
        let mut stats = Stats::default();
        let descent = Descent {
            pool: &tree.pool,
            search: tree.search,
            planted: tree.planted,
            probes: &probes,
            for_writes: true,
            for_reads: false,
        };
        descent.run(tree.root, (0, 8), &NoReads, &mut routes, &mut stats);
        let mut work = Work::default();
        tree.assign(&probes, &writes, &routes, &mut work);
        let mut tasks = WriteTasks::new(1, 8);
        let mut counts = TaskStats::default();
        let mut parked = |routes: &Routes, mutations, expired| {
            let mut scouts = Scouts {
                tasks: &mut tasks,
                counts: &mut counts,
                probes: &probes,
                search: tree.search,
                expired,
                planted: tree.planted,
            };
            scouts.start(&tree.pool, routes, &work, mutations, &mut stats);
            counts.parked_writes
        };
        // All but the writer itself search ahead.
        assert_eq!(parked(&routes, 0, 0), 7);
        assert_eq!(parked(&routes, 0, 0), 7, "kept");
        assert_eq!(parked(&routes, 1, 0), 14, "the tree has changed");
        assert_eq!(parked(&routes, 1, 1), 21, "the cutoff has moved");
        // The leaf has died for the reservation: nothing is left to search, and the old block is not looked at.
        routes.leaves[0].child = Child::vacant(0);
        assert_eq!(parked(&routes, 2, 1), 21);
        assert!(tasks.destinations.is_empty() && tasks.filled == 0);
    }
}
