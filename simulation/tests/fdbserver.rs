//! The runner for fdbserver's own simulation, with a shell script in fdbserver's place.

#![cfg(unix)]

use resolver_simulation::{FdbSeed, Fdbserver, Problem};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::Duration;

/// Writes a trace as a simulation does; what goes wrong depends on the seed.
const FAKE: &str = r##"#!/bin/sh
seed=0
while [ $# -gt 0 ]; do
    case "$1" in -s) seed=$2 ;; -f) spec=$2 ;; esac
    shift
done
event() { echo "{ $1 }" >> trace.127.0.0.1.1.json; }
[ "$RESOLVER_BUDGET" = 1M ] || event '"Severity": "40", "Time": "0", "Type": "NoBudget"'
[ -f "$spec" ] || exit 9
event '"Severity": "10", "Time": "1", "Type": "TestsExpectedToPass", "Count": "2"'
unseed=$((seed * 11))
passed=1
case $seed in
    2) touch ../again; unseed=$(ls .. | wc -l) ;;
    3) event '"Severity": "40", "Time": "7", "Type": "Late"'; event '"Severity": "40", "Time": "5", "Type": "Early"' ;;
    4) exit 3 ;;
    5) exec sleep 30 ;;
    6) event '"Severity": "10", "Time": "1", "Type": "RemapEventSeverity", "TargetEvent": "Known", "OriginalSeverity": "40", "NewSeverity": "30"'
       event '"Severity": "40", "Time": "5", "Type": "Known"' ;;
    7) event '"Severity": "40", "Time": "5", "Type": "Injected", "ErrorIsInjectedFault": "1"' ;;
    8) passed=0 ;;
    9) echo '{ "Severity": "40", "Ty' >> trace.127.0.0.1.1.json; exit 0 ;;
    10) unseed=-1 ;;
esac
event '"Severity": "10", "Time": "8", "Type": "TestResults", "Workload": "one", "Passed": "1"'
event "\"Severity\": \"10\", \"Time\": \"8\", \"Type\": \"TestResults\", \"Workload\": \"two\", \"Passed\": \"$passed\""
event "\"Severity\": \"10\", \"Time\": \"9\", \"Type\": \"ElapsedTime\", \"SimTime\": \"123.5\", \"RandomUnseed\": \"$unseed\""
"##;

fn scratch(name: &str) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    if folder.exists() {
        fs::remove_dir_all(&folder).expect("the scratch folder is ours");
    }
    fs::create_dir_all(&folder).expect("the scratch folder can be made");
    folder
}

/// The fake fdbserver: written once, before any test starts a process. One that is being started while a file is written
/// holds that file open for a moment, and what is open for writing cannot be run.
fn program() -> PathBuf {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    let write = || {
        let program = scratch("fdbserver-program").join("fdbserver");
        fs::write(&program, FAKE).expect("the script can be written");
        fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).expect("the script is ours");
        program
    };
    PROGRAM.get_or_init(write).clone()
}

/// The fake fdbserver and a specification that sets an environment variable.
fn fake(folder: &Path) -> (Fdbserver, PathBuf) {
    let program = program();
    let spec = folder.join("Some.toml");
    fs::write(&spec, "#env RESOLVER_BUDGET=1M\n[[test]]\n").expect("the specification can be written");
    let out = folder.join("out");
    let (timeout, extra) = (Duration::from_secs(300), Vec::new());
    (Fdbserver { program, out, buggify: true, timeout, extra }, spec)
}

#[test]
fn what_goes_wrong_is_told_and_what_goes_well_leaves_nothing_behind() {
    let folder = scratch("fdbserver-seeds");
    let (fdbserver, spec) = fake(&folder);
    let run = |seed: u64| -> FdbSeed { fdbserver.run_seed(&spec, seed).expect("the script runs") };
    let fine = run(1);
    assert_eq!((fine.problem, fine.first.unseed, fine.folder), (None, Some(11), None));
    assert_eq!((fine.spec.as_str(), fine.first.sim_seconds), ("Some", 123.5));
    assert!(matches!(run(2).problem, Some(Problem::Unseed { first, second }) if first != second));
    assert_eq!(run(3).problem, Some(Problem::Errors { count: 2, first: "Early".to_owned() }));
    assert!(matches!(run(4).problem, Some(Problem::Exit(_))));
    let remapped = run(6);
    assert_eq!((remapped.problem, remapped.first.warnings), (None, 1));
    assert_eq!(run(7).problem, None);
    assert_eq!(run(8).problem, Some(Problem::Tests { passed: 1, expected: 2 }));
    assert_eq!(run(9).problem, Some(Problem::NoEnd));
    assert_eq!(run(10).problem, None);
    let mut left: Vec<String> = fs::read_dir(&fdbserver.out)
        .expect("the folder of runs")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a plain name"))
        .filter(|name| name.starts_with("Some-"))
        .collect();
    left.sort();
    assert_eq!(left, ["Some-2-1", "Some-2-2", "Some-3-1", "Some-4-1", "Some-8-1", "Some-9-1"]);
    // What a failed run left is not written over.
    assert!(fdbserver.run_seed(&spec, 3).is_err());
}

#[test]
fn a_run_that_does_not_end_is_ended() {
    let folder = scratch("fdbserver-timeout");
    let (fdbserver, spec) = fake(&folder);
    let fdbserver = Fdbserver { timeout: Duration::from_millis(300), ..fdbserver };
    let hanging = fdbserver.run_seed(&spec, 5).expect("the script runs");
    assert_eq!(hanging.problem, Some(Problem::TimedOut));
    assert_eq!(hanging.folder, Some(folder.join("out/Some-5-1")));
}

#[test]
fn the_specifications_of_this_folder_are_well_formed() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fdb");
    let mut specs = 0;
    for entry in fs::read_dir(&folder).expect("the specifications") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        specs += 1;
        let text = fs::read_to_string(&path).expect("a specification");
        let mut section = "";
        let mut named = 0;
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            if line.starts_with('[') {
                let known = ["[configuration]", "[[knobs]]", "[[test]]", "[[test.workload]]"];
                assert!(known.contains(&line), "{}: {line}", path.display());
                named += i32::from(line == "[[test.workload]]");
                section = line;
                continue;
            }
            let (key, value) = line.split_once(" = ").unwrap_or_else(|| panic!("{}: {line}", path.display()));
            assert!(!section.is_empty() && !value.is_empty(), "{}: {line}", path.display());
            assert!(key.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_'), "{line}");
            named -= i32::from(key == "testName" && section == "[[test.workload]]");
        }
        assert_eq!(named, 0, "{}: every workload has a name", path.display());
        assert!(text.contains("[[test.workload]]"), "{}", path.display());
    }
    assert!(specs >= 6, "{specs} specifications");
}
