//! In order of submission, and nobody passes.

use super::Job;
use super::floor::Floor;
use super::round::{Line, Start};
use berth_model::Time;
use std::collections::VecDeque;

pub(super) struct Fifo<'a> {
    jobs: &'a [Job],
    waiting: VecDeque<u32>,
}

impl<'a> Fifo<'a> {
    pub(super) fn new(jobs: &'a [Job]) -> Fifo<'a> {
        Fifo { jobs, waiting: VecDeque::new() }
    }
}

impl Line for Fifo<'_> {
    fn arrive(&mut self, job: u32) {
        self.waiting.push_back(job);
    }

    fn ended(&mut self, _job: u32) {}

    fn start(&mut self, _now: Time, floor: &mut Floor, started: &mut Vec<Start>) {
        while let Some(job) = self.waiting.front().copied()
            && let Some(place) = floor.take(self.jobs[job as usize].gpus)
        {
            self.waiting.pop_front();
            started.push((job, place));
        }
    }
}
