//! The version of a read or of a commit.

use std::fmt;

/// A database version: a signed 64-bit number that a sequencer hands out, about 1,000,000 a second.
///
/// Commit versions are never negative; a read version of -1 means none; a batch's `oldest` starts below zero.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct Version(pub i64);

impl Version {
    /// Lower than every version that a batch or a transaction can carry.
    pub const LOWEST: Version = Version(i64::MIN);
    /// The version of every key of a new history.
    pub const ZERO: Version = Version(0);
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
