//! The checker: is a committed history strictly serializable?
//!
//! The order of commits is known, so nothing is searched: the transactions are applied one by one to a plain map, and
//! 1. every read of every transaction, whatever became of it, is what the map held at its read version;
//! 2. every read of a committed transaction is also what the map holds right before it commits: nothing that it read was
//!    overwritten in between;
//! 3. a transaction that began after another one's outcome was known stands behind it in the order.
//!
//! A transaction that only read stands behind all commits at its read version. It shares nothing with any conflict set.

use crate::history::{Outcome, Position, Read, Record, escape};
use crate::keys::{Key, Mutation, Range, Value};
use resolver_types::Version;
use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Included};
use thiserror::Error;

/// Why a history is not strictly serializable, or says too little to tell.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Unexplained {
    /// Two transactions of one number.
    #[error("two transactions have the id {0}")]
    SameId(u64),
    /// A committed transaction does not say where.
    #[error("transaction {0} is committed and has no commit position")]
    NoPosition(u64),
    /// A transaction that did not commit says where it did.
    #[error("transaction {0} has a commit position and is neither committed nor unknown")]
    NeedlessPosition(u64),
    /// A transaction does not say when it read.
    #[error("transaction {0} has reads, or is read_only, and has no read version")]
    NoReadVersion(u64),
    /// A transaction says that it only read, and wrote.
    #[error("transaction {0} is read_only and has writes")]
    ReadOnlyWrites(u64),
    /// Two transactions at one place.
    #[error("transactions {first} and {second} both commit at version {}, index {}", position.version, position.index)]
    SamePosition {
        /// One of them.
        first: u64,
        /// The other.
        second: u64,
        /// The place.
        position: Position,
    },
    /// A transaction read at or above the version at which it committed.
    #[error("transaction {id} read at version {read_version} and committed at {}", commit.version)]
    ReadsTheFuture {
        /// The transaction.
        id: u64,
        /// The version it read at.
        read_version: Version,
        /// Where it committed.
        commit: Position,
    },
    /// A read is not what was there at its read version.
    #[error("transaction {id} read at version {read_version} and {difference}")]
    Snapshot {
        /// The transaction.
        id: u64,
        /// The version it read at.
        read_version: Version,
        /// What it saw, and what was there.
        difference: Box<Difference>,
    },
    /// A read of a committed transaction was overwritten before it committed.
    #[error("transaction {id} committed at version {}, index {}, and {difference}", commit.version, commit.index)]
    Overwritten {
        /// The transaction.
        id: u64,
        /// Where it committed.
        commit: Position,
        /// What it saw, and what was there.
        difference: Box<Difference>,
    },
    /// The order of commits contradicts real time.
    #[error(
        "transaction {later} began at {start}, when {earlier} was known to be through since {end}, and stands before it"
    )]
    RealTime {
        /// The transaction that was through.
        earlier: u64,
        /// Since when.
        end: u64,
        /// The transaction that began afterwards.
        later: u64,
        /// When.
        start: u64,
    },
}

/// The first key of a read that was seen otherwise than it was.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("saw {} as {}, where it was {}", shown(key), value(seen), value(held))]
pub struct Difference {
    /// The key.
    pub key: Key,
    /// What the transaction saw.
    pub seen: Option<Value>,
    /// What was there.
    pub held: Option<Value>,
}

/// A key for people: the middle of a long one is left out.
fn shown(key: &[u8]) -> String {
    let text = escape(key);
    match (text.get(..24), text.get(text.len().saturating_sub(24)..)) {
        (Some(head), Some(tail)) if text.len() > 64 => format!("{head}...{tail}"),
        _ => text,
    }
}

fn value(value: &Option<Value>) -> &str {
    value.as_deref().unwrap_or("absent")
}

/// What was checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Checked {
    /// Transactions that took effect, those of unknown outcome included.
    pub committed: u64,
    /// Transactions that only read.
    pub read_only: u64,
    /// Transactions that took no effect.
    pub without_effect: u64,
    /// Reads that were explained.
    pub reads: u64,
}

/// A moment in the order of commits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Step {
    /// The transaction takes effect.
    Commit,
    /// All commits of this version are in: the transaction reads.
    Read,
}

/// Checks a history.
///
/// # Errors
/// The first transaction, in the order of commits, that cannot be explained.
pub fn check_history(records: &[Record]) -> Result<Checked, Unexplained> {
    records.iter().try_for_each(check_record)?;
    check_ids(records)?;
    let mut checked = Checked::default();
    let mut state = State::default();
    let order = order(records);
    check_positions(records, &order)?;
    for (_, step, index) in order {
        let record = &records[index];
        match step {
            Step::Read => state.explain(&record.reads).map_err(|difference| Unexplained::Snapshot {
                id: record.id,
                read_version: record.read_version.expect("only what has a read version reads"),
                difference: difference.into(),
            })?,
            Step::Commit => {
                state.explain(&record.reads).map_err(|difference| Unexplained::Overwritten {
                    id: record.id,
                    commit: record.commit.expect("only what has a position commits"),
                    difference: difference.into(),
                })?;
                record.writes.iter().for_each(|write| state.apply(write));
            }
        }
        checked.reads += record.reads.len() as u64;
    }
    check_real_time(records)?;
    for record in records {
        match (record.commit, record.outcome) {
            (Some(_), _) => checked.committed += 1,
            (None, Outcome::ReadOnly) => checked.read_only += 1,
            (None, _) => checked.without_effect += 1,
        }
    }
    Ok(checked)
}

/// What a transaction has to say by itself.
fn check_record(record: &Record) -> Result<(), Unexplained> {
    let id = record.id;
    match (record.outcome, record.commit) {
        (Outcome::Committed, None) => return Err(Unexplained::NoPosition(id)),
        (Outcome::ReadOnly | Outcome::Aborted, Some(_)) => return Err(Unexplained::NeedlessPosition(id)),
        _ => {}
    }
    let read_only = record.outcome == Outcome::ReadOnly;
    if record.read_version.is_none() && (read_only || !record.reads.is_empty()) {
        return Err(Unexplained::NoReadVersion(id));
    }
    if read_only && !record.writes.is_empty() {
        return Err(Unexplained::ReadOnlyWrites(id));
    }
    if let (Some(read_version), Some(commit)) = (record.read_version, record.commit)
        && !record.reads.is_empty()
        && read_version >= commit.version
    {
        return Err(Unexplained::ReadsTheFuture { id, read_version, commit });
    }
    Ok(())
}

fn check_ids(records: &[Record]) -> Result<(), Unexplained> {
    let mut ids: Vec<u64> = records.iter().map(|record| record.id).collect();
    ids.sort_unstable();
    match ids.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(Unexplained::SameId(pair[0])),
        None => Ok(()),
    }
}

/// All commits and reads, in the order of commits.
fn order(records: &[Record]) -> Vec<(Position, Step, usize)> {
    let mut order = Vec::new();
    for (index, record) in records.iter().enumerate() {
        if let Some(version) = record.read_version.filter(|_| !record.reads.is_empty()) {
            order.push((Position { version, index: u32::MAX }, Step::Read, index));
        }
        if let Some(commit) = record.commit {
            order.push((commit, Step::Commit, index));
        }
    }
    order.sort_unstable();
    order
}

fn check_positions(records: &[Record], order: &[(Position, Step, usize)]) -> Result<(), Unexplained> {
    let same = order.windows(2).find(|pair| {
        let [(left, Step::Commit, _), (right, Step::Commit, _)] = pair else { return false };
        left == right
    });
    match same {
        Some(&[(position, _, first), (_, _, second)]) => {
            Err(Unexplained::SamePosition { first: records[first].id, second: records[second].id, position })
        }
        _ => Ok(()),
    }
}

/// Where a transaction stands in the order of commits, if it took effect or only read.
fn place(record: &Record) -> Option<Position> {
    match record.outcome {
        Outcome::ReadOnly => record.read_version.map(|version| Position { version, index: u32::MAX }),
        _ => record.commit,
    }
}

fn check_real_time(records: &[Record]) -> Result<(), Unexplained> {
    let mut through: Vec<(u64, Position, &Record)> = Vec::new();
    let mut begun: Vec<(u64, Position, &Record)> = Vec::new();
    for record in records {
        let Some(place) = place(record) else { continue };
        through.extend(record.end.map(|end| (end, place, record)));
        begun.extend(record.start.map(|start| (start, place, record)));
    }
    through.sort_by_key(|&(end, ..)| end);
    begun.sort_by_key(|&(start, ..)| start);
    let mut through = through.into_iter().peekable();
    let mut last: Option<(u64, Position, &Record)> = None;
    for (start, place, record) in begun {
        while let Some(next) = through.next_if(|&(end, ..)| end < start) {
            last = Some(last.filter(|&(_, last, _)| last > next.1).unwrap_or(next));
        }
        if let Some((end, _, earlier)) = last.filter(|&(_, last, _)| last > place) {
            return Err(Unexplained::RealTime { earlier: earlier.id, end, later: record.id, start });
        }
    }
    Ok(())
}

/// The plain map.
#[derive(Debug, Default)]
struct State(BTreeMap<Key, Value>);

impl State {
    fn range<'a>(&'a self, range: &'a Range) -> impl Iterator<Item = (&'a Key, &'a Value)> {
        let bounds = (Included(&*range.begin), Excluded(&*range.end));
        let whole = range.begin < range.end;
        whole.then(|| self.0.range::<[u8], _>(bounds)).into_iter().flatten()
    }

    fn apply(&mut self, mutation: &Mutation) {
        match mutation {
            Mutation::Set(key, value) => {
                self.0.insert(key.clone(), value.clone());
            }
            Mutation::Clear(range) => {
                let keys: Vec<Key> = self.range(range).map(|(key, _)| key.clone()).collect();
                keys.iter().for_each(|key| {
                    self.0.remove(key);
                });
            }
        }
    }

    /// Whether the map holds what the reads saw.
    fn explain(&self, reads: &[Read]) -> Result<(), Difference> {
        reads.iter().try_for_each(|read| {
            let seen = read.found.iter().map(|(key, value)| (key, value));
            match first_difference(seen, self.range(&read.range)) {
                Some(difference) => Err(difference),
                None => Ok(()),
            }
        })
    }
}

/// The least key that two ascending lists tell different things about.
fn first_difference<'a>(
    seen: impl Iterator<Item = (&'a Key, &'a Value)>,
    held: impl Iterator<Item = (&'a Key, &'a Value)>,
) -> Option<Difference> {
    let (mut seen, mut held) = (seen.peekable(), held.peekable());
    loop {
        let key = match (seen.peek(), held.peek()) {
            (None, None) => return None,
            (Some((left, _)), Some((right, _))) => (*left).min(*right),
            (Some((key, _)), None) | (None, Some((key, _))) => *key,
        };
        let left = seen.next_if(|(at, _)| *at == key).map(|(_, value)| value);
        let right = held.next_if(|(at, _)| *at == key).map(|(_, value)| value);
        if left != right {
            return Some(Difference { key: key.clone(), seen: left.cloned(), held: right.cloned() });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::history::read_history;

    fn check(text: &str) -> Result<Checked, Unexplained> {
        check_history(&read_history(text.as_bytes()).expect("a history"))
    }

    /// `x` and `y` are there from version 1 on.
    const BEGIN: &str = r#"
        {"id":1,"outcome":"committed","commit":{"version":1,"index":0},"start":0,"end":10,"writes":[{"set":"x","value":"0"},{"set":"y","value":"0"}]}
    "#;

    fn after_begin(lines: &str) -> Result<Checked, Unexplained> {
        check(&format!("{BEGIN}{lines}"))
    }

    #[test]
    fn a_serial_history_is_accepted_and_counted() {
        let checked = after_begin(
            r#"
            {"id":2,"outcome":"committed","read_version":1,"commit":{"version":5,"index":0},"start":11,"end":20,"reads":[{"key":"x","value":"0"}],"writes":[{"set":"x","value":"1"}]}
            {"id":3,"outcome":"committed","read_version":1,"commit":{"version":5,"index":1},"start":12,"end":21,"reads":[{"key":"y","value":"0"},{"key":"z","value":null}],"writes":[{"clear":"y","end":"z"}]}
            {"id":4,"outcome":"read_only","read_version":5,"start":22,"end":23,"reads":[{"begin":"a","end":"zz","found":{"x":"1"}}]}
            {"id":5,"outcome":"aborted","read_version":1,"start":12,"end":30,"reads":[{"begin":"a","end":"zz","found":{"x":"0","y":"0"}}],"writes":[{"set":"x","value":"9"}]}
            {"id":6,"outcome":"unknown","start":12,"writes":[{"set":"y","value":"8"}]}
            {"id":7,"outcome":"unknown","commit":{"version":6,"index":0},"start":24,"writes":[{"set":"y","value":"7"}]}
            {"id":8,"outcome":"read_only","read_version":6,"start":25,"end":26,"reads":[{"key":"y","value":"7"}]}
            "#,
        );
        let expected = Checked { committed: 4, read_only: 2, without_effect: 2, reads: 9 };
        assert_eq!(checked, Ok(expected));
    }

    #[test]
    fn a_lost_update_is_rejected() {
        let lost = after_begin(
            r#"
            {"id":2,"outcome":"committed","read_version":1,"commit":{"version":5,"index":0},"reads":[{"key":"x","value":"0"}],"writes":[{"set":"x","value":"1"}]}
            {"id":3,"outcome":"committed","read_version":1,"commit":{"version":6,"index":0},"reads":[{"key":"x","value":"0"}],"writes":[{"set":"x","value":"1 too"}]}
            "#,
        );
        assert!(matches!(lost, Err(Unexplained::Overwritten { id: 3, .. })), "{lost:?}");
        let within_a_batch = after_begin(
            r#"
            {"id":2,"outcome":"committed","read_version":1,"commit":{"version":5,"index":1},"reads":[{"key":"x","value":"0"}],"writes":[{"set":"x","value":"1"}]}
            {"id":3,"outcome":"unknown","commit":{"version":5,"index":0},"writes":[{"set":"x","value":"2"}]}
            "#,
        );
        assert!(matches!(within_a_batch, Err(Unexplained::Overwritten { id: 2, .. })), "{within_a_batch:?}");
    }

    #[test]
    fn a_stale_read_is_rejected() {
        let stale = after_begin(
            r#"
            {"id":2,"outcome":"committed","read_version":1,"commit":{"version":5,"index":0},"reads":[],"writes":[{"set":"x","value":"1"}]}
            {"id":3,"outcome":"read_only","read_version":5,"reads":[{"key":"x","value":"0"}]}
            "#,
        );
        assert!(matches!(stale, Err(Unexplained::Snapshot { id: 3, .. })), "{stale:?}");
        let in_real_time = after_begin(
            r#"
            {"id":2,"outcome":"committed","commit":{"version":5,"index":0},"start":11,"end":20,"writes":[{"set":"x","value":"1"}]}
            {"id":3,"outcome":"read_only","read_version":4,"start":21,"reads":[{"key":"x","value":"0"}]}
            "#,
        );
        assert_eq!(in_real_time, Err(Unexplained::RealTime { earlier: 2, end: 20, later: 3, start: 21 }));
    }

    #[test]
    fn who_begins_at_the_moment_another_is_through_may_stand_before_it() {
        let at_once = after_begin(
            r#"
            {"id":2,"outcome":"committed","commit":{"version":5,"index":0},"start":11,"end":20,"writes":[{"set":"x","value":"1"}]}
            {"id":3,"outcome":"read_only","read_version":4,"start":20,"reads":[{"key":"x","value":"0"}]}
            "#,
        );
        assert!(at_once.is_ok(), "{at_once:?}");
    }

    #[test]
    fn a_write_skew_by_range_is_rejected() {
        let skew = after_begin(
            r#"
            {"id":2,"outcome":"committed","read_version":1,"commit":{"version":5,"index":0},"reads":[{"begin":"a","end":"m","found":{}}],"writes":[{"set":"n","value":"1"}]}
            {"id":3,"outcome":"committed","read_version":1,"commit":{"version":5,"index":1},"reads":[{"begin":"m","end":"x","found":{}}],"writes":[{"set":"b","value":"1"}]}
            "#,
        );
        let Err(Unexplained::Overwritten { id: 3, difference, .. }) = skew else { panic!("{skew:?}") };
        assert_eq!(difference.to_string(), "saw n as absent, where it was 1");
    }

    #[test]
    fn a_phantom_and_a_dirty_read_are_rejected() {
        let removed = after_begin(
            r#"
            {"id":2,"outcome":"committed","commit":{"version":5,"index":0},"writes":[{"clear":"x","end":"x\\x00"}]}
            {"id":3,"outcome":"committed","read_version":1,"commit":{"version":6,"index":0},"reads":[{"begin":"w","end":"z","found":{"x":"0","y":"0"}}]}
            "#,
        );
        assert!(matches!(removed, Err(Unexplained::Overwritten { id: 3, .. })), "{removed:?}");
        let dirty = after_begin(
            r#"
            {"id":2,"outcome":"aborted","writes":[{"set":"x","value":"never"}]}
            {"id":3,"outcome":"aborted","read_version":1,"reads":[{"key":"x","value":"never"}]}
            "#,
        );
        assert!(matches!(dirty, Err(Unexplained::Snapshot { id: 3, .. })), "{dirty:?}");
    }

    #[test]
    fn a_history_that_says_too_little_or_contradicts_itself_is_rejected() {
        let cases = [
            (r#"{"id":1,"outcome":"aborted"}"#, Unexplained::SameId(1)),
            (r#"{"id":2,"outcome":"committed"}"#, Unexplained::NoPosition(2)),
            (
                r#"{"id":2,"outcome":"aborted","commit":{"version":2,"index":0}}"#,
                Unexplained::NeedlessPosition(2),
            ),
            (r#"{"id":2,"outcome":"read_only"}"#, Unexplained::NoReadVersion(2)),
            (
                r#"{"id":2,"outcome":"read_only","read_version":1,"writes":[{"set":"x","value":""}]}"#,
                Unexplained::ReadOnlyWrites(2),
            ),
            (
                r#"{"id":2,"outcome":"committed","commit":{"version":1,"index":0}}"#,
                Unexplained::SamePosition {
                    first: 1,
                    second: 2,
                    position: Position { version: Version(1), index: 0 },
                },
            ),
            (
                r#"{"id":2,"outcome":"committed","read_version":3,"commit":{"version":3,"index":1},"reads":[{"key":"x","value":"0"}]}"#,
                Unexplained::ReadsTheFuture {
                    id: 2,
                    read_version: Version(3),
                    commit: Position { version: Version(3), index: 1 },
                },
            ),
        ];
        for (line, expected) in cases {
            assert_eq!(after_begin(line), Err(expected), "{line}");
        }
    }

    #[test]
    fn long_keys_are_shown_short() {
        assert_eq!(shown(&[b'k'; 64]).len(), 64);
        assert_eq!(shown(&[b'k'; 65]).len(), 51);
    }
}
