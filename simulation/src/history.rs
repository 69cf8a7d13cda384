//! What clients did and saw, one transaction a line, in a form that other programs can write.
//!
//! # The file
//! JSON lines. Each line is one transaction, in any order; blank lines are skipped.
//!
//! | field | meaning |
//! | --- | --- |
//! | `id` | a number of its own |
//! | `outcome` | `committed`, `read_only`, `aborted`, or `unknown` (the client never learned) |
//! | `commit` | `{"version": V, "index": I}`: where it stands in the order of commits. Required if `committed`; with `unknown` it says that the transaction took effect; else absent |
//! | `read_version` | the version it read at: it saw all commits at or below it. Required for `read_only`, and where there are reads |
//! | `start`, `end` | moments on one clock: before the read version was asked for, and after the outcome was known. Optional: without them nothing is required of real time. Leave out `start` where a client set an old read version itself |
//! | `reads` | list of `{"key": K, "value": V or null}` and `{"begin": B, "end": E, "found": {K: V, ...}}`: all keys of `[B, E)` that were there |
//! | `writes` | list of `{"set": K, "value": V}` and `{"clear": B, "end": E}`, applied in order |
//!
//! Keys are texts; a byte that is not printable ASCII, and the backslash itself, is written `\xHH` (in JSON: `"\\x00"`). Before
//! the first commit there are no keys. Reads of a transaction's own writes are not to be listed.

use crate::keys::{Key, Mutation, Range, Value};
use resolver_types::Version;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::io::{self, BufRead, Write};
use thiserror::Error;

/// Where a transaction stands in the order of commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The version of its batch.
    pub version: Version,
    /// Its place in the batch.
    pub index: u32,
}

/// How a transaction ended, as far as its client knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// It took effect.
    Committed,
    /// It wrote nothing, so nobody was asked.
    ReadOnly,
    /// It was rejected, or given up before it was sent.
    Aborted,
    /// The client never learned.
    Unknown,
}

/// What one read saw: all keys of the range that were there, with their values, ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Read {
    /// The range that was read.
    pub range: Range,
    /// The keys found.
    pub found: Vec<(Key, Value)>,
}

/// One transaction of a history.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Record {
    /// A number of its own.
    pub id: u64,
    /// How it ended.
    pub outcome: Outcome,
    /// Where it took effect, if it did.
    pub commit: Option<Position>,
    /// The version it read at.
    pub read_version: Option<Version>,
    /// A moment before its read version was asked for.
    pub start: Option<u64>,
    /// A moment after its outcome was known.
    pub end: Option<u64>,
    /// What it read.
    pub reads: Vec<Read>,
    /// What it wrote, in order.
    pub writes: Vec<Mutation>,
}

/// Why a history cannot be read.
#[derive(Debug, Error)]
pub enum HistoryError {
    /// The file cannot be read.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// A line is no transaction.
    #[error("line {line}: {source}")]
    Line {
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with it.
        source: serde_json::Error,
    },
    /// A key has a backslash that begins no `\xHH`.
    #[error("line {line}: the key {key:?} has a backslash that begins no \\xHH")]
    Key {
        /// The line, counted from 1.
        line: usize,
        /// The key as it stands there.
        key: String,
    },
}

#[derive(Serialize, Deserialize)]
struct CommitLine {
    version: i64,
    index: u32,
}

#[derive(Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum ReadLine {
    Point { key: String, value: Option<Value> },
    Range { begin: String, end: String, found: BTreeMap<String, Value> },
}

#[derive(Serialize, Deserialize)]
#[serde(untagged, deny_unknown_fields)]
enum WriteLine {
    Set { set: String, value: Value },
    Clear { clear: String, end: String },
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Line {
    id: u64,
    outcome: Outcome,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    commit: Option<CommitLine>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    read_version: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    start: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    end: Option<u64>,
    #[serde(default)]
    reads: Vec<ReadLine>,
    #[serde(default)]
    writes: Vec<WriteLine>,
}

/// Reads a history.
///
/// # Errors
/// The first line that is none.
pub fn read_history(input: impl BufRead) -> Result<Vec<Record>, HistoryError> {
    let mut records = Vec::new();
    for (index, text) in input.lines().enumerate() {
        let text = text?;
        if text.trim().is_empty() {
            continue;
        }
        let line = index + 1;
        let parsed: Line =
            serde_json::from_str(&text).map_err(|source| HistoryError::Line { line, source })?;
        records.push(parsed.into_record().map_err(|key| HistoryError::Key { line, key })?);
    }
    Ok(records)
}

/// Writes a history.
///
/// # Errors
/// What the writer says.
pub fn write_history(records: &[Record], mut output: impl Write) -> io::Result<()> {
    for record in records {
        serde_json::to_writer(&mut output, &Line::of(record))?;
        output.write_all(b"\n")?;
    }
    output.flush()
}

impl Line {
    fn into_record(self) -> Result<Record, String> {
        let reads = self.reads.into_iter().map(ReadLine::into_read).collect::<Result<_, _>>()?;
        let writes = self.writes.into_iter().map(WriteLine::into_mutation).collect::<Result<_, _>>()?;
        let position =
            |commit: CommitLine| Position { version: Version(commit.version), index: commit.index };
        Ok(Record {
            id: self.id,
            outcome: self.outcome,
            commit: self.commit.map(position),
            read_version: self.read_version.map(Version),
            start: self.start,
            end: self.end,
            reads,
            writes,
        })
    }

    fn of(record: &Record) -> Line {
        let commit = |position: Position| CommitLine { version: position.version.0, index: position.index };
        Line {
            id: record.id,
            outcome: record.outcome,
            commit: record.commit.map(commit),
            read_version: record.read_version.map(|version| version.0),
            start: record.start,
            end: record.end,
            reads: record.reads.iter().map(ReadLine::of).collect(),
            writes: record.writes.iter().map(WriteLine::of).collect(),
        }
    }
}

impl ReadLine {
    fn into_read(self) -> Result<Read, String> {
        match self {
            ReadLine::Point { key, value } => {
                let key = unescape(key)?;
                let found = value.map(|value| (key.clone(), value)).into_iter().collect();
                Ok(Read { range: Range::point(&key), found })
            }
            ReadLine::Range { begin, end, found } => {
                let range = Range { begin: unescape(begin)?, end: unescape(end)? };
                let pair = |(key, value)| Ok((unescape(key)?, value));
                let mut found = found.into_iter().map(pair).collect::<Result<Vec<_>, String>>()?;
                found.sort();
                Ok(Read { range, found })
            }
        }
    }

    fn of(read: &Read) -> ReadLine {
        let beyond = |key: &Key| read.range.as_point() != Some(key);
        match read.range.as_point() {
            Some(key) if !read.found.iter().any(|(found, _)| beyond(found)) => ReadLine::Point {
                key: escape(key),
                value: read.found.first().map(|(_, value)| value.clone()),
            },
            _ => ReadLine::Range {
                begin: escape(&read.range.begin),
                end: escape(&read.range.end),
                found: read.found.iter().map(|(key, value)| (escape(key), value.clone())).collect(),
            },
        }
    }
}

impl WriteLine {
    fn into_mutation(self) -> Result<Mutation, String> {
        match self {
            WriteLine::Set { set, value } => Ok(Mutation::Set(unescape(set)?, value)),
            WriteLine::Clear { clear, end } => {
                Ok(Mutation::Clear(Range { begin: unescape(clear)?, end: unescape(end)? }))
            }
        }
    }

    fn of(mutation: &Mutation) -> WriteLine {
        match mutation {
            Mutation::Set(key, value) => WriteLine::Set { set: escape(key), value: value.clone() },
            Mutation::Clear(range) => {
                WriteLine::Clear { clear: escape(&range.begin), end: escape(&range.end) }
            }
        }
    }
}

/// A key as text.
pub(crate) fn escape(key: &[u8]) -> String {
    let mut text = String::with_capacity(key.len());
    for &byte in key {
        match byte {
            b' '..=b'~' if byte != b'\\' => text.push(char::from(byte)),
            _ => text.push_str(&format!("\\x{byte:02x}")),
        }
    }
    text
}

/// A key from its text; the text itself if it is none.
fn unescape(text: String) -> Result<Key, String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        if byte != b'\\' {
            bytes.push(byte);
            rest = behind;
            continue;
        }
        let digits = behind.strip_prefix(b"x").and_then(|digits| digits.split_at_checked(2));
        let parsed = digits.and_then(|(hex, behind)| {
            let hex = std::str::from_utf8(hex).ok()?;
            let plain = hex.bytes().all(|digit| digit.is_ascii_hexdigit());
            u8::from_str_radix(hex, 16).ok().filter(|_| plain).map(|byte| (byte, behind))
        });
        let Some((byte, behind)) = parsed else { return Err(text) };
        bytes.push(byte);
        rest = behind;
    }
    Ok(bytes.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_history_is_read_back_as_it_was_written() {
        let key = |bytes: &[u8]| Key::from(bytes);
        let records = [
            Record {
                id: 3,
                outcome: Outcome::Committed,
                commit: Some(Position { version: Version(9), index: 2 }),
                read_version: Some(Version(4)),
                start: Some(1),
                end: None,
                reads: vec![
                    Read { range: Range::point(&key(b"a\\\x00")), found: Vec::new() },
                    Read {
                        range: Range { begin: key(b""), end: key(b"\xff") },
                        found: vec![(key(b"k\xfe"), "v".into()), (key(b"~"), "w".into())],
                    },
                ],
                writes: vec![
                    Mutation::Set(key(b"\n"), "x".into()),
                    Mutation::Clear(Range { begin: key(b"a"), end: key(b"b") }),
                ],
            },
            Record {
                id: 4,
                outcome: Outcome::Unknown,
                commit: None,
                read_version: None,
                start: None,
                end: Some(5),
                reads: Vec::new(),
                writes: Vec::new(),
            },
        ];
        let mut text = Vec::new();
        write_history(&records, &mut text).expect("memory");
        assert_eq!(read_history(text.as_slice()).expect("its own history"), records);
    }

    #[test]
    fn what_is_no_history_is_refused_with_its_line() {
        let refused = |text: &str| match read_history(text.as_bytes()) {
            Err(HistoryError::Line { line, .. } | HistoryError::Key { line, .. }) => line,
            other => panic!("{text:?}: {other:?}"),
        };
        let fine = r#"{"id":1,"outcome":"aborted"}"#;
        assert_eq!(refused(&format!("{fine}\n\n{{\"id\":2}}")), 3);
        assert_eq!(refused("nonsense"), 1);
        assert_eq!(refused(r#"{"id":1,"outcome":"aborted","color":"red"}"#), 1);
        for key in [r"a\\x0", r"\\y00", r"\\x+1", r"\\"] {
            let line = format!(r#"{{"id":1,"outcome":"aborted","reads":[{{"key":"{key}","value":null}}]}}"#);
            assert_eq!(refused(&format!("{fine}\n{line}")), 2);
        }
    }
}
