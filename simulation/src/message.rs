//! What the roles send each other.

use crate::fault::FaultKind;
use crate::history::Position;
use crate::keys::{Mutation, Range};
use crate::owners::Move;
use resolver_types::{Verdict, Version};
use std::rc::Rc;

/// One try of a client to commit a transaction; its place in the world's list.
pub(crate) type AttemptId = usize;

/// Which generation of roles, counted from 1.
pub(crate) type Generation = u32;

/// What a client asks a proxy to commit.
#[derive(Debug)]
pub(crate) struct CommitRequest {
    pub(crate) attempt: AttemptId,
    pub(crate) read_version: Version,
    pub(crate) report: bool,
    pub(crate) reads: Vec<Range>,
    pub(crate) mutations: Vec<Mutation>,
}

/// What a client is told about its transaction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Answer {
    Committed(Position),
    /// With each reported read: its index in the request, and the range that the resolver meant.
    Conflict(Vec<(usize, Range)>),
    TooOld,
}

/// A version for a proxy's batch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Assigned {
    /// The proxy's own number of the request.
    pub(crate) number: u64,
    pub(crate) version: Version,
    pub(crate) previous: Version,
    /// Key space that moves from a version on, told to each proxy once.
    pub(crate) moves: Rc<(Version, Vec<Move>)>,
}

/// A transaction as one resolver gets it: whole ranges, but only those that touch its keys.
#[derive(Clone, Debug)]
pub(crate) struct Sent {
    pub(crate) read_version: Version,
    pub(crate) report: bool,
    pub(crate) reads: Vec<Range>,
    pub(crate) writes: Vec<Range>,
}

/// A batch for one resolver.
#[derive(Clone, Debug)]
pub(crate) struct ResolveRequest {
    /// Whom to answer; `None` for the first request of a generation.
    pub(crate) proxy: Option<usize>,
    pub(crate) resolver: usize,
    pub(crate) version: Version,
    pub(crate) previous: Version,
    /// The proxy needs no answer at or below this version any more.
    pub(crate) received: Version,
    pub(crate) transactions: Vec<Sent>,
}

/// A resolver's decisions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ResolveReply {
    pub(crate) resolver: usize,
    pub(crate) version: Version,
    pub(crate) verdicts: Vec<Verdict>,
    /// Transaction, read among those that this resolver was sent, and that read's range.
    pub(crate) reported: Vec<(u32, u32, Range)>,
}

/// A committed transaction on its way to the log.
#[derive(Clone, Debug)]
pub(crate) struct Logged {
    pub(crate) index: u32,
    pub(crate) request: Rc<CommitRequest>,
}

/// A batch for the log.
#[derive(Debug)]
pub(crate) struct Push {
    pub(crate) proxy: usize,
    pub(crate) version: Version,
    pub(crate) previous: Version,
    pub(crate) transactions: Vec<Logged>,
}

/// What arrives at a role of a generation.
#[derive(Clone, Debug)]
pub(crate) enum RoleMessage {
    /// To the sequencer: a client wants a read version.
    GetReadVersion(AttemptId),
    /// To the sequencer: a proxy wants a commit version.
    GetCommitVersion { proxy: usize, number: u64 },
    /// To a proxy: its version.
    CommitVersion(usize, Assigned),
    /// To a proxy: a client's transaction.
    Commit(usize, Rc<CommitRequest>),
    /// To a proxy, from itself: time for a batch.
    Tick(usize),
    /// To a resolver: a batch.
    Resolve(Rc<ResolveRequest>),
    /// To a proxy: a resolver's decisions.
    Resolved(usize, Rc<ResolveReply>),
    /// To the log: a batch.
    Push(Rc<Push>),
    /// To a proxy: the batch of this version is durable.
    Pushed(usize, Version),
    /// To the sequencer: clients may read at this version.
    ReportCommitted(usize, Version),
    /// To a proxy: the sequencer knows.
    Reported(usize, Version),
}

/// What arrives at a client, about one attempt.
#[derive(Clone, Debug)]
pub(crate) enum ClientMessage {
    /// From itself: time for the next step.
    Wake,
    /// From itself: if there is no read version yet, ask again.
    AskAgain,
    /// The read version, and whose.
    ReadVersion(Version),
    /// The outcome.
    Answer(Answer),
    /// The connection to the proxy is gone.
    Broken,
}

/// Something that happens at a moment.
#[derive(Clone, Debug)]
pub(crate) enum Event {
    Role(Generation, RoleMessage),
    Client(AttemptId, ClientMessage),
    /// The next transaction of a client.
    Begin(usize),
    /// A scheduled fault that strikes by time.
    Fault(FaultKind),
    /// The next generation is ready, unless another recovery began since.
    Recovered(Generation),
}

impl RoleMessage {
    /// The kinds of fault that delay a message like this, and that repeat it.
    pub(crate) fn faults(&self) -> (Option<FaultKind>, Option<FaultKind>) {
        use FaultKind::*;
        match self {
            RoleMessage::Resolve(_) => (Some(DelayResolve), Some(DuplicateResolve)),
            RoleMessage::Resolved(..) => (Some(DelayReply), Some(DuplicateReply)),
            RoleMessage::GetCommitVersion { .. } | RoleMessage::CommitVersion(..) => {
                (Some(DelayVersion), Some(DuplicateVersion))
            }
            RoleMessage::Push(_) | RoleMessage::Pushed(..) => (Some(DelayPush), Some(DuplicatePush)),
            RoleMessage::Commit(..) | RoleMessage::GetReadVersion(_) => (Some(DelayClient), None),
            RoleMessage::ReportCommitted(..) | RoleMessage::Reported(..) => (Some(DelayVersion), None),
            RoleMessage::Tick(_) => (None, None),
        }
    }

    /// What the trace holds of it: kind, role or attempt, version or number.
    fn words(&self) -> [u64; 3] {
        let version = |version: &Version| version.0 as u64;
        match self {
            RoleMessage::GetReadVersion(attempt) => [10, *attempt as u64, 0],
            RoleMessage::GetCommitVersion { proxy, number } => [11, *proxy as u64, *number],
            RoleMessage::CommitVersion(proxy, assigned) => [12, *proxy as u64, version(&assigned.version)],
            RoleMessage::Commit(proxy, request) => [13, *proxy as u64, request.attempt as u64],
            RoleMessage::Tick(proxy) => [14, *proxy as u64, 0],
            RoleMessage::Resolve(request) => [15, request.resolver as u64, version(&request.version)],
            RoleMessage::Resolved(_, reply) => [16, reply.resolver as u64, version(&reply.version)],
            RoleMessage::Push(push) => [17, push.transactions.len() as u64, version(&push.version)],
            RoleMessage::Pushed(proxy, at) => [18, *proxy as u64, version(at)],
            RoleMessage::ReportCommitted(proxy, at) => [19, *proxy as u64, version(at)],
            RoleMessage::Reported(proxy, at) => [20, *proxy as u64, version(at)],
        }
    }
}

impl Event {
    /// What the trace holds of it.
    pub(crate) fn words(&self) -> [u64; 4] {
        match self {
            Event::Role(generation, message) => {
                let [kind, role, value] = message.words();
                [u64::from(*generation), kind, role, value]
            }
            Event::Client(attempt, message) => {
                let (kind, value) = match message {
                    ClientMessage::Wake => (1, 0),
                    ClientMessage::AskAgain => (2, 0),
                    ClientMessage::ReadVersion(version) => (3, version.0 as u64),
                    ClientMessage::Answer(Answer::Committed(position)) => (4, position.version.0 as u64),
                    ClientMessage::Answer(Answer::Conflict(reads)) => (5, reads.len() as u64),
                    ClientMessage::Answer(Answer::TooOld) => (6, 0),
                    ClientMessage::Broken => (7, 0),
                };
                [0, kind, *attempt as u64, value]
            }
            Event::Begin(client) => [0, 8, *client as u64, 0],
            Event::Fault(kind) => [0, 9, *kind as u64, 0],
            Event::Recovered(generation) => [0, 21, u64::from(*generation), 0],
        }
    }
}
