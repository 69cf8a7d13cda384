//! No allocation in the steady state: an allocator that counts, and batches that come after enough others.
#![allow(unsafe_code)]

use resolver_index::{Config, Strategy, Tasks};
use resolver_resolve::{TreeConfig, TreeSet};
use resolver_types::{ConflictSet, Retention, Verdicts, Version};
use resolver_workloads::{BatchBuf, Rng};
use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// Calls of this thread that asked for memory.
    static CALLS: Cell<u64> = const { Cell::new(0) };
}

struct Counting;

// SAFETY: everything is passed on to the system's allocator; a counter beside it changes no memory that is
// handed out.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        CALLS.set(CALLS.get() + 1);
        // SAFETY: the caller's promises are those that the system's allocator asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(block, layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        CALLS.set(CALLS.get() + 1);
        // SAFETY: as above.
        unsafe { System.realloc(block, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

/// Makes a key of a number.
type Key = fn(u64) -> Vec<u8>;

/// How a run's batches look.
struct Work {
    name: &'static str,
    key: Key,
    /// Whether its keys have tails.
    long: bool,
    /// How many numbers a range covers; 0 for points.
    span: u64,
    retention: Retention,
    budget_bytes: u64,
}

/// The version from which on nothing is allocated.
const MEASURED_FROM: i64 = 2_000;

/// Numbers that keys are made of.
const NUMBERS: u64 = 40_000;

fn short(number: u64) -> Vec<u8> {
    [&[b'.'; 8][..], &number.to_be_bytes()].concat()
}

fn long(number: u64) -> Vec<u8> {
    // Of two that are neighbours, the first 30 bytes are the same.
    [&(number / 8).to_be_bytes()[..], &[b'.'; 24], &number.to_be_bytes()].concat()
}

fn batch(work: &Work, rng: &mut Rng, version: i64) -> BatchBuf {
    let mut buf = BatchBuf::new(Version(version), Version(version - 60));
    // The largest batches come early, and times when half of the keys rest, so that their leaves die: what
    // grows with the work has its final size then.
    let early = version < MEASURED_FROM;
    let transactions = if early && version % 20 == 0 { 200 } else { 100 };
    let numbers = if early && version / 150 % 2 == 1 { NUMBERS / 2 } else { NUMBERS };
    for _ in 0..transactions {
        buf.push_transaction(Version(version - rng.between(1, 50)), rng.one_in(3));
        for read in [true, true, false, false] {
            let number = rng.below(numbers);
            let begin = (work.key)(number);
            let end = match work.span {
                0 => [&begin[..], &[0]].concat(),
                span => (work.key)(number + 1 + rng.below(span)),
            };
            if read { buf.push_read(&begin, &end) } else { buf.push_write(&begin, &end) }
        }
        // Now and then something wide.
        if rng.one_in(400) {
            let number = rng.below(numbers);
            buf.push_write(&(work.key)(number), &(work.key)(number + NUMBERS / 20));
        }
    }
    buf
}

#[test]
fn a_batch_in_the_steady_state_allocates_nothing() {
    let works = [
        Work {
            name: "points",
            key: short,
            long: false,
            span: 0,
            retention: Retention::Window,
            budget_bytes: 64 << 20,
        },
        Work {
            name: "ranges",
            key: short,
            long: false,
            span: 20,
            retention: Retention::Window,
            budget_bytes: 64 << 20,
        },
        Work {
            name: "long keys",
            key: long,
            long: true,
            span: 20,
            retention: Retention::Window,
            budget_bytes: 64 << 20,
        },
        Work {
            name: "a full pool",
            key: long,
            long: true,
            span: 20,
            retention: Retention::Budget,
            budget_bytes: 1 << 20,
        },
    ];
    let strategies = [Strategy::Pipelined, Strategy::Cooperative(Tasks::default())];
    for (work, strategy) in works.iter().flat_map(|work| strategies.map(|strategy| (work, strategy))) {
        let index = Config { budget_bytes: work.budget_bytes, strategy, ..Config::default() };
        let mut set =
            TreeSet::new(TreeConfig { retention: work.retention, index }).expect("the tree can be made");
        let mut rng = Rng::new(1);
        let mut verdicts = Verdicts::default();
        let (mut before, mut allocating) = (*set.tree().stats(), Vec::new());
        for version in 1..MEASURED_FROM + 400 {
            let buf = batch(work, &mut rng, version);
            let ranges = buf.ranges();
            let batch = buf.batch(&ranges);
            let calls = CALLS.get();
            set.judge(&batch, &mut verdicts).expect("the batch is legal");
            set.commit(&batch, &verdicts).expect("the batch fits");
            let calls = CALLS.get() - calls;
            if version == MEASURED_FROM {
                before = *set.tree().stats();
            } else if version > MEASURED_FROM && calls > 0 {
                allocating.push((version, calls));
            }
        }
        let after = set.tree().stats();
        assert_eq!(allocating, [], "{}, {strategy:?}: (version, allocations)", work.name);
        // What was measured is the whole of it: splits, expiry, the slow hand.
        assert!(after.leaves_split > before.leaves_split, "{}", work.name);
        assert!(after.leaves_compacted > before.leaves_compacted, "{}", work.name);
        assert!(after.hand_steps > before.hand_steps, "{}", work.name);
        assert!(after.blocks_reclaimed > before.blocks_reclaimed, "{}", work.name);
        assert!(after.key_bytes_stored > before.key_bytes_stored || !work.long, "{}", work.name);
    }
}
