//! Whether this machine has its cores to itself. What is measured while others on the same host have
//! them says something about these others.

use std::time::{Duration, Instant};

/// Of the CPU time there is, the most that may go to others while something is measured.
pub const CALM: f64 = 0.05;
/// How long it is tried whether the cores are free, and how long is waited where they are not.
const PROBE: Duration = Duration::from_millis(400);
const PAUSE: Duration = Duration::from_secs(5);

/// CPU time of the whole machine since it started. A guest that shares its cores is told how long it
/// waited for them.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ticks {
    all: u64,
    stolen: u64,
}

impl Ticks {
    pub fn now() -> Ticks {
        let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
        let line = text.lines().next().unwrap_or_default();
        let ticks = line.split_whitespace().skip(1).map(|number| number.parse().unwrap_or(0));
        // The eighth is what was stolen; the two after it are counted in the first two already.
        let ticks: Vec<u64> = ticks.take(8).collect();
        Ticks { all: ticks.iter().sum(), stolen: ticks.get(7).copied().unwrap_or(0) }
    }

    /// The part that was withheld since then.
    pub fn withheld_since(self, then: Ticks) -> f64 {
        let all = self.all.saturating_sub(then.all).max(1);
        self.stolen.saturating_sub(then.stolen) as f64 / all as f64
    }
}

/// How long may be waited for others, in all.
pub struct Patience {
    left: Duration,
}

impl Patience {
    pub fn new(left: Duration) -> Patience {
        Patience { left }
    }

    pub fn is_over(&self) -> bool {
        self.left.is_zero()
    }

    /// Waits until the cores are free, or for as long as there is patience.
    pub fn wait(&mut self) {
        let began = Instant::now();
        while began.elapsed() < self.left && busy() > CALM {
            std::thread::sleep(PAUSE);
        }
        self.left = self.left.saturating_sub(began.elapsed());
    }
}

/// What is withheld from somebody who wants all cores.
fn busy() -> f64 {
    let before = Ticks::now();
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    std::thread::scope(|scope| {
        for _ in 0..cores {
            scope.spawn(|| {
                let began = Instant::now();
                while began.elapsed() < PROBE {
                    std::hint::spin_loop();
                }
            });
        }
    });
    Ticks::now().withheld_since(before)
}
