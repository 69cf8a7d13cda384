//! The environment variables, read once when the process starts.
//!
//! The table for operators stands in `fdb-patches/OPERATORS.md`; what each variable allows is said here,
//! in the words of the error.

use crate::bridge::ffi::Choice;
use resolver_index::{Backing, Config, LEAST_BUDGET};
use resolver_resolve::TreeConfig;
use resolver_types::Retention;
use std::ffi::OsString;
use thiserror::Error;

const HISTORY: &str = "RESOLVER_HISTORY";
const BUDGET: &str = "RESOLVER_BUDGET";
const BACKING: &str = "RESOLVER_BACKING";
const VECTOR_SEARCH: &str = "RESOLVER_VECTOR_SEARCH";

/// The greatest budget: what one tree can number is 8 TiB.
const MOST_BUDGET: u64 = 4 << 40;

const DEFAULT_BUDGET: u64 = 1 << 30;

/// A variable whose value is not allowed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{variable}={value}: allowed is {allowed}")]
pub(crate) struct BadValue {
    variable: &'static str,
    value: String,
    allowed: String,
}

/// What the environment asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Values {
    history: Choice,
    budget_bytes: u64,
    backing: Backing,
    vector_search: bool,
}

impl Default for Values {
    fn default() -> Values {
        Values {
            history: Choice::Tree,
            budget_bytes: DEFAULT_BUDGET,
            backing: Backing::preferred(),
            vector_search: true,
        }
    }
}

/// Bytes: digits, and at most one of `K`, `M`, `G`, `T` for powers of 1,024.
fn parse_bytes(value: &str) -> Option<u64> {
    let (digits, shift) = match value.as_bytes().last()? {
        b'K' => (&value[..value.len() - 1], 10),
        b'M' => (&value[..value.len() - 1], 20),
        b'G' => (&value[..value.len() - 1], 30),
        b'T' => (&value[..value.len() - 1], 40),
        _ => (value, 0),
    };
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse::<u64>().ok()?.checked_mul(1 << shift)
}

/// Reads the variables out of `lookup`. An empty value counts as not set.
fn read(lookup: impl Fn(&str) -> Option<OsString>) -> Result<Values, BadValue> {
    let mut values = Values::default();
    let mut take =
        |variable: &'static str, allowed: &str, parse: &mut dyn FnMut(&str, &mut Values) -> bool| {
            let Some(value) = lookup(variable).filter(|value| !value.is_empty()) else { return Ok(()) };
            if value.to_str().is_some_and(|value| parse(value, &mut values)) {
                return Ok(());
            }
            // One line, whatever the value holds.
            let value = value.to_string_lossy().escape_debug().to_string();
            Err(BadValue { variable, value, allowed: allowed.to_owned() })
        };
    take(HISTORY, "tree, skiplist or shadow", &mut |value, values| {
        values.history = match value {
            "tree" => Choice::Tree,
            "skiplist" => Choice::SkipList,
            "shadow" => Choice::Shadow,
            _ => return false,
        };
        true
    })?;
    let allowed = format!(
        "a number of bytes from {LEAST_BUDGET} to {MOST_BUDGET}, as digits, or as digits and one of K, M, G, T (1G is {})",
        1 << 30
    );
    take(BUDGET, &allowed, &mut |value, values| match parse_bytes(value) {
        Some(bytes) if (LEAST_BUDGET..=MOST_BUDGET).contains(&bytes) => {
            values.budget_bytes = bytes;
            true
        }
        _ => false,
    })?;
    take(BACKING, "heap, 4k, thp or hugetlb", &mut |value, values| match value.parse() {
        Ok(backing) => {
            values.backing = backing;
            true
        }
        Err(_) => false,
    })?;
    take(VECTOR_SEARCH, "on or off", &mut |value, values| {
        values.vector_search = match value {
            "on" => true,
            "off" => false,
            _ => return false,
        };
        true
    })?;
    Ok(values)
}

/// What the environment asks for, or what is wrong with it.
pub(crate) struct Settings {
    values: Values,
    error: String,
}

/// Reads the environment variables.
pub(crate) fn load_settings() -> Box<Settings> {
    Box::new(match read(|name| std::env::var_os(name)) {
        Ok(values) => Settings { values, error: String::new() },
        Err(error) => Settings { values: Values::default(), error: error.to_string() },
    })
}

impl Settings {
    pub(crate) fn error(&self) -> &str {
        &self.error
    }

    pub(crate) fn history(&self) -> Choice {
        self.values.history
    }

    pub(crate) fn history_name(&self) -> &str {
        match self.values.history {
            Choice::SkipList => "skiplist",
            Choice::Shadow => "shadow",
            _ => "tree",
        }
    }

    pub(crate) fn backing_name(&self) -> &str {
        self.values.backing.name()
    }

    /// How the tree is to be made. `oldest` is always obeyed.
    pub(crate) fn tree_config(&self) -> TreeConfig {
        let Values { budget_bytes, backing, vector_search, .. } = self.values;
        let index = Config { budget_bytes, backing, vector_search, ..Config::default() };
        TreeConfig { retention: Retention::Window, index }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with(variable: &'static str, value: &str) -> Result<Values, String> {
        read(|name| (name == variable).then(|| value.into())).map_err(|error| error.to_string())
    }

    #[test]
    fn without_variables_the_tree_answers_within_a_gibibyte() {
        assert_eq!(read(|_| None), Ok(Values::default()));
        assert_eq!(with(BUDGET, ""), Ok(Values::default()));
        assert_eq!(Values::default().history, Choice::Tree);
        assert_eq!(Values::default().budget_bytes, 1 << 30);
    }

    #[test]
    fn every_allowed_value_is_taken() {
        for (value, choice) in
            [("tree", Choice::Tree), ("skiplist", Choice::SkipList), ("shadow", Choice::Shadow)]
        {
            assert_eq!(with(HISTORY, value).unwrap().history, choice);
        }
        for (value, bytes) in
            [("8388608", 8 << 20), ("65536K", 64 << 20), ("12M", 12 << 20), ("3G", 3 << 30), ("4T", 4 << 40)]
        {
            assert_eq!(with(BUDGET, value).unwrap().budget_bytes, bytes, "{value}");
        }
        for backing in Backing::ALL {
            assert_eq!(with(BACKING, backing.name()).unwrap().backing, backing);
        }
        assert!(with(VECTOR_SEARCH, "on").unwrap().vector_search);
        assert!(!with(VECTOR_SEARCH, "off").unwrap().vector_search);
    }

    #[test]
    fn a_bad_value_is_one_line_with_variable_value_and_what_is_allowed() {
        for value in
            ["12Q", "G", "-1", "+5G", "1.5G", "1 G", "0", "1K", "5T", "18446744073709551616", "99999999999T"]
        {
            let error = with(BUDGET, value).unwrap_err();
            let start =
                format!("RESOLVER_BUDGET={value}: allowed is a number of bytes from {LEAST_BUDGET} to");
            assert!(error.starts_with(&start), "{error}");
        }
        assert_eq!(
            with(HISTORY, "Tree\n").unwrap_err(),
            "RESOLVER_HISTORY=Tree\\n: allowed is tree, skiplist or shadow"
        );
        assert_eq!(
            with(BACKING, "2m").unwrap_err(),
            "RESOLVER_BACKING=2m: allowed is heap, 4k, thp or hugetlb"
        );
        assert_eq!(with(VECTOR_SEARCH, "1").unwrap_err(), "RESOLVER_VECTOR_SEARCH=1: allowed is on or off");
    }
}
