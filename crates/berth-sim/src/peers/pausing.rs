//! The peers that pause jobs at will: yardsticks, since pausing costs them nothing.

use super::skipping::Blocked;
use super::{Job, Pool, blank};
use crate::outcome::{Outcome, Segment};
use berth_model::{Span, Time};
use std::collections::{BTreeMap, BTreeSet};

/// Nodes by how many of their GPUs are free. Since moving is free too, everybody is placed anew at
/// every change, and it does not matter which node is which.
struct Counts {
    per_node: u32,
    nodes: Vec<u32>,
}

impl Counts {
    fn new(pool: Pool) -> Counts {
        let mut nodes = vec![0; pool.gpus_per_node as usize + 1];
        nodes[pool.gpus_per_node as usize] = pool.nodes;
        Counts { per_node: pool.gpus_per_node, nodes }
    }

    fn tightest(&self, gpus: u32) -> Option<u32> {
        (gpus..=self.per_node).find(|free| self.nodes[*free as usize] > 0)
    }

    fn fits(&self, gpus: u32) -> bool {
        let (whole, rest) = (gpus / self.per_node, gpus % self.per_node);
        let empty = self.nodes[self.per_node as usize];
        match (whole, rest) {
            (_, 0) => empty >= whole,
            (0, _) => self.tightest(rest).is_some(),
            _ => match self.tightest(rest) {
                Some(free) if free < self.per_node => empty >= whole,
                _ => empty > whole,
            },
        }
    }

    fn take(&mut self, gpus: u32) {
        let (whole, rest) = (gpus / self.per_node, gpus % self.per_node);
        self.nodes[self.per_node as usize] -= whole;
        self.nodes[0] += whole;
        if rest > 0 {
            let free = self.tightest(rest).expect("it was seen to fit");
            self.nodes[free as usize] -= 1;
            self.nodes[(free - rest) as usize] += 1;
        }
    }
}

struct Play<'a, K> {
    pool: Pool,
    jobs: &'a [Job],
    key: K,
    blocked: Blocked,
    /// How long each has still to run, as of its last start or stop.
    left: Vec<Span>,
    /// Those who run, with the moment they would end.
    running: Vec<(u32, Time)>,
    /// Those who wait, by GPUs and then by key, which does not change while they wait.
    waiting: BTreeMap<u32, BTreeSet<(i64, u32)>>,
    since: Vec<Time>,
    outcomes: Vec<Outcome>,
}

/// `key` tells who goes first, by how long a job has still to run; equal keys keep the order of
/// submission.
pub(super) fn play<K: Fn(&Job, Span) -> i64>(
    pool: Pool,
    jobs: &[Job],
    blocked: Blocked,
    key: K,
) -> Vec<Outcome> {
    let mut play = Play {
        pool,
        jobs,
        key,
        blocked,
        left: jobs.iter().map(|job| job.duration).collect(),
        running: Vec::new(),
        waiting: BTreeMap::new(),
        since: vec![Time(0); jobs.len()],
        outcomes: jobs.iter().enumerate().map(|(index, job)| blank(index, job)).collect(),
    };
    let empty = Counts::new(pool);
    let mut arrivals = jobs.iter().enumerate().peekable();
    loop {
        let next_end = play.running.iter().map(|(_, end)| *end).min();
        let next_arrival = arrivals.peek().map(|(_, job)| job.submit);
        let Some(now) = next_end.into_iter().chain(next_arrival).min() else {
            return play.outcomes;
        };
        play.end(now);
        while let Some((index, job)) = arrivals.next_if(|(_, job)| job.submit == now) {
            if empty.fits(job.gpus) {
                play.wait(index as u32);
            }
        }
        // Nobody is paused for nobody.
        if play.waiting.values().any(|line| !line.is_empty()) {
            play.choose(now);
        }
    }
}

impl<K: Fn(&Job, Span) -> i64> Play<'_, K> {
    fn wait(&mut self, index: u32) {
        let job = &self.jobs[index as usize];
        let key = (self.key)(job, self.left[index as usize]);
        self.waiting.entry(job.gpus).or_default().insert((key, index));
    }

    fn end(&mut self, now: Time) {
        let (since, outcomes) = (&self.since, &mut self.outcomes);
        self.running.retain(|(job, end)| {
            if *end == now {
                let outcome = &mut outcomes[*job as usize];
                outcome.segments.push(Segment::new(since[*job as usize], now));
                outcome.end = Some(now);
            }
            *end != now
        });
    }

    /// The first waiting job, by key; where those that do not fit are passed over, of those that
    /// do.
    fn first_waiting(&self, counts: &Counts) -> Option<((i64, u32), u32)> {
        self.waiting
            .iter()
            .filter_map(|(gpus, line)| {
                let considered = self.blocked == Blocked::Stops || counts.fits(*gpus);
                line.first().filter(|_| considered).map(|first| (*first, *gpus))
            })
            .min()
    }

    /// Goes through all jobs in order of their keys and runs whoever fits beside those before, or
    /// everybody up to the first that does not.
    fn choose(&mut self, now: Time) {
        let mut order: Vec<((i64, u32), Time)> = self
            .running
            .iter()
            .map(|(job, end)| (((self.key)(&self.jobs[*job as usize], *end - now), *job), *end))
            .collect();
        order.sort_unstable();
        let mut counts = Counts::new(self.pool);
        let mut chosen = Vec::with_capacity(order.len() + 1);
        let mut paused = Vec::new();
        let mut next = self.first_waiting(&counts);
        let mut order = order.into_iter().peekable();
        loop {
            if self.blocked == Blocked::Skips && next.is_some_and(|(_, gpus)| !counts.fits(gpus)) {
                next = self.first_waiting(&counts);
            }
            let runs_on = order
                .peek()
                .is_some_and(|(running, _)| next.is_none_or(|(waiting, _)| *running < waiting));
            if runs_on {
                let ((_, job), end) = order.next().expect("it was peeked at");
                let gpus = self.jobs[job as usize].gpus;
                if counts.fits(gpus) {
                    counts.take(gpus);
                    chosen.push((job, end));
                } else {
                    paused.push((job, end));
                    if self.blocked == Blocked::Stops {
                        break;
                    }
                }
            } else if let Some(((_, job), gpus)) = next {
                if !counts.fits(gpus) {
                    break;
                }
                self.waiting.get_mut(&gpus).expect("it waits").pop_first();
                counts.take(gpus);
                self.since[job as usize] = now;
                chosen.push((job, now + self.left[job as usize]));
                next = self.first_waiting(&counts);
            } else {
                break;
            }
        }
        paused.extend(order.map(|((_, job), end)| (job, end)));
        self.running = chosen;
        for (job, end) in paused {
            self.pause(now, job, end);
        }
    }

    fn pause(&mut self, now: Time, job: u32, end: Time) {
        self.left[job as usize] = end - now;
        let outcome = &mut self.outcomes[job as usize];
        outcome.segments.push(Segment::new(self.since[job as usize], now));
        outcome.preemptions += 1;
        self.wait(job);
    }
}
