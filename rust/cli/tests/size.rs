//! `resolver size`: what it finds is held against itself, asked the other way round and at another size.

mod common;

use common::{json, run, stderr};
use serde_json::Value;

fn size(measure_at_most: &str, args: &[&str]) -> Value {
    json(&[&["size", "--json", "--measure-at-most", measure_at_most], args].concat(), 0)
}

fn number(history: &Value, field: &str) -> f64 {
    history[field].as_f64().unwrap_or_else(|| panic!("{field} is a number: {history}"))
}

#[test]
fn a_budget_that_is_found_for_a_window_holds_it() {
    let window = 6.0;
    let found = size("32MiB", &["--writes", "20000", "--window", "6"]);
    for name in ["tree", "skiplist"] {
        let history = &found[name];
        assert_eq!(number(history, "scaled_by"), 1.0);
        assert!((window..window * 1.05).contains(&number(history, "seconds")), "{history}");
        let budget = format!("{}", number(history, "budget_bytes"));
        let again = size("32MiB", &["--writes", "20000", "--budget", &budget]);
        let seconds = number(&again[name], "seconds");
        // The tree's is the very replay that was accepted; the skip list's window is sought to a part in 64.
        let least = if name == "tree" { window } else { window * 0.97 };
        assert!((least..window * 1.05).contains(&seconds), "{name}: {seconds}");
    }
    assert!(number(&found, "ratio") > 5.0, "{found}");
}

#[test]
fn what_is_scaled_is_near_what_is_measured() {
    let scaled = size("2MiB", &["--budget", "8MiB"]);
    let whole = size("8MiB", &["--budget", "8MiB"]);
    for name in ["tree", "skiplist"] {
        let (scaled, whole) = (&scaled[name], &whole[name]);
        assert_eq!((number(scaled, "scaled_by"), number(whole, "scaled_by")), (4.0, 1.0));
        assert_eq!(number(scaled, "measured_budget_bytes"), f64::from(2 << 20));
        assert!(number(scaled, "measured_peak_bytes") <= f64::from(2 << 20));
        let ratio = number(scaled, "seconds") / number(whole, "seconds");
        assert!((0.9..1.1).contains(&ratio), "{name}: {ratio}");
        assert!(number(scaled, "drift").abs() < 0.1 && whole["drift"].is_null());
    }
    let window = size("2MiB", &["--window", "60"]);
    for name in ["tree", "skiplist"] {
        assert!(number(&window[name], "scaled_by") > 1.0 && number(&window[name], "seconds") >= 60.0);
    }
}

#[test]
fn history_follows_the_shape() {
    let seconds =
        |args: &[&str]| number(&size("2MiB", &[&["--budget", "2MiB"], args].concat())["tree"], "seconds");
    let points = seconds(&["--points", "1"]);
    assert!(seconds(&["--points", "0"]) < 0.7 * points, "a range has two ends");
    assert!(seconds(&["--points", "1", "--key-bytes", "100"]) < 0.5 * points, "keys take room");
    assert!(seconds(&["--points", "1", "--keys", "200000"]) > 1.2 * points, "writes of the same keys do not");
    let slow = seconds(&["--points", "1", "--writes", "50000"]);
    assert!((1.9..2.1).contains(&(slow / points)), "half the writes, twice the time: {slow} of {points}");
}

#[test]
fn what_cannot_be_is_one_line() {
    for (args, said) in [
        (&["--writes", "0"][..], "0 writes a second"),
        (&["--points", "1.01"], "a share of points"),
        (&["--points", "nan"], "a share of points"),
        (&["--key-bytes", "11"], "keys of 11 bytes"),
        (&["--key-bytes", "10001"], "keys of 10001 bytes"),
        (&["--keys", "0"], "0 different keys"),
        (&["--span", "0"], "ranges of up to 0"),
        (&["--budget", "1023KiB"], "it must be at least"),
        (&["--budget", "lots"], "no size"),
        (&["--measure-at-most", "1"], "it must be at least"),
        (&["--window", "0"], "a window of 0"),
        (&["--window", "inf"], "a window of inf"),
        (&["--budget", "1MiB", "--keys", "100"], "do not fill"),
        (&["--budget", "1MiB", "--writes", "100000000", "--key-bytes", "10000"], "does not hold"),
    ] {
        let output = run(&[&["size"][..], args].concat());
        let stderr = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {stderr}");
        assert!(stderr.lines().count() == 1 && stderr.contains(said), "{args:?}: {stderr}");
        assert!(output.stdout.is_empty(), "{args:?}");
    }
}
