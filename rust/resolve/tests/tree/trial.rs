//! One random run of the tree beside its references. Everything that can go wrong comes back as a
//! [`Finding`], so that the same run serves the tests, which want none, and the planted bugs, which want one.

use resolver_index::{Broken, Stats};
use resolver_oracle::{Model, SkipList};
use resolver_resolve::{TreeConfig, TreeSet};
use resolver_types::{Batch, BatchError, ConflictSet, Retention, Verdict, Verdicts};
use resolver_workloads::part::Part;
use resolver_workloads::{BatchBuf, RandomBatches, Rng};
use std::fmt;

/// What a run looks at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Trial {
    pub(crate) shape: &'static str,
    pub(crate) seed: u64,
    pub(crate) transactions: u64,
    pub(crate) config: TreeConfig,
    /// The whole tree is validated after one in so many batches; 0: never.
    pub(crate) validate_every: usize,
    /// Whether verdicts are compared with those of the following model and skip list, and of a model that
    /// never forgets.
    pub(crate) compare: bool,
    /// Whether the verdicts that all sets commit are changed at random, as if another set had given them.
    pub(crate) foreign: bool,
}

/// What went wrong.
#[derive(Clone, Debug)]
pub(crate) enum Finding {
    Broken(Broken),
    /// Another verdict or report than a reference's.
    Differs(&'static str),
    /// Something was committed over a write that the never-forgetting model knows.
    Forgotten,
    /// The second judgement of a batch was not the first one's.
    Impure,
    CutoffWentDown,
    /// The cutoff reached the version being written, and no effective oldest asked for it.
    CutoffReachedBatch,
    OverBudget,
    Refused(BatchError),
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Finding::Broken(broken) => broken.fmt(f),
            Finding::Differs(name) => write!(f, "decides unlike the {name}"),
            Finding::Forgotten => f.write_str("commits over a forgotten write"),
            Finding::Impure => f.write_str("judges differently the second time"),
            Finding::CutoffWentDown => f.write_str("cutoff goes down"),
            Finding::CutoffReachedBatch => f.write_str("cutoff reaches the batch"),
            Finding::OverBudget => f.write_str("holds more than the budget"),
            Finding::Refused(error) => write!(f, "refuses a batch: {error}"),
        }
    }
}

/// What a run came to.
#[derive(Clone, Debug)]
#[allow(dead_code)] // not every binary that runs trials looks at all of it
pub(crate) struct Outcome {
    pub(crate) stats: Stats,
    /// Batches that did not fit even an empty tree; all sets were cleared then.
    pub(crate) cleared: u64,
}

impl Trial {
    /// A run that validates and compares after every batch.
    pub(crate) fn new(shape: &'static str, seed: u64, transactions: u64, config: TreeConfig) -> Trial {
        Trial { shape, seed, transactions, config, validate_every: 1, compare: true, foreign: false }
    }

    /// Runs it; says in which batch something went wrong.
    pub(crate) fn run(&self) -> Result<Outcome, (usize, Finding)> {
        let batches = RandomBatches::new(self.shape, self.seed, self.transactions).expect("a shape");
        self.run_batches(batches)
    }

    /// Runs it over the given batches.
    pub(crate) fn run_batches(
        &self,
        batches: impl Iterator<Item = BatchBuf>,
    ) -> Result<Outcome, (usize, Finding)> {
        let mut sets = Sets::new(self);
        for (number, buf) in batches.enumerate() {
            let ranges = buf.ranges();
            sets.step(self, number, &buf.batch(&ranges)).map_err(|finding| (number, finding))?;
        }
        if self.validate_every > 0 {
            sets.tree.tree().validate().map_err(|broken| (usize::MAX, Finding::Broken(broken)))?;
        }
        Ok(Outcome { stats: *sets.tree.tree().stats(), cleared: sets.cleared })
    }
}

struct Sets {
    tree: TreeSet,
    model: Model,
    list: SkipList,
    /// Is given what the tree commits, and never forgets.
    witness: Model,
    own: Verdicts,
    other: Verdicts,
    rng: Rng,
    cleared: u64,
}

impl Sets {
    fn new(trial: &Trial) -> Sets {
        Sets {
            tree: TreeSet::new(trial.config).expect("the tree can be made"),
            model: Model::new(trial.config.retention),
            list: SkipList::new(trial.config.retention),
            witness: Model::new(Retention::Budget),
            own: Verdicts::default(),
            other: Verdicts::default(),
            rng: Rng::new(trial.seed),
            cleared: 0,
        }
    }

    fn step(&mut self, trial: &Trial, number: usize, batch: &Batch<'_>) -> Result<(), Finding> {
        let cutoff = self.tree.cutoff();
        self.tree.judge(batch, &mut self.own).map_err(Finding::Refused)?;
        if number.is_multiple_of(5) {
            self.tree.judge(batch, &mut self.other).map_err(Finding::Refused)?;
            if self.own != self.other {
                return Err(Finding::Impure);
            }
        }
        if trial.compare {
            for reference in [&mut self.model as &mut dyn ConflictSet, &mut self.list] {
                if let Some(cutoff) = cutoff {
                    reference.set_floor(cutoff);
                }
                reference.judge(batch, &mut self.other).map_err(Finding::Refused)?;
                if self.own != self.other {
                    return Err(Finding::Differs(reference.name()));
                }
            }
        }
        if trial.foreign {
            for verdict in &mut self.own.verdicts {
                if self.rng.one_in(4) {
                    *verdict = self.rng.pick(&[Verdict::Committed, Verdict::Conflict]);
                }
            }
        }
        let committed = self.tree.commit(batch, &self.own);
        let full =
            matches!(committed, Err(BatchError::OutOfBudget { needed, available, .. }) if needed > available);
        if !full {
            committed.map_err(Finding::Refused)?;
        }
        if self.tree.memory_bytes() > self.tree.tree().budget_bytes()
            || self.tree.peak_memory_bytes() > trial.config.index.budget_bytes
        {
            return Err(Finding::OverBudget);
        }
        if self.tree.cutoff() < cutoff {
            return Err(Finding::CutoffWentDown);
        }
        if self.tree.cutoff() >= Some(batch.version) && self.tree.effective_oldest() < batch.version {
            return Err(Finding::CutoffReachedBatch);
        }
        if trial.validate_every > 0 && (full || number.is_multiple_of(trial.validate_every)) {
            self.tree.tree().validate().map_err(Finding::Broken)?;
        }
        if trial.compare {
            for reference in [&mut self.model as &mut dyn ConflictSet, &mut self.list] {
                reference.commit(batch, &self.own).map_err(Finding::Refused)?;
            }
        }
        if trial.compare && !trial.foreign {
            // Alone, without those that the tree rejects, what it commits must not conflict at all.
            let part = Part::of(batch, |index| self.own.verdicts[index] == Verdict::Committed);
            let part = part.batch();
            self.witness.judge(&part, &mut self.other).map_err(Finding::Refused)?;
            if self.other.verdicts.iter().any(|&verdict| verdict != Verdict::Committed) {
                return Err(Finding::Forgotten);
            }
            self.witness.commit(&part, &self.other).map_err(Finding::Refused)?;
        }
        if full {
            self.cleared += 1;
            for set in
                [&mut self.tree as &mut dyn ConflictSet, &mut self.model, &mut self.list, &mut self.witness]
            {
                set.clear(batch.version);
            }
        }
        Ok(())
    }
}
