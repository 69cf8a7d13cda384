//! Fuzz targets: what they draw from their input, what they check, and what was found once.
//!
//! | target | module | checks |
//! | --- | --- | --- |
//! | `tree` | [`tree`] | batches through the tree, the skip list and the model |
//! | `budget` | [`budget`] | the same under tiny budgets, with address space refused where the fuzzer wants |
//! | `keys` | [`keys`] | the key log and the chains of separators alone |
//! | `nodes` | [`nodes`] | leaves and inner nodes alone |
//! | `capture` | [`capture`] | the reader of captures, on raw bytes |
//! | `trace` | [`trace`] | the reader of traces, on raw bytes and on damaged traces with sound checksums |
//! | `bridge` | [`bridge`] | batches through the C++ side: flattened, over the boundary, and back |
//!
//! The bodies are plain functions here, on stable Rust: `tests/` replays the committed inputs and every seed
//! through them. `fuzz_targets/` hands them to libFuzzer when built with `--cfg fuzzing`; without it, the same
//! programs replay files.

pub mod bridge;
pub mod budget;
pub mod capture;
mod history;
pub mod keys;
pub mod nodes;
mod script;
mod seeds;
mod target;
pub mod trace;
pub mod tree;

pub use seeds::seeds;
pub use target::{Canary, Target, replay};

#[cfg(fuzzing)]
#[doc(hidden)]
pub use libfuzzer_sys;

/// Every target.
pub const TARGETS: [Target; 7] = [
    tree::TARGET,
    budget::TARGET,
    keys::TARGET,
    nodes::TARGET,
    capture::TARGET,
    trace::TARGET,
    bridge::TARGET,
];

/// The program of a target: libFuzzer's with `--cfg fuzzing`, else one that replays files.
#[macro_export]
macro_rules! target {
    ($name:ident) => {
        #[cfg(fuzzing)]
        $crate::libfuzzer_sys::fuzz_target!(|input: &[u8]| $crate::$name::TARGET.run(input));

        #[cfg(not(fuzzing))]
        fn main() -> std::process::ExitCode {
            $crate::replay($crate::$name::TARGET)
        }
    };
}
