//! Taking a batch in: who is too old, what is empty, and the sorted row of what is left.

use crate::sort::{self, SortRoom};
use resolver_index::{Bug, Endpoint, EndpointKind, Planted, Probes};
use resolver_types::{Batch, KeyRange, Verdict, Version};
use std::cmp::Ordering;

/// A range that is not to be checked against the history.
pub(crate) const SILENT: u32 = u32::MAX;

/// A batch taken in. The arrays are kept from batch to batch; keys stay where the batch has them.
#[derive(Debug, Default)]
pub(crate) struct Intake {
    planted: Planted,
    /// The endpoints of all ranges that take part, sorted.
    pub(crate) endpoints: Vec<Endpoint>,
    /// By position among the endpoints: the eight key bytes behind the head. Empty if no key has any.
    behind: Vec<u64>,
    /// The same by range, of begin and end.
    behind_of: Vec<[u64; 2]>,
    sort_room: SortRoom,
    /// By range: where its end stands among the endpoints, if it is no point.
    pub(crate) ends: Vec<u32>,
    /// By range: the ranks that it covers, from its begin's up to (not including) its end's. Equal for one
    /// that does not take part.
    pub(crate) ranks: Vec<(u32, u32)>,
    /// By range: for reads, the newest stamp that the transaction has seen; [`SILENT`] for what is not to be
    /// checked.
    pub(crate) limits: Vec<u32>,
    /// By range: the transaction.
    pub(crate) owners: Vec<u32>,
    /// How many distinct keys the endpoints have.
    pub(crate) distinct: u32,
    /// How many ranges were taken out because they cover no key. The reads of a transaction that is too old
    /// are not looked at.
    pub(crate) empty: u32,
    /// The length of the batch's common prefix.
    prefix: usize,
    /// The common suffix of the keys that are longer than their heads.
    suffix: Vec<u8>,
}

/// What a range is to its batch.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Shape {
    Empty,
    Point,
    Span,
}

/// The shape of a range whose keys, seen after `prefix` bytes that they share, are `begin` and `end`. Where the heads tie,
/// the eight bytes `behind` them decide; bytes are compared only of keys that tie there too, and are longer.
#[inline]
fn shape(range: &KeyRange<'_>, prefix: usize, begin: Endpoint, end: Endpoint, behind: [u64; 2]) -> Shape {
    match begin.head().cmp(&end.head()) {
        Ordering::Less => return Shape::Span,
        Ordering::Greater => return Shape::Empty,
        Ordering::Equal => {}
    }
    if begin.is_long() && end.is_long() {
        match behind[0].cmp(&behind[1]) {
            Ordering::Less => return Shape::Span,
            Ordering::Greater => return Shape::Empty,
            Ordering::Equal => {}
        }
        if range.begin.len().min(range.end.len()) > prefix + 16 {
            return if range.is_point() {
                Shape::Point
            } else if range.is_empty() {
                Shape::Empty
            } else {
                Shape::Span
            };
        }
    }
    // One of the keys is the other and zero bytes.
    match range.end.len() as i64 - range.begin.len() as i64 {
        ..=0 => Shape::Empty,
        // What has been compared may not hold the last byte.
        1 if range.end[range.begin.len()] == 0 => Shape::Point,
        _ => Shape::Span,
    }
}

/// How many leading bytes all keys of a batch share with its first.
fn common_prefix(ranges: &[KeyRange<'_>]) -> usize {
    let Some(first) = ranges.first().map(|range| range.begin) else { return 0 };
    // Most batches differ within 16 bytes: then no key needs more than one look at those.
    let mut differing = 0;
    let mut shortest = usize::MAX;
    if let Some(start) = first.first_chunk::<16>() {
        let start = u128::from_be_bytes(*start);
        for key in ranges.iter().flat_map(|range| [range.begin, range.end]) {
            shortest = shortest.min(key.len());
            let Some(bytes) = key.first_chunk::<16>() else { break };
            differing |= u128::from_be_bytes(*bytes) ^ start;
        }
        let shared = differing.leading_zeros() as usize / 8;
        if shortest >= 16 && shared < 16 {
            return shared;
        }
    }
    sort::shared_by(ranges.iter().flat_map(|range| [range.begin, range.end]))
}

/// A shorter common suffix is none: few keys have so little behind their heads.
const LEAST_SUFFIX: usize = 8;

/// What keys end with that are longer than their heads; at most what the heads do not hold.
#[derive(Debug, Default)]
struct CommonSuffix<'a>(Option<&'a [u8]>);

impl<'a> CommonSuffix<'a> {
    /// Takes in what a key has behind its head. Most batches have nothing in common after two keys.
    #[inline]
    fn take(&mut self, behind: &'a [u8]) {
        match self.0 {
            Some(suffix) if behind.ends_with(suffix) || behind.is_empty() => {}
            None if behind.is_empty() => {}
            Some(suffix) => {
                let alike = suffix.iter().rev().zip(behind.iter().rev()).take_while(|(a, b)| a == b).count();
                let length = if alike < LEAST_SUFFIX { 0 } else { alike };
                self.0 = Some(&suffix[suffix.len() - length..]);
            }
            None => self.0 = Some(behind),
        }
    }
}

impl Intake {
    pub(crate) fn new(planted: Planted) -> Intake {
        Intake { planted, ..Intake::default() }
    }

    /// Takes a batch in. `verdicts` gets a verdict for every transaction: too old, in conflict because it
    /// read below the base, or, for now, committed. `limit_of` is asked for the limit of a read version,
    /// once for each row of equal ones.
    pub(crate) fn take(
        &mut self,
        batch: &Batch<'_>,
        bound: Version,
        base: Version,
        verdicts: &mut Vec<Verdict>,
        mut limit_of: impl FnMut(Version) -> u32,
    ) {
        let count = batch.ranges.len();
        self.endpoints.clear();
        self.ends.clear();
        self.ends.resize(count, 0);
        self.ranks.clear();
        self.ranks.resize(count, (0, 0));
        self.behind_of.clear();
        self.limits.clear();
        self.limits.resize(count, SILENT);
        self.owners.clear();
        self.empty = 0;
        verdicts.clear();
        self.prefix = common_prefix(batch.ranges);
        let prefix = self.prefix;
        let mut last: Option<(Version, u32)> = None;
        self.suffix.clear();
        let mut suffix = CommonSuffix::default();
        for (index, transaction) in batch.transactions.iter().enumerate() {
            let first = transaction.first as usize;
            let reads = transaction.reads as usize;
            let all = reads + transaction.writes as usize;
            self.owners.resize(first + all, index as u32);
            let too_old = reads > 0 && transaction.read_version < bound;
            let below_base = transaction.read_version < base;
            let limit = match last {
                Some((version, limit)) if version == transaction.read_version => limit,
                _ if reads == 0 || too_old || below_base => 0,
                _ => {
                    let limit = limit_of(transaction.read_version);
                    last = Some((transaction.read_version, limit));
                    limit
                }
            };
            let mut verdict = if too_old { Verdict::TooOld } else { Verdict::Committed };
            // Another set's verdicts may commit what this one rejects: writes always take their places.
            let skipped = match too_old {
                true if self.planted.has(Bug::TooOldNeverWrites) => all,
                true => reads,
                false => 0,
            };
            for (at, range) in batch.ranges[first..first + all].iter().enumerate().skip(skipped) {
                let id = (first + at) as u32;
                let (begin, end) = if at < reads {
                    (EndpointKind::ReadBegin, EndpointKind::ReadEnd)
                } else {
                    (EndpointKind::WriteBegin, EndpointKind::WriteEnd)
                };
                let begin = Endpoint::new(range.begin, prefix, begin, id);
                let end = Endpoint::new(range.end, prefix, end, id);
                let long = begin.is_long() || end.is_long();
                let behind =
                    if long { [range.begin, range.end].map(|key| head_behind(key, prefix)) } else { [0; 2] };
                let shape = shape(range, prefix, begin, end, behind);
                if shape == Shape::Empty {
                    self.empty += 1;
                    continue;
                }
                if at < reads {
                    if below_base {
                        // Every key is at least as new as the base.
                        verdict = Verdict::Conflict;
                        self.ranks[first + at] = BELOW_BASE;
                        continue;
                    }
                    self.limits[first + at] = limit;
                }
                if long {
                    if self.behind_of.is_empty() {
                        self.behind_of.resize(count, [0; 2]);
                    }
                    self.behind_of[first + at] = behind;
                    suffix.take(range.begin.get(prefix + 8..).unwrap_or_default());
                    if shape == Shape::Span && !self.planted.has(Bug::SuffixOfBegins) {
                        suffix.take(range.end.get(prefix + 8..).unwrap_or_default());
                    }
                }
                if shape == Shape::Point {
                    self.endpoints.push(begin.into_point());
                } else {
                    self.endpoints.push(begin);
                    self.endpoints.push(end);
                }
            }
            verdicts.push(verdict);
        }
        self.suffix.extend_from_slice(suffix.0.unwrap_or_default());
        let long = !self.behind_of.is_empty();
        sort::sort(&mut self.endpoints, &mut self.sort_room, prefix, long, |endpoint| key(batch, endpoint));
        self.number(batch);
    }

    /// Numbers the distinct keys, and tells every range where it stands.
    fn number(&mut self, batch: &Batch<'_>) {
        let mut rank = 0;
        let mut last: Option<Endpoint> = None;
        for (position, &endpoint) in self.endpoints.iter().enumerate() {
            if let Some(last) = last
                && !same_key(batch, self.prefix, &self.behind_of, last, endpoint)
            {
                rank += 1;
            }
            last = Some(endpoint);
            let range = endpoint.range() as usize;
            match endpoint.kind() {
                EndpointKind::ReadBegin | EndpointKind::WriteBegin => {
                    self.ranks[range].0 = rank;
                    if endpoint.is_point() {
                        self.ranks[range].1 = rank + 1;
                    }
                }
                EndpointKind::ReadEnd | EndpointKind::WriteEnd => {
                    self.ranks[range].1 = rank + u32::from(self.planted.has(Bug::TouchingOverlaps));
                    self.ends[range] = position as u32;
                }
            }
        }
        self.distinct = if self.endpoints.is_empty() { 0 } else { rank + 1 };
        self.behind.clear();
        if !self.behind_of.is_empty() {
            self.behind.extend(self.endpoints.iter().map(|&endpoint| behind(&self.behind_of, endpoint)));
        }
    }

    /// The sorted batch as the tree takes it.
    pub(crate) fn probes<'a>(&'a self, batch: &Batch<'a>) -> Probes<'a> {
        let prefix = batch.ranges.first().map_or(&[][..], |range| &range.begin[..self.prefix]);
        Probes {
            endpoints: &self.endpoints,
            behind: &self.behind,
            ends: &self.ends,
            prefix,
            suffix: &self.suffix,
            ranges: batch.ranges,
        }
    }
}

/// Instead of a read's ranks: it is in conflict because it was read below the base.
pub(crate) const BELOW_BASE: (u32, u32) = (u32::MAX, u32::MAX);

/// The eight bytes of a key that follow the head of its record.
#[inline]
fn head_behind(key: &[u8], prefix: usize) -> u64 {
    let behind = prefix + 8;
    if key.len() > behind { Endpoint::new(key, behind, EndpointKind::ReadBegin, 0).head() } else { 0 }
}

/// The key of an endpoint.
fn key<'a>(batch: &Batch<'a>, endpoint: Endpoint) -> &'a [u8] {
    let range = &batch.ranges[endpoint.range() as usize];
    match endpoint.kind() {
        EndpointKind::ReadBegin | EndpointKind::WriteBegin => range.begin,
        EndpointKind::ReadEnd | EndpointKind::WriteEnd => range.end,
    }
}

/// The eight bytes behind an endpoint's head, of a batch that has collected them.
#[inline]
fn behind(behind_of: &[[u64; 2]], endpoint: Endpoint) -> u64 {
    behind_of[endpoint.range() as usize][usize::from(endpoint.is_end())]
}

/// Whether two neighbours in the sorted row, seen after `prefix` bytes, have the same key. Bytes are compared only where the
/// heads and what stands behind them tie, and the keys are longer.
#[inline]
fn same_key(
    batch: &Batch<'_>,
    prefix: usize,
    behind_of: &[[u64; 2]],
    left: Endpoint,
    right: Endpoint,
) -> bool {
    if left.head() != right.head() || left.length() != right.length() {
        return false;
    }
    if !left.is_long() {
        return true;
    }
    let (left_key, right_key) = (key(batch, left), key(batch, right));
    behind(behind_of, left) == behind(behind_of, right)
        && left_key.len() == right_key.len()
        && (left_key.len() <= prefix + 16 || left_key[prefix + 16..] == right_key[prefix + 16..])
}

#[cfg(test)]
mod tests {
    use super::*;
    use resolver_workloads::{BatchBuf, Rng};

    /// The endpoints' keys of a batch, in the order of the intake, with their ranks.
    fn taken(buf: &BatchBuf) -> (Vec<Vec<u8>>, Vec<(u32, u32)>, usize) {
        let ranges = buf.ranges();
        let batch = buf.batch(&ranges);
        let mut intake = Intake::default();
        intake.take(&batch, Version::ZERO, Version::ZERO, &mut Vec::new(), |_| 0);
        let keys = intake.endpoints.iter().map(|&endpoint| key(&batch, endpoint).to_vec()).collect();
        (keys, intake.ranks, intake.prefix)
    }

    #[test]
    fn endpoints_are_sorted_and_equal_keys_share_a_rank() {
        let mut buf = BatchBuf::new(Version(9), Version(0));
        buf.push_transaction(Version(3), false);
        buf.push_read(b"key-c", b"key-e");
        buf.push_read(b"key-z", b"key-a"); // inverted
        buf.push_read(b"key-a", b"key-a\x00");
        buf.push_write(b"key-a", b"key-c");
        buf.push_write(b"key-b-and-more-than-eight", b"key-b-and-more-than-eight\x00");
        let (keys, ranks, prefix) = taken(&buf);
        assert_eq!(
            keys,
            [
                b"key-a".to_vec(),
                b"key-a".to_vec(),
                b"key-b-and-more-than-eight".to_vec(),
                b"key-c".to_vec(),
                b"key-c".to_vec(),
                b"key-e".to_vec()
            ]
        );
        assert_eq!(ranks, [(2, 3), (0, 0), (0, 1), (0, 2), (1, 2)]);
        assert_eq!(prefix, 4);
    }

    #[test]
    fn a_transaction_below_the_bound_is_too_old_unless_it_only_writes() {
        let mut buf = BatchBuf::new(Version(9), Version(0));
        buf.push_transaction(Version(3), false);
        buf.push_read(b"a", b"a"); // empty, but a read
        buf.push_write(b"b", b"c");
        buf.push_transaction(Version(3), false);
        buf.push_write(b"d", b"e");
        let ranges = buf.ranges();
        let batch = buf.batch(&ranges);
        let mut intake = Intake::default();
        let mut verdicts = Vec::new();
        intake.take(&batch, Version(4), Version::ZERO, &mut verdicts, |_| 0);
        assert_eq!(verdicts, [Verdict::TooOld, Verdict::Committed]);
        let writes: Vec<u32> = intake.endpoints.iter().map(|endpoint| endpoint.range()).collect();
        assert_eq!(writes, [1, 1, 2, 2]);
    }

    #[test]
    fn shapes_are_what_the_keys_say() {
        let mut rng = Rng::new(3);
        let mut key = |stem: &[u8]| {
            let mut key = stem.to_vec();
            key.extend((0..rng.below(3)).map(|_| rng.below(2) as u8));
            key
        };
        let mut seen = [0; 3];
        for stem in
            [&b""[..], b"abcdef", b"abcdefgh", b"abcdefghi", b"abcdefghijklmnop", b"abcdefghijklmnopqr"]
        {
            for prefix in 0..=stem.len() {
                for _ in 0..400 {
                    let (begin, end) = (key(stem), key(stem));
                    let range = KeyRange { begin: &begin, end: &end };
                    let expected = if range.is_empty() {
                        Shape::Empty
                    } else if range.is_point() {
                        Shape::Point
                    } else {
                        Shape::Span
                    };
                    let [b, e] =
                        [&begin, &end].map(|key| Endpoint::new(key, prefix, EndpointKind::ReadBegin, 0));
                    let behind = [&begin, &end].map(|key| head_behind(key, prefix));
                    assert!(shape(&range, prefix, b, e, behind) == expected, "{range:?} after {prefix}");
                    seen[expected as usize] += 1;
                }
            }
        }
        assert!(seen.iter().all(|&count| count > 100), "{seen:?}");
    }

    #[test]
    fn the_common_prefix_is_that_of_all_keys() {
        let mut rng = Rng::new(5);
        for _ in 0..2_000 {
            let stem = rng.below(40) as usize;
            let keys: Vec<Vec<u8>> = (0..2 + 2 * rng.below(4))
                .map(|_| {
                    let mut key = vec![7; stem];
                    key.extend((0..rng.below(24)).map(|_| 7 + rng.one_in(20) as u8));
                    key
                })
                .collect();
            let ranges: Vec<KeyRange<'_>> =
                keys.chunks_exact(2).map(|pair| KeyRange { begin: &pair[0], end: &pair[1] }).collect();
            let least = keys.iter().min().expect("keys");
            let greatest = keys.iter().max().expect("keys");
            let expected = least.iter().zip(greatest).take_while(|(a, b)| a == b).count();
            assert_eq!(common_prefix(&ranges), expected, "{keys:?}");
        }
    }

    #[test]
    fn the_common_suffix_is_that_of_all_long_keys_but_the_ends_of_points() {
        let suffix = |ranges: &[(&[u8], &[u8])]| {
            let mut buf = BatchBuf::new(Version(9), Version(0));
            buf.push_transaction(Version(3), false);
            buf.push_read(b"", b"z");
            ranges.iter().for_each(|(begin, end)| buf.push_write(begin, end));
            let ranges = buf.ranges();
            let mut intake = Intake::default();
            intake.take(&buf.batch(&ranges), Version::ZERO, Version::ZERO, &mut Vec::new(), |_| 0);
            intake.suffix
        };
        let point: (&[u8], &[u8]) = (b"12345678-last-name", b"12345678-last-name\x00");
        assert_eq!(suffix(&[]), b"");
        assert_eq!(suffix(&[point]), b"-last-name");
        assert_eq!(suffix(&[(b"1", b"12345678")]), b"", "no key is longer than its head");
        assert_eq!(suffix(&[point, (b"1", b"2-the-first-last-name")]), b"-last-name");
        assert_eq!(suffix(&[point, (b"1234567-last-name", b"3")]), b"last-name", "a head holds the rest");
        assert_eq!(suffix(&[point, (b"12345678ast-name", b"12345678last-name")]), b"ast-name");
        assert_eq!(suffix(&[point, (b"12345678st-name", b"3"), point]), b"", "too short");
        assert_eq!(suffix(&[point, (b"11", b"12345678-last-nam")]), b"");
    }
}
