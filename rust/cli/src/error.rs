//! What ends a command early.

use crate::history::Index;
use resolver_index::ConfigError;
use resolver_index::pool::UnknownBacking;
use resolver_resolve::comparisons::ComparisonsError;
use resolver_resolve::wide_reads::WideReadsError;
use resolver_simulation::{FdbserverError, HistoryError};
use resolver_workloads::capture::CaptureError;
use resolver_workloads::input::{RunError, Unmade};
use resolver_workloads::measure::MeasureError;
use resolver_workloads::size::SizeError;
use resolver_workloads::trace::TraceError;
use resolver_workloads::{RandomBatches, Workload};
use std::io;
use thiserror::Error;

/// What ends a command early, in one line.
#[derive(Debug, Error)]
pub(crate) enum Error {
    #[error("unknown index {0:?}; there are {known}", known = Index::names())]
    UnknownIndex(String),
    #[error("{0:?} is no size: a number of bytes, or one with KiB, MiB, GiB or TiB behind it")]
    NoSize(String),
    #[error("unknown retention {0:?}; there are window, budget")]
    UnknownRetention(String),
    #[error("unknown strategy {0:?}; there are pipelined, cooperative")]
    UnknownStrategy(String),
    #[error("--read-tasks and --write-groups are of --strategy cooperative")]
    TasksOfPipelined,
    #[error("{0:?} is no number of read tasks")]
    NoReadTasks(String),
    #[error("{0:?} are no write groups; they are given as 2x8: two groups of eight tasks")]
    NoWriteGroups(String),
    #[error("{0:?} are no tasks; they are given as 16:2x8: read tasks, groups and tasks of a group")]
    NoTasks(String),
    #[error(transparent)]
    Config(#[from] ConfigError),
    #[cfg(feature = "planted-bugs")]
    #[error("unknown bug {0:?}; there are {known}", known = resolver_index::Bug::ALL.iter().map(|bug| bug.name()).collect::<Vec<_>>().join(", "))]
    UnknownBug(String),
    #[error("--pages: {0}")]
    UnknownBacking(#[from] UnknownBacking),
    #[error(transparent)]
    Unmade(#[from] Unmade),
    #[error("{0}: no file and no workload of that name; the workloads are {known}", known = Workload::names().join(", "))]
    UnknownWorkload(String),
    #[error("{0} measures the tree alone: --index tree")]
    TreeAlone(String),
    #[error("unknown shape {0:?}; there are {known}", known = RandomBatches::shapes().join(", "))]
    UnknownShape(String),
    #[error("{file}: {source}")]
    Capture { file: String, source: CaptureError },
    #[error("{file}: {source}")]
    Run { file: String, source: RunError },
    #[error("{workload}: {source}")]
    Measure { workload: String, source: MeasureError },
    #[error("{file}: {source}")]
    History { file: String, source: HistoryError },
    #[error("comparisons: {0}")]
    Comparisons(#[from] ComparisonsError),
    #[error("wide reads: {0}")]
    WideReads(#[from] WideReadsError),
    #[error("{file}: {source}")]
    Trace { file: String, source: TraceError },
    #[error("{file}: batch {batch} comes without decisions, which a capture has for every one")]
    Undecided { file: String, batch: u64 },
    #[error("{seconds} s of the long trace do not fill {budget} bytes: more seconds, or a smaller budget")]
    TraceTooShort { seconds: u64, budget: u64 },
    #[error(transparent)]
    Size(#[from] SizeError),
    #[error("--largest {0}: it must be 16KiB to 64GiB")]
    LatencySize(u64),
    #[error("{bytes} bytes to measure cannot be had: {source}")]
    LatencyMemory { bytes: u64, source: io::Error },
    #[error("{file}: cannot write: {source}")]
    Write { file: String, source: io::Error },
    #[error(transparent)]
    Fdbserver(#[from] FdbserverError),
    #[error("cannot write the results: {0}")]
    Output(#[from] io::Error),
}

impl Error {
    /// 1 where the conflict sets are at fault, 2 where usage or input is.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Error::Measure { source: MeasureError::Decisions { .. }, .. }
            | Error::Run { source: RunError::Broken { .. }, .. } => 1,
            _ => 2,
        }
    }
}
