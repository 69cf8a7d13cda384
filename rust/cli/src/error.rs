//! What ends a command early.

use crate::history::Index;
use resolver_workloads::capture::CaptureError;
use resolver_workloads::input::Refused;
use resolver_workloads::measure::MeasureError;
use resolver_workloads::{RandomBatches, Workload};
use std::io;
use thiserror::Error;

/// What ends a command early, in one line.
#[derive(Debug, Error)]
pub(crate) enum Error {
    #[error("unknown index {0:?}; there are {known}", known = Index::NAMES.join(", "))]
    UnknownIndex(String),
    #[error("the index \"tree\" is not there yet; there are {known}", known = Index::NAMES.join(", "))]
    NoTreeYet,
    #[error("{0}: no file and no workload of that name; the workloads are {known}", known = Workload::names().join(", "))]
    UnknownWorkload(String),
    #[error("unknown shape {0:?}; there are {known}", known = RandomBatches::shapes().join(", "))]
    UnknownShape(String),
    #[error("{file}: {source}")]
    Capture { file: String, source: CaptureError },
    #[error("{file}: {source}")]
    Refused { file: String, source: Refused },
    #[error("{workload}: {source}")]
    Measure { workload: String, source: MeasureError },
    #[error("cannot write the results: {0}")]
    Output(#[from] io::Error),
}

impl Error {
    /// 1 where the conflict sets are at fault, 2 where usage or input is.
    pub(crate) fn exit_code(&self) -> u8 {
        match self {
            Error::Measure { source: MeasureError::Decisions { .. }, .. } => 1,
            _ => 2,
        }
    }
}
