//! Progress, on a terminal only.

use berth_import::Watch;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::time::Duration;

/// A line on standard error that is erased at the end.
pub struct Bar(ProgressBar);

impl Bar {
    pub fn new(hidden: bool) -> Bar {
        let bar = ProgressBar::no_length().with_style(counting());
        if hidden {
            bar.set_draw_target(ProgressDrawTarget::hidden());
        }
        bar.enable_steady_tick(Duration::from_millis(200));
        Bar(bar)
    }
}

fn counting() -> ProgressStyle {
    style("{spinner} {prefix}: {pos} ({per_sec})")
}

fn style(template: &str) -> ProgressStyle {
    ProgressStyle::with_template(template)
        .expect("the template is fixed and valid")
        .progress_chars("█░")
}

impl Watch for Bar {
    fn begin(&self, what: &str, total: Option<u64>) {
        // Names come from the source, so remove control characters.
        let what: String = what.chars().filter(|c| !c.is_control()).take(60).collect();
        self.0.set_position(0);
        match total {
            Some(total) => {
                self.0.set_length(total);
                self.0.set_style(style("{prefix} {bar:24} {pos} of {len}"));
            }
            None => self.0.set_style(counting()),
        }
        self.0.set_prefix(what);
    }

    fn advance(&self, by: u64) {
        self.0.inc(by);
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
