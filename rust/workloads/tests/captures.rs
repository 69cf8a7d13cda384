//! The captures that come with the project.

use resolver_workloads::capture::{CaptureReader, Record, captures_dir, captures_in, shared_captures_dir};

#[test]
fn the_committed_captures_are_small_whole_and_hold_reports() {
    let (mut bytes, mut batches, mut reports) = (0, 0, 0);
    for path in captures_in(&captures_dir()).expect("the folder is committed") {
        bytes += path.metadata().expect("it was just listed").len();
        let mut reader = CaptureReader::open(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        while let Some(record) = reader.next_record().unwrap_or_else(|error| panic!("{path:?}: {error}")) {
            if let Record::Batch { recorded, .. } = record {
                batches += 1;
                reports += recorded.reported.len();
            }
        }
        assert!(!reader.truncated(), "{path:?}");
    }
    assert!(bytes > 100_000 && bytes < 1 << 20, "{bytes} bytes");
    assert!(batches > 5_000 && reports > 1_000, "{batches} batches, {reports} reports");
}

#[test]
#[allow(clippy::print_stderr, reason = "says that the full captures are not there")]
fn the_committed_captures_begin_like_the_full_ones() {
    let Some(folder) = shared_captures_dir() else {
        eprintln!("skipped: no full captures beside the repository");
        return;
    };
    for path in captures_in(&captures_dir()).expect("the folder is committed") {
        let full = folder.join(path.file_name().expect("it was listed by name"));
        let [mut cut, mut full] = [&path, &full]
            .map(|path| CaptureReader::open(path).unwrap_or_else(|error| panic!("{path:?}: {error}")));
        let mut records = 0;
        while let Some(record) = cut.next_record().unwrap_or_else(|error| panic!("{path:?}: {error}")) {
            let same = full.next_record().ok().flatten().is_some_and(|other| other == record);
            assert!(same, "{path:?}, record {records}");
            records += 1;
        }
        assert!(records > 0, "{path:?}");
    }
}
