//! The world: the roles of the present generation, the clients, and what happens when a generation ends.

use crate::check::{Checked, check_history};
use crate::client::{Attempt, Client, Intent, State, Wanted};
use crate::fault::{Counters, Effect, FaultKind, Time};
use crate::history::{Outcome, Record};
use crate::keys::Range;
use crate::log::Log;
use crate::message::{
    Answer, AttemptId, ClientMessage, CommitRequest, Event, Generation, ResolveRequest, RoleMessage,
};
use crate::network::Network;
use crate::owners::{Move, movable};
use crate::plan::{FORCED_JUMP, OPERATOR_VERSION, Plan, RECOVERY_JUMP, Settings, purpose, stream};
use crate::planted::{Planted, PlantedBug};
use crate::proxy::Proxy;
use crate::resolver::{Histories, Resolver};
use crate::sequencer::Sequencer;
use crate::trace::Trace;
use crate::violation::Violation;
use resolver_index::Strategy;
use resolver_types::{Retention, Version};
use resolver_workloads::Rng;
use std::rc::Rc;

/// More events than any run needs.
const MOST_EVENTS: u64 = 5_000_000;

/// Where the first generation's versions begin.
const FIRST_END: Version = Version(1);

/// How long proxies go on after clients have stopped, at most, in ticks.
const GRACE_TICKS: u64 = 20_000;

/// The roles that end together.
struct Roles {
    generation: Generation,
    /// Its recovery transaction is through: clients are served.
    open: bool,
    /// It has ended, and goes on only because it does not know.
    ended: bool,
    recovery: AttemptId,
    sequencer: Sequencer,
    proxies: Vec<Proxy>,
    resolvers: Vec<Resolver>,
    /// By role: proxies first, then resolvers: until when it does nothing.
    paused: Vec<Time>,
}

/// How far the next generation's versions jump.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Jump {
    Ordinary,
    Forced,
    Operator,
}

/// One run, from the first event to the last.
pub(crate) struct World {
    plan: Plan,
    /// Of the resolvers' trees.
    strategy: Strategy,
    network: Network,
    log: Log,
    roles: Option<Roles>,
    /// The number of the generation that is, or will be next.
    generation: Generation,
    jump: Jump,
    clients: Vec<Client>,
    attempts: Vec<Attempt>,
    unfinished: usize,
    hot_until: Time,
    idle_until: Time,
    trace: Trace,
    events: u64,
}

/// What a run that ended leaves.
pub(crate) struct Ended {
    pub(crate) violation: Option<Violation>,
    pub(crate) trace_hash: String,
    pub(crate) counters: Counters,
    pub(crate) history: Vec<Record>,
    pub(crate) checked: Checked,
    pub(crate) events: u64,
}

impl World {
    pub(crate) fn new(plan: Plan, strategy: Strategy, planted: Planted) -> World {
        let network = Network::new(&plan, planted);
        let clients = (0..plan.settings.clients).map(|id| Client::new(&plan, id)).collect();
        World {
            plan,
            strategy,
            network,
            log: Log::new(FIRST_END),
            roles: None,
            generation: 1,
            jump: Jump::Ordinary,
            clients,
            attempts: Vec::new(),
            unfinished: 0,
            hot_until: 0,
            idle_until: 0,
            trace: Trace::new(),
            events: 0,
        }
    }

    /// Runs to the end, or to the first violation.
    pub(crate) fn run(mut self) -> Ended {
        let result = self.run_events().and_then(|()| self.check_answers());
        let history = self.history();
        let checked = check_history(&history);
        let violation = match (result, &checked) {
            (Err(violation), _) => Some(violation),
            (Ok(()), Err(unexplained)) => Some(unexplained.clone().into()),
            (Ok(()), Ok(_)) => None,
        };
        Ended {
            violation,
            trace_hash: self.trace.hex(),
            counters: self.network.faults.counters,
            history,
            checked: checked.unwrap_or_default(),
            events: self.events,
        }
    }

    fn run_events(&mut self) -> Result<(), Violation> {
        self.network.after(0, Event::Recovered(1));
        for client in 0..self.clients.len() {
            self.schedule_begin(client);
        }
        for &kind in FaultKind::ALL.iter().filter(|kind| strikes_by_time(**kind)) {
            for at in self.network.faults.times(kind) {
                self.network.after(at, Event::Fault(kind));
            }
        }
        while let Some(event) = self.network.next() {
            self.events += 1;
            if self.events > MOST_EVENTS {
                return Err(Violation::Endless(MOST_EVENTS));
            }
            self.trace.add(&[self.network.now()]);
            self.trace.add(&event.words());
            self.happen(event)?;
        }
        self.validate_resolvers()
    }

    fn happen(&mut self, event: Event) -> Result<(), Violation> {
        match event {
            Event::Begin(client) => self.begin(client),
            Event::Client(attempt, message) => return self.hear(attempt, message),
            Event::Fault(kind) => self.strike(kind),
            Event::Recovered(generation) if generation == self.generation => return self.start_generation(),
            Event::Recovered(_) => {}
            Event::Role(generation, message) => return self.deliver(generation, message),
        }
        Ok(())
    }

    fn ticks(&self, ticks: u64) -> Time {
        ticks * self.plan.settings.tick
    }

    // Clients.

    fn schedule_begin(&mut self, client: usize) {
        let retries = self.clients[client].again.is_some();
        let most = if retries { 10 } else { self.plan.settings.think_ticks };
        let most = self.ticks(most);
        let wait = 1 + self.clients[client].rng.below(most);
        self.network.after(wait, Event::Begin(client));
    }

    fn begin(&mut self, client: usize) {
        let now = self.network.now();
        if now >= self.plan.settings.duration {
            return;
        }
        if now < self.idle_until {
            self.network.after(self.idle_until - now, Event::Begin(client));
            return;
        }
        let hot = now < self.hot_until;
        let person = &mut self.clients[client];
        let (intent, tries) = person.next_intent(&self.plan.settings, hot, &mut self.network);
        let mut attempt = Attempt::new(Some(client), intent, tries, now);
        let chosen = person.chosen_version(&mut self.network);
        attempt.old_version = chosen.is_some();
        attempt.read_version = chosen;
        let id = self.add_attempt(attempt);
        match chosen {
            Some(_) => self.start_reads(id),
            None => self.ask_read_version(id),
        }
    }

    fn add_attempt(&mut self, attempt: Attempt) -> AttemptId {
        self.attempts.push(attempt);
        self.unfinished += 1;
        self.attempts.len() - 1
    }

    fn ask_read_version(&mut self, id: AttemptId) {
        if let Some(roles) = &self.roles {
            self.network.send(roles.generation, RoleMessage::GetReadVersion(id));
        }
        let patience = self.ticks(80);
        self.network.after(patience, Event::Client(id, ClientMessage::AskAgain));
    }

    fn start_reads(&mut self, id: AttemptId) {
        self.attempts[id].state = State::Reads;
        let most = self.ticks(20);
        let wait = 1 + self.rng_of(id).below(most);
        self.network.after(wait, Event::Client(id, ClientMessage::Wake));
    }

    fn rng_of(&mut self, id: AttemptId) -> &mut Rng {
        let client = self.attempts[id].client.expect("only clients draw");
        &mut self.clients[client].rng
    }

    /// A message comes to a client.
    fn hear(&mut self, id: AttemptId, message: ClientMessage) -> Result<(), Violation> {
        match (message, self.attempts[id].state) {
            (ClientMessage::AskAgain, State::ReadVersion) => self.ask_read_version(id),
            (ClientMessage::ReadVersion(version), State::ReadVersion) => {
                self.attempts[id].read_version = Some(version);
                if let Some(client) = self.attempts[id].client {
                    self.clients[client].seen.push(version);
                }
                self.start_reads(id);
            }
            (ClientMessage::Wake, State::Reads) => self.read(id),
            (ClientMessage::Wake, State::Proxy) => self.send_commit(id),
            (ClientMessage::Answer(answer), _) => return self.hear_answer(id, answer),
            (ClientMessage::Broken, State::Answer) => {
                self.network.faults.counters.note(Effect::Unknown);
                self.finish(id, Outcome::Unknown);
            }
            _ => {}
        }
        Ok(())
    }

    fn read(&mut self, id: AttemptId) {
        let attempt = &mut self.attempts[id];
        let version = attempt.read_version.expect("a read version comes before the reads");
        attempt.reads = attempt.intent.reads.iter().map(|range| self.log.read(range, version)).collect();
        if attempt.intent.writes.is_empty() {
            self.finish(id, Outcome::ReadOnly);
            return;
        }
        attempt.state = State::Proxy;
        let now = self.network.now();
        let hold = self.network.faults.strike(FaultKind::Hold, now).unwrap_or(0);
        self.network.after(hold, Event::Client(id, ClientMessage::Wake));
    }

    fn send_commit(&mut self, id: AttemptId) {
        let Some(roles) = self.roles.as_ref().filter(|roles| roles.open && !roles.ended) else {
            let later = self.ticks(20);
            self.network.after(later, Event::Client(id, ClientMessage::Wake));
            return;
        };
        let (generation, proxies) = (roles.generation, roles.proxies.len() as u64);
        let proxy = self.rng_of(id).below(proxies) as usize;
        let attempt = &mut self.attempts[id];
        attempt.state = State::Answer;
        attempt.generation = Some(generation);
        let request = Rc::new(attempt.request(id));
        self.network.send(generation, RoleMessage::Commit(proxy, request));
        let now = self.network.now();
        if let Some(after) = self.network.faults.strike(FaultKind::Disconnect, now) {
            self.network.after(after, Event::Client(id, ClientMessage::Broken));
        }
    }

    fn hear_answer(&mut self, id: AttemptId, answer: Answer) -> Result<(), Violation> {
        let attempt = &mut self.attempts[id];
        attempt.answers += 1;
        if attempt.answers > 1 {
            return Err(Violation::AnsweredTwice { attempt: id, answers: attempt.answers });
        }
        if attempt.state != State::Answer {
            return Ok(());
        }
        let outcome = match &answer {
            Answer::Committed(position) => {
                attempt.told = Some(*position);
                Outcome::Committed
            }
            Answer::Conflict(reported) => {
                check_report(id, attempt, reported)?;
                self.network.faults.counters.note(Effect::Conflict);
                if !reported.is_empty() {
                    self.network.faults.counters.note(Effect::Reported);
                }
                Outcome::Aborted
            }
            Answer::TooOld => Outcome::Aborted,
        };
        self.finish(id, outcome);
        self.recovery_answered(id, outcome)
    }

    fn finish(&mut self, id: AttemptId, outcome: Outcome) {
        let now = self.network.now();
        let attempt = &mut self.attempts[id];
        attempt.state = State::Nothing;
        attempt.outcome = Some(outcome);
        attempt.end = Some(now);
        self.unfinished -= 1;
        if let Some(client) = attempt.client {
            self.clients[client].plan_retry(attempt, &mut self.network);
            self.schedule_begin(client);
        }
    }

    // Messages to roles.

    fn deliver(&mut self, generation: Generation, message: RoleMessage) -> Result<(), Violation> {
        let Some(roles) = self.roles.as_mut().filter(|roles| roles.generation == generation) else {
            self.network.faults.counters.note(Effect::OldMessage);
            return Ok(());
        };
        if let Some(until) = roles.paused_until(&message).filter(|until| *until > self.network.now()) {
            let wait = until - self.network.now();
            self.network.after(wait, Event::Role(generation, message));
            return Ok(());
        }
        let network = &mut self.network;
        match message {
            RoleMessage::GetReadVersion(attempt) if !roles.ended => {
                roles.sequencer.read_version(attempt, network);
            }
            RoleMessage::GetReadVersion(_) => {}
            RoleMessage::GetCommitVersion { proxy, number } => {
                roles.sequencer.assign(proxy, number, network);
            }
            RoleMessage::CommitVersion(proxy, assigned) => roles.proxies[proxy].assigned(assigned, network),
            RoleMessage::Commit(proxy, request) => roles.proxies[proxy].commit(request, network),
            RoleMessage::Tick(proxy) => self.tick(generation, proxy),
            RoleMessage::Resolve(request) => {
                let resolver = &mut roles.resolvers[request.resolver];
                resolver.receive(request, network)?;
            }
            RoleMessage::Resolved(proxy, reply) => {
                self.trace.add(&reply.verdicts.iter().map(|verdict| *verdict as u64).collect::<Vec<_>>());
                roles.proxies[proxy].resolved(reply, network)?;
            }
            RoleMessage::Push(push) => self.log.push(&push, network),
            RoleMessage::Pushed(proxy, version) => roles.proxies[proxy].pushed(version, network),
            RoleMessage::ReportCommitted(proxy, version) => roles.sequencer.report(proxy, version, network),
            RoleMessage::Reported(proxy, version) => roles.proxies[proxy].reported(version, network),
        }
        Ok(())
    }

    fn tick(&mut self, generation: Generation, proxy: usize) {
        let now = self.network.now();
        let Settings { duration, batch_ticks, .. } = self.plan.settings;
        let Some(roles) = &mut self.roles else { return };
        roles.proxies[proxy].tick(&mut self.network);
        let goes_on = now < duration || self.unfinished > 0 && now < duration + self.ticks(GRACE_TICKS);
        if goes_on {
            let wait = self.ticks(batch_ticks) + (now % 7) * self.plan.settings.tick;
            self.network.after(wait, Event::Role(generation, RoleMessage::Tick(proxy)));
        }
    }

    // Faults that strike by time.

    fn strike(&mut self, kind: FaultKind) {
        let now = self.network.now();
        if now >= self.plan.settings.duration {
            return;
        }
        if !self.can_strike(kind) {
            let later = self.ticks(50);
            self.network.after(later, Event::Fault(kind));
            return;
        }
        let Some(amount) = self.network.faults.strike(kind, now) else { return };
        match kind {
            FaultKind::HotKeys => self.hot_until = now + amount,
            FaultKind::IdleGap => self.idle_until = now + amount,
            FaultKind::PauseProxy | FaultKind::PauseResolver => self.pause(kind, amount),
            FaultKind::MoveRange => self.move_range(amount),
            FaultKind::Recovery => self.end_generation(Jump::Ordinary, amount),
            FaultKind::ForcedRecovery => self.end_generation(Jump::Forced, amount),
            FaultKind::OperatorJump => self.end_generation(Jump::Operator, amount),
            _ => unreachable!("{} strikes what it fits, not by time", kind.name()),
        }
    }

    fn can_strike(&self, kind: FaultKind) -> bool {
        let live = self.roles.as_ref().filter(|roles| !roles.ended);
        match kind {
            FaultKind::PauseProxy | FaultKind::PauseResolver => live.is_some(),
            FaultKind::MoveRange => live.is_some_and(|roles| roles.resolvers.len() > 1),
            _ => true,
        }
    }

    fn pause(&mut self, kind: FaultKind, amount: u64) {
        let until = self.network.now() + amount;
        let roles = self.roles.as_mut().expect("a pause strikes a live generation");
        let (first, count) = match kind {
            FaultKind::PauseProxy => (0, roles.proxies.len()),
            _ => (roles.proxies.len(), roles.resolvers.len()),
        };
        roles.paused[first + amount as usize % count] = until;
    }

    fn move_range(&mut self, bits: u64) {
        let mut rng = Rng::new(bits);
        let roles = self.roles.as_mut().expect("a move strikes a live generation");
        let keys = &self.plan.settings.keys;
        let count = keys.keys().len() as u64;
        let first = rng.below(count) as usize;
        let mut range = keys.range(first, 1 + rng.below(count) as usize);
        match rng.below(4) {
            0 => range.begin = b""[..].into(),
            1 => range.end = b"\xff"[..].into(),
            // A border behind a key instead of at it.
            2 => range.begin = Range::point(&range.begin).end,
            _ => {}
        }
        let to = rng.below(roles.resolvers.len() as u64) as usize;
        if movable(&range) {
            roles.sequencer.move_range(Move { range, to });
        }
    }

    // Generations.

    /// The generation is over: nothing more becomes durable, but its roles go on until the next one begins.
    fn end_generation(&mut self, jump: Jump, recovery_time: u64) {
        if self.roles.as_ref().is_none_or(|roles| roles.ended || !roles.open) {
            self.network.faults.counters.note(Effect::NestedRecovery);
        }
        self.log.lock();
        self.generation += 1;
        self.jump = self.jump.max(jump);
        self.network.after(recovery_time, Event::Recovered(self.generation));
        let Some(roles) = &mut self.roles else { return };
        if std::mem::replace(&mut roles.ended, true) {
            return;
        }
        let waiting = |attempt: &Attempt| {
            attempt.state == State::Answer && attempt.generation == Some(roles.generation)
        };
        for id in (0..self.attempts.len()).filter(|&id| waiting(&self.attempts[id])) {
            self.network.tell(id, ClientMessage::Broken);
        }
    }

    fn start_generation(&mut self) -> Result<(), Violation> {
        self.validate_resolvers()?;
        let mut rng = stream(self.plan.seed, purpose::GENERATIONS + u64::from(self.generation));
        let settings = &self.plan.settings;
        let (proxies, resolvers) =
            (1 + rng.below(settings.max_proxies), 1 + rng.below(settings.max_resolvers));
        let (proxies, resolvers) = (proxies as usize, resolvers as usize);
        let (generation, life) = (self.generation, settings.life);
        let end = self.log.durable();
        let first = self.first_version(end);
        let histories = self.recruit(resolvers, end);
        let resolver = |(id, histories)| Resolver::new(generation, id, life, histories);
        let mut roles = Roles {
            generation,
            open: false,
            ended: false,
            recovery: self.attempts.len(),
            sequencer: Sequencer::new(generation, (end, first), proxies, self.network.now()),
            proxies: (0..proxies).map(|id| Proxy::new(generation, id, life, first, resolvers)).collect(),
            resolvers: histories.into_iter().enumerate().map(resolver).collect(),
            paused: vec![0; proxies + resolvers],
        };
        for (id, resolver) in roles.resolvers.iter_mut().enumerate() {
            resolver.receive(Rc::new(first_request(id, end)), &mut self.network)?;
        }
        self.log.unlock(generation);
        self.jump = Jump::Ordinary;
        let request = self.recovery_transaction(generation, first);
        roles.proxies[0].commit(Rc::new(request), &mut self.network);
        self.roles = Some(roles);
        self.tick(generation, 0);
        Ok(())
    }

    fn first_version(&self, end: Version) -> Version {
        if self.network.planted.is(PlantedBug::RecoveryWithoutJump) {
            return Version(end.0 + 1);
        }
        match self.jump {
            Jump::Operator if end.0 + RECOVERY_JUMP < OPERATOR_VERSION => Version(OPERATOR_VERSION),
            Jump::Forced => Version(end.0 + FORCED_JUMP),
            _ => Version(end.0 + RECOVERY_JUMP),
        }
    }

    /// Conflict sets for a new generation: new ones, or those of the last one cleared to below its end.
    fn recruit(&mut self, count: usize, end: Version) -> Vec<Histories> {
        let retention = match self.network.planted.is(PlantedBug::RetentionBudget) {
            true => Retention::Budget,
            false => Retention::Window,
        };
        let old = self.roles.take().filter(|_| self.plan.settings.reuse_histories);
        let mut old = old.into_iter().flat_map(|roles| roles.resolvers).map(Resolver::into_histories);
        let budget = self.plan.settings.budget_bytes;
        let recruited = |_| match old.next() {
            Some(mut histories) => {
                histories.clear(Version(end.0 - 1));
                histories
            }
            None => {
                Histories::new(budget, retention, self.strategy).expect("a plan's budget is large enough")
            }
        };
        (0..count).map(recruited).collect()
    }

    /// The first transaction of a generation: it reads at its own version.
    fn recovery_transaction(&mut self, generation: Generation, first: Version) -> CommitRequest {
        let system = &self.plan.settings.keys.system()[0];
        let intent = Intent { writes: vec![Wanted::Set(system.clone())], ..Intent::default() };
        let reads = vec![Range::point(system)];
        let mut attempt = Attempt::new(None, Rc::new(intent), 0, self.network.now());
        attempt.read_version = Some(first);
        attempt.state = State::Answer;
        attempt.generation = Some(generation);
        let id = self.add_attempt(attempt);
        CommitRequest { reads, ..self.attempts[id].request(id) }
    }

    /// Once the recovery transaction is through, the generation serves clients.
    fn recovery_answered(&mut self, id: AttemptId, outcome: Outcome) -> Result<(), Violation> {
        let Some(roles) = self.roles.as_mut().filter(|roles| roles.recovery == id) else { return Ok(()) };
        if outcome != Outcome::Committed {
            return Err(Violation::RecoveryRejected(roles.generation));
        }
        roles.open = true;
        let (generation, proxies) = (roles.generation, roles.proxies.len());
        for proxy in 1..proxies {
            self.tick(generation, proxy);
        }
        Ok(())
    }

    // Checks.

    fn validate_resolvers(&self) -> Result<(), Violation> {
        let resolvers = self.roles.iter().flat_map(|roles| &roles.resolvers);
        resolvers.into_iter().try_for_each(Resolver::validate)
    }

    /// Every transaction came to an end, and those of the last generation were answered once.
    fn check_answers(&self) -> Result<(), Violation> {
        let last = self.roles.as_ref().filter(|roles| !roles.ended).map(|roles| roles.generation);
        for (id, attempt) in self.attempts.iter().enumerate() {
            let owed = attempt.generation.is_some() && attempt.generation == last;
            if attempt.outcome.is_none() || owed && attempt.answers == 0 {
                return Err(Violation::NeverAnswered { attempt: id });
            }
            let logged = self.log.position(id);
            match attempt.told {
                Some(told) if logged != Some(told) => {
                    return Err(Violation::WrongPosition { attempt: id, told, logged });
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn history(&self) -> Vec<Record> {
        let record = |(id, attempt): (usize, &Attempt)| attempt.record(id, self.log.position(id));
        self.attempts.iter().enumerate().map(record).collect()
    }
}

impl Roles {
    /// Until when the role that a message is for does nothing.
    fn paused_until(&self, message: &RoleMessage) -> Option<Time> {
        let role = match message {
            RoleMessage::CommitVersion(proxy, _)
            | RoleMessage::Commit(proxy, _)
            | RoleMessage::Tick(proxy)
            | RoleMessage::Resolved(proxy, _)
            | RoleMessage::Pushed(proxy, _)
            | RoleMessage::Reported(proxy, _) => *proxy,
            RoleMessage::Resolve(request) => self.proxies.len() + request.resolver,
            _ => return None,
        };
        Some(self.paused[role])
    }
}

/// Whether a fault happens at its time, whatever else does.
fn strikes_by_time(kind: FaultKind) -> bool {
    matches!(
        kind,
        FaultKind::HotKeys
            | FaultKind::IdleGap
            | FaultKind::PauseProxy
            | FaultKind::PauseResolver
            | FaultKind::MoveRange
            | FaultKind::Recovery
            | FaultKind::ForcedRecovery
            | FaultKind::OperatorJump
    )
}

/// The empty batch that a generation begins with, at the end of the one before.
fn first_request(resolver: usize, end: Version) -> ResolveRequest {
    ResolveRequest {
        proxy: None,
        resolver,
        version: end,
        previous: Version(-1),
        received: Version(-1),
        transactions: Vec::new(),
    }
}

/// A report names reads that the client has, each as the resolver meant it.
fn check_report(id: AttemptId, attempt: &Attempt, reported: &[(usize, Range)]) -> Result<(), Violation> {
    let reads = &attempt.intent.reads;
    let why = if !attempt.intent.report && !reported.is_empty() {
        "nobody asked for it"
    } else if attempt.intent.report && attempt.client.is_some() && reported.is_empty() {
        "it is empty"
    } else if reported.iter().any(|(read, range)| reads.get(*read) != Some(range)) {
        "it names another read than the resolver meant"
    } else if !reported.is_sorted_by_key(|(read, _)| *read) {
        "it is not in order"
    } else {
        return Ok(());
    };
    Err(Violation::WrongReport { attempt: id, why })
}
