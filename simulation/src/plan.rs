//! What a seed means: the settings of a run and its schedule of faults, drawn before it starts.

use crate::fault::{Fault, FaultKind, Time};
use crate::keys::KeySpace;
use resolver_index::LEAST_BUDGET;
use resolver_workloads::Rng;

/// How many ticks a transaction may live between reading and committing.
const LIFE_TICKS: u64 = 1_500;

/// Versions from one generation to the next.
pub(crate) const RECOVERY_JUMP: i64 = 100_000_000;

/// The same when an operator forces the recovery.
pub(crate) const FORCED_JUMP: i64 = 600_000_000_000;

/// Where an operator's jump ends: versions for many more recoveries are left.
pub(crate) const OPERATOR_VERSION: i64 = i64::MAX - (1 << 50);

/// A stream of random numbers that no other purpose draws from.
pub(crate) fn stream(seed: u64, purpose: u64) -> Rng {
    let first = Rng::new(seed).next_u64();
    Rng::new(first ^ Rng::new(purpose).next_u64())
}

/// The purposes of [`stream`]s.
pub(crate) mod purpose {
    pub(crate) const PLAN: u64 = 1;
    pub(crate) const NETWORK: u64 = 2;
    pub(crate) const GENERATIONS: u64 = 1 << 20;
    pub(crate) const CLIENTS: u64 = 1 << 40;
}

/// The settings of a run.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// The unit of all delays.
    pub(crate) tick: Time,
    /// How long clients start transactions.
    pub(crate) duration: Time,
    /// `MAX_WRITE_TRANSACTION_LIFE_VERSIONS`.
    pub(crate) life: i64,
    pub(crate) clients: usize,
    pub(crate) keys: KeySpace,
    /// Ticks between two batches of a proxy, about.
    pub(crate) batch_ticks: u64,
    /// Ticks that a client waits between transactions, at most.
    pub(crate) think_ticks: u64,
    pub(crate) max_resolvers: u64,
    pub(crate) max_proxies: u64,
    /// Each resolver's budget.
    pub(crate) budget_bytes: u64,
    /// Whether resolvers of a new generation go on with cleared histories instead of new ones.
    pub(crate) reuse_histories: bool,
    /// One in so many transactions asks for a report.
    pub(crate) report_one_in: u64,
}

/// All that a seed decides before the run starts.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    pub(crate) seed: u64,
    pub(crate) settings: Settings,
    pub(crate) faults: Vec<Fault>,
}

impl Plan {
    /// The plan of a seed.
    pub(crate) fn new(seed: u64) -> Plan {
        let mut rng = stream(seed, purpose::PLAN);
        let settings = Settings::draw(&mut rng);
        let faults = draw_faults(&mut rng, &settings);
        Plan { seed, settings, faults }
    }
}

impl Settings {
    fn draw(rng: &mut Rng) -> Settings {
        let life = rng.pick(&[75_000, 300_000, 1_500_000, 5_001_000, 15_000_000]);
        let tick = life as u64 / LIFE_TICKS;
        let count = rng.pick(&[12, 40, 120, 400]);
        let keys = KeySpace::new(count, rng.pick(&[0, 25, 250, 1_500, 6_000]), rng.one_in(2));
        Settings {
            tick,
            duration: tick * rng.between(9_000, 18_000) as u64,
            life,
            clients: rng.between(8, 28) as usize,
            keys,
            batch_ticks: rng.pick(&[6, 12, 25]),
            think_ticks: rng.pick(&[20, 60, 150]),
            max_resolvers: rng.pick(&[2, 3, 5]),
            max_proxies: rng.pick(&[1, 2, 4]),
            budget_bytes: LEAST_BUDGET + rng.pick(&[0, 0, 65_536, 262_144, 1 << 20]),
            reuse_histories: rng.one_in(2),
            report_one_in: rng.pick(&[1, 3, 10]),
        }
    }
}

/// How many faults of a kind a run has at most, and how long each lasts in ticks, at most; 0 for random bits.
fn extent(kind: FaultKind) -> (u64, u64) {
    match kind {
        FaultKind::DelayResolve | FaultKind::DelayReply => (40, 150),
        FaultKind::DuplicateResolve | FaultKind::DuplicateReply => (40, 100),
        FaultKind::DelayVersion | FaultKind::DuplicateVersion => (20, 100),
        FaultKind::DelayPush | FaultKind::DuplicatePush => (20, 100),
        FaultKind::DelayClient => (40, 400),
        FaultKind::Disconnect => (20, 60),
        FaultKind::Hold => (60, 2_000),
        FaultKind::OldReadVersion => (60, 0),
        FaultKind::StubbornRetry => (20, 0),
        FaultKind::HugeKeys => (6, 0),
        FaultKind::HotKeys => (6, 400),
        FaultKind::IdleGap => (2, 2_500),
        FaultKind::PauseProxy | FaultKind::PauseResolver => (5, 150),
        FaultKind::MoveRange => (40, 0),
        FaultKind::Recovery => (5, 500),
        FaultKind::ForcedRecovery => (2, 500),
        FaultKind::OperatorJump => (1, 500),
    }
}

/// One kind in three is left out of a run, so that the others meet without it.
fn draw_faults(rng: &mut Rng, settings: &Settings) -> Vec<Fault> {
    let mut faults = Vec::new();
    for &kind in FaultKind::ALL {
        let (most, ticks) = extent(kind);
        let count = if rng.one_in(3) { 0 } else { rng.below(most + 1) };
        for _ in 0..count {
            let at = rng.below(settings.duration);
            let amount = match ticks {
                0 => rng.next_u64(),
                _ => settings.tick * (1 + rng.below(ticks)),
            };
            faults.push(Fault { kind, at, amount });
        }
    }
    faults.sort_by_key(|fault| (fault.at, fault.kind));
    faults
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seed_gives_one_plan_and_streams_differ_by_purpose() {
        assert_eq!(Plan::new(5).faults, Plan::new(5).faults);
        assert_ne!(Plan::new(5).faults, Plan::new(6).faults);
        assert_ne!(stream(5, purpose::PLAN), stream(5, purpose::NETWORK));
        assert_ne!(stream(5, purpose::PLAN), stream(6, purpose::PLAN));
    }

    #[test]
    fn plans_leave_room_for_versions_and_fit_a_recovery_jump() {
        for seed in 0..200 {
            let Plan { settings, faults, .. } = Plan::new(seed);
            assert!(settings.life < RECOVERY_JUMP / 2);
            assert!(settings.tick > 0);
            let recoveries = faults.iter().filter(|fault| fault.kind >= FaultKind::Recovery).count() as i64;
            let versions = settings.duration as i64 * 100 + recoveries * FORCED_JUMP;
            assert!(OPERATOR_VERSION.checked_add(versions).is_some());
        }
    }
}
