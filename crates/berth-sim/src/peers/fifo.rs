//! In order of submission, and nobody passes.

use super::free::FreeGpus;
use super::round::{Line, Start};
use super::{Ask, Job};
use berth_model::Time;
use std::collections::BTreeSet;

pub(super) struct Fifo<'a> {
    jobs: &'a [Job],
    waiting: BTreeSet<u32>,
}

impl<'a> Fifo<'a> {
    pub(super) fn new(jobs: &'a [Job]) -> Fifo<'a> {
        Fifo { jobs, waiting: BTreeSet::new() }
    }
}

impl Line for Fifo<'_> {
    fn arrive(&mut self, job: u32) {
        self.waiting.insert(job);
    }

    fn ended(&mut self, _job: u32) {}

    fn start(&mut self, _now: Time, free: &mut FreeGpus, started: &mut Vec<Start>) {
        while let Some(job) = self.waiting.first().copied()
            && let Some(place) = free.take(Ask::of(&self.jobs[job as usize]))
        {
            self.waiting.pop_first();
            started.push((job, place));
        }
    }
}
