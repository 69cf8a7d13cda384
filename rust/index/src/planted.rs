//! Bugs on purpose: each breaks one invariant or falls into one trap, and some suite claims to find it.
//! `ci/negative` has them all found.
//!
//! Without the feature `planted-bugs` no tree can be given one, and [`Tree::planted`] is always false.

use crate::tree::Tree;

macro_rules! bugs {
    ($($(#[doc = $sentence:literal])+ $name:ident = $text:literal,)+) => {
        /// A bug that can be planted in a tree.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum Bug {
            $($(#[doc = $sentence])+ $name,)+
        }

        impl Bug {
            /// Every bug.
            pub const ALL: &[Bug] = &[$(Bug::$name,)+];

            /// The bug's name.
            pub fn name(self) -> &'static str {
                match self {
                    $(Bug::$name => $text,)+
                }
            }

            /// What it does, in a sentence.
            pub fn sentence(self) -> &'static str {
                match self {
                    $(Bug::$name => concat!($($sentence,)+).trim_ascii(),)+
                }
            }

            /// The bug of that name.
            pub fn by_name(name: &str) -> Option<Bug> {
                Bug::ALL.iter().copied().find(|bug| bug.name() == name)
            }
        }
    };
}

bugs! {
    // One for each invariant.
    /// Invariant 1: a point is put in front of the boundary at its key.
    PointBeforeBoundary = "point-before-boundary",
    /// Invariant 2: a separator is cut one byte too short to separate.
    SeparatorTooShort = "separator-too-short",
    /// Invariant 3: the leaves of a split keep the prefix of the whole.
    SplitKeepsPrefix = "split-keeps-prefix",
    /// Invariant 4: a write from the lower bound on becomes a boundary there.
    BoundaryAtLowerBound = "boundary-at-lower-bound",
    /// Invariant 5: a point takes over the stamp of the segment it lies in.
    PointAsOldAsSegment = "point-as-old-as-segment",
    /// Invariant 6: a node's greatest stamp is not raised by what is written below it.
    GreatestNotRaised = "greatest-not-raised",
    /// Invariant 7: a node says that it has no oldest leaf.
    OldestForgotten = "oldest-forgotten",
    /// Invariant 8: a leaf that lost its last entry stays.
    EmptyLeafStays = "empty-leaf-stays",
    /// Invariant 9: a leaf that lost its last entry leaves its slot, but its block is not given back.
    LeafLeaks = "leaf-leaks",
    /// Invariant 10: the side tables do not come off the budget.
    SideTablesOnTop = "side-tables-on-top",
    /// Invariant 11: key blocks are released one stamp too early.
    KeyBlocksReleasedEarly = "key-blocks-released-early",
    /// Invariant 12: tails that a join stores anew do not hold their key block.
    JoinedTailsUnstamped = "joined-tails-unstamped",
    /// Invariant 13: the cutoff moves, and nothing expires.
    CutoffWithoutExpiry = "cutoff-without-expiry",
    /// Invariant 14: the boundary at a write's end is not counted.
    EndNotCounted = "end-not-counted",
    // Version pruning.
    /// Trap (a): the slots between the ends of a write do not take its stamp.
    CoveredSlotsKeepOld = "covered-slots-keep-old",
    /// Trap (b): the second half of a split leaf is said to have nothing new.
    SplitForgetsHalf = "split-forgets-half",
    /// Trap (b), one level up: the second half of a split inner node is said to have nothing new.
    InnerSplitForgetsHalf = "inner-split-forgets-half",
    /// Trap (c): leaves are joined as if the second had no carry.
    JoinLosesCarry = "join-loses-carry",
    /// Trap (c): neighbouring vacant slots become one, whatever their stamps.
    VacanciesMerge = "vacancies-merge",
    /// Trap (d): after a split the prefix grows and the heads stay.
    SplitForgetsToShift = "split-forgets-to-shift",
    /// Trap (e): reads below the base are looked up like others.
    BelowBaseUndecided = "below-base-undecided",
    /// A read whose limit is just below a child's greatest stamp is left behind.
    PrunedByOne = "pruned-by-one",
    /// Reads that reach over several children do not look at those between their ends.
    BetweenUnseen = "between-unseen",
    /// A read that ends at a separator looks behind it.
    ReadEndsBehindSeparator = "read-ends-behind-separator",
    // Leaves.
    /// A write that ends at a leaf's lower bound is cut into a piece there.
    WriteEndsBehindSeparator = "write-ends-behind-separator",
    /// The boundary where a write ends keeps its old bytes.
    EndKeepsOldTail = "end-keeps-old-tail",
    /// What lay behind a write's end becomes a gap.
    ExteriorLost = "exterior-lost",
    /// A write that began before a leaf does not become its carry.
    CarryNotWritten = "carry-not-written",
    /// A point takes the place of the boundary at its key.
    PointReplacesBoundary = "point-replaces-boundary",
    /// A read of one key does not see the point behind the boundary there.
    PointBehindBoundaryUnseen = "point-behind-boundary-unseen",
    /// A read does not see the segment that it begins in.
    SegmentUnseen = "segment-unseen",
    /// Tails are compared though their entries have expired.
    ExpiredTailFollowed = "expired-tail-followed",
    // Space.
    /// The plan reserves nothing for the leaves of a split.
    ReservationForgetsSplits = "reservation-forgets-splits",
    /// The chains of a node that is put together anew are not given back.
    ChainsLeak = "chains-leak",
    /// Stamps expire for space, and the cutoff stays.
    ExpiryWithoutCutoff = "expiry-without-cutoff",
    /// Reclamation for space goes on up to the batch just written.
    CutoffReachesBatch = "cutoff-reaches-batch",
    /// The hand goes on behind the parent of the node it visited.
    HandSkipsNodes = "hand-skips-nodes",
    /// Renumbering forgets the key log.
    RenumberForgetsLog = "renumber-forgets-log",
    /// Renumbering forgets the condemned.
    RenumberForgetsCondemned = "renumber-forgets-condemned",
    /// Renumbering leaves the routes of the batch as they are.
    RenumberKeepsRoutes = "renumber-keeps-routes",
    // The cooperative strategy.
    /// A rank found before its leaf was compacted is used after it.
    RankOutlivesCompaction = "rank-outlives-compaction",
    /// A rank found before an earlier piece of the leaf was written is used after it.
    RankOutlivesEdit = "rank-outlives-edit",
    /// A leaf whose entries have been taken out is searched, and ranks in it are used.
    RankOutlivesSplit = "rank-outlives-split",
    /// Inner nodes take up what becomes of each leaf at once.
    InnerAtOnce = "inner-at-once",
    /// Destinations of writes are handed on as they become known.
    FrontierOutOfOrder = "frontier-out-of-order",
    // The batch around the tree.
    /// The cutoff makes nobody too old.
    BoundWithoutCutoff = "bound-without-cutoff",
    /// The writes of what is too old are not taken in, whoever commits them.
    TooOldNeverWrites = "too-old-never-writes",
    /// What long keys end with is looked up in the begins of ranges alone.
    SuffixOfBegins = "suffix-of-begins",
    /// Within a batch, ranges that touch overlap.
    TouchingOverlaps = "touching-overlaps",
    /// A point right behind a write is taken for a part of it.
    CombineSwallowsTouching = "combine-swallows-touching",
    /// Only the first conflict with the history is reported.
    ReportFirstOnly = "report-first-only",
}

/// The bug of a tree, if it has one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Planted {
    #[cfg(feature = "planted-bugs")]
    bug: Option<Bug>,
}

impl Planted {
    /// Plants a bug.
    #[cfg(feature = "planted-bugs")]
    pub fn new(bug: Bug) -> Planted {
        Planted { bug: Some(bug) }
    }

    /// Whether this is the bug.
    #[inline(always)]
    pub fn has(self, bug: Bug) -> bool {
        #[cfg(feature = "planted-bugs")]
        let planted = self.bug == Some(bug);
        #[cfg(not(feature = "planted-bugs"))]
        let planted = {
            let _ = bug;
            false
        };
        planted
    }
}

impl Tree {
    /// Whether a bug is planted in this tree.
    #[inline(always)]
    pub fn planted(&self, bug: Bug) -> bool {
        self.planted.has(bug)
    }
}
