//! Whether this machine has its cores to itself. Others on the same host slow it down, by whole
//! minutes and without any count of it: what shares a core's caches and units takes no CPU time away.
//! So it is tried out how much gets done.

use std::time::{Duration, Instant};

/// Of the best pace seen, the least at which something is measured while there is patience.
const CALM: f64 = 0.85;
/// How long it is tried what gets done, and how long is waited where that is little.
const PROBE: Duration = Duration::from_millis(300);
const PAUSE: Duration = Duration::from_secs(3);
/// Of one step of a probe, which is over in microseconds.
const ROUNDS: u64 = 1_024;
/// Calculations side by side that do not wait for each other: they need all units of a core, and so
/// feel whoever shares it.
const LANES: usize = 16;

/// Waits for others, for so long in all.
pub struct CalmWait {
    left: Duration,
    /// The most that got done in a second so far.
    best: f64,
}

impl CalmWait {
    /// With the best pace that is known from before.
    pub fn new(left: Duration, best: f64) -> CalmWait {
        CalmWait { left, best }
    }

    /// The best pace so far.
    pub fn best(&self) -> f64 {
        self.best
    }

    /// Whether the machine is about as fast now as it has ever been.
    pub fn is_calm(&mut self) -> bool {
        self.look().1
    }

    /// How fast the machine is now, and whether that is calm.
    fn look(&mut self) -> (f64, bool) {
        let pace = pace();
        self.best = self.best.max(pace);
        (pace, pace >= self.best * CALM)
    }

    /// Waits until the machine is about as fast as it has ever been, or for as long as there is
    /// patience. Returns how fast it is now.
    pub fn wait(&mut self) -> f64 {
        let began = Instant::now();
        loop {
            let (pace, is_calm) = self.look();
            if is_calm || began.elapsed() >= self.left {
                self.left = self.left.saturating_sub(began.elapsed());
                return pace;
            }
            std::thread::sleep(PAUSE);
        }
    }
}

/// CPU time since the start of the machine, and what of it others on the host took while something
/// here wanted to run, both in ticks; no time where the system does not tell.
#[derive(Debug, Clone, Copy, Default)]
pub struct Ticks {
    all: f64,
    taken: f64,
}

impl Ticks {
    /// Of `cpu`, the line of all cores: in user mode, nice, system, idle, waiting for disks, two kinds
    /// of interrupts, and taken by others.
    pub fn now() -> Ticks {
        let text = std::fs::read_to_string("/proc/stat").unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix("cpu "));
        let ticks = line.unwrap_or_default().split_whitespace().take(8);
        let ticks: Vec<f64> = ticks.filter_map(|ticks| ticks.parse().ok()).collect();
        Ticks { all: ticks.iter().sum(), taken: ticks.get(7).copied().unwrap_or_default() }
    }

    /// How much of the machine others took since then.
    pub fn taken_since(self, then: Ticks) -> f64 {
        (self.taken - then.taken) / (self.all - then.all).max(1.0)
    }
}

/// What gets done in a second with all cores at work.
fn pace() -> f64 {
    let cores = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    let work = || {
        let (began, mut steps, mut lanes) = (Instant::now(), 0_u64, [1_u64; LANES]);
        while began.elapsed() < PROBE {
            for round in 0..ROUNDS {
                for lane in &mut lanes {
                    *lane = (*lane ^ round).wrapping_mul(0x9E37_79B9_7F4A_7C15).rotate_left(23);
                }
            }
            steps += 1;
            std::hint::black_box(&mut lanes);
        }
        steps as f64 / began.elapsed().as_secs_f64()
    };
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..cores).map(|_| scope.spawn(work)).collect();
        all.into_iter().map(|one| one.join().unwrap_or(0.0)).sum()
    })
}
