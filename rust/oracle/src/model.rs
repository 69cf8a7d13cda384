//! The reference model: the rules of a conflict history, one after the other, over an ordered map.
//!
//! It is here to be right, not fast: it shares no code with the skip list or the tree, sorts nothing, keeps no ranks
//! and skips no key. A map holds, for each boundary key, the version of the segment that starts there and ends at the
//! next boundary; the empty key is always a boundary, so the segments tile the key space.

use resolver_types::{
    Batch, BatchError, ConflictSet, KeyRange, Retention, Stage, StageClock, StageTimes, Verdict, Verdicts,
    Version,
};
use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included, Unbounded};

/// The reference model. See the module for what it is.
///
/// A batch of `t` transactions with `r` reads and `w` writes over `n` segments costs, at worst, `r * n` segment
/// visits for its history check, `r * w` overlap tests, and `w * log n` plus one visit per overwritten boundary for
/// its writes.
#[derive(Clone, Debug)]
pub struct Model {
    retention: Retention,
    /// Boundary to the version of the segment that starts there.
    segments: BTreeMap<Vec<u8>, Version>,
    /// Bytes of all boundaries together.
    boundary_bytes: usize,
    /// The version of every key at creation or clear.
    base: Version,
    /// The version of the last committed batch.
    last: Option<Version>,
    /// The greatest `oldest` of the committed batches.
    effective_oldest: Version,
    /// The bound that a follower was told; [`Version::LOWEST`] before.
    floor: Version,
    /// The greatest version up to which history was given up; [`Version::LOWEST`] before.
    given_up: Version,
    /// Boundaries still to be put in before the old segments are given up again.
    until_expiry: usize,
    /// Version and length of the batch judged last, if nothing was committed since.
    judged: Option<(Version, usize, usize)>,
    peak_memory_bytes: u64,
    clock: StageClock,
}

impl Model {
    /// A history in which every key has version 0.
    pub fn new(retention: Retention) -> Model {
        let mut model = Model {
            retention,
            segments: BTreeMap::new(),
            boundary_bytes: 0,
            base: Version::ZERO,
            last: None,
            effective_oldest: Version::LOWEST,
            floor: Version::LOWEST,
            given_up: Version::LOWEST,
            until_expiry: 0,
            judged: None,
            peak_memory_bytes: 0,
            clock: StageClock::default(),
        };
        model.clear(Version::ZERO);
        model
    }

    /// How many segments the key space is cut into.
    pub fn segments(&self) -> usize {
        self.segments.len()
    }

    /// The history version of one key, [`Version::LOWEST`] where it was given up. Logarithmic in the number of segments.
    pub fn version_of(&self, key: &[u8]) -> Version {
        let (_, &version) = self
            .segments
            .range::<[u8], _>((Unbounded, Included(key)))
            .next_back()
            .expect("the empty key is a boundary");
        version
    }

    /// `oldest` as the retention sees it.
    fn oldest_of(&self, batch: &Batch<'_>) -> Version {
        match self.retention {
            Retention::Window => self.effective_oldest.max(batch.oldest),
            Retention::Budget => Version::LOWEST,
        }
    }

    /// Whether some key of the range has a version above the read version.
    fn conflicts(&self, range: &KeyRange<'_>, read_version: Version) -> bool {
        if range.is_empty() {
            return false;
        }
        self.version_of(range.begin) > read_version
            || self
                .segments
                .range::<[u8], _>((Excluded(range.begin), Excluded(range.end)))
                .any(|(_, &version)| version > read_version)
    }

    fn put_boundary(&mut self, key: &[u8], version: Version) {
        self.until_expiry = self.until_expiry.saturating_sub(1);
        if self.segments.insert(key.to_vec(), version).is_none() {
            self.boundary_bytes += key.len();
        }
    }

    fn remove_boundary(&mut self, key: &[u8]) {
        if self.segments.remove(key).is_some() {
            self.boundary_bytes -= key.len();
        }
    }

    /// Gives every key of the range the version; the rest of the key space keeps its own.
    fn overlay(&mut self, range: &KeyRange<'_>, version: Version) {
        if range.is_empty() {
            return;
        }
        let after = self.version_of(range.end);
        self.put_boundary(range.end, after);
        self.put_boundary(range.begin, version);
        let mut inside = Vec::new();
        while let Some((boundary, _)) =
            self.segments.range::<[u8], _>((Excluded(range.begin), Excluded(range.end))).next()
        {
            inside.clone_from(boundary);
            self.remove_boundary(&inside);
        }
    }

    /// Gives up what lies at or below the bound: from here on those segments count as older than everything, and
    /// neighbours of one version become one segment.
    fn give_up(&mut self, bound: Version) {
        let mut before = None;
        self.segments.retain(|_, version| {
            if *version <= bound {
                *version = Version::LOWEST;
            }
            before.replace(*version) != Some(*version)
        });
        self.boundary_bytes = self.segments.keys().map(Vec::len).sum();
        self.given_up = self.given_up.max(bound);
    }

    /// Forgets what neither the effective oldest nor the floor lets anybody ask for. The walk over all segments waits
    /// until as many boundaries were put in as the last walk left, so that it adds a constant to the cost of each.
    fn expire(&mut self) {
        let bound = self.effective_oldest.max(self.floor);
        if bound >= Version::ZERO && self.until_expiry == 0 {
            self.give_up(bound);
            self.until_expiry = self.segments.len();
        }
    }
}

/// Whether two ranges have a key in common.
fn overlap(left: &KeyRange<'_>, right: &KeyRange<'_>) -> bool {
    !left.is_empty() && !right.is_empty() && left.begin < right.end && right.begin < left.end
}

impl ConflictSet for Model {
    fn name(&self) -> &'static str {
        "model"
    }

    fn judge(&mut self, batch: &Batch<'_>, verdicts: &mut Verdicts) -> Result<(), BatchError> {
        verdicts.clear();
        self.judged = None;
        batch.check(self.last, self.base)?;
        self.clock.start();

        // Too old, then the check against the history, which reads only.
        let bound = self.oldest_of(batch).max(self.given_up).max(self.floor);
        for (index, transaction) in batch.transactions.iter().enumerate() {
            if transaction.reads > 0 && transaction.read_version < bound {
                verdicts.verdicts.push(Verdict::TooOld);
                continue;
            }
            let mut verdict = Verdict::Committed;
            for (read, range) in batch.reads(transaction).iter().enumerate() {
                if self.conflicts(range, transaction.read_version) {
                    verdict = Verdict::Conflict;
                    if !transaction.report {
                        break;
                    }
                    verdicts.reported.push((index as u32, read as u32));
                }
            }
            verdicts.verdicts.push(verdict);
        }
        self.clock.lap(Stage::CheckReads);

        // Within the batch, in order: against the writes of the earlier transactions that commit.
        let mut written: Vec<&KeyRange<'_>> = Vec::new();
        for (index, transaction) in batch.transactions.iter().enumerate() {
            if verdicts.verdicts[index] != Verdict::Committed {
                continue;
            }
            let reads = batch.reads(transaction);
            match reads.iter().position(|read| written.iter().any(|write| overlap(read, write))) {
                Some(read) => {
                    verdicts.verdicts[index] = Verdict::Conflict;
                    if transaction.report {
                        verdicts.reported.push((index as u32, read as u32));
                    }
                }
                None => written.extend(batch.writes(transaction)),
            }
        }
        verdicts.reported.sort_unstable();
        self.clock.lap(Stage::WithinBatch);

        self.judged = Some((batch.version, batch.transactions.len(), batch.ranges.len()));
        Ok(())
    }

    fn commit(&mut self, batch: &Batch<'_>, verdicts: &Verdicts) -> Result<(), BatchError> {
        let given = (batch.version, batch.transactions.len(), batch.ranges.len());
        if self.judged != Some(given) || verdicts.verdicts.len() != batch.transactions.len() {
            return Err(BatchError::NotJudged { version: batch.version });
        }
        self.judged = None;
        self.clock.start();
        for (transaction, &verdict) in batch.transactions.iter().zip(&verdicts.verdicts) {
            if verdict == Verdict::Committed {
                for write in batch.writes(transaction) {
                    self.overlay(write, batch.version);
                }
            }
        }
        self.last = Some(batch.version);
        self.effective_oldest = self.oldest_of(batch);
        self.peak_memory_bytes = self.peak_memory_bytes.max(self.memory_bytes());
        self.clock.lap(Stage::Apply);
        self.expire();
        self.clock.lap(Stage::Expire);
        Ok(())
    }

    fn clear(&mut self, base: Version) {
        self.segments.clear();
        self.boundary_bytes = 0;
        self.put_boundary(b"", base);
        self.base = base;
        self.last = None;
        self.effective_oldest = Version::LOWEST;
        self.floor = Version::LOWEST;
        self.given_up = Version::LOWEST;
        self.until_expiry = 0;
        self.judged = None;
        self.peak_memory_bytes = self.peak_memory_bytes.max(self.memory_bytes());
    }

    fn set_floor(&mut self, floor: Version) {
        self.floor = self.floor.max(floor);
    }

    fn cutoff(&self) -> Option<Version> {
        (self.given_up > Version::LOWEST).then_some(self.given_up)
    }

    fn effective_oldest(&self) -> Version {
        self.effective_oldest
    }

    /// The bytes of all boundaries, and a vector's and a version's fields for each; the map's own nodes are not counted.
    fn memory_bytes(&self) -> u64 {
        (self.boundary_bytes + self.segments.len() * (size_of::<Vec<u8>>() + size_of::<Version>())) as u64
    }

    fn peak_memory_bytes(&self) -> u64 {
        self.peak_memory_bytes
    }

    fn time_stages(&mut self, on: bool) {
        self.clock.switch(on);
    }

    fn stage_times(&self) -> StageTimes {
        self.clock.times()
    }
}
