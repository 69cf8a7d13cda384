//! Inputs made of the captures that come with the project: where fuzzing starts.

use crate::{capture, script, trace};
use resolver_workloads::Rng;
use resolver_workloads::capture::{CaptureReader, CaptureWriter, MAGIC, Record, captures_dir, captures_in};
use resolver_workloads::trace::{Header, TraceWriter};

/// The longest part of a capture that becomes an input, in bytes of its plain form.
const MOST_BYTES: usize = 3_000;

/// Scripts that are local, and the shapes of most of their keys: numbers of two and of eight bytes, alone and behind stems.
const LOCAL_SEEDS: u64 = 16;
const LOCAL_STEMS: [u8; 4] = [0x08, 0x1b, 0x0d, 0x0c];

/// The plain form of a row of records, its magic first.
fn plain(records: &[Record]) -> Vec<u8> {
    let mut writer = CaptureWriter::new(Vec::new()).expect("memory takes all");
    records.iter().for_each(|record| writer.record(record).expect("memory takes all"));
    writer.finish().expect("memory takes all")
}

fn traced(records: &[Record]) -> Vec<u8> {
    let mut writer = TraceWriter::new(Vec::new(), &Header::default()).expect("memory takes all");
    for record in records {
        match record {
            Record::Clear(version) => writer.clear(*version),
            Record::Batch { batch, recorded } => writer.batch(batch, Some(recorded)),
        }
        .expect("memory takes all");
    }
    writer.finish().expect("memory takes all")
}

/// A trace with no frame compressed, so that a changed byte is one of the content: its checksums are to be mended.
fn unpacked(file: &[u8]) -> Vec<u8> {
    let (magic, mut rest) = file.split_at(MAGIC.len());
    let mut unpacked = magic.to_vec();
    while let Some((head, behind)) = rest.split_first_chunk::<16>() {
        let length = u32::from_le_bytes([head[4], head[5], head[6], head[7]]) as usize;
        let (stored, behind) = behind.split_at(length);
        let content = match (head[1] & 1, stored.split_first_chunk::<4>()) {
            (1, Some((&length, packed))) => {
                zstd::bulk::decompress(packed, u32::from_le_bytes(length) as usize)
                    .expect("the content was just compressed")
            }
            _ => stored.to_vec(),
        };
        unpacked.extend([head[0], head[1] & !1, 0, 0]);
        unpacked.extend((content.len() as u32).to_le_bytes());
        unpacked.extend([0; 8]);
        unpacked.extend(content);
        rest = behind;
    }
    unpacked
}

/// The parts of the captures: of each, two rows of records, the first and one from further behind.
fn parts() -> Vec<(String, Vec<Record>)> {
    let mut parts = Vec::new();
    for path in captures_in(&captures_dir()).expect("the captures are committed") {
        let name = path.file_name().unwrap_or_default().to_string_lossy();
        let name = name.split('.').next().unwrap_or_default().to_owned();
        let mut reader = CaptureReader::open(&path).expect("a capture can be read");
        for part in ["first", "later"] {
            let (mut row, mut read) = (Vec::new(), 0);
            while let Some(record) = reader.next_record().expect("a capture is well-formed") {
                read += 1;
                let bytes = plain(std::slice::from_ref(&record)).len();
                if bytes <= MOST_BYTES {
                    row.push(record);
                }
                if plain(&row).len() > MOST_BYTES {
                    row.pop();
                    break;
                }
                if read == 300 {
                    break;
                }
            }
            if !row.is_empty() {
                parts.push((format!("{name}-{part}"), row));
            }
        }
    }
    parts
}

/// The inputs to start a target from, each with a name. Targets over scripts of operations start from bytes that
/// stand for a few of each.
pub fn seeds(target: &str) -> Vec<(String, Vec<u8>)> {
    let mut seeds = Vec::new();
    match target {
        "keys" | "nodes" => {
            for seed in 0..8u64 {
                let mut rng = Rng::new(seed);
                let input = [seed as u8].into_iter().chain((0..600).map(|_| rng.below(256) as u8)).collect();
                seeds.push((format!("mixed-{seed}"), input));
            }
        }
        "capture" => {
            for (nth, (name, records)) in parts().into_iter().enumerate() {
                let plain = plain(&records);
                let mut add = |form: &str, kind: u8, bytes: &[u8]| {
                    seeds.push((format!("{name}-{form}"), [&[kind, 128, 0], bytes].concat()));
                };
                add("records", capture::RECORDS, &plain[MAGIC.len()..]);
                add("to-pack", capture::COMPRESSED, &plain[MAGIC.len()..]);
                // Most changes of a whole file end before its first record.
                if nth.is_multiple_of(8) {
                    add("whole", capture::WHOLE, &plain);
                    add(
                        "packed",
                        capture::WHOLE,
                        &zstd::encode_all(&plain[..], 3).expect("memory takes all"),
                    );
                }
            }
        }
        "trace" => {
            for (nth, (name, records)) in parts().into_iter().enumerate() {
                let whole = traced(&records);
                let mut add = |form: &str, kind: u8, file: &[u8]| {
                    let settings: [u8; trace::SETTINGS] = [kind, 128, 0, 2];
                    seeds.push((format!("{name}-{form}"), [&settings[..], file].concat()));
                };
                add("mended", trace::MENDED, &unpacked(&whole));
                // Here, too, most changes of a whole file end it early.
                if nth.is_multiple_of(8) {
                    add("whole", trace::WHOLE, &whole);
                }
            }
        }
        _ => {
            for seed in 0..LOCAL_SEEDS {
                let mut rng = Rng::new(seed);
                let mut bytes = |count: usize| (0..count).map(|_| rng.below(256) as u8).collect::<Vec<u8>>();
                let mut settings = [0; script::SETTINGS];
                settings[..3].copy_from_slice(&bytes(3));
                settings[script::SETTINGS - 1] = LOCAL_STEMS[seed as usize % LOCAL_STEMS.len()];
                seeds.push((format!("local-{seed}"), [&settings[..], &bytes(1_500)].concat()));
            }
            for (name, records) in parts() {
                let settings = [0; script::SETTINGS];
                seeds.push((name, [&settings[..], &plain(&records)].concat()));
            }
        }
    }
    seeds
}
