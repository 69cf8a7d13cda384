//! Mistakes of the simulated roles that can be planted by name, to prove that they would be found.

use crate::fault::named;

named! {
    /// A mistake of a role, or of the harness around it; see `tests/planted.rs` for what finds each.
    pub enum PlantedBug {
        /// Resolvers ignore `oldest` and keep what fits: what a new generation never saw is let through.
        RetentionBudget = "retention-budget",
        /// Proxies send reads to the present owner of their keys only.
        ForgetEarlierOwners = "forget-earlier-owners",
        /// Proxies remember earlier owners for an eighth of the write life.
        ForgetOwnersEarly = "forget-owners-early",
        /// A proxy uses a moved range's new owner one batch too late.
        LateMove = "late-move",
        /// A proxy commits what any resolver commits.
        AnyResolver = "any-resolver",
        /// Reported reads are mapped to the one behind them.
        ReportOffByOne = "report-off-by-one",
        /// A proxy answers its clients before the sequencer knows of the commit.
        ReplyBeforeReport = "reply-before-report",
        /// A proxy never answers the last transaction of a large batch.
        LostReply = "lost-reply",
        /// A proxy answers anew when an acknowledgement comes twice.
        DuplicateAnswer = "duplicate-answer",
        /// A resolver decides a request again that it had decided.
        DuplicateResolved = "duplicate-resolved",
        /// A resolver decides requests as they come, not by previous version.
        IgnorePreviousVersion = "ignore-previous-version",
        /// A resolver that runs out of budget begins anew at version 0, not at the batch's.
        FallbackKeepsBase = "fallback-keeps-base",
        /// The skip list is not told the tree's cutoff.
        FollowerNotTold = "follower-not-told",
        /// The sequencer gives a repeated request another version.
        SequencerForgets = "sequencer-forgets",
        /// A new generation begins right behind the old one: `oldest` rejects nothing.
        RecoveryWithoutJump = "recovery-without-jump",
        /// The log acknowledges batches of a dead generation, and does not keep them.
        AcknowledgedAfterLock = "acknowledged-after-lock",
        /// The log applies a push that came twice a second time.
        DuplicatePushApplied = "duplicate-push-applied",
        /// A delay depends on how many messages the process has sent, not on the seed.
        UnseededDelay = "unseeded-delay",
    }
}

/// Which mistake is planted: none in a build without the feature `planted-bugs`.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Planted {
    #[cfg(feature = "planted-bugs")]
    pub(crate) bug: Option<PlantedBug>,
}

impl Planted {
    /// Whether this mistake is planted.
    #[cfg(feature = "planted-bugs")]
    pub(crate) fn is(self, bug: PlantedBug) -> bool {
        self.bug == Some(bug)
    }

    /// Whether this mistake is planted: never in this build.
    #[cfg(not(feature = "planted-bugs"))]
    pub(crate) fn is(self, _bug: PlantedBug) -> bool {
        false
    }
}
