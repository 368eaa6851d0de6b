//! EASY backfilling: one reservation, for the first that does not fit.

use super::free::FreeGpus;
use super::round::{Line, Start};
use super::{Ask, Job};
use crate::outcome::Place;
use berth_model::{Span, Time};
use std::collections::{BTreeMap, BTreeSet};

/// Those who run are taken off in the order in which they are expected to end, until there is room
/// for the first job. What is left then beside it is free for whoever runs longer.
pub(super) struct Easy<'a> {
    jobs: &'a [Job],
    room: Room,
    waiting: BTreeSet<u32>,
    running: BTreeMap<(Time, u32), Running>,
    expected: BTreeMap<u32, Time>,
}

struct Running {
    since: Time,
    place: Place,
}

/// What counts as room for the first job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Room {
    /// Nodes on which it fits. A reservation holds named GPUs and is kept, whoever passes.
    Nodes,
    /// As many GPUs, wherever they are. This is how EASY was written for machines on which any
    /// processors will do, and how it is often simulated. On nodes the first job may find its GPUs
    /// scattered when its time comes, and wait on.
    Gpus,
}

/// The first job's reservation: from when, and what is free then beside it.
struct Reservation {
    from: Time,
    spare_then: Spare,
}

enum Spare {
    Nodes(FreeGpus),
    Gpus(u64),
}

impl Reservation {
    /// Room for a job that will still run when the reservation begins; it is taken.
    fn take_lasting(&mut self, ask: Ask, free: &mut FreeGpus) -> Option<Place> {
        if !free.fits(ask) {
            return None;
        }
        match &mut self.spare_then {
            Spare::Nodes(spare_then) => {
                let place = free.find_lasting(ask, spare_then)?;
                free.take_at(&place);
                spare_then.take_at(&place);
                Some(place)
            }
            Spare::Gpus(spare) => {
                *spare = spare.checked_sub(u64::from(ask.gpus))?;
                free.take(ask)
            }
        }
    }
}

impl<'a> Easy<'a> {
    pub(super) fn new(jobs: &'a [Job], room: Room) -> Easy<'a> {
        let (running, expected) = (BTreeMap::new(), BTreeMap::new());
        Easy { jobs, room, waiting: BTreeSet::new(), running, expected }
    }

    fn launch(&mut self, now: Time, job: u32, place: Place, started: &mut Vec<Start>) {
        let end = now + self.jobs[job as usize].estimate;
        self.waiting.remove(&job);
        self.expect(end, job, Running { since: now, place: place.clone() });
        started.push((job, place));
    }

    fn expect(&mut self, end: Time, job: u32, running: Running) {
        self.expected.insert(job, end);
        self.running.insert((end, job), running);
    }

    /// A job that outlives its estimate is expected to take twice as long, and so on: without
    /// this it would be expected to end at every moment, and hold up all backfilling.
    fn correct(&mut self, now: Time) {
        while let Some(first) = self.running.first_entry()
            && first.key().0 <= now
        {
            let ((end, job), running) = first.remove_entry();
            let mut estimate = (end - running.since).max(Span::secs(1));
            while running.since + estimate <= now {
                estimate = estimate + estimate;
            }
            self.expect(running.since + estimate, job, running);
        }
    }

    /// Nothing while too much is out of order: nobody knows when there will be room.
    fn reserve(&self, ask: Ask, free: &FreeGpus) -> Option<Reservation> {
        match self.room {
            Room::Nodes => self.reserve_nodes(ask, free),
            Room::Gpus => self.reserve_gpus(ask, free),
        }
    }

    fn reserve_nodes(&self, ask: Ask, free: &FreeGpus) -> Option<Reservation> {
        let mut spare_then = free.clone();
        let mut ends = self.running.iter().peekable();
        while let Some(((from, _), first)) = ends.next() {
            spare_then.give(&first.place);
            while let Some((_, next)) = ends.next_if(|((end, _), _)| end == from) {
                spare_then.give(&next.place);
            }
            if spare_then.take(ask).is_some() {
                return Some(Reservation { from: *from, spare_then: Spare::Nodes(spare_then) });
            }
        }
        None
    }

    fn reserve_gpus(&self, ask: Ask, free: &FreeGpus) -> Option<Reservation> {
        let mut free = free.total(ask);
        for (from, job) in self.running.keys() {
            let job = &self.jobs[*job as usize];
            free += if job.models & ask.models > 0 { u64::from(job.gpus) } else { 0 };
            if let Some(spare) = free.checked_sub(u64::from(ask.gpus)) {
                return Some(Reservation { from: *from, spare_then: Spare::Gpus(spare) });
            }
        }
        None
    }

    fn backfill(&mut self, now: Time, free: &mut FreeGpus, started: &mut Vec<Start>) {
        let Some(first) = self.waiting.first().copied() else { return };
        if free.is_full() || self.waiting.len() == 1 {
            return;
        }
        self.correct(now);
        let mut reservation = self.reserve(Ask::of(&self.jobs[first as usize]), free);
        let mut chosen = Vec::new();
        // Room only shrinks during a pass: who asks for as much and as long as one that failed
        // fails too.
        let mut failed: BTreeMap<Ask, Span> = BTreeMap::new();
        for index in self.waiting.iter().copied().skip(1) {
            let job = &self.jobs[index as usize];
            let ask = Ask::of(job);
            if failed.get(&ask).is_some_and(|least| job.estimate >= *least) {
                continue;
            }
            let place = match &mut reservation {
                Some(kept) if now + job.estimate > kept.from => kept.take_lasting(ask, free),
                _ => free.take(ask),
            };
            match place {
                Some(place) => chosen.push((index, place)),
                None => {
                    failed.insert(ask, job.estimate);
                }
            }
            if free.is_full() {
                break;
            }
        }
        for (job, place) in chosen {
            self.launch(now, job, place, started);
        }
    }
}

impl Line for Easy<'_> {
    fn arrive(&mut self, job: u32) {
        self.waiting.insert(job);
    }

    fn ended(&mut self, job: u32) {
        let end = self.expected.remove(&job).expect("what ends was running");
        self.running.remove(&(end, job));
    }

    fn start(&mut self, now: Time, free: &mut FreeGpus, started: &mut Vec<Start>) {
        while let Some(job) = self.waiting.first().copied()
            && let Some(place) = free.take(Ask::of(&self.jobs[job as usize]))
        {
            self.launch(now, job, place, started);
        }
        self.backfill(now, free, started);
    }
}
