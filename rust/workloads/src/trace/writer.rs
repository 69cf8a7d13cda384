//! Writing a trace: frames are appended, nothing is changed.

use super::frame::{FrameKind, frame};
use super::{BATCHES_PER_INDEX, FORMAT_VERSION, Header, MAGIC, codec};
use crate::BatchBuf;
use resolver_types::{Verdicts, Version};
use std::io::{self, Write};

/// Appends frames to a trace. What was written counts even if [`TraceWriter::finish`] is never reached.
#[derive(Debug)]
pub struct TraceWriter<W: Write> {
    out: W,
    /// Bytes written so far.
    offset: u64,
    batches: u64,
    steps: u64,
    /// Where the batches since the last index stand.
    unlisted: Vec<u64>,
    /// Where the last index stands; 0: nowhere.
    last_index: u64,
}

impl<W: Write> TraceWriter<W> {
    /// Begins a trace.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn new(mut out: W, header: &Header) -> io::Result<TraceWriter<W>> {
        out.write_all(&MAGIC)?;
        let mut writer = TraceWriter {
            out,
            offset: MAGIC.len() as u64,
            batches: 0,
            steps: 0,
            unlisted: Vec::new(),
            last_index: 0,
        };
        let header = Header { format: FORMAT_VERSION, ..header.clone() };
        writer.append(FrameKind::Header, false, &serde_json::to_vec(&header)?)?;
        Ok(writer)
    }

    fn append(&mut self, kind: FrameKind, decided: bool, content: &[u8]) -> io::Result<()> {
        let bytes = frame(kind, decided, content);
        self.out.write_all(&bytes)?;
        self.offset += bytes.len() as u64;
        Ok(())
    }

    /// Appends a batch, with what was decided about it, if that is known.
    ///
    /// # Errors
    /// Those of `out`.
    ///
    /// # Panics
    /// If there are decisions, and not a verdict for every transaction; or over 256 MiB of content.
    pub fn batch(&mut self, batch: &BatchBuf, recorded: Option<&Verdicts>) -> io::Result<()> {
        self.unlisted.push(self.offset);
        self.append(FrameKind::Batch, recorded.is_some(), &codec::encode(batch, recorded))?;
        self.batches += 1;
        self.steps += 1;
        if self.unlisted.len() == BATCHES_PER_INDEX { self.index() } else { Ok(()) }
    }

    /// Appends that every key gets `version`.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn clear(&mut self, version: Version) -> io::Result<()> {
        self.steps += 1;
        self.append(FrameKind::Clear, false, &codec::encode_clear(version))
    }

    fn index(&mut self) -> io::Result<()> {
        let at = self.offset;
        let unlisted = std::mem::take(&mut self.unlisted);
        let before = self.batches - unlisted.len() as u64;
        self.append(FrameKind::Index, false, &codec::encode_index(self.last_index, before, &unlisted))?;
        self.last_index = at;
        Ok(())
    }

    /// Bytes written so far.
    pub fn bytes(&self) -> u64 {
        self.offset
    }

    /// Lists what is not listed yet, ends the trace, flushes, and gives back what was written to.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn finish(mut self) -> io::Result<W> {
        if !self.unlisted.is_empty() {
            self.index()?;
        }
        let end = [self.last_index, self.batches, self.steps].map(u64::to_le_bytes).concat();
        self.append(FrameKind::End, false, &end)?;
        self.out.flush()?;
        Ok(self.out)
    }
}
