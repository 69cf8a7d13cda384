//! Cuts a capture to its first records, compressed: how the small captures of this project were made.
//!
//! `cargo run -p resolver-workloads --example cut_capture -- IN OUT RECORDS`

use resolver_workloads::capture::{CaptureReader, CaptureWriter};
use std::error::Error;
use std::fs::File;
use std::path::Path;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [input, output, records] = &arguments[..] else {
        return Err("usage: cut_capture IN OUT RECORDS".into());
    };
    let mut reader = CaptureReader::open(Path::new(input))?;
    let mut writer = CaptureWriter::new(zstd::Encoder::new(File::create(output)?, 19)?)?;
    for _ in 0..records.parse::<u64>()? {
        match reader.next_record()? {
            Some(record) => writer.record(&record)?,
            None => break,
        }
    }
    writer.finish()?.finish()?;
    Ok(())
}
