//! Where a pool's memory comes from: the four backings, and the regions of address space that they give.
//!
//! | backing | source | zeroed | granted |
//! | --- | --- | --- | --- |
//! | heap | the global allocator | by the pool, page by page | when touched |
//! | 4k | anonymous mapping, advised against huge pages | by the kernel | when touched, 4 KiB at a time |
//! | thp | anonymous mapping, aligned to 2 MiB, advised towards huge pages | by the kernel | when touched, up to 2 MiB at a time |
//! | hugetlb | anonymous mapping of the kernel's 2 MiB page pool | by the kernel | when the pool is made, all of it |
#![allow(unsafe_code)]

use std::alloc::Layout;
use std::ptr::NonNull;
use std::str::FromStr;

use super::PoolError;

/// Alignment of a region under [`Backing::Heap`]: a page of the processor.
const HEAP_ALIGNMENT: usize = 4096;

/// Where a pool's memory comes from. It changes speed, never a block's number.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Hash)]
pub enum Backing {
    /// The global allocator. The only one outside Linux.
    Heap,
    /// Pages of 4 KiB, also where the machine would use bigger ones by itself.
    FourK,
    /// Transparent huge pages: the kernel is asked for them, and falls back by itself where memory is
    /// fragmented. The first 2 MiB are ordinary pages all the same, so that a small history stays small.
    Thp,
    /// Huge pages of 2 MiB out of the kernel's own pool: all of them when the pool is made, or an error.
    HugeTlb,
}

/// A backing's name that is none.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no such backing: {0:?} (heap, 4k, thp, hugetlb)")]
pub struct UnknownBacking(String);

impl Backing {
    /// The fastest that needs nothing set aside: transparent huge pages where the kernel gives them, else the
    /// heap. Beyond the caches, huge pages save most of the address translations, which cost as much as
    /// the accesses.
    pub fn preferred() -> Backing {
        if Backing::Thp.missing().is_none() { Backing::Thp } else { Backing::Heap }
    }

    /// Every backing.
    pub const ALL: [Backing; 4] = [Backing::Heap, Backing::FourK, Backing::Thp, Backing::HugeTlb];

    /// The name on the command line and in reports.
    pub fn name(self) -> &'static str {
        match self {
            Backing::Heap => "heap",
            Backing::FourK => "4k",
            Backing::Thp => "thp",
            Backing::HugeTlb => "hugetlb",
        }
    }

    /// Whether a region's memory is zero before its first use.
    pub(super) fn is_zeroed(self) -> bool {
        self != Backing::Heap
    }

    /// Whether this machine has the backing at all. (Whether huge pages are left is seen when they are asked
    /// for.)
    pub(super) fn check_supported(self) -> Result<(), PoolError> {
        match self.missing() {
            Some(reason) => Err(PoolError::Unsupported { backing: self, reason }),
            None => Ok(()),
        }
    }

    #[cfg(target_os = "linux")]
    fn missing(self) -> Option<&'static str> {
        (self == Backing::Thp && !mapping::has_transparent_huge_pages())
            .then_some("the kernel's transparent huge pages are switched off")
    }

    #[cfg(not(target_os = "linux"))]
    fn missing(self) -> Option<&'static str> {
        (self != Backing::Heap).then_some("only Linux has it")
    }
}

impl FromStr for Backing {
    type Err = UnknownBacking;

    fn from_str(name: &str) -> Result<Backing, UnknownBacking> {
        Backing::ALL
            .into_iter()
            .find(|backing| backing.name() == name)
            .ok_or_else(|| UnknownBacking(name.to_owned()))
    }
}

/// Address space of its own, given back when dropped.
pub(super) struct Region {
    base: NonNull<u8>,
    bytes: usize,
    backing: Backing,
}

impl Region {
    /// Address space of `bytes` (positive), aligned to 4096 at least, its memory granted when touched. `None`
    /// when the operating system refuses. `first`: nothing is reserved before it. Not for
    /// [`Backing::HugeTlb`]: see [`Region::huge`].
    pub(super) fn reserve(backing: Backing, bytes: usize, first: bool) -> Option<Region> {
        let base = match backing {
            Backing::Heap => {
                assert!(bytes > 0, "a region has a size");
                // SAFETY: the size is not zero.
                NonNull::new(unsafe { std::alloc::alloc(heap_layout(bytes)) })
            }
            Backing::FourK => mapping::small_pages(bytes),
            Backing::Thp => mapping::transparent_huge_pages(bytes, first),
            Backing::HugeTlb => unreachable!("HugeTLB memory is mapped when the pool is made"),
        };
        base.map(|base| Region { base, bytes, backing })
    }

    /// Memory of at least `bytes` in huge pages, all of them faulted in.
    pub(super) fn huge(bytes: usize) -> Result<Region, PoolError> {
        mapping::huge_pages(bytes)
    }

    /// The first byte. The pointer is good for the whole region.
    pub(super) fn base(&self) -> NonNull<u8> {
        self.base
    }

    /// Its size in bytes.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }
}

impl Drop for Region {
    fn drop(&mut self) {
        match self.backing {
            // SAFETY: `reserve` allocated it with this very layout.
            Backing::Heap => unsafe { std::alloc::dealloc(self.base.as_ptr(), heap_layout(self.bytes)) },
            Backing::FourK | Backing::Thp | Backing::HugeTlb => mapping::unmap(self.base, self.bytes),
        }
    }
}

fn heap_layout(bytes: usize) -> Layout {
    Layout::from_size_align(bytes, HEAP_ALIGNMENT).expect("a region's size is far below the address space")
}

/// The calls to the kernel.
#[cfg(target_os = "linux")]
mod mapping {
    use std::fs::File;
    use std::io::Read;
    use std::ptr::NonNull;

    use super::{Backing, PoolError, Region};

    /// Bytes of a huge page, transparent or not.
    pub(super) const HUGE_PAGE_BYTES: usize = 2 << 20;

    const HUGE_PAGE_COUNTS: &str = "/sys/kernel/mm/hugepages/hugepages-2048kB";
    const TRANSPARENT_HUGE_PAGES: &str = "/sys/kernel/mm/transparent_hugepage/enabled";

    /// A private anonymous mapping anywhere, with these flags besides.
    fn map(bytes: usize, flags: libc::c_int) -> Option<NonNull<u8>> {
        let protection = libc::PROT_READ | libc::PROT_WRITE;
        let flags = libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | flags;
        // SAFETY: a new mapping at an address of the kernel's choice touches no memory that exists.
        let base = unsafe { libc::mmap(std::ptr::null_mut(), bytes, protection, flags, -1, 0) };
        if base == libc::MAP_FAILED { None } else { NonNull::new(base.cast()) }
    }

    /// Gives a mapping, or whole pages of it, back.
    pub(super) fn unmap(base: NonNull<u8>, bytes: usize) {
        // SAFETY: every caller owns these pages alone, and drops its last pointer to them with this call.
        let result = unsafe { libc::munmap(base.as_ptr().cast(), bytes) };
        debug_assert_eq!(result, 0, "an owned mapping can be unmapped");
    }

    /// Tells the kernel how a mapping will be used; `false` when it does not know this advice.
    fn advise(base: NonNull<u8>, bytes: usize, advice: libc::c_int) -> bool {
        // SAFETY: the caller owns the mapping, and none of the advices used here changes what its memory
        // holds.
        unsafe { libc::madvise(base.as_ptr().cast(), bytes, advice) == 0 }
    }

    /// Pages of 4 KiB.
    pub(super) fn small_pages(bytes: usize) -> Option<NonNull<u8>> {
        let base = map(bytes, libc::MAP_NORESERVE)?;
        // A kernel that does not know the advice has no huge pages to be kept from.
        let _ = advise(base, bytes, libc::MADV_NOHUGEPAGE);
        Some(base)
    }

    /// Transparent huge pages, where `bytes` holds any: aligned to their size. The `first` one is left to
    /// ordinary pages.
    pub(super) fn transparent_huge_pages(bytes: usize, first: bool) -> Option<NonNull<u8>> {
        let slack = HUGE_PAGE_BYTES;
        let start = map(bytes + slack, libc::MAP_NORESERVE)?;
        let before = start.addr().get().next_multiple_of(HUGE_PAGE_BYTES) - start.addr().get();
        // SAFETY: `before < slack`, so that `before + bytes` lies in the mapping.
        let (base, end) = unsafe { (start.add(before), start.add(before + bytes)) };
        if before > 0 {
            unmap(start, before);
        }
        unmap(end, slack - before);
        // `has_transparent_huge_pages` was asked when the pool was made; from there on, it is the kernel's
        // choice.
        let ordinary = if first { HUGE_PAGE_BYTES.min(bytes) } else { 0 };
        // SAFETY: `ordinary <= bytes`.
        let advised = unsafe { base.add(ordinary) };
        let _ = bytes == ordinary || advise(advised, bytes - ordinary, libc::MADV_HUGEPAGE);
        Some(base)
    }

    /// Whether the kernel gives huge pages to those who ask for them.
    pub(super) fn has_transparent_huge_pages() -> bool {
        match std::fs::read_to_string(TRANSPARENT_HUGE_PAGES) {
            Ok(choices) => !choices.contains("[never]"),
            Err(_) => false,
        }
    }

    /// Huge pages for at least `bytes`, all of them faulted in.
    pub(super) fn huge_pages(bytes: usize) -> Result<Region, PoolError> {
        let bytes = bytes.next_multiple_of(HUGE_PAGE_BYTES);
        let needed = (bytes / HUGE_PAGE_BYTES) as u64;
        let out_of_huge_pages = || PoolError::OutOfHugePages {
            needed,
            free: free_huge_pages(),
            page_bytes: HUGE_PAGE_BYTES as u64,
        };
        let Some(base) = map(bytes, libc::MAP_HUGETLB | libc::MAP_HUGE_2MB) else {
            let out_of_address_space = free_huge_pages() >= needed;
            return Err(if out_of_address_space {
                PoolError::OutOfAddressSpace { needed: bytes as u64 }
            } else {
                out_of_huge_pages()
            });
        };
        // From here on dropping the region gives back what is mapped.
        let region = Region { base, bytes, backing: Backing::HugeTlb };
        if fault_in(base, bytes) { Ok(region) } else { Err(out_of_huge_pages()) }
    }

    /// Makes the kernel grant every huge page of a mapping now; `false` when one cannot be had. Never a
    /// signal, as a touch by the program itself could be.
    pub(super) fn fault_in(base: NonNull<u8>, bytes: usize) -> bool {
        advise(base, bytes, libc::MADV_POPULATE_WRITE) || fault_in_by_reading(base, bytes)
    }

    /// For kernels before 5.14: lets the kernel itself write a zero into each huge page. Where it cannot,
    /// `read` returns an error.
    pub(super) fn fault_in_by_reading(base: NonNull<u8>, bytes: usize) -> bool {
        use std::os::fd::AsRawFd;
        let Ok(zeros) = File::open("/dev/zero") else { return false };
        (0..bytes).step_by(HUGE_PAGE_BYTES).all(|offset| {
            // SAFETY: one byte of the caller's own mapping, which holds nothing but zeros yet.
            let read = unsafe { libc::read(zeros.as_raw_fd(), base.add(offset).as_ptr().cast(), 1) };
            read == 1
        })
    }

    /// Huge pages that are neither in use nor promised: the kernel counts those promised among the free ones.
    fn free_huge_pages() -> u64 {
        count("free_hugepages").saturating_sub(count("resv_hugepages"))
    }

    /// One of the kernel's counts of huge pages of this size; 0 where it has none.
    fn count(name: &str) -> u64 {
        let mut text = String::new();
        let read = File::open(format!("{HUGE_PAGE_COUNTS}/{name}"))
            .and_then(|mut file| file.read_to_string(&mut text));
        read.ok().and_then(|_| text.trim().parse().ok()).unwrap_or(0)
    }
}

/// `Backing::check_supported` has ruled these out before anything is mapped.
#[cfg(not(target_os = "linux"))]
mod mapping {
    use std::ptr::NonNull;

    use super::{PoolError, Region};

    pub(super) fn small_pages(_bytes: usize) -> Option<NonNull<u8>> {
        None
    }

    pub(super) fn transparent_huge_pages(_bytes: usize, _first: bool) -> Option<NonNull<u8>> {
        None
    }

    pub(super) fn huge_pages(bytes: usize) -> Result<Region, PoolError> {
        Err(PoolError::OutOfAddressSpace { needed: bytes as u64 })
    }

    pub(super) fn unmap(_base: NonNull<u8>, _bytes: usize) {
        unreachable!("nothing is mapped")
    }
}

#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests {
    use super::*;

    /// Ordinary memory in the place of huge pages, which most machines have not set aside.
    #[test]
    fn faulting_in_reports_what_cannot_be_had() {
        let bytes = 8 << 20;
        let region = Region::reserve(Backing::FourK, bytes, true).expect("8 MiB of address space");
        assert!(mapping::fault_in(region.base(), bytes));
        assert!(mapping::fault_in_by_reading(region.base(), bytes));
        // Memory that may not be written, where a touch would be a signal.
        // SAFETY: the region's own pages, which nobody refers to.
        let result = unsafe { libc::mprotect(region.base().as_ptr().cast(), bytes, libc::PROT_NONE) };
        assert_eq!(result, 0);
        assert!(!mapping::fault_in(region.base(), bytes));
        assert!(!mapping::fault_in_by_reading(region.base(), bytes));
    }
}
