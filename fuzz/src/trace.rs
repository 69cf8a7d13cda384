//! Target `trace`: the reader of traces, on raw bytes and on damaged traces whose checksums are sound.
//!
//! # Strategy
//! Checksums keep nearly all damage from the decoders behind them. So, unless the first byte says that the bytes are
//! a file as they are, they are walked as frames, and every frame gets the magic, the kind and the checksums that
//! it needs to be looked into. Two more bytes say where a second reading is cut short, and a third which batch a reading
//! starts from.
//!
//! # Invariants
//! - Nothing panics; an error is one line, and nothing follows it.
//! - Every record is legal: what a history could be given.
//! - What a cut file gives is a prefix of what the whole gives.
//! - What was read can be written and read again, from its start and from any batch, and is the same.
//!
//! How much memory the reader takes at a time is left to libFuzzer's limit on allocations.

use crate::capture::check_batch;
use crate::target::{Target, planted_in_reader};
use resolver_workloads::trace::{Header, MAGIC, Record, Records, Trace, TraceError, TraceWriter};

/// The target.
pub const TARGET: Target = Target { name: "trace", body, canary: "trace-report-unchecked" };

/// Bytes in front of what is read.
pub(crate) const SETTINGS: usize = 4;

/// The first byte, modulo 64, of an input that is a file as it is.
pub(crate) const WHOLE: u8 = 0;
/// The first byte, modulo 64, of an input whose frames are mended: this and others. Many bits away from a whole file's,
/// most changes of which end it early.
pub(crate) const MENDED: u8 = 63;

/// Bytes of a frame's head, and where its fields stand: see `resolver_workloads::trace`.
const HEAD: usize = 16;
const KINDS: [u8; 4] = *b"BCIE";

/// Gives every frame what it needs to be looked into: checksums, and a kind where it has none.
fn mend(rest: &[u8]) -> Vec<u8> {
    let mut file = rest.to_vec();
    let magic = MAGIC.len().min(file.len());
    file[..magic].copy_from_slice(&MAGIC[..magic]);
    let mut at = MAGIC.len();
    while let Some(frame) = file.get_mut(at..).filter(|frame| frame.len() >= HEAD) {
        let length = u32::from_le_bytes([frame[4], frame[5], frame[6], frame[7]]) as usize;
        if !KINDS.contains(&frame[0]) || at == MAGIC.len() {
            frame[0] = if at == MAGIC.len() { b'H' } else { KINDS[usize::from(frame[0] & 3)] };
        }
        // A length over what is left stands for a file that was cut.
        let content = &frame[HEAD..HEAD + length.min(frame.len() - HEAD)];
        let checksum = crc32fast::hash(content).to_le_bytes();
        let stop = at + HEAD + content.len();
        frame[8..12].copy_from_slice(&checksum);
        let checksum = crc32fast::hash(&frame[..12]).to_le_bytes();
        frame[12..16].copy_from_slice(&checksum);
        at = stop;
    }
    file
}

/// The records up to the end or the first error; whether there was an error.
fn records(mut records: Records<'_>) -> (Vec<Record>, bool) {
    let mut given = Vec::new();
    loop {
        match records.next_record() {
            Ok(Some(record)) => given.push(record),
            Ok(None) => return (given, false),
            Err(error) => {
                let message = error.to_string();
                assert!(!message.contains('\n'), "{message:?}");
                assert!(matches!(records.next_record(), Ok(None)), "something follows an error");
                return (given, true);
            }
        }
    }
}

fn open(file: &[u8]) -> Result<Trace, TraceError> {
    let trace = Trace::from_bytes(file);
    if let Err(error) = &trace {
        let message = error.to_string();
        assert!(!message.is_empty() && !message.contains('\n'), "{message:?}");
    }
    trace
}

fn body(input: &[u8], bug: Option<&'static str>) -> bool {
    planted_in_reader(bug);
    let Some((&[kind, cut, scale, from], rest)) = input.split_first_chunk::<SETTINGS>() else { return false };
    let kind = kind & 63;
    let file = if kind == WHOLE { rest.to_vec() } else { mend(rest) };
    let Ok(trace) = open(&file) else { return kind != WHOLE && rest.len() >= MAGIC.len() + HEAD };
    let (whole, _) = records(trace.records());
    for record in &whole {
        if let Record::Batch { batch, recorded } = record {
            check_batch(batch, recorded.as_ref());
        }
    }
    // An index may lie: then what it leads to is legal or an error.
    if let Ok(Some(tail)) = trace.records_from(u64::from(from)) {
        records(tail);
    }

    let cut = file.len() * usize::from(cut) / 256 + usize::from(scale);
    if let Ok(shorter) = open(&file[..cut.min(file.len())]) {
        let (shorter, _) = records(shorter.records());
        let common = whole.len().min(shorter.len());
        assert!(shorter.len() == common && shorter == whole[..common], "no prefix");
    }

    let header = Header { generator: trace.header().generator.clone(), ..Header::default() };
    let mut writer = TraceWriter::new(Vec::new(), &header).expect("memory takes all");
    for record in &whole {
        match record {
            Record::Clear(version) => writer.clear(*version),
            Record::Batch { batch, recorded } => writer.batch(batch, recorded.as_ref()),
        }
        .expect("memory takes all");
    }
    let again = open(&writer.finish().expect("memory takes all")).expect("it was just written");
    assert!(records(again.records()) == (whole.clone(), false) && !again.truncated());
    let mut before = u64::from(from);
    let suffix: Vec<Record> = whole
        .into_iter()
        .skip_while(|record| {
            let skipped = before > 0 || matches!(record, Record::Clear(_));
            before -= u64::from(before > 0 && matches!(record, Record::Batch { .. }));
            skipped
        })
        .collect();
    let tail = again.records_from(u64::from(from)).expect("it was just written");
    assert_eq!(tail.map(|tail| records(tail).0).unwrap_or_default(), suffix);
    true
}
