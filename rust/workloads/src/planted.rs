//! Bugs on purpose in the readers of captures and traces: the fuzz targets over them must find each.
//!
//! Without the feature `planted-bugs` none can be planted.

#[cfg(feature = "planted-bugs")]
use std::sync::atomic::{AtomicUsize, Ordering};

/// A bug that can be planted in a reader.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReaderBug {
    /// A capture's reported reads may be reads that the transaction does not have.
    CaptureReportUnchecked,
    /// So may a trace's.
    TraceReportUnchecked,
}

#[cfg(feature = "planted-bugs")]
impl ReaderBug {
    /// Every bug.
    pub const ALL: [ReaderBug; 2] = [ReaderBug::CaptureReportUnchecked, ReaderBug::TraceReportUnchecked];

    /// The bug's name.
    pub fn name(self) -> &'static str {
        match self {
            ReaderBug::CaptureReportUnchecked => "capture-report-unchecked",
            ReaderBug::TraceReportUnchecked => "trace-report-unchecked",
        }
    }

    /// The bug of that name.
    pub fn by_name(name: &str) -> Option<ReaderBug> {
        ReaderBug::ALL.into_iter().find(|bug| bug.name() == name)
    }
}

/// The planted bug's place in the list, counted from 1; 0: none.
#[cfg(feature = "planted-bugs")]
static PLANTED: AtomicUsize = AtomicUsize::new(0);

/// Plants a bug in all readers of this process, or takes it out.
#[cfg(feature = "planted-bugs")]
pub fn plant(bug: Option<ReaderBug>) {
    PLANTED.store(bug.map_or(0, |bug| bug as usize + 1), Ordering::Relaxed);
}

/// Whether this bug is planted.
#[inline(always)]
pub(crate) fn planted(bug: ReaderBug) -> bool {
    #[cfg(feature = "planted-bugs")]
    let planted = PLANTED.load(Ordering::Relaxed) == bug as usize + 1;
    #[cfg(not(feature = "planted-bugs"))]
    let planted = {
        let _ = bug;
        false
    };
    planted
}
