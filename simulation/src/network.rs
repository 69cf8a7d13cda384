//! Simulated time and everything that is under way: events by the moment at which they happen.

use crate::fault::{Faults, Time};
use crate::message::{AttemptId, ClientMessage, Event, Generation, RoleMessage};
use crate::plan::{Plan, purpose, stream};
use crate::planted::{Planted, PlantedBug};
use resolver_workloads::Rng;
use std::collections::BTreeMap;

/// Ticks that an ordinary message takes at most.
const ORDINARY_TICKS: u64 = 6;

/// One message in so many takes up to [`SLOW_TICKS`].
const SLOW_ONE_IN: u64 = 20;
const SLOW_TICKS: u64 = 60;

/// Simulated time, the events to come, and the faults that strike them.
pub(crate) struct Network {
    now: Time,
    tick: Time,
    rng: Rng,
    /// By moment and order of sending: two events of one moment happen in the order in which they were sent.
    events: BTreeMap<(Time, u64), Event>,
    sent: u64,
    pub(crate) faults: Faults,
    pub(crate) planted: Planted,
}

impl Network {
    pub(crate) fn new(plan: &Plan, planted: Planted) -> Network {
        Network {
            now: 0,
            tick: plan.settings.tick,
            rng: stream(plan.seed, purpose::NETWORK),
            events: BTreeMap::new(),
            sent: 0,
            faults: Faults::new(&plan.faults),
            planted,
        }
    }

    /// The present moment.
    pub(crate) fn now(&self) -> Time {
        self.now
    }

    /// The next event; its moment becomes the present.
    pub(crate) fn next(&mut self) -> Option<Event> {
        let ((at, _), event) = self.events.pop_first()?;
        self.now = at;
        Some(event)
    }

    /// Lets an event happen after a time, exactly.
    pub(crate) fn after(&mut self, time: Time, event: Event) {
        self.sent += 1;
        self.events.insert((self.now + time, self.sent), event);
    }

    /// How long a message takes that nothing goes wrong with.
    fn ordinary_delay(&mut self) -> Time {
        let ticks = if self.rng.one_in(SLOW_ONE_IN) { SLOW_TICKS } else { ORDINARY_TICKS };
        let unseeded = if self.planted.is(PlantedBug::UnseededDelay) { unseeded() } else { 0 };
        1 + self.rng.below(ticks * self.tick) + unseeded
    }

    /// Sends to a role; faults may delay or repeat the message.
    pub(crate) fn send(&mut self, generation: Generation, message: RoleMessage) {
        let (delays, repeats) = message.faults();
        let late = delays.and_then(|kind| self.faults.strike(kind, self.now)).unwrap_or(0);
        let again = repeats.and_then(|kind| self.faults.strike(kind, self.now));
        let event = Event::Role(generation, message);
        if let Some(apart) = again {
            let delay = self.ordinary_delay() + apart;
            self.after(delay, event.clone());
        }
        let delay = self.ordinary_delay() + late;
        self.after(delay, event);
    }

    /// Sends to a client.
    pub(crate) fn tell(&mut self, attempt: AttemptId, message: ClientMessage) {
        let late = self.faults.strike(crate::fault::FaultKind::DelayClient, self.now).unwrap_or(0);
        let delay = self.ordinary_delay() + late;
        self.after(delay, Event::Client(attempt, message));
    }
}

/// The planted mistake: a count that outlives the run.
fn unseeded() -> Time {
    use std::sync::atomic::{AtomicU64, Ordering};
    static SENT: AtomicU64 = AtomicU64::new(0);
    SENT.fetch_add(1, Ordering::Relaxed) % 1_009
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fault::{Fault, FaultKind};

    fn network(faults: Vec<Fault>) -> Network {
        Network::new(&Plan { faults, ..Plan::new(1) }, Planted::default())
    }

    #[test]
    fn events_happen_by_moment_and_then_in_the_order_of_sending() {
        let mut network = network(Vec::new());
        for (time, client) in [(9, 0), (4, 1), (9, 2), (4, 3)] {
            network.after(time, Event::Begin(client));
        }
        let mut order = Vec::new();
        while let Some(Event::Begin(client)) = network.next() {
            order.push((network.now(), client));
        }
        assert_eq!(order, [(4, 1), (4, 3), (9, 0), (9, 2)]);
    }

    #[test]
    fn a_repeated_message_arrives_twice_and_a_delayed_one_late() {
        let fault = |kind| Fault { kind, at: 0, amount: 1_000_000_000 };
        let mut network = network(vec![fault(FaultKind::DuplicatePush), fault(FaultKind::DelayResolve)]);
        network.send(1, RoleMessage::Pushed(0, resolver_types::Version(7)));
        network.send(1, RoleMessage::Pushed(0, resolver_types::Version(8)));
        let mut versions = Vec::new();
        while let Some(Event::Role(_, RoleMessage::Pushed(_, version))) = network.next() {
            versions.push((version.0, network.now() >= 1_000_000_000));
        }
        versions.sort();
        assert_eq!(versions, [(7, false), (7, true), (8, false)]);
    }
}
