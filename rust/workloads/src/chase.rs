//! What one dependent load costs: a chase through memory in an order that no prefetcher guesses.
//!
//! Every line of the memory names the next, all of them form one cycle, and each load needs the one before. So the
//! time of a load is the latency of whatever holds that much memory: a cache, or main memory together with the
//! translation of addresses.

use crate::Rng;
use memmap2::{Advice, MmapMut};
use std::io;
use std::time::Instant;

/// The step between the places that are read: a cache line of most machines.
pub const LINE_BYTES: usize = 64;

/// Loads between two looks at the clock, and how many such stretches are timed; the shortest counts.
const LOADS: u64 = 1 << 20;
const STRETCHES: usize = 3;

/// The pages that are asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pages {
    /// The machine's smallest.
    Ordinary,
    /// Transparent huge ones, which the kernel may refuse without a word.
    Huge,
}

/// Nanoseconds a load takes in a cycle over `bytes` of memory, rounded down to whole lines.
///
/// Takes time in proportion to `bytes` for preparation, and the same number of loads whatever the size.
///
/// # Errors
/// When the operating system refuses the memory, or the wish for pages.
///
/// # Panics
/// Where `bytes` does not hold two lines, or holds more than 2^32.
pub fn nanoseconds(bytes: usize, pages: Pages, seed: u64) -> io::Result<f64> {
    let lines = bytes / LINE_BYTES;
    assert!(lines >= 2 && u32::try_from(lines).is_ok(), "a cycle has two lines at least, and 2^32 at most");
    let mut memory = MmapMut::map_anon(lines * LINE_BYTES)?;
    advise(&memory, pages)?;
    tie(&mut memory, seed);
    let mut at = chase(&memory, 0, LOADS);
    let mut least = f64::INFINITY;
    for _ in 0..STRETCHES {
        let start = Instant::now();
        at = std::hint::black_box(chase(&memory, at, LOADS));
        least = least.min(start.elapsed().as_secs_f64());
    }
    Ok(least * 1e9 / LOADS as f64)
}

#[cfg(target_os = "linux")]
fn advise(memory: &MmapMut, pages: Pages) -> io::Result<()> {
    memory.advise(match pages {
        Pages::Ordinary => Advice::NoHugePage,
        Pages::Huge => Advice::HugePage,
    })
}

#[cfg(not(target_os = "linux"))]
fn advise(_: &MmapMut, pages: Pages) -> io::Result<()> {
    match pages {
        Pages::Ordinary => Ok(()),
        Pages::Huge => Err(io::ErrorKind::Unsupported.into()),
    }
}

/// Ties all lines to one cycle: Sattolo's shuffle.
fn tie(memory: &mut [u8], seed: u64) {
    let lines = memory.len() / LINE_BYTES;
    (0..lines).for_each(|line| set_next(memory, line, line));
    let mut rng = Rng::new(seed);
    for line in (1..lines).rev() {
        let other = rng.below(line as u64) as usize;
        let (one, two) = (next(memory, line), next(memory, other));
        set_next(memory, line, two);
        set_next(memory, other, one);
    }
}

fn next(memory: &[u8], line: usize) -> usize {
    let (word, _) = memory[line * LINE_BYTES..].split_first_chunk().expect("a line holds a word");
    u64::from_ne_bytes(*word) as usize
}

fn set_next(memory: &mut [u8], line: usize, next: usize) {
    memory[line * LINE_BYTES..][..size_of::<u64>()].copy_from_slice(&(next as u64).to_ne_bytes());
}

fn chase(memory: &[u8], from: usize, loads: u64) -> usize {
    (0..loads).fold(from, |line, _| next(memory, line))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_lines_form_one_cycle() {
        for lines in [2, 3, 64, 1_000] {
            let mut memory = vec![0; lines * LINE_BYTES];
            tie(&mut memory, 7);
            let mut met = vec![false; lines];
            let mut line = 0;
            for _ in 0..lines {
                assert!(!met[line], "{lines} lines: {line} comes before the cycle has closed");
                met[line] = true;
                line = next(&memory, line);
            }
            assert_eq!(line, 0);
        }
    }
}
