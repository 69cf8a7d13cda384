//! Inner nodes: slots, separators and the way down.
//!
//! # Strategy
//! Separators of many lengths, alike in their heads more often than not, are put in order and written into as
//! many nodes as they take, each with the prefix that its own separators share taken off; every node is read
//! back and asked for the slot of every query.
//!
//! # Invariants
//! - A node holds the separators and children that were written, whether in its heap or in chains.
//! - A query falls in the last slot whose separator is at or below it (or below it), with either search.
//! - A node's summary is the greatest and the least of its slots'.
//! - Chains take the blocks that were said to be needed at most, and give all of them back.

use super::ShortKey;
use crate::keys;
use crate::layout::SLOTS;
use crate::node::inner::{self, Child, SURE_SLOTS, Slots};
use crate::pool::{Backing, BlockId, PAGE_BYTES, Pool};
use crate::search::Search;
use crate::stats::Stats;

/// One slot of an inner node.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "fuzzing", derive(arbitrary::Arbitrary))]
pub struct InnerSlot {
    /// What separates it from the one before.
    pub separator: ShortKey,
    /// The greatest stamp below.
    pub greatest: u8,
    /// The least of the greatest stamps of the leaves below.
    pub oldest: u8,
    /// Whether its child is a leaf.
    pub leaf: bool,
}

/// Writes and reads nodes; how many times something was compared with the model.
pub fn inner(slots: &[InnerSlot], queries: &[ShortKey]) -> usize {
    let mut rows: Vec<(Vec<u8>, Child)> = slots
        .iter()
        .enumerate()
        .map(|(block, slot)| {
            let child = Child {
                block: BlockId(block as u32),
                leaf: slot.leaf,
                greatest: u32::from(slot.greatest),
                oldest: u32::from(slot.oldest),
            };
            (slot.separator.bytes(), child)
        })
        .collect();
    rows.sort_by(|left, right| left.0.cmp(&right.0));
    rows.dedup_by(|left, right| left.0 == right.0);
    let mut list = Slots::default();
    rows.iter().for_each(|(separator, child)| list.push(*child, |to| to.extend_from_slice(separator)));
    let mut pool = Pool::new(Backing::Heap, 128 * PAGE_BYTES as u64).expect("pages of heap");
    let queries: Vec<Vec<u8>> = queries.iter().map(|query| query.bytes()).collect();
    let (mut from, mut checks) = (0, 0);
    while from < rows.len() {
        // What all separators of the part share, its first slot's apart, becomes the node's prefix.
        let sure = SURE_SLOTS.min(rows.len() - from);
        let fits = |fit: usize| assert!((sure..=SLOTS).contains(&fit), "{fit} slots fit");
        fits(list.fit(from, rows.len(), 0));
        let (to, shift) = list.part(from, rows.len(), |to| match &rows[from..to] {
            [_, first, .., last] => keys::common_prefix(&first.0, &last.0),
            [_, only] => only.0.len() / 2,
            _ => 0,
        });
        fits(to - from);
        let part = &rows[from..to];
        let id = pool.allocate().expect("a block for the node");
        let chains: u64 =
            part[1..].iter().map(|(key, _)| inner::chain_blocks_at_most(key.len() - shift)).sum();
        if pool.available() < chains {
            break;
        }
        let before = pool.used_blocks();
        inner::write(&mut pool, id, &list, (from, to), 0, shift);
        assert_eq!(pool.used_blocks() - before, chains, "the blocks of chains");
        checks += check(&pool, id, part, shift, &queries);
        assert_eq!(inner::release_chains(&mut pool, id), chains);
        pool.release(id);
        from = to;
    }
    assert_eq!(pool.used_blocks(), 0);
    checks
}

/// Compares a node with the slots that it was made of.
fn check(pool: &Pool, id: BlockId, part: &[(Vec<u8>, Child)], shift: usize, queries: &[Vec<u8>]) -> usize {
    let node = inner::node(pool, id);
    assert_eq!(node.len(), part.len());
    let mut copy = Vec::new();
    for (slot, (separator, child)) in part.iter().enumerate() {
        assert_eq!(node.child(slot), *child);
        if slot > 0 {
            copy.clear();
            node.copy_separator(pool, slot, &mut copy);
            assert_eq!(copy, separator[shift..]);
            assert!(node.longest_separator() >= separator.len() - shift);
        }
    }
    let mut stats = Stats::default();
    for search in [Search::scalar(), Search::detect()] {
        let summary = node.summary(search, id);
        assert_eq!(Some(summary.greatest), part.iter().map(|(_, child)| child.greatest).max());
        assert_eq!(Some(summary.oldest), part.iter().map(|(_, child)| child.oldest).min());
        let own = part[1..].iter().map(|(separator, _)| separator[shift..].to_vec());
        for query in queries.iter().cloned().chain(own) {
            for inclusive in [false, true] {
                let below = |separator: &[u8]| separator < &query[..] || inclusive && separator == query;
                let expected = part[1..].iter().filter(|(separator, _)| below(&separator[shift..])).count();
                let found =
                    super::asked(&query, |asked| node.slot_of(pool, search, asked, inclusive, &mut stats));
                assert_eq!(found, expected, "the slot of {query:?} ({inclusive})");
            }
        }
    }
    part.len()
}
