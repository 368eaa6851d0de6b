//! The peers that pause jobs at will: yardsticks, since pausing costs them nothing.

use super::skipping::Blocked;
use super::{Ask, Job, blank};
use crate::fleet::Fleet;
use crate::outcome::{Outcome, Segment};
use berth_model::{Span, Time};
use std::collections::{BTreeMap, BTreeSet};

/// Nodes of each model by how many of their GPUs are free. Since moving is free too, everybody is
/// placed anew at every change, and it does not matter which node is which.
#[derive(Clone)]
struct Counts {
    largest: Vec<u32>,
    nodes: Vec<Vec<u32>>,
}

impl Counts {
    fn new(fleet: &Fleet) -> Counts {
        let models = 0..fleet.models.len();
        let largest: Vec<u32> = models.map(|model| fleet.largest(model)).collect();
        let mut nodes: Vec<Vec<u32>> =
            largest.iter().map(|most| vec![0; *most as usize + 1]).collect();
        for node in &fleet.nodes {
            nodes[node.model as usize][node.gpus as usize] += 1;
        }
        Counts { largest, nodes }
    }

    fn models(&self, ask: Ask) -> impl Iterator<Item = usize> + Clone + use<> {
        (0..self.largest.len()).filter(move |model| ask.models >> model & 1 == 1)
    }

    /// Whole nodes, the rest, and GPUs of a whole node.
    fn parts_of(&self, ask: Ask) -> (u32, u32, u32) {
        match self.models(ask).map(|model| self.largest[model]).max().unwrap_or(0) {
            0 => (u32::MAX, 0, 0),
            most => (ask.gpus / most, ask.gpus % most, most),
        }
    }

    fn tightest(&self, ask: Ask, gpus: u32, most: u32) -> Option<(u32, usize)> {
        (gpus..=most).find_map(|free| Some((free, self.with_free(ask, free)?)))
    }

    fn with_free(&self, ask: Ask, free: u32) -> Option<usize> {
        let some = |count: &u32| *count > 0;
        self.models(ask).find(|model| self.nodes[*model].get(free as usize).is_some_and(some))
    }

    fn fits(&self, ask: Ask) -> bool {
        let (whole, rest, most) = self.parts_of(ask);
        let of = |model: usize| self.nodes[model].get(most as usize).copied().unwrap_or(0);
        let empty: u32 = self.models(ask).map(of).sum();
        match (whole, rest) {
            (_, 0) => empty >= whole,
            (0, _) => self.tightest(ask, rest, most).is_some(),
            _ => match self.tightest(ask, rest, most) {
                Some((free, _)) if free < most => empty >= whole,
                _ => empty > whole,
            },
        }
    }

    fn take(&mut self, ask: Ask) {
        let (whole, rest, most) = self.parts_of(ask);
        for gpus in std::iter::repeat_n(most, whole as usize).chain((rest > 0).then_some(rest)) {
            let (free, model) = self.tightest(ask, gpus, most).expect("it was seen to fit");
            self.nodes[model][free as usize] -= 1;
            self.nodes[model][(free - gpus) as usize] += 1;
        }
    }
}

struct Play<'a, K> {
    empty: Counts,
    jobs: &'a [Job],
    key: K,
    blocked: Blocked,
    /// How long each has still to run, as of its last start or stop.
    left: Vec<Span>,
    /// Those who run, with the moment they would end.
    running: Vec<(u32, Time)>,
    /// Those who wait, by what they ask for and then by key, which does not change while they wait.
    waiting: BTreeMap<Ask, BTreeSet<(i64, u32)>>,
    since: Vec<Time>,
    outcomes: Vec<Outcome>,
}

/// `key` tells who goes first, by how long a job has still to run; equal keys keep the order of
/// submission.
pub(super) fn play<K: Fn(&Job, Span) -> i64>(
    fleet: &Fleet,
    jobs: &[Job],
    blocked: Blocked,
    key: K,
) -> Vec<Outcome> {
    let mut play = Play {
        empty: Counts::new(fleet),
        jobs,
        key,
        blocked,
        left: jobs.iter().map(|job| job.duration).collect(),
        running: Vec::new(),
        waiting: BTreeMap::new(),
        since: vec![Time(0); jobs.len()],
        outcomes: jobs.iter().enumerate().map(|(index, job)| blank(index, job)).collect(),
    };
    let mut arrivals = jobs.iter().enumerate().peekable();
    loop {
        let next_end = play.running.iter().map(|(_, end)| *end).min();
        let next_arrival = arrivals.peek().map(|(_, job)| job.submit);
        let Some(now) = next_end.into_iter().chain(next_arrival).min() else {
            return play.outcomes;
        };
        play.end(now);
        while let Some((index, job)) = arrivals.next_if(|(_, job)| job.submit == now) {
            if play.empty.fits(Ask::of(job)) {
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
        self.waiting.entry(Ask::of(job)).or_default().insert((key, index));
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
    fn first_waiting(&self, counts: &Counts) -> Option<((i64, u32), Ask)> {
        self.waiting
            .iter()
            .filter_map(|(ask, line)| {
                let considered = self.blocked == Blocked::Stops || counts.fits(*ask);
                line.first().filter(|_| considered).map(|first| (*first, *ask))
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
        let mut counts = self.empty.clone();
        let mut chosen = Vec::with_capacity(order.len() + 1);
        let mut paused = Vec::new();
        let mut next = self.first_waiting(&counts);
        let mut order = order.into_iter().peekable();
        loop {
            if self.blocked == Blocked::Skips && next.is_some_and(|(_, ask)| !counts.fits(ask)) {
                next = self.first_waiting(&counts);
            }
            let runs_on = order
                .peek()
                .is_some_and(|(running, _)| next.is_none_or(|(waiting, _)| *running < waiting));
            if runs_on {
                let ((_, job), end) = order.next().expect("it was peeked at");
                let ask = Ask::of(&self.jobs[job as usize]);
                if counts.fits(ask) {
                    counts.take(ask);
                    chosen.push((job, end));
                } else {
                    paused.push((job, end));
                    if self.blocked == Blocked::Stops {
                        break;
                    }
                }
            } else if let Some(((_, job), ask)) = next {
                if !counts.fits(ask) {
                    break;
                }
                self.waiting.get_mut(&ask).expect("it waits").pop_first();
                counts.take(ask);
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
