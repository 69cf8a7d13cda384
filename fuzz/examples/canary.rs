//! Names the planted bug that a target must find: `canary TARGET`.
#![allow(clippy::print_stdout, clippy::print_stderr)] // tells

use std::process::ExitCode;

fn main() -> ExitCode {
    let name = std::env::args().nth(1).unwrap_or_default();
    match resolver_fuzz::TARGETS.iter().find(|target| target.name == name) {
        Some(target) => {
            println!("{}", target.canary);
            ExitCode::SUCCESS
        }
        None => {
            eprintln!("no such target: {name:?}");
            ExitCode::from(2)
        }
    }
}
