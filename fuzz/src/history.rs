//! A script through the tree, the skip list and the model at once.

use crate::script::{Script, Step};
use resolver_oracle::{Model, SkipList};
use resolver_resolve::{TreeConfig, TreeSet};
use resolver_types::{Batch, BatchError, ConflictSet, Retention, StageTimes, Verdicts, Version};
use resolver_workloads::compare::Comparison;

/// The tree, held to what it promises with every call.
struct Watched {
    tree: TreeSet,
    budget_bytes: u64,
    again: Verdicts,
}

impl Watched {
    fn check_memory(&self) {
        let blocks = self.tree.tree().blocks();
        assert_eq!(blocks.used + blocks.free, blocks.committed, "blocks do not add up");
        assert!(self.tree.memory_bytes() <= self.tree.peak_memory_bytes());
        assert!(self.tree.peak_memory_bytes() <= self.budget_bytes, "the budget is exceeded");
    }
}

impl ConflictSet for Watched {
    fn name(&self) -> &'static str {
        self.tree.name()
    }

    fn judge(&mut self, batch: &Batch<'_>, verdicts: &mut Verdicts) -> Result<(), BatchError> {
        self.tree.judge(batch, &mut self.again)?;
        self.tree.judge(batch, verdicts)?;
        assert_eq!(*verdicts, self.again, "the second judgement differs");
        Ok(())
    }

    fn commit(&mut self, batch: &Batch<'_>, verdicts: &Verdicts) -> Result<(), BatchError> {
        let before = self.tree.cutoff();
        let result = self.tree.commit(batch, verdicts);
        assert!(self.tree.cutoff() >= before, "the cutoff goes down");
        assert!(
            self.tree.cutoff() < Some(batch.version) || self.tree.effective_oldest() >= batch.version,
            "the cutoff reaches the batch"
        );
        self.check_memory();
        if let Err(BatchError::OutOfBudget { needed, available, .. }) = result {
            assert!(needed > available, "{needed} bytes were needed, {available} available");
            self.validate().expect("a tree without room is still a tree");
        }
        result
    }

    fn clear(&mut self, base: Version) {
        self.tree.clear(base);
        self.check_memory();
        assert_eq!(self.tree.cutoff(), None);
    }

    fn set_floor(&mut self, floor: Version) {
        self.tree.set_floor(floor);
    }

    fn cutoff(&self) -> Option<Version> {
        self.tree.cutoff()
    }

    fn effective_oldest(&self) -> Version {
        self.tree.effective_oldest()
    }

    fn memory_bytes(&self) -> u64 {
        self.tree.memory_bytes()
    }

    fn peak_memory_bytes(&self) -> u64 {
        self.tree.peak_memory_bytes()
    }

    fn time_stages(&mut self, on: bool) {
        self.tree.time_stages(on);
    }

    fn stage_times(&self) -> StageTimes {
        self.tree.stage_times()
    }

    fn validate(&self) -> Result<(), String> {
        self.tree.validate()
    }
}

/// Runs a script; whether any transaction was decided by all.
pub(crate) fn run(script: &Script, config: TreeConfig) -> bool {
    let tree = TreeSet::new(config).expect("the budget holds an empty tree");
    let budget_bytes = config.index.budget_bytes;
    let watched = Watched { tree, budget_bytes, again: Verdicts::default() };
    let references: Vec<Box<dyn ConflictSet>> =
        vec![Box::new(Model::new(config.retention)), Box::new(SkipList::new(config.retention))];
    let witness = Box::new(Model::new(Retention::Budget));
    let mut comparison = Comparison::new(Box::new(watched), references, witness).validating();
    let mut decided = false;
    for (number, step) in script.steps.iter().enumerate() {
        match step {
            Step::Clear(version) => comparison.clear(*version),
            Step::Batch(batch) => {
                let ranges = batch.ranges();
                if let Err(difference) = comparison.step(&batch.batch(&ranges)) {
                    panic!("step {number}: {difference}");
                }
                decided |= !batch.transactions().is_empty();
            }
        }
    }
    decided
}
