//! The temporal tree as a conflict set.

use crate::combine::combine;
use crate::intake::{BELOW_BASE, Intake, SILENT};
use crate::within::Covered;
use resolver_index::{Bug, Config, ConfigError, ReadSink, TaskStats, Tree, Write};
use resolver_types::{
    Batch, BatchError, ConflictSet, Retention, Stage, StageClock, StageTimes, Transaction, Verdict, Verdicts,
    Version,
};

/// How a [`TreeSet`] is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TreeConfig {
    /// What the history may forget.
    pub retention: Retention,
    /// The tree's own settings: budget, backing.
    pub index: Config,
}

/// The conflict set `tree`: the temporal tree and the stages of a batch around it.
pub struct TreeSet {
    tree: Tree,
    retention: Retention,
    base: Version,
    last: Option<Version>,
    effective_oldest: Version,
    floor: Version,
    clock: StageClock,
    intake: Intake,
    covered: Covered,
    /// Room for [`combine`].
    accepted_at: Vec<u32>,
    writes: Vec<Write>,
    /// By range: the history check found it in conflict.
    hits: Vec<bool>,
    /// Version, transactions and ranges of the batch judged last.
    judged: Option<(Version, usize, usize)>,
}

impl TreeSet {
    /// An empty history at version 0.
    ///
    /// # Errors
    /// A budget that is too small, or memory that cannot be had.
    pub fn new(config: TreeConfig) -> Result<TreeSet, ConfigError> {
        Ok(TreeSet {
            tree: Tree::new(config.index)?,
            retention: config.retention,
            base: Version::ZERO,
            last: None,
            effective_oldest: Version::LOWEST,
            floor: Version::LOWEST,
            clock: StageClock::default(),
            intake: Intake::new(config.index.planted),
            covered: Covered::default(),
            accepted_at: Vec::new(),
            writes: Vec::new(),
            hits: Vec::new(),
            judged: None,
        })
    }

    /// The history itself, for its figures and its checker.
    pub fn tree(&self) -> &Tree {
        &self.tree
    }

    /// How many ranges of the batch judged last were taken out because they cover no key. The reads of a
    /// transaction that is too old are not looked at.
    pub fn empty_ranges(&self) -> u32 {
        self.intake.empty
    }

    /// The effective oldest that a batch with this `oldest` is judged by.
    fn oldest_with(&self, oldest: Version) -> Version {
        match self.retention {
            Retention::Window => self.effective_oldest.max(oldest),
            Retention::Budget => Version::LOWEST,
        }
    }
}

/// What the check of reads reports to: the limits of ranges, and whom a conflict hits.
struct Sink<'a> {
    limits: &'a mut [u32],
    hits: &'a mut [bool],
    owners: &'a [u32],
    transactions: &'a [Transaction],
    verdicts: &'a mut [Verdict],
}

impl ReadSink for Sink<'_> {
    #[inline]
    fn limit(&self, range: u32) -> u32 {
        self.limits[range as usize]
    }

    fn conflict(&mut self, range: u32) {
        let owner = self.owners[range as usize] as usize;
        self.verdicts[owner] = Verdict::Conflict;
        let transaction = &self.transactions[owner];
        if transaction.report {
            self.hits[range as usize] = true;
            self.limits[range as usize] = SILENT;
        } else {
            // One conflict settles it: the transaction's other reads need no look.
            let first = transaction.first as usize;
            self.limits[first..first + transaction.reads as usize].fill(SILENT);
        }
    }
}

impl ConflictSet for TreeSet {
    fn name(&self) -> &'static str {
        "tree"
    }

    fn judge(&mut self, batch: &Batch<'_>, verdicts: &mut Verdicts) -> Result<(), BatchError> {
        self.clock.start();
        self.judged = None;
        batch.check(self.last, self.base)?;
        verdicts.clear();
        let unbound = self.tree.planted(Bug::BoundWithoutCutoff);
        let cutoff = self.tree.cutoff().filter(|_| !unbound).unwrap_or(Version::LOWEST);
        let bound = self.oldest_with(batch.oldest).max(cutoff).max(self.floor);
        let tree = &self.tree;
        let base = if tree.planted(Bug::BelowBaseUndecided) { Version::LOWEST } else { self.base };
        self.intake.take(batch, bound, base, &mut verdicts.verdicts, |version| tree.limit(version));
        self.clock.lap(Stage::Sort);

        self.hits.clear();
        self.hits.resize(batch.ranges.len(), false);
        let mut limits = std::mem::take(&mut self.intake.limits);
        let mut sink = Sink {
            limits: &mut limits,
            hits: &mut self.hits,
            owners: &self.intake.owners,
            transactions: batch.transactions,
            verdicts: &mut verdicts.verdicts,
        };
        self.tree.check_reads(&self.intake.probes(batch), &mut sink);
        self.intake.limits = limits;
        self.clock.lap(Stage::CheckReads);

        self.within_batch(batch, verdicts);
        self.clock.lap(Stage::WithinBatch);
        self.judged = Some((batch.version, batch.transactions.len(), batch.ranges.len()));
        Ok(())
    }

    fn commit(&mut self, batch: &Batch<'_>, verdicts: &Verdicts) -> Result<(), BatchError> {
        self.clock.start();
        let judged = (batch.version, batch.transactions.len(), batch.ranges.len());
        if self.judged != Some(judged) || verdicts.verdicts.len() != batch.transactions.len() {
            return Err(BatchError::NotJudged { version: batch.version });
        }
        self.judged = None;
        let Intake { endpoints, ranks, owners, .. } = &self.intake;
        let accepted = |range: u32| verdicts.verdicts[owners[range as usize] as usize] == Verdict::Committed;
        combine(endpoints, ranks, accepted, &mut self.accepted_at, &mut self.writes);
        if self.tree.planted(Bug::CombineSwallowsTouching) {
            let rank = |position: u32| ranks[endpoints[position as usize].range() as usize];
            let mut end = None;
            self.writes.retain(|write| {
                let touches = end == Some(rank(write.begin).0);
                end = (write.end != Write::POINT).then(|| rank(write.end).1);
                !(touches && write.end == Write::POINT)
            });
        }
        self.clock.lap(Stage::Combine);

        self.last = Some(batch.version);
        self.effective_oldest = self.oldest_with(batch.oldest);
        self.tree.give_up(self.effective_oldest);
        let result = self.tree.add_writes(&self.intake.probes(batch), &self.writes, batch.version);
        self.clock.lap(Stage::Apply);

        self.tree.tend();
        self.clock.lap(Stage::Expire);
        result.map_err(|error| BatchError::OutOfBudget {
            write: error.write,
            needed: error.needed,
            available: error.available,
        })
    }

    fn clear(&mut self, base: Version) {
        self.tree.clear();
        self.base = base;
        self.last = None;
        self.effective_oldest = Version::LOWEST;
        self.floor = Version::LOWEST;
        self.judged = None;
    }

    fn set_floor(&mut self, floor: Version) {
        self.floor = self.floor.max(floor);
    }

    fn cutoff(&self) -> Option<Version> {
        self.tree.cutoff()
    }

    fn effective_oldest(&self) -> Version {
        self.effective_oldest
    }

    fn memory_bytes(&self) -> u64 {
        self.tree.memory_bytes()
    }

    fn peak_memory_bytes(&self) -> u64 {
        self.tree.peak_memory_bytes()
    }

    fn time_stages(&mut self, on: bool) {
        self.clock.switch(on);
    }

    fn stage_times(&self) -> StageTimes {
        self.clock.times()
    }

    fn validate(&self) -> Result<(), String> {
        self.tree.validate().map(drop).map_err(|broken| broken.to_string())
    }

    fn counters(&self) -> Vec<(&'static str, u64)> {
        let tasks = self.tree.task_stats().into_iter().flat_map(TaskStats::fields);
        self.tree.stats().fields().chain(tasks).collect()
    }
}

impl TreeSet {
    /// Decides, in transaction order, who read what an earlier transaction of the batch writes, and collects
    /// the reports.
    fn within_batch(&mut self, batch: &Batch<'_>, verdicts: &mut Verdicts) {
        self.covered.start(self.intake.distinct);
        let ranks = &self.intake.ranks;
        for (index, transaction) in batch.transactions.iter().enumerate() {
            let first = transaction.first as usize;
            let writes = first + transaction.reads as usize;
            let verdict = &mut verdicts.verdicts[index];
            match *verdict {
                Verdict::TooOld => continue,
                Verdict::Conflict => {
                    if transaction.report {
                        let hit = |at: &usize| self.hits[first + at] || ranks[first + at] == BELOW_BASE;
                        let most = if self.tree.planted(Bug::ReportFirstOnly) { 1 } else { usize::MAX };
                        let reads = (0..transaction.reads as usize).filter(hit).take(most);
                        verdicts.reported.extend(reads.map(|at| (index as u32, at as u32)));
                    }
                    continue;
                }
                Verdict::Committed => {}
            }
            if let Some(at) = ranks[first..writes].iter().position(|&slots| self.covered.any(slots)) {
                *verdict = Verdict::Conflict;
                if transaction.report {
                    verdicts.reported.push((index as u32, at as u32));
                }
                continue;
            }
            for &slots in &ranks[writes..writes + transaction.writes as usize] {
                self.covered.cover(slots);
            }
        }
    }
}
