//! Committed inputs that are named after a planted bug find it: `ci/negative` runs this and prints its lines.
#![cfg(feature = "planted-bugs")]
#![allow(clippy::print_stdout)] // tells what found each

use resolver_fuzz::TARGETS;
use resolver_index::Bug;
use resolver_workloads::planted::ReaderBug;
use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// The planted bug of that name, if there is one.
fn bug(name: &str) -> Option<&'static str> {
    let of_tree = Bug::by_name(name).map(Bug::name);
    let of_reader = ReaderBug::by_name(name).map(ReaderBug::name);
    let of_bridge = Some(resolver_bridge::planted::REPORTS_KEPT).filter(|&bridge| bridge == name);
    of_tree.or(of_reader).or(of_bridge)
}

#[test]
fn inputs_named_after_a_planted_bug_find_it() {
    let mut failures = Vec::new();
    for target in &TARGETS {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("regressions").join(target.name);
        assert!(folder.join(target.canary).is_file(), "{}: no input finds its canary", target.name);
        for entry in fs::read_dir(&folder).expect("the folder is committed") {
            let file = entry.expect("the folder is committed").path();
            let name = file.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let Some(bug) = bug(&name) else { continue };
            let input = fs::read(&file).expect("the file is committed");
            match catch_unwind(AssertUnwindSafe(|| (target.body)(&input, Some(bug)))) {
                Ok(_) => failures.push(format!("{bug}: survives {}", file.display())),
                Err(panic) => {
                    let text = panic.downcast_ref::<String>().map(String::as_str);
                    let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("?");
                    let line: String = text.lines().next().unwrap_or_default().chars().take(100).collect();
                    println!("{bug:<30} | {:<16} | {line}", format!("fuzz {}", target.name));
                }
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}
