//! What the operating system says about this process.

use std::fs;

/// The process's resident memory, and the most it was since [`ResidentPeak::reset`]. Linux tells; elsewhere nobody does.
#[derive(Clone, Copy, Debug)]
pub struct ResidentPeak {
    before: u64,
}

impl ResidentPeak {
    /// Notes what is resident now; `None` where that cannot be had.
    pub fn start() -> Option<ResidentPeak> {
        Some(ResidentPeak { before: field("VmRSS:")? })
    }

    /// Forgets the peak so far: the next one is what is resident from here on.
    pub fn reset(&self) {
        // A kernel that does not allow it leaves the older, greater peak.
        let _ = fs::write("/proc/self/clear_refs", "5");
    }

    /// How far the peak lies above what was resident at the start, in bytes.
    pub fn above_start(&self) -> Option<u64> {
        Some(field("VmHWM:")?.saturating_sub(self.before))
    }
}

/// A field of the process's status, in bytes.
pub fn field(name: &str) -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    kib_field(&status, name)
}

/// What stands behind a name at the start of a line.
pub(crate) fn line_after<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| line.strip_prefix(name)).map(str::trim)
}

/// A field that one of Linux's files gives in kB, in bytes.
pub(crate) fn kib_field(text: &str, name: &str) -> Option<u64> {
    line_after(text, name)?.strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1 << 10)
}
