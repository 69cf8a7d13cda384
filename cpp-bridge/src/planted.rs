//! A bug on purpose on the way back to C++: the fuzz target over the bridge must find it.
//!
//! Without the feature `planted-bugs` it cannot be planted.

#[cfg(feature = "planted-bugs")]
use std::sync::atomic::{AtomicBool, Ordering};

/// The bug's name: a batch's reported reads are handed out again with the next.
#[cfg(feature = "planted-bugs")]
pub const REPORTS_KEPT: &str = "reports-kept";

#[cfg(feature = "planted-bugs")]
static PLANTED: AtomicBool = AtomicBool::new(false);

/// Plants the bug in all histories of this process, or takes it out.
#[cfg(feature = "planted-bugs")]
pub fn plant(planted: bool) {
    PLANTED.store(planted, Ordering::Relaxed);
}

/// Whether reported reads are kept.
#[inline(always)]
pub(crate) fn keeps_reports() -> bool {
    #[cfg(feature = "planted-bugs")]
    let planted = PLANTED.load(Ordering::Relaxed);
    #[cfg(not(feature = "planted-bugs"))]
    let planted = false;
    planted
}
