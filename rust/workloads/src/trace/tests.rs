use super::frame::{Frame, HEAD_BYTES};
use super::*;
use crate::capture::{self, CaptureReader};
use crate::input::Source;
use crate::{BatchBuf, RandomBatches, Workload, captures_dir};
use resolver_types::{MAX_END_LENGTH, MAX_KEY_LENGTH, Verdict, Verdicts, Version};
use std::ops::ControlFlow;
use std::path::PathBuf;

fn sample() -> Vec<Record> {
    let mut batch = BatchBuf::new(Version(9), Version(-4));
    batch.push_transaction(Version(3), true);
    batch.push_read(b"a", b"b");
    batch.push_read(b"", b"\x00");
    batch.push_read(b"z", b"a");
    batch.push_write(&[7; MAX_KEY_LENGTH], &[7; MAX_END_LENGTH]);
    batch.push_transaction(Version(-1), false);
    batch.push_write(b"z", b"y");
    batch.push_transaction(Version(i64::MAX), false);
    let recorded = Verdicts {
        verdicts: vec![Verdict::Conflict, Verdict::Committed, Verdict::TooOld],
        reported: vec![(0, 0), (0, 2)],
    };
    let undecided = RandomBatches::new("adversarial", 5, 60).expect("a known shape");
    let mut records = vec![
        Record::Clear(Version(5)),
        Record::Batch { batch, recorded: Some(recorded) },
        Record::Batch {
            batch: BatchBuf::new(Version(i64::MAX), Version::LOWEST),
            recorded: Some(Verdicts::default()),
        },
    ];
    records.extend(undecided.map(|batch| Record::Batch { batch, recorded: None }));
    records
}

fn written(records: &[Record], finish: bool) -> Vec<u8> {
    let mut bytes = Vec::new();
    let header = Workload::by_name("long-trace-32", 7).expect("it is named").trace_header();
    let mut writer = TraceWriter::new(&mut bytes, &header).expect("memory");
    for record in records {
        match record {
            Record::Clear(version) => writer.clear(*version),
            Record::Batch { batch, recorded } => writer.batch(batch, recorded.as_ref()),
        }
        .expect("memory");
    }
    if finish {
        writer.finish().expect("memory");
    }
    bytes
}

/// A file of one test.
fn file(name: &str, bytes: &[u8]) -> PathBuf {
    let path = std::env::temp_dir().join(format!("resolver-trace-{}-{name}", std::process::id()));
    std::fs::write(&path, bytes).expect("the folder for temporary files can be written");
    path
}

fn open(name: &str, bytes: &[u8]) -> Result<Trace, TraceError> {
    let path = file(name, bytes);
    let trace = Trace::open(&path);
    // What is mapped stays.
    std::fs::remove_file(path).expect("it was written");
    trace
}

fn all(mut records: Records<'_>) -> Result<Vec<Record>, FrameError> {
    let mut all = Vec::new();
    while let Some(record) = records.next_record()? {
        all.push(record);
    }
    Ok(all)
}

/// Where the frames of a trace start, and their kinds.
fn frames(bytes: &[u8]) -> Vec<(usize, FrameKind)> {
    let (mut frames, mut offset) = (Vec::new(), MAGIC.len());
    while let Some(frame) = Frame::at(bytes, offset, 0).expect("undamaged") {
        frames.push((offset, frame.kind));
        offset = frame.stop();
    }
    frames
}

#[test]
fn what_was_written_is_read_back() {
    let records = sample();
    for finish in [true, false] {
        let trace = open("whole", &written(&records, finish)).unwrap();
        assert_eq!(all(trace.records()).unwrap(), records);
        assert_eq!((trace.truncated(), trace.batches()), (!finish, records.len() as u64 - 1));
        let generator = trace.header().generator.clone().expect("it was generated");
        assert_eq!((generator.workload.as_str(), generator.seed), ("long-trace-32", 7));
        let long_trace = generator.long_trace.expect("of a long trace");
        assert_eq!((long_trace.key_bytes, long_trace.ids, long_trace.ranges), (32, [60, 25, 15], [90, 9, 1]));
    }
}

#[test]
fn any_batch_is_found_with_and_without_an_end() {
    let batches: Vec<BatchBuf> = (1..=600)
        .map(|version| {
            let mut batch = BatchBuf::new(Version(version), Version(0));
            batch.push_transaction(Version(0), false);
            batch.push_write(b"k", &version.to_be_bytes());
            batch
        })
        .collect();
    let mut records: Vec<Record> =
        batches.into_iter().map(|batch| Record::Batch { batch, recorded: None }).collect();
    records.insert(300, Record::Clear(Version(0)));
    for finish in [true, false] {
        let trace = open("seek", &written(&records, finish)).unwrap();
        for batch in [0, 1, 255, 256, 299, 300, 511, 512, 513, 599] {
            let found = all(trace.records_from(batch).unwrap().expect("it is there")).unwrap();
            let from = batch as usize + usize::from(batch >= 300);
            assert_eq!(found, records[from..], "{batch}");
        }
        assert!(trace.records_from(600).unwrap().is_none());
        let short = trace.with_batches(258);
        assert_eq!((all(short.records()).unwrap().len(), short.batches()), (258, 258));
    }
}

#[test]
fn every_cut_gives_the_whole_frames_before_it() {
    let records = sample();
    let bytes = written(&records, true);
    let frames = frames(&bytes);
    let steps_before = |cut: usize| {
        let whole = frames.iter().skip(1).map(|frame| frame.0).chain([bytes.len()]).zip(&frames);
        let whole = whole.filter(|&(stop, _)| stop <= cut);
        whole.filter(|(_, (_, kind))| matches!(kind, FrameKind::Batch | FrameKind::Clear)).count()
    };
    let header = frames[1].0;
    for cut in 0..bytes.len() {
        match open("cut", &bytes[..cut]) {
            Ok(trace) => {
                assert!(cut >= header && trace.truncated());
                assert_eq!(all(trace.records()).unwrap(), records[..steps_before(cut)], "{cut}");
            }
            Err(TraceError::TooShort { bytes }) => assert!(cut < header && bytes == cut as u64),
            Err(error) => panic!("{cut}: {error}"),
        }
    }
}

#[test]
fn every_flipped_byte_is_named_with_its_frame() {
    let bytes = written(&sample(), true);
    let frames = frames(&bytes);
    for at in MAGIC.len()..bytes.len() {
        let mut flipped = bytes.clone();
        flipped[at] ^= 0x20;
        let found = match open("flipped", &flipped) {
            Ok(trace) => all(trace.records()).err(),
            Err(TraceError::Frame(error)) => Some(error),
            Err(error) => panic!("{at}: {error}"),
        };
        let number = frames.partition_point(|&(offset, _)| offset <= at) - 1;
        let start = frames[number].0;
        match found {
            Some(FrameError::Damaged { frame, offset, part, .. }) => {
                assert_eq!((frame, offset), (number as u64, start as u64), "{at}");
                assert_eq!(part, if at - start < HEAD_BYTES { "head" } else { "content" }, "{at}");
            }
            other => panic!("{at}: {other:?}"),
        }
    }
    let other = open("other", b"FDBCAP01");
    assert!(matches!(other, Err(TraceError::NotATrace { .. })));
}

#[test]
fn captures_go_there_and_back_without_a_loss() {
    for name in ["driver-tiny.fdbcap.zst", "sim-report-conflicting-keys.fdbcap.zst", "driver-long.fdbcap.zst"]
    {
        let mut reader = CaptureReader::open(&captures_dir().join(name)).expect("a committed capture");
        let mut records = Vec::new();
        while let Some(record) = reader.next_record().expect("a committed capture") {
            records.push(match record {
                capture::Record::Clear(version) => Record::Clear(version),
                capture::Record::Batch { batch, recorded } => {
                    Record::Batch { batch, recorded: Some(recorded) }
                }
            });
        }
        let trace = open("capture", &written(&records, true)).unwrap();
        assert_eq!(all(trace.records()).unwrap(), records, "{name}");
    }
}

#[test]
fn a_long_trace_takes_a_third_of_its_capture() {
    let (mut capture, mut trace) = (Vec::new(), Vec::new());
    let mut captured = capture::CaptureWriter::new(&mut capture).unwrap();
    let mut traced = TraceWriter::new(&mut trace, &Header::default()).unwrap();
    for batch in Workload::by_name("long-trace", 1).unwrap().with_batches(4) {
        let committed = vec![Verdict::Committed; batch.transactions().len()];
        let recorded = Verdicts { verdicts: committed, reported: Vec::new() };
        captured.batch(&batch, &recorded).unwrap();
        traced.batch(&batch, Some(&recorded)).unwrap();
    }
    captured.finish().unwrap();
    traced.finish().unwrap();
    assert!(trace.len() * 3 < capture.len(), "{} of {}", trace.len(), capture.len());
}

#[test]
fn a_trace_is_a_source_of_stretches() {
    let workload = Workload::by_name("skiplisttest-64-prefix", 1).unwrap().with_batches(12);
    let mut bytes = Vec::new();
    let mut writer = TraceWriter::new(&mut bytes, &workload.trace_header()).unwrap();
    workload.restarted().for_each(|batch| writer.batch(&batch, None).unwrap());
    writer.finish().unwrap();
    let trace = open("source", &bytes).unwrap();
    let mut sizes = Vec::new();
    let mut visit = |views: &crate::input::Views<'_>, recorded: &[Verdicts]| {
        assert!(recorded.is_empty());
        sizes.push(views.batches());
        Ok(ControlFlow::Continue(()))
    };
    trace.stretches(&mut visit).unwrap();
    assert!(sizes.len() > 1 && sizes.iter().sum::<u64>() == 12, "{sizes:?}");
}
