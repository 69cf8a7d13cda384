//! `resolver trace`: traces made, shown, converted and verified.

use crate::Outcome;
use crate::bench::parse_scale;
use crate::error::Error;
use crate::output::{self, Table};
use crate::progress::Progress;
use resolver_workloads::Workload;
use resolver_workloads::capture::{self, CaptureReader, CaptureWriter};
use resolver_workloads::generators::Scale;
use resolver_workloads::generators::long_trace::BATCHES_PER_SECOND;
use resolver_workloads::trace::{self, Header, MAGIC, Record, Trace, TraceWriter};
use serde::Serialize;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::path::Path;

/// How hard a capture is compressed.
const CAPTURE_COMPRESSION: i32 = 3;

/// Make, show, convert and verify traces: batches in one file that is mapped for replay
#[derive(clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// Write a workload as a trace
    Generate(Generate),
    /// Show what traces say about themselves
    Info(Info),
    /// Make a capture a trace, or a trace whose batches were all decided a capture (compressed where its name ends in .zst)
    Convert {
        /// The file to read
        from: String,
        /// The file to write
        to: String,
    },
    /// Check every frame of traces, and, of generated ones, that every batch is the generator's
    Verify(Info),
}

#[derive(clap::Args)]
struct Generate {
    /// The workload
    workload: String,
    /// The file to write
    #[arg(long, value_name = "FILE")]
    out: String,
    /// The first N batches instead of all
    #[arg(long, value_name = "N", value_parser = output::parse_positive)]
    batches: Option<usize>,
    /// The first seconds of a long trace instead of all
    #[arg(long, value_parser = output::parse_positive, conflicts_with = "batches")]
    seconds: Option<usize>,
    /// The workload at another size, above 0 and at most 1
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = parse_scale)]
    scale: Scale,
    /// Seed of the generator instead of the workload's own
    #[arg(long)]
    seed: Option<u64>,
}

#[derive(clap::Args)]
struct Info {
    /// Traces
    #[arg(required = true)]
    files: Vec<String>,
    /// Print one JSON document instead of text
    #[arg(long)]
    json: bool,
}

/// What a file is, found out from its first bytes.
pub(crate) fn is_trace(name: &str) -> bool {
    let mut start = [0; MAGIC.len()];
    File::open(name).and_then(|mut file| file.read_exact(&mut start)).is_ok_and(|()| start == MAGIC)
}

/// Opens a trace, with a warning where it is cut.
pub(crate) fn open(name: &str) -> Result<Trace, Error> {
    let trace =
        Trace::open(Path::new(name)).map_err(|source| Error::Trace { file: name.to_owned(), source })?;
    if trace.truncated() {
        output::note(format_args!("{name}: warning: it ends without its last frame; what is whole counts"));
    }
    Ok(trace)
}

pub(crate) fn run(args: &Args) -> Result<Outcome, Error> {
    match &args.command {
        Command::Generate(args) => generate(args),
        Command::Info(args) => info(args),
        Command::Convert { from, to } if is_trace(from) => to_capture(from, to),
        Command::Convert { from, to } => to_trace(from, to),
        Command::Verify(args) => verify(args),
    }
}

fn create(name: &str, header: &Header) -> Result<TraceWriter<BufWriter<File>>, Error> {
    let made = File::create(name).and_then(|file| TraceWriter::new(BufWriter::new(file), header));
    made.map_err(write_error(name))
}

fn write_error(name: &str) -> impl Fn(io::Error) -> Error {
    move |source| Error::Write { file: name.to_owned(), source }
}

fn generate(args: &Generate) -> Result<Outcome, Error> {
    let workload = Workload::by_name(&args.workload, args.seed)
        .ok_or_else(|| Error::UnknownWorkload(args.workload.clone()))?
        .with_scale(args.scale);
    let seconds = args.seconds.map(|seconds| seconds * BATCHES_PER_SECOND as usize);
    let batches = args.batches.or(seconds).unwrap_or(workload.default_batches());
    let workload = workload.with_batches(batches);
    let mut writer = create(&args.out, &workload.trace_header())?;
    let progress = Progress::new(&args.workload, batches as u64);
    for batch in workload {
        writer.batch(&batch, None).map_err(write_error(&args.out))?;
        progress.advance(1);
    }
    writer.finish().map_err(write_error(&args.out))?;
    Ok(Outcome::Fine)
}

#[derive(Serialize)]
struct Document<T> {
    files: Vec<T>,
}

#[derive(Serialize)]
struct FileInfo {
    file: String,
    bytes: u64,
    batches: u64,
    truncated: bool,
    header: Header,
}

fn info(args: &Info) -> Result<Outcome, Error> {
    let mut files = Vec::new();
    for name in &args.files {
        let trace = open(name)?;
        files.push(FileInfo {
            file: name.clone(),
            bytes: trace.file_bytes(),
            batches: trace.batches(),
            truncated: trace.truncated(),
            header: trace.header().clone(),
        });
    }
    if args.json {
        output::print_json(&Document { files })?;
        return Ok(Outcome::Fine);
    }
    let mut table = Table::new(&["file", "size", "batches", "a batch", "whole", "workload", "seed", "scale"]);
    for file in &files {
        let generator = file.header.generator.as_ref();
        table.row(vec![
            file.file.clone(),
            output::bytes(file.bytes),
            file.batches.to_string(),
            output::bytes(file.bytes / file.batches.max(1)),
            if file.truncated { "no" } else { "yes" }.to_owned(),
            generator.map_or("recorded", |generator| &generator.workload).to_owned(),
            generator.map_or("-".to_owned(), |generator| generator.seed.to_string()),
            generator.map_or("-".to_owned(), |generator| generator.scale.to_string()),
        ]);
    }
    output::print(table)?;
    Ok(Outcome::Fine)
}

fn to_trace(from: &str, to: &str) -> Result<Outcome, Error> {
    let damaged = |source| Error::Capture { file: from.to_owned(), source };
    let mut reader = CaptureReader::open(Path::new(from)).map_err(damaged)?;
    let mut writer = create(to, &Header::default())?;
    while let Some(record) = reader.next_record().map_err(damaged)? {
        match record {
            capture::Record::Clear(version) => writer.clear(version),
            capture::Record::Batch { batch, recorded } => writer.batch(&batch, Some(&recorded)),
        }
        .map_err(write_error(to))?;
    }
    if reader.truncated() {
        output::note(format_args!("{from}: warning: it ends inside a record; what is whole counts"));
    }
    writer.finish().map_err(write_error(to))?;
    Ok(Outcome::Fine)
}

fn to_capture(from: &str, to: &str) -> Result<Outcome, Error> {
    let trace = open(from)?;
    let file = BufWriter::new(File::create(to).map_err(write_error(to))?);
    if to.ends_with(".zst") {
        let packed = zstd::Encoder::new(file, CAPTURE_COMPRESSION).map_err(write_error(to))?;
        let packed = write_capture(&trace, (from, to), packed)?;
        packed.finish().and_then(|mut file| file.flush()).map_err(write_error(to))?;
    } else {
        write_capture(&trace, (from, to), file)?;
    }
    Ok(Outcome::Fine)
}

fn write_capture<W: Write>(trace: &Trace, (from, to): (&str, &str), out: W) -> Result<W, Error> {
    let mut writer = CaptureWriter::new(out).map_err(write_error(to))?;
    let mut records = trace.records();
    let mut batches = 0;
    while let Some(record) = records.next_record().map_err(damaged(from))? {
        match record {
            Record::Clear(version) => writer.clear(version),
            Record::Batch { batch, recorded } => {
                let recorded =
                    recorded.ok_or_else(|| Error::Undecided { file: from.to_owned(), batch: batches })?;
                batches += 1;
                writer.batch(&batch, &recorded)
            }
        }
        .map_err(write_error(to))?;
    }
    writer.finish().map_err(write_error(to))
}

fn damaged(name: &str) -> impl Fn(trace::FrameError) -> Error {
    move |source| Error::Trace { file: name.to_owned(), source: source.into() }
}

#[derive(Default, Serialize)]
struct Verified {
    file: String,
    batches: u64,
    decided: u64,
    transactions: u64,
    ranges: u64,
    truncated: bool,
    /// Whether the batches were compared with what the generator makes.
    generated: bool,
    /// What is wrong, if anything.
    failure: Option<String>,
}

fn verify(args: &Info) -> Result<Outcome, Error> {
    let files = args.files.iter().map(|name| verify_file(name)).collect::<Result<Vec<_>, _>>()?;
    let outcome =
        if files.iter().any(|file| file.failure.is_some()) { Outcome::Failed } else { Outcome::Fine };
    if args.json {
        output::print_json(&Document { files })?;
        return Ok(outcome);
    }
    for file in &files {
        let generated = if file.generated { ", each the generator's" } else { "" };
        let found = file.failure.as_ref().map_or("whole".to_owned(), |failure| format!("failed: {failure}"));
        output::print(format_args!(
            "{}: {} batches{generated}, {} of them decided, {} transactions, {} ranges: {found}\n",
            file.file, file.batches, file.decided, file.transactions, file.ranges
        ))?;
    }
    Ok(outcome)
}

fn verify_file(name: &str) -> Result<Verified, Error> {
    let trace = match open(name) {
        Ok(trace) => trace,
        Err(Error::Trace { source: trace::TraceError::Frame(frame), .. }) => {
            let failure = Some(frame.to_string());
            return Ok(Verified { file: name.to_owned(), failure, ..Verified::default() });
        }
        Err(error) => return Err(error),
    };
    let mut verified =
        Verified { file: name.to_owned(), truncated: trace.truncated(), ..Verified::default() };
    let mut workload = trace.header().generator.as_ref().and_then(|generator| {
        let workload = Workload::by_name(&generator.workload, generator.seed)?;
        let batches = usize::try_from(generator.batches).ok()?;
        Some(workload.with_scale(Scale::new(generator.scale)?).with_batches(batches))
    });
    verified.generated = workload.is_some();
    let mut records = trace.records();
    loop {
        match records.next_record() {
            Ok(None) => break,
            Ok(Some(Record::Clear(_))) => {}
            Ok(Some(Record::Batch { batch, recorded })) => {
                verified.transactions += batch.transactions().len() as u64;
                verified.ranges += batch.ranges().len() as u64;
                verified.decided += u64::from(recorded.is_some());
                if workload.as_mut().is_some_and(|workload| workload.next().as_ref() != Some(&batch)) {
                    verified.failure = Some(format!("batch {} is not the generator's", verified.batches));
                    break;
                }
                verified.batches += 1;
            }
            Err(frame) => {
                verified.failure = Some(frame.to_string());
                break;
            }
        }
    }
    Ok(verified)
}
