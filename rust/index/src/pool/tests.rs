use super::*;
use std::sync::OnceLock;

/// A block type for these tests: numbers all over the block.
#[derive(Clone, Copy)]
#[repr(C, align(64))]
struct Words([u64; BLOCK_BYTES / 8]);

#[allow(unsafe_code)]
// SAFETY: an array of numbers, 2048 bytes long, aligned to 64.
unsafe impl BlockLayout for Words {}

const PAGE: u64 = PAGE_BYTES as u64;
const PER_PAGE: u32 = BLOCKS_PER_PAGE as u32;
const BLOCKS_PER_SEGMENT: u32 = (memory::SEGMENT_BYTES / BLOCK_BYTES) as u32;

/// More than all tests that run at once ask for.
const ALL_TESTS: u64 = 64 << 20;

/// The backings that can be made here. Asked for once, before any test holds huge pages, so that what one of them takes is
/// not missed by another. HugeTLB is not there on most machines; Miri has no mappings with advice.
fn backings() -> Vec<Backing> {
    static HERE: OnceLock<Vec<Backing>> = OnceLock::new();
    let here = |backing: &Backing| match Pool::new(*backing, ALL_TESTS) {
        Ok(_) => true,
        Err(PoolError::OutOfHugePages { .. }) if *backing == Backing::HugeTlb => false,
        Err(PoolError::Unsupported { .. }) if *backing == Backing::Thp => false,
        Err(error) => panic!("{}: {error}", backing.name()),
    };
    if cfg!(miri) {
        return vec![Backing::Heap];
    }
    let found = HERE.get_or_init(|| Backing::ALL.into_iter().filter(here).collect());
    assert!(found.contains(&Backing::Heap), "the heap is everywhere");
    found.clone()
}

/// A sequence of numbers that looks random, the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) % bound
    }
}

fn take(pool: &mut Pool) -> u32 {
    pool.allocate().expect("the budget allows one more").0
}

#[test]
fn names_are_read_back() {
    for backing in Backing::ALL {
        assert_eq!(backing.name().parse(), Ok(backing));
    }
    assert_eq!(
        "2m".parse::<Backing>().unwrap_err().to_string(),
        "no such backing: \"2m\" (heap, 4k, thp, hugetlb)"
    );
}

#[test]
fn a_budget_below_one_page_is_an_error_with_both_numbers() {
    let error = Pool::new(Backing::Heap, PAGE - 1).err();
    assert_eq!(error, Some(PoolError::BudgetTooSmall { budget: PAGE - 1, minimum: PAGE }));
}

#[test]
fn a_budget_that_cannot_be_numbered_is_an_error() {
    let error = Pool::new(Backing::Heap, u64::MAX).err();
    assert_eq!(error, Some(PoolError::OutOfAddressSpace { needed: u64::MAX - (PAGE - 1) }));
    assert!(BlockId::NONE.is_none() && !BlockId(u32::MAX - 1).is_none());
    const { assert!(MAX_BLOCKS <= u32::MAX as u64 && MAX_BLOCKS + BLOCKS_PER_PAGE as u64 > u32::MAX as u64) };
}

#[test]
fn the_budget_is_rounded_down_and_exact_to_the_block() {
    for backing in backings() {
        let mut pool = Pool::new(backing, 3 * PAGE + PAGE / 2).unwrap();
        assert_eq!((pool.backing(), pool.budget_bytes()), (backing, 3 * PAGE));
        assert_eq!((pool.committed_bytes(), pool.available()), (0, 96));
        for expected in 0..3 * PER_PAGE {
            assert_eq!(take(&mut pool), expected, "fresh blocks come in ascending order");
            let pages = u64::from(expected / PER_PAGE) + 1;
            assert_eq!(pool.committed_bytes(), pages * PAGE, "a page is committed when it is needed");
            assert_eq!(pool.used_blocks(), u64::from(expected) + 1);
            assert_eq!(pool.free_blocks(), pages * 32 - pool.used_blocks());
            assert_eq!(pool.available(), 96 - pool.used_blocks());
        }
        assert_eq!(pool.allocate(), None);
        assert_eq!(pool.validate_free_list(), Ok(()));
        pool.release(BlockId(40));
        assert_eq!((pool.available(), pool.free_blocks()), (1, 1));
        assert_eq!(pool.allocate(), Some(BlockId(40)));
        assert_eq!(pool.allocate(), None);
        assert_eq!((pool.peak_committed_bytes(), pool.budget_bytes()), (3 * PAGE, 3 * PAGE));
    }
}

#[test]
fn the_last_block_released_is_the_next_handed_out() {
    let mut pool = Pool::new(Backing::Heap, 2 * PAGE).unwrap();
    let first: Vec<u32> = (0..5).map(|_| take(&mut pool)).collect();
    assert_eq!(first, [0, 1, 2, 3, 4]);
    pool.release(BlockId(1));
    pool.release(BlockId(3));
    let free: Vec<u32> = pool.free_ids().map(|id| id.0).collect();
    assert_eq!(free[..4], [3, 1, 5, 6]);
    assert_eq!(free.len() as u64, pool.free_blocks());
    assert_eq!([take(&mut pool), take(&mut pool), take(&mut pool)], [3, 1, 5]);
}

#[test]
fn fresh_blocks_are_zero_and_every_block_keeps_its_own_bytes() {
    let blocks = BLOCKS_PER_SEGMENT + 2 * PER_PAGE;
    for backing in backings() {
        // The budget ends in a short last segment.
        let mut pool = Pool::new(backing, u64::from(blocks) * BLOCK_BYTES as u64).unwrap();
        for id in 0..blocks {
            assert_eq!(take(&mut pool), id);
            let words = pool.get_mut::<Words>(BlockId(id));
            assert!(words.0.iter().all(|&word| word == 0), "{}: block {id} is fresh", backing.name());
            words.0 = std::array::from_fn(|word| u64::from(id) << 32 | word as u64);
        }
        for id in 0..blocks {
            let words = pool.get::<Words>(BlockId(id));
            let expected = |word: usize| u64::from(id) << 32 | word as u64;
            assert!(words.0.iter().enumerate().all(|(word, &value)| value == expected(word)));
            assert_eq!(std::ptr::from_ref(words).addr() % LINE_BYTES, 0);
        }
        assert_eq!(pool.allocate(), None);
    }
}

/// The model: a stack of released blocks, and the next fresh one.
#[test]
fn random_calls_give_the_blocks_of_the_model_under_every_backing() {
    let blocks = if cfg!(miri) { 3 * PER_PAGE } else { 40 * PER_PAGE };
    for backing in backings() {
        let mut pool = Pool::new(backing, u64::from(blocks) * BLOCK_BYTES as u64).unwrap();
        let mut numbers = Numbers(7);
        let (mut used, mut released, mut fresh) = (Vec::new(), Vec::new(), 0);
        for step in 0..if cfg!(miri) { 600 } else { 20_000 } {
            // Phases of growth and of decline, so that both ends are met.
            let grows = numbers.below(100) < if step / 500 % 2 == 0 { 80 } else { 25 };
            if grows {
                let expected = released.pop().or_else(|| {
                    fresh += 1;
                    (fresh <= blocks).then(|| fresh - 1)
                });
                fresh = fresh.min(blocks);
                assert_eq!(pool.allocate().map(|id| id.0), expected);
                if let Some(id) = expected {
                    pool.get_mut::<Words>(BlockId(id)).0 = [u64::from(id); _];
                    used.push(id);
                }
            } else if !used.is_empty() {
                let id = used.swap_remove(numbers.below(used.len() as u64) as usize);
                assert_eq!(pool.get::<Words>(BlockId(id)).0, [u64::from(id); _]);
                pool.release(BlockId(id));
                released.push(id);
            }
            assert_eq!(pool.used_blocks(), used.len() as u64);
            assert_eq!(pool.committed_blocks(), u64::from(fresh.next_multiple_of(PER_PAGE)));
            assert_eq!(pool.free_blocks() + pool.used_blocks(), pool.committed_blocks());
            assert_eq!(pool.available() + pool.used_blocks(), u64::from(blocks));
            if step % 100 == 0 {
                assert_eq!(pool.validate_free_list(), Ok(()));
                let expected = released.iter().rev().copied().chain(fresh..fresh.next_multiple_of(PER_PAGE));
                assert!(pool.free_ids().map(|id| id.0).eq(expected), "the free blocks in order");
            }
        }
    }
}

#[test]
fn a_cleared_pool_hands_out_the_blocks_of_a_new_one() {
    let mut pool = Pool::new(Backing::Heap, 4 * PAGE).unwrap();
    for _ in 0..70 {
        take(&mut pool);
    }
    for id in [5, 69, 33] {
        pool.release(BlockId(id));
    }
    pool.clear();
    assert_eq!((pool.used_blocks(), pool.free_blocks(), pool.available()), (0, 96, 128));
    assert_eq!(pool.validate_free_list(), Ok(()));
    assert!(pool.free_ids().map(|id| id.0).eq(0..96));
    let again: Vec<u32> = (0..128).map(|_| take(&mut pool)).collect();
    assert!(again.into_iter().eq(0..128));
    assert_eq!(pool.allocate(), None);
}

#[test]
fn prefetch_takes_any_block_and_any_line() {
    let mut pool = Pool::new(Backing::Heap, PAGE).unwrap();
    pool.prefetch(BlockId(0), 0..32);
    let id = pool.allocate().unwrap();
    for id in [id, BlockId(31), BlockId(32), BlockId(u32::MAX - 1), BlockId::NONE] {
        pool.prefetch(id, 0..usize::MAX);
        pool.prefetch(id, 31..33);
        pool.prefetch(id, usize::MAX..usize::MAX);
    }
    assert_eq!((pool.used_blocks(), pool.validate_free_list()), (1, Ok(())));
}

#[test]
#[should_panic(expected = "only 32 are committed")]
fn a_block_that_is_not_committed_cannot_be_read() {
    let mut pool = Pool::new(Backing::Heap, 2 * PAGE).unwrap();
    take(&mut pool);
    pool.memory.get::<Words>(BlockId(32));
}

#[test]
#[should_panic(expected = "was never handed out")]
fn a_fresh_block_cannot_be_released() {
    let mut pool = Pool::new(Backing::Heap, PAGE).unwrap();
    take(&mut pool);
    pool.release(BlockId(1));
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "block 0 is released twice")]
fn a_block_cannot_be_released_twice() {
    let mut pool = Pool::new(Backing::Heap, PAGE).unwrap();
    take(&mut pool);
    take(&mut pool);
    pool.release(BlockId(0));
    pool.release(BlockId(0));
}

#[test]
#[cfg(debug_assertions)]
#[should_panic(expected = "block 0 is used, but free")]
fn a_free_block_cannot_be_read() {
    let mut pool = Pool::new(Backing::Heap, PAGE).unwrap();
    let id = pool.allocate().unwrap();
    pool.release(id);
    pool.get::<Words>(id);
}

/// What is done to a pool whose free list is 6, 4, 2, and whose blocks 0 to 7 were handed out.
type Damage = fn(&mut Pool);

#[test]
fn a_corrupt_free_list_is_found() {
    let damages: [(&str, Damage); 6] = [
        ("block 6 is listed twice", |pool| pool.link(4, 6)),
        ("entry 1 of 3 is block 32", |pool| pool.link(6, 32)),
        ("block 1 follows the last of 3", |pool| pool.link(2, 1)),
        ("entry 0 of 3 is block 4294967295", |pool| pool.free_head = BlockId::NONE),
        ("are not the 8", |pool| pool.used += 1),
        ("fresh blocks begin at 33, 32 are committed", |pool| pool.fresh = 33),
    ];
    for (expected, damage) in damages {
        let mut pool = Pool::new(Backing::Heap, PAGE).unwrap();
        for _ in 0..8 {
            take(&mut pool);
        }
        for id in [2, 4, 6] {
            pool.release(BlockId(id));
        }
        assert_eq!(pool.validate_free_list(), Ok(()));
        damage(&mut pool);
        let found = pool.validate_free_list().unwrap_err();
        assert!(found.contains(expected), "{found:?} does not say {expected:?}");
        assert!(pool.free_ids().count() <= 3 + 24, "the iterator ends");
    }
}

impl Pool {
    /// Plants a wrong link in a free block.
    fn link(&mut self, from: u32, to: u32) {
        self.memory.get_mut::<FreeBlock>(BlockId(from)).next = BlockId(to);
    }
}

/// A block that is free by the list and used by its owner: debug builds compare the list with the bits.
#[test]
#[cfg(debug_assertions)]
fn a_used_block_on_the_free_list_is_found() {
    let mut pool = Pool::new(Backing::Heap, PAGE).unwrap();
    for _ in 0..4 {
        take(&mut pool);
    }
    pool.release(BlockId(1));
    pool.release(BlockId(3));
    pool.link(3, 2);
    pool.link(2, u32::MAX);
    let found = pool.validate_free_list().unwrap_err();
    assert_eq!(found, "block 1 is in use: false, on the free list: false");
}

#[test]
fn address_space_comes_segment_by_segment() {
    let (segment, page) = (memory::SEGMENT_BYTES, PAGE_BYTES);
    let per_segment = u64::from(BLOCKS_PER_SEGMENT);
    let mut pool = Pool::new(Backing::Heap, (2 * segment + page) as u64).unwrap();
    assert_eq!(pool.memory.reserved(), [], "a new pool reserves nothing");
    assert!(pool.secure(per_segment));
    assert_eq!(pool.memory.reserved(), [segment]);
    assert_eq!(pool.committed_bytes(), 0, "address space is not memory");
    for _ in 0..3 {
        take(&mut pool);
    }
    pool.release(BlockId(1));
    assert!(pool.secure(per_segment - 2));
    assert_eq!(
        pool.memory.reserved(),
        [segment],
        "the released block and the rest of the segment are enough"
    );
    assert!(pool.secure(per_segment - 1));
    assert_eq!(pool.memory.reserved(), [segment; 2]);
    assert!(pool.secure(pool.available()) && !pool.secure(pool.available() + 1));
    assert_eq!(pool.memory.reserved(), [segment, segment, page], "the last segment ends with the budget");

    let mut small = Pool::new(Backing::Heap, PAGE).unwrap();
    take(&mut small);
    assert_eq!(small.memory.reserved(), [page], "a small budget is its own segment");
}

#[test]
fn pools_move_between_threads() {
    let mut pool = Pool::new(Backing::Heap, PAGE).unwrap();
    let id = pool.allocate().unwrap();
    pool.get_mut::<Words>(id).0[3] = 77;
    let pool = std::thread::spawn(move || pool).join().unwrap();
    let seen = std::thread::scope(|scope| scope.spawn(|| pool.get::<Words>(id).0[3]).join().unwrap());
    assert_eq!(seen, 77);
}

#[cfg(all(target_os = "linux", not(miri)))]
mod linux {
    use super::*;

    /// Pages of 4 KiB that this process has mapped, and that it has in memory.
    fn process_pages() -> (u64, u64) {
        let text = std::fs::read_to_string("/proc/self/statm").unwrap();
        let mut fields = text.split(' ').map(|field| field.parse().unwrap());
        (fields.next().unwrap(), fields.next().unwrap())
    }

    /// Runs an ignored test in a process of its own, after a command of the shell's.
    fn run_alone(first: &str, test: &str) {
        let output = std::process::Command::new("sh")
            .args(["-c", &format!("{first} && exec \"$0\" --exact \"$1\" --ignored")])
            .arg(std::env::current_exe().unwrap())
            .arg(format!("pool::tests::linux::{test}"))
            .output()
            .unwrap();
        let [said, failed] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
        assert!(output.status.success() && said.contains("1 passed"), "{said}{failed}");
    }

    #[test]
    fn thousands_of_pools_leave_nothing_behind() {
        run_alone("true", "what_thousands_of_pools_leave");
    }

    #[test]
    #[ignore = "reads what its process holds: the test above runs it alone"]
    fn what_thousands_of_pools_leave() {
        for backing in backings() {
            let budget = if backing == Backing::HugeTlb { PAGE } else { 1 << 30 };
            let (mapped_before, resident_before) = process_pages();
            for _ in 0..3000 {
                let mut pool = Pool::new(backing, budget).unwrap();
                let id = pool.allocate().unwrap();
                pool.get_mut::<Words>(id).0[0] = 1;
                assert_eq!(pool.committed_bytes(), PAGE);
            }
            // Leaked segments would be 3000 * 16 MiB mapped, leaked pages 3000 * 64 KiB in memory.
            let (mapped, resident) = process_pages();
            assert!(mapped < mapped_before + (2 << 30 >> 12), "{}: {mapped} pages mapped", backing.name());
            assert!(
                resident < resident_before + (128 << 20 >> 12),
                "{}: {resident} resident",
                backing.name()
            );
        }
    }

    #[test]
    fn transparent_huge_pages_are_aligned_to_their_size() {
        if let Ok(mut pool) = Pool::new(Backing::Thp, 64 << 20) {
            for _ in 0..BLOCKS_PER_SEGMENT + 1 {
                take(&mut pool);
            }
            for id in [0, BLOCKS_PER_SEGMENT] {
                let address = std::ptr::from_ref(pool.get::<Words>(BlockId(id))).addr();
                assert_eq!(address % (2 << 20), 0);
            }
        } else {
            let choices = std::fs::read_to_string("/sys/kernel/mm/transparent_hugepage/enabled");
            assert!(
                choices.map_or(true, |text| text.contains("[never]")),
                "refused though the kernel has them"
            );
        }
    }

    #[test]
    fn huge_pages_that_cannot_be_had_are_a_typed_error() {
        let (before, _) = process_pages();
        let budget = 4 << 40;
        match Pool::new(Backing::HugeTlb, budget).err() {
            Some(PoolError::OutOfHugePages { needed, free, page_bytes }) => {
                assert_eq!((needed, page_bytes), (budget >> 21, 2 << 20));
                assert!(free < needed, "{free} huge pages are free");
            }
            other => panic!("4 TiB of huge pages: {other:?}"),
        }
        let (after, _) = process_pages();
        assert!(after < before + (64 << 30 >> 12), "what was mapped is given back");
        let error = PoolError::OutOfHugePages { needed: 512, free: 3, page_bytes: 2 << 20 };
        assert_eq!(error.to_string(), "512 huge pages of 2097152 bytes are needed, 3 are free");
    }

    #[test]
    fn refused_address_space_leaves_the_pool_valid() {
        run_alone("ulimit -v 300000", "under_an_address_limit");
    }

    #[test]
    #[ignore = "runs under a limit that the test above sets"]
    fn under_an_address_limit() {
        for backing in backings().into_iter().filter(|backing| *backing != Backing::HugeTlb) {
            let mut pool = Pool::new(backing, 1 << 30).unwrap();
            assert!(!pool.secure(pool.available()), "1 GiB does not fit the limit");
            let mut given = 0;
            while let Some(id) = pool.allocate() {
                given += 1;
                pool.get_mut::<Words>(id).0 = [1; _];
            }
            assert!(given > 0 && given < (1 << 30) / BLOCK_BYTES as u64, "{given} blocks");
            assert_eq!((pool.used_blocks(), pool.validate_free_list()), (given, Ok(())));
            pool.release(BlockId(9));
            assert!(pool.secure(1) && !pool.secure(2));
            assert_eq!(pool.allocate(), Some(BlockId(9)));
            assert_eq!(pool.allocate(), None);
        }
    }
}
