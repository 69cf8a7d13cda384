//! Results on stdout, notes on stderr.

use crate::error::Error;
use resolver_types::{STAGES, Stage};
use serde::Serialize;
use std::fmt;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// A value for each stage, under the stages' names.
#[derive(Clone, Copy, Debug, Serialize)]
pub(crate) struct Phases<T> {
    sort: T,
    check_reads: T,
    within_batch: T,
    combine: T,
    apply: T,
    expire: T,
}

impl<T: Copy> From<[T; STAGES.len()]> for Phases<T> {
    fn from(stages: [T; STAGES.len()]) -> Phases<T> {
        Phases {
            sort: stages[Stage::Sort as usize],
            check_reads: stages[Stage::CheckReads as usize],
            within_batch: stages[Stage::WithinBatch as usize],
            combine: stages[Stage::Combine as usize],
            apply: stages[Stage::Apply as usize],
            expire: stages[Stage::Expire as usize],
        }
    }
}

impl<T> Phases<T> {
    /// The values in the order of the stages.
    pub(crate) fn values(self) -> [T; STAGES.len()] {
        [self.sort, self.check_reads, self.within_batch, self.combine, self.apply, self.expire]
    }
}

/// Rows under a header: the first column to the left, the others to the right.
pub(crate) struct Table(Vec<Vec<String>>);

impl Table {
    pub(crate) fn new(header: &[&str]) -> Table {
        Table(vec![header.iter().map(|&name| name.to_owned()).collect()])
    }

    pub(crate) fn row(&mut self, cells: Vec<String>) {
        assert_eq!(cells.len(), self.0[0].len(), "a cell for every column");
        self.0.push(cells);
    }

    pub(crate) fn header(&self) -> &[String] {
        &self.0[0]
    }

    pub(crate) fn rows(&self) -> &[Vec<String>] {
        &self.0[1..]
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let width = |column: usize| self.0.iter().map(|row| row[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.0[0].len()).map(width).collect();
        for row in &self.0 {
            write!(f, "{:<width$}", row[0], width = widths[0])?;
            for (cell, width) in row.iter().zip(&widths).skip(1) {
                write!(f, "  {cell:>width$}")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

/// Prints results. A reader that has gone away wants no more of them; that is no error.
pub(crate) fn print(results: impl fmt::Display) -> Result<(), Error> {
    let mut stdout = io::stdout().lock();
    match write!(stdout, "{results}").and_then(|()| stdout.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Error::Output(error)),
        _ => Ok(()),
    }
}

/// Prints one JSON document.
pub(crate) fn print_json(document: &impl Serialize) -> Result<(), Error> {
    let text = serde_json::to_string_pretty(document).expect("results have string keys only");
    print(format_args!("{text}\n"))
}

/// A file that takes the place of the one under its name once it is whole: written beside it, and renamed.
///
/// Dropped before [`WholeFile::finish`], it leaves nothing. What is there and is no regular file, such as a pipe, is
/// written as it stands.
pub(crate) enum WholeFile {
    Beside { file: BufWriter<NamedTempFile>, place: PathBuf },
    InPlace(BufWriter<File>),
}

impl WholeFile {
    /// Begins the file.
    pub(crate) fn create(name: &str) -> io::Result<WholeFile> {
        // A link stays a link to what is replaced.
        let place = fs::canonicalize(name).unwrap_or_else(|_| PathBuf::from(name));
        let there = fs::metadata(&place).ok();
        if there.as_ref().is_some_and(|there| !there.is_file()) {
            return Ok(WholeFile::InPlace(BufWriter::new(File::options().write(true).open(place)?)));
        }
        let folder = place.parent().filter(|folder| !folder.as_os_str().is_empty());
        let mut builder = tempfile::Builder::new();
        match there {
            Some(there) => drop(builder.permissions(there.permissions())),
            #[cfg(unix)]
            None => drop(builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666))),
            #[cfg(not(unix))]
            None => {}
        }
        let file = BufWriter::new(builder.tempfile_in(folder.unwrap_or(Path::new(".")))?);
        Ok(WholeFile::Beside { file, place })
    }

    /// Puts the file where it belongs.
    pub(crate) fn finish(self) -> io::Result<()> {
        match self {
            WholeFile::Beside { file, place } => {
                let file = file.into_inner()?;
                file.as_file().sync_all()?;
                file.persist(place)?;
                Ok(())
            }
            WholeFile::InPlace(mut file) => file.flush(),
        }
    }
}

impl Write for WholeFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            WholeFile::Beside { file, .. } => file.write(bytes),
            WholeFile::InPlace(file) => file.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            WholeFile::Beside { file, .. } => file.flush(),
            WholeFile::InPlace(file) => file.flush(),
        }
    }
}

/// Prints a line on stderr. If that fails there is nobody left to tell.
pub(crate) fn note(line: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr(), "{line}");
}

/// Seconds in a form to read.
pub(crate) fn seconds(seconds: f64) -> String {
    match seconds {
        _ if seconds >= 1.0 => format!("{seconds:.2} s"),
        _ if seconds >= 1e-3 => format!("{:.2} ms", seconds * 1e3),
        _ => format!("{:.2} us", seconds * 1e6),
    }
}

/// Bytes in a form to read.
pub(crate) fn bytes(bytes: u64) -> String {
    match bytes {
        _ if bytes >= 1 << 20 => format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20)),
        _ if bytes >= 1 << 10 => format!("{:.1} KiB", bytes as f64 / f64::from(1 << 10)),
        _ => format!("{bytes} B"),
    }
}

/// Reads a number of bytes, or of a unit of them.
pub(crate) fn parse_size(text: &str) -> Option<u64> {
    let units = [("KiB", 1 << 10), ("MiB", 1 << 20), ("GiB", 1 << 30), ("TiB", 1 << 40)];
    let in_unit = |(unit, bytes): (&str, u64)| Some((text.strip_suffix(unit)?, bytes));
    let (number, unit) = units.into_iter().find_map(in_unit).unwrap_or((text, 1));
    let digits = number.bytes().all(|byte| byte.is_ascii_digit());
    number.parse::<u64>().ok().filter(|_| digits)?.checked_mul(unit)
}

/// Reads a number from 1 on.
pub(crate) fn parse_positive(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(0) => Err("it must be at least 1".to_owned()),
        Ok(number) => Ok(number),
        Err(error) => Err(format!("{error}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_there_whole_or_as_it_was() {
        let folder = tempfile::tempdir().expect("a scratch folder");
        let path = folder.path().join("a");
        let name = path.to_str().expect("the path is text");
        let text = || fs::read_to_string(name).expect("the file is there");
        let write = |content: &[u8]| {
            let mut file = WholeFile::create(name).expect("the folder can be written");
            file.write_all(content).expect("there is room");
            file
        };
        drop(write(b"begun"));
        assert!(!path.exists());
        write(b"first").finish().expect("it can be renamed");
        drop(write(b"begun"));
        assert_eq!(text(), "first");
        write(b"second").finish().expect("it can be renamed");
        assert_eq!(text(), "second");
        assert_eq!(fs::read_dir(folder.path()).expect("the folder").count(), 1, "nothing else stays");
        assert!(WholeFile::create(&format!("{name}/b")).is_err());
        assert!(WholeFile::create(folder.path().to_str().expect("the path is text")).is_err());
    }
}
