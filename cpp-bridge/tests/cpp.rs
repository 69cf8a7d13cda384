//! The C++ side without FoundationDB: the adapter over stand-in headers, compiled with every compiler
//! that is there, linked with the static library, and driven by `tests/cpp/main.cpp`.
#![allow(clippy::print_stderr, reason = "says what is skipped, and why")]

use resolver_workloads::capture::{
    CaptureReader, CaptureWriter, captures_dir, captures_in, shared_captures_dir,
};
use std::fs::{self, File};
use std::io::BufWriter;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;
use std::thread;

/// The histories that a server can be told to use.
const HISTORIES: [&str; 3] = ["tree", "skiplist", "shadow"];

/// Sources that see FoundationDB's names as they are.
const SOURCES: [&str; 4] =
    ["cpp/adapter.cpp", "cpp/settings.cpp", "cpp/skiplist_test.cpp", "tests/cpp/main.cpp"];

/// Sources that see them renamed.
const RENAMED: [&str; 2] = ["cpp/original.cpp", "tests/cpp/standin/ConflictSet.cpp"];

/// What a driver is compiled with.
#[derive(Clone, Copy)]
struct Toolchain {
    name: &'static str,
    compiler: &'static str,
    flags: &'static [&'static str],
}

const TOOLCHAINS: [Toolchain; 3] = [
    Toolchain { name: "g++", compiler: "g++", flags: &["-O1"] },
    Toolchain { name: "clang++", compiler: "clang++", flags: &["-O1"] },
    Toolchain {
        name: "address-sanitizer",
        compiler: "g++",
        flags: &["-O1", "-fsanitize=address", "-fno-omit-frame-pointer"],
    },
];

/// Where both sides are sanitized, and the Rust one therefore built for a named target: that target. See `ci/sanitize`.
const SANITIZED_TARGET: &str = "RESOLVER_SANITIZED_TARGET";

/// The toolchain of a driver both of whose sides are sanitized. The Rust side finds its sanitizer in the C++ one's.
const SANITIZED: Toolchain = Toolchain {
    name: "address-sanitizer",
    compiler: "g++",
    flags: &["-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer"],
};

/// A program over the C++ side.
struct Driver {
    name: &'static str,
    program: PathBuf,
}

/// The folder of the package.
fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The target of a sanitized run.
fn sanitized_target() -> Option<String> {
    std::env::var(SANITIZED_TARGET).ok()
}

/// A folder that cargo keeps for this test.
fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("resolver-bridge").join(name);
    fs::create_dir_all(&folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
    folder
}

fn run(command: &mut Command) -> Output {
    command.output().unwrap_or_else(|error| panic!("{command:?}: {error}"))
}

/// Runs a command that must succeed.
fn succeed(command: &mut Command) -> String {
    let output = run(command);
    let [stdout, stderr] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
    assert!(output.status.success(), "{command:?}: {}\n{stdout}{stderr}", output.status);
    stdout.into_owned()
}

/// Builds a part of this package, as it was built for this test; the messages about it.
fn cargo_build(part: &[&str]) -> Vec<serde_json::Value> {
    let profile = if cfg!(debug_assertions) { "test" } else { "release" };
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let target = folder.parent().expect("cargo puts it into the target folder");
    let mut command = Command::new(env!("CARGO"));
    command.current_dir(package()).arg("build").args(part);
    if let Some(triple) = sanitized_target() {
        command.args(["--target", &triple]);
    }
    let said = succeed(
        command
            .args(["--offline", "--message-format=json", "--profile", profile, "--target-dir"])
            .arg(target),
    );
    let messages = said.lines().map(|line| serde_json::from_str(line).expect("cargo speaks JSON"));
    let ours = |message: &serde_json::Value| {
        message["package_id"].as_str().is_some_and(|id| id.contains("cpp-bridge"))
    };
    messages.filter(ours).collect()
}

/// The static library, and the folder of the generated C++: what cargo has built for this test, asked
/// for once more.
fn library() -> (PathBuf, PathBuf) {
    let (mut archive, mut generated) = (None, None);
    for message in cargo_build(&["--lib"]) {
        let files = message["filenames"].as_array().into_iter().flatten();
        for file in files.filter_map(|file| file.as_str()).filter(|file| file.ends_with(".a")) {
            archive = Some(PathBuf::from(file));
        }
        if let Some(out) = message["out_dir"].as_str() {
            generated = Some(Path::new(out).join("cxxbridge"));
        }
    }
    (archive.expect("a static library"), generated.expect("a folder of generated files"))
}

/// Whether a program in C++20 that is made so can be run here. A compiler may lack its library, and a sanitizer does not get
/// along with every kernel's address layout.
fn is_usable(toolchain: Toolchain, folder: &Path) -> bool {
    let (source, program) = (folder.join("probe.cpp"), folder.join("probe"));
    fs::write(&source, "#include <span>\n#include <string>\nint main() { return std::string().size(); }\n")
        .expect("the scratch folder takes files");
    let mut compile = Command::new(toolchain.compiler);
    compile.arg("-std=c++20").args(toolchain.flags).arg(&source).arg("-o").arg(&program);
    let succeeds = |command: &mut Command| command.output().is_ok_and(|output| output.status.success());
    succeeds(&mut compile) && succeeds(&mut Command::new(&program))
}

/// Compiles and links a driver. Without the compiler, or where what it makes with its flags does not run, `None`.
fn build(toolchain: Toolchain, (archive, generated): &(PathBuf, PathBuf)) -> Option<Driver> {
    let folder = scratch(toolchain.name);
    if !is_usable(toolchain, &folder) {
        eprintln!("skipped: no {} that takes {:?}", toolchain.compiler, toolchain.flags);
        return None;
    }
    let names =
        fs::read_to_string(package().join("cpp/original_names.txt")).expect("the list of names is there");
    let renaming: Vec<String> = names.lines().map(|line| format!("-D{line}")).collect();
    let bridge = generated.join("sources/resolver-bridge/src/bridge.rs.cc");
    let mut objects = Vec::new();
    let mut compile = |source: PathBuf, definitions: &[String]| {
        let object = folder.join(source.file_name().expect("a source is a file")).with_extension("o");
        let include = [
            package().join("cpp"),
            package().join("tests/cpp/standin"),
            generated.join("include/resolver-bridge/src"),
        ];
        let mut command = Command::new(toolchain.compiler);
        command
            .args(["-std=c++20", "-g", "-Wall", "-Wextra", "-Werror"])
            .args(toolchain.flags)
            .args(definitions);
        include.iter().for_each(|folder| {
            command.arg("-I").arg(folder);
        });
        succeed(command.arg("-c").arg(source).arg("-o").arg(&object));
        objects.push(object);
    };
    SOURCES.iter().for_each(|source| compile(package().join(source), &[]));
    RENAMED.iter().for_each(|source| compile(package().join(source), &renaming));
    compile(bridge, &[]);
    let program = folder.join("driver");
    let mut link = Command::new(toolchain.compiler);
    link.args(toolchain.flags)
        .args(&objects)
        .arg(archive)
        .args(["-lpthread", "-ldl", "-lm", "-o"])
        .arg(&program);
    succeed(&mut link);
    Some(Driver { name: toolchain.name, program })
}

/// All drivers that this machine can build.
fn drivers() -> &'static [Driver] {
    static DRIVERS: OnceLock<Vec<Driver>> = OnceLock::new();
    DRIVERS.get_or_init(|| {
        let library = library();
        let library = &library;
        let drivers: Vec<Driver> = thread::scope(|scope| {
            let toolchains = if sanitized_target().is_some() { &[SANITIZED][..] } else { &TOOLCHAINS };
            let builds: Vec<_> =
                toolchains.iter().map(|&toolchain| scope.spawn(move || build(toolchain, library))).collect();
            builds.into_iter().filter_map(|build| build.join().expect("the driver builds")).collect()
        });
        assert!(!drivers.is_empty(), "a C++ compiler is needed: g++ or clang++");
        drivers
    })
}

impl Driver {
    /// The driver's process with only the given variables of ours.
    fn command(&self, variables: &[(&str, &str)], arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        for name in ["RESOLVER_HISTORY", "RESOLVER_BUDGET", "RESOLVER_BACKING", "RESOLVER_VECTOR_SEARCH"] {
            command.env_remove(name);
        }
        command.envs(variables.iter().copied()).args(arguments);
        command
    }

    fn is_sanitized(&self) -> bool {
        self.name == "address-sanitizer"
    }
}

/// Runs a command of every driver, under each of these histories.
fn drive(command: &str, histories: &[&str], variables: &[(&str, &str)]) {
    for driver in drivers() {
        for history in histories {
            let variables = [&[("RESOLVER_HISTORY", *history)], variables].concat();
            succeed(&mut driver.command(&variables, &[command]));
        }
    }
}

/// A capture in the plain form, which is the one that the driver reads.
fn plain(path: &Path, folder: &Path) -> PathBuf {
    let to = folder.join(path.file_name().expect("a capture is a file")).with_extension("");
    let mut reader = CaptureReader::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let file = File::create(&to).unwrap_or_else(|error| panic!("{}: {error}", to.display()));
    let mut writer = CaptureWriter::new(BufWriter::new(file)).expect("the scratch folder takes files");
    while let Some(record) =
        reader.next_record().unwrap_or_else(|error| panic!("{}: {error}", path.display()))
    {
        writer.record(&record).expect("the scratch folder takes files");
    }
    to
}

#[test]
fn the_committed_captures_replay_without_a_mismatch_under_every_history() {
    let folder = scratch("captures");
    let paths = captures_in(&captures_dir()).expect("the folder is committed");
    let plain: Vec<PathBuf> = paths.iter().map(|path| plain(path, &folder)).collect();
    let arguments: Vec<&str> =
        ["replay"].into_iter().chain(plain.iter().map(|path| path.to_str().expect("plain names"))).collect();
    for driver in drivers() {
        // The sanitizer slows everything down, and the stand-in for the skip list is slow enough.
        let histories = if driver.is_sanitized() { &HISTORIES[..1] } else { &HISTORIES[..] };
        for history in histories {
            let said = succeed(&mut driver.command(&[("RESOLVER_HISTORY", history)], &arguments));
            assert!(said.starts_with(&format!("{} files, ", paths.len())), "{said}");
            assert!(said.ends_with(" 0 mismatches\n"), "{said}");
        }
    }
}

#[test]
fn the_full_captures_replay_without_a_mismatch() {
    let Some(folder) = shared_captures_dir() else {
        eprintln!("skipped: no full captures beside the repository");
        return;
    };
    let scratch = scratch("full-captures");
    let Some(driver) = drivers().iter().find(|driver| !driver.is_sanitized()) else {
        eprintln!("skipped: sanitized, they would take too long");
        return;
    };
    for path in captures_in(&folder).expect("the folder is there") {
        let plain = plain(&path, &scratch);
        let said = succeed(&mut driver.command(&[], &["replay", plain.to_str().expect("plain names")]));
        fs::remove_file(&plain).expect("it was just written");
        assert!(said.ends_with(" 0 mismatches\n"), "{}: {said}", path.display());
    }
}

#[test]
fn ten_thousand_sets_come_and_go_without_growth() {
    // The sanitizer keeps what is freed, to catch its use; its own leak check stands in for the measurement.
    for driver in drivers().iter().filter(|driver| !driver.is_sanitized()) {
        for history in HISTORIES {
            succeed(&mut driver.command(&[("RESOLVER_HISTORY", history)], &["lifetimes"]));
        }
    }
}

#[test]
fn two_sets_live_side_by_side() {
    drive("two-sets", &HISTORIES, &[]);
}

#[test]
fn a_decided_batch_may_outlive_the_next_ones_beginning() {
    drive("overlapping", &HISTORIES, &[]);
}

#[test]
fn a_batch_that_cannot_fit_clears_the_history_and_is_counted() {
    drive("fallback", &["tree", "shadow"], &[("RESOLVER_BUDGET", "256K")]);
}

#[test]
fn too_old_by_the_cutoff_is_counted_and_no_difference() {
    drive("cutoff", &["tree", "shadow"], &[("RESOLVER_BUDGET", "256K")]);
}

#[test]
fn shadow_mode_shouts_at_a_planted_difference_and_answers_with_the_skip_list() {
    drive("difference", &["shadow"], &[]);
}

#[test]
fn planted_bugs_draw_and_act_as_in_the_original() {
    drive("bugs", &HISTORIES, &[]);
}

#[test]
fn replies_have_the_entries_that_the_originals_have() {
    drive("entries", &HISTORIES, &[]);
}

#[test]
fn empty_ranges_are_left_out_and_counted() {
    drive("empty-ranges", &["tree", "shadow"], &[]);
}

#[test]
fn a_new_database_begins_at_version_0() {
    drive("beginning", &HISTORIES, &[]);
}

#[test]
fn errors_and_panics_cross_as_values() {
    drive("boundary", &["tree", "shadow"], &[]);
}

#[test]
fn a_bad_value_stops_the_process_with_one_line() {
    for driver in drivers() {
        for (variable, value, allowed) in [
            ("RESOLVER_HISTORY", "skip-list", "tree, skiplist or shadow"),
            ("RESOLVER_BUDGET", "12Q", "a number of bytes from "),
            ("RESOLVER_BACKING", "huge", "heap, 4k, thp or hugetlb"),
            ("RESOLVER_VECTOR_SEARCH", "maybe", "on or off"),
        ] {
            let output = run(&mut driver.command(&[(variable, value)], &["two-sets"]));
            let stderr = String::from_utf8_lossy(&output.stderr);
            assert_eq!(output.status.code(), Some(1), "{stderr}");
            assert!(
                stderr.starts_with(&format!("ERROR: {variable}={value}: allowed is {allowed}")),
                "{stderr}"
            );
            assert_eq!(stderr.lines().count(), 1, "{stderr}");
        }
    }
}

/// The instructions that a command executes inside functions of this name, by callgrind.
fn instructions(function: &str, command: &[&str]) -> u64 {
    let output = run(Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--collect-atstart=no"])
        .arg(format!("--toggle-collect=*{function}*"))
        .args(command));
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{command:?}: {said}");
    let collected =
        said.lines().find_map(|line| line.split("Collected : ").nth(1)).expect("callgrind says how many");
    collected.trim().parse().expect("a number")
}

/// The bridge's overhead over calling Rust directly, in instructions. Needs valgrind, and is only of use
/// in release.
#[test]
#[ignore = "minutes under valgrind; in release, on the full captures"]
fn the_bridge_costs_at_most_three_percent_of_a_batch() {
    let folder = shared_captures_dir().unwrap_or_else(captures_dir);
    let capture = plain(&folder.join("bench-skiplist.fdbcap.zst"), &scratch("overhead"));
    let capture = capture.to_str().expect("plain names");
    let toolchain = Toolchain { name: "g++ -O3", compiler: "g++", flags: &["-O3"] };
    let driver = build(toolchain, &library()).expect("g++ is there");
    let program = driver.program.to_str().expect("plain names");
    let through = instructions("Decided::decide", &[program, "replay", capture]);
    let built = cargo_build(&["--example", "direct"]);
    let example = built.iter().find_map(|message| message["executable"].as_str()).expect("a program");
    let directly = instructions("decide_directly", &[example, capture]);
    let overhead = (through as f64 / directly as f64 - 1.0) * 100.0;
    eprintln!("{through} instructions through the bridge, {directly} directly: {overhead:.2} % more");
    assert!(overhead <= 3.0, "{overhead:.2} %");
}

#[test]
#[ignore = "long: the stand-in for the skip list is slow"]
fn skiplisttest_prints_both_histories_and_that_they_agree() {
    let said = succeed(&mut drivers()[0].command(&[], &["skiplisttest"]));
    for line in ["the original's own test", "skip list", "tree", "decisions: equal"] {
        assert!(said.lines().any(|said| said.starts_with(line)), "{line:?} in {said}");
    }
}
