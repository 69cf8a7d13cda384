//! One input through a pipelined and a cooperative tree: whatever can be seen of them has to be the same after every
//! batch.

use resolver_index::{Config, Strategy, Tasks};
use resolver_resolve::{TreeConfig, TreeSet};
use resolver_types::{BatchError, ConflictSet, Verdicts, Version};
use resolver_workloads::BatchBuf;

/// The two trees.
pub(crate) struct Twins {
    pipelined: TreeSet,
    pub(crate) cooperative: TreeSet,
    verdicts: [Verdicts; 2],
    batches: usize,
}

impl Twins {
    pub(crate) fn new(config: TreeConfig, tasks: Tasks) -> Twins {
        let make = |strategy| {
            let index = Config { strategy, ..config.index };
            TreeSet::new(TreeConfig { index, ..config }).expect("the tree can be made")
        };
        Twins {
            pipelined: make(Strategy::Pipelined),
            cooperative: make(Strategy::Cooperative(tasks)),
            verdicts: Default::default(),
            batches: 0,
        }
    }

    pub(crate) fn clear(&mut self, version: Version) {
        self.pipelined.clear(version);
        self.cooperative.clear(version);
    }

    /// Gives both the next batch; what differs. A batch that does not fit clears both. Of every `whole`th batch on,
    /// the whole trees are compared and checked.
    pub(crate) fn step(&mut self, buf: &BatchBuf, whole: usize) -> Option<String> {
        let ranges = buf.ranges();
        let batch = buf.batch(&ranges);
        let mut fits = [true; 2];
        for (at, set) in [&mut self.pipelined, &mut self.cooperative].into_iter().enumerate() {
            set.judge(&batch, &mut self.verdicts[at]).expect("the batch is legal");
            fits[at] = match set.commit(&batch, &self.verdicts[at]) {
                Ok(()) => true,
                Err(BatchError::OutOfBudget { .. }) => false,
                Err(refused) => panic!("{refused}"),
            };
        }
        self.batches += 1;
        let found = self.difference(self.batches.is_multiple_of(whole));
        if fits != [true; 2] {
            self.clear(batch.version);
        }
        let unlike = fits[0] != fits[1];
        found.or(unlike.then(|| "only one of them holds the batch".to_owned()))
    }

    fn difference(&self, whole: bool) -> Option<String> {
        let (pipelined, cooperative) = (self.pipelined.tree(), self.cooperative.tree());
        let unlike = |what: &str, pipelined: &dyn std::fmt::Debug, cooperative: &dyn std::fmt::Debug| {
            Some(format!("batch {}: {what} {cooperative:?}, not {pipelined:?}", self.batches))
        };
        if self.verdicts[0] != self.verdicts[1] {
            return Some(format!("batch {}: other decisions", self.batches));
        }
        if pipelined.cutoff() != cooperative.cutoff() {
            return unlike("cutoff", &pipelined.cutoff(), &cooperative.cutoff());
        }
        if pipelined.blocks() != cooperative.blocks() {
            return unlike("blocks", &pipelined.blocks(), &cooperative.blocks());
        }
        if self.pipelined.peak_memory_bytes() != self.cooperative.peak_memory_bytes() {
            return Some(format!("batch {}: another peak", self.batches));
        }
        if whole {
            if let Err(broken) = cooperative.validate() {
                return Some(format!("batch {}: {broken}", self.batches));
            }
            if pipelined.layout() != cooperative.layout() {
                return Some(format!("batch {}: other leaves", self.batches));
            }
        }
        None
    }
}
