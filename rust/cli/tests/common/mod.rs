//! Running the `resolver` command.

use serde_json::Value;
use std::process::{Command, Output, Stdio};

pub(crate) fn command(args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_resolver"));
    command.args(args).stdin(Stdio::null());
    command
}

pub(crate) fn run(args: &[&str]) -> Output {
    command(args).output().expect("the command starts")
}

pub(crate) fn stderr(output: &Output) -> String {
    String::from_utf8(output.stderr.clone()).expect("stderr is text")
}

/// Stdout as one JSON document, of a run that must end with `code`.
pub(crate) fn json(args: &[&str], code: i32) -> Value {
    let output = run(args);
    assert_eq!(output.status.code(), Some(code), "{args:?}: {}", stderr(&output));
    serde_json::from_slice(&output.stdout).expect("one JSON document")
}
