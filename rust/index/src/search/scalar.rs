//! The truth: what each primitive means, in the plainest code.

use crate::batch::Endpoint;

pub(super) fn below(heads: &[u64], probe: u64) -> usize {
    heads.partition_point(|&head| head < probe)
}

pub(super) fn below_moved(endpoints: &[Endpoint], bits: u32, probe: u64) -> usize {
    endpoints.iter().take_while(|endpoint| endpoint.moved_head(bits) < probe).count()
}

pub(super) fn any_above(stamps: &[u32], limit: u32) -> bool {
    stamps.iter().any(|&stamp| stamp > limit)
}

pub(super) fn greatest(stamps: &[u32]) -> u32 {
    stamps.iter().copied().max().unwrap_or(0)
}

pub(super) fn least(stamps: &[u32]) -> u32 {
    stamps.iter().copied().min().unwrap_or(u32::MAX)
}

pub(super) fn count_through(stamps: &[u32], limit: u32) -> usize {
    stamps.iter().filter(|&&stamp| stamp > 0 && stamp <= limit).count()
}

pub(super) fn last_with_high_bit(kinds: &[u8]) -> Option<usize> {
    kinds.iter().rposition(|&kind| kind & 0x80 != 0)
}
