//! The input of a run, in memory wholly or in stretches, so that a clock around it measures the conflict set alone.

use crate::BatchBuf;
use crate::capture::{CaptureError, CaptureReader, Record};
use crate::trace::FrameError;
use resolver_types::{Batch, BatchError, ConflictSet, KeyRange, Verdicts, Version};
use std::ops::ControlFlow;
use thiserror::Error;

/// Makes a fresh conflict set, or says why it cannot.
pub type Maker<'a> = &'a dyn Fn() -> Result<Box<dyn ConflictSet>, Unmade>;

/// A conflict set could not be made, in one line.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct Unmade(pub String);

/// What ends a run over an input early.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum RunError {
    /// A conflict set could not be made.
    #[error(transparent)]
    Unmade(#[from] Unmade),
    /// A conflict set refused a batch of the input.
    #[error("{set} refuses batch {batch}: {source}")]
    Refused {
        /// The conflict set's name.
        set: &'static str,
        /// The batch, counted from 0.
        batch: u64,
        /// Why.
        source: BatchError,
    },
    /// The input is a trace with a damaged frame.
    #[error(transparent)]
    Frame(#[from] FrameError),
    /// After a batch, a history was not what it must be.
    #[error("{set} is broken after batch {batch}: {found}")]
    Broken {
        /// The conflict set's name.
        set: &'static str,
        /// The batch, counted from 0.
        batch: u64,
        /// The invariant's number, and what was found.
        found: String,
    },
}

/// What a conflict set is asked to do next.
#[derive(Clone, Copy, Debug)]
pub enum Step<'a> {
    /// Every key gets this version.
    Clear(Version),
    /// A batch to judge and to commit.
    Batch(Batch<'a>),
}

/// Who is handed an input's stretches: the steps, and the decisions recorded about their batches, one for each or none at all. It
/// breaks when it needs no more of them.
pub type Visit<'a> = dyn FnMut(&Views<'_>, &[Verdicts]) -> Result<ControlFlow<()>, RunError> + 'a;

/// Steps are made ahead of the clock until they take so many bytes.
pub(crate) const STRETCH_BYTES: usize = 32 << 20;

/// Steps that can be gone through as often as wanted.
pub trait Source {
    /// How many steps stand before the first one that is timed.
    fn untimed(&self) -> usize;

    /// How many batches the steps hold.
    fn batches(&self) -> u64;

    /// Whether the input counts as prepared, so that only the stages inside the index are timed.
    fn index_alone(&self) -> bool {
        false
    }

    /// Hands all steps to `visit`, in order, in stretches that are in memory. What it takes to make a stretch happens before `visit`
    /// is called with it.
    ///
    /// # Errors
    /// The first that `visit` gives.
    fn stretches(&self, visit: &mut Visit<'_>) -> Result<(), RunError>;
}

#[derive(Clone, Debug)]
enum OwnedStep {
    Clear(Version),
    Batch(BatchBuf),
}

/// Batches and clears that own their keys.
#[derive(Clone, Debug, Default)]
pub struct Input {
    steps: Vec<OwnedStep>,
}

impl Input {
    /// The given batches.
    pub fn new(batches: impl Iterator<Item = BatchBuf>) -> Input {
        Input { steps: batches.map(OwnedStep::Batch).collect() }
    }

    /// Adds a clear.
    pub fn push_clear(&mut self, version: Version) {
        self.steps.push(OwnedStep::Clear(version));
    }

    /// Adds a batch.
    pub fn push_batch(&mut self, batch: BatchBuf) {
        self.steps.push(OwnedStep::Batch(batch));
    }

    /// Keeps the first `batches` batches.
    pub fn truncate(&mut self, batches: usize) {
        let mut left = batches;
        let end = self.steps.iter().position(|step| match step {
            OwnedStep::Clear(_) => false,
            OwnedStep::Batch(_) if left == 0 => true,
            OwnedStep::Batch(_) => {
                left -= 1;
                false
            }
        });
        self.steps.truncate(end.unwrap_or(self.steps.len()));
    }

    /// Views of all ranges, for [`Views::steps`].
    pub fn views(&self) -> Views<'_> {
        let ranges = self.steps.iter().map(|step| match step {
            OwnedStep::Clear(_) => Vec::new(),
            OwnedStep::Batch(batch) => batch.ranges(),
        });
        Views { input: self, ranges: ranges.collect() }
    }
}

/// An [`Input`] with the views of its ranges made: ready to run.
#[derive(Debug)]
pub struct Views<'a> {
    input: &'a Input,
    ranges: Vec<Vec<KeyRange<'a>>>,
}

impl Views<'_> {
    /// The steps in order.
    pub fn steps(&self) -> impl Iterator<Item = Step<'_>> {
        self.input.steps.iter().zip(&self.ranges).map(|(step, ranges)| match step {
            OwnedStep::Clear(version) => Step::Clear(*version),
            OwnedStep::Batch(batch) => Step::Batch(batch.batch(ranges)),
        })
    }

    /// How many batches the steps hold.
    pub fn batches(&self) -> u64 {
        self.input.steps.iter().filter(|step| matches!(step, OwnedStep::Batch(_))).count() as u64
    }
}

impl Source for Views<'_> {
    fn untimed(&self) -> usize {
        0
    }

    fn batches(&self) -> u64 {
        Views::batches(self)
    }

    fn stretches(&self, visit: &mut Visit<'_>) -> Result<(), RunError> {
        visit(self, &[]).map(drop)
    }
}

/// Views of a recording: its steps with the recorded decisions.
#[derive(Debug)]
pub struct Recorded<'a> {
    views: Views<'a>,
    recorded: &'a [Verdicts],
}

impl Source for Recorded<'_> {
    fn untimed(&self) -> usize {
        0
    }

    fn batches(&self) -> u64 {
        self.views.batches()
    }

    fn stretches(&self, visit: &mut Visit<'_>) -> Result<(), RunError> {
        visit(&self.views, self.recorded).map(drop)
    }
}

/// A capture: input with the decisions that were recorded beside it.
#[derive(Clone, Debug, Default)]
pub struct Recording {
    /// What the resolver received.
    pub input: Input,
    /// What was decided about each batch.
    pub recorded: Vec<Verdicts>,
    /// Whether the capture ends inside a record.
    pub truncated: bool,
}

impl Recording {
    /// Views of all ranges, with the decisions.
    pub fn views(&self) -> Recorded<'_> {
        Recorded { views: self.input.views(), recorded: &self.recorded }
    }

    /// Reads a capture to its end.
    ///
    /// # Errors
    /// Whatever the reader finds wrong. A capture that ends inside a record is not wrong but `truncated`.
    pub fn read(mut reader: CaptureReader) -> Result<Recording, CaptureError> {
        let mut recording = Recording::default();
        while let Some(record) = reader.next_record()? {
            match record {
                Record::Clear(version) => recording.input.push_clear(version),
                Record::Batch { batch, recorded } => {
                    recording.input.push_batch(batch);
                    recording.recorded.push(recorded);
                }
            }
        }
        recording.truncated = reader.truncated();
        Ok(recording)
    }
}
