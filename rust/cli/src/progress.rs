//! A bar for long work.

use indicatif::{ProgressBar, ProgressStyle};

/// A bar on stderr, invisible where that is not a terminal; gone when dropped.
pub(crate) struct Progress(ProgressBar);

impl Progress {
    pub(crate) fn new(label: &str, length: u64) -> Progress {
        let bar = ProgressBar::new(length);
        let style = ProgressStyle::with_template("{msg} {wide_bar} {percent:>3} % {elapsed}");
        bar.set_style(style.expect("the template is valid"));
        bar.set_message(label.to_owned());
        Progress(bar)
    }

    pub(crate) fn advance(&self, by: u64) {
        self.0.inc(by);
    }
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
