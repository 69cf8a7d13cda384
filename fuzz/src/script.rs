//! Histories out of bytes: what `tree`, `budget` and `bridge` run.
//!
//! # Input
//! ```text
//! 8 bytes    settings: the last is the script's own, the others are the target's
//! the rest   a plain capture, if it starts as one: what a mutation leaves legal of it
//!            else structured: batches, of transactions, of ranges, each a few bytes
//! ```
//! Structured keys come from a few stems around the sizes at which the tree changes its ways (a head, an inline
//! separator, a key block), so that they meet; one operation can write or read a row of many keys. The last of the settings,
//! if it is not 0, makes a script local: it begins with several full leaves, most keys have the stem that it names, most ranges
//! end near where they begin, and few cover everything, so that leaves split and empty one by one instead of going all at once.

use arbitrary::{Arbitrary, Result, Unstructured};
use resolver_types::Version;
use resolver_workloads::BatchBuf;
use resolver_workloads::capture::{CaptureReader, MAGIC, Record};

/// Bytes of settings in front.
pub(crate) const SETTINGS: usize = 8;

/// Ranges that a script has at most, so that no input takes long.
const MOST_RANGES: usize = 1_000;

/// Key bytes that a script has at most.
const MOST_KEY_BYTES: usize = 1 << 18;

/// The form of a range that ends near where it begins; all above it are rows.
const NEAR: u8 = 16;

/// The numbers that a local script's ranges begin with: these bits.
const LOCAL_NUMBERS: u16 = 0x1ff;

/// What a history is asked to do.
#[derive(Debug)]
pub(crate) enum Step {
    Batch(BatchBuf),
    Clear(Version),
}

/// A script: settings, and steps whose versions ascend.
#[derive(Debug)]
pub(crate) struct Script {
    pub(crate) settings: [u8; SETTINGS],
    pub(crate) steps: Vec<Step>,
}

impl Script {
    /// The script that some bytes stand for; there is one for all bytes.
    pub(crate) fn new(input: &[u8]) -> Script {
        let (settings, rest) = input.split_at(SETTINGS.min(input.len()));
        let mut script = Script { settings: [0; SETTINGS], steps: Vec::new() };
        script.settings[..settings.len()].copy_from_slice(settings);
        if rest.starts_with(&MAGIC) {
            script.take_capture(rest);
        } else {
            script.take_structured(rest);
        }
        if !script
            .steps
            .iter()
            .any(|step| matches!(step, Step::Batch(batch) if !batch.transactions().is_empty()))
        {
            // Too short, or too damaged a capture: any bytes make batches.
            script.take_structured(input);
        }
        script
    }

    fn take_structured(&mut self, bytes: &[u8]) {
        let local = self.settings[SETTINGS - 1];
        let mut writer = Writer { steps: Vec::new(), version: 0, ranges: 0, key_bytes: 0, local };
        if local != 0 {
            writer.fill();
        }
        let mut bytes = Unstructured::new(bytes);
        while !bytes.is_empty() && writer.step(&mut bytes).is_ok() {}
        self.steps = writer.steps;
    }

    fn take_capture(&mut self, bytes: &[u8]) {
        let mut reader = CaptureReader::from_bytes(bytes.to_vec()).expect("it starts as a capture");
        let mut newest = Version::ZERO;
        while let Ok(Some(record)) = reader.next_record() {
            match record {
                Record::Clear(version) => {
                    newest = version;
                    self.steps.push(Step::Clear(version));
                }
                Record::Batch { batch, .. } if batch.version() > newest => {
                    newest = batch.version();
                    self.steps.push(Step::Batch(batch));
                }
                Record::Batch { .. } => {}
            }
        }
    }
}

/// The operations that some bytes stand for, one after the other: what `keys` and `nodes` run.
pub(crate) fn operations<'a, T: Arbitrary<'a>>(input: &'a [u8]) -> Vec<T> {
    let mut bytes = Unstructured::new(input);
    let mut operations = Vec::new();
    while !bytes.is_empty() {
        operations.extend(bytes.arbitrary::<T>());
    }
    operations
}

struct Writer {
    steps: Vec<Step>,
    version: i64,
    ranges: usize,
    key_bytes: usize,
    /// Not 0 in a local script.
    local: u8,
}

/// A key's fixed part.
fn stem(byte: u8, key: &mut Vec<u8>) {
    let length = match byte & 7 {
        0 => 0,
        1 => 1,
        2 => 7,
        3 => 8,
        4 => 15,
        5 => 41,
        6 => 300,
        _ => 2_500,
    };
    key.extend(std::iter::repeat_n(b'k', length));
}

/// A number as a key's end: in one byte, in two, in eight.
fn number(byte: u8, number: u16, key: &mut Vec<u8>) {
    match byte >> 3 & 3 {
        0 => key.push(number as u8),
        1 | 2 => key.extend(number.to_be_bytes()),
        _ => key.extend(u64::from(number).to_be_bytes()),
    }
}

/// What follows the number: nothing, mostly.
fn ending(byte: u8, key: &mut Vec<u8>) {
    match byte >> 5 {
        0..=4 => {}
        5 => key.push(0),
        6 => key.push(0xff),
        _ => key.extend([b'e'; 30]),
    }
}

impl Writer {
    /// A batch that writes all numbers behind the stem of most keys: several leaves to begin with.
    fn fill(&mut self) {
        self.version = 1;
        let mut batch = BatchBuf::new(Version(self.version), Version::ZERO);
        batch.push_transaction(Version::ZERO, false);
        for at in 0..=LOCAL_NUMBERS {
            let mut key = Vec::new();
            stem(self.local, &mut key);
            number(self.local, at, &mut key);
            batch.push_write(&key, &[&key[..], &[0]].concat());
        }
        self.steps.push(Step::Batch(batch));
    }

    /// A byte that says how a key looks: in a local script, most are as its setting says.
    fn shape(&self, bytes: &mut Unstructured<'_>) -> Result<u8> {
        let shape = bytes.arbitrary::<u8>()?;
        Ok(if self.local != 0 && shape < 0xc0 { self.local & 0x3f | shape & 0x80 } else { shape })
    }

    fn key(&mut self, bytes: &mut Unstructured<'_>) -> Result<Vec<u8>> {
        let shape = self.shape(bytes)?;
        let mut key = Vec::new();
        if shape == 0xff {
            // Any short key, or one of the longest.
            let length = usize::from(bytes.arbitrary::<u8>()?);
            if length == 0xff {
                key.resize(65_535, b'k');
                key[65_534] = bytes.arbitrary()?;
            } else {
                key.extend_from_slice(bytes.bytes((length & 15).min(bytes.len()))?);
            }
            return Ok(key);
        }
        stem(shape, &mut key);
        let numbers = if self.local == 0 { 0x3ff } else { LOCAL_NUMBERS };
        number(shape, bytes.arbitrary::<u16>()? & numbers, &mut key);
        ending(shape, &mut key);
        Ok(key)
    }

    fn push(&mut self, batch: &mut BatchBuf, write: bool, begin: &[u8], end: &[u8]) {
        self.ranges += 1;
        self.key_bytes += begin.len() + end.len();
        if write { batch.push_write(begin, end) } else { batch.push_read(begin, end) }
    }

    /// One range, or a row of points.
    fn ranges(&mut self, bytes: &mut Unstructured<'_>, batch: &mut BatchBuf, write: bool) -> Result<()> {
        if self.ranges > MOST_RANGES || self.key_bytes > MOST_KEY_BYTES {
            return Ok(());
        }
        let kind = bytes.arbitrary::<u8>()?;
        // In a local script, most of what is not a point is near, and what is left are rows, of writes.
        let form = match kind {
            _ if self.local == 0 || kind < 0x10 || kind & 15 < 5 => kind & 15,
            0x10..=0xdf => NEAR,
            _ => NEAR + u8::from(write),
        };
        match form {
            0..=4 => {
                let begin = self.key(bytes)?;
                let end = [&begin[..], &[0]].concat();
                self.push(batch, write, &begin, &end);
            }
            5..=9 => {
                let (one, other) = (self.key(bytes)?, self.key(bytes)?);
                let (begin, end) = if one <= other { (one, other) } else { (other, one) };
                self.push(batch, write, &begin, &end);
            }
            10 => {
                // Empty or inverted, as often as not.
                let (begin, end) = (self.key(bytes)?, self.key(bytes)?);
                self.push(batch, write, &begin, &end);
            }
            11 => {
                let begin = self.key(bytes)?;
                self.push(batch, write, &begin, &[0xff; 3]);
            }
            12 => self.push(batch, write, &[], &[0xff; 9]),
            _ => {
                let (shape, from) = (self.shape(bytes)?, bytes.arbitrary::<u16>()?);
                let from = if self.local == 0 { from } else { from & LOCAL_NUMBERS };
                let count = u16::from(bytes.arbitrary::<u8>()?);
                let stride = u16::from(kind >> 4) + 1;
                let key = |nth: u16| {
                    let mut key = Vec::new();
                    stem(shape, &mut key);
                    let row = if shape >> 3 & 3 == 0 { shape | 8 } else { shape };
                    number(row, from.wrapping_add(nth.wrapping_mul(stride)), &mut key);
                    ending(shape, &mut key);
                    key
                };
                if form == NEAR {
                    self.push(batch, write, &key(0), &key(count));
                    return Ok(());
                }
                for nth in 0..if shape & 7 == 7 { count & 15 } else { count } {
                    let begin = key(nth);
                    let end = [&begin[..], &[0]].concat();
                    self.push(batch, write, &begin, &end);
                }
            }
        }
        Ok(())
    }

    fn step(&mut self, bytes: &mut Unstructured<'_>) -> Result<()> {
        let kind = bytes.arbitrary::<u8>()?;
        let advance = match kind {
            0..=199 => i64::from(kind & 31) + 1,
            200..=247 => i64::from(kind - 199) * 1_000,
            248..=251 => 100_000_000,
            252 => 600_000_000_000,
            _ => 1,
        };
        let Some(version) = self.version.checked_add(advance) else { return Ok(()) };
        self.version = version;
        if kind == 253 {
            self.steps.push(Step::Clear(Version(version)));
            return Ok(());
        }
        if kind == 254 {
            // Batches without transactions still take versions.
            for _ in 0..bytes.arbitrary::<u8>()? {
                self.steps
                    .push(Step::Batch(BatchBuf::new(Version(self.version), Version(self.version - 40))));
                self.version += 1;
            }
            return Ok(());
        }
        if kind == 255 && self.version < i64::MAX / 2 {
            self.version = i64::MAX - 1_000_000;
        }
        let version = self.version;
        let shape = bytes.arbitrary::<u8>()?;
        let oldest = match shape >> 5 {
            0..=2 => i64::MIN,
            3 | 4 => version.saturating_sub(200),
            5 => version.saturating_sub(20),
            6 => version.saturating_sub(1),
            _ => version.saturating_sub(5_000_000),
        };
        let mut batch = BatchBuf::new(Version(version), Version(oldest.max(-1_000)));
        let written = self.transactions(bytes, &mut batch, shape & 7);
        self.steps.push(Step::Batch(batch));
        written
    }

    fn transactions(&mut self, bytes: &mut Unstructured<'_>, batch: &mut BatchBuf, count: u8) -> Result<()> {
        for _ in 0..=count {
            let (age, shape) = (bytes.arbitrary::<u8>()?, bytes.arbitrary::<u8>()?);
            let read_version = match age {
                0..=199 => self.version.saturating_sub(i64::from(age)),
                200..=239 => self.version.saturating_sub(i64::from(age - 199) * 1_000),
                240..=247 => self.version.saturating_sub(100_000_000),
                248..=251 => 0,
                _ => -1,
            };
            batch.push_transaction(Version(read_version.max(-1)), shape & 0x80 != 0);
            // Transactions that read much conflict; in a local script, half of them are sure to write.
            let reads = if self.local != 0 && shape & 0x40 == 0 { 0 } else { shape & 7 };
            for _ in 0..reads {
                self.ranges(bytes, batch, false)?;
            }
            for _ in 0..shape >> 3 & 7 {
                self.ranges(bytes, batch, true)?;
            }
        }
        Ok(())
    }
}
