//! What a conflict set decides.

/// The decision about one transaction. The numbers are those of recorded captures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Verdict {
    /// A read range was overwritten after the read version.
    Conflict = 0,
    /// The read version lies below what the history can still decide.
    TooOld = 1,
    /// The transaction commits; its writes count.
    Committed = 3,
}

impl Verdict {
    /// The name used in reports: `conflict`, `too old`, `committed`.
    pub fn name(self) -> &'static str {
        match self {
            Verdict::Conflict => "conflict",
            Verdict::TooOld => "too old",
            Verdict::Committed => "committed",
        }
    }
}

/// The decisions about one batch: a verdict per transaction, and the conflicting read ranges of those losers that
/// asked for a report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verdicts {
    /// One verdict per transaction, in order.
    pub verdicts: Vec<Verdict>,
    /// `(transaction, index in its own read list)`, ascending, without duplicates; only transactions that asked for
    /// a report and are in conflict occur.
    pub reported: Vec<(u32, u32)>,
}

impl Verdicts {
    /// Empties both lists and keeps their memory.
    pub fn clear(&mut self) {
        self.verdicts.clear();
        self.reported.clear();
    }

    /// The reported read indices of one transaction, ascending. Logarithmic in the number of reports.
    pub fn reported_of(&self, transaction: u32) -> impl Iterator<Item = u32> + '_ {
        let first = self.reported.partition_point(|&(owner, _)| owner < transaction);
        self.reported[first..]
            .iter()
            .take_while(move |&&(owner, _)| owner == transaction)
            .map(|&(_, read)| read)
    }
}

/// A running hash over decisions: equal hashes are required before two candidates' times are compared.
///
/// FNV-1a, 64 bits, over each batch's number of transactions, its verdicts and its ascending reports, little-endian;
/// it depends on nothing but the decisions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DecisionHasher(u64);

impl Default for DecisionHasher {
    fn default() -> Self {
        DecisionHasher(0xcbf2_9ce4_8422_2325)
    }
}

impl DecisionHasher {
    fn byte(&mut self, byte: u8) {
        self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }

    fn word(&mut self, word: u32) {
        word.to_le_bytes().into_iter().for_each(|byte| self.byte(byte));
    }

    /// Adds the decisions about one batch.
    pub fn add(&mut self, verdicts: &Verdicts) {
        self.word(verdicts.verdicts.len() as u32);
        for &verdict in &verdicts.verdicts {
            self.byte(verdict as u8);
        }
        for &(transaction, read) in &verdicts.reported {
            self.word(transaction);
            self.word(read);
        }
    }

    /// The hash so far, as 16 lower-case hexadecimal digits.
    pub fn hex(&self) -> String {
        format!("{:016x}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_hash_sees_verdicts_reports_and_batch_borders() {
        let hash = |batches: &[Verdicts]| {
            let mut hasher = DecisionHasher::default();
            batches.iter().for_each(|batch| hasher.add(batch));
            hasher.hex()
        };
        let two = Verdicts { verdicts: vec![Verdict::Committed, Verdict::Conflict], reported: vec![(1, 0)] };
        let mut other = two.clone();
        other.reported[0].1 = 1;
        assert_ne!(hash(std::slice::from_ref(&two)), hash(&[other]));
        let split = |at: usize| {
            let (left, right) = two.verdicts.split_at(at);
            [left, right].map(|part| Verdicts { verdicts: part.to_vec(), reported: Vec::new() })
        };
        assert_ne!(hash(&split(1)), hash(&split(0)));
        assert_eq!(hash(&[]), "cbf29ce484222325");
    }

    #[test]
    fn reports_of_one_transaction_are_found_among_others() {
        let verdicts = Verdicts { verdicts: Vec::new(), reported: vec![(1, 4), (3, 0), (3, 2), (7, 1)] };
        assert_eq!(verdicts.reported_of(3).collect::<Vec<_>>(), [0, 2]);
        assert_eq!(verdicts.reported_of(2).count(), 0);
    }
}
