//! A deterministic simulation of FoundationDB's commit path around its resolvers.
//!
//! # The roles
//! | role | module | what it does |
//! | --- | --- | --- |
//! | client | `client` | gets a read version, reads, commits, tries again |
//! | sequencer | `sequencer` | hands out commit versions in order, and read versions; tells of moved key space |
//! | commit proxy | `proxy`, `owners` | batches transactions, sends every resolver what touches its keys, commits what all commit |
//! | resolver | `resolver` | decides batches in order, each once: in the tree, and in the skip list that follows it |
//! | log and storage | `log` | makes batches durable in order; answers reads at a version |
//! | the rest | `world` | ends generations and begins new ones, checks answers |
//!
//! Nothing runs by itself: the `network` holds everything under way as events by moment, and the `world` takes one after the other.
//! All random numbers come from the seed, in streams by purpose: what clients want and how long a message takes does not
//! change with the faults, which are drawn beforehand ([`schedule`]), so a failing schedule can be made smaller ([`shrink`]).
//!
//! # What is checked
//! After every batch of a resolver: verdicts and reports of both conflict sets, the cutoff, memory within the budget, now and then
//! the whole tree. With every answer: none twice, no report that the client cannot use. At the end: no answer is missing, and the
//! history is strictly serializable ([`check_history`]). And the run of a seed repeats ([`check_seed`]).

mod check;
mod client;
mod fault;
mod fdbserver;
pub mod history;
mod keys;
mod log;
mod message;
mod network;
mod owners;
mod plan;
mod planted;
mod proxy;
mod resolver;
mod run;
mod sequencer;
mod trace;
mod violation;
mod world;

pub use check::{Checked, Difference, Unexplained, check_history};
pub use fault::{Counters, Effect, Fault, FaultKind};
pub use fdbserver::{FdbRun, FdbSeed, Fdbserver, FdbserverError, Problem};
pub use history::{HistoryError, Outcome, Position, Read, Record, read_history, write_history};
pub use keys::{Key, Mutation, Range, Value};
pub use planted::PlantedBug;
pub use run::{Options, Run, Shrunk, check_seed, schedule, shrink, simulate};
pub use violation::Violation;
