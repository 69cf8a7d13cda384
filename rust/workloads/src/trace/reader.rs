//! Reading a trace where it is mapped.

use super::codec::{self, Bytes};
use super::frame::{Frame, FrameError, FrameKind, HEAD_BYTES};
use super::{FORMAT_VERSION, Header, MAGIC, map};
use crate::BatchBuf;
use crate::input::{Input, RunError, STRETCH_BYTES, Source, Visit};
use memmap2::{Mmap, MmapMut};
use resolver_types::{Verdicts, Version};
use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::path::Path;
use thiserror::Error;

/// The bytes of an end frame: it is never compressed, so that it can be looked for from the end.
const END_BYTES: usize = HEAD_BYTES + 24;

/// Why a trace cannot be read.
#[derive(Debug, Error)]
pub enum TraceError {
    /// The operating system failed to read.
    #[error("cannot read: {0}")]
    Io(#[from] io::Error),
    /// The file does not start as a trace.
    #[error("not a trace: it starts with {found:02x?}, not with \"RSLVTRC1\"")]
    NotATrace {
        /// The first bytes, up to eight.
        found: Vec<u8>,
    },
    /// The file ends before its header does.
    #[error("too short to be a trace: it ends after {bytes} bytes, inside its header")]
    TooShort {
        /// The length of the file.
        bytes: u64,
    },
    /// The header is not one that this version understands.
    #[error("the header is not understood: {0}")]
    Header(String),
    /// A frame is not as it was written.
    #[error(transparent)]
    Frame(#[from] FrameError),
}

/// A step of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// Every key gets this version.
    Clear(Version),
    /// A batch.
    Batch {
        /// What the resolver receives.
        batch: BatchBuf,
        /// What was decided about it, if that was recorded.
        recorded: Option<Verdicts>,
    },
}

/// A trace, mapped.
#[derive(Debug)]
pub struct Trace {
    map: Mmap,
    header: Header,
    /// Where the frames start that follow the header's.
    first: usize,
    /// Where the last whole frame stops.
    stop: usize,
    batches: u64,
    steps: u64,
    truncated: bool,
    /// The index frames, in order: the batches before the first listed one, and where the frame stands.
    indexes: Vec<(u64, usize)>,
    limit: u64,
}

impl Trace {
    /// Maps a trace and finds its frames: through its indexes if it was finished, else by going through all heads.
    ///
    /// # Errors
    /// Whatever is wrong with the file, the header or a head.
    pub fn open(path: &Path) -> Result<Trace, TraceError> {
        let file = File::open(path)?;
        if file.metadata()?.len() == 0 {
            return Err(TraceError::TooShort { bytes: 0 });
        }
        Trace::of_map(map::map(&file)?)
    }

    /// Reads a trace from memory, as [`Trace::open`] does from a file; the bytes are copied.
    ///
    /// # Errors
    /// As [`Trace::open`].
    pub fn from_bytes(bytes: &[u8]) -> Result<Trace, TraceError> {
        if bytes.is_empty() {
            return Err(TraceError::TooShort { bytes: 0 });
        }
        let mut map = MmapMut::map_anon(bytes.len())?;
        map.copy_from_slice(bytes);
        Trace::of_map(map.make_read_only()?)
    }

    fn of_map(map: Mmap) -> Result<Trace, TraceError> {
        let found = &map[..map.len().min(MAGIC.len())];
        if !MAGIC.starts_with(found) {
            return Err(TraceError::NotATrace { found: found.to_vec() });
        }
        let Some(frame) = Frame::at(&map, MAGIC.len(), 0)? else {
            return Err(TraceError::TooShort { bytes: map.len() as u64 });
        };
        if frame.kind != FrameKind::Header {
            return Err(frame.impossible("the first frame is no header").into());
        }
        let header: Header = serde_json::from_slice(&frame.content()?)
            .map_err(|error| TraceError::Header(error.to_string()))?;
        if header.format != FORMAT_VERSION {
            return Err(TraceError::Header(format!("version {} of the format", header.format)));
        }
        let first = frame.stop();
        let mut trace = Trace {
            map,
            header,
            first,
            stop: first,
            batches: 0,
            steps: 0,
            truncated: false,
            indexes: Vec::new(),
            limit: u64::MAX,
        };
        if !trace.find_by_index() {
            trace.find_by_heads()?;
        }
        Ok(trace)
    }

    /// From the end frame back over the index frames. False where any of them is missing or not as it was written: then going through the heads will
    /// tell.
    fn find_by_index(&mut self) -> bool {
        let file = &self.map[..];
        let read = |offset: u64, kind: FrameKind| {
            let frame = Frame::at(file, usize::try_from(offset).ok()?, 0).ok()??;
            if frame.kind == kind { Some((frame.content().ok()?.into_owned(), frame.stop())) } else { None }
        };
        let Some(at) = file.len().checked_sub(END_BYTES) else { return false };
        let Some((end, stop)) = read(at as u64, FrameKind::End).filter(|(end, _)| end.len() == 24) else {
            return false;
        };
        let mut end = Bytes(&end);
        let (Ok(last_index), Ok(batches), Ok(steps)) = (end.word(), end.word(), end.word()) else {
            return false;
        };
        let mut indexes = Vec::new();
        let (mut at, mut missing) = (last_index, batches);
        while at != 0 {
            let Some((content, _)) = read(at, FrameKind::Index) else { return false };
            let Ok((previous, before, offsets)) = codec::decode_index(&content) else { return false };
            if before.checked_add(offsets.len() as u64) != Some(missing) || previous >= at {
                return false;
            }
            indexes.push((before, at as usize));
            (at, missing) = (previous, before);
        }
        if missing != 0 || stop != file.len() {
            return false;
        }
        indexes.reverse();
        (self.stop, self.batches, self.steps, self.indexes) = (stop, batches, steps, indexes);
        true
    }

    fn find_by_heads(&mut self) -> Result<(), FrameError> {
        let mut ended = false;
        let mut number = 1;
        while let Some(frame) = Frame::at(&self.map, self.stop, number)? {
            match frame.kind {
                FrameKind::Batch => self.batches += 1,
                FrameKind::Index => {
                    let content = frame.content()?;
                    let (_, before, _) =
                        codec::decode_index(&content).map_err(|what| frame.impossible(what))?;
                    self.indexes.push((before, frame.offset));
                }
                _ => {}
            }
            self.steps += u64::from(matches!(frame.kind, FrameKind::Batch | FrameKind::Clear));
            ended = frame.kind == FrameKind::End;
            self.stop = frame.stop();
            number += 1;
        }
        self.truncated = !ended;
        Ok(())
    }

    /// What the trace says about itself.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Whether the file ends without the end that a finished trace has.
    pub fn truncated(&self) -> bool {
        self.truncated
    }

    /// The length of the file, in bytes.
    pub fn file_bytes(&self) -> u64 {
        self.map.len() as u64
    }

    /// How many batches the trace has.
    pub fn batches(&self) -> u64 {
        self.batches.min(self.limit)
    }

    /// The same trace, ending after so many batches.
    pub fn with_batches(self, batches: u64) -> Trace {
        Trace { limit: batches, ..self }
    }

    /// All steps, from the first.
    pub fn records(&self) -> Records<'_> {
        Records { trace: self, offset: self.first, number: 1, given: 0, finished: false }
    }

    /// The steps from a batch on, counted from 0; `None` if there is no such batch. Frames that it names are numbered from the one that the
    /// search met first.
    ///
    /// # Errors
    /// A frame on the way that is not as it was written.
    pub fn records_from(&self, batch: u64) -> Result<Option<Records<'_>>, FrameError> {
        if batch >= self.batches() {
            return Ok(None);
        }
        let block = self.indexes.partition_point(|&(before, _)| before <= batch);
        let listed = block.checked_sub(1).map(|block| self.indexes[block]);
        if let Some((before, at)) = listed {
            let frame = Frame::at(&self.map, at, 0)?.filter(|frame| frame.kind == FrameKind::Index);
            let frame = frame.expect("opening the trace has met the frame");
            let content = frame.content()?;
            let (_, _, offsets) = codec::decode_index(&content).map_err(|what| frame.impossible(what))?;
            if let Some(&offset) = offsets.get((batch - before) as usize) {
                let offset =
                    usize::try_from(offset).map_err(|_| frame.impossible("an offset past the end"))?;
                return Ok(Some(Records { trace: self, offset, number: 0, given: batch, finished: false }));
            }
        }
        // Behind the last index of a trace that was not finished.
        let (mut given, mut offset) = (0, self.first);
        while let Some(frame) = Frame::at(&self.map[..self.stop], offset, 0)? {
            if frame.kind == FrameKind::Batch {
                if given == batch {
                    break;
                }
                given += 1;
            }
            offset = frame.stop();
        }
        Ok(Some(Records { trace: self, offset, number: 0, given, finished: false }))
    }
}

impl Source for Trace {
    fn untimed(&self) -> usize {
        let untimed = u128::from(self.header.untimed) * u128::from(self.batches());
        (untimed / u128::from(self.batches.max(1))) as usize
    }

    fn batches(&self) -> u64 {
        Trace::batches(self)
    }

    fn stretches(&self, visit: &mut Visit<'_>) -> Result<(), RunError> {
        let mut records = self.records();
        loop {
            let (mut input, mut recorded, mut bytes) = (Input::default(), Vec::new(), 0);
            while bytes < STRETCH_BYTES {
                match records.next_record()? {
                    None => break,
                    Some(Record::Clear(version)) => input.push_clear(version),
                    Some(Record::Batch { batch, recorded: decisions }) => {
                        bytes += batch.bytes();
                        input.push_batch(batch);
                        recorded.extend(decisions);
                    }
                }
            }
            let views = input.views();
            if views.steps().next().is_none() {
                return Ok(());
            }
            // A stretch of which only some batches were decided counts as one without.
            let recorded = if recorded.len() as u64 == views.batches() { &recorded[..] } else { &[] };
            if visit(&views, recorded)?.is_break() {
                return Ok(());
            }
        }
    }
}

/// The steps of a trace, one after the other.
#[derive(Debug)]
pub struct Records<'a> {
    trace: &'a Trace,
    offset: usize,
    number: u64,
    /// Batches before the next one.
    given: u64,
    finished: bool,
}

impl Records<'_> {
    /// The next step; `None` after the last whole one, and after an error.
    ///
    /// # Errors
    /// A frame that is not as it was written.
    pub fn next_record(&mut self) -> Result<Option<Record>, FrameError> {
        while !self.finished {
            match self.next_frame() {
                Ok(ControlFlow::Continue(())) => {}
                Ok(ControlFlow::Break(record)) => {
                    self.finished = record.is_none();
                    return Ok(record);
                }
                Err(error) => {
                    self.finished = true;
                    return Err(error);
                }
            }
        }
        Ok(None)
    }

    /// Takes a frame; breaks with a step, or with none at the end.
    fn next_frame(&mut self) -> Result<ControlFlow<Option<Record>>, FrameError> {
        let Some(frame) = Frame::at(&self.trace.map[..self.trace.stop], self.offset, self.number)? else {
            return Ok(ControlFlow::Break(None));
        };
        let is_batch = frame.kind == FrameKind::Batch;
        if is_batch && self.given == self.trace.limit {
            return Ok(ControlFlow::Break(None));
        }
        let content = frame.content()?;
        self.offset = frame.stop();
        self.number += 1;
        let impossible = |what| frame.impossible(what);
        Ok(match frame.kind {
            FrameKind::Batch => {
                self.given += 1;
                let (batch, recorded) = codec::decode(&content, frame.is_decided()).map_err(impossible)?;
                ControlFlow::Break(Some(Record::Batch { batch, recorded }))
            }
            FrameKind::Clear => {
                ControlFlow::Break(Some(Record::Clear(codec::decode_clear(&content).map_err(impossible)?)))
            }
            FrameKind::Index | FrameKind::End => ControlFlow::Continue(()),
            FrameKind::Header => return Err(frame.impossible("a second header")),
        })
    }
}
