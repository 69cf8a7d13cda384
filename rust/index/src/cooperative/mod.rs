//! The schedulers of the posts, over the same tree: resumable tasks that prefetch what they touch next, yield,
//! and go on when the others have had their turn.
//!
//! Tasks replace the *finding* only: where a slice of endpoints goes, whether its reads conflict, and where in
//! its leaf a write begins. What is done at a node is the pipelined strategy's code (`route`, `read`), and one
//! writer changes the tree through `write` in the order of begins. So verdicts, blocks, cutoff and
//! reclamation are functions of tree and batch, whatever the number of tasks; inner visits are put into the
//! order of the level-by-level descent for that reason (`read`).
//!
//! One thread runs everything: a visit is never interrupted.
//!
//! # Read tasks (`read`)
//! At most G are resident and visited in rounds. A task carries a node and its slice of the endpoints.
//!
//! | state | waits for | then |
//! | --- | --- | --- |
//! | `InspectNode` | a node's header and heads | an inner node: chained to `CompareKeys`; a leaf: its slice's destination goes to the frontier, chained to `CompareLeafKey` |
//! | `CompareKeys` | nothing | partitions the slice; goes on with the first child, hinted; the others become tasks at the end of the round, in slice order |
//! | `CompareLeafKey` | nothing | finds the tails that the reads of the slice are compared with first; none: chained to `ScanLeaf`; else hints them |
//! | `KeyMore` | tails | chained to `ScanLeaf` |
//! | `ScanLeaf` | nothing | decides the reads of the slice; the task is done |
//! | `ScanRight` | the next node of a read that reaches past its leaf | along its two edges, down from the root |
//!
//! States of the posts without a counterpart: a leaf answers for its range alone and carries the stamp of its first
//! keys, so that there is no left neighbour to find or check (`FindPrev`, `CheckPrev`), and right neighbours are
//! reached from the root by greatest stamps; `StartScan` is the first line of `ScanLeaf`. A separator has up to 40
//! bytes in its node; the chain of a longer one is followed where it stands, and so is a tail's second block.
//!
//! # Write frontier (`read::Frontier`)
//! Destinations are found out of order. Each waits in the arrival buffer; the frontier hands on those whose
//! predecessors are all known, in the order of begins. Slices without a write have no destination.
//!
//! # Write tasks (`write`)
//! A groups of B tasks, in a ring: one task for each piece of a write that begins in a leaf. A task of the
//! oldest group runs at once; the next group is filled and its leaves are hinted, and it runs when half of the
//! oldest has been written. The writer gives every task a visit for each piece that it writes.
//!
//! | state | waits for | then |
//! | --- | --- | --- |
//! | `Inspect` | a leaf's header | hints the leaf's entries; a leaf just seen by the task before: chained to `Search` |
//! | `Search` | entries | a tail to compare: hints it; else finds the rank and parks |
//! | `KeyMore` | a tail | finds the rank and parks |
//! | `SearchReady` | its turn | the writer takes the rank, if it still holds |
//! | `Parked` | its turn | the leaf is being rewritten: the writer searches |
//!
//! A leaf's pieces have one representative, here the writer's *anchor*: a mutation counter, how far the entries
//! behind the last change have moved, and whether the leaf was taken apart. It has no right neighbour to walk to
//! (`Route`, `InspectRight`), no predecessor in another leaf (`Previous`), and `PrepareInput`, `Insert`, `Scan`
//! and `Erase` are `write`'s plan and merge, shared.
//!
//! # Hazards
//! Each has a planted bug that leaves its remedy out, or a test of this crate that fails without it.
//!
//! | hazard | remedy | bug or test |
//! | --- | --- | --- |
//! | a saved rank, and the leaf is compacted | the anchor says so: search again | `rank-outlives-compaction` |
//! | a saved rank, and an earlier piece is written to the leaf | the mutation counter tells: moved along, or searched again where keys touch or go on in tails | `rank-outlives-edit` |
//! | a destination, and its leaf is taken apart to be written anew or split | searches of it park, ranks in it are searched again | `rank-outlives-split` |
//! | destinations, and reclamation for the reservation gives leaves back or moves the cutoff | tasks are kept only if the tree's mutation counter and its expired stamps are as before | `write::tests` |
//! | slots of nodes that later destinations name | inner nodes take up the changes at the end of the batch | `inner-at-once` |
//! | destinations known out of order | the frontier | `frontier-out-of-order` |
//! | the tree must not depend on who came first | visits in the order of the level-by-level descent | `read::tests` |
//!
//! The posts compact leaves while reads are checked, and refresh separators whose bytes have gone. Here a check
//! of reads changes nothing, a leaf is compacted by the writer alone, and a separator owns its bytes, so that a
//! rank or a separator cannot go stale under a read.

mod read;
mod write;

use crate::config::Tasks;
use crate::stats::TaskStats;

pub(crate) use read::ReadTasks;
pub(crate) use write::{Alone, Finder, Scouts, WriteTasks};

/// The tasks of a tree; their memory is kept from batch to batch.
pub(crate) struct Cooperative {
    pub(crate) reads: ReadTasks,
    pub(crate) writes: WriteTasks,
    pub(crate) stats: TaskStats,
}

impl Cooperative {
    pub(crate) fn new(tasks: Tasks) -> Cooperative {
        Cooperative {
            reads: ReadTasks::new(tasks.reads),
            writes: WriteTasks::new(tasks.groups, tasks.group_size),
            stats: TaskStats::default(),
        }
    }
}
