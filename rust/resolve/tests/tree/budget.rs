//! The budget: never a byte more, and nothing that fits an empty tree is ever refused.

use crate::config;
use crate::huge;
use crate::kit;
use crate::trial::Trial;
use resolver_index::{Config, ConfigError, LEAST_BUDGET, Tree};
use resolver_resolve::TreeSet;
use resolver_types::{BatchError, ConflictSet, MAX_KEY_LENGTH, Retention, Verdict, Verdicts, Version};
use resolver_workloads::{BatchBuf, RandomBatches, Workload};

#[test]
fn every_shape_under_the_least_budget() {
    let mut reclamations = 0;
    for shape in RandomBatches::shapes() {
        for (seed, retention) in [(40, Retention::Window), (41, Retention::Budget)] {
            let trial = Trial::new(shape, seed, 2_000, config(retention, LEAST_BUDGET));
            let run = trial.run();
            let outcome =
                run.unwrap_or_else(|(batch, finding)| panic!("{trial:?}, batch {batch}: {finding}"));
            reclamations += outcome.stats.reclamations;
        }
    }
    assert!(reclamations > 100, "{reclamations} reclamations");
}

#[test]
fn huge_keys_under_the_least_budget() {
    let (mut cleared, mut key_blocks) = (0, 0);
    for (seed, retention) in [(43, Retention::Window), (44, Retention::Budget)] {
        let trial = Trial::new("huge keys", seed, 0, config(retention, LEAST_BUDGET));
        let run = trial.run_batches(huge::batches(seed, 300));
        let outcome = run.unwrap_or_else(|(batch, finding)| panic!("{trial:?}, batch {batch}: {finding}"));
        cleared += outcome.cleared;
        key_blocks += outcome.stats.key_blocks_reclaimed;
    }
    assert!(cleared > 0 && key_blocks > 1_000, "{cleared} batches too large, {key_blocks} key blocks");
}

/// Most leaves of such keys have tails, and joins that would store them anew are refused: what seems to be collectable
/// there is not. A batch may still not go round the tree for its blocks: the hand makes the steps that follow batches,
/// and hardly any others.
#[test]
fn space_for_long_keys_is_made_after_batches_and_not_inside_them() {
    const BATCHES: usize = 180;
    let mut set = TreeSet::new(config(Retention::Budget, 24 << 20)).expect("the tree can be made");
    let mut verdicts = Verdicts::default();
    let mut half = *set.tree().stats();
    let trace = Workload::by_name("long-trace-32", 1).expect("a workload").with_batches(2 * BATCHES);
    for (at, buf) in trace.enumerate() {
        let ranges = buf.ranges();
        let batch = buf.batch(&ranges);
        set.judge(&batch, &mut verdicts).expect("the batch is legal");
        set.commit(&batch, &verdicts).expect("the batch fits");
        if at + 1 == BATCHES {
            half = *set.tree().stats();
        }
    }
    set.tree().validate().expect("the tree is valid");
    let stats = *set.tree().stats();
    assert!(stats.reclamations - half.reclamations >= BATCHES as u64 / 2, "{stats:?}");
    let (leaves, steps) = (stats.leaves_merged - half.leaves_merged, stats.hand_steps - half.hand_steps);
    // Four steps for every 64 leaves, and two more a batch.
    assert!(steps <= 4 * leaves / 64 + 2 * BATCHES as u64, "{steps} steps of the hand for {leaves} leaves");
}

#[test]
fn a_budget_too_small_is_refused_with_both_numbers() {
    for budget in [0, 1, LEAST_BUDGET - 1] {
        let error = Tree::new(Config { budget_bytes: budget, ..Config::default() }).err();
        assert_eq!(error, Some(ConfigError::BudgetTooSmall { budget, least: LEAST_BUDGET }));
    }
    let text = ConfigError::BudgetTooSmall { budget: 7, least: LEAST_BUDGET }.to_string();
    assert!(text.contains(" 7 ") && text.contains(&LEAST_BUDGET.to_string()), "{text}");
}

#[test]
fn a_budget_that_is_not_whole_pages_is_rounded_down() {
    for (budget, most) in [(LEAST_BUDGET + 65_535, LEAST_BUDGET), ((1 << 20) + 1, 1 << 20)] {
        let tree =
            Tree::new(Config { budget_bytes: budget, ..Config::default() }).expect("the tree can be made");
        assert!(
            tree.budget_bytes() <= most && tree.budget_bytes() > most - 65_536,
            "{}",
            tree.budget_bytes()
        );
    }
}

/// A batch of one transaction that writes the given ranges.
fn writes(version: i64, ranges: impl IntoIterator<Item = (Vec<u8>, Vec<u8>)>) -> BatchBuf {
    let mut buf = BatchBuf::new(Version(version), Version(-1));
    buf.push_transaction(Version(version), false);
    for (begin, end) in ranges {
        buf.push_write(&begin, &end);
    }
    buf
}

fn point(key: Vec<u8>) -> (Vec<u8>, Vec<u8>) {
    let mut end = key.clone();
    end.push(0);
    (key, end)
}

/// Judges and commits a batch; checks the budget and the tree whatever comes.
fn step(set: &mut TreeSet, buf: &BatchBuf) -> Result<Vec<Verdict>, BatchError> {
    let ranges = buf.ranges();
    let batch = buf.batch(&ranges);
    let mut verdicts = Verdicts::default();
    set.judge(&batch, &mut verdicts).expect("the batch is legal");
    let result = set.commit(&batch, &verdicts);
    set.tree().validate().expect("the tree is valid");
    assert!(set.peak_memory_bytes() <= set.tree().budget_bytes());
    result.map(|()| verdicts.verdicts)
}

/// Fills a tree with small keys until it has reclaimed for space; returns the next version.
fn fill(set: &mut TreeSet) -> i64 {
    let mut version = 1i64;
    while set.tree().stats().reclamations == 0 {
        let keys = (0..500u64).map(|key| point((key * 7_919 + version as u64).to_be_bytes().to_vec()));
        step(set, &writes(version, keys)).expect("so few keys fit");
        version += 1;
    }
    version
}

fn read(version: i64, read_version: i64, begin: &[u8], end: &[u8]) -> BatchBuf {
    let mut buf = BatchBuf::new(Version(version), Version(-1));
    buf.push_transaction(Version(read_version), false);
    buf.push_read(begin, end);
    buf
}

#[test]
fn the_longest_keys_go_into_a_full_pool() {
    for budget in [LEAST_BUDGET, LEAST_BUDGET + 65_536, 1 << 20] {
        let mut set = TreeSet::new(config(Retention::Budget, budget)).expect("the tree can be made");
        let mut version = fill(&mut set);
        for (length, letters) in [(30_001, 3), (MAX_KEY_LENGTH, 20)] {
            for letter in 0..letters {
                let mut key = vec![b'm'; length];
                key[length - 1] = letter;
                step(&mut set, &writes(version, [point(key.clone())])).expect("one long key fits");
                let (_, end) = point(key.clone());
                assert_eq!(
                    step(&mut set, &read(version + 1, version - 1, &key, &end)),
                    Ok(vec![Verdict::Conflict])
                );
                assert_eq!(
                    step(&mut set, &read(version + 2, version, &key, &end)),
                    Ok(vec![Verdict::Committed])
                );
                version += 3;
            }
        }
        // The longest range there is: both ends with a tail.
        let (mut begin, mut end) = (vec![b'm'; MAX_KEY_LENGTH], vec![b'm'; MAX_KEY_LENGTH + 1]);
        (begin[MAX_KEY_LENGTH - 1], end[MAX_KEY_LENGTH]) = (b'a', b'z');
        step(&mut set, &writes(version, [(begin, end)])).expect("the longest range fits");
    }
}

#[test]
fn a_batch_too_large_for_an_empty_pool_is_a_typed_error_and_clear_helps() {
    let mut set = TreeSet::new(config(Retention::Window, LEAST_BUDGET)).expect("the tree can be made");
    let version = fill(&mut set);
    let keys = |count: u8| {
        (0..count).map(|letter| {
            let mut key = vec![b'k'; 30_001];
            key[0] = letter;
            point(key)
        })
    };
    let error = step(&mut set, &writes(version, keys(40))).expect_err("40 keys of 30,001 bytes do not fit");
    let BatchError::OutOfBudget { write, needed, available } = error else { panic!("{error}") };
    assert!(needed > available, "{needed} of {available}");
    assert!((1..40).contains(&write), "write {write}: some fit, the rest does not");
    // What was applied before stays, and conflicts.
    let (first, end) = point({
        let mut key = vec![b'k'; 30_001];
        key[0] = 0;
        key
    });
    assert_eq!(step(&mut set, &read(version + 1, version - 1, &first, &end)), Ok(vec![Verdict::Conflict]));
    // The safe reaction: every read from before the batch conflicts.
    set.clear(Version(version + 1));
    set.tree().validate().expect("a cleared tree is valid");
    assert_eq!(step(&mut set, &read(version + 2, version, b"x", b"y")), Ok(vec![Verdict::Conflict]));
    assert_eq!(step(&mut set, &read(version + 3, version + 1, b"x", b"y")), Ok(vec![Verdict::Committed]));
    step(&mut set, &writes(version + 4, keys(2))).expect("two fit again");
    assert_eq!(step(&mut set, &read(version + 5, version + 3, &first, &end)), Ok(vec![Verdict::Conflict]));
}

/// That no more blocks are taken than were reserved is asserted with every batch; here every number of entries comes by, so
/// also those that an even share just does not divide.
#[test]
fn what_is_reserved_suffices_for_any_number_of_entries() {
    let short = |number: u32| number.to_be_bytes().to_vec();
    let long = |number: u32| [&number.to_be_bytes()[..], &[b'.'; 16]].concat();
    let mut set = TreeSet::new(config(Retention::Window, 16 << 20)).expect("the tree can be made");
    let mut version = 0;
    for key in [short, long] {
        for count in 60..360 {
            // Keys in front of one that is there: they are no row that goes on. And all of them into an empty tree.
            for before in [&[1_000][..], &[]] {
                set.clear(Version(version));
                kit::step(
                    &mut set,
                    &kit::writes(version + 1, -1, before.iter().map(|&number| kit::point(key(number)))),
                );
                kit::step(
                    &mut set,
                    &kit::writes(version + 2, -1, (0..count).map(|number| kit::point(key(number)))),
                );
                version += 2;
            }
        }
    }
}

#[test]
fn what_expires_with_the_oldest_version_is_given_back_at_once() {
    let keys =
        |first: char, count: u32| (0..count).map(move |number| kit::point(format!("{first}{number:05}")));
    // The whole tree as one leaf, as many, and the subtrees beside one that lives on.
    for (dying, living) in [(20, 0), (400, 0), (400, 400)] {
        let mut set = TreeSet::new(config(Retention::Window, 16 << 20)).expect("the tree can be made");
        kit::step(&mut set, &kit::writes(1, -1, keys('a', dying)));
        kit::step(&mut set, &kit::writes(2, -1, keys('b', living)));
        kit::step(&mut set, &kit::writes(3, 0, []));
        let before = *set.tree().stats();
        assert_eq!(before.subtrees_released, 0);
        kit::step(&mut set, &kit::writes(4, 1, []));
        let after = *set.tree().stats();
        assert!(after.subtrees_released > 0, "{dying} of {}", dying + living);
        assert_eq!(after.hand_steps, before.hand_steps);
    }
}

/// Under a limit on its address space a process gets less than the budget.
#[test]
#[cfg(target_os = "linux")]
fn refused_address_space_is_a_full_pool() {
    let script = "ulimit -v 400000 && exec \"$0\" --exact budget::under_an_address_limit --ignored";
    let mut child = std::process::Command::new("sh")
        .args(["-c", script])
        .arg(std::env::current_exe().expect("the test knows itself"))
        .stdout(std::process::Stdio::piped())
        .spawn()
        .expect("the test can start itself");
    for _ in 0..600 {
        if child.try_wait().expect("the child can be waited for").is_some() {
            let output = child.wait_with_output().expect("the child has ended");
            let text = String::from_utf8_lossy(&output.stdout);
            assert!(output.status.success() && text.contains("1 passed"), "{text}");
            return;
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
    }
    child.kill().expect("the child can be stopped");
    child.wait().expect("the child ends");
    panic!("no room is found, and none is given up");
}

#[test]
#[ignore = "runs under a limit that the test above sets"]
fn under_an_address_limit() {
    let mut set = TreeSet::new(config(Retention::Budget, 1 << 30)).expect("the tree can be made");
    let mut verdicts = Verdicts::default();
    let mut version = 1i64;
    while set.tree().stats().reclamations < 20 {
        assert!(version < 1_000, "the limit is reached long before");
        let keys = (0..10u8).map(|letter| {
            let mut key = vec![letter; MAX_KEY_LENGTH];
            key[..8].copy_from_slice(&version.to_be_bytes());
            point(key)
        });
        let buf = writes(version, keys);
        let ranges = buf.ranges();
        let batch = buf.batch(&ranges);
        set.judge(&batch, &mut verdicts).expect("the batch is legal");
        set.commit(&batch, &verdicts).expect("a small batch fits what there is");
        version += 1;
    }
    assert!(set.memory_bytes() < 1 << 29, "{} bytes are held", set.memory_bytes());
    set.tree().validate().expect("the tree is valid");
}
