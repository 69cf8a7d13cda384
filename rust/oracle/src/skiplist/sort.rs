//! Stage 1: the batch taken in, and all endpoints of its ranges sorted by a radix sort, byte by byte from the front.
//!
//! Each pass distributes a group of endpoints that share their first bytes by the next one; a group below
//! [`COMPARE_BELOW`] is finished by comparison. There is no shortcut over a common prefix: its bytes cost a pass each.

use std::cmp::Ordering;

/// A group smaller than this is sorted by comparison.
const COMPARE_BELOW: usize = 10;

/// What an endpoint is. The declared order is the rule for endpoints at the same key: with ends before begins, ranges
/// that only touch do not overlap.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub(super) enum EndpointKind {
    ReadEnd,
    WriteEnd,
    WriteBegin,
    ReadBegin,
}

/// How many kinds there are: the symbols below those of the 256 bytes.
const KINDS: usize = 4;
const SYMBOLS: usize = KINDS + 256;

impl EndpointKind {
    /// Whether it belongs to a write range.
    pub(super) fn is_write(self) -> bool {
        matches!(self, EndpointKind::WriteEnd | EndpointKind::WriteBegin)
    }
}

/// One end of one range of the batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Endpoint<'a> {
    pub(super) key: &'a [u8],
    /// The transaction, by index in the batch.
    pub(super) transaction: u32,
    /// Twice the range's index in the batch; one more at its end.
    pub(super) id: u32,
    pub(super) kind: EndpointKind,
}

/// What stands in a place before its endpoint is known.
const UNPLACED: Endpoint<'static> = Endpoint { key: &[], transaction: 0, id: 0, kind: EndpointKind::ReadEnd };

/// The order of the sort: by key, a proper prefix first, then by kind.
fn compare(left: &Endpoint<'_>, right: &Endpoint<'_>) -> Ordering {
    left.key.cmp(right.key).then(left.kind.cmp(&right.kind))
}

/// Endpoints `first..first + count` share their keys' first `depth` bytes and are to be sorted by the rest.
#[derive(Clone, Copy, Debug)]
pub(super) struct Group {
    first: usize,
    count: usize,
    depth: usize,
}

/// The symbol that decides at `depth`: a byte of the key, or, where the key has ended, the kind, which is below all.
#[inline(always)]
fn symbol(endpoint: &Endpoint<'_>, depth: usize) -> usize {
    match endpoint.key.get(depth) {
        Some(&byte) => KINDS + usize::from(byte),
        None => endpoint.kind as usize,
    }
}

/// Sorts endpoints by key, then kind. `scratch` and `groups` are working memory; their content is ignored.
pub(super) fn sort_endpoints<'a>(
    endpoints: &mut [Endpoint<'a>],
    scratch: &mut Vec<Endpoint<'a>>,
    groups: &mut Vec<Group>,
) {
    groups.clear();
    groups.push(Group { first: 0, count: endpoints.len(), depth: 0 });
    let mut places = [0u32; SYMBOLS];
    while let Some(Group { first, count, depth }) = groups.pop() {
        let group = &mut endpoints[first..first + count];
        if count < COMPARE_BELOW {
            group.sort_unstable_by(compare);
            continue;
        }
        places.fill(0);
        for endpoint in group.iter() {
            places[symbol(endpoint, depth)] += 1;
        }
        let mut place = 0;
        for (symbol, entry) in places.iter_mut().enumerate() {
            let count = *entry;
            // Endpoints whose keys end here are of one kind, too: equal.
            if count > 1 && symbol >= KINDS {
                groups.push(Group { first: first + place as usize, count: count as usize, depth: depth + 1 });
            }
            *entry = place;
            place += count;
        }
        // Filled anew for every group: that makes a pass cost what one costs in FoundationDB's code.
        scratch.clear();
        scratch.resize(count, UNPLACED);
        for endpoint in group.iter() {
            let place = &mut places[symbol(endpoint, depth)];
            scratch[*place as usize] = *endpoint;
            *place += 1;
        }
        group.copy_from_slice(scratch);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use EndpointKind::{ReadBegin, ReadEnd, WriteBegin, WriteEnd};

    fn sorted(mut endpoints: Vec<Endpoint<'_>>) -> Vec<Endpoint<'_>> {
        sort_endpoints(&mut endpoints, &mut Vec::new(), &mut Vec::new());
        endpoints
    }

    #[test]
    fn the_declared_order_of_kinds_breaks_ties() {
        for repeat in [1, 5] {
            let kinds = [ReadBegin, WriteBegin, WriteEnd, ReadEnd];
            let endpoint = |kind| Endpoint { key: b"same", transaction: 0, id: 0, kind };
            let endpoints = (0..repeat).flat_map(|_| kinds.map(endpoint)).collect();
            let kinds: Vec<_> = sorted(endpoints).iter().map(|endpoint| endpoint.kind).collect();
            let expected: Vec<_> = [ReadEnd, WriteEnd, WriteBegin, ReadBegin]
                .into_iter()
                .flat_map(|k| vec![k; repeat])
                .collect();
            assert_eq!(kinds, expected);
        }
    }

    #[test]
    fn the_radix_sort_orders_as_comparison_does() {
        // Every key of up to 4 bytes over {00, 01, ff}, each in every kind, shuffled by a fixed stride.
        let mut keys: Vec<Vec<u8>> = vec![Vec::new()];
        let mut first = 0;
        for _ in 0..4 {
            let last = keys.len();
            for prefix in first..last {
                for byte in [0x00, 0x01, 0xff] {
                    let mut key = keys[prefix].clone();
                    key.push(byte);
                    keys.push(key);
                }
            }
            first = last;
        }
        let kinds = [ReadEnd, WriteEnd, WriteBegin, ReadBegin];
        let count = keys.len() * kinds.len();
        let endpoints: Vec<_> = (0..count)
            .map(|index| index * 101 % count)
            .map(|index| Endpoint {
                key: &keys[index / kinds.len()],
                transaction: 0,
                id: index as u32,
                kind: kinds[index % kinds.len()],
            })
            .collect();
        let mut expected: Vec<_> = endpoints.clone();
        expected.sort_by(compare);
        assert_eq!(count, 121 * 4);
        let ids = |endpoints: &[Endpoint<'_>]| endpoints.iter().map(|e| e.id).collect::<Vec<_>>();
        assert_eq!(ids(&sorted(endpoints)), ids(&expected));
    }
}
