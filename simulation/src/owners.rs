//! Which resolver owns which keys, and who owned them before, as a proxy remembers it.

use crate::keys::{Key, Range, SYSTEM};
use resolver_types::Version;
use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included, Unbounded};

/// A part of the key space that changes its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Move {
    pub(crate) range: Range,
    pub(crate) to: usize,
}

/// Since when a resolver owns a part: writes of batches at or above this version go to it.
type Owner = (Version, usize);

/// The owners of all keys, past ones included, as far back as a read version can need them.
#[derive(Clone, Debug)]
pub(crate) struct Owners {
    resolvers: usize,
    /// Boundary to the owners of the part that starts there, in the order in which they owned it.
    parts: BTreeMap<Key, Vec<Owner>>,
}

impl Owners {
    /// The first resolver owns everything.
    pub(crate) fn new(resolvers: usize) -> Owners {
        let parts = BTreeMap::from([(Key::from(&b""[..]), vec![(Version::ZERO, 0)])]);
        Owners { resolvers, parts }
    }

    /// Notes a new owner, from a version on.
    pub(crate) fn assign(&mut self, change: &Move, since: Version) {
        self.cut(&change.range.begin);
        self.cut(&change.range.end);
        let inside = (Included(&*change.range.begin), Excluded(&*change.range.end));
        for (_, owners) in self.parts.range_mut::<[u8], _>(inside) {
            owners.push((since, change.to));
        }
    }

    fn cut(&mut self, at: &Key) {
        let (boundary, owners) = self.part_of(at);
        if boundary != at {
            let owners = owners.clone();
            self.parts.insert(at.clone(), owners);
        }
    }

    fn part_of(&self, key: &[u8]) -> (&Key, &Vec<Owner>) {
        let below = self.parts.range::<[u8], _>((Unbounded, Included(key)));
        below.last().expect("the empty key is a boundary")
    }

    /// The owners of every part that the range touches.
    fn touched<'a>(&'a self, range: &'a Range) -> impl Iterator<Item = &'a Vec<Owner>> {
        let rest = (Excluded(&*range.begin), Excluded(&*range.end));
        let (_, first) = self.part_of(&range.begin);
        std::iter::once(first).chain(self.parts.range::<[u8], _>(rest).map(|(_, owners)| owners))
    }

    /// Who has to judge a read: the owners of its keys since the read version.
    pub(crate) fn of_read(&self, range: &Range, read_version: Version) -> Routes {
        let mut routes = Routes::new(self.resolvers);
        if range.is_system() {
            return routes.all();
        }
        for owners in self.touched(range) {
            let newest_first = owners.iter().rev();
            for (age, &(since, resolver)) in newest_first.enumerate() {
                routes.add(resolver, age > 0);
                if since < read_version {
                    break;
                }
            }
        }
        routes
    }

    /// Who has to know of a write: the present owners of its keys.
    pub(crate) fn of_write(&self, range: &Range) -> Routes {
        let mut routes = Routes::new(self.resolvers);
        if range.is_system() {
            return routes.all();
        }
        for owners in self.touched(range) {
            let &(_, resolver) = owners.last().expect("every part has an owner");
            routes.add(resolver, false);
        }
        routes
    }

    /// Forgets owners that only a read version below `oldest` could need; says how many.
    pub(crate) fn forget(&mut self, oldest: Version) -> usize {
        let mut forgotten = 0;
        for owners in self.parts.values_mut() {
            let needless = owners.iter().skip(1).take_while(|(since, _)| *since < oldest).count();
            owners.drain(..needless);
            forgotten += needless;
        }
        let mut before: Option<Vec<Owner>> = None;
        self.parts.retain(|_, owners| {
            let differs = before.as_ref() != Some(owners);
            before = Some(owners.clone());
            differs
        });
        forgotten
    }
}

/// A set of resolvers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Routes {
    chosen: Vec<bool>,
    /// Whether some of them are asked as earlier owners only.
    pub(crate) earlier: bool,
}

impl Routes {
    fn new(resolvers: usize) -> Routes {
        Routes { chosen: vec![false; resolvers], earlier: false }
    }

    fn add(&mut self, resolver: usize, earlier: bool) {
        self.earlier |= earlier && !self.chosen[resolver];
        self.chosen[resolver] = true;
    }

    fn all(mut self) -> Routes {
        self.chosen.fill(true);
        self
    }

    /// The resolvers, ascending.
    pub(crate) fn iter(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.chosen.len()).filter(|&resolver| self.chosen[resolver])
    }
}

/// Everything below the system key space can move.
pub(crate) fn movable(range: &Range) -> bool {
    range.begin < range.end && &*range.end <= SYSTEM
}

#[cfg(test)]
mod tests {
    use super::*;

    fn range(begin: &str, end: &str) -> Range {
        Range { begin: begin.as_bytes().into(), end: end.as_bytes().into() }
    }

    fn moved(owners: &mut Owners, begin: &str, end: &str, to: usize, since: i64) {
        owners.assign(&Move { range: range(begin, end), to }, Version(since));
    }

    fn readers(owners: &Owners, begin: &str, end: &str, read_version: i64) -> Vec<usize> {
        owners.of_read(&range(begin, end), Version(read_version)).iter().collect()
    }

    fn writers(owners: &Owners, begin: &str, end: &str) -> Vec<usize> {
        owners.of_write(&range(begin, end)).iter().collect()
    }

    #[test]
    fn writes_go_to_present_owners_and_reads_to_those_since_their_version() {
        let mut owners = Owners::new(3);
        moved(&mut owners, "g", "p", 1, 100);
        moved(&mut owners, "m", "t", 2, 200);
        assert_eq!(writers(&owners, "a", "b"), [0]);
        assert_eq!(writers(&owners, "h", "i"), [1]);
        assert_eq!(writers(&owners, "a", "z"), [0, 1, 2]);
        assert_eq!(writers(&owners, "m", "m\0"), [2]);
        assert_eq!(readers(&owners, "n", "o", 50), [0, 1, 2]);
        assert_eq!(readers(&owners, "n", "o", 150), [1, 2]);
        // At the version of the change itself the earlier owner is still asked.
        assert_eq!(readers(&owners, "n", "o", 200), [1, 2]);
        assert_eq!(readers(&owners, "n", "o", 201), [2]);
        assert!(owners.of_read(&range("n", "o"), Version(150)).earlier);
        assert!(!owners.of_read(&range("n", "o"), Version(201)).earlier);
        assert_eq!(readers(&owners, "\u{7f}", "\u{80}", 999), [0]);
        let system = Range { begin: b"\xff/a"[..].into(), end: b"\xff/b"[..].into() };
        assert_eq!(owners.of_write(&system).iter().count(), 3);
    }

    #[test]
    fn what_is_forgotten_no_read_version_in_the_window_needs() {
        let mut owners = Owners::new(3);
        moved(&mut owners, "g", "p", 1, 100);
        moved(&mut owners, "g", "p", 2, 200);
        let whole = owners.clone();
        assert_eq!(owners.forget(Version(150)), 1);
        for read_version in [150, 199, 200, 201] {
            assert_eq!(readers(&owners, "h", "i", read_version), readers(&whole, "h", "i", read_version));
        }
        assert_eq!(readers(&owners, "h", "i", 50), [1, 2]);
        // An owner since exactly the oldest version keeps the one before it.
        assert_eq!(owners.forget(Version(200)), 0);
        assert_eq!(owners.forget(Version(201)), 1);
        assert_eq!(owners.parts.len(), 3);
        moved(&mut owners, "a", "z", 2, 300);
        owners.forget(Version(999));
        assert_eq!(writers(&owners, "", "y"), [0, 2]);
    }
}
