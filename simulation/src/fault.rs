//! Faults: what the seed schedules, what it did, and how often.

use std::collections::{BTreeMap, VecDeque};

/// Simulated time in microseconds; the sequencer hands out one version for each.
pub(crate) type Time = u64;

/// Declares an enum of names for counters.
macro_rules! named {
    ($(#[$doc:meta])* $vis:vis enum $type:ident { $($(#[$variant_doc:meta])* $variant:ident = $name:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        $vis enum $type { $($(#[$variant_doc])* $variant,)* }

        impl $type {
            /// All of them, in their order.
            pub const ALL: &[$type] = &[$($type::$variant,)*];

            /// The name in reports and JSON.
            pub fn name(self) -> &'static str {
                match self { $($type::$variant => $name,)* }
            }
        }
    };
}
pub(crate) use named;

named! {
    /// What can be scheduled.
    pub enum FaultKind {
        /// A request to a resolver arrives late.
        DelayResolve = "delay_resolve",
        /// A request to a resolver arrives twice.
        DuplicateResolve = "duplicate_resolve",
        /// A resolver's reply arrives late.
        DelayReply = "delay_reply",
        /// A resolver's reply arrives twice.
        DuplicateReply = "duplicate_reply",
        /// A proxy's request for a commit version, or the answer, arrives late.
        DelayVersion = "delay_version",
        /// A proxy's request for a commit version, or the answer, arrives twice.
        DuplicateVersion = "duplicate_version",
        /// A push to the log, or its acknowledgement, arrives late.
        DelayPush = "delay_push",
        /// A push to the log, or its acknowledgement, arrives twice.
        DuplicatePush = "duplicate_push",
        /// A client's request, or the answer to it, arrives late.
        DelayClient = "delay_client",
        /// A client loses its connection while it waits for the outcome.
        Disconnect = "disconnect",
        /// A client holds a transaction open before it commits.
        Hold = "hold",
        /// A client reads and commits at a version that it saw long ago.
        OldReadVersion = "old_read_version",
        /// A client tries a rejected transaction again at the same read version.
        StubbornRetry = "stubborn_retry",
        /// A client writes keys of nearly the longest legal length.
        HugeKeys = "huge_keys",
        /// All clients want the same few keys for a while.
        HotKeys = "hot_keys",
        /// All clients are idle for longer than the write life.
        IdleGap = "idle_gap",
        /// A proxy stops for a while.
        PauseProxy = "pause_proxy",
        /// A resolver stops for a while.
        PauseResolver = "pause_resolver",
        /// Part of the key space moves to another resolver.
        MoveRange = "move_range",
        /// The generation ends; the next begins 100,000,000 versions on.
        Recovery = "recovery",
        /// The same, 600,000,000,000 versions on.
        ForcedRecovery = "forced_recovery",
        /// The same, near the greatest version that there is.
        OperatorJump = "operator_jump",
    }
}

named! {
    /// What a run meets on its way: counted, not scheduled.
    pub enum Effect {
        /// A request waited at a resolver for the batch before it.
        OutOfOrder = "out_of_order",
        /// A resolver answered a request that it had answered before.
        AnsweredAgain = "answered_again",
        /// A request came for a batch whose answer the resolver had given up.
        TooLateToAnswer = "too_late_to_answer",
        /// A message came for a generation that is gone.
        OldMessage = "old_generation_message",
        /// A transaction whose read version is of an older generation came to a proxy.
        OldTransaction = "old_generation_transaction",
        /// A push came to the log after the generation had ended.
        LockedOut = "push_after_lock",
        /// A generation ended before it had begun.
        NestedRecovery = "recovery_during_recovery",
        /// A read was also sent to a resolver that owned part of its keys before.
        EarlierOwner = "read_to_earlier_owner",
        /// A whole range was sent to more than one owner.
        SeveralOwners = "range_to_several_owners",
        /// A proxy forgot an owner that no read version could need.
        OwnerForgotten = "owner_forgotten",
        /// A resolver decided a batch without transactions.
        EmptyBatch = "empty_batch",
        /// A resolver said too old, because of the write life.
        TooOld = "too_old",
        /// A resolver said too old for what it had reclaimed for space.
        TooOldByCutoff = "too_old_by_cutoff",
        /// A resolver's budget could not hold a batch: it began anew at that version.
        OutOfBudget = "out_of_budget",
        /// A resolver committed what another one rejected: its writes stay there.
        LocalCommit = "commit_at_one_resolver_only",
        /// A client was told which of its reads conflict.
        Reported = "reported",
        /// A client was told that a transaction conflicts.
        Conflict = "conflict",
        /// A client never learned whether its transaction committed.
        Unknown = "unknown_result",
    }
}

/// One scheduled fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What happens.
    pub kind: FaultKind,
    /// From when on, in simulated microseconds: at once, or to the next message or transaction that it fits.
    pub at: u64,
    /// How much: a time, or random bits that choose.
    pub amount: u64,
}

/// How often each fault and each effect occurred.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Counters(BTreeMap<&'static str, u64>);

impl Default for Counters {
    fn default() -> Counters {
        let faults = FaultKind::ALL.iter().map(|kind| kind.name());
        let effects = Effect::ALL.iter().map(|effect| effect.name());
        Counters(faults.chain(effects).map(|name| (name, 0)).collect())
    }
}

impl Counters {
    fn bump(&mut self, name: &'static str) {
        *self.0.get_mut(name).expect("every name is there from the start") += 1;
    }

    /// Counts an effect.
    pub(crate) fn note(&mut self, effect: Effect) {
        self.bump(effect.name());
    }

    /// Adds another run's counts.
    pub fn merge(&mut self, other: &Counters) {
        for (name, count) in &other.0 {
            *self.0.get_mut(name).expect("all counters have the same names") += count;
        }
    }

    /// Names and counts, by name.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        self.0.iter().map(|(&name, &count)| (name, count))
    }
}

/// The faults that wait for something to strike, by kind, and the counts of all.
#[derive(Clone, Debug, Default)]
pub(crate) struct Faults {
    waiting: BTreeMap<FaultKind, VecDeque<Fault>>,
    pub(crate) counters: Counters,
}

impl Faults {
    pub(crate) fn new(schedule: &[Fault]) -> Faults {
        let mut faults = Faults::default();
        for &fault in schedule {
            faults.waiting.entry(fault.kind).or_default().push_back(fault);
        }
        for queue in faults.waiting.values_mut() {
            queue.make_contiguous().sort_by_key(|fault| fault.at);
        }
        faults
    }

    /// Takes the next fault of a kind, if its time has come, and counts it; gives its amount.
    pub(crate) fn strike(&mut self, kind: FaultKind, now: Time) -> Option<u64> {
        let queue = self.waiting.get_mut(&kind)?;
        let fault = queue.pop_front_if(|fault| fault.at <= now)?;
        self.counters.bump(kind.name());
        Some(fault.amount)
    }

    /// When each waiting fault of a kind is due.
    pub(crate) fn times(&self, kind: FaultKind) -> Vec<Time> {
        self.waiting.get(&kind).into_iter().flatten().map(|fault| fault.at).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_strikes_once_and_not_before_its_time() {
        let fault = |at, amount| Fault { kind: FaultKind::Hold, at, amount };
        let mut faults = Faults::new(&[fault(20, 2), fault(10, 1)]);
        assert_eq!(faults.times(FaultKind::Hold), [10, 20]);
        assert_eq!(faults.strike(FaultKind::Hold, 9), None);
        assert_eq!(faults.strike(FaultKind::Hold, 30), Some(1));
        assert_eq!(faults.strike(FaultKind::Recovery, 30), None);
        assert_eq!(faults.strike(FaultKind::Hold, 30), Some(2));
        assert_eq!(faults.strike(FaultKind::Hold, 30), None);
        let counts: BTreeMap<_, _> = faults.counters.iter().collect();
        assert_eq!((counts["hold"], counts["recovery"]), (2, 0));
        assert_eq!(counts.len(), FaultKind::ALL.len() + Effect::ALL.len(), "no name stands for two");
    }
}
