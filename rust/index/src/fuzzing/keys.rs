//! The log of key blocks and the chains of separators.
//!
//! # Strategy
//! Tails of all lengths are appended for stamps that only grow, many alike in their ends; tails are advanced,
//! compared and read; stamps expire, and the blocks with them; chains come and go in between, so that blocks change hands.
//!
//! # Invariants
//! - A tail whose stamp has not expired is current and has the bytes that were appended.
//! - An append takes no more blocks than were said to be needed; blocks stand in the order of their stamps.
//! - The pool's used blocks are those of the log and of the chains; nothing that has expired stays in front.

use crate::keys::{self, Chain, KeyLog, Tail};
use crate::planted::{Bug, Planted};
use crate::pool::{Backing, PAGE_BYTES, Pool};
use crate::stats::Stats;

/// One operation on key blocks.
#[derive(Clone, Copy, Debug)]
#[cfg_attr(feature = "fuzzing", derive(arbitrary::Arbitrary))]
pub enum KeyOp {
    /// Appends a tail.
    Append {
        /// Its length, short or long.
        length: u16,
        /// Its bytes count up from this one, slowly.
        byte: u8,
        /// How many of them are left out in front, modulo 8.
        cut: u16,
    },
    /// A new stamp for the appends that follow.
    Stamp,
    /// Expires the oldest stamps.
    Expire {
        /// How many.
        stamps: u8,
    },
    /// Makes a tail of another one, without its first bytes.
    Advance {
        /// The other one.
        which: u8,
        /// How many bytes.
        by: u16,
    },
    /// Compares two tails with each other, and one with the other's bytes.
    Compare {
        /// The one.
        which: u8,
        /// The other.
        other: u8,
    },
    /// Stores a chain.
    Store {
        /// Its length.
        length: u16,
        /// Its bytes count up from this one, slowly.
        byte: u8,
    },
    /// Gives a chain back.
    Drop {
        /// Which.
        which: u8,
    },
    /// Takes what has expired off all stamps.
    Renumber,
}

/// Bytes that differ from others' late.
fn pattern(byte: u8, length: usize) -> Vec<u8> {
    (0..length).map(|at| byte.wrapping_add((at / 97) as u8)).collect()
}

/// Runs a script; how many times something was compared with the model.
pub fn keys(script: &[KeyOp], planted: Planted) -> usize {
    let mut pool = Pool::new(Backing::Heap, 8 * PAGE_BYTES as u64).expect("eight pages of heap");
    let mut log = KeyLog::new();
    let mut stats = Stats::default();
    let mut tails: Vec<(Tail, u32, Vec<u8>)> = Vec::new();
    let mut chains: Vec<(Chain, Vec<u8>)> = Vec::new();
    let mut chain_blocks = 0;
    let (mut stamp, mut expired) = (1, 0);
    let mut checks = 0;
    let mut copy = Vec::new();
    for op in script {
        match *op {
            KeyOp::Append { length, byte, cut } => {
                let length = usize::from(if byte & 3 == 0 { length } else { length & 63 });
                let needed = KeyLog::blocks_for(length as u64);
                if pool.available() < needed || !pool.secure(needed) {
                    continue;
                }
                // The end of a pattern may be the end of one that was appended before.
                let bytes = pattern(byte, length).split_off(usize::from(cut & 7).min(length));
                let length = bytes.len();
                let before = pool.available();
                let tail = log.append(&mut pool, &bytes, stamp, &mut stats);
                assert!(
                    before - pool.available() <= needed,
                    "an append takes more blocks than were reserved"
                );
                assert_eq!(tail.len(), length);
                if length > 0 {
                    tails.push((tail, stamp, bytes));
                }
            }
            KeyOp::Stamp => stamp += 1,
            KeyOp::Expire { stamps } => {
                expired = (expired + u32::from(stamps)).min(stamp - 1);
                let early = u32::from(planted.has(Bug::KeyBlocksReleasedEarly));
                log.release_expired(&mut pool, expired + early);
                tails.retain(|(_, stamp, _)| *stamp > expired);
            }
            KeyOp::Advance { which, by } => {
                if let Some((tail, stamp, bytes)) = pick(&tails, which) {
                    let by = usize::from(by).min(bytes.len());
                    let advanced = keys::advance_tail(&pool, *tail, by);
                    assert_eq!(advanced == Tail::NONE, by == bytes.len());
                    if advanced != Tail::NONE {
                        tails.push((advanced, *stamp, bytes[by..].to_vec()));
                    }
                }
            }
            KeyOp::Compare { which, other } => {
                let (Some((left, _, bytes)), Some((right, _, others))) =
                    (pick(&tails, which), pick(&tails, other))
                else {
                    continue;
                };
                assert_eq!(keys::same_tail(&pool, *left, *right), bytes == others);
                assert_eq!(keys::compare_tail(&pool, *left, others), bytes.cmp(others));
                let count = usize::from(other & 7) + 1;
                let (first, got) = keys::tail_bytes(&pool, *left, count);
                assert_eq!(first[..got], bytes[..count.min(bytes.len())]);
                checks += 1;
            }
            KeyOp::Store { length, byte } => {
                let bytes = pattern(byte, usize::from(length & 0x3fff) + 1);
                let needed = Chain::blocks_for(bytes.len());
                if pool.available() < needed || !pool.secure(needed) {
                    continue;
                }
                let chain = Chain::store(&mut pool, &bytes);
                chain_blocks += needed;
                chains.push((chain, bytes));
            }
            KeyOp::Drop { which } => {
                if chains.is_empty() {
                    continue;
                }
                let (chain, bytes) = chains.swap_remove(usize::from(which) % chains.len());
                copy.clear();
                chain.copy_to(&pool, &mut copy);
                assert!(copy == bytes && chain.compare(&pool, &bytes).is_eq());
                assert!(
                    chain.compare(&pool, &bytes[1..]).is_eq() == (bytes.len() == 1 && bytes[1..] == bytes)
                );
                assert_eq!(chain.release(&mut pool), Chain::blocks_for(bytes.len()));
                chain_blocks -= Chain::blocks_for(bytes.len());
                checks += 1;
            }
            KeyOp::Renumber => {
                log.renumber(&mut pool, expired);
                tails.iter_mut().for_each(|(_, stamp, _)| *stamp -= expired);
                stamp -= expired;
                expired = 0;
            }
        }
        assert_eq!(pool.used_blocks(), log.blocks() + chain_blocks, "after {op:?}");
        assert!(
            log.oldest_stamp(&pool)
                .is_none_or(|oldest| oldest > expired || !matches!(op, KeyOp::Expire { .. }))
        );
    }
    let mut before = 0;
    let mut blocks = 0;
    log.for_each_block(&pool, |_, greatest| {
        assert!(greatest >= before, "a block of stamp {greatest} stands behind one of stamp {before}");
        before = greatest;
        blocks += 1;
    });
    assert_eq!(blocks, log.blocks());
    for (tail, _, bytes) in &tails {
        assert!(keys::is_current(&pool, *tail), "a tail's block was given away");
        copy.clear();
        keys::copy_tail(&pool, *tail, &mut copy);
        assert_eq!(copy, *bytes);
        checks += 1;
    }
    pool.validate_free_list().expect("the free list is sound");
    checks
}

fn pick<T>(list: &[T], which: u8) -> Option<&T> {
    (!list.is_empty()).then(|| &list[usize::from(which) % list.len()])
}
