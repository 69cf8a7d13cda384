//! Traces: batches in one file that is mapped for replay, so that its length does not matter.
//!
//! # Format
//! Little-endian. Eight bytes of magic, then frames until the end of the file, appended and never changed.
//!
//! ```text
//! 8 bytes   "RSLVTRC1"
//! frame:
//!   u8 kind          'H' header, 'B' batch, 'C' clear, 'I' index, 'E' end
//!   u8 flags         1: the content is compressed with zstd; 2: a batch comes with its decisions
//!   u16              0
//!   u32 length       of the content as it stands in the file
//!   u32 checksum     CRC-32 of the content
//!   u32 checksum     CRC-32 of the twelve bytes before
//!   content
//! ```
//! | kind | content |
//! | --- | --- |
//! | header | the first frame, once: JSON, see [`Header`] |
//! | batch | see [`codec`](self): columns of versions, shapes and key bytes, every key without what it shares with the one before |
//! | clear | i64 version |
//! | index | after every 256 batches, and at the end: u64 where the index before stands (0: none), u64 batches before the first one listed, then, as varints, where each batch's frame stands, as the distance from the one before (the first: from the start of the file) |
//! | end | the last frame of a finished trace: u64 where the last index stands, u64 batches, u64 steps (batches and clears) |
//!
//! # What a damaged file gives
//! A trace without its end, because whoever wrote it was stopped, is [`truncated`](Trace::truncated): the frames are found by going through
//! their heads, and what is whole counts. A byte that is not what was written is [`FrameError::Damaged`] and names its frame, wherever it
//! stands: a head has a checksum of its own, so that a wrong length is not taken for a cut.

mod codec;
mod frame;
mod map;
mod reader;
mod writer;

pub use frame::{FrameError, FrameKind};
pub use reader::{Record, Records, Trace, TraceError};
pub use writer::TraceWriter;

use serde::{Deserialize, Serialize};

/// The first bytes of a trace.
pub const MAGIC: [u8; 8] = *b"RSLVTRC1";

/// The version of the format that is written and read.
pub const FORMAT_VERSION: u32 = 1;

/// Batches that one index frame lists.
const BATCHES_PER_INDEX: usize = 256;

/// What a trace says about itself.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Header {
    /// The version of the format.
    pub format: u32,
    /// How the batches were made; `None` for batches that were recorded.
    pub generator: Option<GeneratorHeader>,
    /// How many of the first steps only fill the history.
    pub untimed: u64,
}

/// The parameters of generated batches.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GeneratorHeader {
    /// The workload's name.
    pub workload: String,
    /// Its seed.
    pub seed: u64,
    /// Its scale: transactions a batch and keys against the definition.
    pub scale: f64,
    /// How many batches were asked for.
    pub batches: u64,
    /// For a long trace: the length of its keys and its mixture.
    pub long_trace: Option<LongTraceHeader>,
}

/// The parameters of a long trace.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LongTraceHeader {
    /// The length of a key in bytes.
    pub key_bytes: u64,
    /// Of a hundred ids: drawn evenly, by Zipf's law, appended.
    pub ids: [u64; 3],
    /// Of a hundred ranges: points, ranges, clears.
    pub ranges: [u64; 3],
}

#[cfg(test)]
mod tests;
