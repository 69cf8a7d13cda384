//! Compiles the bridge's C++ side over the stand-in headers of its tests, and what drives it from here. The compiler and
//! its flags are the environment's: `CXX`, `CXXFLAGS`, and `RESOLVER_CXXFLAGS` for these sources alone.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let bridge = Path::new(env!("CARGO_MANIFEST_DIR")).join("../cpp-bridge");
    let generated =
        PathBuf::from(env::var_os("DEP_RESOLVER_BRIDGE_GENERATED").expect("the bridge's build says where"));
    let standin = bridge.join("tests/cpp/standin");
    let include = [bridge.join("cpp"), standin.clone(), generated.join("include/resolver-bridge/src")];
    let flags = env::var("RESOLVER_CXXFLAGS").unwrap_or_default();
    let prepare = |build: &mut cc::Build| {
        build
            .cpp(true)
            .std("c++20")
            .includes(&include)
            .flag("-Wall")
            .flag("-Wextra")
            .flags(flags.split_whitespace());
    };

    // Linked in this order: what drives the surface, the surface, what the surface stands on.
    let mut driver = cxx_build::bridge("src/bridge.rs");
    prepare(&mut driver);
    driver.include("cpp").file("cpp/set.cpp").compile("resolver-fuzz-driver");

    let mut surface = cc::Build::new();
    prepare(&mut surface);
    surface
        .files([bridge.join("cpp/adapter.cpp"), bridge.join("cpp/settings.cpp")])
        .file(generated.join("sources/resolver-bridge/src/bridge.rs.cc"))
        .compile("resolver-fuzz-surface");

    let mut original = cc::Build::new();
    prepare(&mut original);
    for line in fs::read_to_string(bridge.join("cpp/original_names.txt"))?.lines() {
        let (name, renamed) = line.split_once('=').expect("NAME=RENAMED");
        original.define(name, renamed);
    }
    original
        .files([bridge.join("cpp/original.cpp"), standin.join("ConflictSet.cpp")])
        .compile("resolver-fuzz-original");

    println!("cargo::rerun-if-env-changed=RESOLVER_CXXFLAGS");
    for folder in ["cpp", "src/bridge.rs"] {
        println!("cargo::rerun-if-changed={folder}");
    }
    for folder in ["cpp", "tests/cpp/standin"] {
        println!("cargo::rerun-if-changed={}", bridge.join(folder).display());
    }
    Ok(())
}
