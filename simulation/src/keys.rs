//! Keys, ranges of them, and what transactions write.

use resolver_types::{KeyRange, MAX_KEY_LENGTH};
use std::sync::Arc;

/// A key; cheap to hand on, since long ones occur.
pub type Key = Arc<[u8]>;

/// A value; every write of a simulated history writes another one.
pub type Value = Arc<str>;

/// Where the system key space begins; it goes to all resolvers.
pub(crate) const SYSTEM: &[u8] = b"\xff";

/// The half-open range of keys `[begin, end)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Range {
    /// The first key covered.
    pub begin: Key,
    /// The first key after it that is not covered.
    pub end: Key,
}

impl Range {
    /// The range that holds exactly one key.
    pub fn point(key: &Key) -> Range {
        let end: Vec<u8> = key.iter().copied().chain([0]).collect();
        Range { begin: key.clone(), end: end.into() }
    }

    /// The one key of a point range.
    pub fn as_point(&self) -> Option<&Key> {
        KeyRange { begin: &self.begin, end: &self.end }.is_point().then_some(&self.begin)
    }

    pub(crate) fn is_system(&self) -> bool {
        &*self.end > SYSTEM
    }
}

/// One change that a transaction makes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Mutation {
    /// Gives a key a value.
    Set(Key, Value),
    /// Removes all keys of a range.
    Clear(Range),
}

impl Mutation {
    /// The write range that stands for it in conflict detection.
    pub fn range(&self) -> Range {
        match self {
            Mutation::Set(key, _) => Range::point(key),
            Mutation::Clear(range) => range.clone(),
        }
    }
}

/// The keys that a simulation works on, in order.
#[derive(Clone, Debug)]
pub(crate) struct KeySpace {
    keys: Vec<Key>,
    huge: Vec<Key>,
    system: Vec<Key>,
}

/// How many keys of nearly the longest legal length there are.
const HUGE_KEYS: usize = 6;

impl KeySpace {
    /// `count` keys with `padding` bytes before or behind what tells them apart.
    pub(crate) fn new(count: usize, padding: usize, shared_prefix: bool) -> KeySpace {
        let pad = "p".repeat(padding);
        let key = |number: usize| -> Key {
            let text = if shared_prefix { format!("{pad}{number:05}") } else { format!("{number:05}{pad}") };
            text.into_bytes().into()
        };
        let huge = |number: usize| -> Key {
            let mut bytes = format!("~{number}").into_bytes();
            bytes.resize(MAX_KEY_LENGTH - number % 2, b'h');
            bytes.into()
        };
        let system =
            |number: usize| -> Key { [SYSTEM, format!("/conf/{number}").as_bytes()].concat().into() };
        KeySpace {
            keys: (0..count).map(key).collect(),
            huge: (0..HUGE_KEYS).map(huge).collect(),
            system: (0..4).map(system).collect(),
        }
    }

    /// The ordinary keys, ascending.
    pub(crate) fn keys(&self) -> &[Key] {
        &self.keys
    }

    /// Keys of nearly the longest legal length, ascending, behind all ordinary ones.
    pub(crate) fn huge(&self) -> &[Key] {
        &self.huge
    }

    /// Keys of the system key space, ascending.
    pub(crate) fn system(&self) -> &[Key] {
        &self.system
    }

    /// From one ordinary key to another, or to the end of them.
    pub(crate) fn range(&self, first: usize, count: usize) -> Range {
        let stop = first + count;
        let end = self.keys.get(stop).cloned().unwrap_or_else(|| Key::from(&b"}"[..]));
        Range { begin: self.keys[first].clone(), end }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_ascend_and_ranges_tell_points_apart() {
        for shared in [false, true] {
            let space = KeySpace::new(40, 7, shared);
            let all: Vec<&Key> = [space.keys(), space.huge(), space.system()].into_iter().flatten().collect();
            assert!(all.is_sorted_by(|left, right| left < right));
            assert!(space.range(39, 5).end < space.huge()[0]);
            assert_eq!(space.range(3, 4).end, space.keys()[7]);
        }
        let key: Key = b"a".as_slice().into();
        assert_eq!(Range::point(&key).as_point(), Some(&key));
        assert_eq!(KeySpace::new(9, 0, false).range(0, 2).as_point(), None);
    }
}
