//! Damaged captures: cut at every byte, and bytes changed at random. Nothing may panic, and what comes out must be legal.

use resolver_types::{MAX_END_LENGTH, MAX_KEY_LENGTH};
use resolver_workloads::Rng;
use resolver_workloads::capture::{CaptureError, CaptureReader, CaptureWriter, Record, captures_dir};

/// The first records of a committed capture.
fn records(name: &str, count: usize) -> Vec<Record> {
    let mut reader = CaptureReader::open(&captures_dir().join(name)).expect("it is committed");
    let mut records = Vec::new();
    while records.len() < count {
        records.push(reader.next_record().expect("it is sound").expect("it has as many records"));
    }
    records
}

fn plain(records: &[Record]) -> Vec<u8> {
    let mut writer = CaptureWriter::new(Vec::new()).expect("memory takes all");
    for record in records {
        writer.record(record).expect("memory takes all");
    }
    writer.finish().expect("memory takes all")
}

fn compressed(plain: &[u8]) -> Vec<u8> {
    zstd::encode_all(plain, 3).expect("memory takes all")
}

/// Reads what can be read: the records, whether the end was cut, and the error that ended it.
fn read(bytes: Vec<u8>) -> (Vec<Record>, bool, Option<CaptureError>) {
    let mut reader = match CaptureReader::from_bytes(bytes) {
        Ok(reader) => reader,
        Err(error) => return (Vec::new(), false, Some(error)),
    };
    let mut records = Vec::new();
    loop {
        match reader.next_record() {
            Ok(Some(record)) => records.push(record),
            Ok(None) => return (records, reader.truncated(), None),
            Err(error) => {
                assert!(matches!(reader.next_record(), Ok(None)), "nothing follows an error");
                return (records, false, Some(error));
            }
        }
    }
}

/// Whether the record holds nothing that a history could not be given, in bytes that were really there.
fn is_legal(record: &Record, limit: usize) -> bool {
    let Record::Batch { batch, recorded } = record else { return true };
    let ranges = batch.ranges();
    let bytes: usize = ranges.iter().map(|range| range.begin.len() + range.end.len()).sum();
    let keys = |(begin, end): (usize, usize)| begin <= MAX_KEY_LENGTH && end <= MAX_END_LENGTH;
    let reports = recorded.reported.is_sorted_by(|left, right| left < right)
        && recorded.reported.iter().all(|&(transaction, read)| {
            let transaction = batch.transactions()[transaction as usize];
            transaction.report && read < transaction.reads
        });
    recorded.verdicts.len() == batch.transactions().len()
        && ranges.iter().all(|range| keys((range.begin.len(), range.end.len())))
        && bytes <= limit
        && reports
}

#[test]
fn every_cut_gives_the_whole_records_or_one_clear_error() {
    let records =
        [records("sim-cycle-recovery.fdbcap.zst", 15), records("driver-tiny.fdbcap.zst", 3)].concat();
    let bytes = plain(&records);
    let stops: Vec<usize> = (0..=records.len()).map(|count| plain(&records[..count]).len()).collect();
    for cut in 8..=bytes.len() {
        let (given, truncated, error) = read(bytes[..cut].to_vec());
        let whole = stops.partition_point(|&stop| stop <= cut) - 1;
        assert!(given == records[..whole] && error.is_none(), "{} of {whole} records at {cut}", given.len());
        assert_eq!(truncated, !stops.contains(&cut), "cut at {cut}");
    }
    let frame = compressed(&bytes);
    for cut in 0..frame.len() {
        let (given, truncated, error) = read(frame[..cut].to_vec());
        assert!(records.starts_with(&given), "cut at {cut}");
        match error {
            None => assert!(truncated, "cut at {cut}"),
            Some(error) => {
                let expected =
                    matches!(error, CaptureError::TooShort { .. } | CaptureError::NotACapture { .. });
                assert!(expected && given.is_empty(), "cut at {cut}: {error}");
            }
        }
    }
}

#[test]
fn a_cut_frame_of_several_blocks_gives_the_records_of_the_whole_ones() {
    let records = records("driver-tiny.fdbcap.zst", 140);
    let frame = compressed(&plain(&records));
    let mut given_before = 0;
    for cut in (0..frame.len()).step_by(101) {
        let (given, _, _) = read(frame[..cut].to_vec());
        assert!(given.len() >= given_before && records.starts_with(&given), "cut at {cut}");
        given_before = given.len();
    }
    assert!(given_before > 0 && given_before < records.len(), "{given_before} records");
}

#[test]
fn ten_thousand_mutations_give_an_error_or_a_legal_reading() {
    let records =
        [records("sim-cycle-recovery.fdbcap.zst", 15), records("driver-tiny.fdbcap.zst", 3)].concat();
    let bytes = plain(&records);
    let frame = compressed(&bytes);
    let mut rng = Rng::new(20_260_101);
    let (mut clean, mut cut, mut impossible, mut corrupt, mut unknown) = (0, 0, 0, 0, 0);
    for mutation in 0..10_000 {
        let original = if mutation % 2 == 0 { &bytes } else { &frame };
        let mut mutated = original.clone();
        for _ in 0..rng.between(1, 3) {
            let at = rng.below(mutated.len() as u64) as usize;
            mutated[at] ^= rng.between(1, 255) as u8;
        }
        let (given, truncated, error) = read(mutated);
        // A changed frame may unpack to more than the original; its blocks still bound it.
        let limit = if mutation % 2 == 0 { bytes.len() } else { 1 << 20 };
        assert!(given.iter().all(|record| is_legal(record, limit)), "mutation {mutation}");
        match error {
            None if truncated => cut += 1,
            None => clean += 1,
            Some(error) => {
                let message = error.to_string();
                assert!(message.len() > 20 && !message.contains('\n'), "{message}");
                match error {
                    CaptureError::Impossible { .. } => impossible += 1,
                    CaptureError::CorruptStream { .. } => corrupt += 1,
                    CaptureError::NotACapture { .. } | CaptureError::TooShort { .. } => unknown += 1,
                    CaptureError::Io(error) => panic!("memory cannot fail: {error}"),
                }
            }
        }
    }
    let least = [clean, cut, impossible, corrupt, unknown].into_iter().min();
    assert!(least > Some(0), "{clean} clean, {cut} cut, {impossible}, {corrupt}, {unknown}");
}
