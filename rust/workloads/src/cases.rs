//! Named cases from the field with their right verdicts, and the one way to run them over a history.
//!
//! One case a line of JSON: `case` (its name), `source`, `note`, and `ops` in order, each `{"clear": version}` or
//! `{"batch": {"version", "oldest", "txns": [{"rv", "report", "reads": [[begin, end], ...], "writes": [...]}]},
//! "expect": ["commit" | "conflict" | "tooold", ...], "expect_ranges": {"transaction": [read, ...]}}`; keys in
//! hexadecimal. Where `expect_ranges` stands, a reporting transaction that it does not name reports nothing.

use crate::BatchBuf;
use resolver_types::{ConflictSet, Verdict, Verdicts, Version};
use serde::Deserialize;
use serde::de::{Deserializer, Error as _};
use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;
use thiserror::Error;

const BUILTIN: &str = include_str!("../cases/cases.jsonl");

/// A named sequence of operations with the decisions that are right.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// The case's name.
    pub name: String,
    /// The public report or commit that it was built from, or `derived`.
    pub source: String,
    /// What to look at; may be empty.
    pub note: String,
    /// What to do, in order, with a fresh history.
    pub ops: Vec<CaseOp>,
}

/// One operation of a case.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CaseOp {
    /// Every key gets this version.
    Clear(Version),
    /// Judge and commit a batch.
    Batch {
        /// The batch.
        batch: BatchBuf,
        /// The right verdicts, one per transaction.
        expect: Vec<Verdict>,
        /// Where the case says them: the right reports, as [`Verdicts::reported`].
        expect_ranges: Option<Vec<(u32, u32)>>,
    },
}

/// Why a file of cases cannot be loaded.
#[derive(Debug, Error)]
pub enum CaseError {
    /// The operating system failed to read.
    #[error("cannot read: {0}")]
    Io(#[from] io::Error),
    /// A line is not a case.
    #[error("line {line} is not a case: {source}")]
    Syntax {
        /// The line, from 1.
        line: usize,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// A case contradicts itself.
    #[error("line {line}, case {case:?}, operation {op}: {problem}")]
    Inconsistent {
        /// The line, from 1.
        line: usize,
        /// The case's name.
        case: String,
        /// The operation, from 0.
        op: usize,
        /// What is wrong with it.
        problem: String,
    },
}

#[derive(Deserialize)]
struct CaseLine {
    case: String,
    source: String,
    #[serde(default)]
    note: String,
    ops: Vec<OpLine>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct OpLine {
    clear: Option<i64>,
    batch: Option<BatchLine>,
    #[serde(default)]
    expect: Vec<Expected>,
    expect_ranges: Option<BTreeMap<u32, Vec<u32>>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct BatchLine {
    version: i64,
    oldest: i64,
    txns: Vec<TransactionLine>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TransactionLine {
    rv: i64,
    report: bool,
    reads: Vec<(Key, Key)>,
    writes: Vec<(Key, Key)>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Expected {
    Commit,
    Conflict,
    TooOld,
}

impl From<Expected> for Verdict {
    fn from(expected: Expected) -> Verdict {
        match expected {
            Expected::Commit => Verdict::Committed,
            Expected::Conflict => Verdict::Conflict,
            Expected::TooOld => Verdict::TooOld,
        }
    }
}

/// A key, in hexadecimal in the file.
struct Key(Vec<u8>);

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Key, D::Error> {
        let hex = <std::borrow::Cow<'_, str>>::deserialize(deserializer)?;
        let digit = |byte: u8| (byte as char).to_digit(16).map(|digit| digit as u8);
        let byte = |pair: &[u8]| match *pair {
            [high, low] => Some(digit(high)? << 4 | digit(low)?),
            _ => None,
        };
        let key: Option<Vec<u8>> = hex.as_bytes().chunks(2).map(byte).collect();
        key.map(Key).ok_or_else(|| D::Error::custom(format!("{hex:?} is not a key in hexadecimal")))
    }
}

impl OpLine {
    /// The operation, or what is wrong with it.
    fn check(self) -> Result<CaseOp, String> {
        match (self.clear, self.batch) {
            (Some(version), None) => Ok(CaseOp::Clear(Version(version))),
            (None, Some(line)) => {
                let batch = line.batch();
                let expect: Vec<Verdict> = self.expect.into_iter().map(Verdict::from).collect();
                let transactions = batch.transactions();
                if expect.len() != transactions.len() {
                    return Err(format!("{} verdicts for {} transactions", expect.len(), transactions.len()));
                }
                let expect_ranges = self.expect_ranges.map(flatten_reports);
                for &(index, read) in expect_ranges.iter().flatten() {
                    let known = transactions
                        .get(index as usize)
                        .is_some_and(|transaction| transaction.report && read < transaction.reads);
                    if !known {
                        return Err(format!("no read {read} to report in transaction {index}"));
                    }
                }
                Ok(CaseOp::Batch { batch, expect, expect_ranges })
            }
            _ => Err("neither a clear nor a batch".to_owned()),
        }
    }
}

fn flatten_reports(reports: BTreeMap<u32, Vec<u32>>) -> Vec<(u32, u32)> {
    let mut flat: Vec<(u32, u32)> = reports
        .into_iter()
        .flat_map(|(transaction, reads)| reads.into_iter().map(move |read| (transaction, read)))
        .collect();
    flat.sort_unstable();
    flat.dedup();
    flat
}

impl BatchLine {
    fn batch(self) -> BatchBuf {
        let mut batch = BatchBuf::new(Version(self.version), Version(self.oldest));
        for transaction in self.txns {
            batch.push_transaction(Version(transaction.rv), transaction.report);
            for (begin, end) in transaction.reads {
                batch.push_read(&begin.0, &end.0);
            }
            for (begin, end) in transaction.writes {
                batch.push_write(&begin.0, &end.0);
            }
        }
        batch
    }
}

/// Loads cases, one a line.
///
/// # Errors
/// All of [`CaseError`].
pub fn load(reader: impl BufRead) -> Result<Vec<Case>, CaseError> {
    let mut cases = Vec::new();
    for (index, text) in reader.lines().enumerate() {
        let (line, text) = (index + 1, text?);
        let parsed: CaseLine =
            serde_json::from_str(&text).map_err(|source| CaseError::Syntax { line, source })?;
        let mut ops = Vec::with_capacity(parsed.ops.len());
        for (op, content) in parsed.ops.into_iter().enumerate() {
            let checked = content.check();
            ops.push(checked.map_err(|problem| CaseError::Inconsistent {
                line,
                case: parsed.case.clone(),
                op,
                problem,
            })?);
        }
        cases.push(Case { name: parsed.case, source: parsed.source, note: parsed.note, ops });
    }
    Ok(cases)
}

/// Loads a file of cases.
///
/// # Errors
/// All of [`CaseError`].
pub fn load_file(path: &Path) -> Result<Vec<Case>, CaseError> {
    load(BufReader::new(File::open(path)?))
}

/// The project's own cases.
pub fn builtin() -> Vec<Case> {
    load(BUILTIN.as_bytes()).expect("the built-in cases are well-formed")
}

/// Runs a case over a fresh history: every batch is judged twice (the second time must change nothing), compared, and
/// committed by the set's own verdicts.
///
/// # Errors
/// The first difference, in words: case, operation, expected and given decisions.
pub fn run_case(case: &Case, set: &mut dyn ConflictSet) -> Result<(), String> {
    let (mut verdicts, mut again) = (Verdicts::default(), Verdicts::default());
    for (index, op) in case.ops.iter().enumerate() {
        let place = || format!("case {}, operation {index}", case.name);
        match op {
            CaseOp::Clear(version) => set.clear(*version),
            CaseOp::Batch { batch, expect, expect_ranges } => {
                let ranges = batch.ranges();
                let view = batch.batch(&ranges);
                set.judge(&view, &mut verdicts).map_err(|error| format!("{}: {error}", place()))?;
                set.judge(&view, &mut again).map_err(|error| format!("{}: {error}", place()))?;
                if again != verdicts {
                    return Err(format!("{}: judged again, {again:?} follows {verdicts:?}", place()));
                }
                if verdicts.verdicts != *expect {
                    return Err(format!("{}: {:?}, not {expect:?}", place(), verdicts.verdicts));
                }
                let reported = expect_ranges.as_deref().unwrap_or_default();
                if verdicts.reported != reported {
                    return Err(format!("{}: reports {:?}, not {reported:?}", place(), verdicts.reported));
                }
                set.commit(&view, &verdicts).map_err(|error| format!("{}: {error}", place()))?;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use resolver_types::{Batch, BatchError, StageTimes};

    /// Commits everything, and reports nothing: wrong in most cases.
    struct Yes;

    impl ConflictSet for Yes {
        fn name(&self) -> &'static str {
            "yes"
        }

        fn judge(&mut self, batch: &Batch<'_>, verdicts: &mut Verdicts) -> Result<(), BatchError> {
            verdicts.clear();
            verdicts.verdicts.resize(batch.transactions.len(), Verdict::Committed);
            Ok(())
        }

        fn commit(&mut self, _: &Batch<'_>, _: &Verdicts) -> Result<(), BatchError> {
            Ok(())
        }

        fn clear(&mut self, _: Version) {}

        fn set_floor(&mut self, _: Version) {}

        fn cutoff(&self) -> Option<Version> {
            None
        }

        fn effective_oldest(&self) -> Version {
            Version::LOWEST
        }

        fn memory_bytes(&self) -> u64 {
            0
        }

        fn peak_memory_bytes(&self) -> u64 {
            0
        }

        fn time_stages(&mut self, _: bool) {}

        fn stage_times(&self) -> StageTimes {
            StageTimes::default()
        }
    }

    #[test]
    fn the_builtin_cases_load_with_every_verdict_and_report() {
        let cases = builtin();
        assert_eq!(cases.len(), 42);
        let mut seen = [0usize; 4];
        let mut reports = 0;
        for case in &cases {
            for op in &case.ops {
                if let CaseOp::Batch { expect, expect_ranges, .. } = op {
                    expect.iter().for_each(|&verdict| seen[verdict as usize] += 1);
                    reports += expect_ranges.iter().flatten().count();
                }
            }
        }
        assert!(seen[0] > 0 && seen[1] > 0 && seen[3] > 0 && reports > 0, "{seen:?}, {reports} reports");
        let empty = cases.iter().find(|case| case.name == "empty_key_and_low_edge").unwrap();
        assert!(empty.source.len() > 3);
    }

    #[test]
    fn running_a_case_finds_wrong_verdicts() {
        let blind = r#"{"case":"blind","source":"derived","ops":[{"clear":1},{"batch":{"version":2,"oldest":0,
            "txns":[{"rv":0,"report":false,"reads":[],"writes":[["61","62"]]}]},"expect":["commit"]}]}"#;
        let blind = load(blind.replace('\n', "").as_bytes()).unwrap();
        assert_eq!(run_case(&blind[0], &mut Yes), Ok(()));
        let cases = builtin();
        for case in &cases {
            assert!(run_case(case, &mut Yes).is_err(), "{} has no loser", case.name);
        }
        let error = run_case(&cases[0], &mut Yes).unwrap_err();
        assert!(error.contains(&cases[0].name) && error.contains("Conflict"), "{error}");
    }

    #[test]
    fn malformed_cases_are_refused_with_their_line() {
        let good = r#"{"case":"a","source":"derived","ops":[{"clear":1}]}"#;
        let load = |second: &str| load(format!("{good}\n{second}\n").as_bytes());
        assert_eq!(load(good).unwrap().len(), 2);
        assert!(matches!(load("{"), Err(CaseError::Syntax { line: 2, .. })));
        let batch = |reads: &str, expect: &str| {
            format!(
                r#"{{"case":"b","source":"derived","ops":[{{"batch":{{"version":1,"oldest":0,"txns":
                [{{"rv":0,"report":false,"reads":[{reads}],"writes":[]}}]}},{expect}}}]}}"#
            )
            .replace('\n', "")
        };
        assert_eq!(load(&batch(r#"["00","0a"]"#, r#""expect":["commit"]"#)).unwrap().len(), 2);
        let odd = load(&batch(r#"["00","0"]"#, r#""expect":["commit"]"#));
        assert!(matches!(odd, Err(CaseError::Syntax { line: 2, .. })));
        for expect in [r#""expect":[]"#, r#""expect":["conflict"],"expect_ranges":{"0":[0]}"#] {
            let contradiction = load(&batch(r#"["00","0a"]"#, expect));
            assert!(matches!(contradiction, Err(CaseError::Inconsistent { line: 2, op: 0, .. })), "{expect}");
        }
        let neither = load(r#"{"case":"c","source":"derived","ops":[{}]}"#);
        assert!(matches!(neither, Err(CaseError::Inconsistent { .. })));
    }
}
