//! Input for conflict sets: recorded captures, named cases and seeded generators.

mod batch_buf;
pub mod capture;
pub mod cases;

pub use batch_buf::BatchBuf;
pub use capture::{captures_dir, shared_captures_dir};
