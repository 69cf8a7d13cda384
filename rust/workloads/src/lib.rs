//! Input for conflict sets: recorded captures, named cases and seeded generators.

mod batch_buf;

pub use batch_buf::BatchBuf;
