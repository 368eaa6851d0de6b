//! How far a run is, on a terminal only.

use std::io::{IsTerminal, Write};

const CELLS: usize = 24;

pub struct Bar {
    what: String,
    jobs: usize,
    shown: bool,
}

impl Bar {
    pub fn new(what: &str, jobs: usize) -> Bar {
        let bar = Bar { what: what.to_owned(), jobs, shown: std::io::stderr().is_terminal() };
        bar.told(0);
        bar
    }

    pub fn told(&self, through: usize) {
        if self.shown {
            eprint!("\r\x1b[K{}", self.text(through));
            let _ = std::io::stderr().flush();
        }
    }

    fn text(&self, through: usize) -> String {
        let full = (CELLS * through / self.jobs.max(1)).min(CELLS);
        let (done, left) = ("█".repeat(full), "░".repeat(CELLS - full));
        format!("{} {done}{left} {through} of {} jobs", self.what, self.jobs)
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if self.shown {
            eprint!("\r\x1b[K");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_bar_is_half_full_when_half_is_through() {
        let bar = Bar { what: "berth".to_owned(), jobs: 10, shown: false };
        let cells = |through: usize| bar.text(through).matches('█').count();
        assert_eq!([0, 5, 10, 12].map(cells), [0, 12, 24, 24]);
    }
}
