//! Small worlds of shared GPUs in which everything can be tried: one job waits for a share within
//! its queue's quota, others hold shares, and every order of victims is gone through.

use super::draw::{Bytes as Raw, Draw};
use super::drive::START;
use super::small::CLAIMANT;
use super::world::{plain_group, plain_job, plain_node};
use berth_core::State;
use berth_model::*;
use std::collections::BTreeSet;

const QUEUES: [&str; 3] = ["a", "b", "c"];

/// A share that is held: by which queue, on which GPU, how much of it.
struct Held {
    queue: usize,
    gpu: usize,
    milli: i64,
    preemptible: bool,
}

pub struct Parts {
    gpus: usize,
    apart: bool,
    quotas: [i64; 3],
    asks: i64,
    held: Vec<Held>,
}

impl Parts {
    pub fn new(bytes: &[Raw]) -> Parts {
        let mut d = Draw::new(&bytes[0]);
        let gpus = d.pick(&[2, 1, 3, 4]);
        let all = gpus as i64 * 4;
        let first = d.below(all as usize + 1) as i64;
        let second = d.below((all - first) as usize + 1) as i64;
        let quotas = [first, second, all - first - second].map(|quarters| quarters * 250);
        let apart = !d.one_in(4);
        let asks = d.pick(&[250, 500, 750]);
        let mut parts = Parts { gpus, apart, quotas, asks, held: Vec::new() };
        for bytes in &bytes[1..] {
            let mut d = Draw::new(bytes);
            let queue = d.pick(&[1, 1, 2, 0]);
            let (milli, preemptible) = (d.pick(&[250, 250, 500, 750]), !d.one_in(8));
            let first = d.below(gpus);
            let mut all = (0..gpus).map(|at| (first + at) % gpus);
            if let Some(gpu) = all.find(|gpu| parts.has_room(*gpu, queue, milli, 0)) {
                parts.held.push(Held { queue, gpu, milli, preemptible });
            }
        }
        parts
    }

    /// Whether a GPU has room for such a share once these have gone.
    fn has_room(&self, gpu: usize, queue: usize, milli: i64, gone: u32) -> bool {
        let on_gpu = self.held.iter().enumerate().filter(|(_, held)| held.gpu == gpu);
        let mut left = on_gpu.filter(|(at, _)| gone & (1 << at) == 0).map(|(_, held)| held);
        let mut used = 0;
        left.all(|held| {
            used += held.milli;
            !self.apart || held.queue == queue
        }) && used + milli <= 1_000
    }

    fn fits(&self, gone: u32) -> bool {
        (0..self.gpus).any(|gpu| self.has_room(gpu, 0, self.asks, gone))
    }

    fn used(&self, queue: usize, gone: u32) -> i64 {
        let held = self.held.iter().enumerate().filter(|(at, _)| gone & (1 << at) == 0);
        held.filter(|(_, held)| held.queue == queue).map(|(_, held)| held.milli).sum()
    }

    pub fn is_within_quota(&self) -> bool {
        self.used(0, 0) + self.asks <= self.quotas[0]
    }

    /// Whether some victims, each of a queue beyond its quota when it is taken, make room.
    pub fn could_start(&self) -> bool {
        let (mut seen, mut next) = (BTreeSet::new(), vec![0]);
        while let Some(gone) = next.pop() {
            if self.fits(gone) {
                return true;
            }
            let may_go = |(at, held): &(usize, &Held)| {
                let beyond = self.used(held.queue, gone) > self.quotas[held.queue];
                gone & (1 << at) == 0 && held.preemptible && held.queue != 0 && beyond
            };
            let victims = self.held.iter().enumerate().filter(may_go);
            let sets: Vec<u32> = victims.map(|(at, _)| gone | 1 << at).collect();
            next.extend(sets.into_iter().filter(|set| seen.insert(*set)));
        }
        false
    }

    /// One of the stopped jobs without which the share would fit as well.
    pub fn needless(&self, stopped: &BTreeSet<JobId>) -> Option<JobId> {
        let place = |job: &JobId| job.number as usize - 1;
        let all = stopped.iter().fold(0, |all, job| all | 1 << place(job));
        stopped.iter().find(|job| self.fits(all & !(1 << place(job)))).copied()
    }

    pub fn snapshot(&self) -> Snapshot {
        let mut base = State::new().snapshot();
        base.now = START;
        base.policy.share_gpus = if self.apart { ShareGpus::Team } else { ShareGpus::Anyone };
        let spec = plain_node("n", self.gpus, "H100-80GB");
        let (since, data) = (START, std::collections::BTreeMap::new());
        base.nodes.push(NodeSnapshot { spec, idle_since: None, since, billed: since, data });
        for (name, quota) in QUEUES.into_iter().zip(self.quotas) {
            let mut spec = QueueSpec::new(name);
            spec.quota.gpu.total = Some(Amount::Of(Milli(quota)));
            base.queues.push(QueueSnapshot {
                spec,
                credits: 0,
                past_use: 0,
                spent: Micros::ZERO,
                daily: Vec::new(),
            });
        }
        base.jobs = self.held.iter().enumerate().map(|(at, held)| running(at, held)).collect();
        base.jobs.push(JobSnapshot::new(job(CLAIMANT.number, 0, self.asks)));
        base
    }
}

fn job(id: u64, queue: usize, milli: i64) -> JobSpec {
    let group = plain_group(1, GpuAsk::Fraction { milli: Milli(milli), count: 1 });
    let mut spec = plain_job(id, QUEUES[queue], vec![group]);
    spec.submitted = START - Span::mins(1);
    spec.time_limit = Some(Span::hours(10));
    spec
}

fn running(at: usize, held: &Held) -> JobSnapshot {
    let mut spec = job(at as u64 + 1, held.queue, held.milli);
    spec.preemptible = held.preemptible;
    let since = START - Span::hours(1) + Span::mins(at as i64);
    spec.submitted = since;
    let mut job = JobSnapshot::new(spec);
    (job.started, job.first_start) = (Some(since), Some(since));
    job.attempts.insert(0, 1);
    let share = Share::Fraction(Milli(held.milli));
    job.leases.push(LeaseSnapshot {
        task: 0,
        attempt: 0,
        node: Name::new("n"),
        slices: vec![Slice { gpu: held.gpu as u32, share }],
        price: Micros::ZERO,
        since,
        billed: START,
        bound: true,
        stopping: None,
    });
    job
}
