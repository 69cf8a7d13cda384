//! Clients: what they want to do, one attempt at it, and what became of that.

use crate::fault::{FaultKind, Time};
use crate::history::{Outcome, Position, Read, Record};
use crate::keys::{Key, KeySpace, Mutation, Range};
use crate::message::{AttemptId, CommitRequest, Generation};
use crate::network::Network;
use crate::plan::{Plan, Settings, purpose, stream};
use resolver_types::Version;
use resolver_workloads::Rng;
use std::rc::Rc;

/// A client gives up on what it wanted after so many tries.
const MOST_TRIES: u32 = 5;

/// How many keys are hot while [`FaultKind::HotKeys`] lasts.
const HOT_KEYS: usize = 3;

/// A write that is wanted; the value is made for each attempt.
#[derive(Clone, Debug)]
pub(crate) enum Wanted {
    Set(Key),
    Clear(Range),
}

/// What a client wants to do in one transaction.
#[derive(Clone, Debug, Default)]
pub(crate) struct Intent {
    pub(crate) reads: Vec<Range>,
    pub(crate) writes: Vec<Wanted>,
    pub(crate) report: bool,
}

/// A client, between transactions.
#[derive(Debug)]
pub(crate) struct Client {
    pub(crate) rng: Rng,
    /// Read versions that it was given, ascending.
    pub(crate) seen: Vec<Version>,
    /// What it tries again, how often it did, and at which read version if it is stubborn.
    pub(crate) again: Option<(Rc<Intent>, u32, Option<Version>)>,
}

/// What an attempt waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    ReadVersion,
    Reads,
    /// Time to commit, and a proxy to send it to.
    Proxy,
    Answer,
    Nothing,
}

/// One try to commit a transaction.
#[derive(Debug)]
pub(crate) struct Attempt {
    pub(crate) state: State,
    /// None for the transaction of a recovery.
    pub(crate) client: Option<usize>,
    pub(crate) intent: Rc<Intent>,
    pub(crate) tries: u32,
    pub(crate) start: Time,
    /// Whether the read version is one that the client chose.
    pub(crate) old_version: bool,
    pub(crate) read_version: Option<Version>,
    pub(crate) reads: Vec<Read>,
    /// The generation that was asked to commit it.
    pub(crate) generation: Option<Generation>,
    pub(crate) outcome: Option<Outcome>,
    pub(crate) told: Option<Position>,
    pub(crate) end: Option<Time>,
    /// Answers that came from a proxy.
    pub(crate) answers: u32,
}

impl Client {
    pub(crate) fn new(plan: &Plan, id: usize) -> Client {
        let rng = stream(plan.seed, purpose::CLIENTS + id as u64);
        Client { rng, seen: Vec::new(), again: None }
    }

    /// What it wants next, and how often it has tried.
    pub(crate) fn next_intent(
        &mut self,
        settings: &Settings,
        hot: bool,
        network: &mut Network,
    ) -> (Rc<Intent>, u32) {
        if let Some((intent, tries, _)) = &self.again {
            return (intent.clone(), tries + 1);
        }
        let huge = network.faults.strike(FaultKind::HugeKeys, network.now()).is_some();
        let mut draw = Draw { rng: &mut self.rng, keys: &settings.keys, hot };
        let mut intent = if huge { draw.huge_intent() } else { draw.intent() };
        intent.report = self.rng.one_in(settings.report_one_in);
        (Rc::new(intent), 0)
    }

    /// The read version that it chooses itself, if it does.
    pub(crate) fn chosen_version(&mut self, network: &mut Network) -> Option<Version> {
        if let Some((_, _, Some(version))) = self.again {
            return Some(version);
        }
        if self.seen.is_empty() {
            return None;
        }
        let bits = network.faults.strike(FaultKind::OldReadVersion, network.now())?;
        // Among the last ones, or among all: an eighth as far back as there is, at random.
        let depth = (self.seen.len() as u64 / 8).max(1) * (1 + bits % 8);
        let back = (bits >> 8) % depth.min(self.seen.len() as u64);
        Some(self.seen[self.seen.len() - 1 - back as usize])
    }

    /// After a rejection: whether it tries again, and how.
    pub(crate) fn plan_retry(&mut self, attempt: &Attempt, network: &mut Network) {
        self.again = None;
        let rejected = matches!(attempt.outcome, Some(Outcome::Aborted | Outcome::Unknown));
        if rejected && attempt.tries < MOST_TRIES {
            let stubborn = network.faults.strike(FaultKind::StubbornRetry, network.now());
            let version = stubborn.and(attempt.read_version);
            self.again = Some((attempt.intent.clone(), attempt.tries, version));
        }
    }
}

/// Draws what a client wants.
struct Draw<'a> {
    rng: &'a mut Rng,
    keys: &'a KeySpace,
    hot: bool,
}

impl Draw<'_> {
    fn key(&mut self) -> Key {
        let keys = self.keys.keys();
        let among = if self.hot { HOT_KEYS.min(keys.len()) } else { keys.len() };
        // Half of all draws fall on an eighth of the keys.
        let among = if self.rng.one_in(2) { among.div_ceil(8) } else { among };
        keys[self.rng.below(among as u64) as usize].clone()
    }

    fn range(&mut self) -> Range {
        let keys = self.keys.keys().len();
        let first = self.rng.below(keys as u64) as usize;
        let widest = if self.rng.one_in(4) { keys } else { 6 };
        self.keys.range(first, 1 + self.rng.below(widest as u64) as usize)
    }

    fn points(&mut self, most: u64) -> Vec<Key> {
        (0..1 + self.rng.below(most)).map(|_| self.key()).collect()
    }

    fn intent(&mut self) -> Intent {
        match self.rng.below(16) {
            0..5 => self.update(),
            5..8 => self.copy(),
            8..11 => self.skew(),
            11..12 => self.blind(),
            12..13 => self.clearing(),
            13..15 => self.reading(),
            _ => self.system(),
        }
    }

    /// Reads some keys and writes the same ones.
    fn update(&mut self) -> Intent {
        let keys = self.points(3);
        Intent {
            reads: keys.iter().map(Range::point).collect(),
            writes: keys.into_iter().map(Wanted::Set).collect(),
            report: false,
        }
    }

    /// Reads some keys and writes others.
    fn copy(&mut self) -> Intent {
        Intent {
            reads: self.points(4).iter().map(Range::point).collect(),
            writes: self.points(3).into_iter().map(Wanted::Set).collect(),
            report: false,
        }
    }

    /// Reads a range and writes a key, in it or not.
    fn skew(&mut self) -> Intent {
        let reads = vec![self.range(), self.range()];
        Intent { reads, writes: self.points(2).into_iter().map(Wanted::Set).collect(), report: false }
    }

    /// Writes without reading.
    fn blind(&mut self) -> Intent {
        Intent { writes: self.points(8).into_iter().map(Wanted::Set).collect(), ..Intent::default() }
    }

    /// Removes a range after a look at a key.
    fn clearing(&mut self) -> Intent {
        let reads = self.points(2).iter().map(Range::point).collect();
        let (cleared, kept) = (self.range(), self.key());
        Intent { reads, writes: vec![Wanted::Clear(cleared), Wanted::Set(kept)], report: false }
    }

    /// Only reads.
    fn reading(&mut self) -> Intent {
        let mut reads: Vec<Range> = self.points(3).iter().map(Range::point).collect();
        reads.push(self.range());
        Intent { reads, ..Intent::default() }
    }

    /// Reads and writes the system key space, and an ordinary key.
    fn system(&mut self) -> Intent {
        let system = self.keys.system();
        let key = self.rng.pick(&[0, 1, 2, 3]);
        let whole = Range { begin: system[0].clone(), end: Range::point(&system[3]).end };
        let read = if self.rng.one_in(2) { whole } else { Range::point(&system[key]) };
        Intent {
            reads: vec![read, Range::point(&self.key())],
            writes: vec![Wanted::Set(system[key].clone()), Wanted::Set(self.key())],
            report: false,
        }
    }

    /// Writes keys of nearly the longest length, and reads one of them.
    fn huge_intent(&mut self) -> Intent {
        let huge = self.keys.huge();
        let first = self.rng.below(3) as usize;
        let cleared = Range { begin: huge[first].clone(), end: huge[first + 1].clone() };
        let mut writes = vec![Wanted::Set(huge[first + 2].clone()), Wanted::Set(self.key())];
        if self.rng.one_in(2) {
            writes.push(Wanted::Clear(cleared));
            writes.push(Wanted::Set(huge[first + 3].clone()));
        }
        let reads = vec![Range::point(&huge[first + 2]), Range::point(&self.key())];
        Intent { reads, writes, report: false }
    }
}

impl Attempt {
    pub(crate) fn new(client: Option<usize>, intent: Rc<Intent>, tries: u32, start: Time) -> Attempt {
        Attempt {
            state: State::ReadVersion,
            client,
            intent,
            tries,
            start,
            old_version: false,
            read_version: None,
            reads: Vec::new(),
            generation: None,
            outcome: None,
            told: None,
            end: None,
            answers: 0,
        }
    }

    fn mutations(&self, id: AttemptId) -> Vec<Mutation> {
        let mutation = |(index, wanted): (usize, &Wanted)| match wanted {
            Wanted::Set(key) => Mutation::Set(key.clone(), format!("{id}.{index}").into()),
            Wanted::Clear(range) => Mutation::Clear(range.clone()),
        };
        self.intent.writes.iter().enumerate().map(mutation).collect()
    }

    /// What it asks a proxy to commit.
    pub(crate) fn request(&self, id: AttemptId) -> CommitRequest {
        CommitRequest {
            attempt: id,
            read_version: self.read_version.expect("reads come before the commit"),
            report: self.intent.report,
            reads: self.intent.reads.clone(),
            mutations: self.mutations(id),
        }
    }

    /// What the history says of it, with the place that the log has it at.
    pub(crate) fn record(&self, id: AttemptId, commit: Option<Position>) -> Record {
        let outcome = self.outcome.unwrap_or(Outcome::Unknown);
        let chose_to_read_old = self.old_version && outcome == Outcome::ReadOnly;
        let known = outcome != Outcome::Unknown;
        Record {
            id: id as u64,
            outcome,
            commit,
            read_version: self.read_version,
            start: Some(self.start).filter(|_| !chose_to_read_old),
            end: self.end.filter(|_| known),
            reads: self.reads.clone(),
            writes: self.mutations(id),
        }
    }
}
