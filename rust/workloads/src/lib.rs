//! Input for conflict sets: recorded captures, named cases and seeded generators.

mod batch_buf;
pub mod capture;
pub mod cases;
pub mod generators;
mod rng;

pub use batch_buf::BatchBuf;
pub use capture::{captures_dir, shared_captures_dir};
pub use generators::Workload;
pub use rng::Rng;
