//! What all targets have in common: the count of inputs that reached the checked call, the planted bug, replay.
#![allow(clippy::print_stdout, clippy::print_stderr)] // a replay tells what it did

#[cfg(feature = "planted-bugs")]
use resolver_index::Bug;
use resolver_index::Planted;
#[cfg(feature = "planted-bugs")]
use resolver_workloads::planted::ReaderBug;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

/// Where a running target writes, from time to time, `EXECUTIONS REACHED`.
const REACH: &str = "RESOLVER_FUZZ_REACH";

/// The planted bug of a running target; only in a build with the feature `planted-bugs`.
const BUG: &str = "RESOLVER_FUZZ_BUG";

/// A fuzz target.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Its name: of the program, of its corpus and of its regressions.
    pub name: &'static str,
    /// Runs one input, with a bug planted or none; whether it reached the call that the target checks. Panics
    /// at what must not be.
    pub body: fn(&[u8], Option<&'static str>) -> bool,
    /// The planted bug that it must find within two minutes.
    pub canary: Canary,
}

/// The name of a bug that can be planted.
pub type Canary = &'static str;

static EXECUTIONS: AtomicU64 = AtomicU64::new(0);
static REACHED: AtomicU64 = AtomicU64::new(0);

/// A variable of the environment, read once.
fn variable(name: &'static str, cell: &'static OnceLock<Option<String>>) -> Option<&'static str> {
    cell.get_or_init(|| std::env::var(name).ok()).as_deref()
}

impl Target {
    /// Runs one input and counts it.
    ///
    /// # Panics
    /// At a finding.
    pub fn run(&self, input: &[u8]) {
        static REACH_FILE: OnceLock<Option<String>> = OnceLock::new();
        static PLANTED: OnceLock<Option<String>> = OnceLock::new();
        let reached = (self.body)(input, variable(BUG, &PLANTED));
        let reached = REACHED.fetch_add(reached.into(), Ordering::Relaxed) + u64::from(reached);
        let executions = EXECUTIONS.fetch_add(1, Ordering::Relaxed) + 1;
        if (executions.is_power_of_two() || executions.is_multiple_of(1_024))
            && let Some(file) = variable(REACH, &REACH_FILE)
            && let Err(error) = std::fs::write(file, format!("{executions} {reached}\n"))
        {
            panic!("{file}: {error}");
        }
    }
}

/// The files of a folder, in the order of their names; a file is itself.
fn files(path: &Path) -> std::io::Result<Vec<PathBuf>> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let mut files = path.read_dir()?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
    files.retain(|path| path.is_file());
    files.sort();
    Ok(files)
}

/// Replays the files and folders that the command line names: the program of a target that is not built for
/// fuzzing. A finding ends it.
pub fn replay(target: Target) -> ExitCode {
    let mut replayed = 0u64;
    let arguments: Vec<PathBuf> = std::env::args_os().skip(1).map(PathBuf::from).collect();
    if arguments.is_empty() {
        eprintln!("usage: {} FILE|FOLDER...", target.name);
        return ExitCode::from(2);
    }
    for argument in arguments {
        let inputs = files(&argument).and_then(|files| {
            files
                .into_iter()
                .map(|file| std::fs::read(&file).map(|input| (file, input)))
                .collect::<Result<Vec<_>, _>>()
        });
        match inputs {
            Err(error) => {
                eprintln!("{}: {error}", argument.display());
                return ExitCode::from(2);
            }
            Ok(inputs) => {
                for (file, input) in inputs {
                    eprintln!("{}", file.display());
                    target.run(&input);
                    replayed += 1;
                }
            }
        }
    }
    println!("{replayed} inputs, {} reached the checked call", REACHED.load(Ordering::Relaxed));
    ExitCode::SUCCESS
}

/// The bug of that name, to be planted in a tree.
///
/// # Panics
/// If there is none, or it cannot be planted in this build.
#[cfg(feature = "planted-bugs")]
pub(crate) fn planted_in_tree(bug: Option<&str>) -> Planted {
    bug.map_or_else(Planted::default, |name| Planted::new(Bug::by_name(name).expect("the name of a bug")))
}

/// No bug: none can be planted in this build.
#[cfg(not(feature = "planted-bugs"))]
pub(crate) fn planted_in_tree(bug: Option<&str>) -> Planted {
    assert_eq!(bug, None, "built without planted bugs");
    Planted::default()
}

/// Plants the bug of that name in the readers of this process.
///
/// # Panics
/// If there is none, or it cannot be planted in this build.
pub(crate) fn planted_in_reader(bug: Option<&str>) {
    #[cfg(feature = "planted-bugs")]
    resolver_workloads::planted::plant(bug.map(|name| ReaderBug::by_name(name).expect("the name of a bug")));
    #[cfg(not(feature = "planted-bugs"))]
    assert_eq!(bug, None, "built without planted bugs");
}

/// Plants the bug of that name in the bridge of this process.
///
/// # Panics
/// If it is not the bridge's, or cannot be planted in this build.
pub(crate) fn planted_in_bridge(bug: Option<&str>) {
    #[cfg(feature = "planted-bugs")]
    {
        assert!(bug.is_none_or(|name| name == resolver_bridge::planted::REPORTS_KEPT), "the name of a bug");
        resolver_bridge::planted::plant(bug.is_some());
    }
    #[cfg(not(feature = "planted-bugs"))]
    assert_eq!(bug, None, "built without planted bugs");
}
