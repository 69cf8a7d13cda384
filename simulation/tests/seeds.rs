//! Seeds that must run without a violation, meet every fault, and repeat.

use resolver_simulation::{Counters, Options, check_seed, schedule, simulate};

#[test]
fn seeds_run_clean_and_meet_every_fault() {
    let mut counters = Counters::default();
    for seed in 0..24 {
        let run = match seed % 6 {
            0 => check_seed(seed, &Options::default()),
            _ => simulate(seed, &Options::default()),
        };
        assert_eq!(run.violation, None, "seed {seed}");
        assert!(run.checked.committed > 0 && run.checked.reads > 0, "seed {seed}: {:?}", run.checked);
        counters.merge(&run.counters);
    }
    let unmet: Vec<&str> = counters.iter().filter(|(_, count)| *count == 0).map(|(name, _)| name).collect();
    assert_eq!(unmet, Vec::<&str>::new());
}

#[test]
fn seeds_differ_and_faults_can_be_left_out() {
    let all = simulate(3, &Options::default());
    assert_ne!(all.trace_hash, simulate(4, &Options::default()).trace_hash);
    let none = simulate(3, &Options::default().with_faults(Vec::new()));
    assert_eq!(none.violation, None);
    assert_ne!(all.trace_hash, none.trace_hash);
    assert!(!schedule(3).is_empty());
    let of = |counters: &Counters, wanted: &str| {
        counters.iter().find(|(name, _)| *name == wanted).map(|(_, count)| count)
    };
    assert_eq!(of(&none.counters, "recovery"), Some(0));
}
