//! Histories made by hand, to meet what random ones rarely do. Each panics where the tree is wrong; a planted
//! bug may be what it looks for.

use crate::kit::{Range, point, range, read, step, writes};
use resolver_index::{Backing, Config, Planted};
use resolver_resolve::{TreeConfig, TreeSet};
use resolver_types::{Retention, Verdict};

fn tree(stamp_limit: u32, planted: Planted) -> TreeSet {
    let index =
        Config { budget_bytes: 64 << 20, backing: Backing::Heap, stamp_limit, planted, ..Config::default() };
    TreeSet::new(TreeConfig { retention: Retention::Window, index }).expect("the tree can be made")
}

/// Point ranges `k00000` and on: some leaves.
pub(crate) fn numbered(count: u32) -> impl Iterator<Item = Range> {
    (0..count).map(|number| point(format!("k{number:05}")))
}

/// Reads and writes that begin or end exactly where leaves meet.
pub(crate) fn at_separators(planted: Planted) {
    let mut set = tree(u32::MAX - 1, planted);
    step(&mut set, &writes(1, -1, numbered(3_000)));
    let leaves = set.tree().layout().len();
    assert!(leaves > 20, "{leaves} leaves");
    let mut version = 2;
    for at in (2..leaves - 4).step_by(4) {
        let layout = set.tree().layout();
        let bound = |at: usize| layout[at].lower.clone().expect("only the first leaf has no lower bound");
        // From one separator on, into the leaf: its carry.
        let inside = layout[at].entries[1].key.clone();
        step(&mut set, &writes(version, -1, [range(bound(at), inside.clone())]));
        assert_eq!(set.tree().layout()[at].carry.map(|carry| carry.0), Some(version));
        // A read up to there has nothing to do with it, one from there on has.
        let before = read(version + 1, -1, version - 1, range(bound(at - 1), bound(at)));
        assert_eq!(step(&mut set, &before), [Verdict::Committed]);
        let behind = read(version + 2, -1, version - 1, range(bound(at), bound(at + 1)));
        assert_eq!(step(&mut set, &behind), [Verdict::Conflict]);
        // A write up to a separator leaves what is behind it alone.
        step(&mut set, &writes(version + 3, -1, [range(inside, bound(at + 1))]));
        let behind = read(version + 4, -1, version + 2, range(bound(at + 1), bound(at + 2)));
        assert_eq!(step(&mut set, &behind), [Verdict::Committed]);
        // From separator to separator, and a little further: the leaf has lost its entries.
        let further = layout[at + 1].entries[0].key.clone();
        step(&mut set, &writes(version + 5, -1, [range(bound(at), [&further[..], &[0]].concat())]));
        let slot = &set.tree().layout()[at];
        assert!(slot.prefix.is_none() && slot.carry.map(|carry| carry.0) == Some(version + 5), "{slot:?}");
        version += 6;
    }
}

/// Stamps are renumbered in the batch that writes into a vacant slot.
pub(crate) fn renumbered_vacancy(planted: Planted) {
    let mut set = tree(300, planted);
    step(&mut set, &writes(1, -1, numbered(1_000)));
    for version in 2..300 {
        let range = if version == 250 { range("k00100", "k00900") } else { point("z") };
        step(&mut set, &writes(version, version - 100, [range]));
    }
    step(&mut set, &writes(300, 200, [point("k00500")]));
    assert_eq!(set.tree().stats().renumberings, 1);
    let untouched = read(301, 200, 250, range("k00500\0", "k00502"));
    assert_eq!(step(&mut set, &untouched), [Verdict::Committed]);
}

/// Stamps are renumbered while a large subtree waits to be given back.
pub(crate) fn renumbered_condemned(planted: Planted) {
    let mut set = tree(300, planted);
    step(&mut set, &writes(1, -1, [point("z")]));
    for version in 2..298 {
        step(&mut set, &writes(version, version - 100, [point("z")]));
    }
    step(&mut set, &writes(298, 198, numbered(60_000)));
    step(&mut set, &writes(299, 199, [range("k00100", "k59000")]));
    let waiting = set.tree().blocks().used;
    step(&mut set, &writes(300, 200, [point("z")]));
    assert_eq!(set.tree().stats().renumberings, 1);
    for version in 301..320 {
        step(&mut set, &writes(version, 200, [point("z")]));
    }
    let left = set.tree().blocks().used;
    assert!(left < waiting / 4, "{left} of {waiting} blocks are left");
}

/// Neighbouring slots turn vacant at different versions, and stay two.
pub(crate) fn vacant_neighbours(planted: Planted) {
    let mut set = tree(u32::MAX - 1, planted);
    step(&mut set, &writes(1, -1, numbered(3_000)));
    let layout = set.tree().layout();
    let bound = |at: usize| layout[at].lower.clone().expect("only the first leaf has no lower bound");
    step(&mut set, &writes(2, -1, [range(bound(4), bound(7))]));
    step(&mut set, &writes(3, -1, [range(bound(7), bound(10))]));
    // Something that has the node put together anew.
    step(&mut set, &writes(4, -1, [range(bound(12), bound(14))]));
    let vacant: Vec<Option<i64>> = set
        .tree()
        .layout()
        .iter()
        .filter(|leaf| leaf.prefix.is_none())
        .map(|leaf| leaf.carry.map(|carry| carry.0))
        .collect();
    assert_eq!(vacant, [Some(2), Some(3), Some(4)]);
    assert_eq!(step(&mut set, &read(5, -1, 2, range(bound(4), bound(7)))), [Verdict::Committed]);
    assert_eq!(step(&mut set, &read(6, -1, 2, range(bound(7), bound(8)))), [Verdict::Conflict]);
}

/// The slow hand joins leaves, the first of which ends with a segment that the second does not go on with.
pub(crate) fn joined_segments(planted: Planted) {
    let mut set = tree(u32::MAX - 1, planted);
    step(&mut set, &writes(1, -1, numbered(3_000)));
    let layout = set.tree().layout();
    let bounds: Vec<(Vec<u8>, Vec<u8>, Vec<u8>)> = (2..layout.len() - 4)
        .step_by(2)
        .map(|at| {
            let bound = |at: usize| layout[at].lower.clone().expect("only the first leaf has no lower bound");
            let middle = layout[at].entries[layout[at].entries.len() / 2].key.clone();
            (middle, bound(at + 1), bound(at + 2))
        })
        .collect();
    step(&mut set, &writes(2, -1, bounds.iter().map(|(middle, end, _)| range(middle.clone(), end.clone()))));
    let leaves = set.tree().layout().len();
    // The points expire; writes far away keep the hand going.
    for version in 3..400 {
        let elsewhere = (0..200).map(|number| point(format!("z{:05}", (number * 7_919 + version) % 20_000)));
        step(&mut set, &writes(version, 1, elsewhere));
    }
    let joined = set.tree().layout().iter().filter(|leaf| leaf.lower.as_deref() < Some(b"z")).count();
    assert!(joined < leaves / 3, "{joined} of {leaves} leaves are left");
    for (version, (middle, end, next)) in (400..).step_by(2).zip(bounds) {
        assert_eq!(step(&mut set, &read(version, 1, 1, range(middle, end.clone()))), [Verdict::Conflict]);
        assert_eq!(step(&mut set, &read(version + 1, 1, 1, range(end, next))), [Verdict::Committed]);
    }
}
