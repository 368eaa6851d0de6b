//! A machine that pretends: tasks start a moment after they are told to, run for as long as their
//! trace says, fail, and save when they are stopped.

use crate::load::{End, Fate, Habit};
use crate::measured::Gpus;
use berth_engine::played::LeaseOrder;
use berth_engine::{Core, Turn};
use berth_model::{Cause, Ended, Event, Health, JobId, LeaseId, Name, Observed, Slice, Span, Time};
use berth_sim::random::Rng;
use std::collections::BTreeMap;

/// Loading a checkpoint.
const LOADS: Span = Span::secs(75);
/// What a GPU that has fallen off the bus is reported as.
const OFF_THE_BUS: u64 = 79;

/// What is going to happen to a task.
#[derive(Debug, Clone, Copy)]
enum Next {
    Starts(LeaseId),
    /// It ends by itself.
    Ends(LeaseId, End),
    /// It ends because it was asked to.
    Stopped(LeaseId, Cause),
    Saves(LeaseId),
    GpuFails(u32),
    GpuIsBack(u32),
}

/// One job, or one element of an array, over its attempts.
#[derive(Debug, Clone, Copy)]
struct Run {
    fate: Fate,
    /// What is saved of its run time.
    saved: Span,
    /// What was when this attempt began.
    saved_before: Span,
}

impl Run {
    /// All that it has done is safe.
    fn save(&mut self, runs_for: Span) {
        let loading = if self.saved_before > Span::ZERO { LOADS } else { Span::ZERO };
        let done = self.saved_before + (runs_for - loading).max(Span::ZERO);
        self.saved = done.min(self.fate.duration);
    }
}

#[derive(Debug, Clone, Copy)]
struct Task {
    started: Option<Time>,
    /// It has been told to end.
    ending: bool,
}

pub struct Machine {
    node: Name,
    seed: u64,
    runs: BTreeMap<JobId, Run>,
    tasks: BTreeMap<LeaseId, Task>,
    coming: BTreeMap<(Time, u64), Next>,
    counted: u64,
    /// From when on everything ends, and by when all of it has.
    closing: (Time, Time),
    pub gpus: Gpus,
}

impl Machine {
    pub fn new(node: &str, gpus: u32, seed: u64, closing: (Time, Time)) -> Machine {
        Machine {
            node: Name::new(node),
            seed,
            runs: BTreeMap::new(),
            tasks: BTreeMap::new(),
            coming: BTreeMap::new(),
            counted: 0,
            closing,
            gpus: Gpus::new(node, gpus),
        }
    }

    /// How a job will go that was just submitted.
    pub fn expect(&mut self, id: JobId, fates: &[Fate]) {
        for (element, fate) in (0..).zip(fates) {
            let id = if fates.len() > 1 { id.element(element) } else { id };
            self.runs.insert(id, Run { fate: *fate, saved: Span::ZERO, saved_before: Span::ZERO });
        }
    }

    /// A GPU fails for some time.
    pub fn expect_failure(&mut self, gpu: u32, at: Time, lasts: Span) {
        self.come(at, Next::GpuFails(gpu));
        self.come(at + lasts, Next::GpuIsBack(gpu));
    }

    pub fn next(&self) -> Option<Time> {
        self.coming.keys().next().map(|(at, _)| *at)
    }

    fn come(&mut self, at: Time, next: Next) {
        self.counted += 1;
        self.coming.insert((at, self.counted), next);
    }

    /// What happens by now, as a turn hears it.
    pub fn happen(&mut self, turn: &mut Turn<'_>) {
        while let Some(entry) = self.coming.first_entry().filter(|next| next.key().0 <= turn.at) {
            match entry.remove() {
                Next::Starts(lease) => self.starts(lease, turn),
                Next::Ends(lease, end) => self.ends(lease, end, turn),
                Next::Stopped(lease, cause) => self.stopped(lease, cause, turn),
                Next::Saves(lease) => self.saves(lease, turn),
                Next::GpuFails(gpu) => self.gpu_fails(gpu, turn),
                Next::GpuIsBack(gpu) => {
                    let (node, health) = (self.node.clone(), Health::Ok);
                    turn.note("gpu_checked", format!("gpu {gpu} of {node}: passed"));
                    turn.apply_observed(Event::GpuChanged { node, gpu, health });
                }
            }
        }
    }

    /// Carries orders out.
    pub fn obey(&mut self, orders: Vec<LeaseOrder>, core: &Core, at: Time) {
        for order in orders {
            match order {
                LeaseOrder::Start(lease) => self.start(lease, core, at),
                LeaseOrder::Stop { lease, cause, grace } => self.stop(lease, cause, grace, at),
                // The core ends what has reached its limit.
                LeaseOrder::Limit(_) => {}
                LeaseOrder::Acknowledge(lease) => {
                    self.tasks.remove(&lease);
                }
            }
        }
    }

    /// All that is drawn for an attempt, the same for all its tasks.
    fn rng(&self, lease: LeaseId) -> Rng {
        let job = lease.job.number << 20 | u64::from(lease.job.element.unwrap_or(0) << 4);
        Rng::stream(self.seed, job.wrapping_add(u64::from(lease.attempt)))
    }

    fn start(&mut self, lease: LeaseId, core: &Core, at: Time) {
        let Some(live) = core.jobs.get(&lease.job).and_then(|job| job.leases.get(&lease)) else {
            return;
        };
        let slices: Vec<Slice> = serde_json::from_str(&live.row.slices).unwrap_or_default();
        let habit = self.runs.get(&lease.job).map_or(Habit::Idles, |run| run.fate.habit);
        self.gpus.take(lease, &slices, habit, at);
        self.tasks.insert(lease, Task { started: None, ending: false });
        let delay = Span(2_000 + self.rng(lease).below(14_000) as i64);
        self.come(at + delay, Next::Starts(lease));
    }

    fn stop(&mut self, lease: LeaseId, cause: Cause, grace: Span, at: Time) {
        let mut rng = self.rng(lease);
        let Some(task) = self.tasks.get_mut(&lease).filter(|task| !task.ending) else { return };
        task.ending = true;
        let saves = self.runs.get(&lease.job).is_some_and(|run| run.fate.saves.is_some());
        let takes = match (task.started, saves) {
            (None, _) => Span::secs(1),
            (_, true) => Span(8_000 + rng.below(70_000) as i64),
            (_, false) => Span(400 + rng.below(4_000) as i64),
        };
        self.come(at + takes.min(grace.max(Span(200))), Next::Stopped(lease, cause));
    }

    fn starts(&mut self, lease: LeaseId, turn: &mut Turn<'_>) {
        let at = turn.at;
        let Some(task) = self.tasks.get_mut(&lease).filter(|task| !task.ending) else { return };
        task.started = Some(at);
        turn.observe(Observed::Started { lease, at });
        let Some(run) = self.runs.get_mut(&lease.job) else { return };
        run.saved_before = run.saved;
        let run = *run;
        let loading = if run.saved > Span::ZERO { LOADS } else { Span::ZERO };
        let (fate, mut rng) = (run.fate, self.rng(lease));
        let left = (fate.duration - run.saved).max(Span::secs(5)) + loading;
        let fails = fate.end != End::Well;
        // It fails somewhere on its way.
        let lasts = if fails { Span(left.0 * (1 + rng.below(9) as i64) / 10) } else { left };
        let lasts = lasts.max(Span::secs(3));
        let tasks = turn.core.jobs.get(&lease.job).map_or(1, |job| job.detail.nodes.max(1));
        // One rank fails; the others wait for it, until they are stopped.
        if !fails || u64::from(lease.task) == rng.below(u64::from(tasks)) {
            let end = self.before_closing(at + lasts, at, &mut rng);
            self.come(end, Next::Ends(lease, fate.end));
        }
        if let Some(every) = fate.saves.filter(|_| lease.task == 0) {
            self.come(at + every + loading, Next::Saves(lease));
        }
    }

    /// At the end of the history everything ends, some time before it.
    fn before_closing(&self, end: Time, now: Time, rng: &mut Rng) -> Time {
        let (from, until) = self.closing;
        if end < until {
            return end;
        }
        let from = from.max(now);
        let left = (until - from).0.max(1);
        from + Span(rng.below(left.unsigned_abs()) as i64)
    }

    fn saves(&mut self, lease: LeaseId, turn: &mut Turn<'_>) {
        let Some(task) = self.tasks.get(&lease).filter(|task| !task.ending) else { return };
        let Some(started) = task.started else { return };
        let Some(run) = self.runs.get_mut(&lease.job) else { return };
        let Some(every) = run.fate.saves else { return };
        run.save(turn.at - started);
        turn.apply_observed(Event::LeaseSaved { job: lease.job });
        self.come(turn.at + every, Next::Saves(lease));
    }

    fn ends(&mut self, lease: LeaseId, end: End, turn: &mut Turn<'_>) {
        let Some(task) = self.tasks.get_mut(&lease).filter(|task| !task.ending) else { return };
        task.ending = true;
        let mut ended = Ended::unknown(lease, turn.at);
        ended.started_at = task.started;
        ended.rank = lease.task * 8;
        match end {
            End::Well => ended.code = Some(0),
            End::Code(code) => ended.code = Some(code),
            End::Signal(signal) => ended.signal = Some(signal),
            End::OutOfMemory => (ended.signal, ended.oom) = (Some(9), true),
        }
        // Where it may try again, it goes well then.
        if let Some(run) = self.runs.get_mut(&lease.job) {
            run.fate.end = End::Well;
        }
        self.tell_end(ended, turn);
    }

    fn stopped(&mut self, lease: LeaseId, cause: Cause, turn: &mut Turn<'_>) {
        let Some(task) = self.tasks.get(&lease).copied() else { return };
        if let (Some(run), Some(started)) = (self.runs.get_mut(&lease.job), task.started) {
            // The whole job saves once, with its first task.
            if run.fate.saves.is_some() && lease.task == 0 && cause.requeues() {
                run.save(turn.at - started);
                turn.apply_observed(Event::LeaseSaved { job: lease.job });
            }
        }
        let mut ended = Ended::unknown(lease, turn.at);
        (ended.started_at, ended.asked) = (task.started, Some(cause));
        (ended.code, ended.signal) =
            if task.started.is_some() { (None, Some(15)) } else { (None, None) };
        self.tell_end(ended, turn);
    }

    fn tell_end(&mut self, ended: Ended, turn: &mut Turn<'_>) {
        self.gpus.give_back(ended.lease, turn.at);
        turn.observe(Observed::Ended(Box::new(ended)));
    }

    /// As the server notes and tells it: the GPU is out of use, and what is on it is lost.
    fn gpu_fails(&mut self, gpu: u32, turn: &mut Turn<'_>) {
        let (node, health) = (self.node.clone(), Health::Failed);
        turn.note("gpu_failed", format!("gpu {gpu} of {node}: XID {OFF_THE_BUS}"));
        turn.apply_observed(Event::GpuChanged { node, gpu, health });
        for lease in self.gpus.holders(gpu) {
            let Some(task) = self.tasks.get_mut(&lease).filter(|task| !task.ending) else {
                continue;
            };
            task.ending = true;
            let mut ended = Ended::unknown(lease, turn.at);
            (ended.started_at, ended.signal) = (task.started, Some(6));
            ended.gpu_error = Some(OFF_THE_BUS);
            self.tell_end(ended, turn);
        }
    }
}
