//! Tells the command which commit it is built from.

use std::path::Path;
use std::process::Command;

fn main() {
    let git = |args: &[&str]| {
        let output = Command::new("git").args(args).output().ok().filter(|output| output.status.success())?;
        Some(String::from_utf8(output.stdout).ok()?.trim().to_owned())
    };
    // A commit moves one of these; without either, this runs as seldom as for any other change of the package.
    for file in ["HEAD", "logs/HEAD"] {
        if let Some(path) = git(&["rev-parse", "--git-path", file]).filter(|path| Path::new(path).exists()) {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    // Whether the sources are those of the commit.
    println!("cargo::rerun-if-changed=..");
    let commit = git(&["describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]);
    println!("cargo::rustc-env=RESOLVER_COMMIT={}", commit.unwrap_or_default());
}
