//! Target `capture`: the reader of captures, on raw bytes.
//!
//! # Strategy
//! The first byte says whether the bytes behind it are a whole file, the records of a plain one, or the records of
//! one that is then compressed; two more say where a second reading is cut short.
//!
//! # Invariants
//! - Nothing panics; an error is one line, and nothing follows it.
//! - Every record is legal: what a history could be given, in bytes that were there.
//! - What a cut file gives is a prefix of what the whole gives.
//! - What was read can be written and read again, and is the same.
//!
//! How much memory the reader takes at a time is left to libFuzzer's limit on allocations.

use crate::target::{Target, planted_in_reader};
use resolver_types::{MAX_END_LENGTH, MAX_KEY_LENGTH, Verdicts};
use resolver_workloads::BatchBuf;
use resolver_workloads::capture::{CaptureError, CaptureReader, CaptureWriter, MAGIC, Record};

/// The target.
pub const TARGET: Target = Target { name: "capture", body, canary: "capture-report-unchecked" };

/// Bytes in front of what is read.
pub(crate) const SETTINGS: usize = 3;

/// The first byte, modulo 16, of an input that is a whole file.
pub(crate) const WHOLE: u8 = 0;
/// The first byte, modulo 16, of an input that is the records of a compressed capture, up to this one.
pub(crate) const COMPRESSED: u8 = 4;
/// The first byte, modulo 16, of an input that is the records of a plain capture, from this one on.
pub(crate) const RECORDS: u8 = 5;

/// What a reading gave.
struct Reading {
    records: Vec<Record>,
    truncated: bool,
    error: Option<CaptureError>,
    /// Whether it was told to be a capture.
    opened: bool,
}

fn read(bytes: &[u8]) -> Reading {
    let mut reading = Reading { records: Vec::new(), truncated: false, error: None, opened: false };
    match CaptureReader::from_bytes(bytes.to_vec()) {
        Err(error) => reading.error = Some(error),
        Ok(mut reader) => {
            reading.opened = true;
            loop {
                match reader.next_record() {
                    Ok(Some(record)) => reading.records.push(record),
                    Ok(None) => {
                        reading.truncated = reader.truncated();
                        break;
                    }
                    Err(error) => {
                        assert!(matches!(reader.next_record(), Ok(None)), "something follows an error");
                        reading.error = Some(error);
                        break;
                    }
                }
            }
        }
    }
    if let Some(error) = &reading.error {
        let message = error.to_string();
        assert!(!message.is_empty() && !message.contains('\n'), "{message:?}");
    }
    reading
}

/// Panics unless a history could be given the batch, with decisions that could be about it. Returns its key bytes.
pub(crate) fn check_batch(batch: &BatchBuf, recorded: Option<&Verdicts>) -> usize {
    let transactions = batch.transactions();
    let ranges = batch.ranges();
    for range in &ranges {
        assert!(
            range.begin.len() <= MAX_KEY_LENGTH && range.end.len() <= MAX_END_LENGTH,
            "a key is too long"
        );
    }
    if let Some(recorded) = recorded {
        assert_eq!(recorded.verdicts.len(), transactions.len());
        for &(transaction, read) in &recorded.reported {
            let transaction = transactions.get(transaction as usize).expect("a report of no transaction");
            assert!(transaction.report && read < transaction.reads, "a report of no read");
        }
    }
    ranges.iter().map(|range| range.begin.len() + range.end.len()).sum()
}

fn body(input: &[u8], bug: Option<&'static str>) -> bool {
    planted_in_reader(bug);
    let Some((&[kind, cut, scale], rest)) = input.split_first_chunk::<SETTINGS>() else { return false };
    let plain = || [&MAGIC, rest].concat();
    let kind = kind & 15;
    let file = match kind {
        WHOLE => rest.to_vec(),
        1..=COMPRESSED => zstd::encode_all(&plain()[..], 1).expect("memory takes all"),
        _ => plain(),
    };
    let whole = read(&file);
    let bytes: usize = whole
        .records
        .iter()
        .map(|record| match record {
            Record::Clear(_) => 0,
            Record::Batch { batch, recorded } => {
                assert!(
                    recorded.reported.is_sorted_by(|left, right| left < right),
                    "reports are not ascending"
                );
                check_batch(batch, Some(recorded))
            }
        })
        .sum();
    assert!(kind == WHOLE || bytes <= rest.len(), "{bytes} key bytes out of {}", rest.len());

    let cut = file.len() * usize::from(cut) / 256 + usize::from(scale);
    let shorter = read(&file[..cut.min(file.len())]);
    let common = whole.records.len().min(shorter.records.len());
    assert!(shorter.records.len() == common && shorter.records == whole.records[..common], "no prefix");

    let mut writer = CaptureWriter::new(Vec::new()).expect("memory takes all");
    whole.records.iter().for_each(|record| writer.record(record).expect("memory takes all"));
    let again = read(&writer.finish().expect("memory takes all"));
    assert!(again.records == whole.records && again.error.is_none() && !again.truncated);
    whole.opened
}
