//! The temporal tree: a resolver's conflict history in a B+ tree over one pool of blocks, bounded by memory.
//!
//! It answers one question, for whole batches of sorted ranges: has any key of `[b, e)` been written after a
//! version? And it takes in what was written since. The structure goes back to the temporal B+ tree of the
//! *Beyond 5s* articles (resolver v1 to v3.8); what differs is said below.
//!
//! # Glossary
//! | term | meaning |
//! | --- | --- |
//! | stamp | the 32-bit number that stands for a commit version: one for each batch that wrote; 0 is a gap |
//! | limit | of a read: the newest stamp it has seen. A greater one in its range is a conflict |
//! | expired | stamps up to this one are at or below the cutoff: nobody may ask for them any more |
//! | routing range | the keys that are routed to a node: from its lower bound up to its upper bound, both of them separators above |
//! | prefix | the bytes that both bounds of a routing range share, so all of its keys: no node stores them |
//! | head | the 8 bytes of a key that follow the prefix, as one big-endian number |
//! | tail | what a head cannot hold, in key blocks |
//! | carry | of a leaf: the stamp of the keys from its lower bound up to its first boundary |
//! | boundary | an entry that starts a segment: its stamp holds up to the next boundary or the upper bound |
//! | point | an entry for one key alone, newer than the segment around it |
//! | vacant slot | a slot without a node: all keys of its range have one stamp |
//! | piece | the part of a write that lies in one leaf |
//!
//! # The way of one batch
//! ```text
//! sorted endpoints ──► descent (route): level by level, each node's slice of endpoints split over its children
//!                        │                 reads that no stamp below can touch stay behind
//!                        ▼
//!                      leaves (read): each once per slice; reads that reach further, along both edges by greatest stamps
//!                        │
//!        verdicts are made elsewhere; the accepted writes come back, disjoint and in key order
//!                        ▼
//!                      assign (write/plan): writes cut at leaf bounds; slots in between are covered
//!                      plan   (write/plan): blocks needed at most ──► reserve, or reclaim and route again
//!                        ▼
//!                      merge  (write/merge): leaf by leaf, in the block or put together anew and spread
//!                        ▼
//!                      inner  (write/inner_update): from the last visited node to the first, each once
//!                        ▼
//!                      tend   (reclaim): what has expired is given back, the slow hand moves on
//! ```
//!
//! # A leaf answers for its range alone
//! No interval reaches from one leaf into the next: a write that covers several leaves ends the first, is the
//! carry of the last, and makes what lies between vacant. So a read looks at no neighbour, the leaves of a
//! batch do not depend on each other, links between leaves are not needed, and the greatest stamp of a slot
//! is exact at all times: it decides conflicts as well as it prunes.
//!
//! Since a point is never older than its segment, the newest stamp in `[b, e)` is the greatest of the
//! segment's at `b` and of the entries in between, hidden ones included: what hides them is newer.
//!
//! Routing ranges never grow but when the hand joins leaves. Where a range loses its content the slot turns
//! vacant and keeps its bounds, so that neither prefixes nor heads next to it change.
//!
//! # Blocks
//! One pool ([`pool`]) of 2 KiB blocks: `layout` has the bytes of each kind, and no other file computes an
//! offset.
//!
//! | block | owned by | given back |
//! | --- | --- | --- |
//! | leaf, short: 13 bytes an entry; with tails: 21 | its slot | when the slot turns vacant, or with a condemned subtree |
//! | inner node: up to 64 slots and a heap for separators | its slot | likewise; its long separators' chains with it |
//! | key block of the log | the log, in the order of allocation | when the greatest stamp in it has expired |
//! | key block of a chain | one long separator | with the separator |
//! | version block | the version table | when all its stamps have expired |
//!
//! Entries are sorted in place: with 13 bytes an entry, moving half a leaf costs less than the indirection of
//! an order array would on every search; a free bitmap is not needed.
//!
//! # Reservation
//! Before anything changes, the plan says how many blocks the batch's pieces can take at most:
//! `write::merge::bound` and `Tree::blocks_needed` are what plan and execution both go by. If they cannot be
//! had, the oldest history is reclaimed (see `reclaim`), and the writes are routed again, since that changes
//! nodes; a batch that needs too much at once is applied in parts. Nothing stays reserved after it.
//!
//! # Invariants
//! [`Tree::validate`] checks each by its number.
//! 1. Entries of a leaf ascend; at one key a boundary stands before a point; no stamp is from the future.
//! 2. Every key lies in its node's routing range, and routing ranges are not empty.
//! 3. A node's prefix is what its bounds share; heads, lengths and tails are those of the keys.
//! 4. No boundary stands at its leaf's lower bound: that is the carry.
//! 5. A point is newer than the segment it lies in.
//! 6. A slot's greatest stamp is that of its keys, exactly, unless all of them have expired.
//! 7. A slot's oldest is the least of the greatest stamps of the leaves below.
//! 8. Nodes have entries or slots, and slots say what hangs in them.
//! 9. Every committed block has exactly one owner: tree, separator, key log, version table, condemned list,
//!    free list.
//! 10. What is held never exceeds the budget.
//! 11. The tail of an entry that matters is of its block's current generation.
//! 12. Key blocks stand in the order of their greatest stamps.
//! 13. Versions ascend with stamps, and exactly those at or below the cutoff have expired.
//! 14. Every stamp counts the entries that carry it, and the expired ones are counted together.
//!
//! # To change X, open Y
//! | to change | open |
//! | --- | --- |
//! | the bytes of a block | `layout` |
//! | how a leaf is searched or edited | `node/leaf` |
//! | routing and separators | `route`, `node/inner` |
//! | how a read is decided | `read` |
//! | how latency is hidden by tasks instead | `cooperative` |
//! | what a write does to a leaf | `write/merge` |
//! | when a leaf splits, and where | `write/plan`, `write/spread` |
//! | what is reclaimed, and when | `reclaim` |
//! | the loops inside a node | [`search`] |

mod batch;
mod config;
mod cooperative;
mod dump;
#[cfg(any(test, feature = "fuzzing"))]
pub mod fuzzing;
mod keys;
mod layout;
mod node;
mod planted;
pub mod pool;
mod read;
mod reclaim;
mod route;
pub mod search;
mod stats;
mod tree;
mod validate;
mod versions;
mod write;

pub use batch::{Endpoint, EndpointKind, Probes, ReadSink, Write};
pub use config::{Config, ConfigError, LEAST_BUDGET, OutOfBudget, Strategy, Tasks};
pub use dump::{EntryLayout, LeafLayout, Outline};
pub use planted::{Bug, Planted};
pub use pool::{Backing, Refusals};
pub use route::{walk_steps, walks};
pub use stats::{Stats, TaskStats};
pub use tree::{Blocks, Tree};
pub use validate::{Broken, Shape};
