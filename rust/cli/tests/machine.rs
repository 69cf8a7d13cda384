//! `resolver latency` and `resolver doctor` as they are used.

mod common;

use common::{json, run, stderr};

#[test]
fn latency_has_a_row_for_every_doubling() {
    let document = json(&["latency", "--largest", "100KiB", "--json"], 0);
    let rows = document["rows"].as_array().expect("rows");
    let sizes: Vec<_> = rows.iter().map(|row| row["bytes"].as_u64()).collect();
    assert_eq!(sizes, [16 << 10, 32 << 10, 64 << 10].map(Some));
    assert!(rows.iter().all(|row| row["ordinary_ns"].as_f64().is_some_and(|ns| ns > 0.0)), "{document}");
}

#[test]
fn latency_refuses_what_is_no_size_for_it() {
    for (size, said) in [("1KiB", "16KiB to 64GiB"), ("1TiB", "16KiB to 64GiB"), ("big", "is no size")] {
        let output = run(&["latency", "--largest", size]);
        let stderr = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{size}: {stderr}");
        assert!(stderr.lines().count() == 1 && stderr.contains(said), "{size}: {stderr}");
        assert!(output.stdout.is_empty(), "{size}");
    }
}

#[test]
fn what_the_doctor_recommends_makes_a_tree() {
    let document = json(&["doctor", "--json"], 0);
    let pages = document["recommended_pages"].as_str().expect("pages");
    let capture = resolver_workloads::captures_dir().join("driver-tiny.fdbcap.zst");
    let capture = capture.to_str().expect("the path is text");
    let replayed = json(&["replay", capture, "--pages", pages, "--budget", "64MiB", "--json"], 0);
    assert_eq!(replayed["files"][0]["mismatches"], 0, "{replayed}");
    assert!(replayed["files"][0]["transactions"].as_u64() > Some(0), "{replayed}");
    let budget = document["recommended_budget_bytes"].as_u64();
    let memory = document["machine"]["memory_bytes"].as_u64();
    assert!(budget.zip(memory).is_none_or(|(budget, memory)| budget <= memory / 2), "{document}");
}
