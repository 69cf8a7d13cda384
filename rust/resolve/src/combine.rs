//! The union of the accepted writes, in one pass over the sorted endpoints.

use resolver_index::{Endpoint, EndpointKind, Write};

/// Unites the write ranges that `accepted` says count. Overlapping ones merge; ranges that only touch stay
/// apart. The result is disjoint and in key order. `accepted_at` is room to work in.
pub(crate) fn combine(
    endpoints: &[Endpoint],
    ranks: &[(u32, u32)],
    accepted: impl Fn(u32) -> bool,
    accepted_at: &mut Vec<u32>,
    writes: &mut Vec<Write>,
) {
    writes.clear();
    // Whose turn it is cannot be foretold: every position is noted, and stays if it counts.
    accepted_at.resize(endpoints.len(), 0);
    let mut count = 0;
    for (position, endpoint) in (0..).zip(endpoints) {
        accepted_at[count] = position;
        count += usize::from(endpoint.is_write() & accepted(endpoint.range()));
    }
    let mut open = 0u32;
    let mut begin = 0;
    let mut last_point = u32::MAX;
    for &position in &accepted_at[..count] {
        let endpoint = endpoints[position as usize];
        if endpoint.kind() == EndpointKind::WriteEnd {
            open -= 1;
            if open == 0 {
                writes.push(Write { begin, end: position });
            }
        } else if endpoint.is_point() {
            // A point inside an open range, or the same as the last one, adds nothing.
            let rank = ranks[endpoint.range() as usize].0;
            if open == 0 && rank != last_point {
                writes.push(Write { begin: position, end: Write::POINT });
                last_point = rank;
            }
        } else {
            if open == 0 {
                begin = position;
            }
            open += 1;
        }
    }
    debug_assert_eq!(open, 0, "every range that begins ends");
}

#[cfg(test)]
mod tests {
    use super::*;
    use EndpointKind::{WriteBegin, WriteEnd};

    /// A range by its keys; without an end, a point.
    type Keys<K> = (K, Option<K>);

    /// Combines ranges, each with whether it is accepted.
    fn combined(ranges: &[(Keys<&[u8]>, bool)]) -> Vec<Keys<Vec<u8>>> {
        let mut row: Vec<(Vec<u8>, Endpoint)> = Vec::new();
        for (index, &((begin, end), _)) in ranges.iter().enumerate() {
            let endpoint = Endpoint::new(begin, 0, WriteBegin, index as u32);
            row.push((begin.to_vec(), if end.is_none() { endpoint.into_point() } else { endpoint }));
            if let Some(end) = end {
                row.push((end.to_vec(), Endpoint::new(end, 0, WriteEnd, index as u32)));
            }
        }
        row.sort_by_key(|&(_, endpoint)| endpoint);
        let keys: Vec<Vec<u8>> = row.iter().map(|(key, _)| key.clone()).collect();
        let mut distinct = keys.clone();
        distinct.dedup();
        let rank = |key: &[u8]| distinct.iter().position(|other| other == key).unwrap() as u32;
        let ranks: Vec<(u32, u32)> =
            ranges.iter().map(|((begin, end), _)| (rank(begin), end.map_or(rank(begin) + 1, rank))).collect();
        let endpoints: Vec<Endpoint> = row.iter().map(|&(_, endpoint)| endpoint).collect();
        let mut writes = Vec::new();
        combine(&endpoints, &ranks, |range| ranges[range as usize].1, &mut Vec::new(), &mut writes);
        let key = |position: u32| keys[position as usize].clone();
        writes.iter().map(|w| (key(w.begin), (w.end != Write::POINT).then(|| key(w.end)))).collect()
    }

    #[test]
    fn overlapping_writes_merge_touching_ones_do_not_and_losers_leave_no_trace() {
        assert_eq!(
            combined(&[
                ((b"a", Some(b"c")), true),
                ((b"b", Some(b"e")), true),
                ((b"e", Some(b"f")), true),
                ((b"d", Some(b"z")), false)
            ]),
            [(b"a".to_vec(), Some(b"e".to_vec())), (b"e".to_vec(), Some(b"f".to_vec()))]
        );
    }

    #[test]
    fn points_count_once_and_not_inside_ranges() {
        assert_eq!(
            combined(&[
                ((b"k", None), true),
                ((b"k", None), true),
                ((b"m", Some(b"p")), true),
                ((b"m", None), true),
                ((b"n", None), true),
                ((b"p", None), true),
                ((b"q", None), false)
            ]),
            [(b"k".to_vec(), None), (b"m".to_vec(), Some(b"p".to_vec())), (b"p".to_vec(), None)]
        );
    }
}
