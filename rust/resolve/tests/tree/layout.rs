//! Where keys end up: prefixes, heads and tails, by name and with the layout that is expected.

use crate::config;
use crate::kit::{point, range, read, step, writes};
use crate::scenarios;
use resolver_index::{LeafLayout, Planted};
use resolver_resolve::TreeSet;
use resolver_types::{Retention, Verdict};

fn tree() -> TreeSet {
    TreeSet::new(config(Retention::Window, 16 << 20)).expect("the tree can be made")
}

#[test]
fn reads_and_writes_meet_at_separators() {
    scenarios::at_separators(Planted::default());
}

#[test]
fn vacant_neighbours_of_different_versions_stay_apart() {
    scenarios::vacant_neighbours(Planted::default());
}

#[test]
fn leaves_that_are_joined_keep_their_segments() {
    scenarios::joined_segments(Planted::default());
}

#[test]
fn a_write_from_a_separator_on_does_not_keep_dead_entries_in_front_of_it() {
    let key = |number: u32| format!("AAAAAAAAAAAAAAAAAAAA{number:03}").into_bytes();
    for expired in 200..300 {
        let mut set = tree();
        step(&mut set, &writes(1, -1, [point(key(expired))]));
        step(
            &mut set,
            &writes(2, -1, (0..300).filter(|&number| number != expired).map(|number| point(key(number)))),
        );
        step(&mut set, &writes(3, 1, [point("Z")]));
        let leaves = set.tree().layout();
        let last = leaves.last().expect("there are leaves");
        if last.dead == 0 {
            continue;
        }
        assert!(last.long && last.prefix == Some(0), "{last:?}");
        let lower = last.lower.clone().expect("there are several leaves");
        step(&mut set, &writes(4, 1, [range(lower.clone(), key(expired + 1))]));
        assert_eq!(step(&mut set, &read(5, 1, 3, range(lower, "Z"))), [Verdict::Conflict], "{expired}");
        assert_eq!(
            step(&mut set, &read(6, 1, 3, range(key(expired + 1), "Z"))),
            [Verdict::Committed],
            "{expired}"
        );
    }
}

/// Separators whose tails have chains above a split, and fit the node below it, where the halves share more: then
/// they take more of it, not less.
#[test]
fn a_split_of_an_inner_node_counts_the_tails_that_its_halves_will_have() {
    let key =
        |group: u8, number: u16| [&[b'a'; 20][..], &[group], &[b'b'; 23], &number.to_be_bytes()].concat();
    for numbers in [400, 700, 1_000, 1_500] {
        let mut set = tree();
        let keys: Vec<_> = (0..20_000 / numbers)
            .flat_map(|group| (0..numbers).map(move |number| key(group as u8, number)))
            .collect();
        for (version, keys) in (1..).zip(keys.chunks(500)) {
            step(&mut set, &writes(version, -1, keys.iter().cloned().map(point)));
        }
    }
}

/// Writes the keys as points, a few at a time, in an order that is not theirs; checks the tree, and every key's
/// version by reads.
fn scattered(keys: &[Vec<u8>]) -> TreeSet {
    let mut set = tree();
    let mut version = 0;
    for part in 0..7 {
        version += 1;
        step(&mut set, &writes(version, -1, keys.iter().skip(part).step_by(7).cloned().map(point)));
    }
    for (at, key) in keys.iter().enumerate().step_by(17) {
        let written = at as i64 % 7 + 1;
        for (read_version, expected) in [(written - 1, Verdict::Conflict), (written, Verdict::Committed)] {
            version += 1;
            assert_eq!(
                step(&mut set, &read(version, -1, read_version, point(key.clone()))),
                [expected],
                "{at}"
            );
        }
    }
    set
}

/// What leaves hold, all together, in key order.
fn keys_in(leaves: &[LeafLayout]) -> Vec<&[u8]> {
    leaves.iter().flat_map(|leaf| leaf.entries.iter().map(|entry| &entry.key[..])).collect()
}

#[test]
fn keys_that_share_no_prefix_have_short_leaves_without_one() {
    // 250 first bytes, so that most leaves hold several of them; 8 bytes fit the head.
    let keys: Vec<Vec<u8>> = (0..1_000u32)
        .map(|number| [&[(number / 4) as u8][..], &number.to_be_bytes(), b"abc"].concat())
        .collect();
    let set = scattered(&keys);
    let leaves = set.tree().layout();
    assert_eq!(keys_in(&leaves), keys);
    assert!((8..20).contains(&leaves.len()), "{} leaves", leaves.len());
    for leaf in &leaves {
        assert_eq!((leaf.prefix, leaf.long, leaf.depth), (Some(0), false, 1), "{leaf:?}");
        // Separators are cut to what tells two keys apart: at most the byte after the four that count.
        assert!(leaf.lower.as_ref().is_none_or(|lower| lower.len() <= 5), "{leaf:?}");
    }
    assert_eq!(set.tree().blocks().keys, 0, "nothing has a tail");
}

#[test]
fn keys_that_share_200_bytes_store_them_once_a_separator() {
    let keys: Vec<Vec<u8>> =
        (0..1_000u32).map(|number| [&[b'p'; 200][..], format!("{number:04}").as_bytes()].concat()).collect();
    let set = scattered(&keys);
    let leaves = set.tree().layout();
    assert_eq!(keys_in(&leaves), keys);
    let (edges, inner): (Vec<_>, Vec<_>) =
        leaves.iter().partition(|leaf| leaf.lower.is_none() || leaf.upper.is_none());
    // Without a bound on one side nothing is known to be shared: the first and the last leaf hold whole keys.
    assert_eq!(edges.len(), 2);
    assert!(edges.iter().all(|leaf| leaf.prefix == Some(0) && leaf.long), "{edges:?}");
    assert!(inner.len() > 5, "{} leaves between", inner.len());
    for leaf in inner {
        assert!(leaf.prefix >= Some(200) && !leaf.long, "{leaf:?}");
    }
}

#[test]
fn keys_that_differ_only_after_byte_30_000_are_short_between_their_separators() {
    let keys: Vec<Vec<u8>> = (0..400u32)
        .map(|number| [&vec![b'd'; 30_000][..], format!("{number:03}").as_bytes()].concat())
        .collect();
    let mut set = TreeSet::new(config(Retention::Window, 64 << 20)).expect("the tree can be made");
    for part in 0..8 {
        let some = keys.iter().skip(part).step_by(8).cloned().map(point);
        step(&mut set, &writes(part as i64 + 1, -1, some));
    }
    let leaves = set.tree().layout();
    assert_eq!(keys_in(&leaves), keys);
    let between = leaves.iter().filter(|leaf| leaf.lower.is_some() && leaf.upper.is_some());
    let mut count = 0;
    for leaf in between {
        count += 1;
        assert!(leaf.prefix >= Some(30_000) && !leaf.long, "{:?} {}", leaf.prefix, leaf.long);
    }
    assert!(count >= 2, "{count} leaves between");
    for (at, key) in keys.iter().enumerate().step_by(40) {
        let written = at as i64 % 8 + 1;
        let version = 100 + 2 * at as i64;
        let before = read(version, -1, written - 1, point(key.clone()));
        assert_eq!(step(&mut set, &before), [Verdict::Conflict]);
        assert_eq!(step(&mut set, &read(version + 1, -1, written, point(key.clone()))), [Verdict::Committed]);
    }
}

#[test]
fn a_full_leaf_that_splits_takes_the_prefix_of_its_new_bounds() {
    let key = |number: u32| [&b"shared-by-all-of-them/"[..], format!("{number:06}").as_bytes()].concat();
    let mut set = tree();
    // Bounds around the leaf in the middle: keys before and behind that share nothing with it.
    step(&mut set, &writes(1, -1, (0..300).map(|number| point(format!("a{number:05}")))));
    step(&mut set, &writes(2, -1, (0..300).map(|number| point(format!("z{number:05}")))));
    let mut version = 3;
    let mut number = 0;
    let holder = |set: &TreeSet| {
        let leaves = set.tree().layout();
        leaves.into_iter().find(|leaf| leaf.entries.iter().any(|entry| entry.key == key(0)))
    };
    // One at a time, until the leaf that holds them all is full.
    let full = loop {
        step(&mut set, &writes(version, -1, [point(key(number))]));
        (version, number) = (version + 1, number + 1);
        let leaf = holder(&set).expect("the first key is somewhere");
        if !leaf.entries.iter().any(|entry| entry.key == key(number - 1)) {
            break leaf;
        }
        assert_eq!((leaf.prefix, leaf.long), (Some(0), true), "{number}");
    };
    // The split leaves the first part between a bound that shares nothing, and the last one likewise.
    assert_eq!(full.prefix, Some(0));
    for _ in 0..200 {
        step(&mut set, &writes(version, -1, [point(key(number))]));
        (version, number) = (version + 1, number + 1);
    }
    let leaves = set.tree().layout();
    let between: Vec<_> = leaves
        .iter()
        .filter(|leaf| leaf.lower.as_ref().is_some_and(|lower| lower.starts_with(b"shared")))
        .filter(|leaf| leaf.upper.as_ref().is_some_and(|upper| upper.starts_with(b"shared")))
        .collect();
    assert!(!between.is_empty());
    for leaf in between {
        // Their bounds share all but the number's last digits: a head is enough, and the tails are gone.
        assert!(leaf.prefix >= Some(22) && !leaf.long, "{leaf:?}");
    }
    assert!(set.tree().stats().prefix_changes > 0);
}
