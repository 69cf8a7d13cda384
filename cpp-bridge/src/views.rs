//! Rows of views as a batch: no element is looked at.
#![allow(unsafe_code)]

use crate::bridge::ffi::{BatchView, RangeView, TransactionView};
use resolver_types::{Batch, KeyRange, Transaction, Verdict, Version};
use std::mem::{offset_of, transmute};

// A transaction is the same bytes on both sides.
const _: () = {
    assert!(size_of::<Transaction>() == size_of::<TransactionView>());
    assert!(align_of::<Transaction>() == align_of::<TransactionView>());
    assert!(offset_of!(Transaction, read_version) == offset_of!(TransactionView, read_version));
    assert!(size_of::<Version>() == size_of::<i64>());
    assert!(offset_of!(Transaction, report) == offset_of!(TransactionView, report));
    assert!(offset_of!(Transaction, first) == offset_of!(TransactionView, first));
    assert!(offset_of!(Transaction, reads) == offset_of!(TransactionView, reads));
    assert!(offset_of!(Transaction, writes) == offset_of!(TransactionView, writes));
};

// So is a range: a slice's reference is its address, then its length. Rust does not promise that order,
// so it is looked at, by the compiler: a length taken for an address fails to compile.
const _: () = {
    assert!(size_of::<KeyRange<'static>>() == size_of::<RangeView>());
    assert!(align_of::<KeyRange<'static>>() == align_of::<RangeView>());
    assert!(offset_of!(KeyRange<'static>, begin) == offset_of!(RangeView, begin));
    assert!(offset_of!(KeyRange<'static>, end) == offset_of!(RangeView, end));
    assert!(offset_of!(RangeView, begin_length) - offset_of!(RangeView, begin) == size_of::<usize>());
    assert!(offset_of!(RangeView, end_length) - offset_of!(RangeView, end) == size_of::<usize>());
    // SAFETY: the sizes are equal (or this does not compile), and a raw pointer and a number take any bytes.
    let parts = unsafe { transmute::<&[u8], Parts>(b"four") };
    assert!(parts.length == 4);
};

/// What a slice's reference is made of.
#[repr(C)]
struct Parts {
    _address: *const u8,
    length: usize,
}

/// The batch that rows of views describe.
///
/// # Safety
/// Every pointer of its ranges is not null and starts that many bytes, which nobody changes during `'a`.
pub(crate) unsafe fn batch<'a>(batch: &BatchView<'a>) -> Batch<'a> {
    let BatchView { version, oldest, transactions, ranges } = *batch;
    // SAFETY: the assertions above: the same bytes mean the same; every value of the fields is legal,
    // `bool` on both sides.
    let transactions = unsafe { transmute::<&'a [TransactionView], &'a [Transaction]>(transactions) };
    // SAFETY: the assertions above: the same bytes mean the same; the caller vouches for the pointers.
    let ranges = unsafe { transmute::<&'a [RangeView], &'a [KeyRange<'a>]>(ranges) };
    Batch { version: Version(version), oldest: Version(oldest), transactions, ranges }
}

/// Verdicts as the bytes that they are.
pub(crate) fn verdict_bytes(verdicts: &[Verdict]) -> &[u8] {
    // SAFETY: `Verdict` is `repr(u8)`, and every bit pattern is a `u8`.
    unsafe { transmute::<&[Verdict], &[u8]>(verdicts) }
}
