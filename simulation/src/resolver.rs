//! A resolver: takes batches in the order of versions, whatever the order in which they come, decides each once, and answers a
//! repeated request with what it answered before. Every batch goes through the tree and through the skip list that follows it.

use crate::fault::Effect;
use crate::message::{Generation, ResolveReply, ResolveRequest, RoleMessage};
use crate::network::Network;
use crate::planted::PlantedBug;
use crate::violation::Violation;
use resolver_index::{Backing, Blocks, Config, ConfigError, Strategy};
use resolver_oracle::SkipList;
use resolver_resolve::{TreeConfig, TreeSet};
use resolver_types::{BatchError, ConflictSet, Retention, Verdict, Verdicts, Version};
use resolver_workloads::BatchBuf;
use std::collections::BTreeMap;
use std::rc::Rc;

/// The whole tree is checked once in so many batches, and at the end.
const VALIDATE_EVERY: u64 = 64;

/// The two conflict sets of a resolver.
pub(crate) struct Histories {
    tree: TreeSet,
    list: SkipList,
}

impl Histories {
    /// Empty ones, with the tree's budget.
    ///
    /// # Errors
    /// What the tree says about its budget.
    pub(crate) fn new(
        budget_bytes: u64,
        retention: Retention,
        strategy: Strategy,
    ) -> Result<Histories, ConfigError> {
        let index = Config { budget_bytes, backing: Backing::Heap, strategy, ..Config::default() };
        let tree = TreeSet::new(TreeConfig { retention, index })?;
        Ok(Histories { tree, list: SkipList::new(retention) })
    }

    /// Makes both empty, every key at `base`.
    pub(crate) fn clear(&mut self, base: Version) {
        self.tree.clear(base);
        self.list.clear(base);
    }
}

/// A resolver of one generation.
pub(crate) struct Resolver {
    generation: Generation,
    id: usize,
    life: i64,
    histories: Histories,
    /// The version of the batch decided last; -1 before the first.
    version: Version,
    /// Requests that wait for the batch before theirs, by its version.
    early: BTreeMap<Version, Vec<Rc<ResolveRequest>>>,
    /// By proxy: the answers that it may ask for again.
    answers: BTreeMap<usize, BTreeMap<Version, Rc<ResolveReply>>>,
    decided: u64,
    verdicts: Verdicts,
    followed: Verdicts,
}

impl Resolver {
    pub(crate) fn new(generation: Generation, id: usize, life: i64, histories: Histories) -> Resolver {
        Resolver {
            generation,
            id,
            life,
            histories,
            version: Version(-1),
            early: BTreeMap::new(),
            answers: BTreeMap::new(),
            decided: 0,
            verdicts: Verdicts::default(),
            followed: Verdicts::default(),
        }
    }

    /// The conflict sets, for the next generation.
    pub(crate) fn into_histories(self) -> Histories {
        self.histories
    }

    /// Takes a request, now or when its turn comes.
    ///
    /// # Errors
    /// What the conflict sets show that they must not.
    pub(crate) fn receive(
        &mut self,
        request: Rc<ResolveRequest>,
        network: &mut Network,
    ) -> Result<(), Violation> {
        let ordered = !network.planted.is(PlantedBug::IgnorePreviousVersion);
        if request.previous > self.version && ordered {
            network.faults.counters.note(Effect::OutOfOrder);
            self.early.entry(request.previous).or_default().push(request);
            return Ok(());
        }
        self.take(&request, network)?;
        while let Some(waiting) = self.early.remove(&self.version) {
            for request in waiting {
                self.take(&request, network)?;
            }
        }
        Ok(())
    }

    fn take(&mut self, request: &ResolveRequest, network: &mut Network) -> Result<(), Violation> {
        let again = request.previous < self.version && self.answer_again(request, network);
        if again && !network.planted.is(PlantedBug::DuplicateResolved) {
            return Ok(());
        }
        if let Some(proxy) = request.proxy {
            let answers = self.answers.entry(proxy).or_default();
            *answers = answers.split_off(&Version(request.received.0 + 1));
        }
        let reply = Rc::new(self.decide(request, network)?);
        self.version = self.version.max(request.version);
        if let Some(proxy) = request.proxy {
            self.answers.entry(proxy).or_default().insert(request.version, reply.clone());
            network.send(self.generation, RoleMessage::Resolved(proxy, reply));
        }
        Ok(())
    }

    /// Whether the request was decided before; then the answer goes out again, if it is still there.
    fn answer_again(&self, request: &ResolveRequest, network: &mut Network) -> bool {
        let Some(proxy) = request.proxy else { return false };
        let known = self.answers.get(&proxy).and_then(|answers| answers.get(&request.version));
        match known {
            Some(reply) => {
                network.faults.counters.note(Effect::AnsweredAgain);
                network.send(self.generation, RoleMessage::Resolved(proxy, reply.clone()));
            }
            None => network.faults.counters.note(Effect::TooLateToAnswer),
        }
        true
    }

    /// Decides a batch in both conflict sets and compares them.
    fn decide(&mut self, request: &ResolveRequest, network: &mut Network) -> Result<ResolveReply, Violation> {
        let buf = self.batch_of(request, network);
        let ranges = buf.ranges();
        let batch = buf.batch(&ranges);
        let (resolver, version) = (self.id, batch.version);
        let refused = |set, source| Violation::Refused { resolver, version, set, source };
        let Histories { tree, list } = &mut self.histories;
        let cutoff = tree.cutoff();
        if let Some(cutoff) = cutoff
            && !network.planted.is(PlantedBug::FollowerNotTold)
        {
            list.set_floor(cutoff);
        }
        tree.judge(&batch, &mut self.verdicts).map_err(|source| refused("tree", source))?;
        list.judge(&batch, &mut self.followed).map_err(|source| refused("skiplist", source))?;
        compare(resolver, version, &self.verdicts, &self.followed)?;
        list.commit(&batch, &self.verdicts).map_err(|source| refused("skiplist", source))?;
        match tree.commit(&batch, &self.verdicts) {
            Err(BatchError::OutOfBudget { .. }) => {
                network.faults.counters.note(Effect::OutOfBudget);
                let keeps_base = network.planted.is(PlantedBug::FallbackKeepsBase);
                self.histories.clear(if keeps_base { Version::ZERO } else { version });
            }
            Err(source) => return Err(refused("tree", source)),
            Ok(()) => self.check_cutoff(cutoff, version)?,
        }
        self.check_memory(version)?;
        self.decided += 1;
        if self.decided.is_multiple_of(VALIDATE_EVERY) {
            self.validate()?;
        }
        self.note(request, cutoff, network);
        Ok(self.reply(request))
    }

    fn batch_of(&self, request: &ResolveRequest, network: &Network) -> BatchBuf {
        // The planted mistake decides a repeated request as a batch of its own, right behind the last one.
        let repeated = network.planted.is(PlantedBug::DuplicateResolved) && request.version <= self.version;
        let version = if repeated { Version(self.version.0 + 1) } else { request.version };
        let mut buf = BatchBuf::new(version, Version(version.0 - self.life));
        for transaction in &request.transactions {
            buf.push_transaction(transaction.read_version, transaction.report);
            transaction.reads.iter().for_each(|range| buf.push_read(&range.begin, &range.end));
            transaction.writes.iter().for_each(|range| buf.push_write(&range.begin, &range.end));
        }
        buf
    }

    fn check_cutoff(&self, before: Option<Version>, version: Version) -> Result<(), Violation> {
        let after = self.histories.tree.cutoff();
        match before {
            Some(before) if after < Some(before) => Err(Violation::CutoffWentDown {
                resolver: self.id,
                version,
                before,
                after: after.unwrap_or(Version::LOWEST),
            }),
            _ => Ok(()),
        }
    }

    fn check_memory(&self, version: Version) -> Result<(), Violation> {
        let tree = &self.histories.tree;
        let (held, peak) = (tree.memory_bytes(), tree.peak_memory_bytes());
        let budget = tree.tree().budget_bytes();
        match is_within([held, peak, budget], tree.tree().blocks()) {
            true => Ok(()),
            false => Err(Violation::Memory { resolver: self.id, version, held, peak, budget }),
        }
    }

    /// Checks the whole tree.
    ///
    /// # Errors
    /// The first broken invariant.
    pub(crate) fn validate(&self) -> Result<(), Violation> {
        let broken = |broken| Violation::BrokenTree {
            resolver: self.id,
            version: self.version,
            broken: format!("{broken}"),
        };
        self.histories.tree.tree().validate().map(drop).map_err(broken)
    }

    fn note(&self, request: &ResolveRequest, cutoff: Option<Version>, network: &mut Network) {
        let counters = &mut network.faults.counters;
        if request.transactions.is_empty() {
            counters.note(Effect::EmptyBatch);
        }
        let oldest = Version(request.version.0 - self.life);
        for (transaction, verdict) in request.transactions.iter().zip(&self.verdicts.verdicts) {
            match verdict {
                Verdict::TooOld if transaction.read_version < oldest => counters.note(Effect::TooOld),
                Verdict::TooOld if Some(transaction.read_version) < cutoff => {
                    counters.note(Effect::TooOldByCutoff);
                }
                _ => {}
            }
        }
    }

    fn reply(&self, request: &ResolveRequest) -> ResolveReply {
        let range = |&(transaction, read): &(u32, u32)| {
            let range = &request.transactions[transaction as usize].reads[read as usize];
            (transaction, read, range.clone())
        };
        ResolveReply {
            resolver: self.id,
            version: request.version,
            verdicts: self.verdicts.verdicts.clone(),
            reported: self.verdicts.reported.iter().map(range).collect(),
        }
    }
}

/// Whether what is held is at most the peak, and that within the budget; and whether the blocks add up.
fn is_within(held_peak_budget: [u64; 3], blocks: Blocks) -> bool {
    held_peak_budget.is_sorted() && blocks.used + blocks.free == blocks.committed
}

fn compare(resolver: usize, version: Version, tree: &Verdicts, list: &Verdicts) -> Result<(), Violation> {
    let differs = tree.verdicts.iter().zip(&list.verdicts).position(|(tree, list)| tree != list);
    if let Some(transaction) = differs {
        let (tree, list) = (tree.verdicts[transaction], list.verdicts[transaction]);
        return Err(Violation::VerdictsDiffer { resolver, version, transaction, tree, list });
    }
    if tree.reported != list.reported {
        let only = |these: &Verdicts, those: &Verdicts| {
            these.reported.iter().copied().filter(|report| !those.reported.contains(report)).collect()
        };
        return Err(Violation::ReportsDiffer {
            resolver,
            version,
            tree: only(tree, list),
            list: only(list, tree),
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_within_its_bounds_or_a_violation() {
        let blocks = |used, free, committed| Blocks { used, free, committed, keys: 0, versions: 0 };
        for (bounds, sound) in
            [([5, 5, 5], true), ([4, 5, 6], true), ([6, 5, 7], false), ([5, 8, 7], false), ([8, 8, 7], false)]
        {
            assert_eq!(is_within(bounds, blocks(2, 3, 5)), sound, "{bounds:?}");
        }
        assert!(!is_within([5, 5, 5], blocks(2, 3, 4)) && !is_within([5, 5, 5], blocks(2, 2, 5)));
    }
}
