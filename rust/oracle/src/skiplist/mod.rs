//! FoundationDB's conflict pipeline around its skip list, rebuilt: the baseline of every figure, and an oracle.
//!
//! | stage | what happens | where |
//! | --- | --- | --- |
//! | sort | too-old transactions and empty ranges left out; radix sort of all endpoints | [`sort`] |
//! | check reads | every read range against the list, 16 at a time, in the order of the transactions | [`list`] |
//! | within the batch | a bitset over the endpoints' ranks | [`within`] |
//! | combine | the accepted write ranges, united | [`combine`] |
//! | apply | the unions overlaid on the list, in stripes of 16 endpoints, last first | [`list`] |
//! | expire | a few nodes visited, the old among them dropped | [`list`] |
//!
//! It is meant to cost what FoundationDB's costs, stage by stage: it does the same work in the same order, and is not
//! improved where that could be. Only its arrays are kept from batch to batch, where FoundationDB makes them anew: what
//! that costs depends on the allocator and on what a process did before, and a baseline must not.

mod combine;
mod list;
mod node;
mod random;
mod sort;
#[cfg(test)]
mod tests;
mod within;

use combine::{Unions, WriteEndpoint, unite};
use list::{List, Read};
use resolver_types::{
    Batch, BatchError, ConflictSet, KeyRange, Retention, Stage, StageClock, StageTimes, Transaction, Verdict,
    Verdicts, Version,
};
use sort::{Endpoint, EndpointKind, Group, sort_endpoints};
use std::mem::take;
use within::RankSet;

/// How many nodes an expiry visits for each union of the batch, and besides.
const VISITS_PER_UNION: usize = 3;
const VISITS_BESIDES: usize = 10;

/// The skip list with its pipeline.
#[derive(Debug)]
pub struct SkipList {
    retention: Retention,
    list: List,
    base: Version,
    /// The version of the last committed batch.
    last: Option<Version>,
    effective_oldest: Version,
    floor: Option<Version>,
    cutoff: Option<Version>,
    /// The batch judged last, and what is kept of it for its commit: the sorted endpoints of the writes of all
    /// transactions that are not too old, and those that are. No key is kept: keys are borrowed for a call only.
    judged: Option<Shape>,
    writes: Vec<WriteEndpoint>,
    too_old: Vec<u32>,
    arrays: Arrays<'static>,
    unions: Vec<KeyRange<'static>>,
    /// The peak of lists before the last clear.
    peak_before: u64,
    clock: StageClock,
}

/// What identifies a batch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Shape {
    version: Version,
    transactions: usize,
    ranges: usize,
}

impl Shape {
    fn of(batch: &Batch<'_>) -> Shape {
        let (transactions, ranges) = (batch.transactions.len(), batch.ranges.len());
        Shape { version: batch.version, transactions, ranges }
    }
}

impl SkipList {
    /// An empty history: every key has version 0.
    pub fn new(retention: Retention) -> SkipList {
        SkipList {
            retention,
            list: List::new(Version::ZERO),
            base: Version::ZERO,
            last: None,
            effective_oldest: Version::LOWEST,
            floor: None,
            cutoff: None,
            judged: None,
            writes: Vec::new(),
            too_old: Vec::new(),
            arrays: Arrays::default(),
            unions: Vec::new(),
            peak_before: 0,
            clock: StageClock::default(),
        }
    }

    /// The effective oldest with a batch's own `oldest` counted in.
    fn oldest_with(&self, batch: &Batch<'_>) -> Version {
        match self.retention {
            Retention::Window => self.effective_oldest.max(batch.oldest),
            Retention::Budget => Version::LOWEST,
        }
    }

    /// What may be forgotten, and is, lies at or below this: the cutoff never passes it.
    fn horizon(&self, oldest: Version) -> Version {
        self.floor.map_or(oldest, |floor| floor.max(oldest))
    }

    /// Forgets what lies below the horizon if that went up.
    fn expire(&mut self, unions: usize) {
        let horizon = self.horizon(self.effective_oldest);
        if horizon > self.cutoff.unwrap_or(Version(-1)) {
            self.cutoff = Some(horizon);
            self.list.expire(horizon, unions * VISITS_PER_UNION + VISITS_BESIDES);
        }
    }
}

/// Whether a transaction reads below what can still be decided. One without reads never does.
fn is_too_old(transaction: &Transaction, horizon: Version) -> bool {
    transaction.reads > 0 && transaction.read_version < horizon
}

/// Empties a vector and keeps its memory, for elements of the same type but another lifetime.
fn emptied<T, U>(mut used: Vec<T>) -> Vec<U> {
    used.clear();
    used.into_iter().map(|_| unreachable!("the vector is empty")).collect()
}

/// The arrays that judging a batch fills: first the ranges that count, as taken in.
#[derive(Debug, Default)]
struct Arrays<'a> {
    endpoints: Vec<Endpoint<'a>>,
    reads: Vec<Read<'a>>,
    /// Working memory of the sort.
    scratch: Vec<Endpoint<'a>>,
    groups: Vec<Group>,
    /// By range, the ranks of its begin and its end among the sorted endpoints; an empty range has an empty span.
    spans: Vec<[u32; 2]>,
    /// The ranks that accepted writes cover.
    accepted: RankSet,
}

impl<'a> Arrays<'a> {
    /// The same memory without the keys, for the next batch.
    fn emptied(self) -> Arrays<'static> {
        Arrays {
            endpoints: emptied(self.endpoints),
            reads: emptied(self.reads),
            scratch: emptied(self.scratch),
            groups: self.groups,
            spans: self.spans,
            accepted: self.accepted,
        }
    }

    /// Adds both ends of a range, unless it is empty.
    #[inline(always)]
    fn add(&mut self, range: &KeyRange<'a>, index: u32, transaction: u32, kinds: [EndpointKind; 2]) -> bool {
        let counts = !range.is_empty();
        if counts {
            let [begin, end] = kinds;
            self.endpoints.push(Endpoint { key: range.begin, transaction, id: index * 2, kind: begin });
            self.endpoints.push(Endpoint { key: range.end, transaction, id: index * 2 + 1, kind: end });
        }
        counts
    }

    /// Adds a transaction's reads, in order.
    fn add_reads(&mut self, batch: &Batch<'a>, index: u32, transaction: &Transaction) {
        let version = transaction.read_version;
        for (position, range) in (0..).zip(batch.reads(transaction)) {
            if self.add(range, transaction.first + position, index, READ) {
                self.reads.push(Read { range: *range, version, transaction: index, index: position });
            }
        }
    }

    /// Adds a transaction's writes.
    fn add_writes(&mut self, batch: &Batch<'a>, index: u32, transaction: &Transaction) {
        for (id, range) in (transaction.first + transaction.reads..).zip(batch.writes(transaction)) {
            self.add(range, id, index, WRITE);
        }
    }

    /// Stage 1: the first verdicts, and everything of the transactions that are not too old, sorted.
    fn take_in(
        &mut self,
        batch: &Batch<'a>,
        horizon: Version,
        verdicts: &mut Verdicts,
        too_old: &mut Vec<u32>,
    ) {
        verdicts.clear();
        too_old.clear();
        for (index, transaction) in (0..).zip(batch.transactions) {
            if is_too_old(transaction, horizon) {
                verdicts.verdicts.push(Verdict::TooOld);
                too_old.push(index);
            } else {
                verdicts.verdicts.push(Verdict::Committed);
                self.add_reads(batch, index, transaction);
                self.add_writes(batch, index, transaction);
            }
        }
        sort_endpoints(&mut self.endpoints, &mut self.scratch, &mut self.groups);
    }

    /// The write endpoints among the sorted endpoints.
    fn writes(&self, writes: &mut Vec<WriteEndpoint>) {
        // No branch on the kind, which is as good as random: each one takes a place, and only a write keeps it.
        writes.resize(self.endpoints.len(), WriteEndpoint::default());
        let mut kept = 0;
        for endpoint in &self.endpoints {
            writes[kept] = WriteEndpoint { transaction: endpoint.transaction, id: endpoint.id };
            kept += usize::from(endpoint.kind.is_write());
        }
        writes.truncate(kept);
    }

    /// Stage 3: conflicts of transactions that are still without one with the writes of earlier ones that are, too.
    fn check_within(&mut self, batch: &Batch<'_>, verdicts: &mut Verdicts) {
        self.spans.clear();
        self.spans.resize(batch.ranges.len(), [0; 2]);
        for (rank, endpoint) in (0..).zip(&self.endpoints) {
            self.spans.as_flattened_mut()[endpoint.id as usize] = rank;
        }
        self.accepted.reset(self.endpoints.len());
        for (index, transaction) in batch.transactions.iter().enumerate() {
            let verdict = &mut verdicts.verdicts[index];
            if *verdict != Verdict::Committed {
                continue;
            }
            let (reads, writes) = self.spans[transaction.first as usize..]
                [..transaction.reads as usize + transaction.writes as usize]
                .split_at(transaction.reads as usize);
            match reads.iter().position(|&[begin, end]| self.accepted.intersects(begin, end)) {
                Some(read) => {
                    *verdict = Verdict::Conflict;
                    if transaction.report {
                        verdicts.reported.push((index as u32, read as u32));
                    }
                }
                None => writes.iter().for_each(|&[begin, end]| self.accepted.insert(begin, end)),
            }
        }
    }
}

const READ: [EndpointKind; 2] = [EndpointKind::ReadBegin, EndpointKind::ReadEnd];
const WRITE: [EndpointKind; 2] = [EndpointKind::WriteBegin, EndpointKind::WriteEnd];

/// The sorted endpoints of all writes of a batch, for a commit whose verdicts need what judging left out.
fn all_writes_of(batch: &Batch<'_>) -> Vec<WriteEndpoint> {
    let mut arrays = Arrays::default();
    for (index, transaction) in (0..).zip(batch.transactions) {
        arrays.add_writes(batch, index, transaction);
    }
    sort_endpoints(&mut arrays.endpoints, &mut arrays.scratch, &mut arrays.groups);
    let mut writes = Vec::new();
    arrays.writes(&mut writes);
    writes
}

impl ConflictSet for SkipList {
    fn name(&self) -> &'static str {
        "skiplist"
    }

    fn judge(&mut self, batch: &Batch<'_>, verdicts: &mut Verdicts) -> Result<(), BatchError> {
        self.clock.start();
        batch.check(self.last, self.base)?;
        let horizon = self.horizon(self.oldest_with(batch));
        let mut arrays: Arrays<'_> = take(&mut self.arrays);
        arrays.take_in(batch, horizon, verdicts, &mut self.too_old);
        self.clock.lap(Stage::Sort);

        self.list.check(&arrays.reads, |read| {
            verdicts.verdicts[read.transaction as usize] = Verdict::Conflict;
            if batch.transactions[read.transaction as usize].report {
                verdicts.reported.push((read.transaction, read.index));
            }
        });
        self.clock.lap(Stage::CheckReads);

        arrays.check_within(batch, verdicts);
        verdicts.reported.sort_unstable();
        arrays.writes(&mut self.writes);
        self.arrays = arrays.emptied();
        self.judged = Some(Shape::of(batch));
        self.clock.lap(Stage::WithinBatch);
        Ok(())
    }

    fn commit(&mut self, batch: &Batch<'_>, verdicts: &Verdicts) -> Result<(), BatchError> {
        self.clock.start();
        let not_judged = BatchError::NotJudged { version: batch.version };
        if self.judged != Some(Shape::of(batch)) || verdicts.verdicts.len() != batch.transactions.len() {
            return Err(not_judged);
        }
        let committed = |&transaction: &u32| verdicts.verdicts[transaction as usize] == Verdict::Committed;
        let mut unions = Unions::in_memory_of(take(&mut self.unions));
        let ascend = if self.too_old.iter().any(committed) {
            unite(batch, &all_writes_of(batch), &verdicts.verdicts, &mut unions)
        } else {
            unite(batch, &self.writes, &verdicts.verdicts, &mut unions)
        };
        if !ascend {
            return Err(not_judged);
        }
        self.clock.lap(Stage::Combine);

        self.list.overlay(&unions, batch.version);
        self.judged = None;
        self.last = Some(batch.version);
        self.clock.lap(Stage::Apply);

        self.effective_oldest = self.oldest_with(batch);
        self.expire(unions.ranges().len());
        self.unions = emptied(unions.into_storage());
        self.clock.lap(Stage::Expire);
        Ok(())
    }

    fn clear(&mut self, base: Version) {
        self.peak_before = self.peak_memory_bytes();
        self.list = List::new(base);
        self.base = base;
        self.last = None;
        self.effective_oldest = Version::LOWEST;
        self.floor = None;
        self.cutoff = None;
        self.judged = None;
    }

    fn set_floor(&mut self, floor: Version) {
        self.floor = self.floor.max(Some(floor));
    }

    fn cutoff(&self) -> Option<Version> {
        self.cutoff
    }

    fn effective_oldest(&self) -> Version {
        self.effective_oldest
    }

    fn memory_bytes(&self) -> u64 {
        self.list.live_and_peak_bytes().0
    }

    fn peak_memory_bytes(&self) -> u64 {
        self.list.live_and_peak_bytes().1.max(self.peak_before)
    }

    fn time_stages(&mut self, on: bool) {
        self.clock.switch(on);
    }

    fn stage_times(&self) -> StageTimes {
        self.clock.times()
    }
}
