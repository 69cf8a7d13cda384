//! Where keys end up: prefixes, heads and tails, by name and with the layout that is expected.

use crate::config;
use crate::kit::{point, range, read, step, writes};
use crate::scenarios;
use resolver_index::Planted;
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
