//! The tree: what it owns, and the calls of one batch.

use crate::batch::{Probes, ReadSink, Write};
use crate::config::{Config, ConfigError, LEAST_BUDGET, OutOfBudget, Strategy};
use crate::cooperative::{Alone, Cooperative, Finder, Scouts};
use crate::keys::KeyLog;
use crate::node::inner::Child;
use crate::node::leaf;
use crate::planted::{Bug, Planted};
use crate::pool::{BLOCK_BYTES, BlockId, PAGE_BYTES, Pool};
use crate::read::Check;
use crate::reclaim::JoinRoom;
use crate::route::{Descent, NoReads, Routes};
use crate::search::Search;
use crate::stats::{Stats, TaskStats};
use crate::versions::Versions;
use crate::write::{LeafPlan, Work};
use resolver_types::Version;

/// How many leaves ahead those are prefetched that writes are merged into.
const LEAVES_AHEAD: usize = 6;

/// The conflict history of one resolver: a temporal B+ tree under a memory budget. See the crate's front
/// page.
pub struct Tree {
    pub(crate) pool: Pool,
    pub(crate) search: Search,
    pub(crate) root: Child,
    pub(crate) log: KeyLog,
    pub(crate) versions: Versions,
    /// Stamps up to this one have expired.
    pub(crate) expired: u32,
    cutoff: Option<Version>,
    /// Entries of leaves, gaps apart.
    pub(crate) counted: u64,
    /// Of these, the ones that have expired.
    pub(crate) dead: u64,
    /// The length of the longest key that was ever written, in bytes.
    pub(crate) longest: usize,
    /// The first condemned node; the others follow through their headers.
    pub(crate) condemned: BlockId,
    /// Where the slow hand goes on: the lower bound of the slots it visits next.
    pub(crate) hand: Vec<u8>,
    /// Room for where it goes on after that.
    pub(crate) next_hand: Vec<u8>,
    /// Leaves written since the hand's last step.
    pub(crate) hand_credit: u64,
    /// What the hand's last whole round for space has left behind: blocks that seemed collectable and were not.
    pub(crate) uncollectable: u64,
    /// The greatest need of a recent batch, in blocks.
    pub(crate) recent_need: u64,
    /// Whether `routes` are of the last check and the tree has not changed since.
    routed: bool,
    pub(crate) routes: Routes,
    work: Work,
    /// The same for the hand, which also moves while a batch waits for room.
    pub(crate) hand_routes: Routes,
    pub(crate) hand_work: Work,
    pub(crate) join_room: JoinRoom,
    pub(crate) removed: Vec<u32>,
    pub(crate) stats: Stats,
    /// The tasks of the cooperative strategy.
    cooperative: Option<Box<Cooperative>>,
    /// How often reclamation has changed nodes.
    mutations: u64,
    pub(crate) planted: Planted,
    stamp_limit: u32,
    side_bytes: u64,
    /// The budget that the tree was made with, in whole pages.
    pub(crate) most_bytes: u64,
}

/// A row of blocks as bytes.
pub(crate) fn bytes(blocks: u64) -> u64 {
    blocks * BLOCK_BYTES as u64
}

impl Tree {
    /// An empty history under a budget.
    ///
    /// # Errors
    /// A budget that does not hold the longest legal key, or a pool that cannot be had.
    pub fn new(config: Config) -> Result<Tree, ConfigError> {
        let page = PAGE_BYTES as u64;
        let budget = config.budget_bytes / page * page;
        if budget < LEAST_BUDGET {
            return Err(ConfigError::BudgetTooSmall { budget: config.budget_bytes, least: LEAST_BUDGET });
        }
        let cooperative = match config.strategy {
            Strategy::Pipelined => None,
            Strategy::Cooperative(tasks) => Some(Box::new(Cooperative::new(tasks.checked()?))),
        };
        // The side tables' bytes come off the top, whole pages of them: what is left is the pool's.
        let side_bytes = Versions::side_bytes(budget / BLOCK_BYTES as u64);
        let side_pages = if config.planted.has(Bug::SideTablesOnTop) { 0 } else { side_bytes.div_ceil(page) };
        let pool = Pool::new(config.backing, budget - side_pages * page)?.refusing(config.refusals);
        let blocks = pool.budget_bytes() / BLOCK_BYTES as u64;
        Ok(Tree {
            search: if config.vector_search { Search::detect() } else { Search::scalar() },
            root: Child::vacant(0),
            log: KeyLog::new(),
            versions: Versions::new(blocks),
            expired: 0,
            cutoff: None,
            longest: 0,
            condemned: BlockId::NONE,
            hand: Vec::new(),
            next_hand: Vec::new(),
            hand_credit: 0,
            uncollectable: 0,
            recent_need: 0,
            routed: false,
            routes: Routes::default(),
            work: Work::default(),
            hand_routes: Routes::default(),
            hand_work: Work::default(),
            counted: 0,
            dead: 0,
            join_room: JoinRoom::default(),
            removed: Vec::with_capacity(leaf::LIST_ROOM),
            stats: Stats::default(),
            cooperative,
            mutations: 0,
            planted: config.planted,
            stamp_limit: config.stamp_limit,
            most_bytes: budget,
            side_bytes: Versions::side_bytes(blocks),
            pool,
        })
    }

    /// Forgets everything.
    pub fn clear(&mut self) {
        self.pool.clear();
        self.root = Child::vacant(0);
        self.log = KeyLog::new();
        self.versions.clear();
        self.expired = 0;
        self.cutoff = None;
        (self.counted, self.dead) = (0, 0);
        self.longest = 0;
        self.condemned = BlockId::NONE;
        self.hand.clear();
        self.hand_credit = 0;
        self.uncollectable = 0;
        self.recent_need = 0;
        self.routed = false;
    }

    /// The limit of a read at `version`, for [`ReadSink::limit`]: the newest stamp that it has seen.
    #[inline]
    pub fn limit(&self, version: Version) -> u32 {
        self.versions.at_or_below(&self.pool, version)
    }

    /// The greatest version at or below which the history can no longer tell writes apart.
    pub fn cutoff(&self) -> Option<Version> {
        self.cutoff
    }

    /// Counters since the tree was made.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// What the tasks of the cooperative strategy have done, if that is the tree's.
    pub fn task_stats(&self) -> Option<&TaskStats> {
        self.cooperative.as_deref().map(|cooperative| &cooperative.stats)
    }

    /// Bytes that the history holds: the pool's committed pages and the side tables.
    pub fn memory_bytes(&self) -> u64 {
        self.pool.committed_bytes() + self.side_bytes
    }

    /// The greatest [`Tree::memory_bytes`] since the tree was made.
    pub fn peak_memory_bytes(&self) -> u64 {
        self.pool.peak_committed_bytes() + self.side_bytes
    }

    /// The most that [`Tree::memory_bytes`] can become.
    pub fn budget_bytes(&self) -> u64 {
        self.pool.budget_bytes() + self.side_bytes
    }

    /// Blocks of the pool: used, free and committed.
    pub fn blocks(&self) -> Blocks {
        Blocks {
            used: self.pool.used_blocks(),
            free: self.pool.free_blocks(),
            committed: self.pool.committed_blocks(),
            keys: self.log.blocks(),
            versions: self.versions.blocks(),
        }
    }

    /// Checks every read of a sorted batch against the history, and notes where its writes would go. The
    /// history does not change.
    pub fn check_reads(&mut self, probes: &Probes<'_>, sink: &mut impl ReadSink) {
        let mut routes = std::mem::take(&mut self.routes);
        let mut stats = self.stats;
        let descent = Descent {
            pool: &self.pool,
            search: self.search,
            planted: self.planted,
            probes,
            for_writes: true,
            for_reads: true,
        };
        let slice = (0, probes.endpoints.len() as u32);
        let mut cooperative = self.cooperative.take();
        let check = self.check(probes);
        match cooperative.as_deref_mut() {
            Some(Cooperative { reads, stats: tasks, .. }) => {
                reads.run((&descent, &check), slice, sink, &mut routes, &mut stats, tasks);
            }
            None => {
                descent.run(self.root, slice, sink, &mut routes, &mut stats);
                check.run(&mut routes, sink, &mut stats);
            }
        }
        self.cooperative = cooperative;
        self.routes = routes;
        self.stats = stats;
        self.routed = true;
    }

    /// The check of reads over the tree as it is.
    fn check<'a, 'b>(&'a self, probes: &'a Probes<'b>) -> Check<'a, 'b> {
        Check {
            pool: &self.pool,
            search: self.search,
            planted: self.planted,
            probes,
            root: self.root,
            expired: self.expired,
        }
    }

    /// Overlays the history with a batch's accepted writes, sorted and disjoint, at `version`, which is above
    /// all before. `probes` are those of the last [`Tree::check_reads`].
    ///
    /// Space is reserved before anything changes: for the whole batch where it can be had, else for as many
    /// writes at a time as fit.
    ///
    /// # Errors
    /// [`OutOfBudget`] for the first write that does not fit even with all older history given up; the writes
    /// before it are applied, and the tree is valid.
    pub fn add_writes(
        &mut self,
        probes: &Probes<'_>,
        writes: &[Write],
        version: Version,
    ) -> Result<(), OutOfBudget> {
        if writes.is_empty() || self.cutoff.is_some_and(|cutoff| version <= cutoff) {
            // A write at or below the cutoff expires before anybody can ask for it.
            return Ok(());
        }
        self.make_stamp();
        for write in writes {
            let begin = probes.key_length(write.begin);
            let end = if write.end == Write::POINT { 0 } else { probes.key_length(write.end) };
            self.longest = self.longest.max(begin).max(end);
        }
        let mut work = std::mem::take(&mut self.work);
        let mut routes = std::mem::take(&mut self.routes);
        let mut routed = std::mem::take(&mut self.routed);
        let mut cooperative = self.cooperative.take();
        let mut stamp = None;
        let mut done = 0;
        let mut size = writes.len();
        let result = loop {
            if done == writes.len() {
                break Ok(());
            }
            let piece = &writes[done..done + size.min(writes.len() - done)];
            if !routed {
                self.route_writes(probes, piece, &mut routes, cooperative.as_deref_mut());
            }
            self.assign(probes, piece, &routes, &mut work);
            if let Some(cooperative) = &mut cooperative {
                let mut stats = self.stats;
                let mut scouts = self.scouts(cooperative, probes);
                scouts.start(&self.pool, &routes, &work, self.mutations, &mut stats);
                self.stats = stats;
            }
            let needed = self.blocks_needed(probes, &routes, &mut work);
            if !self.can_have(needed) {
                // Half the pool at once would cost more history than several pieces do.
                if piece.len() > 1 && needed > self.pool.budget_bytes() / BLOCK_BYTES as u64 / 4 {
                    size = piece.len().div_ceil(2);
                    routed = false;
                    continue;
                }
                routed = false;
                let before = stamp.unwrap_or_else(|| self.versions.next());
                if self.make_room(needed, before) {
                    continue;
                }
                if piece.len() > 1 {
                    size = piece.len().div_ceil(2);
                    continue;
                }
                break Err(OutOfBudget {
                    write: done,
                    needed: bytes(needed),
                    // Where the operating system refuses more, what is committed is all there is.
                    available: bytes(match self.pool.available() {
                        allowed if allowed < needed => allowed,
                        _ => self.pool.free_blocks(),
                    }),
                });
            }
            let available = self.pool.available();
            let stamp = *stamp.get_or_insert_with(|| self.versions.push(&mut self.pool, version));
            work.start(routes.inner.len());
            self.hand_credit += work.leaves.len() as u64;
            match &mut cooperative {
                None => self.merge_leaves(probes, &routes, stamp, &mut work, &mut Alone, true),
                Some(cooperative) => {
                    let mut scouts = self.scouts(cooperative, probes);
                    self.merge_leaves(probes, &routes, stamp, &mut work, &mut scouts, false);
                }
            }
            self.update_inner(probes, &routes, stamp, false, &mut work);
            let taken = available.saturating_sub(self.pool.available());
            assert!(taken <= needed, "{taken} blocks were taken of {needed} reserved");
            self.recent_need = (self.recent_need - self.recent_need / 64).max(needed);
            routed = false;
            done += piece.len();
        };
        if let Some(cooperative) = &mut cooperative {
            cooperative.writes.stop();
        }
        self.cooperative = cooperative;
        self.routes = routes;
        self.work = work;
        result
    }

    /// Merges the pieces of every leaf of the plan, in order.
    fn merge_leaves(
        &mut self,
        probes: &Probes<'_>,
        routes: &Routes,
        stamp: u32,
        work: &mut Work,
        finder: &mut impl Finder,
        prefetches: bool,
    ) {
        for at in 0..work.leaves.len() {
            if prefetches {
                self.prefetch_leaf(routes, work, at + LEAVES_AHEAD);
            }
            self.prefetch_keys(probes, work, at);
            finder.open(at as u32);
            self.merge_leaf(probes, routes, work.leaves[at], stamp, work, finder);
            if self.planted(Bug::InnerAtOnce) {
                self.update_inner(probes, routes, stamp, false, work);
                work.start(routes.inner.len());
            }
        }
    }

    /// The write tasks, to find where writes of this batch begin.
    fn scouts<'a, 'b>(&self, cooperative: &'a mut Cooperative, probes: &'a Probes<'b>) -> Scouts<'a, 'b> {
        Scouts {
            tasks: &mut cooperative.writes,
            counts: &mut cooperative.stats,
            probes,
            search: self.search,
            expired: self.expired,
            planted: self.planted,
        }
    }

    fn prefetch_leaf(&self, routes: &Routes, work: &Work, at: usize) {
        if let Some(plan) = work.leaves.get(at) {
            let child = routes.leaves[plan.visit as usize].child;
            if child.leaf {
                leaf::prefetch(&self.pool, child.block);
            }
        }
    }

    /// Fetches what the tails of new entries are copied from: the ranges, and some leaves later the keys.
    fn prefetch_keys(&self, probes: &Probes<'_>, work: &Work, at: usize) {
        if probes.behind.is_empty() {
            return;
        }
        let pieces = |plan: &LeafPlan| &work.pieces[plan.first as usize..plan.last as usize];
        for piece in work.leaves.get(at + 2 * LEAVES_AHEAD).into_iter().flat_map(pieces) {
            piece.positions().for_each(|position| probes.prefetch_range(position));
        }
        for piece in work.leaves.get(at + LEAVES_AHEAD).into_iter().flat_map(pieces) {
            piece.positions().for_each(|position| probes.prefetch_key(position));
        }
    }

    /// Routes the endpoints from the first to the last of some writes, for writes alone.
    fn route_writes(
        &mut self,
        probes: &Probes<'_>,
        writes: &[Write],
        routes: &mut Routes,
        cooperative: Option<&mut Cooperative>,
    ) {
        let first = writes[0].begin;
        let last = writes[writes.len() - 1];
        let high = if last.end == Write::POINT { last.begin } else { last.end } + 1;
        let descent = Descent {
            pool: &self.pool,
            search: self.search,
            planted: self.planted,
            probes,
            for_writes: true,
            for_reads: false,
        };
        let mut stats = self.stats;
        match cooperative {
            Some(Cooperative { reads, stats: tasks, .. }) => {
                let check = self.check(probes);
                reads.run((&descent, &check), (first, high), &mut NoReads, routes, &mut stats, tasks);
            }
            None => descent.run(self.root, (first, high), &NoReads, routes, &mut stats),
        }
        self.stats = stats;
    }

    /// Moves the cutoff to `version`, if that is above it: what lies at or below expires now, and is given
    /// back at leisure, see [`Tree::tend`].
    pub fn give_up(&mut self, version: Version) {
        self.expire(version, false);
    }

    /// Moves the cutoff to `version`, for space or because nobody may ask any more.
    pub(crate) fn expire(&mut self, version: Version, for_space: bool) {
        if version < Version::ZERO || self.cutoff.is_some_and(|cutoff| version <= cutoff) {
            return;
        }
        if !(self.planted(Bug::ExpiryWithoutCutoff) && for_space) {
            self.cutoff = Some(version);
        }
        if self.planted(Bug::CutoffWithoutExpiry) {
            return;
        }
        let expired = self.versions.at_or_below(&self.pool, version);
        for stamp in (self.expired + 1).max(self.versions.first())..=expired {
            self.dead += u64::from(self.versions.entries(&self.pool, stamp));
        }
        self.expired = self.expired.max(expired);
    }

    /// The routes of the last check no longer hold: the tree changes.
    pub(crate) fn unroute(&mut self) {
        self.routed = false;
        self.mutations += 1;
    }

    /// Counts entries that came with a stamp, or went (negative). Gaps are not counted.
    pub(crate) fn count(&mut self, stamp: u32, by: i32) {
        if stamp == 0 {
            return;
        }
        self.counted = self.counted.wrapping_add_signed(i64::from(by));
        if stamp <= self.expired {
            self.dead = self.dead.wrapping_add_signed(i64::from(by));
        } else {
            self.versions.count(&mut self.pool, stamp, by);
        }
    }

    /// Counts entries that went, by their stamps.
    pub(crate) fn count_removed(&mut self, stamps: &[u32]) {
        self.stats.entries_removed += stamps.len() as u64;
        for &stamp in stamps {
            self.count(stamp, -1);
        }
    }

    /// Sees to it that there is a stamp for the next batch.
    fn make_stamp(&mut self) {
        while self.versions.is_full() {
            self.reclaim_step(self.versions.next() - 1);
        }
        if self.versions.next() >= self.stamp_limit {
            self.renumber();
        }
    }
}

/// Where the blocks of a pool are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Blocks {
    /// Handed out.
    pub used: u64,
    /// Committed and free.
    pub free: u64,
    /// Used and free.
    pub committed: u64,
    /// Of the used ones: key blocks of the log.
    pub keys: u64,
    /// Of the used ones: blocks of the version table.
    pub versions: u64,
}
