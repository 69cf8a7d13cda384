//! Generates the C++ half of the bridge, and compiles none of it: that is the work of whoever builds the
//! C++ side, with their compiler and their flags. The files stand in `OUT_DIR/cxxbridge`, which the build scripts
//! of dependents learn as `DEP_RESOLVER_BRIDGE_GENERATED`; where the variable `RESOLVER_BRIDGE_COPY` names a
//! folder, they are copied there too, under names that do not change.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// The folder that the generated files are copied to.
const COPY: &str = "RESOLVER_BRIDGE_COPY";

fn main() -> io::Result<()> {
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-changed=src/bridge.rs");
    println!("cargo::rerun-if-env-changed={COPY}");
    // Making the builder generates the files; it is not asked to compile them.
    let _ = cxx_build::bridge("src/bridge.rs");
    let generated = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets OUT_DIR")).join("cxxbridge");
    println!("cargo::metadata=GENERATED={}", generated.display());
    if let Some(folder) = env::var_os(COPY) {
        let folder = Path::new(&folder);
        fs::create_dir_all(folder.join("rust"))?;
        copy(&generated.join("include/rust/cxx.h"), &folder.join("rust/cxx.h"))?;
        copy(&generated.join("include/resolver-bridge/src/bridge.rs.h"), &folder.join("bridge.rs.h"))?;
        copy(&generated.join("sources/resolver-bridge/src/bridge.rs.cc"), &folder.join("bridge.rs.cc"))?;
    }
    Ok(())
}

/// Copies a file, unless it is there already: its time must not change when it does not.
fn copy(from: &Path, to: &Path) -> io::Result<()> {
    let new = fs::read(from)?;
    if fs::read(to).is_ok_and(|old| old == new) { Ok(()) } else { fs::write(to, new) }
}
