//! A commit proxy: batches what clients want to commit, gets a version for each batch, sends every resolver what touches its
//! keys, and commits what all of them commit.

use crate::fault::Effect;
use crate::history::Position;
use crate::keys::Range;
use crate::message::{
    Answer, Assigned, ClientMessage, CommitRequest, Generation, Logged, Push, ResolveReply, ResolveRequest,
    RoleMessage, Sent,
};
use crate::network::Network;
use crate::owners::{Owners, Routes};
use crate::planted::PlantedBug;
use crate::violation::Violation;
use resolver_types::{Verdict, Version};
use std::collections::BTreeMap;
use std::rc::Rc;

/// A proxy without transactions sends an empty batch after so many ticks of its own.
const IDLE_TICKS: u64 = 4;

/// Batches of at least so many transactions lose an answer if that mistake is planted.
const LARGE_BATCH: usize = 3;

/// What a batch waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Version,
    Resolvers,
    Log,
    Sequencer,
    Nothing,
}

/// How one resolver sees one transaction.
#[derive(Debug)]
struct Route {
    resolver: usize,
    /// The transaction's place in what the resolver was sent.
    place: usize,
    /// By read as the resolver sees it: its index in the client's request.
    reads: Vec<usize>,
}

#[derive(Debug)]
struct Batch {
    state: State,
    transactions: Vec<Rc<CommitRequest>>,
    version: Version,
    previous: Version,
    /// By transaction.
    routes: Vec<Vec<Route>>,
    /// By resolver.
    replies: Vec<Option<Rc<ResolveReply>>>,
    answers: Vec<Answer>,
}

/// A commit proxy of one generation.
#[derive(Debug)]
pub(crate) struct Proxy {
    generation: Generation,
    id: usize,
    life: i64,
    /// Where this generation begins: older read versions are another one's.
    first: Version,
    owners: Owners,
    resolvers: usize,
    queue: Vec<Rc<CommitRequest>>,
    idle_ticks: u64,
    /// By the proxy's own number.
    batches: Vec<Batch>,
    /// Versions that came before those of earlier batches.
    early: BTreeMap<u64, Assigned>,
    /// Batches that have been sent to resolvers.
    sent: usize,
    numbers: BTreeMap<Version, usize>,
}

impl Proxy {
    pub(crate) fn new(
        generation: Generation,
        id: usize,
        life: i64,
        first: Version,
        resolvers: usize,
    ) -> Proxy {
        Proxy {
            generation,
            id,
            life,
            first,
            owners: Owners::new(resolvers),
            resolvers,
            queue: Vec::new(),
            idle_ticks: 0,
            batches: Vec::new(),
            early: BTreeMap::new(),
            sent: 0,
            numbers: BTreeMap::new(),
        }
    }

    /// A client wants to commit.
    pub(crate) fn commit(&mut self, request: Rc<CommitRequest>, network: &mut Network) {
        if request.read_version < self.first {
            network.faults.counters.note(Effect::OldTransaction);
        }
        self.queue.push(request);
    }

    /// Time for a batch, if there is something in it, or there has been none for long.
    pub(crate) fn tick(&mut self, network: &mut Network) {
        self.idle_ticks += 1;
        if self.queue.is_empty() && self.idle_ticks < IDLE_TICKS {
            return;
        }
        self.idle_ticks = 0;
        let transactions = std::mem::take(&mut self.queue);
        let number = self.batches.len() as u64;
        self.batches.push(Batch {
            state: State::Version,
            transactions,
            version: Version(-1),
            previous: Version(-1),
            routes: Vec::new(),
            replies: vec![None; self.resolvers],
            answers: Vec::new(),
        });
        let request = RoleMessage::GetCommitVersion { proxy: self.id, number };
        network.send(self.generation, request);
    }

    /// A version for a batch: batches go to the resolvers in the proxy's own order.
    pub(crate) fn assigned(&mut self, assigned: Assigned, network: &mut Network) {
        if (assigned.number as usize) < self.sent {
            return;
        }
        self.early.insert(assigned.number, assigned);
        while let Some(next) = self.early.remove(&(self.sent as u64)) {
            let late = network.planted.is(PlantedBug::LateMove);
            if !late {
                self.take_moves(&next);
            }
            self.send_batch(&next, network);
            if late {
                self.take_moves(&next);
            }
            self.sent += 1;
        }
    }

    fn take_moves(&mut self, assigned: &Assigned) {
        let (since, moves) = &*assigned.moves;
        moves.iter().for_each(|change| self.owners.assign(change, *since));
    }

    fn send_batch(&mut self, assigned: &Assigned, network: &mut Network) {
        let number = self.sent;
        let received = self.received();
        let transactions = self.batches[number].transactions.clone();
        let mut requests: Vec<ResolveRequest> = (0..self.resolvers)
            .map(|resolver| ResolveRequest {
                proxy: Some(self.id),
                resolver,
                version: assigned.version,
                previous: assigned.previous,
                received,
                transactions: Vec::new(),
            })
            .collect();
        let route = |transaction: &Rc<CommitRequest>| self.route(transaction, &mut requests, network);
        let routes = transactions.iter().map(route).collect();
        let batch = &mut self.batches[number];
        batch.state = State::Resolvers;
        (batch.version, batch.previous) = (assigned.version, assigned.previous);
        batch.routes = routes;
        self.numbers.insert(assigned.version, number);
        for request in requests {
            network.send(self.generation, RoleMessage::Resolve(Rc::new(request)));
        }
        self.forget_owners(assigned.previous, network);
    }

    /// The version up to which no answer of a resolver is needed any more.
    fn received(&self) -> Version {
        let done = self.batches.iter().take_while(|batch| batch.state == State::Nothing);
        done.last().map_or(Version(-1), |batch| batch.version)
    }

    /// Puts a transaction into the requests of all resolvers that it touches: whole ranges, never cut.
    fn route(
        &self,
        transaction: &CommitRequest,
        requests: &mut [ResolveRequest],
        network: &mut Network,
    ) -> Vec<Route> {
        let mut routes = BTreeMap::new();
        for (index, range) in transaction.reads.iter().enumerate() {
            let readers = self.readers(range, transaction.read_version, network);
            for resolver in readers.iter() {
                let (sent, route) = place(&mut routes, requests, resolver, transaction);
                sent.reads.push(range.clone());
                route.reads.push(index);
            }
        }
        for range in transaction.mutations.iter().map(|mutation| mutation.range()) {
            let writers = self.owners.of_write(&range);
            note_owners(&writers, network);
            for resolver in writers.iter() {
                let (sent, _) = place(&mut routes, requests, resolver, transaction);
                sent.writes.push(range.clone());
            }
        }
        routes.into_values().collect()
    }

    fn readers(&self, range: &Range, read_version: Version, network: &mut Network) -> Routes {
        let readers = match network.planted.is(PlantedBug::ForgetEarlierOwners) {
            true => self.owners.of_write(range),
            false => self.owners.of_read(range, read_version),
        };
        note_owners(&readers, network);
        readers
    }

    fn forget_owners(&mut self, previous: Version, network: &mut Network) {
        let early = network.planted.is(PlantedBug::ForgetOwnersEarly);
        let remembered = if early { self.life / 8 } else { self.life };
        for _ in 0..self.owners.forget(Version(previous.0 - remembered)) {
            network.faults.counters.note(Effect::OwnerForgotten);
        }
    }

    /// A resolver's decisions about a batch.
    ///
    /// # Errors
    /// Two answers that differ, or a report that cannot be used.
    pub(crate) fn resolved(
        &mut self,
        reply: Rc<ResolveReply>,
        network: &mut Network,
    ) -> Result<(), Violation> {
        let (resolver, version) = (reply.resolver, reply.version);
        let number = self.numbers[&version];
        let batch = &mut self.batches[number];
        if let Some(before) = &batch.replies[resolver] {
            let same = *before == reply;
            return if same { Ok(()) } else { Err(Violation::AnswersDiffer { resolver, version }) };
        }
        batch.check_reports(&reply)?;
        batch.replies[resolver] = Some(reply);
        if batch.replies.iter().all(Option::is_some) {
            batch.state = State::Log;
            batch.decide(network);
            let push = batch.push(self.id);
            network.send(self.generation, RoleMessage::Push(Rc::new(push)));
        }
        Ok(())
    }

    /// A batch is durable. Before any client hears of it, the sequencer has to.
    pub(crate) fn pushed(&mut self, version: Version, network: &mut Network) {
        let number = self.numbers[&version];
        let again = self.batches[number].state != State::Log;
        if again && !network.planted.is(PlantedBug::DuplicateAnswer) {
            return;
        }
        if again || network.planted.is(PlantedBug::ReplyBeforeReport) {
            self.batches[number].answer(network);
        }
        if !again {
            self.batches[number].state = State::Sequencer;
            network.send(self.generation, RoleMessage::ReportCommitted(self.id, version));
        }
    }

    /// The sequencer knows of a batch: its clients get their answers.
    pub(crate) fn reported(&mut self, version: Version, network: &mut Network) {
        let batch = &mut self.batches[self.numbers[&version]];
        batch.state = State::Nothing;
        if !network.planted.is(PlantedBug::ReplyBeforeReport) {
            batch.answer(network);
        }
    }
}

/// The transaction's place in a resolver's request, made when it is first needed.
fn place<'a>(
    routes: &'a mut BTreeMap<usize, Route>,
    requests: &'a mut [ResolveRequest],
    resolver: usize,
    transaction: &CommitRequest,
) -> (&'a mut Sent, &'a mut Route) {
    let sent = &mut requests[resolver].transactions;
    let route = routes.entry(resolver).or_insert_with(|| {
        let CommitRequest { read_version, report, .. } = *transaction;
        sent.push(Sent { read_version, report, reads: Vec::new(), writes: Vec::new() });
        Route { resolver, place: sent.len() - 1, reads: Vec::new() }
    });
    (&mut sent[route.place], route)
}

fn note_owners(routes: &Routes, network: &mut Network) {
    if routes.earlier {
        network.faults.counters.note(Effect::EarlierOwner);
    } else if routes.iter().count() > 1 {
        network.faults.counters.note(Effect::SeveralOwners);
    }
}

impl Batch {
    /// What the commit proxy relies on: a reporting loser has at least one read, and nobody else has any.
    fn check_reports(&self, reply: &ResolveReply) -> Result<(), Violation> {
        for (transaction, routes) in self.transactions.iter().zip(&self.routes) {
            let Some(route) = routes.iter().find(|route| route.resolver == reply.resolver) else { continue };
            let reads: Vec<u32> = reply.reported_of(route.place).map(|(read, _)| read).collect();
            let reports = transaction.report && reply.verdicts[route.place] == Verdict::Conflict;
            let why = match reads.last() {
                None if reports => "a conflict without a read",
                Some(_) if !reports => "a read where none was asked for",
                Some(&last) if last as usize >= route.reads.len() => "a read past the last one",
                _ => continue,
            };
            return Err(Violation::WrongReport { attempt: transaction.attempt, why });
        }
        Ok(())
    }

    /// The least verdict of all resolvers counts.
    fn decide(&mut self, network: &mut Network) {
        let any = network.planted.is(PlantedBug::AnyResolver);
        for (index, routes) in self.routes.iter().enumerate() {
            let verdicts: Vec<Verdict> = routes.iter().map(|route| self.verdict(route)).collect();
            let committed = verdicts.iter().filter(|verdict| **verdict == Verdict::Committed).count();
            let answer = if committed == routes.len() || any && committed > 0 {
                Answer::Committed(Position { version: self.version, index: index as u32 })
            } else if verdicts.contains(&Verdict::Conflict) {
                Answer::Conflict(self.reported(index, network))
            } else {
                Answer::TooOld
            };
            if committed > 0 && committed < routes.len() {
                network.faults.counters.note(Effect::LocalCommit);
            }
            self.answers.push(answer);
        }
    }

    fn reply(&self, resolver: usize) -> &ResolveReply {
        self.replies[resolver].as_ref().expect("all resolvers have replied")
    }

    fn verdict(&self, route: &Route) -> Verdict {
        self.reply(route.resolver).verdicts[route.place]
    }

    /// The conflicting reads as the client numbers them, each once, ascending.
    fn reported(&self, transaction: usize, network: &Network) -> Vec<(usize, Range)> {
        let mut reads: Vec<(usize, Range)> = Vec::new();
        let shift = usize::from(network.planted.is(PlantedBug::ReportOffByOne));
        for route in &self.routes[transaction] {
            for (read, range) in self.reply(route.resolver).reported_of(route.place) {
                let place = (read as usize + shift) % route.reads.len();
                reads.push((route.reads[place], range.clone()));
            }
        }
        reads.sort_by_key(|(read, _)| *read);
        reads.dedup();
        reads
    }

    fn push(&self, proxy: usize) -> Push {
        let mut transactions = Vec::new();
        for (request, answer) in self.transactions.iter().zip(&self.answers) {
            if let Answer::Committed(position) = answer {
                transactions.push(Logged { index: position.index, request: request.clone() });
            }
        }
        Push { proxy, version: self.version, previous: self.previous, transactions }
    }

    fn answer(&self, network: &mut Network) {
        let loses = network.planted.is(PlantedBug::LostReply) && self.transactions.len() >= LARGE_BATCH;
        let count = self.transactions.len() - usize::from(loses);
        for (request, answer) in self.transactions.iter().zip(&self.answers).take(count) {
            network.tell(request.attempt, ClientMessage::Answer(answer.clone()));
        }
    }
}

impl ResolveReply {
    /// The reported reads of one transaction.
    fn reported_of(&self, place: usize) -> impl Iterator<Item = (u32, &Range)> {
        let own = move |(transaction, _, _): &&(u32, u32, Range)| *transaction as usize == place;
        self.reported.iter().filter(own).map(|(_, read, range)| (*read, range))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;
    use crate::planted::Planted;

    /// What is wrong with a reply that reports these reads of a transaction that has two.
    fn wrong(report: bool, verdict: Verdict, reads: &[u32]) -> Option<&'static str> {
        let range = || Range::point(&b"k"[..].into());
        let request = CommitRequest {
            attempt: 3,
            read_version: Version(1),
            report,
            reads: vec![range(), range()],
            mutations: Vec::new(),
        };
        let batch = Batch {
            state: State::Resolvers,
            transactions: vec![Rc::new(request)],
            version: Version(2),
            previous: Version(1),
            routes: vec![vec![Route { resolver: 0, place: 0, reads: vec![0, 1] }]],
            replies: vec![None],
            answers: Vec::new(),
        };
        let reported = reads.iter().map(|&read| (0, read, range())).collect();
        let reply = ResolveReply { resolver: 0, version: Version(2), verdicts: vec![verdict], reported };
        match batch.check_reports(&reply) {
            Ok(()) => None,
            Err(Violation::WrongReport { attempt: 3, why }) => Some(why),
            Err(other) => panic!("{other}"),
        }
    }

    #[test]
    fn a_report_names_reads_that_there_are_and_only_where_one_was_asked_for() {
        for reads in [&[0][..], &[1], &[0, 1]] {
            assert_eq!(wrong(true, Verdict::Conflict, reads), None, "{reads:?}");
        }
        for reads in [&[2][..], &[0, 2], &[7]] {
            assert_eq!(wrong(true, Verdict::Conflict, reads), Some("a read past the last one"), "{reads:?}");
        }
        assert_eq!(wrong(true, Verdict::Conflict, &[]), Some("a conflict without a read"));
        for (report, verdict) in
            [(false, Verdict::Conflict), (true, Verdict::Committed), (true, Verdict::TooOld)]
        {
            assert_eq!(wrong(report, verdict, &[0]), Some("a read where none was asked for"));
            assert_eq!(wrong(report, verdict, &[]), None);
        }
    }

    /// The answer to a reporting transaction of one read, by what its resolvers say, and whether only some of them commit.
    fn decided(verdicts: &[Verdict]) -> (Answer, bool) {
        let range = Range::point(&b"k"[..].into());
        let request = CommitRequest {
            attempt: 3,
            read_version: Version(1),
            report: true,
            reads: vec![range.clone()],
            mutations: Vec::new(),
        };
        let reply = |(resolver, &verdict): (usize, &Verdict)| {
            let reported =
                if verdict == Verdict::Conflict { vec![(0, 0, range.clone())] } else { Vec::new() };
            Some(Rc::new(ResolveReply { resolver, version: Version(2), verdicts: vec![verdict], reported }))
        };
        let route = |resolver| Route { resolver, place: 0, reads: vec![0] };
        let mut batch = Batch {
            state: State::Resolvers,
            transactions: vec![Rc::new(request)],
            version: Version(2),
            previous: Version(1),
            routes: vec![(0..verdicts.len()).map(route).collect()],
            replies: verdicts.iter().enumerate().map(reply).collect(),
            answers: Vec::new(),
        };
        let mut network = Network::new(&Plan { faults: Vec::new(), ..Plan::new(1) }, Planted::default());
        batch.decide(&mut network);
        let local = network.faults.counters.iter().find(|(name, _)| *name == Effect::LocalCommit.name());
        (batch.answers.remove(0), local.is_some_and(|(_, count)| count > 0))
    }

    #[test]
    fn all_resolvers_have_to_commit_and_a_read_is_reported_once() {
        use Verdict::{Committed, Conflict, TooOld};
        let committed = Answer::Committed(Position { version: Version(2), index: 0 });
        let conflict = Answer::Conflict(vec![(0, Range::point(&b"k"[..].into()))]);
        assert_eq!(decided(&[Committed, Committed]), (committed, false));
        assert_eq!(decided(&[Conflict, Conflict]), (conflict.clone(), false));
        assert_eq!(decided(&[Committed, Conflict, TooOld]), (conflict, true));
        assert_eq!(decided(&[TooOld, Committed]), (Answer::TooOld, true));
    }
}
