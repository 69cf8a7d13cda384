//! The sequencer: hands out commit versions in order, and read versions; tells proxies about moved key space.

use crate::fault::Time;
use crate::message::{Assigned, AttemptId, ClientMessage, Generation, RoleMessage};
use crate::network::Network;
use crate::owners::Move;
use crate::planted::PlantedBug;
use resolver_types::Version;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

/// The requests of one proxy.
#[derive(Clone, Debug, Default)]
struct Requests {
    next: u64,
    early: BTreeSet<u64>,
    answers: BTreeMap<u64, Assigned>,
}

/// The sequencer of one generation.
#[derive(Debug)]
pub(crate) struct Sequencer {
    generation: Generation,
    /// The first version to hand out, until it is.
    first: Option<Version>,
    /// The last version handed out; at first the end of the generation before.
    last: Version,
    last_time: Time,
    /// Clients may read at this version: it is durable, and so is everything below it.
    committed: Option<Version>,
    proxies: Vec<Requests>,
    moves: Moves,
}

/// Key space on the move: one change at a time, until every proxy has been told.
#[derive(Debug, Default)]
struct Moves {
    queue: VecDeque<Move>,
    current: Option<Rc<(Version, Vec<Move>)>>,
    untold: BTreeSet<usize>,
}

impl Sequencer {
    pub(crate) fn new(
        generation: Generation,
        (end, first): (Version, Version),
        proxies: usize,
        now: Time,
    ) -> Sequencer {
        Sequencer {
            generation,
            first: Some(first),
            last: end,
            last_time: now,
            committed: None,
            proxies: vec![Requests::default(); proxies],
            moves: Moves::default(),
        }
    }

    /// A proxy asks for its next version; its requests are answered in its own order, each once and for all.
    pub(crate) fn assign(&mut self, proxy: usize, number: u64, network: &mut Network) {
        let known = self.proxies[proxy].answers.get(&number).cloned();
        match known {
            Some(_) if network.planted.is(PlantedBug::SequencerForgets) => {
                self.answer(proxy, number, network);
            }
            Some(answer) => network.send(self.generation, RoleMessage::CommitVersion(proxy, answer)),
            None => {
                self.proxies[proxy].early.insert(number);
                while let Some(next) = self.proxies[proxy].take_next() {
                    self.answer(proxy, next, network);
                }
            }
        }
    }

    fn answer(&mut self, proxy: usize, number: u64, network: &mut Network) {
        let previous = self.last;
        let passed = (network.now() - self.last_time).max(1) as i64;
        self.last = self.first.take().unwrap_or(Version(previous.0 + passed));
        self.last_time = network.now();
        let moves = self.moves.tell(proxy);
        self.moves.start(self.last, self.proxies.len());
        let assigned = Assigned { number, version: self.last, previous, moves };
        self.proxies[proxy].answers.insert(number, assigned.clone());
        network.send(self.generation, RoleMessage::CommitVersion(proxy, assigned));
    }

    /// Part of the key space is to move to another resolver.
    pub(crate) fn move_range(&mut self, change: Move) {
        self.moves.queue.push_back(change);
        self.moves.start(self.last, self.proxies.len());
    }

    /// A proxy's batch is durable: from now on clients may have to see it.
    pub(crate) fn report(&mut self, proxy: usize, version: Version, network: &mut Network) {
        self.committed = self.committed.max(Some(version));
        network.send(self.generation, RoleMessage::Reported(proxy, version));
    }

    /// A client asks for a read version. Before the recovery transaction there is none, and the client asks again.
    pub(crate) fn read_version(&self, attempt: AttemptId, network: &mut Network) {
        if let Some(version) = self.committed {
            network.tell(attempt, ClientMessage::ReadVersion(version));
        }
    }
}

impl Requests {
    fn take_next(&mut self) -> Option<u64> {
        let next = self.next;
        self.early.remove(&next).then(|| {
            self.next += 1;
            next
        })
    }
}

impl Moves {
    /// Starts the next change if none is under way: it holds from the version behind the last one handed out.
    fn start(&mut self, last: Version, proxies: usize) {
        if self.untold.is_empty()
            && let Some(change) = self.queue.pop_front()
        {
            self.current = Some(Rc::new((Version(last.0 + 1), vec![change])));
            self.untold = (0..proxies).collect();
        }
    }

    /// What a proxy is told with a version.
    fn tell(&mut self, proxy: usize) -> Rc<(Version, Vec<Move>)> {
        let current = self.current.clone().filter(|_| self.untold.remove(&proxy));
        current.unwrap_or_default()
    }
}
