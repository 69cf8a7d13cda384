//! The log, which makes batches durable in the order of versions, and the versions of all values, as storage servers keep
//! them: one role here, since nothing between the two decides anything.

use crate::fault::Effect;
use crate::history::{Position, Read};
use crate::keys::{Key, Mutation, Range, Value};
use crate::message::{AttemptId, Generation, Logged, Push, RoleMessage};
use crate::network::Network;
use crate::planted::PlantedBug;
use resolver_types::Version;
use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included};
use std::rc::Rc;

/// The log and what storage servers make of it.
#[derive(Debug)]
pub(crate) struct Log {
    generation: Generation,
    locked: bool,
    /// Everything at or below this version is durable.
    durable: Version,
    /// Pushes that wait for the one before them, by its version.
    early: BTreeMap<Version, Rc<Push>>,
    /// Where each transaction took effect.
    positions: BTreeMap<AttemptId, Position>,
    /// By key: its values, from each version on.
    values: BTreeMap<Key, Vec<(Version, Option<Value>)>>,
}

impl Log {
    /// An empty log that ends at a version.
    pub(crate) fn new(durable: Version) -> Log {
        Log {
            generation: 0,
            locked: false,
            durable,
            early: BTreeMap::new(),
            positions: BTreeMap::new(),
            values: BTreeMap::new(),
        }
    }

    /// No push of the present generation is taken any more.
    pub(crate) fn lock(&mut self) {
        self.locked = true;
        self.early.clear();
    }

    /// Where the log ends.
    pub(crate) fn durable(&self) -> Version {
        self.durable
    }

    /// A new generation goes on behind the end.
    pub(crate) fn unlock(&mut self, generation: Generation) {
        self.generation = generation;
        self.locked = false;
    }

    /// Where a transaction took effect, if it did.
    pub(crate) fn position(&self, attempt: AttemptId) -> Option<Position> {
        self.positions.get(&attempt).copied()
    }

    /// Takes a push: durable at once if the one before it is; acknowledged again if it comes again.
    pub(crate) fn push(&mut self, push: &Rc<Push>, network: &mut Network) {
        if self.locked {
            network.faults.counters.note(Effect::LockedOut);
            if network.planted.is(PlantedBug::AcknowledgedAfterLock) {
                self.acknowledge(push, network);
            }
            return;
        }
        if push.version <= self.durable {
            if network.planted.is(PlantedBug::DuplicatePushApplied) {
                self.mutate_all(self.durable, &push.transactions);
            }
            self.acknowledge(push, network);
            return;
        }
        self.early.insert(push.previous, push.clone());
        while let Some(next) = self.early.remove(&self.durable) {
            self.durable = next.version;
            self.apply(next.version, &next.transactions);
            self.acknowledge(&next, network);
        }
    }

    fn acknowledge(&self, push: &Push, network: &mut Network) {
        network.send(self.generation, RoleMessage::Pushed(push.proxy, push.version));
    }

    fn apply(&mut self, version: Version, transactions: &[Logged]) {
        for transaction in transactions {
            let position = Position { version, index: transaction.index };
            self.positions.insert(transaction.request.attempt, position);
        }
        self.mutate_all(version, transactions);
    }

    fn mutate_all(&mut self, version: Version, transactions: &[Logged]) {
        let mutations = transactions.iter().flat_map(|transaction| &transaction.request.mutations);
        mutations.for_each(|mutation| self.mutate(version, mutation));
    }

    fn mutate(&mut self, version: Version, mutation: &Mutation) {
        match mutation {
            Mutation::Set(key, value) => {
                self.values.entry(key.clone()).or_default().push((version, Some(value.clone())));
            }
            Mutation::Clear(range) if range.begin < range.end => {
                let inside = (Included(&*range.begin), Excluded(&*range.end));
                for (_, versions) in self.values.range_mut::<[u8], _>(inside) {
                    versions.push((version, None));
                }
            }
            Mutation::Clear(_) => {}
        }
    }

    /// What a range held at a version.
    pub(crate) fn read(&self, range: &Range, version: Version) -> Read {
        let inside = (Included(&*range.begin), Excluded(&*range.end));
        let mut found = Vec::new();
        for (key, versions) in self.values.range::<[u8], _>(inside) {
            let older = versions.partition_point(|(since, _)| *since <= version);
            if let Some((_, Some(value))) = versions[..older].last() {
                found.push((key.clone(), value.clone()));
            }
        }
        Read { range: range.clone(), found }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::message::Event;
    use crate::plan::Plan;
    use crate::planted::Planted;

    fn push(previous: i64, version: i64) -> Rc<Push> {
        Rc::new(Push {
            proxy: 0,
            version: Version(version),
            previous: Version(previous),
            transactions: Vec::new(),
        })
    }

    /// The versions that are acknowledged from here on.
    fn acknowledged(network: &mut Network) -> Vec<i64> {
        let mut versions = Vec::new();
        while let Some(event) = network.next() {
            let Event::Role(_, RoleMessage::Pushed(_, version)) = event else { panic!("{event:?}") };
            versions.push(version.0);
        }
        versions.sort_unstable();
        versions
    }

    #[test]
    fn pushes_take_effect_in_order_and_are_acknowledged_whenever_they_come() {
        let mut network = Network::new(&Plan { faults: Vec::new(), ..Plan::new(1) }, Planted::default());
        let mut log = Log::new(Version(10));
        log.push(&push(20, 30), &mut network);
        assert_eq!((log.durable(), acknowledged(&mut network)), (Version(10), vec![]));
        log.push(&push(10, 20), &mut network);
        assert_eq!((log.durable(), acknowledged(&mut network)), (Version(30), vec![20, 30]));
        // Again: the last one, and one before it. Nothing is kept that waits for what will not come.
        for version in [30, 20] {
            log.push(&push(version - 10, version), &mut network);
            assert_eq!((log.durable(), acknowledged(&mut network)), (Version(30), vec![version]));
        }
        assert!(log.early.is_empty());
        log.lock();
        log.push(&push(30, 40), &mut network);
        assert_eq!((log.durable(), acknowledged(&mut network)), (Version(30), vec![]));
    }
}
