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
//! improved where that could be.

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
    judged: Option<Judged>,
    buffers: Buffers,
    /// The peak of lists before the last clear.
    peak_before: u64,
    clock: StageClock,
}

/// What identifies the batch judged last.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Judged {
    version: Version,
    transactions: usize,
    ranges: usize,
}

impl Judged {
    fn of(batch: &Batch<'_>) -> Judged {
        let (transactions, ranges) = (batch.transactions.len(), batch.ranges.len());
        Judged { version: batch.version, transactions, ranges }
    }
}

/// The arrays of a batch, kept from batch to batch for their memory. Those that hold keys are empty between calls.
#[derive(Debug, Default)]
struct Buffers {
    endpoints: Vec<Endpoint<'static>>,
    scratch: Vec<Endpoint<'static>>,
    groups: Vec<Group>,
    reads: Vec<Read<'static>>,
    /// By endpoint id, its place in the sorted order; both 0 for an empty range.
    ranks: Vec<u32>,
    accepted: RankSet,
    unions: Vec<KeyRange<'static>>,
    /// The sorted write endpoints of the batch judged last.
    writes: Vec<WriteEndpoint>,
    /// The too-old transactions of the batch judged last, whose endpoints are not in `writes`.
    too_old: Vec<u32>,
}

/// Empties a vector and keeps its memory for elements of the same type but another lifetime.
fn emptied<T, U>(mut used: Vec<T>) -> Vec<U> {
    used.clear();
    used.into_iter().map(|_| unreachable!("the vector is empty")).collect()
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
            buffers: Buffers::default(),
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

/// Adds both ends of a range that is not empty.
#[inline(always)]
fn add_endpoints<'a>(
    endpoints: &mut Vec<Endpoint<'a>>,
    range: &KeyRange<'a>,
    index: u32,
    transaction: u32,
    [begin, end]: [EndpointKind; 2],
) {
    endpoints.push(Endpoint { key: range.begin, transaction, id: index * 2, kind: begin });
    endpoints.push(Endpoint { key: range.end, transaction, id: index * 2 + 1, kind: end });
}

const READ: [EndpointKind; 2] = [EndpointKind::ReadBegin, EndpointKind::ReadEnd];
const WRITE: [EndpointKind; 2] = [EndpointKind::WriteBegin, EndpointKind::WriteEnd];

/// The endpoints of a batch's writes in sorted order, for a commit whose verdicts need what judging left out.
fn sort_all_writes(batch: &Batch<'_>) -> Vec<WriteEndpoint> {
    let mut endpoints = Vec::new();
    for (index, transaction) in batch.transactions.iter().enumerate() {
        let first = transaction.first + transaction.reads;
        for (range, id) in batch.writes(transaction).iter().zip(first..) {
            if !range.is_empty() {
                add_endpoints(&mut endpoints, range, id, index as u32, WRITE);
            }
        }
    }
    sort_endpoints(&mut endpoints, &mut Vec::new(), &mut Vec::new());
    endpoints.iter().map(|e| WriteEndpoint { transaction: e.transaction, id: e.id }).collect()
}

impl Buffers {
    /// Stage 1: first verdicts, the reads to check, and the endpoints of all ranges that count.
    fn take_in<'a>(
        &mut self,
        batch: &Batch<'a>,
        horizon: Version,
        verdicts: &mut Verdicts,
        endpoints: &mut Vec<Endpoint<'a>>,
        reads: &mut Vec<Read<'a>>,
    ) {
        verdicts.clear();
        verdicts.verdicts.reserve(batch.transactions.len());
        self.too_old.clear();
        self.ranks.clear();
        self.ranks.resize(batch.ranges.len() * 2, 0);
        endpoints.reserve(batch.ranges.len() * 2);
        for (index, transaction) in batch.transactions.iter().enumerate() {
            let index = index as u32;
            if is_too_old(transaction, horizon) {
                self.too_old.push(index);
                verdicts.verdicts.push(Verdict::TooOld);
                continue;
            }
            verdicts.verdicts.push(Verdict::Committed);
            let version = transaction.read_version;
            for (position, range) in batch.reads(transaction).iter().enumerate() {
                let position = position as u32;
                if !range.is_empty() {
                    add_endpoints(endpoints, range, transaction.first + position, index, READ);
                    reads.push(Read { range: *range, version, transaction: index, index: position });
                }
            }
            let first_write = transaction.first + transaction.reads;
            for (range, id) in batch.writes(transaction).iter().zip(first_write..) {
                if !range.is_empty() {
                    add_endpoints(endpoints, range, id, index, WRITE);
                }
            }
        }
    }

    /// Stage 3: conflicts of transactions that are still without one with the writes of earlier ones that are, too.
    fn check_within(&mut self, batch: &Batch<'_>, endpoints: &[Endpoint<'_>], verdicts: &mut Verdicts) {
        self.writes.clear();
        for (rank, endpoint) in endpoints.iter().enumerate() {
            self.ranks[endpoint.id as usize] = rank as u32;
            if endpoint.kind.is_write() {
                self.writes.push(WriteEndpoint { transaction: endpoint.transaction, id: endpoint.id });
            }
        }
        self.accepted.reset(endpoints.len());
        for (index, transaction) in batch.transactions.iter().enumerate() {
            let verdict = &mut verdicts.verdicts[index];
            if *verdict != Verdict::Committed {
                continue;
            }
            let first = transaction.first as usize * 2;
            let (reads, writes) = self.ranks[first..]
                [..(transaction.reads + transaction.writes) as usize * 2]
                .split_at(transaction.reads as usize * 2);
            let (reads, writes) = (reads.as_chunks().0, writes.as_chunks().0);
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

impl ConflictSet for SkipList {
    fn name(&self) -> &'static str {
        "skiplist"
    }

    fn judge(&mut self, batch: &Batch<'_>, verdicts: &mut Verdicts) -> Result<(), BatchError> {
        self.clock.start();
        batch.check(self.last, self.base)?;
        let horizon = self.horizon(self.oldest_with(batch));
        let mut endpoints = take(&mut self.buffers.endpoints);
        let mut scratch = take(&mut self.buffers.scratch);
        let mut reads = take(&mut self.buffers.reads);

        self.buffers.take_in(batch, horizon, verdicts, &mut endpoints, &mut reads);
        sort_endpoints(&mut endpoints, &mut scratch, &mut self.buffers.groups);
        self.clock.lap(Stage::Sort);

        self.list.check(&reads, |read| {
            verdicts.verdicts[read.transaction as usize] = Verdict::Conflict;
            if batch.transactions[read.transaction as usize].report {
                verdicts.reported.push((read.transaction, read.index));
            }
        });
        self.clock.lap(Stage::CheckReads);

        self.buffers.check_within(batch, &endpoints, verdicts);
        verdicts.reported.sort_unstable();
        self.buffers.endpoints = emptied(endpoints);
        self.buffers.scratch = emptied(scratch);
        self.buffers.reads = emptied(reads);
        self.judged = Some(Judged::of(batch));
        self.clock.lap(Stage::WithinBatch);
        Ok(())
    }

    fn commit(&mut self, batch: &Batch<'_>, verdicts: &Verdicts) -> Result<(), BatchError> {
        self.clock.start();
        let not_judged = Err(BatchError::NotJudged { version: batch.version });
        if self.judged != Some(Judged::of(batch)) || verdicts.verdicts.len() != batch.transactions.len() {
            return not_judged;
        }
        let committed = |&transaction: &u32| verdicts.verdicts[transaction as usize] == Verdict::Committed;
        let all_writes;
        let writes = if self.buffers.too_old.iter().any(committed) {
            all_writes = sort_all_writes(batch);
            &all_writes
        } else {
            &self.buffers.writes
        };
        let mut unions = Unions::in_memory_of(take(&mut self.buffers.unions));
        if !unite(batch, writes, &verdicts.verdicts, &mut unions) {
            return not_judged;
        }
        self.clock.lap(Stage::Combine);

        self.list.overlay(&unions, batch.version);
        self.judged = None;
        self.last = Some(batch.version);
        self.clock.lap(Stage::Apply);

        self.effective_oldest = self.oldest_with(batch);
        self.expire(unions.ranges().len());
        self.buffers.unions = emptied(unions.into_storage());
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
