//! Running a built fdbserver's own simulation: a specification and a seed, twice, and what its trace files say.
//!
//! A line of a specification that begins with `#env ` sets environment variables for its runs: `#env NAME=VALUE NAME2=VALUE`.

use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};
use thiserror::Error;

/// Severities from which fdbserver means that something is wrong.
const WARNING: i64 = 30;
const ERROR: i64 = 40;

/// What an fdbserver says as unseed when it must not be compared.
const NO_UNSEED: i64 = -1;

/// How to run fdbserver.
#[derive(Clone, Debug)]
pub struct Fdbserver {
    /// The program.
    pub program: PathBuf,
    /// Where each run gets a folder of its own; those of runs that went well are removed.
    pub out: PathBuf,
    /// Whether fdbserver injects faults of its own into its code.
    pub buggify: bool,
    /// After this time a run is ended.
    pub timeout: Duration,
    /// More arguments.
    pub extra: Vec<String>,
}

/// Why a run cannot be started or read.
#[derive(Debug, Error)]
#[error("{path}: {source}")]
pub struct FdbserverError {
    /// The file or folder.
    pub path: String,
    /// What is wrong with it.
    pub source: io::Error,
}

/// What is wrong with a run.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Problem {
    /// It was ended.
    #[error("it did not end in time")]
    TimedOut,
    /// It wrote an event that means an error.
    #[error("{count} errors, the first {first}")]
    Errors {
        /// How many.
        count: u64,
        /// The type of the first event.
        first: String,
    },
    /// A test did not pass.
    #[error("{passed} of {expected} tests passed")]
    Tests {
        /// How many passed.
        passed: i64,
        /// How many there are.
        expected: i64,
    },
    /// It said nothing at its end.
    #[error("its trace has no end")]
    NoEnd,
    /// It ended with a code other than 0.
    #[error("{0}")]
    Exit(String),
    /// The second run ended elsewhere than the first.
    #[error("unseed {first}, then {second}")]
    Unseed {
        /// The first run's unseed.
        first: i64,
        /// The second one's.
        second: i64,
    },
}

/// What one run showed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct FdbRun {
    /// The number that a run ends with: equal for equal runs.
    pub unseed: Option<i64>,
    /// Simulated seconds.
    pub sim_seconds: f64,
    /// Events that warn.
    pub warnings: u64,
    /// What is wrong, if something is.
    pub problem: Option<Problem>,
}

/// What both runs of a seed showed.
#[derive(Clone, Debug)]
pub struct FdbSeed {
    /// The specification's file name.
    pub spec: String,
    /// The seed.
    pub seed: u64,
    /// The first run.
    pub first: FdbRun,
    /// What is wrong with the first run, or with the second.
    pub problem: Option<Problem>,
    /// Where to look, if something is wrong.
    pub folder: Option<PathBuf>,
}

impl Fdbserver {
    /// Runs a seed of a specification twice. If the first run fails there is no second.
    ///
    /// # Errors
    /// What the operating system says about files and the program.
    pub fn run_seed(&self, spec: &Path, seed: u64) -> Result<FdbSeed, FdbserverError> {
        let name = spec.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        let folder = |run: u32| self.out.join(format!("{name}-{seed}-{run}"));
        let first = self.run_once(spec, seed, &folder(1))?;
        let mut result =
            FdbSeed { spec: name.clone(), seed, problem: first.problem.clone(), first, folder: None };
        let mut failed = folder(1);
        if result.problem.is_none() {
            let second = self.run_once(spec, seed, &folder(2))?;
            result.problem = second.problem.clone().or_else(|| unseed_problem(&result.first, &second));
            failed = folder(2);
        }
        match result.problem {
            Some(_) => result.folder = Some(failed),
            None => {
                for run in [1, 2] {
                    remove(&folder(run))?;
                }
            }
        }
        Ok(result)
    }

    fn run_once(&self, spec: &Path, seed: u64, folder: &Path) -> Result<FdbRun, FdbserverError> {
        fs::create_dir_all(&self.out).map_err(at(&self.out))?;
        fs::create_dir(folder).map_err(at(folder))?;
        let mut child = self.start(spec, seed, folder)?;
        let status = wait(&mut child, self.timeout).map_err(at(&self.program))?;
        let trace = Trace::read(folder)?;
        Ok(trace.judge(status))
    }

    fn start(&self, spec: &Path, seed: u64, folder: &Path) -> Result<Child, FdbserverError> {
        let program = fs::canonicalize(&self.program).map_err(at(&self.program))?;
        let spec = fs::canonicalize(spec).map_err(at(spec))?;
        let file = |name: &str| File::create(folder.join(name)).map_err(at(folder));
        let mut command = Command::new(&program);
        command.args(["-r", "simulation", "-f"]).arg(&spec);
        command.args(["-s", &seed.to_string(), "-b", if self.buggify { "on" } else { "off" }]);
        command.args(["--trace_format", "json"]).args(&self.extra);
        command.envs(environment(&spec)?).current_dir(folder);
        command.stdin(Stdio::null()).stdout(file("stdout.txt")?).stderr(file("stderr.txt")?);
        command.spawn().map_err(at(&program))
    }
}

fn at(path: &Path) -> impl FnOnce(io::Error) -> FdbserverError {
    let path = path.display().to_string();
    |source| FdbserverError { path, source }
}

fn remove(folder: &Path) -> Result<(), FdbserverError> {
    fs::remove_dir_all(folder).map_err(at(folder))
}

/// The environment variables that a specification asks for.
fn environment(spec: &Path) -> Result<Vec<(String, String)>, FdbserverError> {
    let text = fs::read_to_string(spec).map_err(at(spec))?;
    let settings = text.lines().filter_map(|line| line.strip_prefix("#env ")).flat_map(str::split_whitespace);
    let pair = |setting: &str| {
        let malformed =
            || io::Error::new(io::ErrorKind::InvalidData, format!("#env {setting}: no NAME=VALUE"));
        let (name, value) = setting.split_once('=').ok_or_else(malformed)?;
        Ok((name.to_owned(), value.to_owned()))
    };
    settings.map(pair).collect::<Result<_, io::Error>>().map_err(at(spec))
}

/// Waits for a program; `None` if it had to be ended.
fn wait(child: &mut Child, timeout: Duration) -> io::Result<Option<ExitStatus>> {
    let start = Instant::now();
    loop {
        if let Some(status) = child.try_wait()? {
            return Ok(Some(status));
        }
        if start.elapsed() >= timeout {
            child.kill()?;
            child.wait()?;
            return Ok(None);
        }
        sleep(Duration::from_millis(20));
    }
}

fn unseed_problem(first: &FdbRun, second: &FdbRun) -> Option<Problem> {
    let (first, second) = (first.unseed?, second.unseed?);
    let comparable = first != NO_UNSEED && second != NO_UNSEED;
    (comparable && first != second).then_some(Problem::Unseed { first, second })
}

/// What matters of a run's trace files.
#[derive(Debug, Default)]
struct Trace {
    run: FdbRun,
    /// By time and place: type and severity of the events that warn, or worse.
    bad: Vec<(f64, String, i64)>,
    /// Severities that the simulation changes, by type and severity.
    remapped: BTreeMap<(String, i64), i64>,
    passed: i64,
    expected: Option<i64>,
}

impl Trace {
    fn read(folder: &Path) -> Result<Trace, FdbserverError> {
        let entries = fs::read_dir(folder).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        let mut files: Vec<PathBuf> = entries.map_err(at(folder))?.iter().map(fs::DirEntry::path).collect();
        files.retain(|path| path.extension().is_some_and(|extension| extension == "json"));
        files.sort();
        let mut trace = Trace::default();
        for path in files {
            let file = File::open(&path).map_err(at(&path))?;
            for line in BufReader::new(file).split(b'\n') {
                // A line that is no event was cut off by a crash, which the exit code tells.
                if let Ok(event) = serde_json::from_slice(&line.map_err(at(&path))?) {
                    trace.add(&event);
                }
            }
        }
        trace.bad.sort_by(|left, right| left.0.total_cmp(&right.0));
        Ok(trace)
    }

    fn add(&mut self, event: &Map<String, Value>) {
        let severity = number(event, "Severity").unwrap_or(0.0) as i64;
        let kind = text(event, "Type");
        if severity >= WARNING && !matches!(text(event, "ErrorIsInjectedFault"), "1" | "true") {
            let time = number(event, "Time").unwrap_or(0.0);
            self.bad.push((time, kind.to_owned(), severity));
        }
        let integer = |name| number(event, name).map(|number| number as i64);
        match kind {
            "ElapsedTime" => {
                self.run.unseed = integer("RandomUnseed");
                self.run.sim_seconds = number(event, "SimTime").unwrap_or(0.0);
            }
            "TestsExpectedToPass" => self.expected = integer("Count"),
            "TestResults" => self.passed += i64::from(integer("Passed") == Some(1)),
            "RemapEventSeverity" => {
                if let (Some(old), Some(new)) = (integer("OriginalSeverity"), integer("NewSeverity")) {
                    self.remapped.insert((text(event, "TargetEvent").to_owned(), old), new);
                }
            }
            _ => {}
        }
    }

    fn judge(mut self, status: Option<ExitStatus>) -> FdbRun {
        let severity = |(_, kind, severity): &(f64, String, i64)| {
            self.remapped.get(&(kind.clone(), *severity)).copied().unwrap_or(*severity)
        };
        let warns = |event: &&(f64, String, i64)| (WARNING..ERROR).contains(&severity(event));
        self.run.warnings = self.bad.iter().filter(warns).count() as u64;
        let mut errors = self.bad.iter().filter(|event| severity(event) >= ERROR);
        let count = errors.clone().count() as u64;
        let expected = self.expected.unwrap_or(0);
        self.run.problem = match (status, errors.next()) {
            (None, _) => Some(Problem::TimedOut),
            (_, Some((_, kind, _))) => Some(Problem::Errors { count, first: kind.clone() }),
            (Some(status), None) if !status.success() => Some(Problem::Exit(status.to_string())),
            _ if self.run.unseed.is_none() => Some(Problem::NoEnd),
            _ if expected == 0 || self.passed < expected => {
                Some(Problem::Tests { passed: self.passed, expected })
            }
            _ => None,
        };
        self.run
    }
}

/// A detail of an event; fdbserver writes all of them as texts.
fn text<'a>(event: &'a Map<String, Value>, name: &str) -> &'a str {
    event.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn number(event: &Map<String, Value>, name: &str) -> Option<f64> {
    let value = event.get(name)?;
    value.as_f64().or_else(|| value.as_str()?.parse().ok())
}
