//! The overlay's configure step, over small projects with the layouts of FoundationDB's releases. Needs
//! CMake; skipped without a usable one.
#![allow(clippy::print_stderr, reason = "says what is skipped, and why")]

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

/// The least version of CMake that FoundationDB's main takes, and so these projects do.
const CMAKE: &str = "3.24";

/// Whether there is such a CMake, with a build program that it can generate for: an empty project is configured once.
fn is_cmake_usable() -> bool {
    static USABLE: OnceLock<bool> = OnceLock::new();
    *USABLE.get_or_init(|| {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("resolver-overlay").join("probe");
        let project = format!("cmake_minimum_required(VERSION {CMAKE})\nproject(probe LANGUAGES C CXX)\n");
        write(&root.join("CMakeLists.txt"), &project);
        let mut configure = Command::new("cmake");
        configure.arg("-S").arg(&root).arg("-B").arg(root.join("build"));
        configure.output().is_ok_and(|output| output.status.success())
    })
}

/// A project that is laid out like a release.
struct Layout {
    name: &'static str,
    version: &'static str,
    target: &'static str,
    /// The folder whose CMakeLists.txt makes the target.
    folder: &'static str,
    source: &'static str,
    header: &'static str,
}

const MAIN: Layout = Layout {
    name: "main",
    version: "8.0.0",
    target: "fdbserver_resolver",
    folder: "fdbserver/resolver",
    source: "ConflictSet.cpp",
    header: "fdbserver/resolver/ConflictSet.h",
};

const RELEASE_7: Layout = Layout {
    name: "release-7",
    version: "7.4.0",
    target: "fdbserver",
    folder: "fdbserver",
    source: "SkipList.cpp",
    header: "fdbserver/include/fdbserver/ConflictSet.h",
};

fn package() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("a file in a folder")).expect("the scratch folder takes folders");
    fs::write(path, text).expect("the scratch folder takes files");
}

impl Layout {
    /// Makes the project anew, and configures it with the overlay. `None` without CMake.
    fn configure(&self) -> Option<(Output, PathBuf)> {
        if !is_cmake_usable() {
            eprintln!("skipped: no cmake from {CMAKE} on, or none that has what it needs");
            return None;
        }
        let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("resolver-overlay").join(self.name);
        if root.exists() {
            fs::remove_dir_all(&root).expect("what an earlier run has left goes");
        }
        let Layout { version, target, folder, source, .. } = self;
        write(
            &root.join("CMakeLists.txt"),
            &format!(
                "cmake_minimum_required(VERSION {CMAKE})\nproject(foundationdb VERSION {version} LANGUAGES C CXX)\n\
                 add_subdirectory({folder})\n"
            ),
        );
        write(
            &root.join(folder).join("CMakeLists.txt"),
            // As FoundationDB does it: sources by absolute paths, with definitions of their own.
            &format!(
                "set(source ${{CMAKE_CURRENT_SOURCE_DIR}}/{source})\nadd_library({target} STATIC ${{source}})\n\
                 set_source_files_properties(${{source}} PROPERTIES COMPILE_DEFINITIONS COMPILATION_UNIT=x)\n"
            ),
        );
        write(&root.join(folder).join(source), "");
        let header = fs::read_to_string(package().join("tests/cpp/standin/fdbserver/ConflictSet.h"));
        write(&root.join(self.header), &header.expect("the stand-in is there"));
        let build = root.join("build");
        let output = Command::new("cmake")
            .arg("-S")
            .arg(&root)
            .arg("-B")
            .arg(&build)
            .arg("-DCMAKE_EXPORT_COMPILE_COMMANDS=ON")
            .arg(format!("-DRESOLVER_CARGO={}", env!("CARGO")))
            .arg(format!(
                "-DCMAKE_PROJECT_foundationdb_INCLUDE={}",
                package().join("../fdb-patches/resolver.cmake").display()
            ))
            .output()
            .expect("cmake was there just now");
        Some((output, build))
    }
}

/// The commands of compile_commands.json, by the names of their sources.
fn commands(build: &Path) -> Vec<(String, String)> {
    let text = fs::read_to_string(build.join("compile_commands.json")).expect("cmake writes the commands");
    let commands: Vec<serde_json::Value> = serde_json::from_str(&text).expect("cmake writes JSON");
    let field =
        |command: &serde_json::Value, name: &str| command[name].as_str().expect("a string").to_owned();
    let name = |path: String| path.rsplit('/').next().unwrap_or_default().to_owned();
    commands.iter().map(|command| (name(field(command, "file")), field(command, "command"))).collect()
}

#[test]
fn the_known_layouts_keep_the_original_under_other_names_and_get_the_adapter() {
    for layout in [MAIN, RELEASE_7] {
        let Some((output, build)) = layout.configure() else { return };
        let [stdout, stderr] = [&output.stdout, &output.stderr].map(|text| String::from_utf8_lossy(text));
        assert!(output.status.success(), "{}: {stderr}", layout.name);
        let Layout { version, folder, source, target, .. } = layout;
        let said = format!(
            "-- resolver overlay: FoundationDB {version}, {folder}/{source} is kept under other names in {target}"
        );
        assert!(stdout.lines().any(|line| line == said), "{said:?} in {stdout}");

        let commands = commands(&build);
        let names = fs::read_to_string(package().join("cpp/original_names.txt")).expect("the list is there");
        for (file, renamed) in [
            (source, true),
            ("original.cpp", true),
            ("adapter.cpp", false),
            ("settings.cpp", false),
            ("skiplist_test.cpp", false),
            ("bridge.rs.cc", false),
        ] {
            let (_, command) = commands
                .iter()
                .find(|(name, _)| name == file)
                .unwrap_or_else(|| panic!("{file} is compiled"));
            for name in names.lines() {
                assert_eq!(command.contains(&format!("-D{name} ")), renamed, "{name} in {command}");
            }
            assert_eq!(command.contains("-DCOMPILATION_UNIT=x"), file == source, "{command}");
        }
    }
}

#[test]
fn an_unknown_layout_stops_with_the_supported_releases() {
    let other_source =
        Layout { name: "other-source", source: "Conflicts.cpp", header: "other/ConflictSet.h", ..MAIN };
    let other_target = Layout { name: "other-target", target: "resolver", ..MAIN };
    for layout in [other_source, other_target] {
        let Some((output, _)) = layout.configure() else { return };
        let stderr = String::from_utf8_lossy(&output.stderr).split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(!output.status.success(), "{}", layout.name);
        let said = "resolver overlay: FoundationDB 8.0.0 has a layout that is not known; \
                    supported are 7.3, 7.4 and main (8.0)";
        assert!(stderr.contains(said), "{stderr}");
    }
}
