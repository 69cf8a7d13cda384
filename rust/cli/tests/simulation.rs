//! `resolver simulate`, `check-history` and `fdb-sim` as they are used.

mod common;

use common::{json, run, stderr};
use serde_json::Value;
use std::path::PathBuf;

fn scratch(name: &str) -> String {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    path.to_str().expect("the path is text").to_owned()
}

#[test]
fn a_simulation_tells_its_hashes_and_its_history_can_be_checked() {
    let history = scratch("simulated.jsonl");
    let document = json(&["simulate", "--seeds", "3..5", "--json", "--history", &history], 0);
    assert_eq!((&document["seeds"], &document["failed"]), (&2.into(), &Value::Array(Vec::new())));
    let hashes = document["trace_hashes"].as_object().expect("hashes by seed");
    assert_eq!(hashes.keys().collect::<Vec<_>>(), ["3", "4"]);
    assert!(hashes.values().all(|hash| hash.as_str().is_some_and(|hash| hash.len() == 16)));
    assert!(document["faults"]["delay_resolve"].is_u64());
    let again = json(&["simulate", "--seeds", "4..5", "--json"], 0);
    assert_eq!(again["trace_hashes"]["4"], document["trace_hashes"]["4"]);

    let checked = json(&["check-history", &history, "--json"], 0);
    assert!(checked["committed"].as_u64().is_some_and(|committed| committed > 0));
    assert!(checked["failure"].is_null());
    // One value changed where it was read: that read is explained by nothing.
    let text = std::fs::read_to_string(&history).expect("the history");
    let mut lines: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("a JSON line")).collect();
    let read = lines
        .iter_mut()
        .find_map(|line| line["reads"].as_array_mut()?.iter_mut().find(|read| read["value"].is_string()));
    read.expect("a read that found a value")["value"] = "other".into();
    let changed: Vec<String> = lines.iter().map(Value::to_string).collect();
    let broken = scratch("changed.jsonl");
    std::fs::write(&broken, changed.join("\n")).expect("the scratch folder can be written");
    let checked = json(&["check-history", &broken, "--json"], 1);
    assert!(checked["failure"].as_str().is_some_and(|failure| failure.contains("other")), "{checked}");
}

#[test]
fn what_cannot_be_run_or_read_ends_with_2() {
    let nonsense = scratch("nonsense.jsonl");
    std::fs::write(&nonsense, "nonsense").expect("the scratch folder can be written");
    for args in [
        &["simulate", "--seeds", "5"][..],
        &["simulate", "--seeds", "5..5"],
        &["simulate", "--seeds", "0..1", "--faults", "some"],
        &["check-history", &nonsense],
        &["check-history", "/nowhere/history"],
        &[
            "fdb-sim",
            "--fdbserver",
            "/nowhere/fdbserver",
            "--seeds",
            "0..1",
            "--out",
            &scratch("out"),
            &nonsense,
        ],
    ] {
        let output = run(args);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {}", stderr(&output));
        assert!(output.stdout.is_empty(), "{args:?}");
    }
}
