//! A batch as a frame's content.
//!
//! Numbers are varints: seven bits a byte, the lowest first. Signed ones have their sign in the lowest bit.
//!
//! ```text
//! i64 version, signed (version - oldest)
//! n, the number of transactions, then n times:
//!   signed (version - read version)
//!   reads * 2 + report
//!   writes
//! for every range, reads before writes, in the order of the transactions:
//!   bytes of its begin that the begin before shares (for the first: 0)
//!   the length of the rest of its begin
//!   0 for a point, else 1 + bytes of its end that its begin shares
//!   unless it is a point: the length of the rest of its end
//! where the batch is decided: n verdicts, a byte each; the number of reported reads, then for each its transaction and its index
//! the rests of all keys, in the same order, to the end
//! ```

use crate::BatchBuf;
use crate::planted::{ReaderBug, planted};
use resolver_types::{KeyRange, MAX_END_LENGTH, MAX_KEY_LENGTH, Verdict, Verdicts, Version};

fn push_number(bytes: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        bytes.push(number as u8 | 0x80);
        number >>= 7;
    }
    bytes.push(number as u8);
}

/// Sets small distances of either sign apart from large ones.
fn push_signed(bytes: &mut Vec<u8>, number: i64) {
    push_number(bytes, (number << 1 ^ number >> 63) as u64);
}

fn shared(left: &[u8], right: &[u8]) -> usize {
    left.iter().zip(right).take_while(|(left, right)| left == right).count()
}

/// The content of a batch's frame.
///
/// # Panics
/// If there are decisions, and not a verdict for every transaction.
pub(super) fn encode(batch: &BatchBuf, recorded: Option<&Verdicts>) -> Vec<u8> {
    let ranges = batch.ranges();
    let version = batch.version();
    let mut bytes = Vec::with_capacity(ranges.len() * 16);
    bytes.extend_from_slice(&version.0.to_le_bytes());
    push_signed(&mut bytes, version.0.wrapping_sub(batch.oldest().0));
    push_number(&mut bytes, batch.transactions().len() as u64);
    for transaction in batch.transactions() {
        push_signed(&mut bytes, version.0.wrapping_sub(transaction.read_version.0));
        push_number(&mut bytes, u64::from(transaction.reads) * 2 + u64::from(transaction.report));
        push_number(&mut bytes, u64::from(transaction.writes));
    }
    let mut rests = Vec::with_capacity(ranges.len() * 16);
    let mut before: &[u8] = &[];
    for range in &ranges {
        let same = shared(before, range.begin);
        push_number(&mut bytes, same as u64);
        push_number(&mut bytes, (range.begin.len() - same) as u64);
        rests.extend_from_slice(&range.begin[same..]);
        if range.is_point() {
            push_number(&mut bytes, 0);
        } else {
            let same = shared(range.begin, range.end);
            push_number(&mut bytes, 1 + same as u64);
            push_number(&mut bytes, (range.end.len() - same) as u64);
            rests.extend_from_slice(&range.end[same..]);
        }
        before = range.begin;
    }
    if let Some(recorded) = recorded {
        assert_eq!(recorded.verdicts.len(), batch.transactions().len(), "a verdict per transaction");
        bytes.extend(recorded.verdicts.iter().map(|&verdict| verdict as u8));
        push_number(&mut bytes, recorded.reported.len() as u64);
        for &(transaction, read) in &recorded.reported {
            push_number(&mut bytes, u64::from(transaction));
            push_number(&mut bytes, u64::from(read));
        }
    }
    bytes.extend_from_slice(&rests);
    bytes
}

/// What is left of a content.
pub(super) struct Bytes<'a>(pub(super) &'a [u8]);

/// What is wrong with a content.
type Wrong = &'static str;
const SHORT: Wrong = "its content is too short";

impl<'a> Bytes<'a> {
    fn take(&mut self, length: usize) -> Result<&'a [u8], Wrong> {
        let (taken, rest) = self.0.split_at_checked(length).ok_or(SHORT)?;
        self.0 = rest;
        Ok(taken)
    }

    /// Eight bytes.
    pub(super) fn word(&mut self) -> Result<u64, Wrong> {
        Ok(u64::from_le_bytes(self.take(8)?.try_into().expect("take gives the length asked for")))
    }

    /// A varint.
    pub(super) fn number(&mut self) -> Result<u64, Wrong> {
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = self.take(1)?[0];
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err("a number of more than 64 bits")
    }

    fn count(&mut self) -> Result<u32, Wrong> {
        u32::try_from(self.number()?).map_err(|_| "a count of more than 32 bits")
    }

    fn signed(&mut self) -> Result<i64, Wrong> {
        let number = self.number()?;
        Ok((number >> 1) as i64 ^ -((number & 1) as i64))
    }

    fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

/// How one range's keys come out of the rests.
struct Shape {
    begin_shared: usize,
    begin_rest: usize,
    /// Shared and rest; none for a point.
    end: Option<(usize, usize)>,
}

/// The batch of a frame's content, and its decisions if it has them.
pub(super) fn decode(content: &[u8], decided: bool) -> Result<(BatchBuf, Option<Verdicts>), Wrong> {
    let mut bytes = Bytes(content);
    let version = bytes.word()? as i64;
    let oldest = version.wrapping_sub(bytes.signed()?);
    let count = bytes.count()?;
    let mut transactions = Vec::new();
    let mut ranges = 0;
    for _ in 0..count {
        let read_version = Version(version.wrapping_sub(bytes.signed()?));
        let reads = bytes.number()?;
        let report = reads & 1 == 1;
        let reads = u32::try_from(reads >> 1).map_err(|_| "a count of more than 32 bits")?;
        let writes = bytes.count()?;
        transactions.push((read_version, report, reads, writes));
        ranges += u64::from(reads) + u64::from(writes);
    }
    // A range takes three bytes at least.
    if ranges > content.len() as u64 / 3 {
        return Err(SHORT);
    }
    let mut shapes = Vec::with_capacity(ranges as usize);
    for _ in 0..ranges {
        let begin_shared = bytes.count()? as usize;
        let begin_rest = bytes.count()? as usize;
        let end = match bytes.count()? as usize {
            0 => None,
            end_shared => Some((end_shared - 1, bytes.count()? as usize)),
        };
        shapes.push(Shape { begin_shared, begin_rest, end });
    }
    let recorded = if decided { Some(verdicts(&mut bytes, &transactions)?) } else { None };

    let mut batch = BatchBuf::new(Version(version), Version(oldest));
    let mut shapes = shapes.into_iter();
    let (mut begin, mut end) = (Vec::new(), Vec::new());
    for (read_version, report, reads, writes) in transactions {
        batch.push_transaction(read_version, report);
        for nth in 0..reads as usize + writes as usize {
            let shape = shapes.next().expect("a shape for every range");
            let range = keys(&shape, &mut bytes, &mut begin, &mut end)?;
            if nth < reads as usize {
                batch.push_read(range.begin, range.end);
            } else {
                batch.push_write(range.begin, range.end);
            }
        }
    }
    if bytes.is_empty() { Ok((batch, recorded)) } else { Err("its content is too long") }
}

fn keys<'a>(
    shape: &Shape,
    bytes: &mut Bytes<'_>,
    begin: &'a mut Vec<u8>,
    end: &'a mut Vec<u8>,
) -> Result<KeyRange<'a>, Wrong> {
    if shape.begin_shared > begin.len() {
        return Err("a key shares more than there is");
    }
    begin.truncate(shape.begin_shared);
    begin.extend_from_slice(bytes.take(shape.begin_rest)?);
    end.clear();
    match shape.end {
        None => {
            end.extend_from_slice(begin);
            end.push(0);
        }
        Some((shared, rest)) => {
            end.extend_from_slice(begin.get(..shared).ok_or("a key shares more than there is")?);
            end.extend_from_slice(bytes.take(rest)?);
        }
    }
    if begin.len() > MAX_KEY_LENGTH || end.len() > MAX_END_LENGTH {
        return Err("a key is over the limit");
    }
    Ok(KeyRange { begin, end })
}

fn verdicts(bytes: &mut Bytes<'_>, transactions: &[(Version, bool, u32, u32)]) -> Result<Verdicts, Wrong> {
    let verdicts = bytes.take(transactions.len())?.iter().map(|byte| match byte {
        0 => Ok(Verdict::Conflict),
        1 => Ok(Verdict::TooOld),
        3 => Ok(Verdict::Committed),
        _ => Err("an unknown verdict"),
    });
    let verdicts = verdicts.collect::<Result<_, _>>()?;
    let unchecked = planted(ReaderBug::TraceReportUnchecked);
    let mut reported = Vec::new();
    for _ in 0..bytes.count()? {
        let (transaction, read) = (bytes.count()?, bytes.count()?);
        let of = transactions.get(transaction as usize);
        if !of.is_some_and(|&(_, report, reads, _)| report && (read < reads || unchecked)) {
            return Err("a report of a read that is not there");
        }
        reported.push((transaction, read));
    }
    Ok(Verdicts { verdicts, reported })
}

/// The content of a clear's frame.
pub(super) fn encode_clear(version: Version) -> Vec<u8> {
    version.0.to_le_bytes().to_vec()
}

/// The version of a clear.
pub(super) fn decode_clear(content: &[u8]) -> Result<Version, Wrong> {
    let mut bytes = Bytes(content);
    let version = Version(bytes.word()? as i64);
    if bytes.is_empty() { Ok(version) } else { Err("its content is too long") }
}

/// The content of an index frame.
pub(super) fn encode_index(previous: u64, batches_before: u64, offsets: &[u64]) -> Vec<u8> {
    let mut bytes = [previous.to_le_bytes(), batches_before.to_le_bytes()].concat();
    let mut before = 0;
    for &offset in offsets {
        push_number(&mut bytes, offset - before);
        before = offset;
    }
    bytes
}

/// An index frame's content: where the index before stands, the batches before, where the listed ones stand.
pub(super) fn decode_index(content: &[u8]) -> Result<(u64, u64, Vec<u64>), Wrong> {
    let mut bytes = Bytes(content);
    let (previous, batches_before) = (bytes.word()?, bytes.word()?);
    let mut offsets = Vec::new();
    let mut offset = 0u64;
    while !bytes.is_empty() {
        offset = offset.checked_add(bytes.number()?).ok_or("an offset of more than 64 bits")?;
        offsets.push(offset);
    }
    Ok((previous, batches_before, offsets))
}
