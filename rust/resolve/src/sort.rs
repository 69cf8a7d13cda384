//! The sort of a batch's endpoints: by heads in distributing passes, and where longer keys tie, by the heads
//! that follow what they share.

use resolver_index::Endpoint;
use std::cmp::Ordering;

/// Fewer endpoints than this are compared into order.
const COMPARE_BELOW: usize = 64;
/// Buckets hold about so many endpoints where heads are evenly spread.
const PER_BUCKET: usize = 4;
const MOST_BUCKETS: usize = 1 << 15;
/// A fuller bucket is sorted like a row of its own, a smaller one by insertion.
const INSERT_BELOW: usize = 24;
/// Fewer keys than this that tie are compared by their bytes.
const REHEAD_FROM: usize = 4;
/// Ties within ties are compared by their bytes from this depth on: the depth of the recursion does not grow with
/// the keys.
const DEEPEST: usize = 32;

/// Room to work in, kept from batch to batch.
#[derive(Debug, Default)]
pub(crate) struct SortRoom {
    spare: Vec<Endpoint>,
    counts: Vec<u32>,
}

/// Sorts endpoints, seen after `prefix` bytes that all keys share, by key, equal keys by the tie rule and then by
/// range. Linear where heads are evenly spread, O(n log n) comparisons at worst. `long`: some key has bytes that its
/// head does not hold.
pub(crate) fn sort<'a>(
    endpoints: &mut Vec<Endpoint>,
    room: &mut SortRoom,
    prefix: usize,
    long: bool,
    key: impl Fn(Endpoint) -> &'a [u8] + Copy,
) {
    let SortRoom { spare, counts } = room;
    counts.clear();
    if spare.len() < endpoints.len() {
        spare.resize(endpoints.len(), endpoints[0]);
    }
    spare.truncate(endpoints.len());
    if sort_by_heads(endpoints, spare, counts) == Sorted::InSpare {
        std::mem::swap(endpoints, spare);
    }
    if long {
        settle_ties(endpoints, (spare, counts), prefix, 0, key);
    }
}

/// Where a row is after its sort.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Sorted {
    InPlace,
    InSpare,
}

/// Sorts a row by head and tag; one whose heads all tie and whose keys all go on may be left as it is, to
/// [`settle_ties`]. `counts` is a stack: what stands in it belongs to the rows around this one.
fn sort_by_heads(row: &mut [Endpoint], spare: &mut [Endpoint], counts: &mut Vec<u32>) -> Sorted {
    if row.len() < COMPARE_BELOW {
        row.sort_unstable();
        return Sorted::InPlace;
    }
    let (mut least, mut greatest) = (u64::MAX, 0);
    let mut sorted = true;
    let mut last = row[0];
    for &endpoint in row.iter() {
        least = least.min(endpoint.head());
        greatest = greatest.max(endpoint.head());
        sorted &= last <= endpoint;
        last = endpoint;
    }
    if sorted {
        return Sorted::InPlace;
    }
    let span = greatest - least;
    if span == 0 {
        // Keys that go on behind the same head are put in order by their bytes, from any order.
        if !row.iter().all(|endpoint| endpoint.is_long()) {
            row.sort_unstable();
        }
        return Sorted::InPlace;
    }
    // The distance from the least head names the bucket; the greatest's is not the least's, so rows get shorter.
    let buckets = (row.len() / PER_BUCKET).next_power_of_two().min(MOST_BUCKETS);
    let shift = (64 - span.leading_zeros()).saturating_sub(buckets.ilog2());
    let bucket = |endpoint: &Endpoint| ((endpoint.head() - least) >> shift) as usize;
    let base = counts.len();
    counts.resize(base + buckets, 0);
    let own = &mut counts[base..];
    for endpoint in row.iter() {
        own[bucket(endpoint)] += 1;
    }
    let mut start = 0;
    for count in own.iter_mut() {
        start += std::mem::replace(count, start);
    }
    for endpoint in row.iter() {
        let place = &mut own[bucket(endpoint)];
        spare[*place as usize] = *endpoint;
        *place += 1;
    }
    // Every count is now where its bucket stops.
    let mut from = 0;
    for at in base..base + buckets {
        let to = counts[at] as usize;
        let filled = &mut spare[from..to];
        if filled.len() < INSERT_BELOW {
            insert(filled);
        } else if sort_by_heads(filled, &mut row[from..to], counts) == Sorted::InSpare {
            filled.copy_from_slice(&row[from..to]);
        }
        from = to;
    }
    counts.truncate(base);
    Sorted::InSpare
}

/// Sorts a short row by insertion.
fn insert(bucket: &mut [Endpoint]) {
    for at in 1..bucket.len() {
        let endpoint = bucket[at];
        let mut to = at;
        while to > 0 && bucket[to - 1] > endpoint {
            bucket[to] = bucket[to - 1];
            to -= 1;
        }
        bucket[to] = endpoint;
    }
}

/// Puts endpoints with equal heads and longer keys in the order of their bytes: keys that tie are sorted in the same
/// way, seen after what they share.
fn settle_ties<'a>(
    row: &mut [Endpoint],
    (spare, counts): (&mut [Endpoint], &mut Vec<u32>),
    prefix: usize,
    depth: usize,
    key: impl Fn(Endpoint) -> &'a [u8] + Copy,
) {
    let behind = prefix + 8;
    let mut at = 0;
    while at < row.len() {
        let first = row[at];
        let mut stop = at + 1;
        if first.is_long() {
            while stop < row.len() && row[stop].head() == first.head() && row[stop].is_long() {
                stop += 1;
            }
        }
        let tied = &mut row[at..stop];
        at = stop;
        if tied.len() < 2 {
            continue;
        }
        if tied.len() < REHEAD_FROM || depth == DEEPEST {
            tied.sort_unstable_by(|&left, &right| match key(left)[behind..].cmp(&key(right)[behind..]) {
                Ordering::Equal => left.cmp(&right),
                unequal => unequal,
            });
            continue;
        }
        let shared = behind + shared_by(tied.iter().map(|&endpoint| &key(endpoint)[behind..]));
        for endpoint in tied.iter_mut() {
            *endpoint = endpoint.seen_after(key(*endpoint), shared);
        }
        let spare = &mut spare[..tied.len()];
        if sort_by_heads(tied, spare, counts) == Sorted::InSpare {
            tied.copy_from_slice(spare);
        }
        settle_ties(tied, (spare, counts), shared, depth + 1, key);
        for endpoint in tied {
            *endpoint = endpoint.seen_like(first);
        }
    }
}

/// How many leading bytes some keys share.
pub(crate) fn shared_by<'a>(mut keys: impl Iterator<Item = &'a [u8]>) -> usize {
    let Some(mut shared) = keys.next() else { return 0 };
    for key in keys {
        if !key.starts_with(shared) {
            shared = &shared[..shared.iter().zip(key).take_while(|(a, b)| a == b).count()];
            if shared.is_empty() {
                break;
            }
        }
    }
    shared.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use resolver_index::EndpointKind;
    use resolver_workloads::Rng;

    #[test]
    fn any_row_comes_out_as_a_plain_sort_of_its_keys_has_it() {
        let mut rng = Rng::new(7);
        for round in 0..400 {
            let count = rng.below(500) as usize;
            // The longest are alike for more heads than ties are followed into.
            let lengths = [1, 3, 9, 20, 60, 16 * DEEPEST as u64][round % 6];
            let letters = [1, 2, 256][round / 6 % 3];
            let shared: Vec<u8> = (0..rng.below(30)).map(|_| rng.below(256) as u8).collect();
            let keys: Vec<Vec<u8>> = (0..count)
                .map(|_| {
                    // Most keys are alike for a long way; the others keep that from being the batch's prefix.
                    let start = if rng.below(10) > 0 { &shared[..] } else { &[] };
                    let own = (0..rng.below(lengths + 1)).map(|_| rng.below(letters) as u8);
                    start.iter().copied().chain(own).collect()
                })
                .collect();
            let kinds = [
                EndpointKind::ReadEnd,
                EndpointKind::WriteEnd,
                EndpointKind::WriteBegin,
                EndpointKind::ReadBegin,
            ];
            let mut row: Vec<Endpoint> = (0..count)
                .map(|index| Endpoint::new(&keys[index], 0, kinds[index % 4], index as u32))
                .collect();
            let mut expected: Vec<usize> = (0..count).collect();
            expected.sort_by(|&a, &b| {
                keys[a].cmp(&keys[b]).then(kinds[a % 4].cmp(&kinds[b % 4])).then(a.cmp(&b))
            });
            let long = keys.iter().any(|key| key.len() > 8);
            sort(&mut row, &mut SortRoom::default(), 0, long, |endpoint| &keys[endpoint.range() as usize]);
            let got: Vec<usize> = row.iter().map(|endpoint| endpoint.range() as usize).collect();
            assert_eq!(got, expected, "round {round}");
        }
    }
}
