//! Frames: heads, checksums, and what is wrong with either.

use std::borrow::Cow;
use thiserror::Error;

/// Bytes of a frame's head.
pub(super) const HEAD_BYTES: usize = 16;

/// The flag of content that is compressed.
pub(super) const COMPRESSED: u8 = 1;
/// The flag of a batch that comes with its decisions.
pub(super) const DECIDED: u8 = 2;

/// The longest content of a frame, compressed or not.
pub(super) const MAX_CONTENT_BYTES: usize = 256 << 20;

/// Fast, and enough: most of a trace's bytes are random.
const COMPRESSION_LEVEL: i32 = 1;

/// What a frame holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum FrameKind {
    /// What the trace says about itself.
    Header = b'H',
    /// A batch.
    Batch = b'B',
    /// Every key gets a version.
    Clear = b'C',
    /// Where batches stand.
    Index = b'I',
    /// The trace was finished.
    End = b'E',
}

impl FrameKind {
    fn of(byte: u8) -> Option<FrameKind> {
        use FrameKind::*;
        [Header, Batch, Clear, Index, End].into_iter().find(|kind| *kind as u8 == byte)
    }
}

/// A frame that is not as it was written.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FrameError {
    /// A checksum does not agree.
    #[error(
        "frame {frame} at byte {offset} is damaged: the checksum of its {part} is {found:08x}, not {stated:08x}"
    )]
    Damaged {
        /// The frame, counted from 0, the header's.
        frame: u64,
        /// Where it starts.
        offset: u64,
        /// `head` or `content`.
        part: &'static str,
        /// The checksum of the bytes that are there.
        found: u32,
        /// The checksum in the file.
        stated: u32,
    },
    /// The checksums agree, and yet the content is what no writer writes.
    #[error("frame {frame} at byte {offset} is impossible: {what}")]
    Impossible {
        /// The frame, counted from 0, the header's.
        frame: u64,
        /// Where it starts.
        offset: u64,
        /// What is wrong.
        what: &'static str,
    },
}

/// A whole frame of a file.
#[derive(Clone, Copy, Debug)]
pub(super) struct Frame<'a> {
    /// Its place among the frames.
    pub(super) number: u64,
    /// Where it starts.
    pub(super) offset: usize,
    pub(super) kind: FrameKind,
    flags: u8,
    checksum: u32,
    stored: &'a [u8],
}

impl<'a> Frame<'a> {
    /// The frame at an offset; `None` where the file ends inside it.
    pub(super) fn at(file: &'a [u8], offset: usize, number: u64) -> Result<Option<Frame<'a>>, FrameError> {
        let Some(head) = file.get(offset..).and_then(|rest| rest.first_chunk::<HEAD_BYTES>()) else {
            return Ok(None);
        };
        let word = |at: usize| u32::from_le_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
        let (found, stated) = (crc32fast::hash(&head[..12]), word(12));
        if found != stated {
            return Err(FrameError::Damaged {
                frame: number,
                offset: offset as u64,
                part: "head",
                found,
                stated,
            });
        }
        let impossible = |what| FrameError::Impossible { frame: number, offset: offset as u64, what };
        let kind = FrameKind::of(head[0]).ok_or_else(|| impossible("an unknown kind"))?;
        let length = word(4) as usize;
        if length > MAX_CONTENT_BYTES {
            return Err(impossible("longer than any frame"));
        }
        let Some(stored) = file.get(offset + HEAD_BYTES..offset + HEAD_BYTES + length) else {
            return Ok(None);
        };
        Ok(Some(Frame { number, offset, kind, flags: head[1], checksum: word(8), stored }))
    }

    /// Where the next frame starts.
    pub(super) fn stop(&self) -> usize {
        self.offset + HEAD_BYTES + self.stored.len()
    }

    pub(super) fn is_decided(&self) -> bool {
        self.flags & DECIDED != 0
    }

    pub(super) fn impossible(&self, what: &'static str) -> FrameError {
        FrameError::Impossible { frame: self.number, offset: self.offset as u64, what }
    }

    /// The content, checked.
    pub(super) fn content(&self) -> Result<Cow<'a, [u8]>, FrameError> {
        let (found, stated) = (crc32fast::hash(self.stored), self.checksum);
        if found != stated {
            let offset = self.offset as u64;
            return Err(FrameError::Damaged { frame: self.number, offset, part: "content", found, stated });
        }
        if self.flags & COMPRESSED == 0 {
            return Ok(Cow::Borrowed(self.stored));
        }
        let (length, compressed) =
            self.stored.split_first_chunk().ok_or_else(|| self.impossible("compressed, and no length"))?;
        let length = u32::from_le_bytes(*length) as usize;
        if length > MAX_CONTENT_BYTES {
            return Err(self.impossible("longer than any frame once it is unpacked"));
        }
        match zstd::bulk::decompress(compressed, length) {
            Ok(content) if content.len() == length => Ok(Cow::Owned(content)),
            _ => Err(self.impossible("not what zstd compresses")),
        }
    }
}

/// A frame's bytes: its head and its content, which is compressed where that makes it shorter.
pub(super) fn frame(kind: FrameKind, decided: bool, content: &[u8]) -> Vec<u8> {
    assert!(content.len() <= MAX_CONTENT_BYTES, "a frame of {} bytes", content.len());
    // A compressor that fails has compressed nothing.
    let compressed = zstd::bulk::compress(content, COMPRESSION_LEVEL).ok();
    let compressed = compressed.filter(|compressed| compressed.len() + 4 < content.len());
    let stored = compressed.as_ref().map_or(content.len(), |compressed| compressed.len() + 4);
    let mut bytes = Vec::with_capacity(HEAD_BYTES + stored);
    let flags = if compressed.is_some() { COMPRESSED } else { 0 } | if decided { DECIDED } else { 0 };
    bytes.extend_from_slice(&[kind as u8, flags, 0, 0]);
    bytes.extend_from_slice(&(stored as u32).to_le_bytes());
    bytes.resize(HEAD_BYTES, 0);
    match compressed {
        Some(compressed) => {
            bytes.extend_from_slice(&(content.len() as u32).to_le_bytes());
            bytes.extend_from_slice(&compressed);
        }
        None => bytes.extend_from_slice(content),
    }
    let checksum = crc32fast::hash(&bytes[HEAD_BYTES..]);
    bytes[8..12].copy_from_slice(&checksum.to_le_bytes());
    let checksum = crc32fast::hash(&bytes[..12]);
    bytes[12..16].copy_from_slice(&checksum.to_le_bytes());
    bytes
}
