//! The mapping of a trace's file.
#![allow(unsafe_code)]

use memmap2::{Advice, Mmap};
use std::fs::File;
use std::io;

/// Maps a file to be read from front to back.
pub(super) fn map(file: &File) -> io::Result<Mmap> {
    // SAFETY: the mapping is private to this process and read only. A file that somebody else shortens meanwhile ends the
    // process with a signal, and one that somebody overwrites gives other bytes: traces are appended to and never changed, and every byte is held
    // against a checksum and decoded with bounds checks, so that whatever is read is no more than a damaged frame.
    let map = unsafe { Mmap::map(file)? };
    // A hint; a system that knows no such advice reads as well.
    let _ = map.advise(Advice::Sequential);
    Ok(map)
}
