//! A run gone through once more from its outcomes: who held what, who waited, and what was idle.

use super::{GpuTime, gpu_time};
use crate::fleet::{Fleet, Machine};
use crate::outcome::{Place, Timeline};
use crate::peers::free::FreeGpus;
use crate::peers::{Ask, Job};
use berth_model::{Milli, Span, Time};
use serde::Serialize;
use std::collections::BTreeMap;

/// Points of a series.
pub const BINS: usize = 240;

/// Why GPUs were idle, worse reasons last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cause {
    /// Nobody waited who could have used them.
    NoDemand,
    /// Those who waited needed more than was free.
    TooFew,
    /// Enough was free, but not together.
    Fragmented,
    /// Somebody who waited would have fitted, and the policy did not start him: for an order, a
    /// quota or a reservation.
    HeldBack,
}

pub(super) const CAUSES: usize = 4;

/// GPU time of the machines of one kind and price.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Tally {
    pub busy: GpuTime,
    pub idle: [GpuTime; CAUSES],
    pub down: GpuTime,
}

/// Means over equal stretches of the run, from the first submission to the last end.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct Series {
    /// Length of one stretch, in seconds.
    pub step: f64,
    /// GPUs that were there, held, and jobs that waited.
    pub there: Vec<f64>,
    pub held: Vec<f64>,
    pub waiting: Vec<f64>,
}

/// What the sweep finds.
pub(super) struct Swept {
    pub tallies: Vec<Tally>,
    /// Free GPU time, and what of it a job of the trace's mix could not have used.
    pub free: GpuTime,
    pub unusable: f64,
    pub series: Series,
}

/// What changes at a moment, in the order in which changes are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Change {
    Ends { job: u32, segment: u32 },
    Repaired { outage: u32 },
    Comes { machine: u32 },
    Fails { outage: u32 },
    Leaves { machine: u32 },
    Waits { job: u32 },
    Starts { job: u32, segment: u32 },
}

pub(super) struct Sweep<'a> {
    timeline: &'a Timeline,
    jobs: &'a [Job],
    /// The fleet, and behind it what was bought.
    all: Fleet,
    fixed: usize,
    class: &'a [usize],
    /// A class has one model, that of any of its machines.
    model_of: Vec<usize>,
    free: FreeGpus,
    waiting: BTreeMap<Ask, u32>,
    waiters: i64,
    /// Places of those who were not placed on nodes.
    scattered: BTreeMap<u32, Place>,
    /// GPUs that an outage really took.
    out: Vec<u32>,
    there: Vec<i64>,
    busy: Vec<i64>,
    down: Vec<i64>,
    unfit: Vec<f64>,
    begin: Time,
    step: i64,
    sums: [Vec<f64>; 3],
    swept: Swept,
}

impl<'a> Sweep<'a> {
    /// `class` gives each machine of the fleet, and behind them each that was bought, the number
    /// of its tally.
    pub(super) fn run(
        timeline: &'a Timeline,
        fleet: &Fleet,
        jobs: &'a [Job],
        class: &'a [usize],
        window: (Time, Time),
    ) -> Swept {
        let classes = class.iter().max().map_or(0, |most| most + 1);
        let mut all = fleet.clone();
        let bought = timeline.bought.iter().map(|one| Machine { gpus: one.gpus, model: one.model });
        all.nodes.extend(bought);
        let free = FreeGpus::new(&all);
        let mut model_of = vec![0; classes];
        for (node, machine) in all.nodes.iter().enumerate() {
            model_of[class[node]] = machine.model as usize;
        }
        let (begin, end) = window;
        let mut sweep = Sweep {
            timeline,
            jobs,
            fixed: fleet.nodes.len(),
            class,
            model_of,
            unfit: unfit(jobs, &all),
            all,
            free,
            waiting: BTreeMap::new(),
            waiters: 0,
            scattered: BTreeMap::new(),
            out: vec![0; timeline.outages.len()],
            there: vec![0; classes],
            busy: vec![0; classes],
            down: vec![0; classes],
            begin,
            step: ((end - begin).0 / BINS as i64).max(1),
            sums: [vec![0.0; BINS], vec![0.0; BINS], vec![0.0; BINS]],
            swept: Swept {
                tallies: vec![Tally::default(); classes],
                free: 0,
                unusable: 0.0,
                series: Series::default(),
            },
        };
        sweep.go(end);
        sweep.swept
    }

    fn changes(&self) -> Vec<(Time, Change)> {
        let mut all = Vec::with_capacity(self.timeline.outcomes.len() * 4);
        for outcome in &self.timeline.outcomes {
            let job = outcome.job;
            let real = |(_, segment): &(usize, &crate::outcome::Segment)| segment.to > segment.from;
            let mut waits_since = outcome.submit;
            for (place, segment) in outcome.segments.iter().enumerate().filter(real) {
                let place = place as u32;
                if waits_since < segment.from {
                    all.push((waits_since, Change::Waits { job }));
                }
                all.push((segment.from, Change::Starts { job, segment: place }));
                all.push((segment.to, Change::Ends { job, segment: place }));
                waits_since = segment.to;
            }
            if outcome.end.is_none() {
                all.push((waits_since, Change::Waits { job }));
            }
        }
        for (number, outage) in self.timeline.outages.iter().enumerate() {
            all.push((outage.from, Change::Fails { outage: number as u32 }));
            all.push((outage.to, Change::Repaired { outage: number as u32 }));
        }
        for (number, bought) in self.timeline.bought.iter().enumerate() {
            if bought.ready < bought.to {
                all.push((bought.ready, Change::Comes { machine: number as u32 }));
                all.push((bought.to, Change::Leaves { machine: number as u32 }));
            }
        }
        all.sort_unstable();
        all
    }

    fn go(&mut self, end: Time) {
        for (node, machine) in self.all.nodes.clone().iter().enumerate() {
            if node < self.fixed {
                self.there[self.class[node]] += i64::from(machine.gpus);
            } else {
                // What is bought later is not there yet.
                self.free.take_at(&Place::One(node as u32, machine.gpus));
            }
        }
        let changes = self.changes();
        let mut now = self.begin;
        for (at, change) in changes {
            let at = at.clamp(self.begin, end);
            if at > now {
                self.pass(now, at);
                now = at;
            }
            self.take(change);
        }
        self.pass(now, end);
        let [there, held, waiting] = std::mem::take(&mut self.sums);
        let mean = |sums: Vec<f64>| sums.iter().map(|sum| sum / self.step as f64).collect();
        self.swept.series = Series {
            step: self.step as f64 / 1_000.0,
            there: mean(there),
            held: mean(held),
            waiting: mean(waiting),
        };
    }

    fn ask(&self, job: u32) -> Ask {
        Ask::of(&self.jobs[job as usize])
    }

    fn count(counts: &mut [i64], class: &[usize], place: &Place, sign: i64) {
        for (node, gpus) in place.parts() {
            counts[class[node as usize]] += sign * i64::from(gpus);
        }
    }

    fn take(&mut self, change: Change) {
        let segment_of = |job: u32, segment: u32| {
            &self.timeline.outcomes[job as usize].segments[segment as usize].place
        };
        match change {
            Change::Waits { job } => {
                *self.waiting.entry(self.ask(job)).or_default() += 1;
                self.waiters += 1;
            }
            Change::Starts { job, segment } => {
                let ask = self.ask(job);
                if let Some(count) = self.waiting.get_mut(&ask) {
                    *count -= 1;
                    self.waiters -= 1;
                    if *count == 0 {
                        self.waiting.remove(&ask);
                    }
                }
                let place = match segment_of(job, segment) {
                    Place::Anywhere => {
                        let taken = self.free.take(ask);
                        let place = taken.unwrap_or_else(|| self.free.scatter(ask));
                        self.scattered.insert(job, place.clone());
                        place
                    }
                    known => {
                        self.free.take_at(known);
                        known.clone()
                    }
                };
                Sweep::count(&mut self.busy, self.class, &place, 1);
            }
            Change::Ends { job, segment } => {
                let place = match segment_of(job, segment) {
                    Place::Anywhere => self.scattered.remove(&job).unwrap_or_default(),
                    known => known.clone(),
                };
                self.free.give(&place);
                Sweep::count(&mut self.busy, self.class, &place, -1);
            }
            Change::Fails { outage } => {
                let one = self.timeline.outages[outage as usize];
                let gpus = self.free.free_on(one.node).min(one.gpus);
                self.out[outage as usize] = gpus;
                self.free.take_at(&Place::One(one.node, gpus));
                self.down[self.class[one.node as usize]] += i64::from(gpus);
            }
            Change::Repaired { outage } => {
                let one = self.timeline.outages[outage as usize];
                let gpus = self.out[outage as usize];
                self.free.give(&Place::One(one.node, gpus));
                self.down[self.class[one.node as usize]] -= i64::from(gpus);
            }
            Change::Comes { machine } | Change::Leaves { machine } => {
                let node = self.fixed + machine as usize;
                let gpus = self.all.nodes[node].gpus;
                let place = Place::One(node as u32, gpus);
                let sign = if matches!(change, Change::Comes { .. }) { 1 } else { -1 };
                match sign {
                    1 => self.free.give(&place),
                    _ => self.free.take_at(&place),
                }
                self.there[self.class[node]] += sign * i64::from(gpus);
            }
        }
    }

    /// Why free GPUs of a model are.
    fn cause(&self, model: usize) -> Cause {
        let wants = |ask: &&Ask| ask.models >> model & 1 == 1;
        let mut cause = Cause::NoDemand;
        for ask in self.waiting.keys().filter(wants) {
            let this = if self.free.fits(*ask) {
                return Cause::HeldBack;
            } else if u64::from(ask.gpus) <= self.free.total(*ask) {
                Cause::Fragmented
            } else {
                Cause::TooFew
            };
            cause = cause.max(this);
        }
        cause
    }

    fn pass(&mut self, from: Time, to: Time) {
        let span = to - from;
        if span <= Span::ZERO {
            return;
        }
        let models = self.all.models.len();
        let causes: Vec<Cause> = (0..models)
            .map(|model| match self.free.free_of(model) {
                0 => Cause::NoDemand,
                _ => self.cause(model),
            })
            .collect();
        let whole = |count: i64| gpu_time(Milli::whole(count), span);
        for (class, tally) in self.swept.tallies.iter_mut().enumerate() {
            let (there, busy, down) = (self.there[class], self.busy[class], self.down[class]);
            tally.busy += whole(busy);
            tally.down += whole(down);
            tally.idle[causes[self.model_of[class]] as usize] += whole(there - busy - down);
        }
        let levels = self.free.levels().filter(|(free, nodes)| *free > 0 && *nodes > 0);
        let (mut free, mut unusable) = (0.0, 0.0);
        for (level, nodes) in levels {
            let gpus = (level as u32 * nodes) as f64;
            free += gpus;
            unusable += gpus * self.unfit[level];
        }
        self.swept.free += whole(free as i64);
        self.swept.unusable += unusable * 1_000.0 * span.0 as f64;
        let held: i64 = self.busy.iter().sum();
        let there: i64 = self.there.iter().sum::<i64>() - self.down.iter().sum::<i64>();
        self.draw(from, to, [there as f64, held as f64, self.waiters as f64]);
    }

    fn draw(&mut self, from: Time, to: Time, values: [f64; 3]) {
        let mut at = from;
        while at < to {
            let bin = ((at - self.begin).0 / self.step) as usize;
            if bin >= BINS {
                return;
            }
            let next = (self.begin + Span((bin as i64 + 1) * self.step)).min(to);
            for (sums, value) in self.sums.iter_mut().zip(values) {
                sums[bin] += value * (next - at).0 as f64;
            }
            at = next;
        }
    }
}

/// For each number of free GPUs on a node, the part of all jobs that could not use them.
fn unfit(jobs: &[Job], fleet: &Fleet) -> Vec<f64> {
    let most = (0..fleet.models.len()).map(|model| fleet.largest(model)).max().unwrap_or(0);
    let mut counts = vec![0_u64; most as usize + 1];
    for job in jobs {
        counts[..job.gpus.min(most) as usize].iter_mut().for_each(|count| *count += 1);
    }
    counts.iter().map(|count| *count as f64 / jobs.len().max(1) as f64).collect()
}
