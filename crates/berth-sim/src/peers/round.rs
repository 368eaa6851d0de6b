//! The clock of the peers that stop no job for another.

use super::free::FreeGpus;
use super::{Ask, Job, blank};
use crate::outcome::{Outage, Outcome, Place, Segment, Timeline};
use crate::site::{Fault, Faults, Site};
use berth_model::{Span, Time};
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// A job that is to start, and where. The floor has it already.
pub(super) type Start = (u32, Place);

/// Who waits, and in which order they start.
pub(super) trait Line {
    /// A job comes, or comes back because its machine failed.
    fn arrive(&mut self, job: u32);
    fn ended(&mut self, job: u32);
    /// Everything that starts now.
    fn start(&mut self, now: Time, free: &mut FreeGpus, started: &mut Vec<Start>);
}

/// A job that runs.
struct Run {
    since: Time,
    restart: Span,
    end: Time,
    place: Place,
}

struct Play<'a, L> {
    site: &'a Site,
    jobs: &'a [Job],
    line: L,
    free: FreeGpus,
    faults: Faults,
    /// GPUs that are out of order, by when they are repaired.
    repairs: BinaryHeap<Reverse<(Time, u32, u32, Time)>>,
    /// Progress that is safe.
    safe: Vec<Span>,
    runs: Vec<Option<Box<Run>>>,
    ends: BinaryHeap<Reverse<(Time, u32)>>,
    /// Jobs that have come and are not done.
    open: usize,
    timeline: Timeline,
}

pub(super) fn play<L: Line>(site: &Site, free: FreeGpus, jobs: &[Job], line: L) -> Timeline {
    let outcomes = jobs.iter().enumerate().map(|(index, job)| blank(index, job)).collect();
    let begin = jobs.first().map_or(Time(0), |job| job.submit);
    let empty = free.clone();
    let mut play = Play {
        site,
        jobs,
        line,
        free,
        faults: Faults::new(site, begin),
        repairs: BinaryHeap::new(),
        safe: vec![Span::ZERO; jobs.len()],
        runs: std::iter::repeat_with(|| None).take(jobs.len()).collect(),
        ends: BinaryHeap::new(),
        open: 0,
        timeline: Timeline { outcomes, ..Timeline::default() },
    };
    let mut arrivals = jobs.iter().enumerate().peekable();
    let mut started = Vec::new();
    loop {
        let next_arrival = arrivals.peek().map(|(_, job)| job.submit);
        let Some(now) = play.next(next_arrival) else { return play.timeline };
        play.end_by(now);
        play.repair_by(now);
        while let Some(fault) = play.faults.next_by(now) {
            play.fail(fault);
        }
        while let Some((index, job)) = arrivals.next_if(|(_, job)| job.submit == now) {
            if empty.fits(Ask::of(job)) {
                play.open += 1;
                play.line.arrive(index as u32);
            }
        }
        play.line.start(now, &mut play.free, &mut started);
        for (job, place) in started.drain(..) {
            play.begin(now, job, place);
        }
    }
}

impl<L: Line> Play<'_, L> {
    /// When something happens next; nothing once all jobs are through.
    fn next(&self, arrival: Option<Time>) -> Option<Time> {
        let end = self.ends.peek().map(|Reverse((end, _))| *end);
        if arrival.is_none() && self.open == 0 {
            return None;
        }
        let repair = self.repairs.peek().map(|Reverse((at, ..))| *at);
        [end, arrival, repair, self.faults.next_at()].into_iter().flatten().min()
    }

    fn begin(&mut self, now: Time, job: u32, place: Place) {
        let place_of = job as usize;
        let again = !self.timeline.outcomes[place_of].segments.is_empty();
        let restart = if again { self.site.saves.restart } else { Span::ZERO };
        let left = self.jobs[place_of].duration - self.safe[place_of];
        let end = now + restart + self.site.saves.time_for(left);
        self.runs[place_of] = Some(Box::new(Run { since: now, restart, end, place }));
        self.ends.push(Reverse((end, job)));
    }

    fn end_by(&mut self, now: Time) {
        while let Some(Reverse((end, job))) = self.ends.peek().copied()
            && end <= now
        {
            self.ends.pop();
            // An end may be void: the job has failed since, and perhaps runs again.
            let Some(run) = self.runs[job as usize].take_if(|run| run.end == end) else { continue };
            self.free.give(&run.place);
            self.line.ended(job);
            self.open -= 1;
            let left = self.jobs[job as usize].duration - self.safe[job as usize];
            let saving = self.site.saves.time_for(left) - left;
            let outcome = &mut self.timeline.outcomes[job as usize];
            outcome.end = Some(now);
            let Run { since, restart, place, .. } = *run;
            outcome.segments.push(Segment { restart, saving, place, ..Segment::new(since, now) });
        }
    }

    fn repair_by(&mut self, now: Time) {
        while let Some(Reverse((at, node, gpus, _))) = self.repairs.peek().copied()
            && at <= now
        {
            self.repairs.pop();
            self.free.give(&Place::One(node, gpus));
        }
    }

    fn fail(&mut self, fault: Fault) {
        let Fault { at, node, gpu, until } = fault;
        for job in self.victims(node, gpu) {
            self.interrupt(at, job);
        }
        let wanted = if gpu.is_some() { 1 } else { u32::MAX };
        let gpus = self.free.free_on(node).min(wanted);
        if gpus > 0 {
            self.free.take_at(&Place::One(node, gpus));
            self.repairs.push(Reverse((until, node, gpus, at)));
            self.timeline.outages.push(Outage { node, gpus, from: at, to: until });
        }
    }

    /// Who runs on the node, or on one GPU of it: GPUs are handed out in order of the jobs.
    fn victims(&self, node: u32, gpu: Option<u32>) -> Vec<u32> {
        let mut before = 0;
        let mut found = Vec::new();
        let mut running: Vec<u32> = self.ends.iter().map(|Reverse((_, job))| *job).collect();
        running.sort_unstable();
        running.dedup();
        for job in running {
            let Some(run) = &self.runs[job as usize] else { continue };
            let held: u32 =
                run.place.parts().filter(|part| part.0 == node).map(|part| part.1).sum();
            let hit = gpu.is_none_or(|gpu| (before..before + held).contains(&gpu));
            if held > 0 && hit {
                found.push(job);
            }
            before += held;
        }
        found
    }

    fn interrupt(&mut self, now: Time, job: u32) {
        let Some(run) = self.runs[job as usize].take() else { return };
        let Run { since, restart, place, .. } = *run;
        self.free.give(&place);
        let restart = restart.min(now - since);
        let ran = now - since - restart;
        let (safe, saving) = self.site.saves.safe_after(ran);
        self.safe[job as usize] += safe;
        let lost = ran - safe - saving;
        let outcome: &mut Outcome = &mut self.timeline.outcomes[job as usize];
        outcome.interruptions += 1;
        outcome.segments.push(Segment { restart, lost, saving, place, ..Segment::new(since, now) });
        self.line.ended(job);
        self.line.arrive(job);
    }
}
