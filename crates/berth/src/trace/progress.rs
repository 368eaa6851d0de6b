//! How far a run is, on a terminal only.

use indicatif::{ProgressBar, ProgressStyle};

/// A bar on standard error, gone when the run is over.
pub struct Bar(ProgressBar);

impl Bar {
    pub fn new(name: &str, jobs: usize) -> Bar {
        let style = ProgressStyle::with_template("{prefix} {bar:24} {pos} of {len} jobs")
            .expect("the template is fixed and valid")
            .progress_chars("█░");
        Bar(ProgressBar::new(jobs as u64).with_style(style).with_prefix(name.to_owned()))
    }

    pub fn set(&self, finished: usize) {
        self.0.set_position(finished as u64);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
