//! Random batches against a list of all writes, with the skip list's invariants checked after every batch, and what only
//! the inside can see.

use super::*;
use resolver_workloads::BatchBuf;
use std::collections::BTreeMap;

/// A generator for tests: numbers below a bound.
struct Random(u64);

impl Random {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % bound
    }

    fn key(&mut self, alphabet: &[u8], longest: u64) -> Vec<u8> {
        (0..self.below(longest + 1)).map(|_| alphabet[self.below(alphabet.len() as u64) as usize]).collect()
    }
}

/// A read or write range that owns its keys.
type Range = (Vec<u8>, Vec<u8>);

fn overlap(left: &Range, right: &Range) -> bool {
    (&left.0).max(&right.0) < (&left.1).min(&right.1)
}

struct Writer {
    read_version: Version,
    report: bool,
    reads: Vec<Range>,
    writes: Vec<Range>,
}

/// The rules, over a list of every committed write ever: the newest write of a key is the greatest.
struct AllWrites {
    base: Version,
    oldest: Version,
    writes: Vec<(Range, Version)>,
}

impl AllWrites {
    fn resolve(&mut self, version: Version, oldest: Version, writers: &[Writer]) -> Verdicts {
        self.oldest = self.oldest.max(oldest);
        let mut verdicts = Verdicts::default();
        let mut accepted: Vec<Range> = Vec::new();
        for (index, writer) in writers.iter().enumerate() {
            let mut report = |read| {
                if writer.report {
                    verdicts.reported.push((index as u32, read as u32));
                }
            };
            let old = |read: &Range| {
                read.0 < read.1
                    && (self.base > writer.read_version
                        || self
                            .writes
                            .iter()
                            .any(|(write, at)| *at > writer.read_version && overlap(read, write)))
            };
            let verdict = if !writer.reads.is_empty() && writer.read_version < self.oldest {
                Verdict::TooOld
            } else if writer.reads.iter().any(old) {
                (0..writer.reads.len()).filter(|&read| old(&writer.reads[read])).for_each(&mut report);
                Verdict::Conflict
            } else if let Some(read) =
                writer.reads.iter().position(|read| accepted.iter().any(|write| overlap(read, write)))
            {
                report(read);
                Verdict::Conflict
            } else {
                accepted.extend(writer.writes.iter().cloned());
                Verdict::Committed
            };
            verdicts.verdicts.push(verdict);
        }
        self.writes.extend(accepted.into_iter().map(|write| (write, version)));
        verdicts
    }
}

/// What the batches of a random run look like: keys of up to `longest` bytes from `alphabet`, and one range in `points`
/// between any two keys, also empty or inverted, the others points.
#[derive(Clone, Copy)]
struct Shape {
    alphabet: &'static [u8],
    longest: u64,
    points: u64,
}

const SHAPES: [Shape; 4] = [
    Shape { alphabet: &[0, 1, 0xfe, 0xff], longest: 3, points: 1 },
    Shape { alphabet: b"abc", longest: 5, points: 3 },
    Shape { alphabet: b"abcd", longest: 6, points: 60 },
    Shape { alphabet: b"ab", longest: 70, points: 20 },
];

/// One random run of 80 batches.
fn run(seed: u64, shape: Shape) -> (SkipList, BTreeMap<&'static str, u64>) {
    let Shape { alphabet, longest, points } = shape;
    let mut random = Random(seed);
    let base = Version(random.below(2) as i64 * 40);
    let mut list = SkipList::new(Retention::Window);
    list.clear(base);
    let mut model = AllWrites { base, oldest: Version::LOWEST, writes: Vec::new() };
    let mut seen = BTreeMap::new();
    let mut version = base.0;
    for _ in 0..80 {
        version += 1 + random.below(30) as i64;
        let oldest = Version(version - 60 - random.below(100) as i64);
        let writers: Vec<_> = (0..random.below(24))
            .map(|_| {
                let mut ranges = |most| -> Vec<Range> {
                    let range = |random: &mut Random| {
                        let key = random.key(alphabet, longest);
                        if random.below(points) == 0 {
                            (key, random.key(alphabet, longest))
                        } else {
                            (key.clone(), [&key[..], &[0]].concat())
                        }
                    };
                    (0..random.below(most)).map(|_| range(&mut random)).collect()
                };
                let (reads, writes) = (ranges(3), ranges(3));
                let read_version = Version((version - random.below(160) as i64).max(-1));
                Writer { read_version, report: random.below(2) == 0, reads, writes }
            })
            .collect();
        let mut buf = BatchBuf::new(Version(version), oldest);
        for writer in &writers {
            buf.push_transaction(writer.read_version, writer.report);
            writer.reads.iter().for_each(|(begin, end)| buf.push_read(begin, end));
            writer.writes.iter().for_each(|(begin, end)| buf.push_write(begin, end));
        }
        let ranges = buf.ranges();
        let batch = buf.batch(&ranges);
        let mut verdicts = Verdicts::default();
        list.judge(&batch, &mut verdicts).unwrap();
        list.commit(&batch, &verdicts).unwrap();
        assert_eq!(
            verdicts,
            model.resolve(batch.version, oldest, &writers),
            "seed {seed}, version {version}"
        );
        list.list.validate(list.cutoff.unwrap_or(Version::LOWEST));
        for verdict in &verdicts.verdicts {
            *seen.entry(verdict.name()).or_insert(0) += 1;
        }
        *seen.entry("report").or_insert(0) += verdicts.reported.len() as u64;
    }
    (list, seen)
}

#[test]
fn random_batches_decide_like_a_list_of_all_writes_and_keep_the_invariants() {
    let mut seen = BTreeMap::new();
    for seed in 1..=40 {
        for (what, count) in run(seed, SHAPES[seed as usize % SHAPES.len()]).1 {
            *seen.entry(what).or_insert(0) += count;
        }
    }
    for what in ["committed", "conflict", "too old", "report"] {
        assert!(seen[what] > 100, "{what} occurs: {seen:?}");
    }
}

#[test]
fn the_same_calls_make_the_same_list() {
    let [first, second] = [0, 1].map(|_| run(7, SHAPES[2]).0);
    assert!(first.list.level(2).len() > 4, "the list has upper levels");
    for level in 0..list::LEVELS {
        assert_eq!(first.list.level(level), second.list.level(level));
    }
}

/// A batch of one transaction that only writes.
fn write(list: &mut SkipList, version: i64, oldest: i64, writes: &[(&[u8], &[u8])]) {
    let mut buf = BatchBuf::new(Version(version), Version(oldest));
    buf.push_transaction(Version(-1), false);
    writes.iter().for_each(|(begin, end)| buf.push_write(begin, end));
    let ranges = buf.ranges();
    let batch = buf.batch(&ranges);
    let mut verdicts = Verdicts::default();
    list.judge(&batch, &mut verdicts).unwrap();
    list.commit(&batch, &verdicts).unwrap();
    list.list.validate(list.cutoff.unwrap_or(Version::LOWEST));
}

/// The keys from which on another version holds, and that version.
fn steps(list: &SkipList) -> Vec<(String, i64)> {
    let name = |key: Vec<u8>| String::from_utf8(key).unwrap();
    list.list.level(0).into_iter().map(|(key, _, version)| (name(key), version.0)).collect()
}

#[test]
fn an_overlay_cuts_what_it_covers_and_leaves_the_rest_its_version() {
    let mut list = SkipList::new(Retention::Window);
    write(&mut list, 10, -1, &[(b"b", b"d"), (b"f", b"h")]);
    let step = |key: &str, version| (key.to_owned(), version);
    let expected = [step("", 0), step("b", 10), step("d", 0), step("f", 10), step("h", 0)];
    assert_eq!(steps(&list), expected);
    write(&mut list, 20, -1, &[(b"c", b"g")]);
    assert_eq!(steps(&list), [step("", 0), step("b", 10), step("c", 20), step("g", 10), step("h", 0)]);
    write(&mut list, 30, -1, &[(b"", b"b"), (b"h", b"i"), (b"i", b"j"), (b"c", b"e"), (b"d", b"f")]);
    let expected = [
        step("", 0),
        step("", 30),
        step("b", 10),
        step("c", 30),
        step("f", 20),
        step("g", 10),
        step("h", 30),
        step("i", 30),
        step("j", 0),
    ];
    assert_eq!(steps(&list), expected, "overlapping writes are united, touching ones stay apart");
}

#[test]
fn an_expiry_visits_three_nodes_a_union_and_ten_and_goes_on_where_it_stopped() {
    let mut list = SkipList::new(Retention::Window);
    let keys: Vec<[u8; 1]> = (0..200).map(|key| [key]).collect();
    let ranges: Vec<(&[u8], &[u8])> = keys.chunks(2).map(|pair| (&pair[0][..], &pair[1][..])).collect();
    write(&mut list, 10, -1, &ranges);
    assert_eq!(list.list.level(0).len(), 201);
    assert_eq!(list.cutoff(), None);
    // The first node visited stays, whatever its version, and so does the one visited first by every later call.
    let mut left = 201;
    for (version, oldest, dropped) in [(11, 11, 9), (12, 12, 9), (13, 12, 0), (14, 13, 9)] {
        write(&mut list, version, oldest, &[]);
        left -= dropped;
        assert_eq!(list.list.level(0).len(), left, "version {version}");
        assert_eq!(list.cutoff(), Some(Version(oldest)));
    }
    write(&mut list, 30, 14, &[(b"\xf0", b"\xf1")]);
    assert_eq!(list.list.level(0).len(), left + 2 - 12, "one union more: three visits more");
    for version in 40..70 {
        write(&mut list, version, version - 25, &[]);
    }
    assert!(list.list.level(0).len() < 20, "all goes in the end: {:?}", list.list.level(0));
}

#[test]
fn nodes_count_in_their_size_class_and_give_their_memory_back() {
    let mut list = SkipList::new(Retention::Window);
    let empty = list.memory_bytes();
    assert_eq!(empty, 8 + 26 * 16);
    let long = vec![7; 1_000];
    write(&mut list, 10, -1, &[(&long, b"\x08")]);
    let full = list.memory_bytes();
    let heights: Vec<_> = list.list.level(0)[1..].iter().map(|(_, height, _)| *height as u64).collect();
    let short = if heights[1] <= 3 { 64 } else { 128 };
    assert_eq!(full, empty + (8 + 16 * heights[0] + 1_000) + short);
    write(&mut list, 20, -1, &[(b"", b"\xff")]);
    assert!(list.memory_bytes() < full && list.peak_memory_bytes() >= full);
    let peak = list.peak_memory_bytes();
    list.clear(Version(3));
    assert_eq!((list.memory_bytes(), list.peak_memory_bytes()), (empty, peak));
}

#[test]
fn emptied_vectors_keep_their_memory() {
    let key = [1u8];
    let used = vec![&key[..]; 100];
    let address = used.as_ptr().cast::<()>();
    let next: Vec<&'static [u8]> = emptied(used);
    assert!(next.is_empty() && next.capacity() == 100);
    assert_eq!(next.as_ptr().cast(), address);
}
