//! Captures: real resolver input, recorded inside fdbserver, with the decisions that FoundationDB gave.
//!
//! # Format
//! Plain, or the same compressed with zstd; told apart by the first bytes. Little-endian, no padding.
//!
//! ```text
//! 8 bytes   "FDBCAP01"
//! records until the end of the file:
//!   'C'  i64 version                          every key gets this version
//!   'B'  i64 version, i64 oldest, u32 n       a batch of n transactions, then n times:
//!          i64 read version, u8 report (0 or 1)
//!          u32 reads,  then reads  times: key begin, key end
//!          u32 writes, then writes times: key begin, key end
//!        then n times, in the same order:
//!          u8 verdict: 0 conflict, 1 too old, 3 committed
//!          if report = 1: u32 m, m times u32    indices of conflicting read ranges, any order, may repeat
//!   a key is: u32 length, that many bytes
//! ```
//!
//! A fresh history stands at the start of each file, every key at version 0. A file may end inside a record, because
//! the process that wrote it was killed: what is whole counts.
//!
//! # What a damaged file gives
//! Where the bytes run out the capture is [truncated](CaptureReader::truncated), whatever count or legal length was
//! still owed. A field that no recorder writes (an illegal length, flag, verdict, index or version, an unknown
//! record) is [`CaptureError::Impossible`], at once, however many bytes follow. No count and no length makes the
//! reader allocate: memory grows as bytes arrive, to a small multiple of [`MAX_RECORD_BYTES`] at most.

use crate::BatchBuf;
use crate::planted::{ReaderBug, planted};
use resolver_types::{MAX_END_LENGTH, MAX_KEY_LENGTH, Verdict, Verdicts, Version};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Cursor, Read, Write};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// The first bytes of a plain capture.
pub const MAGIC: [u8; 8] = *b"FDBCAP01";

/// The first bytes of a zstd frame.
const ZSTD_MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];

/// The longest record that the reader takes, in bytes: more than 25 of FoundationDB's largest transactions. It bounds
/// the memory that a hostile, highly compressible file can claim.
pub const MAX_RECORD_BYTES: u64 = 256 << 20;

/// Bytes read ahead. Every field fits, so that each stands in one piece.
const BUFFER_BYTES: usize = 256 << 10;
const _: () = assert!(BUFFER_BYTES >= MAX_END_LENGTH, "the longest field fits the buffer");

/// The folder of the small captures that come with the project.
pub fn captures_dir() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("captures")
}

/// The folder of the full captures, `../shared/captures` beside the repository; `None` where there is none.
pub fn shared_captures_dir() -> Option<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/captures");
    folder.is_dir().then_some(folder)
}

/// The captures of a folder (`*.fdbcap.zst` and `*.fdbcap`), in the order of their names.
///
/// # Errors
/// Those of reading the folder.
pub fn captures_in(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths = Vec::new();
    for entry in folder.read_dir()? {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        if name.ends_with(".fdbcap.zst") || name.ends_with(".fdbcap") {
            paths.push(path);
        }
    }
    paths.sort();
    Ok(paths)
}

/// Why a capture cannot be read. Offsets count the bytes of the plain form.
#[derive(Debug, Error)]
pub enum CaptureError {
    /// The content starts neither as a plain capture nor as a compressed one.
    #[error("not a capture: it starts with {found:02x?}, not with \"FDBCAP01\", plain or in a zstd frame")]
    NotACapture {
        /// The first bytes, up to eight.
        found: Vec<u8>,
    },
    /// The content ends before it can be told to be a capture: cut in the plain form's magic, or in a frame's first block.
    #[error("too short to be a capture: it ends after {found} (unpacked) bytes of the first 8")]
    TooShort {
        /// Bytes that are there.
        found: usize,
    },
    /// The operating system failed to read.
    #[error("cannot read: {0}")]
    Io(#[source] io::Error),
    /// The zstd stream is damaged, not merely cut.
    #[error("corrupt zstd stream after {offset} unpacked bytes: {source}")]
    CorruptStream {
        /// Bytes unpacked before the damage was noticed.
        offset: u64,
        /// What the decompressor says.
        source: io::Error,
    },
    /// A field holds what no recorder writes.
    #[error("impossible capture: {field} at byte {offset} is {found}; legal is {legal}")]
    Impossible {
        /// Where the field stands.
        offset: u64,
        /// The field.
        field: &'static str,
        /// Its value.
        found: i64,
        /// What it may hold.
        legal: String,
    },
}

/// One record of a capture.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Record {
    /// Every key gets this version.
    Clear(Version),
    /// A batch, and what FoundationDB decided about it.
    Batch {
        /// The batch as the resolver received it.
        batch: BatchBuf,
        /// The recorded decisions; reports ascending, without duplicates.
        recorded: Verdicts,
    },
}

/// Why the reader stops inside a record.
enum Stop {
    /// The bytes have run out.
    End,
    /// The content is no capture.
    Failed(CaptureError),
}

impl From<CaptureError> for Stop {
    fn from(error: CaptureError) -> Stop {
        Stop::Failed(error)
    }
}

fn impossible(offset: u64, field: &'static str, found: i64, legal: impl Into<String>) -> Stop {
    Stop::Failed(CaptureError::Impossible { offset, field, found, legal: legal.into() })
}

/// The plain bytes of a capture, handed out field by field.
struct Fields {
    source: Box<dyn Read + Send>,
    buffer: Vec<u8>,
    /// The bytes read and not yet taken: `buffer[start..stop]`.
    start: usize,
    stop: usize,
    /// Bytes taken so far.
    offset: u64,
    /// Where the open record must have ended.
    record_limit: u64,
    ended: bool,
    /// Whether the source ended inside a zstd frame.
    cut: bool,
}

impl Fields {
    fn new(source: Box<dyn Read + Send>) -> Fields {
        Fields {
            source,
            buffer: vec![0; BUFFER_BYTES],
            start: 0,
            stop: 0,
            offset: 0,
            record_limit: MAX_RECORD_BYTES,
            ended: false,
            cut: false,
        }
    }

    /// Bytes read so far, taken or not.
    fn received(&self) -> u64 {
        self.offset + (self.stop - self.start) as u64
    }

    /// Reads until `length` bytes are there or the source ends.
    fn fill(&mut self, length: usize) -> Result<(), CaptureError> {
        if self.buffer.len() - self.start < length {
            self.buffer.copy_within(self.start..self.stop, 0);
            self.stop -= self.start;
            self.start = 0;
        }
        while self.stop - self.start < length && !self.ended {
            match self.source.read(&mut self.buffer[self.stop..]) {
                Ok(0) => self.ended = true,
                Ok(read) => self.stop += read,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => {
                    self.ended = true;
                    self.cut = true;
                }
                Err(error) if error.raw_os_error().is_some() => return Err(CaptureError::Io(error)),
                Err(source) => return Err(CaptureError::CorruptStream { offset: self.received(), source }),
            }
        }
        Ok(())
    }

    /// The next `length` bytes.
    #[inline]
    fn take(&mut self, length: usize) -> Result<&[u8], Stop> {
        if self.stop - self.start < length {
            self.fill(length)?;
            if self.stop - self.start < length {
                return Err(Stop::End);
            }
        }
        if self.offset + length as u64 > self.record_limit {
            let size = MAX_RECORD_BYTES + (self.offset + length as u64 - self.record_limit);
            let legal = format!("at most {MAX_RECORD_BYTES} bytes");
            return Err(impossible(self.offset, "a record's length so far", size as i64, legal));
        }
        let field = &self.buffer[self.start..self.start + length];
        self.start += length;
        self.offset += length as u64;
        Ok(field)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Stop> {
        Ok(self.take(N)?.try_into().expect("take gives the length asked for"))
    }

    fn byte(&mut self) -> Result<u8, Stop> {
        Ok(self.array::<1>()?[0])
    }

    fn count(&mut self) -> Result<u32, Stop> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn version(&mut self) -> Result<Version, Stop> {
        Ok(Version(i64::from_le_bytes(self.array()?)))
    }

    /// A version that a batch or a clear carries: never negative.
    fn commit_version(&mut self, field: &'static str) -> Result<Version, Stop> {
        let offset = self.offset;
        let version = self.version()?;
        if version < Version::ZERO {
            return Err(impossible(offset, field, version.0, "at least 0"));
        }
        Ok(version)
    }

    fn key(&mut self, field: &'static str, limit: usize) -> Result<&[u8], Stop> {
        let offset = self.offset;
        let length = self.count()? as usize;
        if length > limit {
            return Err(impossible(offset, field, length as i64, format!("at most {limit} bytes")));
        }
        self.take(length)
    }
}

/// Reads the records of one capture, in order, in a constant read-ahead buffer.
pub struct CaptureReader {
    fields: Fields,
    /// A range's begin, while its end is read.
    begin: Vec<u8>,
    finished: bool,
    truncated: bool,
}

impl CaptureReader {
    /// Opens a capture file, plain or compressed with zstd, whatever its name.
    ///
    /// # Errors
    /// [`CaptureError::Io`], [`CaptureError::NotACapture`], [`CaptureError::TooShort`], and
    /// [`CaptureError::CorruptStream`] when the damage stands in the first frame's first block.
    pub fn open(path: &Path) -> Result<CaptureReader, CaptureError> {
        CaptureReader::new(BufReader::new(File::open(path).map_err(CaptureError::Io)?))
    }

    /// Reads a capture, plain or compressed, from memory.
    ///
    /// # Errors
    /// As [`CaptureReader::open`].
    pub fn from_bytes(bytes: Vec<u8>) -> Result<CaptureReader, CaptureError> {
        CaptureReader::new(Cursor::new(bytes))
    }

    fn new(mut source: impl BufRead + Send + 'static) -> Result<CaptureReader, CaptureError> {
        let mut head = Vec::with_capacity(MAGIC.len());
        source.by_ref().take(MAGIC.len() as u64).read_to_end(&mut head).map_err(CaptureError::Io)?;
        let compressed = head.starts_with(&ZSTD_MAGIC);
        let source = Cursor::new(head).chain(source);
        let mut fields = if compressed {
            let decoder = zstd::stream::read::Decoder::with_buffer(source)
                .map_err(|source| CaptureError::CorruptStream { offset: 0, source })?;
            Fields::new(Box::new(decoder))
        } else {
            Fields::new(Box::new(source))
        };
        fields.fill(MAGIC.len())?;
        let found = &fields.buffer[..fields.stop.min(MAGIC.len())];
        if !MAGIC.starts_with(found) {
            return Err(CaptureError::NotACapture { found: found.to_vec() });
        }
        if found.len() < MAGIC.len() {
            return Err(CaptureError::TooShort { found: found.len() });
        }
        fields.start = MAGIC.len();
        fields.offset = MAGIC.len() as u64;
        Ok(CaptureReader { fields, begin: Vec::new(), finished: false, truncated: false })
    }

    /// The next record; `None` after the last whole one, and after an error.
    ///
    /// # Errors
    /// [`CaptureError::Io`], [`CaptureError::CorruptStream`] and [`CaptureError::Impossible`]. Records given before
    /// stand.
    pub fn next_record(&mut self) -> Result<Option<Record>, CaptureError> {
        if self.finished {
            return Ok(None);
        }
        let start = self.fields.offset;
        self.fields.record_limit = start + MAX_RECORD_BYTES;
        match self.record() {
            Ok(record) => Ok(Some(record)),
            Err(stop) => {
                self.finished = true;
                match stop {
                    Stop::End => {
                        self.truncated = self.fields.cut || self.fields.received() > start;
                        Ok(None)
                    }
                    Stop::Failed(error) => Err(error),
                }
            }
        }
    }

    /// Whether the capture ended inside a record or inside a zstd frame; known once
    /// [`next_record`](CaptureReader::next_record) has given `None`.
    pub fn truncated(&self) -> bool {
        self.truncated
    }

    fn record(&mut self) -> Result<Record, Stop> {
        let offset = self.fields.offset;
        match self.fields.byte()? {
            b'C' => Ok(Record::Clear(self.fields.commit_version("a clear's version")?)),
            b'B' => self.batch(),
            kind => Err(impossible(offset, "a record's kind", i64::from(kind), "66 ('B') or 67 ('C')")),
        }
    }

    fn batch(&mut self) -> Result<Record, Stop> {
        let version = self.fields.commit_version("a batch's version")?;
        let oldest = self.fields.version()?;
        let transactions = self.fields.count()?;
        let mut batch = BatchBuf::new(version, oldest);
        for _ in 0..transactions {
            self.transaction(&mut batch)?;
        }
        let mut recorded = Verdicts::default();
        for (index, transaction) in batch.transactions().iter().enumerate() {
            let offset = self.fields.offset;
            recorded.verdicts.push(match self.fields.byte()? {
                0 => Verdict::Conflict,
                1 => Verdict::TooOld,
                3 => Verdict::Committed,
                other => return Err(impossible(offset, "a verdict", i64::from(other), "0, 1 or 3")),
            });
            if transaction.report {
                self.report(index as u32, transaction.reads, &mut recorded)?;
            }
        }
        recorded.reported.sort_unstable();
        recorded.reported.dedup();
        Ok(Record::Batch { batch, recorded })
    }

    fn transaction(&mut self, batch: &mut BatchBuf) -> Result<(), Stop> {
        let read_version = self.fields.version()?;
        let offset = self.fields.offset;
        let report = match self.fields.byte()? {
            0 => false,
            1 => true,
            other => return Err(impossible(offset, "a report flag", i64::from(other), "0 or 1")),
        };
        batch.push_transaction(read_version, report);
        for _ in 0..self.fields.count()? {
            let end = Self::range(&mut self.fields, &mut self.begin)?;
            batch.push_read(&self.begin, end);
        }
        for _ in 0..self.fields.count()? {
            let end = Self::range(&mut self.fields, &mut self.begin)?;
            batch.push_write(&self.begin, end);
        }
        Ok(())
    }

    /// Reads a range: its begin into `begin`, its end as the result.
    fn range<'a>(fields: &'a mut Fields, begin: &mut Vec<u8>) -> Result<&'a [u8], Stop> {
        begin.clear();
        begin.extend_from_slice(fields.key("the length of a range's begin", MAX_KEY_LENGTH)?);
        fields.key("the length of a range's end", MAX_END_LENGTH)
    }

    fn report(&mut self, transaction: u32, reads: u32, recorded: &mut Verdicts) -> Result<(), Stop> {
        for _ in 0..self.fields.count()? {
            let offset = self.fields.offset;
            let read = self.fields.count()?;
            if read >= reads && !planted(ReaderBug::CaptureReportUnchecked) {
                let legal = format!("less than the transaction's {reads} reads");
                return Err(impossible(offset, "a reported read's index", i64::from(read), legal));
            }
            recorded.reported.push((transaction, read));
        }
        Ok(())
    }
}

/// Writes a capture in the plain form.
#[derive(Debug)]
pub struct CaptureWriter<W: Write> {
    out: W,
}

impl<W: Write> CaptureWriter<W> {
    /// Begins a capture.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn new(mut out: W) -> io::Result<CaptureWriter<W>> {
        out.write_all(&MAGIC)?;
        Ok(CaptureWriter { out })
    }

    /// Adds a record, of either kind.
    ///
    /// # Errors
    /// Those of `out`.
    ///
    /// # Panics
    /// As [`CaptureWriter::batch`].
    pub fn record(&mut self, record: &Record) -> io::Result<()> {
        match record {
            Record::Clear(version) => self.clear(*version),
            Record::Batch { batch, recorded } => self.batch(batch, recorded),
        }
    }

    /// Adds the record that gives every key `version`.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn clear(&mut self, version: Version) -> io::Result<()> {
        self.out.write_all(b"C")?;
        self.out.write_all(&version.0.to_le_bytes())
    }

    /// Adds a batch and the decisions about it.
    ///
    /// # Errors
    /// Those of `out`.
    ///
    /// # Panics
    /// If there are not as many verdicts as transactions.
    pub fn batch(&mut self, batch: &BatchBuf, recorded: &Verdicts) -> io::Result<()> {
        assert_eq!(batch.transactions().len(), recorded.verdicts.len(), "a verdict per transaction");
        let ranges = batch.ranges();
        let view = batch.batch(&ranges);
        self.out.write_all(b"B")?;
        self.out.write_all(&view.version.0.to_le_bytes())?;
        self.out.write_all(&view.oldest.0.to_le_bytes())?;
        self.count(view.transactions.len())?;
        for transaction in view.transactions {
            self.out.write_all(&transaction.read_version.0.to_le_bytes())?;
            self.out.write_all(&[u8::from(transaction.report)])?;
            for side in [view.reads(transaction), view.writes(transaction)] {
                self.count(side.len())?;
                for range in side {
                    for key in [range.begin, range.end] {
                        self.count(key.len())?;
                        self.out.write_all(key)?;
                    }
                }
            }
        }
        for (index, transaction) in view.transactions.iter().enumerate() {
            self.out.write_all(&[recorded.verdicts[index] as u8])?;
            if transaction.report {
                let reads: Vec<u32> = recorded.reported_of(index as u32).collect();
                self.count(reads.len())?;
                for read in reads {
                    self.out.write_all(&read.to_le_bytes())?;
                }
            }
        }
        Ok(())
    }

    fn count(&mut self, count: usize) -> io::Result<()> {
        let count = u32::try_from(count).expect("a batch's counts and lengths fit 32 bits");
        self.out.write_all(&count.to_le_bytes())
    }

    /// Flushes and gives back what was written to.
    ///
    /// # Errors
    /// Those of `out`.
    pub fn finish(mut self) -> io::Result<W> {
        self.out.flush()?;
        Ok(self.out)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<Record> {
        let mut batch = BatchBuf::new(Version(9), Version(-4));
        batch.push_transaction(Version(3), true);
        batch.push_read(b"a", b"b");
        batch.push_read(b"", b"\x00");
        batch.push_write(&[7; MAX_KEY_LENGTH], &[7; MAX_END_LENGTH]);
        batch.push_transaction(Version(-1), false);
        batch.push_write(b"z", b"y");
        batch.push_transaction(Version(i64::MAX), false);
        let recorded = Verdicts {
            verdicts: vec![Verdict::Conflict, Verdict::Committed, Verdict::TooOld],
            reported: vec![(0, 0), (0, 1)],
        };
        let empty =
            Record::Batch { batch: BatchBuf::new(Version(10), Version(0)), recorded: Verdicts::default() };
        vec![Record::Clear(Version(5)), Record::Batch { batch, recorded }, empty]
    }

    fn plain(records: &[Record]) -> Vec<u8> {
        let mut writer = CaptureWriter::new(Vec::new()).unwrap();
        for record in records {
            writer.record(record).unwrap();
        }
        writer.finish().unwrap()
    }

    fn read(bytes: Vec<u8>) -> Result<(Vec<Record>, bool), CaptureError> {
        let mut reader = CaptureReader::from_bytes(bytes)?;
        let mut records = Vec::new();
        while let Some(record) = reader.next_record()? {
            records.push(record);
        }
        Ok((records, reader.truncated()))
    }

    fn read_impossible(bytes: Vec<u8>) -> (u64, &'static str, i64) {
        match read(bytes) {
            Err(CaptureError::Impossible { offset, field, found, .. }) => (offset, field, found),
            other => panic!("an impossible field, not {other:?}"),
        }
    }

    #[test]
    fn what_was_written_is_read_back_plain_and_compressed() {
        let bytes = plain(&sample());
        assert_eq!(read(bytes.clone()).unwrap(), (sample(), false));
        assert_eq!(read(zstd::encode_all(&bytes[..], 3).unwrap()).unwrap(), (sample(), false));
    }

    #[test]
    fn two_frames_are_one_capture() {
        let bytes = plain(&sample());
        let mut frames = zstd::encode_all(&bytes[..11], 3).unwrap();
        frames.extend(zstd::encode_all(&bytes[11..], 3).unwrap());
        assert_eq!(read(frames).unwrap(), (sample(), false));
    }

    #[test]
    fn a_report_is_sorted_and_loses_its_duplicates() {
        let mut batch = BatchBuf::new(Version(1), Version(0));
        batch.push_transaction(Version(0), true);
        batch.push_read(b"a", b"b");
        batch.push_read(b"c", b"d");
        let recorded = Verdicts { verdicts: vec![Verdict::Conflict], reported: Vec::new() };
        let mut bytes = plain(&[Record::Batch { batch, recorded }]);
        bytes.truncate(bytes.len() - 4);
        for word in [4u32, 1, 0, 1, 1] {
            bytes.extend(word.to_le_bytes());
        }
        let (records, _) = read(bytes).unwrap();
        let [Record::Batch { recorded, .. }] = &records[..] else { panic!("one batch") };
        assert_eq!(recorded.reported, [(0, 0), (0, 1)]);
    }

    #[test]
    fn every_cut_of_the_plain_form_gives_its_whole_records() {
        let records = sample();
        let bytes = plain(&records);
        let stops: Vec<usize> = (0..=records.len()).map(|count| plain(&records[..count]).len()).collect();
        let cuts = (8..300).chain(bytes.len() - 300..=bytes.len());
        for cut in cuts {
            let whole = stops.iter().filter(|&&stop| stop <= cut).count() - 1;
            let truncated = !stops.contains(&cut);
            assert_eq!(read(bytes[..cut].to_vec()).unwrap(), (records[..whole].to_vec(), truncated), "{cut}");
        }
        for cut in 0..8 {
            let read = read(bytes[..cut].to_vec());
            assert!(matches!(read, Err(CaptureError::TooShort { found }) if found == cut), "{cut} bytes");
        }
    }

    #[test]
    fn a_cut_frame_is_truncation_even_between_records() {
        let bytes = zstd::encode_all(&plain(&sample())[..], 3).unwrap();
        let (_, truncated) = read(bytes[..bytes.len() - 1].to_vec()).unwrap();
        assert!(truncated);
    }

    #[test]
    fn other_content_is_not_a_capture() {
        for bytes in
            [b"FDB?".to_vec(), b"FDBCAP02........".to_vec(), zstd::encode_all(&b"hello"[..], 3).unwrap()]
        {
            assert!(matches!(read(bytes), Err(CaptureError::NotACapture { .. })));
        }
        let missing = CaptureReader::open(Path::new("no such file")).err();
        assert!(matches!(missing, Some(CaptureError::Io(_))));
    }

    #[test]
    fn damage_inside_a_frame_is_told_from_a_cut() {
        let mut bytes = zstd::encode_all(&plain(&sample())[..], 3).unwrap();
        bytes.extend(b"not another frame");
        assert!(matches!(read(bytes), Err(CaptureError::CorruptStream { .. })));
    }

    #[test]
    fn impossible_fields_are_named_with_their_place() {
        let header = |kind: u8, fields: &[&[u8]]| {
            let mut bytes = MAGIC.to_vec();
            bytes.push(kind);
            fields.iter().for_each(|field| bytes.extend_from_slice(field));
            bytes
        };
        let (version, one) = (&5i64.to_le_bytes()[..], &1u32.to_le_bytes()[..]);
        let negative = &(-5i64).to_le_bytes()[..];
        assert_eq!(read_impossible(header(b'D', &[])), (8, "a record's kind", 68));
        assert_eq!(read_impossible(header(b'C', &[negative])), (9, "a clear's version", -5));
        assert_eq!(read_impossible(header(b'B', &[negative])), (9, "a batch's version", -5));
        let transaction = |fields: &[&[u8]]| {
            let mut all = vec![version, version, one, version];
            all.extend(fields);
            header(b'B', &all)
        };
        assert_eq!(read_impossible(transaction(&[&[2]])), (37, "a report flag", 2));
        let (begin, end) = (&65_536u32.to_le_bytes()[..], &65_537u32.to_le_bytes()[..]);
        let none = &0u32.to_le_bytes()[..];
        assert_eq!(
            read_impossible(transaction(&[&[0], one, begin])),
            (42, "the length of a range's begin", 65_536)
        );
        assert_eq!(
            read_impossible(transaction(&[&[0], none, one, none, end])),
            (50, "the length of a range's end", 65_537)
        );
        assert_eq!(read_impossible(transaction(&[&[0], none, none, &[2]])), (46, "a verdict", 2));
        assert_eq!(
            read_impossible(transaction(&[&[1], none, none, &[0], one, none])),
            (51, "a reported read's index", 0)
        );
    }

    #[test]
    fn a_claimed_count_is_truncation_and_claims_no_memory() {
        let mut bytes = MAGIC.to_vec();
        bytes.push(b'B');
        bytes.extend(5i64.to_le_bytes());
        bytes.extend(0i64.to_le_bytes());
        bytes.extend(u32::MAX.to_le_bytes());
        assert_eq!(read(bytes).unwrap(), (Vec::new(), true));
    }

    #[test]
    fn an_endless_record_is_refused_at_the_limit() {
        let mut head = MAGIC.to_vec();
        head.push(b'B');
        head.extend(5i64.to_le_bytes());
        head.extend(0i64.to_le_bytes());
        head.extend(1u32.to_le_bytes());
        head.extend(0i64.to_le_bytes());
        head.extend([0]);
        head.extend(u32::MAX.to_le_bytes());
        // Ranges of two keys of 65,500 bytes each, without end.
        let mut range = 65_500u32.to_le_bytes().to_vec();
        range.resize(4 + 65_500, b'k');
        let endless = Cursor::new(head).chain(Endless { period: range, at: 0 });
        let mut reader =
            CaptureReader::new(BufReader::new(endless)).unwrap_or_else(|error| panic!("{error}"));
        let error = reader.next_record().unwrap_err();
        let CaptureError::Impossible { offset, .. } = error else { panic!("{error}") };
        assert!(offset > MAX_RECORD_BYTES - 70_000 && offset <= MAX_RECORD_BYTES + 8);
        assert!(matches!(reader.next_record(), Ok(None)));
    }

    struct Endless {
        period: Vec<u8>,
        at: usize,
    }

    impl Read for Endless {
        fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
            let length = buffer.len().min(self.period.len() - self.at);
            buffer[..length].copy_from_slice(&self.period[self.at..self.at + length]);
            self.at = (self.at + length) % self.period.len();
            Ok(length)
        }
    }
}
