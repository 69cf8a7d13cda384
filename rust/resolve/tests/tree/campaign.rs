//! Long runs by hand, with every parameter drawn from the seed:
//! ```text
//! CAMPAIGN_SEEDS=0..500 cargo test -p resolver-resolve --test tree -- --ignored campaign
//! ```
//! Every seed is 20,000 transactions. The profile `test` is optimized, with all debug assertions on.

use crate::trial::Trial;
use resolver_index::{Backing, Config, LEAST_BUDGET};
use resolver_resolve::TreeConfig;
use resolver_types::Retention;
use resolver_workloads::{RandomBatches, Rng};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// A run with unusual parameters.
fn drawn(seed: u64) -> Trial {
    let mut rng = Rng::new(seed ^ 0x6361_6d70);
    let retention = rng.pick(&[Retention::Window, Retention::Budget]);
    let most_pages = rng.pick(&[1, 8, 64, 1_024]);
    let config = TreeConfig {
        retention,
        index: Config {
            budget_bytes: LEAST_BUDGET + rng.below(most_pages) * 65_536,
            backing: Backing::Heap,
            vector_search: rng.one_in(2),
            stamp_limit: rng.pick(&[2, 170, 340, 500, 2_000, u32::MAX - 1]),
            ..Config::default()
        },
    };
    let shapes = RandomBatches::shapes();
    let shape = shapes[rng.below(shapes.len() as u64) as usize];
    Trial {
        validate_every: rng.pick(&[1, 1, 7, 100]),
        foreign: rng.one_in(4),
        ..Trial::new(shape, seed, 20_000, config)
    }
}

#[test]
#[ignore = "long: by hand"]
fn campaign() {
    let seeds = std::env::var("CAMPAIGN_SEEDS").unwrap_or_else(|_| "0..20".to_owned());
    let (first, last) = seeds.split_once("..").expect("CAMPAIGN_SEEDS is FIRST..LAST");
    let mut failed = Vec::new();
    for seed in first.parse::<u64>().expect("a number")..last.parse().expect("a number") {
        let trial = drawn(seed);
        match catch_unwind(AssertUnwindSafe(|| trial.run())) {
            Ok(Ok(_)) => {}
            Ok(Err((batch, finding))) => failed.push(format!("batch {batch}: {finding}: {trial:?}")),
            Err(_) => failed.push(format!("panic: {trial:?}")),
        }
    }
    assert!(failed.is_empty(), "{}", failed.join("\n"));
}
