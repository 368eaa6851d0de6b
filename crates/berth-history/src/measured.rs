//! What the GPUs of the machine do, minute by minute, and the energy that takes.

use crate::load::Habit;
use berth_figures::{Figure, HeldGpu, Sample, Series};
use berth_model::{LeaseId, Slice, Span, Time};
use berth_service::Book;
use std::collections::BTreeMap;

/// What a GPU takes at rest and at its most, in milliwatts.
const REST: i64 = 72_000;
const MOST: i64 = 700_000;
const CLOCK: i64 = 1_980;
const MEMORY_MIB: i64 = 81_559;
/// A power limit held the clock back, as NVML numbers it.
const POWER_CAP: i64 = 4;

/// A part of a GPU, and what its holder does.
#[derive(Debug, Clone, Copy)]
struct Hold {
    milli: i64,
    habit: Habit,
    since: Time,
}

#[derive(Debug, Clone, Default)]
struct Gpu {
    holds: BTreeMap<LeaseId, Hold>,
    energy_mj: i64,
    /// Up to when that is.
    at: Time,
}

/// In thousandths of what is there.
#[derive(Debug, Clone, Copy, Default)]
struct Doing {
    busy: i64,
    tensor: i64,
    dram: i64,
    memory: i64,
}

pub struct Gpus {
    node: String,
    each: Vec<Gpu>,
    /// Leases and their GPUs.
    leases: BTreeMap<LeaseId, Vec<u32>>,
    /// What began and ended since the meter was told.
    news: Vec<News>,
}

enum News {
    Begin(LeaseId, Vec<HeldGpu>, Vec<(u32, i64)>, Time),
    End(LeaseId, Vec<(u32, i64)>, Time),
}

impl Gpus {
    pub fn new(node: &str, count: u32) -> Gpus {
        let each = vec![Gpu::default(); count as usize];
        Gpus { node: node.to_owned(), each, leases: BTreeMap::new(), news: Vec::new() }
    }

    pub fn take(&mut self, lease: LeaseId, slices: &[Slice], habit: Habit, at: Time) {
        let gpus: Vec<u32> = slices.iter().map(|slice| slice.gpu).collect();
        let counters = self.count(&gpus, at);
        for slice in slices {
            let hold = Hold { milli: slice.share.milli(), habit, since: at };
            if let Some(gpu) = self.each.get_mut(slice.gpu as usize) {
                gpu.holds.insert(lease, hold);
            }
        }
        let parts =
            slices.iter().map(|slice| HeldGpu { gpu: slice.gpu, milli: slice.share.milli() });
        self.news.push(News::Begin(lease, parts.collect(), counters, at));
        self.leases.insert(lease, gpus);
    }

    pub fn give_back(&mut self, lease: LeaseId, at: Time) {
        let Some(gpus) = self.leases.remove(&lease) else { return };
        let counters = self.count(&gpus, at);
        for gpu in gpus {
            self.each[gpu as usize].holds.remove(&lease);
        }
        self.news.push(News::End(lease, counters, at));
    }

    pub fn holders(&self, gpu: u32) -> Vec<LeaseId> {
        let found = self.each.get(gpu as usize);
        found.into_iter().flat_map(|gpu| gpu.holds.keys().copied()).collect()
    }

    /// Their energy counters at a moment.
    fn count(&mut self, gpus: &[u32], at: Time) -> Vec<(u32, i64)> {
        let count = |index: &u32| {
            let gpu = self.each.get_mut(*index as usize)?;
            let power = power(&doing(gpu, *index, at));
            let passed = if gpu.at == Time::default() { 0 } else { (at - gpu.at).0 };
            gpu.energy_mj += power / 1_000 * passed;
            gpu.at = at;
            Some((*index, gpu.energy_mj))
        };
        gpus.iter().filter_map(count).collect()
    }

    /// Tells the meter who has used how much until now.
    pub fn meter(&mut self, book: &Book, at: Time) {
        let mut meter = book.meter();
        for news in self.news.drain(..) {
            match news {
                News::Begin(lease, parts, counters, then) => {
                    counters.iter().for_each(|(gpu, counter)| meter.read(*gpu, *counter, then));
                    meter.begin(lease, parts, then);
                }
                News::End(lease, counters, then) => {
                    counters.iter().for_each(|(gpu, counter)| meter.read(*gpu, *counter, then));
                    meter.end(lease);
                }
            }
        }
        let all: Vec<u32> = (0..self.each.len() as u32).collect();
        for (gpu, counter) in self.count(&all, at) {
            meter.read(gpu, counter, at);
        }
    }

    /// One look at everything, as a server makes it every few seconds.
    pub fn look(&mut self, book: &Book, at: Time) {
        self.meter(book, at);
        for (index, gpu) in (0..).zip(&self.each) {
            let values = values(&doing(gpu, index, at), gpu.energy_mj);
            let series = Series::Gpu { node: self.node.clone(), index };
            book.push(series, Sample { at, values });
        }
        for (lease, gpus) in &self.leases {
            let first = gpus.first().and_then(|gpu| self.each[*gpu as usize].holds.get(lease));
            if let Some(hold) = first {
                let values = task_values(hold, gpus.len() as i64, seed(*lease), at);
                book.push(Series::Task(*lease), Sample { at, values });
            }
        }
        book.end_tasks(|lease| self.leases.contains_key(&lease));
    }
}

fn seed(lease: LeaseId) -> u64 {
    lease.job.number << 8 | u64::from(lease.attempt) << 4 | u64::from(lease.task)
}

/// A value that wanders between nought and a thousand, and is the same for the same moment.
fn wander(seed: u64, at: Time, period: Span) -> i64 {
    let (step, within) = (at.0.div_euclid(period.0), at.0.rem_euclid(period.0));
    let point = |step: i64| {
        let mixed = (seed ^ step.cast_unsigned().wrapping_mul(0x9E37_79B9_7F4A_7C15))
            .wrapping_mul(0xBF58_476D_1CE4_E5B9);
        ((mixed ^ mixed >> 29) % 1_001) as i64
    };
    let (from, to) = (point(step), point(step + 1));
    from + (to - from) * within / period.0
}

fn doing(gpu: &Gpu, index: u32, at: Time) -> Doing {
    let mut all = Doing::default();
    for (lease, hold) in &gpu.holds {
        let one = habit(hold, seed(*lease) << 7 | u64::from(index), seed(*lease), at);
        let part = |value: i64| value * hold.milli / 1_000;
        all.busy += part(one.busy);
        all.tensor += part(one.tensor);
        all.dram += part(one.dram);
        all.memory += part(one.memory);
    }
    all
}

/// GPUs of one job do nearly the same: `job` is what they have in common, `own` what they have not.
fn habit(hold: &Hold, own: u64, job: u64, at: Time) -> Doing {
    let slow = wander(job, at, Span::mins(20));
    let fast = wander(own, at, Span::mins(2));
    let size = wander(job, Time(0), Span::days(1));
    match hold.habit {
        // The first minutes go into loading data and compiling.
        Habit::Trains | Habit::Starves if at - hold.since < Span::mins(2) => {
            Doing { busy: 40 + fast / 20, tensor: 0, dram: 60, memory: 120 }
        }
        Habit::Trains => {
            let busy = 880 + slow / 20 + fast / 20;
            Doing { busy, tensor: busy * 62 / 100, dram: 420 + fast / 8, memory: 700 + size / 4 }
        }
        Habit::Starves => {
            let busy = 330 + slow / 5 + fast / 6;
            Doing { busy, tensor: busy * 45 / 100, dram: 250 + fast / 8, memory: 450 + size / 4 }
        }
        Habit::Evaluates => {
            let bursts = fast > 350;
            let busy = if bursts { 600 + fast / 4 } else { fast / 10 };
            Doing { busy, tensor: busy * 50 / 100, dram: busy * 55 / 100, memory: 300 + size / 3 }
        }
        Habit::Idles => Doing { busy: fast / 180, tensor: 0, dram: 0, memory: 90 + size / 10 },
    }
}

fn power(doing: &Doing) -> i64 {
    REST + (MOST - REST) * (doing.busy * 6 + doing.tensor * 4).min(10_000) / 10_000
}

fn values(doing: &Doing, energy_mj: i64) -> BTreeMap<Figure, i64> {
    let power = power(doing);
    let capped = power > 610_000;
    BTreeMap::from([
        (Figure::Utilization, (doing.busy * 104 / 100).clamp(0, 1_000)),
        (Figure::SmActive, doing.busy.clamp(0, 1_000)),
        (Figure::TensorActive, doing.tensor.clamp(0, 1_000)),
        (Figure::DramActive, doing.dram.clamp(0, 1_000)),
        (Figure::GpuMemory, MEMORY_MIB * doing.memory.clamp(6, 1_000) / 1_000),
        (Figure::Power, power),
        (Figure::Energy, energy_mj),
        (Figure::SmClock, if capped { CLOCK - (power - 610_000) / 400 } else { CLOCK }),
        (Figure::SmClockMax, CLOCK),
        (Figure::ClockReasons, if capped { POWER_CAP } else { 0 }),
        (Figure::Temperature, 27 + power / 15_000),
    ])
}

fn task_values(hold: &Hold, gpus: i64, seed: u64, at: Time) -> BTreeMap<Figure, i64> {
    let (slow, fast) = (wander(seed, at, Span::mins(15)), wander(seed, at, Span::mins(1)));
    let (cores, reads) = match hold.habit {
        Habit::Trains => (6_000 + slow * 2, 180_000 + fast * 60),
        Habit::Starves => (11_000 + slow * 4, 420_000 + fast * 300),
        Habit::Evaluates => (3_000 + slow, 60_000 + fast * 40),
        Habit::Idles => (20 + fast / 10, fast / 100),
    };
    // A checkpoint now and then.
    let written = if at.0.rem_euclid(Span::mins(30).0) < 60_000 { 900_000 } else { 400 + fast };
    BTreeMap::from([
        (Figure::Cpu, cores * gpus),
        (Figure::Memory, (24_000 + slow * 20) * gpus.max(1)),
        (Figure::Read, reads * gpus / 2),
        (Figure::Written, if hold.habit == Habit::Idles { fast / 200 } else { written }),
        (Figure::Processes, 3 + 9 * gpus),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_model::{JobId, Share};

    #[test]
    fn those_who_hold_gpus_have_used_all_the_energy_of_their_time() {
        let (book, mut gpus) = (Book::default(), Gpus::new("box", 2));
        let lease = LeaseId { job: JobId::new(7), task: 0, attempt: 0 };
        let whole = |gpu| Slice { gpu, share: Share::Whole };
        let start = Time(1_790_000_000_000);
        gpus.meter(&book, start);
        gpus.take(lease, &[whole(0), whole(1)], Habit::Trains, start);
        gpus.look(&book, start + Span::mins(30));
        gpus.give_back(lease, start + Span::hours(1));
        gpus.meter(&book, start + Span::hours(2));
        let used = book.meter().used();
        assert_eq!(used.len(), 1);
        let kwh = used[0].energy_mj as f64 / 3.6e9;
        assert!((0.8..1.4).contains(&kwh), "two GPUs for an hour took {kwh} kWh");
        assert!(used[0].is_over);
    }

    #[test]
    fn an_idle_holder_is_told_from_one_that_trains() {
        let at = Time(1_790_000_000_000);
        let of = |what| {
            let hold = Hold { milli: 1_000, habit: what, since: at - Span::hours(1) };
            (0..60).map(|minute| habit(&hold, 5, 5, at + Span::mins(minute)).busy).max().unwrap()
        };
        assert!(of(Habit::Idles) < 10);
        assert!(of(Habit::Trains) > 880);
    }
}
