//! One resolver's tree behind the boundary: guarded against panics, with the fallback and the figures.

use crate::bridge::ffi::{BatchView, Comparison, Decided, Figures, Outcome, ReportedRead, Status};
use crate::layout::LAYOUT;
use crate::planted;
use crate::settings::Settings;
use crate::shadow::Shadow;
use crate::views;
use resolver_resolve::TreeSet;
use resolver_types::{Batch, BatchError, ConflictSet, Verdict, Verdicts, Version};
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// How many batches' worth of writes did not fit, and what the last one lacked.
#[derive(Clone, Copy)]
pub(crate) struct Fallback {
    needed: u64,
    available: u64,
}

/// A tree, the arrays of a batch, and counters.
pub(crate) struct Resolver {
    pub(crate) set: TreeSet,
    pub(crate) verdicts: Verdicts,
    reported: Vec<ReportedRead>,
    any_too_old: bool,
    pub(crate) shadow: Shadow,
    /// The version of the last batch, or of the clear after it.
    last: Version,
    /// What every key had before the first batch.
    base: Version,
    pub(crate) too_old_by_cutoff: u64,
    fallbacks: u64,
    pub(crate) empty_ranges: u64,
}

impl Resolver {
    fn new(set: TreeSet) -> Resolver {
        Resolver {
            set,
            verdicts: Verdicts::default(),
            reported: Vec::new(),
            any_too_old: false,
            shadow: Shadow::default(),
            last: Version::ZERO,
            base: Version::ZERO,
            too_old_by_cutoff: 0,
            fallbacks: 0,
            empty_ranges: 0,
        }
    }

    /// Whether a batch is how a new database begins: nothing, at the version that every key has already.
    /// No history takes a batch that is not above its newest version; this one changes nothing.
    pub(crate) fn begins(&self, batch: &Batch<'_>) -> bool {
        batch.transactions.is_empty() && batch.version == self.base && self.last == self.base
    }

    fn resolve(&mut self, batch: &Batch<'_>) -> Result<Option<Fallback>, BatchError> {
        if self.begins(batch) {
            self.verdicts.clear();
            self.reported.clear();
            self.any_too_old = false;
            return Ok(None);
        }
        self.set.judge(batch, &mut self.verdicts)?;
        self.empty_ranges += u64::from(self.set.empty_ranges());
        let result = self.set.commit(batch, &self.verdicts);
        let oldest = self.set.effective_oldest();
        let fallback = self.fall_back(batch.version, result)?;
        self.any_too_old = views::verdict_bytes(&self.verdicts.verdicts).contains(&(Verdict::TooOld as u8));
        if self.any_too_old {
            self.count_too_old(batch, oldest);
        }
        if !planted::keeps_reports() {
            self.reported.clear();
        }
        let reported = self.verdicts.reported.iter();
        self.reported.extend(reported.map(|&(transaction, read)| ReportedRead { transaction, read }));
        Ok(fallback)
    }

    fn count_too_old(&mut self, batch: &Batch<'_>, oldest: Version) {
        let decided = batch.transactions.iter().zip(&self.verdicts.verdicts);
        let by_cutoff = decided.filter(|(transaction, verdict)| {
            **verdict == Verdict::TooOld && transaction.read_version >= oldest
        });
        self.too_old_by_cutoff += by_cutoff.count() as u64;
    }

    /// Where a commit ended because the budget could not hold it, gives every key the batch's version:
    /// whatever was read below it conflicts from here on, so that no write that is missing can be
    /// missed.
    pub(crate) fn fall_back(
        &mut self,
        version: Version,
        result: Result<(), BatchError>,
    ) -> Result<Option<Fallback>, BatchError> {
        let fallback = match result {
            Ok(()) => None,
            Err(BatchError::OutOfBudget { needed, available, .. }) => {
                self.set.clear(version);
                self.base = version;
                self.fallbacks += 1;
                Some(Fallback { needed, available })
            }
            Err(error) => return Err(error),
        };
        self.last = version;
        Ok(fallback)
    }

    fn clear(&mut self, base: Version) {
        self.set.clear(base);
        (self.base, self.last) = (base, base);
        self.shadow.cleared();
    }

    fn figures(&self) -> Figures {
        let tree = self.set.tree();
        let reach = self.set.cutoff().map_or(self.base, |cutoff| cutoff.max(self.base));
        Figures {
            memory_bytes: self.set.memory_bytes(),
            peak_memory_bytes: self.set.peak_memory_bytes(),
            budget_bytes: tree.budget_bytes(),
            retained_versions: self.last.0.saturating_sub(reach.0),
            cutoff: self.set.cutoff().map_or(-1, |cutoff| cutoff.0),
            too_old_by_cutoff: self.too_old_by_cutoff,
            reclamations: tree.stats().reclamations,
            fallbacks: self.fallbacks,
            empty_ranges: self.empty_ranges,
            differences: self.shadow.differences,
        }
    }
}

/// The history of one resolver, as C++ holds it.
pub(crate) struct TreeHistory {
    /// `None` when it could not be made, or is not to be trusted any more.
    resolver: Option<Resolver>,
    message: String,
}

/// Makes an empty history, if the caller's layout number is ours.
pub(crate) fn make_tree(layout: u64, settings: &Settings) -> Box<TreeHistory> {
    let mut history = Box::new(TreeHistory { resolver: None, message: String::new() });
    if layout != LAYOUT {
        history.message = format!(
            "the C++ side has layout {layout:016x}, the Rust library {LAYOUT:016x}: they are of different builds"
        );
        return history;
    }
    match catch_unwind(|| TreeSet::new(settings.tree_config())) {
        Ok(Ok(set)) => history.resolver = Some(Resolver::new(set)),
        Ok(Err(error)) => history.message = error.to_string(),
        Err(panic) => history.message = panic_message(&*panic),
    }
    history
}

/// What a panic said.
fn panic_message(panic: &(dyn Any + Send)) -> String {
    let said = panic.downcast_ref::<String>().map(String::as_str).or(panic.downcast_ref::<&str>().copied());
    format!("panic: {}", said.unwrap_or("without a message"))
}

impl TreeHistory {
    pub(crate) fn message(&self) -> &str {
        &self.message
    }

    /// Runs a call on the tree. After a panic the tree is given up: nobody knows what it holds.
    fn guarded<T>(&mut self, call: impl FnOnce(&mut Resolver) -> Result<T, BatchError>) -> Result<T, Status> {
        let Some(resolver) = &mut self.resolver else { return Err(Status::Broken) };
        match catch_unwind(AssertUnwindSafe(|| call(resolver))) {
            Ok(Ok(done)) => Ok(done),
            Ok(Err(error)) => {
                self.message = error.to_string();
                Err(Status::Refused)
            }
            Err(panic) => {
                self.message = panic_message(&*panic);
                self.give_up();
                Err(Status::Broken)
            }
        }
    }

    /// Drops the tree.
    fn give_up(&mut self) {
        let resolver = self.resolver.take();
        // What a panic has left may panic again when it goes; there is nothing more to say about it.
        let _ = catch_unwind(AssertUnwindSafe(|| drop(resolver)));
    }

    pub(crate) fn clear(&mut self, base: i64) -> Status {
        let cleared = self.guarded(|resolver| {
            resolver.clear(Version(base));
            Ok(())
        });
        cleared.err().unwrap_or(Status::Done)
    }

    /// Decides a batch and applies it.
    ///
    /// # Safety
    /// As [`views::batch`].
    #[allow(unsafe_code)]
    pub(crate) unsafe fn resolve<'a>(&'a mut self, batch: &BatchView<'_>) -> Outcome<'a> {
        // SAFETY: what the caller vouches for.
        let batch = unsafe { views::batch(batch) };
        let ended = self.guarded(|resolver| resolver.resolve(&batch));
        let (status, needed, available) = ended.map_or_else(|status| (status, 0, 0), fallen_back);
        let decided = status == Status::Done || status == Status::FellBack;
        let (any_too_old, verdicts, reported) = match &self.resolver {
            Some(resolver) if decided => (
                resolver.any_too_old,
                views::verdict_bytes(&resolver.verdicts.verdicts),
                &resolver.reported[..],
            ),
            _ => (false, &[][..], &[][..]),
        };
        Outcome { status, needed, available, any_too_old, verdicts, reported }
    }

    /// Judges a batch that another history has decided, compares, and applies what that one committed.
    ///
    /// # Safety
    /// As [`views::batch`].
    #[allow(unsafe_code)]
    pub(crate) unsafe fn shadow(&mut self, batch: &BatchView<'_>, theirs: &Decided<'_>) -> Comparison {
        // SAFETY: what the caller vouches for.
        let batch = unsafe { views::batch(batch) };
        let ended = self.guarded(|resolver| resolver.follow(&batch, theirs));
        match ended {
            Ok((fallback, differences)) => {
                let count = differences.as_ref().map_or(0, |differences| differences.count);
                if let Some(differences) = differences {
                    self.message = differences.first;
                }
                let (status, needed, available) = fallen_back(fallback);
                Comparison { status, needed, available, differences: count }
            }
            Err(status) => {
                // A follower that has missed a batch knows nothing any more.
                self.give_up();
                Comparison { status, needed: 0, available: 0, differences: 0 }
            }
        }
    }

    pub(crate) fn figures(&self) -> Figures {
        self.resolver.as_ref().map_or_else(Figures::default, Resolver::figures)
    }
}

/// The status of a batch that was resolved, with what a fallback lacked.
fn fallen_back(fallback: Option<Fallback>) -> (Status, u64, u64) {
    fallback
        .map_or((Status::Done, 0, 0), |Fallback { needed, available }| (Status::FellBack, needed, available))
}
