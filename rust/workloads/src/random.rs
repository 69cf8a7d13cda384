//! Random batches for the comparison of histories: `resolver check --shape`.
//!
//! A batch is drawn in two halves. A *timeline* decides versions, `oldest` and read versions, so that every verdict occurs
//! often; a *shape* decides keys and sizes. To add a shape: a function that makes its ranges, and a line in `SHAPES`.
//!
//! | shape | keys |
//! | --- | --- |
//! | `adversarial` | 0 to 3 bytes over 00 01 fe ff (for some time 0 to 6, or 0 to 24): points, ranges, touching, empty and inverted ones, the whole key space; rarely of 30,000 to 65,535 bytes |
//! | `points` | 16 bytes, points |
//! | `ranges` | 16 bytes, spans of 1 to 100 keys |
//! | `long-keys` | sharing 8 to 200 bytes; rarely ones that differ only after byte 30,000 |
//! | `endings` | 35 to 46 bytes that differ in front and end alike, but for one in 2,000 |
//! | `knots` | 0 to 60 bytes of few letters in long runs, so that keys part at every depth, far behind what they share |
//! | `tuple` | like the tuple layer's: subspace, strings, integers of every length, nulls |
//! | `append` | rising numbers: writes at the end, reads just before it |
//! | `wide-reads` | many small intervals, read half or whole at once, and closely beside the newest one |
//! | `hot` | few keys, drawn by Zipf's law |

use crate::{BatchBuf, Rng};
use resolver_types::{MAX_KEY_LENGTH, Version};
use std::iter::FusedIterator;

/// Which list of a transaction a range is for.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Side {
    Read,
    Write,
}

/// A range under construction; its memory is used again for the next.
#[derive(Default)]
struct RangeBuf {
    begin: Vec<u8>,
    end: Vec<u8>,
}

impl RangeBuf {
    fn clear(&mut self) {
        self.begin.clear();
        self.end.clear();
    }

    /// Makes the end that of the begin's point range.
    fn make_point(&mut self) {
        self.end.clone_from(&self.begin);
        self.end.push(0);
    }

    /// Puts the lesser key first.
    fn order(&mut self) {
        if self.begin > self.end {
            std::mem::swap(&mut self.begin, &mut self.end);
        }
    }
}

/// Fills a range, whose keys come empty.
type Ranges = Box<dyn FnMut(&mut Rng, Side, &mut RangeBuf) + Send>;

/// How versions go on.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Pace {
    /// Jumps, and an `oldest` that stalls, goes back and goes negative.
    Wild,
    /// Small steps under a long window, so that much history lives.
    Steady,
}

struct Shape {
    name: &'static str,
    pace: Pace,
    /// The greatest number of transactions in a batch.
    batch: u64,
    /// The greatest number of ranges in a transaction's list; most have few.
    reads: u64,
    writes: u64,
    make: fn() -> Ranges,
}

const SHAPES: &[Shape] = &[
    Shape { name: "adversarial", pace: Pace::Wild, batch: 400, reads: 12, writes: 12, make: adversarial },
    Shape { name: "points", pace: Pace::Wild, batch: 400, reads: 12, writes: 6, make: points },
    Shape { name: "ranges", pace: Pace::Wild, batch: 400, reads: 12, writes: 6, make: ranges },
    Shape { name: "long-keys", pace: Pace::Wild, batch: 60, reads: 8, writes: 8, make: long_keys },
    Shape { name: "endings", pace: Pace::Wild, batch: 400, reads: 8, writes: 8, make: endings },
    Shape { name: "knots", pace: Pace::Wild, batch: 400, reads: 8, writes: 12, make: knots },
    Shape { name: "tuple", pace: Pace::Wild, batch: 400, reads: 12, writes: 12, make: tuple },
    Shape { name: "append", pace: Pace::Steady, batch: 400, reads: 4, writes: 12, make: append },
    Shape { name: "wide-reads", pace: Pace::Steady, batch: 12, reads: 3, writes: 60, make: wide_reads },
    Shape { name: "hot", pace: Pace::Wild, batch: 400, reads: 6, writes: 3, make: hot },
];

/// Random batches of a shape, until they hold the number of transactions asked for. They depend on nothing but shape
/// and seed, but the last batch is cut to the number.
pub struct RandomBatches {
    shape: &'static Shape,
    ranges: Ranges,
    range: RangeBuf,
    timeline: Timeline,
    rng: Rng,
    left: u64,
}

impl RandomBatches {
    /// Batches of the named shape with that many transactions together. Empty batches come on top.
    pub fn new(shape: &str, seed: u64, transactions: u64) -> Option<RandomBatches> {
        let shape = SHAPES.iter().find(|known| known.name == shape)?;
        Some(RandomBatches {
            shape,
            ranges: (shape.make)(),
            range: RangeBuf::default(),
            timeline: Timeline::new(shape.pace),
            rng: Rng::new(seed),
            left: transactions,
        })
    }

    /// The names of all shapes, the default first.
    pub fn shapes() -> Vec<&'static str> {
        SHAPES.iter().map(|shape| shape.name).collect()
    }

    fn transaction(&mut self, batch: &mut BatchBuf) {
        let read_version = Version(self.timeline.read_version(&mut self.rng));
        batch.push_transaction(read_version, self.rng.one_in(3));
        let (reads, writes) = match self.rng.below(20) {
            0 | 1 => (few(&mut self.rng, self.shape.reads), 0),
            2 | 3 => (0, few(&mut self.rng, self.shape.writes)),
            4 if self.rng.one_in(2) => (0, 0),
            _ => (few(&mut self.rng, self.shape.reads), few(&mut self.rng, self.shape.writes)),
        };
        for _ in 0..reads {
            self.fill_range(Side::Read);
            batch.push_read(&self.range.begin, &self.range.end);
        }
        for _ in 0..writes {
            self.fill_range(Side::Write);
            batch.push_write(&self.range.begin, &self.range.end);
        }
    }

    fn fill_range(&mut self, side: Side) {
        self.range.clear();
        (self.ranges)(&mut self.rng, side, &mut self.range);
    }
}

impl Iterator for RandomBatches {
    type Item = BatchBuf;

    fn next(&mut self) -> Option<BatchBuf> {
        if self.left == 0 {
            return None;
        }
        let empty = self.timeline.step(&mut self.rng);
        let size = if empty { 0 } else { batch_size(&mut self.rng, self.shape.batch).min(self.left) };
        self.left -= size;
        let mut batch = BatchBuf::new(Version(self.timeline.version), Version(self.timeline.oldest));
        for _ in 0..size {
            self.transaction(&mut batch);
        }
        Some(batch)
    }
}

impl FusedIterator for RandomBatches {}

/// From 0 to `greatest` transactions, mostly a handful.
fn batch_size(rng: &mut Rng, greatest: u64) -> u64 {
    let greatest = match rng.below(100) {
        0..5 => 0,
        5..60 => 6,
        60..90 => 30,
        90..99 => 100,
        _ => greatest,
    }
    .min(greatest);
    rng.below(greatest + 1)
}

/// From 1 to `greatest` ranges, mostly one to three.
fn few(rng: &mut Rng, greatest: u64) -> u64 {
    1 + if rng.one_in(8) { rng.below(greatest) } else { rng.below(greatest.min(3)) }
}

/// How many of the last commit versions are read at on purpose.
const RECENT: usize = 16;

/// The versions of a sequence of batches. All stay below 2^62 and a few jumps.
struct Timeline {
    pace: Pace,
    version: i64,
    oldest: i64,
    /// The greatest `oldest` so far.
    effective_oldest: i64,
    /// How far `oldest` follows behind.
    window: i64,
    /// Empty batches that are still to come in a row.
    empty_row: u64,
    /// The last commit versions, in a ring.
    recent: [i64; RECENT],
    batches: usize,
}

impl Timeline {
    fn new(pace: Pace) -> Timeline {
        Timeline {
            pace,
            version: 0,
            oldest: 0,
            effective_oldest: i64::MIN,
            window: 100_000,
            empty_row: 0,
            recent: [0; RECENT],
            batches: 0,
        }
    }

    /// Goes to the next batch; returns whether it is to be empty.
    fn step(&mut self, rng: &mut Rng) -> bool {
        self.recent[self.batches % RECENT] = self.version;
        self.batches += 1;
        match self.pace {
            Pace::Wild => self.step_wild(rng),
            Pace::Steady => {
                self.version += if rng.one_in(2_000) { 100_000_000 } else { rng.between(1, 20) };
                self.oldest = self.version - 5_000;
            }
        }
        self.effective_oldest = self.effective_oldest.max(self.oldest);
        if self.empty_row > 0 {
            self.empty_row -= 1;
            return true;
        }
        if rng.one_in(400) {
            self.empty_row = rng.below(60);
        }
        false
    }

    fn step_wild(&mut self, rng: &mut Rng) {
        self.version += match rng.below(6_000) {
            0 => ((1 << 62) - self.version).max(2) / 2,
            1 | 2 => 600_000_000_000,
            3..20 => 100_000_000,
            20..2_000 => 1,
            2_000..2_100 => rng.between(1, 1_000_000),
            _ => rng.between(1, 20),
        };
        if rng.one_in(60) {
            self.window = rng.pick(&[1, 10, 30, 100, 100, 300, 300, 1_000, 1_000, 100_000, 5_000_000]);
        }
        self.oldest = match rng.below(100) {
            0..70 => self.version - self.window,
            70..90 => self.oldest,
            90..94 => self.oldest.saturating_sub(rng.between(1, 1_000)),
            94..97 => rng.between(-5_000_000, -1),
            97 => 0,
            98 => self.version - rng.between(1, 50),
            _ if rng.one_in(20) => self.version,
            _ => self.effective_oldest.max(-1),
        };
    }

    /// A read version from -1 to the batch's own.
    fn read_version(&self, rng: &mut Rng) -> i64 {
        let oldest = self.effective_oldest.clamp(0, self.version);
        let drawn = match rng.below(100) {
            0..45 => {
                let back = 1 + rng.below(self.batches.min(RECENT) as u64) as usize;
                self.recent[(self.batches - back) % RECENT] - rng.between(0, 1)
            }
            45..55 => self.recent[(self.batches - 1) % RECENT],
            55..70 => oldest + rng.between(-2, 2),
            70..80 => self.version,
            80..84 => self.version - 1,
            84..86 => -1,
            86 => 0,
            _ => rng.between(oldest, self.version),
        };
        drawn.clamp(-1, self.version)
    }
}

/// The letters of adversarial keys: the least and the greatest bytes.
const LETTERS: [u8; 4] = [0x00, 0x01, 0xfe, 0xff];

/// A key of up to three letters, times `depth`: 85 keys that meet all the time; or, twice as long, some thousands that make a
/// history of several nodes; or, many times, keys that outgrow an integer and, together, a small budget. The deeper, the rarer is
/// the empty key: ranges from it wipe out the history.
fn short_key(rng: &mut Rng, depth: usize, key: &mut Vec<u8>) {
    let length = match rng.below(32) {
        0 => usize::from(!rng.one_in(depth as u64 * depth as u64)),
        1..8 => 1,
        8..20 => 2,
        _ => 3,
    };
    let length = depth * length;
    // One draw gives all letters.
    let letters = rng.next_u64();
    key.extend((0..length).map(|at| LETTERS[(letters >> (2 * at) & 3) as usize]));
}

/// A key of 30,000 to 65,535 bytes: one letter repeated, and one at the end. There are few, so that they meet.
fn huge_key(rng: &mut Rng, key: &mut Vec<u8>) {
    let length = rng.pick(&[30_000, 30_001, 30_001, MAX_KEY_LENGTH - 1, MAX_KEY_LENGTH, MAX_KEY_LENGTH]);
    key.resize(length - 1, rng.pick(&LETTERS));
    key.push(rng.pick(&LETTERS));
}

/// How many ranges of one kind follow each other before `adversarial` changes its mind; deep keys take longer to make a history.
const MOOD: u64 = 20_000;

fn adversarial() -> Ranges {
    let mut last_end = Vec::new();
    let (mut depth, mut wide_writes) = (1, false);
    Box::new(move |rng, side, range| {
        if rng.one_in(MOOD * (depth as u64).div_ceil(2)) {
            depth = rng.pick(&[1, 1, 1, 2, 2, 8]);
            wide_writes = rng.one_in(3);
        }
        // Narrow writes let the history grow; wide ones wipe it out.
        let kinds =
            if side == Side::Write && !wide_writes && !rng.one_in(200 * depth as u64) { 62 } else { 100 };
        match rng.below(kinds) {
            _ if rng.one_in(1_500) => huge_range(rng, range),
            0..30 => {
                short_key(rng, depth, &mut range.begin);
                range.make_point();
            }
            // All keys that begin alike.
            30..36 => {
                short_key(rng, depth, &mut range.begin);
                range.end.clone_from(&range.begin);
                range.end.push(0xff);
            }
            // Touches the range before.
            36..44 => {
                range.begin.clone_from(&last_end);
                range.make_point();
            }
            44..50 => {
                short_key(rng, depth, &mut range.begin);
                range.end.clone_from(&range.begin);
            }
            50..56 => {
                short_key(rng, depth, &mut range.begin);
                short_key(rng, depth, &mut range.end);
                range.order();
                std::mem::swap(&mut range.begin, &mut range.end);
            }
            // Up to a neighbour: a few keys.
            56..62 => {
                short_key(rng, depth, &mut range.begin);
                range.end.clone_from(&range.begin);
                if let Some(last) = range.end.last_mut() {
                    *last = last.saturating_add(1);
                }
                range.end.push(rng.pick(&LETTERS));
            }
            62..88 => {
                short_key(rng, depth, &mut range.begin);
                short_key(rng, depth, &mut range.end);
                range.order();
            }
            88..96 => {
                range.begin.clone_from(&last_end);
                short_key(rng, depth, &mut range.end);
                range.order();
            }
            // The whole key space, with and without the keys from ff on.
            96..98 => range.end.extend_from_slice(if rng.one_in(2) { &[0xff; 4] } else { &[0xff] }),
            _ => {
                short_key(rng, depth, &mut range.begin);
                range.end.extend_from_slice(&[0xff; 4]);
            }
        }
        // The end of a longest key's point range can begin no range.
        if range.end.len() <= MAX_KEY_LENGTH {
            last_end.clone_from(&range.end);
        }
    })
}

/// A range with a huge key at one of its ends, or both.
fn huge_range(rng: &mut Rng, range: &mut RangeBuf) {
    huge_key(rng, &mut range.begin);
    match rng.below(4) {
        0 => {
            huge_key(rng, &mut range.end);
            range.order();
        }
        1 => {
            short_key(rng, 1, &mut range.end);
            range.order();
        }
        _ => range.make_point(),
    }
}

/// 8 dots and the number in 8 bytes.
fn numbered_key(number: u64, key: &mut Vec<u8>) {
    key.extend_from_slice(&[b'.'; 8]);
    key.extend_from_slice(&number.to_be_bytes());
}

fn points() -> Ranges {
    Box::new(|rng, _, range| {
        numbered_key(rng.below(3_000), &mut range.begin);
        range.make_point();
    })
}

fn ranges() -> Ranges {
    Box::new(|rng, _, range| {
        let begin = rng.below(30_000);
        numbered_key(begin, &mut range.begin);
        numbered_key(begin + 1 + rng.below(100), &mut range.end);
    })
}

/// Whether a range is to reach from one drawn key to another. Many reads do; few writes, since each wipes out much of the
/// history.
fn is_wide(rng: &mut Rng, side: Side) -> bool {
    match side {
        Side::Read => rng.one_in(3),
        Side::Write => rng.one_in(60),
    }
}

/// How far into a deep key the first difference stands.
const DEEP: usize = 30_000;

fn long_keys() -> Ranges {
    fn key(rng: &mut Rng, key: &mut Vec<u8>) {
        // Shared bytes of every kind of length around an 8-byte head, then a short tail, or none.
        let shared = rng.pick(&[0, 7, 8, 9, 16, 64, 200, 200, 200, 200]);
        key.resize(shared, b'p');
        for _ in 0..rng.below(5) {
            key.push(rng.pick(&[0x00, b'a', b'p', 0xff]));
        }
    }
    fn deep_key(rng: &mut Rng, key: &mut Vec<u8>) {
        key.resize(DEEP, b'p');
        for _ in 0..rng.below(4) {
            key.push(rng.pick(&[0x00, b'a', 0xff]));
        }
    }
    Box::new(|rng, side, range| {
        if rng.one_in(300) {
            huge_range(rng, range);
            return;
        }
        let make = if rng.one_in(80) { deep_key } else { key };
        make(rng, &mut range.begin);
        if is_wide(rng, side) {
            make(rng, &mut range.end);
            range.order();
        } else {
            range.make_point();
        }
    })
}

/// Keys that differ in front and, most of them, end alike.
fn endings() -> Ranges {
    fn key(rng: &mut Rng, key: &mut Vec<u8>) {
        key.extend_from_slice(&(rng.below(3_000) as u32).to_be_bytes());
        let middle = key.len() + rng.pick(&[0, 0, 0, 5, 11]);
        key.resize(middle, b'.');
        let ending = if rng.one_in(2_000) { &b"another one"[..] } else { b"the same ending of all the keys" };
        key.extend_from_slice(ending);
    }
    Box::new(|rng, side, range| {
        key(rng, &mut range.begin);
        if is_wide(rng, side) {
            key(rng, &mut range.end);
            range.order();
        } else {
            range.make_point();
        }
    })
}

fn knots() -> Ranges {
    fn key(rng: &mut Rng, key: &mut Vec<u8>) {
        // Few runs, of few lengths: keys are alike for long, and there are thousands.
        for _ in 0..rng.below(6) {
            let letter = rng.pick(&[0x00, b'a', b'a', b'b']);
            let length = key.len() + rng.pick(&[1, 2, 7, 8, 9, 12]);
            key.resize(length, letter);
        }
    }
    Box::new(|rng, side, range| {
        key(rng, &mut range.begin);
        if is_wide(rng, side) {
            key(rng, &mut range.end);
            range.order();
        } else if rng.one_in(4) {
            range.end.clone_from(&range.begin);
            range.end.push(rng.pick(&[b'a', 0xff]));
        } else {
            range.make_point();
        }
    })
}

/// A tuple-layer integer: zero is 14, a positive one 15 and up by its length, a negative one 13 and down.
fn pack_integer(number: i64, key: &mut Vec<u8>) {
    let magnitude = number.unsigned_abs();
    let bytes = magnitude.to_be_bytes();
    let length = 8 - magnitude.leading_zeros() as usize / 8;
    if number >= 0 {
        key.push(0x14 + length as u8);
        key.extend_from_slice(&bytes[8 - length..]);
    } else {
        key.push(0x14 - length as u8);
        key.extend(bytes[8 - length..].iter().map(|byte| !byte));
    }
}

/// A tuple-layer string: 02, the bytes with 00 written as 00 ff, 00.
fn pack_string(string: &[u8], key: &mut Vec<u8>) {
    key.push(0x02);
    for &byte in string {
        key.push(byte);
        if byte == 0 {
            key.push(0xff);
        }
    }
    key.push(0x00);
}

fn tuple() -> Ranges {
    fn row(rng: &mut Rng, key: &mut Vec<u8>) {
        pack_integer(rng.pick(&[4, 4, 300]), key);
        pack_string(rng.pick(&[&b"users"[..], b"users", b"users\x00by name", b"u"]), key);
        let bits = rng.below(8);
        pack_integer(rng.between(-(1 << bits), 1 << (2 * bits)), key);
    }
    fn column(rng: &mut Rng, key: &mut Vec<u8>) {
        match rng.below(4) {
            0 => {}
            1 => key.push(0x00),
            2 => pack_integer(rng.between(-3, 3), key),
            _ => pack_string(rng.pick(&[&b"name"[..], b"", b"address of record"]), key),
        }
    }
    Box::new(|rng, side, range| {
        row(rng, &mut range.begin);
        if is_wide(rng, side) {
            row(rng, &mut range.end);
            column(rng, &mut range.end);
            range.order();
        } else if rng.one_in(4) {
            // A row with all its columns.
            range.end.clone_from(&range.begin);
            range.begin.push(0x00);
            range.end.push(0xff);
        } else {
            column(rng, &mut range.begin);
            range.make_point();
        }
    })
}

fn append() -> Ranges {
    let mut end = 0u64;
    Box::new(move |rng, side, range| match side {
        Side::Write => {
            // Mostly the next number; sometimes one that stands there already.
            let number = if rng.one_in(10) { end.saturating_sub(rng.below(100)) } else { end };
            end = end.max(number + 1);
            numbered_key(number, &mut range.begin);
            range.make_point();
        }
        Side::Read if rng.one_in(2) => {
            numbered_key(end.saturating_sub(rng.below(2_000)), &mut range.begin);
            range.make_point();
        }
        Side::Read => {
            let begin = end.saturating_sub(rng.below(2_000));
            numbered_key(begin, &mut range.begin);
            numbered_key(begin + 1 + rng.below(20), &mut range.end);
        }
    })
}

/// Keys of `wide-reads`.
const WIDE_KEYS: u64 = 1_000_000;

fn wide_reads() -> Ranges {
    let mut newest = 0;
    Box::new(move |rng, side, range| match side {
        Side::Write => {
            newest = rng.below(WIDE_KEYS);
            numbered_key(newest, &mut range.begin);
            if rng.one_in(4) {
                numbered_key(newest + 1 + rng.below(5), &mut range.end);
            } else {
                range.make_point();
            }
        }
        Side::Read => match rng.below(20) {
            0 => range.end.push(0xff),
            // All but the newest interval, from below and from above.
            1 => numbered_key(newest, &mut range.end),
            2 => {
                numbered_key(newest + 6, &mut range.begin);
                range.end.push(0xff);
            }
            3 => {
                numbered_key(rng.below(WIDE_KEYS), &mut range.begin);
                numbered_key(WIDE_KEYS, &mut range.end);
            }
            4..8 => {
                let begin = rng.below(WIDE_KEYS);
                numbered_key(begin, &mut range.begin);
                numbered_key(begin + 1 + rng.below(1_000), &mut range.end);
            }
            _ => {
                numbered_key(rng.below(WIDE_KEYS), &mut range.begin);
                range.make_point();
            }
        },
    })
}

/// Keys of `hot`.
const HOT_KEYS: u64 = 64;

fn hot() -> Ranges {
    // Zipf's law with exponent 1 in whole numbers: key k weighs 2^20 / (k + 1).
    let mut total = 0;
    let totals: Vec<u64> = (1..=HOT_KEYS)
        .map(|rank| {
            total += (1 << 20) / rank;
            total
        })
        .collect();
    Box::new(move |rng, _, range| {
        let drawn = rng.below(total);
        let number = totals.partition_point(|&below| below <= drawn) as u64;
        numbered_key(number, &mut range.begin);
        if rng.one_in(5) {
            numbered_key(number + 1 + rng.below(3), &mut range.end);
        } else {
            range.make_point();
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use resolver_types::MAX_END_LENGTH;
    use std::collections::BTreeSet;

    fn batches(shape: &str, seed: u64, transactions: u64) -> RandomBatches {
        RandomBatches::new(shape, seed, transactions).expect("the shape exists")
    }

    #[test]
    fn every_shape_is_legal_exact_and_only_shape_and_seed() {
        assert!(RandomBatches::new("no-such-shape", 1, 1).is_none());
        assert_eq!(RandomBatches::shapes()[0], "adversarial");
        for shape in RandomBatches::shapes() {
            assert_eq!(batches(shape, 1, 0).count(), 0);
            let (mut last, mut transactions, mut sizes) = (None, 0, BTreeSet::new());
            for (buf, again) in batches(shape, 9, 20_000).zip(batches(shape, 9, 20_000)) {
                assert_eq!(buf, again, "{shape}");
                let ranges = buf.ranges();
                assert_eq!(buf.batch(&ranges).check(last, Version::ZERO), Ok(()), "{shape}");
                assert!(buf.oldest() <= buf.version());
                for transaction in buf.transactions() {
                    assert!(transaction.read_version >= Version(-1));
                    assert!(transaction.read_version <= buf.version());
                }
                last = Some(buf.version());
                transactions += buf.transactions().len();
                sizes.insert(buf.transactions().len());
            }
            assert_eq!(transactions, 20_000, "{shape}");
            assert!(sizes.contains(&0) && sizes.len() > 10, "{shape}: {sizes:?}");
            let first = |seed| batches(shape, seed, 100).collect::<Vec<_>>();
            assert_ne!(first(1), first(2), "{shape}");
        }
    }

    #[test]
    fn adversarial_batches_hold_all_that_they_promise() {
        let mut lengths = BTreeSet::new();
        let (mut empty, mut inverted, mut points, mut whole) = (0, 0, 0, 0);
        let (mut reading, mut writing, mut neither, mut reports, mut transactions) = (0, 0, 0, 0, 0);
        let (mut own, mut none) = (0, 0);
        let (mut jumps, mut back, mut stalls, mut negative) = ([0; 3], 0, 0, 0);
        let (mut version, mut oldest, mut row, mut longest_row) = (0, 0, 0, 0);
        for buf in batches("adversarial", 1, 200_000) {
            for range in buf.ranges() {
                lengths.extend([range.begin.len(), range.end.len()]);
                empty += usize::from(range.begin == range.end);
                inverted += usize::from(range.begin > range.end);
                points += usize::from(range.is_point());
                whole += usize::from(range.begin.is_empty() && range.end == [0xff; 4]);
            }
            for transaction in buf.transactions() {
                transactions += 1;
                reports += usize::from(transaction.report);
                reading += usize::from(transaction.reads > 0 && transaction.writes == 0);
                writing += usize::from(transaction.reads == 0 && transaction.writes > 0);
                neither += usize::from(transaction.reads == 0 && transaction.writes == 0);
                own += usize::from(transaction.read_version == buf.version());
                none += usize::from(transaction.read_version == Version(-1));
            }
            let step = buf.version().0 - version;
            jumps[0] += usize::from(step == 100_000_000);
            jumps[1] += usize::from(step == 600_000_000_000);
            jumps[2] += usize::from(step > 1 << 50);
            back += usize::from(buf.oldest().0 < oldest);
            stalls += usize::from(buf.oldest().0 == oldest);
            negative += usize::from(buf.oldest() < Version::ZERO);
            row = if buf.transactions().is_empty() { row + 1 } else { 0 };
            longest_row = longest_row.max(row);
            (version, oldest) = (buf.version().0, buf.oldest().0);
        }
        let promised = [0, 1, 2, 3, 4, 6, 7, 30_000, 30_001, 30_002, MAX_KEY_LENGTH, MAX_END_LENGTH];
        assert!(promised.iter().all(|length| lengths.contains(length)), "{lengths:?}");
        for (count, least) in [(empty, 10_000), (inverted, 10_000), (points, 100_000), (whole, 1_000)] {
            assert!(count > least, "{empty} empty, {inverted} inverted, {points} points, {whole} whole");
        }
        for (count, least) in [(reading, 10_000), (writing, 10_000), (neither, 2_000)] {
            assert!(count > least, "{reading} only read, {writing} only write, {neither} do neither");
        }
        assert!((transactions / 4..transactions / 2).contains(&reports), "{reports} reports");
        assert!(own > 10_000 && none > 1_000, "{own} read at their own version, {none} at none");
        assert!(jumps.iter().all(|&count| count > 0) && version > 1 << 61, "{jumps:?} to {version}");
        assert!(back > 100 && stalls > 100 && negative > 100, "{back}, {stalls}, {negative}");
        assert!(longest_row > 10, "{longest_row} empty batches in a row");
    }

    #[test]
    fn long_keys_share_prefixes_up_to_deep_ones() {
        let mut prefixes = BTreeSet::new();
        let mut deep = BTreeSet::new();
        for buf in batches("long-keys", 3, 2_000) {
            for range in buf.ranges() {
                prefixes.insert(range.begin.iter().take_while(|&&byte| byte == b'p').count().min(DEEP));
                if range.begin.len() >= DEEP && range.begin[..DEEP].iter().all(|&byte| byte == b'p') {
                    deep.insert(range.begin[DEEP..].to_vec());
                }
            }
        }
        assert!([0, 7, 8, 9, 200, DEEP].iter().all(|length| prefixes.contains(length)), "{prefixes:?}");
        assert!(deep.len() > 5, "{deep:?}");
    }

    #[test]
    fn integers_and_strings_are_packed_in_the_tuple_layers_order() {
        let pack = |number| {
            let mut key = Vec::new();
            pack_integer(number, &mut key);
            key
        };
        assert_eq!(pack(0), [0x14]);
        assert_eq!(pack(256), [0x16, 1, 0]);
        assert_eq!(pack(-1), [0x13, 0xfe]);
        let numbers = [i64::MIN, -65_536, -256, -255, -1, 0, 1, 255, 256, 65_535, i64::MAX];
        assert!(numbers.map(pack).is_sorted());
        let mut key = Vec::new();
        pack_string(b"a\0b", &mut key);
        assert_eq!(key, [2, b'a', 0, 0xff, b'b', 0]);
    }

    #[test]
    fn hot_keys_follow_zipfs_law() {
        let mut counts = [0u32; HOT_KEYS as usize];
        for buf in batches("hot", 5, 20_000) {
            for range in buf.ranges() {
                counts[u64::from_be_bytes(range.begin[8..].try_into().expect("16 bytes")) as usize] += 1;
            }
        }
        let ratio = f64::from(counts[0]) / f64::from(counts[9]);
        assert!((8.0..12.0).contains(&ratio), "the first key is drawn {ratio} times as often as the tenth");
        assert!(counts.iter().all(|&count| count > 0));
    }
}
