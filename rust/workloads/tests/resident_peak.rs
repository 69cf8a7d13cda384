//! The peak of a process's memory. Alone in its file, so alone in its process: another test that gives memory back
//! between two readings would be seen as well.
#![cfg(target_os = "linux")]

use resolver_workloads::process::{ResidentPeak, field};

#[test]
fn a_peak_sees_memory_that_is_gone_again() {
    let peak = ResidentPeak::start().expect("Linux tells");
    peak.reset();
    let held = std::hint::black_box(vec![1u8; 48 << 20]);
    drop(held);
    assert!(peak.above_start().expect("Linux tells") >= 40 << 20);
    assert_eq!(field("NoSuchField:"), None);
}
