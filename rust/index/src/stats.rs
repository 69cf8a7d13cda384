//! What the tree counts.

/// Declares a struct of counters and the list of its fields from one text, so that no counter can be left out
/// of a report.
macro_rules! counters {
    ($(#[$about:meta])* $counters:ident: $($(#[$doc:meta])* pub $name:ident: u64,)+) => {
        $(#[$about])*
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
        #[non_exhaustive]
        pub struct $counters {
            $($(#[$doc])* pub $name: u64,)+
        }

        impl $counters {
            /// Every counter by its name, in the order of declaration.
            pub fn fields(&self) -> impl Iterator<Item = (&'static str, u64)> {
                [$((stringify!($name), self.$name)),+].into_iter()
            }
        }
    };
}

counters! {
    /// Counters since the tree was made; none of them takes part in a decision.
    Stats:
    /// Separators compared with endpoints on the way down, by head. One instruction that compares several endpoints counts
    /// once.
    pub routing_head_comparisons: u64,
    /// Of these, the ones that had to go on to key bytes.
    pub routing_byte_comparisons: u64,
    /// Searches of a leaf's heads.
    pub leaf_head_comparisons: u64,
    /// Entries compared by the bytes of their tails.
    pub leaf_byte_comparisons: u64,
    /// Inner nodes visited by the descent.
    pub inner_visits: u64,
    /// Leaves visited to check reads.
    pub leaf_reads: u64,
    /// Nodes visited by reads that reach past the leaf of their begin.
    pub wide_visits: u64,
    /// Reads that a greatest stamp showed to be free of conflict before their leaf was looked at.
    pub pruned_reads: u64,
    /// Reads that a greatest stamp showed to be in conflict without a look at entries.
    pub decided_by_version: u64,
    /// Leaves into which writes were merged.
    pub leaves_merged: u64,
    /// Of these, leaves edited in place instead of rewritten.
    pub leaves_edited: u64,
    /// Leaves written anew.
    pub leaves_rewritten: u64,
    /// Leaves that became two or more.
    pub leaves_split: u64,
    /// Inner nodes that became two or more.
    pub inner_split: u64,
    /// Leaves whose expired entries were taken out.
    pub leaves_compacted: u64,
    /// Neighbouring leaves made one.
    pub leaves_joined: u64,
    /// Entries written.
    pub entries_added: u64,
    /// Entries taken out: overwritten or expired.
    pub entries_removed: u64,
    /// Nodes written with another prefix than before.
    pub prefix_changes: u64,
    /// Subtrees released in one piece.
    pub subtrees_released: u64,
    /// Blocks given back, of nodes and of keys.
    pub blocks_reclaimed: u64,
    /// Key blocks given back in allocation order.
    pub key_blocks_reclaimed: u64,
    /// Times the cutoff was moved to make room.
    pub reclamations: u64,
    /// Steps of the slow hand.
    pub hand_steps: u64,
    /// Bytes put into key blocks.
    pub key_bytes_stored: u64,
    /// Tails that share bytes put there for another.
    pub tails_shared: u64,
    /// Times all stamps were renumbered.
    pub renumberings: u64,
}

counters! {
    /// What the cooperative strategy's tasks have done since the tree was made.
    TaskStats:
    /// Visits of read and write tasks by their schedulers.
    pub task_visits: u64,
    /// Visits that ended with a hint, to go on when it has arrived.
    pub task_yields: u64,
    /// States that followed another one within a visit, since what they touch was there.
    pub chained_steps: u64,
    /// Prefetches of a node, a leaf's entries or the bytes of a key.
    pub hints: u64,
    /// Writes whose place was found ahead of their turn.
    pub parked_writes: u64,
    /// Of the parked, the ones whose place was no longer right at their turn: they were searched again.
    pub redirected_writes: u64,
    /// Of the parked, the ones whose place earlier writes to the same leaf had moved: it was moved along.
    pub moved_writes: u64,
    /// Writes whose turn came before their place was found.
    pub unready_writes: u64,
    /// Destinations that waited in the write frontier for an earlier one.
    pub frontier_stalls: u64,
}
