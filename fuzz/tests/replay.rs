//! What was found once, and what fuzzing starts from, through every target's body.
#![allow(clippy::print_stdout)] // tells which input was the last

use resolver_fuzz::{TARGETS, Target, seeds};
use std::fs;
use std::path::{Path, PathBuf};

fn regressions(target: &Target) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("regressions").join(target.name)
}

#[test]
fn committed_inputs_are_no_finding_any_more() {
    for target in &TARGETS {
        let folder = regressions(target);
        let entries = fs::read_dir(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        let mut files: Vec<PathBuf> =
            entries.map(|entry| entry.expect("the folder is committed").path()).collect();
        files.sort();
        assert!(!files.is_empty(), "{}: no inputs", folder.display());
        for file in files {
            println!("{}", file.display());
            (target.body)(&fs::read(&file).expect("the file is committed"), None);
        }
    }
}

#[test]
fn seeds_are_no_finding_and_reach_the_checked_call() {
    for target in &TARGETS {
        for (name, seed) in seeds(target.name) {
            println!("{}: {name}", target.name);
            assert!((target.body)(&seed, None), "{}: {name} reaches nothing", target.name);
        }
    }
}
