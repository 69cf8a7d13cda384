//! Input for conflict sets: recorded captures, named cases and seeded generators.

mod batch_buf;
pub mod capture;
pub mod cases;
pub mod chase;
pub mod compare;
pub mod counts;
pub mod decide;
pub mod generators;
pub mod input;
pub mod machine;
pub mod measure;
pub mod part;
pub mod planted;
pub mod process;
pub mod random;
pub mod replay;
pub mod retention;
mod rng;
pub mod shrink;
pub mod size;
pub mod trace;

pub use batch_buf::BatchBuf;
pub use capture::{captures_dir, shared_captures_dir};
pub use generators::Workload;
pub use random::RandomBatches;
pub use rng::Rng;
