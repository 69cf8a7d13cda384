//! The `resolver` command as it is used: arguments in; JSON, lines and exit codes out.

mod common;

use common::{command, json, run, stderr};
use resolver_types::Verdict;
use resolver_workloads::capture::{CaptureReader, CaptureWriter, Record};
use resolver_workloads::{Workload, captures_dir};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::Stdio;

const STAGES: [&str; 6] = ["sort", "check_reads", "within_batch", "combine", "apply", "expire"];

fn capture(name: &str) -> String {
    path_text(&captures_dir().join(name))
}

fn path_text(path: &Path) -> String {
    path.to_str().expect("the path is text").to_owned()
}

/// Writes a file for one test.
fn scratch(name: &str, content: &[u8]) -> String {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::write(&path, content).expect("the scratch folder can be written");
    path_text(&path)
}

/// A committed capture in the plain form, after a change to its records.
fn changed(name: &str, change: impl FnOnce(&mut Vec<Record>)) -> Vec<u8> {
    let mut reader = CaptureReader::open(Path::new(&capture(name))).expect("a committed capture");
    let mut records = Vec::new();
    while let Some(record) = reader.next_record().expect("a committed capture") {
        records.push(record);
    }
    change(&mut records);
    let mut writer = CaptureWriter::new(Vec::new()).expect("memory");
    records.iter().for_each(|record| writer.record(record).expect("memory"));
    writer.finish().expect("memory")
}

/// Asserts that a run ends with code 2, one line on stderr that holds `said`, and nothing on stdout.
fn assert_refused(args: &[&str], said: &str) {
    let output = run(args);
    let stderr = stderr(&output);
    assert_eq!(output.status.code(), Some(2), "{args:?}: {stderr}");
    assert_eq!(stderr.lines().count(), 1, "{args:?}: {stderr}");
    assert!(stderr.contains(said), "{args:?}: {stderr}");
    assert!(output.stdout.is_empty(), "{args:?}");
}

fn assert_phases(phases: &Value) {
    let phases = phases.as_object().expect("phases are an object");
    assert_eq!(phases.len(), STAGES.len());
    assert!(STAGES.iter().all(|stage| phases[*stage].is_f64()), "{phases:?}");
}

#[test]
fn every_committed_capture_replays_without_a_mismatch() {
    let names = resolver_workloads::capture::captures_in(&captures_dir()).expect("the captures' folder");
    let names: Vec<String> = names.iter().map(|path| path_text(path)).collect();
    for index in ["tree", "skiplist", "model"] {
        let mut args = vec!["replay", "--json", "--index", index];
        args.extend(names.iter().map(String::as_str));
        let document = json(&args, 0);
        let files = document["files"].as_array().expect("files");
        assert_eq!(files.len(), names.len());
        for (file, name) in files.iter().zip(&names) {
            assert_eq!(file["file"], name.as_str());
            assert_eq!((&file["mismatches"], &file["report_mismatches"]), (&0.into(), &0.into()), "{name}");
            let count = |field: &str| file[field].as_u64().unwrap_or_else(|| panic!("{name} counts {field}"));
            let decided = count("committed") + count("conflicts") + count("too_old");
            assert_eq!(decided, count("transactions"), "{name}");
            assert_eq!((count("too_old_by_cutoff"), count("fallbacks")), (0, 0), "{name}");
            assert!(count("batches") > 0 && count("peak_memory_bytes") >= count("memory_bytes"), "{name}");
            assert!(file["seconds"].as_f64().is_some_and(|seconds| seconds > 0.0), "{name}");
            assert!(file["cutoff"].is_null() || file["cutoff"].is_i64(), "{name}");
            assert!(file["truncated"].is_boolean());
            assert_eq!(file["decision_hash"].as_str().map(str::len), Some(16), "{name}");
            assert_phases(&file["phases"]);
        }
    }
}

/// Replays all committed captures; returns the entries of the files.
fn replay_all(args: &[&str]) -> Vec<Value> {
    let names = resolver_workloads::capture::captures_in(&captures_dir()).expect("the captures' folder");
    let names: Vec<String> = names.iter().map(|path| path_text(path)).collect();
    let mut all = vec!["replay", "--json", "--validate"];
    all.extend(args);
    all.extend(names.iter().map(String::as_str));
    json(&all, 0)["files"].as_array().expect("files").clone()
}

#[test]
fn budgets_and_pages_change_no_decision_but_by_the_cutoff() {
    let roomy = replay_all(&[]);
    let mut cut = 0;
    for retention in ["window", "budget"] {
        for budget in ["256KiB", "300000", "1MiB", "64MiB"] {
            for (file, roomy) in
                replay_all(&["--budget", budget, "--retention", retention]).iter().zip(&roomy)
            {
                let (name, peak) = (&file["file"], file["peak_memory_bytes"].as_u64());
                assert_eq!(
                    (&file["mismatches"], &file["report_mismatches"]),
                    (&0.into(), &0.into()),
                    "{name}"
                );
                if budget == "256KiB" {
                    assert!(peak <= Some(256 << 10), "{name}: {peak:?}");
                }
                let parted = file["too_old_by_cutoff"] != 0 || file["fallbacks"] != 0;
                if retention == "window" && !parted {
                    assert_eq!(file["decision_hash"], roomy["decision_hash"], "{name} under {budget}");
                }
                cut += usize::from(parted);
            }
        }
    }
    assert!(cut > 0, "no budget was too small for a capture");

    let small = replay_all(&["--budget", "512KiB", "--pages", "heap"]);
    for pages in ["4k", "thp"] {
        // Where the kernel has no huge pages, the line that says so is all there is to see.
        let probe = run(&["replay", &capture("driver-tiny.fdbcap.zst"), "--pages", pages]);
        if probe.status.code() == Some(2) {
            assert!(stderr(&probe).contains("not available"), "{}", stderr(&probe));
            continue;
        }
        for (file, heap) in replay_all(&["--budget", "512KiB", "--pages", pages]).iter().zip(&small) {
            for same in ["decision_hash", "cutoff", "too_old_by_cutoff", "fallbacks"] {
                assert_eq!(file[same], heap[same], "{}: {same} on {pages}", file["file"]);
            }
        }
    }
}

#[test]
fn huge_pages_that_cannot_be_had_are_one_line() {
    // 4 TiB of them: no machine that runs tests has so many set aside.
    let good = capture("sim-cycle.fdbcap.zst");
    for command in [&["replay", &good][..], &["bench", &good], &["check"]] {
        assert_refused(&[command, &["--pages", "hugetlb", "--budget", "4TiB"]].concat(), "huge pages");
    }
}

#[test]
fn every_history_gives_the_same_hash_and_rounds_do_not_change_it() {
    let file = capture("driver-tiny.fdbcap.zst");
    let hash = |args: &[&str]| {
        let args = [&["replay", &file, "--json"], args].concat();
        json(&args, 0)["files"][0]["decision_hash"].clone()
    };
    let tree = hash(&[]);
    for args in [["--index", "tree"], ["--index", "skiplist"], ["--index", "model"], ["--rounds", "3"]] {
        assert_eq!(tree, hash(&args), "{args:?}");
    }
}

#[test]
fn a_flipped_verdict_is_named_and_exits_1() {
    let content = changed("sim-cycle.fdbcap.zst", |records| {
        let batches = records.iter_mut().filter_map(|record| match record {
            Record::Batch { recorded, .. } => Some(recorded),
            Record::Clear(_) => None,
        });
        let (_, recorded) = batches
            .enumerate()
            .find(|(_, recorded)| recorded.verdicts.get(1) == Some(&Verdict::Conflict))
            .expect("a conflict at place 1");
        recorded.verdicts[1] = Verdict::Committed;
    });
    let file = scratch("flipped.fdbcap", &content);
    let output = run(&["replay", &file]);
    assert_eq!(output.status.code(), Some(1));
    let line = stderr(&output);
    assert_eq!(line.lines().count(), 1, "{line}");
    assert!(line.starts_with(&format!("{file}: batch ")), "{line}");
    assert!(line.contains("transaction 1: recorded committed, tree decides conflict"), "{line}");

    let document = json(&["replay", &file, "--json"], 1);
    assert_eq!(document["files"][0]["mismatches"], 1);
    assert_eq!(document["files"][0]["report_mismatches"], 0);
}

#[test]
fn a_changed_report_is_a_report_mismatch() {
    let content = changed("sim-report-conflicting-keys.fdbcap.zst", |records| {
        let reported = records.iter_mut().find_map(|record| match record {
            Record::Batch { recorded, .. } if !recorded.reported.is_empty() => Some(&mut recorded.reported),
            _ => None,
        });
        reported.expect("a report").remove(0);
    });
    let file = scratch("unreported.fdbcap", &content);
    let document = json(&["replay", &file, "--json"], 1);
    assert_eq!(document["files"][0]["mismatches"], 0);
    assert_eq!(document["files"][0]["report_mismatches"], 1);
}

#[test]
fn at_most_20_mismatches_are_printed_and_all_are_counted() {
    let content = changed("sim-cycle.fdbcap.zst", |records| {
        for record in records {
            if let Record::Batch { recorded, .. } = record {
                recorded.verdicts.fill(Verdict::TooOld);
            }
        }
    });
    let file = scratch("all-wrong.fdbcap", &content);
    let output = run(&["replay", &file, &file, "--json"]);
    assert_eq!(output.status.code(), Some(1));
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(document["files"][1]["mismatches"], 3_259);
    let lines = stderr(&output);
    assert_eq!(lines.lines().filter(|line| line.contains("transaction")).count(), 20, "{lines}");
    assert!(lines.ends_with("and 6498 mismatches more\n"), "{lines}");
}

#[test]
fn a_truncated_capture_is_replayed_as_far_as_it_is_whole() {
    let content = changed("sim-write-during-read.fdbcap.zst", |_| ());
    for cut in [content.len() - 1, content.len() / 2, 9, 8] {
        let file = scratch(&format!("cut-{cut}.fdbcap"), &content[..cut]);
        let output = run(&["replay", &file, "--json"]);
        assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let truncated = cut > 8;
        assert_eq!(document["files"][0]["truncated"], truncated);
        assert_eq!(stderr(&output).contains("warning"), truncated);
    }
}

#[test]
fn the_cooperative_strategy_decides_alike() {
    let good = capture("sim-cycle.fdbcap.zst");
    let hash = |strategy: &[&str]| {
        let document = json(&[&["replay", "--json", &good], strategy].concat(), 0);
        document["files"][0]["decision_hash"].clone()
    };
    let one = ["--strategy", "cooperative", "--read-tasks", "1", "--write-groups", "1x1"];
    assert_eq!(hash(&one), hash(&[]));
    assert_eq!(hash(&one[..2]), hash(&[]));
    let traces = |strategy: &[&str]| {
        let document = json(&[&["simulate", "--json", "--seeds", "3..5"], strategy].concat(), 0);
        document["trace_hashes"].clone()
    };
    assert_eq!(traces(&one), traces(&[]));
    json(&[&["check", "--json", "--transactions", "20000", "--validate"], &one[..2]].concat(), 0);
}

#[test]
fn strategies_are_compared_on_one_input() {
    let good = capture("sim-cycle.fdbcap.zst");
    let document = json(
        &["compare-strategies", "--json", "--rounds", "1", "--batches", "20", "--tasks", "4:2x2", &good],
        0,
    );
    let workload = &document["workloads"][0];
    let candidates = workload["candidates"].as_array().expect("candidates");
    let settings: Vec<(&Value, &Value, &Value)> = candidates
        .iter()
        .map(|candidate| (&candidate["strategy"], &candidate["read_tasks"], &candidate["write_groups"]))
        .collect();
    let expected = [
        (&"pipelined".into(), &Value::Null, &Value::Null),
        (&"cooperative".into(), &1.into(), &"1x1".into()),
        (&"cooperative".into(), &4.into(), &"2x2".into()),
    ];
    assert_eq!(settings, expected);
    assert_eq!((&candidates[0]["ratio"], &candidates[1]["gain"]), (&1.0.into(), &1.0.into()));
    for candidate in &candidates[1..] {
        assert!(candidate["counters"]["task_visits"].as_u64() > Some(0), "{candidate}");
        assert_phases(&candidate["phases"]);
    }
    assert!(candidates[0]["counters"].get("task_visits").is_none());
    for (tasks, said) in [("16", "are no tasks"), ("0:2x8", "0 read tasks"), ("2:8", "are no write groups")] {
        assert_refused(&["compare-strategies", "--tasks", tasks, &good], said);
    }
}

#[test]
fn what_cannot_be_read_or_is_unknown_is_one_line_and_exits_2() {
    let good = capture("sim-cycle.fdbcap.zst");
    let content = changed("sim-cycle.fdbcap.zst", |_| ());
    assert_refused(&["replay", "no-such-file"], "no-such-file");
    assert_refused(&["replay", &path_text(&captures_dir())], "captures");
    assert_refused(&["replay", &scratch("empty", b"")], "too short");
    assert_refused(&["replay", &scratch("wrong-magic", b"FDBCAP02 and more")], "not a capture");
    assert_refused(&["replay", &good, &scratch("one-byte", b"\x00")], "one-byte");
    let mut broken = content.clone();
    broken[8] = b'X';
    assert_refused(&["replay", &scratch("unknown-record", &broken)], "impossible");
    // The batch's version, its oldest, the count, the read version and the flag stand before the count of reads, which
    // stands before the length of a key: an impossible one.
    let mut broken = content[..8 + 1 + 8 + 8 + 4 + 8 + 1].to_vec();
    broken[8] = b'B';
    broken[25..29].copy_from_slice(&1u32.to_le_bytes());
    broken[37] = 0;
    broken.extend_from_slice(&1u32.to_le_bytes());
    broken.extend_from_slice(&u32::MAX.to_le_bytes());
    broken.extend_from_slice(&[0; 64]);
    assert_refused(&["replay", &scratch("impossible-length", &broken)], "impossible");

    for command in [&["replay", &good][..], &["bench", &good], &["check"]] {
        let with = |option: &str, value: &str, said: &str| {
            assert_refused(&[command, &[option, value]].concat(), said);
        };
        for size in ["12Q", "", "MiB", "-1", "+5MiB", "1.5GiB", "99999999999999999999", "17179869184TiB"] {
            let size = if size.starts_with('-') { format!("--budget={size}") } else { size.to_owned() };
            match size.starts_with("--") {
                true => assert_refused(&[command, &[size.as_str()]].concat(), "is no size"),
                false => with("--budget", &size, "is no size"),
            }
        }
        with("--budget", "4KiB", "is below");
        with("--pages", "2m", "no such backing");
        with("--retention", "forever", "unknown retention");
        with("--strategy", "eager", "unknown strategy");
        with("--read-tasks", "2", "are of --strategy cooperative");
        let tasks = |option: &str, value: &str, said: &str| {
            let cooperative = ["--strategy", "cooperative", option, value];
            assert_refused(&[command, &cooperative[..]].concat(), said);
        };
        tasks("--read-tasks", "many", "is no number of read tasks");
        tasks("--read-tasks", "0", "0 read tasks: there must be from 1 to 1024");
        tasks("--write-groups", "8", "are no write groups");
        tasks("--write-groups", "2x0", "0 write tasks: there must be");
        tasks("--write-groups", "33x32", "1056 write tasks: there must be");
    }
    assert_refused(&["replay", &good, "--index", "rope"], "unknown index");
    assert_refused(&["bench", &scratch("no-batch", b"FDBCAP01")], "no batch to time");
    assert_refused(&["bench", "standalone-points", "--index", "skiplist"], "tree alone");
    assert_refused(&["bench", "no-such-workload"], "no file and no workload");
    assert_refused(&["bench", &good, "--against", "rope"], "unknown index");
    assert_refused(&["check", "--shape", "round"], "unknown shape");
    assert_refused(&["check", "--against", "model,rope"], "unknown index");
    for usage in [&["replay"][..], &[], &["bench", "--rounds", "0"], &["check", "--transactions", "many"]] {
        assert_eq!(run(usage).status.code(), Some(2), "{usage:?}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_panic() {
    let good = capture("sim-cycle.fdbcap.zst");
    for args in [&["replay", &good][..], &["replay", &good, "--json"], &["--help"]] {
        let mut child =
            command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it starts");
        drop(child.stdout.take());
        let output = child.wait_with_output().expect("it ends");
        assert_eq!(output.status.code(), Some(0), "{args:?}");
        assert_eq!(stderr(&output), "", "{args:?}");
    }
}

#[test]
fn bench_prints_the_fields_of_its_contract() {
    let file = capture("sim-cycle.fdbcap.zst");
    let inputs = [file.as_str(), "skiplisttest", "conflictset-points"];
    let args = ["bench", "--json", "--against", "model", "--rounds", "2", "--batches", "6"];
    let document = json(&[&args[..], &inputs].concat(), 0);
    let results = document["results"].as_array().expect("results");
    assert_eq!(results.len(), inputs.len());
    for (result, input) in results.iter().zip(inputs) {
        assert_eq!(result["workload"], input);
        assert_eq!(result["rounds"].as_array().map(Vec::len), Some(2));
        assert!(result["ratio"].is_f64() && result["noise"].is_f64(), "{result}");
        assert!(STAGES.iter().all(|stage| result["phase_ratios"].get(stage).is_some()), "{result}");
        assert_eq!(result["decision_hash"].as_str().map(str::len), Some(16));
        let candidates = result["candidates"].as_array().expect("candidates");
        let names: Vec<&Value> = candidates.iter().map(|candidate| &candidate["name"]).collect();
        assert_eq!(names, ["tree", "model"]);
        for candidate in candidates {
            assert!(candidate["seconds"].is_f64() && candidate["memory_bytes"].is_u64());
            assert_phases(&candidate["phases"]);
        }
    }
    assert_eq!(results[0]["batches"], 6);
    assert_eq!(results[1]["transactions"], 6 * 2_500);
    assert_eq!(results[1]["read_ranges"], 6 * 2_500);
    assert_eq!(results[2]["transactions"], 4 * 500, "a third of the batches is not timed");
}

#[test]
fn bench_prints_what_a_range_costs_in_each_phase() {
    let args = ["bench", "conflictset-points", "--rounds", "1", "--batches", "6", "--phases"];
    let output = run(&args);
    assert!(output.status.success(), "{}", stderr(&output));
    let text = String::from_utf8(output.stdout).expect("stdout is text");
    let mut rows = text.lines().skip_while(|line| !line.starts_with("phase "));
    assert_eq!(
        rows.next().map(|line| line.split_whitespace().collect::<Vec<_>>()),
        Some(vec!["phase", "of", "ranges", "tree", "skiplist", "ratio"])
    );
    let ranges = ["all 12000", "reads 8000", "all 12000", "writes 4000", "writes 4000", "writes 4000"];
    for (stage, ranges) in STAGES.iter().zip(ranges) {
        let row = rows.next().unwrap_or_default().split_whitespace().collect::<Vec<_>>();
        assert_eq!((row[0], [row[1], row[2]].join(" ")), (*stage, ranges.to_owned()));
        assert!((row[4], row[6]) == ("ns", "ns") && row[3].parse::<f64>().is_ok(), "{row:?}");
    }
}

#[test]
fn bench_alone_has_no_ratio_and_depends_on_its_seed() {
    let hash = |seed: &str| {
        let args =
            ["bench", "skiplisttest", "--index", "skiplist", "--json", "--rounds", "1", "--batches", "8"];
        let document = json(&[&args[..], &["--seed", seed]].concat(), 0);
        let result = &document["results"][0];
        assert!(result["ratio"].is_null());
        assert!(STAGES.iter().all(|stage| result["phase_ratios"][stage].is_null()));
        assert_eq!(result["candidates"].as_array().map(Vec::len), Some(1));
        result["decision_hash"].clone()
    };
    assert_eq!(hash("5"), hash("5"));
    assert_ne!(hash("5"), hash("6"));
}

#[test]
fn every_workload_runs_by_name_and_tree_and_skip_list_decide_the_same() {
    let (together, alone): (Vec<&str>, Vec<&str>) =
        Workload::names().into_iter().partition(|name| !name.starts_with("standalone"));
    let run = |inputs: &[&str], against: &[&str]| {
        let args =
            ["bench", "--json", "--index", "tree", "--rounds", "1", "--batches", "12", "--scale", "0.02"];
        json(&[&args[..], against, inputs].concat(), 0)
    };
    let document = run(&together, &["--against", "skiplist"]);
    let results = document["results"].as_array().expect("results");
    let names: Vec<&str> = results.iter().filter_map(|result| result["workload"].as_str()).collect();
    assert_eq!(names, together);
    assert!(results.iter().all(|result| result["ratio"].is_f64()));
    for result in run(&alone, &[])["results"].as_array().expect("results") {
        let phases = &result["candidates"][0]["phases"];
        let phase = |name: &str| phases[name].as_f64().expect("seconds");
        assert_eq!((phase("sort"), phase("within_batch"), phase("combine")), (0.0, 0.0, 0.0));
        assert!(phase("check_reads") > 0.0 && phase("apply") > 0.0, "{result}");
        let integrated = result["workload"].as_str().expect("a name").replace("standalone", "integrated");
        let with = names.iter().position(|name| *name == integrated).expect("it ran");
        assert_eq!(result["decision_hash"], results[with]["decision_hash"], "{integrated}");
    }
}

#[test]
fn a_name_that_is_a_file_wins() {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("wins");
    std::fs::create_dir_all(&folder).expect("the scratch folder can be written");
    std::fs::copy(capture("sim-cycle.fdbcap.zst"), folder.join("skiplisttest")).expect("a copy");
    let args = ["bench", "skiplisttest", "--json", "--rounds", "1"];
    let output = command(&args).current_dir(folder).output().expect("it starts");
    let document: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    assert_eq!(document["results"][0]["transactions"], 3_259);
}

#[test]
fn check_agrees_counts_every_kind_and_repeats() {
    let check = || {
        let mut document = json(&["check", "--json", "--transactions", "30000", "--seed", "11"], 0);
        let object = document.as_object_mut().expect("an object");
        assert!(object.remove("seconds").is_some_and(|seconds| seconds.is_f64()));
        document
    };
    let document = check();
    assert_eq!(document["transactions"], 30_000);
    assert_eq!((&document["seed"], &document["shape"]), (&11.into(), &"adversarial".into()));
    assert_eq!(document["failures"], 0);
    for kind in ["batches", "committed", "conflicts", "too_old", "too_old_by_cutoff", "reports"] {
        assert!(document[kind].as_u64().is_some_and(|count| count > 0), "{kind}");
    }
    assert!(document["fallbacks"].is_u64());
    for counter in ["reclamations", "key_bytes_stored", "subtrees_released", "leaves_merged"] {
        assert!(document["counters"][counter].as_u64().is_some_and(|count| count > 0), "{counter}");
    }
    assert_eq!(document, check());
}

#[test]
fn check_measures_wide_reads_beside_its_comparison() {
    let document =
        json(&["check", "--json", "--shape", "wide-reads", "--transactions", "2000", "--validate"], 0);
    let sizes = document["wide_reads"].as_array().expect("a list");
    let intervals: Vec<&Value> = sizes.iter().map(|size| &size["intervals"]).collect();
    assert_eq!(intervals, [50_000, 500_000, 5_000_000]);
    for size in sizes {
        let height = size["height"].as_u64().expect("a number");
        let reads = size["reads"].as_array().expect("a list");
        assert!(!reads.is_empty());
        for read in reads {
            assert!(
                read["visits"].as_u64().is_some_and(|visits| (1..=3 * height).contains(&visits)),
                "{read}"
            );
            assert!(read["ratio"].is_f64() && read["seconds"].is_f64(), "{read}");
        }
    }
    assert_refused(
        &["check", "--shape", "wide-reads", "--transactions", "1", "--budget", "1MiB"],
        "50000 intervals",
    );
    let other = json(&["check", "--json", "--transactions", "100"], 0);
    assert!(other["wide_reads"].is_null());
}

#[test]
fn bench_holds_the_tree_against_the_skip_list_by_default() {
    let file = capture("sim-cycle.fdbcap.zst");
    let document = json(&["bench", &file, "--json", "--rounds", "1"], 0);
    let result = &document["results"][0];
    assert!(result["ratio"].is_f64());
    assert_eq!(result["candidates"][0]["name"], "tree");
    assert_eq!(result["candidates"][1]["name"], "skiplist");

    // A budget that parts the histories leaves nothing to compare.
    let output = run(&["bench", "skiplisttest", "--batches", "60", "--rounds", "1", "--budget", "256KiB"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
    assert!(stderr(&output).contains("too old by a cutoff alone"), "{}", stderr(&output));
}

#[test]
fn check_takes_several_references() {
    let args = ["check", "--json", "--transactions", "3000", "--shape", "ranges", "--index", "model"];
    let document = json(&[&args[..], &["--against", "skiplist,model"]].concat(), 0);
    assert_eq!(document["transactions"], 3_000);
}

#[test]
fn retention_keeps_more_in_the_tree_and_proves_it() {
    let lines = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("retention.csv");
    let args = [
        "retention",
        "--budget",
        "4MiB",
        "--seconds",
        "3",
        "--replays",
        "2",
        "--json",
        "--out",
        &path_text(&lines),
    ];
    let document = json(&args, 0);
    let number = |field: &str| document[field].as_f64().unwrap_or_else(|| panic!("{field} is a number"));
    assert_eq!(
        (&document["verdicts_equal"], number("mismatches"), number("probe_failures")),
        (&true.into(), 0.0, 0.0)
    );
    assert_eq!(number("budget_bytes"), f64::from(4 << 20));
    assert!(number("tree_peak_bytes") <= number("budget_bytes"));
    assert!(number("skiplist_peak_bytes") <= number("budget_bytes"));
    assert!(number("ratio") >= 3.0, "{document}");
    let time = |name: &str| document["tree_batch_times"][name].as_f64().expect("a time");
    assert!(
        0.0 < time("median_us") && time("median_us") <= time("p999_us") && time("p999_us") <= time("max_us")
    );
    assert!((number("tree_seconds") / number("skiplist_seconds") - number("ratio")).abs() < 1e-9);
    assert!(number("decisions_compared") >= 0.95 * number("decisions"));
    assert!(
        number("probe_conflicts") > 0.0 && number("deepest_probe_seconds") >= 0.9 * number("tree_seconds")
    );
    let lines = std::fs::read_to_string(&lines).expect("the table of batches");
    assert_eq!(lines.lines().count(), 1 + 3 * 32);
    assert_refused(&["retention", "--budget", "64MiB", "--seconds", "1"], "do not fill");
    assert_refused(&["retention", "--budget", "sixty"], "no size");
}

fn scratch_name(name: &str) -> String {
    path_text(&PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name))
}

#[test]
fn a_generated_trace_runs_like_its_workload_and_a_flipped_byte_is_named() {
    let file = scratch_name("generated.trace");
    let generate =
        ["trace", "generate", "long-trace-32", "--batches", "20", "--scale", "0.05", "--seed", "9"];
    let output = run(&[&generate[..], &["--out", &file]].concat());
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    let info = json(&["trace", "info", "--json", &file], 0);
    let generator = &info["files"][0]["header"]["generator"];
    assert_eq!((&generator["workload"], &generator["seed"]), (&"long-trace-32".into(), &9.into()));
    assert_eq!((&info["files"][0]["batches"], &info["files"][0]["truncated"]), (&20.into(), &false.into()));

    let verified = json(&["trace", "verify", "--json", &file], 0);
    assert_eq!(
        (&verified["files"][0]["generated"], &verified["files"][0]["batches"]),
        (&true.into(), &20.into())
    );
    let bench = |input: &str| {
        let args =
            ["bench", input, "--json", "--rounds", "1", "--seed", "9", "--scale", "0.05", "--batches", "20"];
        json(&args, 0)["results"][0]["decision_hash"].clone()
    };
    assert_eq!(bench(&file), bench("long-trace-32"));
    for index in ["tree", "skiplist"] {
        let replayed = &json(&["replay", &file, "--json", "--index", index], 0)["files"][0];
        assert_eq!((&replayed["batches"], &replayed["mismatches"]), (&20.into(), &0.into()));
    }

    let mut bytes = std::fs::read(&file).expect("it was written");
    let cut = scratch("cut.trace", &bytes[..bytes.len() / 2]);
    let output = run(&["replay", &cut, "--json"]);
    assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
    assert!(stderr(&output).contains("warning"));
    let middle = bytes.len() / 2;
    bytes[middle] ^= 1;
    let flipped = scratch("flipped.trace", &bytes);
    let failure = json(&["trace", "verify", "--json", &flipped], 1)["files"][0]["failure"].clone();
    assert!(failure.as_str().is_some_and(|failure| failure.contains("frame ")), "{failure}");
    assert_refused(&["replay", &flipped], "is damaged");
    assert_refused(&["trace", "convert", &file, &scratch_name("undecided.fdbcap")], "without decisions");
}

#[test]
fn captures_become_traces_and_come_back() {
    for name in ["sim-report-conflicting-keys.fdbcap.zst", "driver-tiny.fdbcap.zst"] {
        let (trace, back) = (scratch_name(&format!("{name}.trace")), scratch_name(&format!("back-{name}")));
        for (from, to) in [(&capture(name), &trace), (&trace, &back)] {
            let output = run(&["trace", "convert", from, to]);
            assert_eq!(output.status.code(), Some(0), "{}", stderr(&output));
        }
        let read = |name: &str| {
            let mut reader = CaptureReader::open(Path::new(name)).expect("a capture");
            std::iter::from_fn(|| reader.next_record().expect("undamaged")).collect::<Vec<Record>>()
        };
        assert_eq!(read(&capture(name)), read(&back), "{name}");
        let replay = |file: &str| {
            let mut document = json(&["replay", file, "--json"], 0);
            let file = &mut document["files"][0];
            assert_eq!((&file["mismatches"], &file["report_mismatches"]), (&0.into(), &0.into()), "{name}");
            file["decision_hash"].take()
        };
        assert_eq!(replay(&capture(name)), replay(&trace), "{name}");
    }
}

/// A report at a size that takes seconds.
const LITTLE: [&str; 13] = [
    "--batches",
    "6",
    "--rounds",
    "1",
    "--scale",
    "0.02",
    "--replays",
    "1",
    "--seconds",
    "2",
    "--largest",
    "32KiB",
    "--json",
];

#[test]
fn a_report_is_one_page_of_what_its_json_document_holds() {
    let page = scratch("report.html", b"the page before");
    let file = capture("driver-tiny.fdbcap.zst");
    let inputs = ["conflictset-points", file.as_str(), "standalone-points"];
    let args = [&["report", "--out", &page, "--budget", "2MiB"], &LITTLE[..], &inputs].concat();
    let document = json(&args, 0);
    let text = std::fs::read_to_string(&page).expect("the page");
    assert!(text.starts_with("<!DOCTYPE html>") && text.ends_with("</html>"), "the page is whole");
    for foreign in ["http", "url(", "@import", "src=", "<script", "<link"] {
        assert!(!text.contains(foreign), "the page needs nothing else: {foreign}");
    }
    assert_eq!(text.matches("<svg").count(), 7, "a picture for every measurement");
    assert!(!text.contains("fill=\"#") && !text.contains("stroke=\"#"), "every colour is the page's");
    assert!(!text.contains("NaN") && !text.contains(">inf"));

    let workloads = document["workloads"].as_array().expect("workloads");
    let ratio = |index: usize| workloads[index]["ratio"].as_f64();
    assert_eq!(ratio(2), None);
    for (index, name) in [(0, "conflictset-points"), (1, "driver-tiny")] {
        let ratio = ratio(index).expect("a ratio");
        assert!(text.contains(&format!("<td>{name}</td><td>{ratio:.3}x</td>")), "{name} is in the table");
        assert!(text.contains(&format!("\n{ratio:.3}x\n")), "{name} is in the picture");
    }
    let strategies = document["strategies"]["workloads"][0]["candidates"].as_array().expect("strategies");
    for (candidate, name) in strategies.iter().zip(["pipelined", "cooperative 1:1x1", "cooperative 2:2x8"]) {
        let ratio = candidate["ratio"].as_f64().expect("a ratio");
        assert!(text.contains(&format!("<td>{name}</td>")), "{name} is in the table");
        assert!(text.contains(&format!("\n{ratio:.2}x {name}\n")), "{name} is in the picture");
    }
    let number =
        |path: &str| document.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("{path}"));
    assert!(text.contains(&format!("{:.1}x the history", number("/retention/ratio"))));
    let used_up = number("/retention/skiplist_peak_bytes") >= 0.95 * number("/retention/budget_bytes");
    assert_ne!(text.contains("the ratio flatters the tree"), used_up);
    let bins = document["replay"]["histogram"].as_array().expect("a histogram");
    let batches: f64 = bins.iter().filter_map(|bin| bin["batches"].as_f64()).sum();
    assert_eq!(batches, number("/replay/batch_times/batches"));
    let points = document["replay"]["points"].as_array().expect("points");
    assert_eq!(points.len(), 2 * 32);
    assert!(
        points.iter().all(|point| point["memory_bytes"].as_f64() <= Some(number("/settings/budget_bytes")))
    );
    assert_eq!(document["latency"]["rows"].as_array().map(Vec::len), Some(2));
}

#[test]
fn a_report_without_reclamation_says_so() {
    let page = scratch("report-short.html", b"the page before");
    let args =
        [&["report", "--out", &page, "--budget", "64MiB"], &LITTLE[..], &["conflictset-points"]].concat();
    let document = json(&args, 0);
    assert!(document["retention"].is_null() && document["replay"]["batch_times"].is_null());
    let text = std::fs::read_to_string(&page).expect("the page");
    assert!(text.contains("2 s of the long trace do not fill 64.0 MiB"));
    assert!(text.contains("The tree reclaimed nothing in this run."));
    assert_eq!(text.matches("<svg").count(), 5, "no picture of nothing");
}

#[test]
fn a_report_that_fails_leaves_the_page_before() {
    let page = scratch("report-kept.html", b"the page before");
    assert_refused(&["report", "--out", &page, "no-such-workload"], "no workload of that name");
    assert_refused(&["report", "--out", &page, "--largest", "1KiB"], "16KiB to 64GiB");
    assert_eq!(std::fs::read(&page).expect("the page"), b"the page before");
    assert_refused(&["report", "--out", &format!("{page}/below.html")], "cannot write");
}
