//! The layout number: both sides compute it, from what each believes to cross.

use crate::bridge::ffi::{
    BatchView, Comparison, Decided, Figures, Outcome, RangeView, ReportedRead, TransactionView,
};
use std::mem::offset_of;

/// Raised when a call's meaning changes and no size or place does.
const REVISION: u64 = 1;

/// The layout number of the Rust side: FNV-1a over the revision, and the sizes and places of everything
/// that crosses. The C++ side computes its own in `cpp/layout.h`, in the same order.
pub(crate) const LAYOUT: u64 = number(&[
    REVISION,
    size_of::<RangeView>() as u64,
    offset_of!(RangeView, begin) as u64,
    offset_of!(RangeView, begin_length) as u64,
    offset_of!(RangeView, end) as u64,
    offset_of!(RangeView, end_length) as u64,
    size_of::<TransactionView>() as u64,
    offset_of!(TransactionView, read_version) as u64,
    offset_of!(TransactionView, report) as u64,
    offset_of!(TransactionView, first) as u64,
    offset_of!(TransactionView, reads) as u64,
    offset_of!(TransactionView, writes) as u64,
    size_of::<BatchView<'static>>() as u64,
    offset_of!(BatchView<'static>, version) as u64,
    offset_of!(BatchView<'static>, oldest) as u64,
    offset_of!(BatchView<'static>, transactions) as u64,
    offset_of!(BatchView<'static>, ranges) as u64,
    size_of::<ReportedRead>() as u64,
    offset_of!(ReportedRead, transaction) as u64,
    offset_of!(ReportedRead, read) as u64,
    size_of::<Outcome<'static>>() as u64,
    offset_of!(Outcome<'static>, any_too_old) as u64,
    offset_of!(Outcome<'static>, verdicts) as u64,
    offset_of!(Outcome<'static>, reported) as u64,
    size_of::<Decided<'static>>() as u64,
    offset_of!(Decided<'static>, verdicts) as u64,
    offset_of!(Decided<'static>, reported) as u64,
    offset_of!(Decided<'static>, compare) as u64,
    size_of::<Comparison>() as u64,
    offset_of!(Comparison, differences) as u64,
    size_of::<Figures>() as u64,
    offset_of!(Figures, differences) as u64,
]);

const fn number(facts: &[u64]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325;
    let mut at = 0;
    while at < facts.len() {
        hash = (hash ^ facts[at]).wrapping_mul(0x0000_0100_0000_01b3);
        at += 1;
    }
    hash
}
