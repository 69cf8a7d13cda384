//! The sort of a batch's endpoints: by head in one distributing pass, by bytes only where heads tie.

use resolver_index::Endpoint;
use std::cmp::Ordering;

/// Fewer endpoints than this are compared into order.
const COMPARE_BELOW: usize = 64;
/// Buckets hold about so many endpoints where heads are evenly spread.
const PER_BUCKET: usize = 2;
const MOST_BUCKETS: usize = 1 << 12;
/// A fuller bucket is compared into order by the library's sort, a smaller one by insertion.
const INSERT_BELOW: usize = 24;

/// Sorts endpoints by key, equal keys by the tie rule and then by range. `spare` and `counts` are room to
/// work in.
pub(crate) fn sort<'a>(
    endpoints: &mut Vec<Endpoint>,
    spare: &mut Vec<Endpoint>,
    counts: &mut Vec<u32>,
    key: impl Fn(Endpoint) -> &'a [u8],
) {
    if endpoints.len() < COMPARE_BELOW {
        endpoints.sort_unstable();
    } else {
        distribute(endpoints, spare, counts);
    }
    settle_ties(endpoints, key);
}

/// Distributes the endpoints over buckets by their heads' distance from the least, and sorts within. Linear
/// where heads are evenly spread, O(n log n) at worst.
fn distribute(endpoints: &mut Vec<Endpoint>, spare: &mut Vec<Endpoint>, counts: &mut Vec<u32>) {
    let (mut least, mut greatest) = (u64::MAX, 0);
    let mut sorted = true;
    let mut last = endpoints[0];
    for &endpoint in endpoints.iter() {
        least = least.min(endpoint.head());
        greatest = greatest.max(endpoint.head());
        sorted &= last <= endpoint;
        last = endpoint;
    }
    if sorted {
        return;
    }
    let buckets = (endpoints.len() / PER_BUCKET).next_power_of_two().min(MOST_BUCKETS);
    let span = greatest - least;
    let shift = (64 - span.leading_zeros()).saturating_sub(buckets.ilog2());
    let bucket = |endpoint: &Endpoint| ((endpoint.head() - least) >> shift) as usize;
    counts.clear();
    counts.resize(buckets + 1, 0);
    for endpoint in endpoints.iter() {
        counts[bucket(endpoint)] += 1;
    }
    let mut start = 0;
    for count in counts.iter_mut() {
        start += std::mem::replace(count, start);
    }
    spare.clear();
    spare.resize(endpoints.len(), endpoints[0]);
    for endpoint in endpoints.iter() {
        let place = &mut counts[bucket(endpoint)];
        spare[*place as usize] = *endpoint;
        *place += 1;
    }
    // Every count is now where its bucket stops.
    let mut from = 0;
    for &to in &counts[..buckets] {
        let to = to as usize;
        sort_bucket(&mut spare[from..to]);
        from = to;
    }
    std::mem::swap(endpoints, spare);
}

fn sort_bucket(bucket: &mut [Endpoint]) {
    if bucket.len() >= INSERT_BELOW {
        bucket.sort_unstable();
        return;
    }
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

/// Puts endpoints with equal heads and longer keys in the order of their bytes.
fn settle_ties<'a>(endpoints: &mut [Endpoint], key: impl Fn(Endpoint) -> &'a [u8]) {
    let mut at = 0;
    while at < endpoints.len() {
        let endpoint = endpoints[at];
        let mut stop = at + 1;
        if endpoint.is_long() {
            while stop < endpoints.len()
                && endpoints[stop].head() == endpoint.head()
                && endpoints[stop].is_long()
            {
                stop += 1;
            }
            if stop - at > 1 {
                endpoints[at..stop].sort_unstable_by(|&left, &right| match key(left).cmp(key(right)) {
                    Ordering::Equal => left.cmp(&right),
                    unequal => unequal,
                });
            }
        }
        at = stop;
    }
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
            let lengths = [1, 3, 9, 20][round % 4];
            let letters = [2, 256][round / 4 % 2];
            let keys: Vec<Vec<u8>> = (0..count)
                .map(|_| (0..rng.below(lengths + 1)).map(|_| rng.below(letters) as u8).collect())
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
            sort(&mut row, &mut Vec::new(), &mut Vec::new(), |endpoint| &keys[endpoint.range() as usize]);
            let got: Vec<usize> = row.iter().map(|endpoint| endpoint.range() as usize).collect();
            assert_eq!(got, expected, "round {round}");
        }
    }
}
