//! What a workload runs on and what befalls it there: machines, failures by rate, checkpoints.
//!
//! Failures are drawn for each node from a stream of its own, so that every policy meets the same
//! ones, however long it takes.

use crate::fleet::{Fleet, Machine};
use crate::random::{Rng, ln};
use berth_model::{Micros, Span, Time};
use serde::Serialize;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Everything about a run but its jobs and its policy.
#[derive(Debug, Clone, Default)]
pub struct Site {
    pub fleet: Fleet,
    pub troubles: FailureRates,
    pub saves: Checkpointing,
    /// Machines that can be bought. Only the core buys: the peers were not made for it.
    pub market: Vec<Offer>,
}

impl Site {
    /// All machines there could ever be at once.
    pub fn reach(&self) -> Fleet {
        let mut fleet = self.fleet.clone();
        for offer in &self.market {
            let machine = Machine { gpus: offer.gpus, model: offer.model };
            fleet.nodes.extend(std::iter::repeat_n(machine, offer.max as usize));
        }
        fleet
    }

    pub fn has_spot(&self) -> bool {
        self.market.iter().any(|offer| offer.spot.is_some())
    }
}

/// Machines of one kind that can be bought, on demand or spot.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Offer {
    pub gpus: u32,
    /// The place of its model in the fleet's list.
    pub model: u32,
    /// The most at once.
    pub max: u32,
    /// Dollars an hour for the whole machine.
    pub on_demand: Option<Micros>,
    pub spot: Option<Spot>,
    /// From the order to a machine that takes work.
    pub boot: Span,
}

/// Machines that are cheaper and may be taken back.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Spot {
    /// Dollars an hour for the whole machine, until the first change of `prices`.
    pub price: Micros,
    /// From when the price is another, counted from the first submission.
    pub prices: Vec<(Span, Micros)>,
    /// Mean time until one machine is taken back; without it, none is by chance.
    pub lasts: Option<Span>,
    /// From when some can be had or none, counted likewise: when none can, all are taken back.
    pub there: Vec<(Span, bool)>,
    /// Between the word that a machine will be taken back and its end.
    pub notice: Span,
}

impl<F: Into<Fleet>> From<F> for Site {
    fn from(fleet: F) -> Site {
        Site { fleet: fleet.into(), ..Site::default() }
    }
}

/// How often machines fail, as mean times between failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct FailureRates {
    pub seed: u64,
    /// Of one node.
    pub node: Option<Span>,
    /// Of one GPU.
    pub gpu: Option<Span>,
    pub repair: Span,
}

/// What of a job is safe when its machine fails, and what that costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Checkpointing {
    /// Progress between two checkpoints; without it, everything since the start is lost.
    pub every: Option<Span>,
    /// Time that one checkpoint takes, in which the job makes no progress.
    pub cost: Span,
    /// Time to go on after a failure or a stop, in which it makes none either.
    pub restart: Span,
}

impl Checkpointing {
    /// Time in which so much progress is made. Nobody saves at the end.
    pub(crate) fn time_for(&self, progress: Span) -> Span {
        match self.every {
            Some(every) if self.cost > Span::ZERO => {
                let saves = (progress.0 - 1).max(0) / every.0.max(1);
                progress + Span(saves.saturating_mul(self.cost.0))
            }
            _ => progress,
        }
    }

    /// After so much time since the job went on: the progress that is safe, and what saving it
    /// took.
    pub(crate) fn safe_after(&self, time: Span) -> (Span, Span) {
        let Some(every) = self.every.filter(|every| every.0 > 0) else {
            return (Span::ZERO, Span::ZERO);
        };
        let saves = time.0.max(0) / (every + self.cost).0;
        (Span(saves * every.0), Span(saves * self.cost.0))
    }

    /// Of so much time since the job went on, what was progress and what was saving, when it can
    /// save itself before it stops.
    pub(crate) fn progress_in(&self, time: Span) -> (Span, Span) {
        let (safe, saving) = self.safe_after(time);
        let rest = time - safe - saving;
        let done = self.every.map_or(rest, |every| rest.min(every));
        (safe + done, time - safe - done)
    }
}

/// Something breaks: a node, or one GPU of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fault {
    pub at: Time,
    pub node: u32,
    pub gpu: Option<u32>,
    pub until: Time,
}

/// The failures of a run, in order of time.
pub(crate) struct Faults {
    next: BinaryHeap<Reverse<(Time, u32, bool)>>,
    /// Two for each node: for itself, and for its GPUs.
    rngs: Vec<Rng>,
    troubles: FailureRates,
    gpus: Vec<u32>,
}

impl Faults {
    pub(crate) fn new(site: &Site, begin: Time) -> Faults {
        let FailureRates { seed, .. } = site.troubles;
        let nodes = site.fleet.nodes.len() as u64;
        let mut faults = Faults {
            next: BinaryHeap::new(),
            rngs: (0..2 * nodes).map(|stream| Rng::stream(seed, stream)).collect(),
            troubles: site.troubles,
            gpus: site.fleet.nodes.iter().map(|node| node.gpus).collect(),
        };
        for node in 0..nodes as u32 {
            faults.draw(node, false, begin);
            faults.draw(node, true, begin);
        }
        faults
    }

    fn draw(&mut self, node: u32, of_gpu: bool, after: Time) {
        let gpus = i64::from(self.gpus[node as usize].max(1));
        let mean = match of_gpu {
            true => self.troubles.gpu.map(|mean| mean.0 / gpus),
            false => self.troubles.node.map(|mean| mean.0),
        };
        let Some(mean) = mean else { return };
        let rng = &mut self.rngs[2 * node as usize + usize::from(of_gpu)];
        let time = -ln(1.0 - rng.unit()) * mean as f64;
        self.next.push(Reverse((after + Span(time as i64 + 1), node, of_gpu)));
    }

    pub(crate) fn next_at(&self) -> Option<Time> {
        self.next.peek().map(|Reverse((at, ..))| *at)
    }

    /// The next failure, if it comes by then.
    pub(crate) fn next_by(&mut self, now: Time) -> Option<Fault> {
        self.next.peek().filter(|Reverse((at, ..))| *at <= now)?;
        let Reverse((at, node, of_gpu)) = self.next.pop()?;
        let gpus = u64::from(self.gpus[node as usize]);
        let until = at + self.troubles.repair.max(Span::secs(1));
        let gpu = of_gpu.then(|| self.rngs[2 * node as usize + 1].below(gpus.max(1)) as u32);
        self.draw(node, of_gpu, until);
        Some(Fault { at, node, gpu, until })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nodes_fail_at_the_rate_that_is_given() {
        let troubles = FailureRates {
            seed: 3,
            node: Some(Span::days(30)),
            gpu: Some(Span::days(240)),
            repair: Span::hours(4),
        };
        let site = Site { troubles, ..Site::from(Fleet::like(100, 8, "A100")) };
        let mut faults = Faults::new(&site, Time(0));
        let year = Time(0) + Span::days(365);
        let mut seen = [0; 2];
        while let Some(fault) = faults.next_by(year) {
            seen[usize::from(fault.gpu.is_some())] += 1;
            assert_eq!(fault.until - fault.at, Span::hours(4));
        }
        // 100 nodes × 365 days / 30 days, and as many for eight GPUs each of an eighth of the rate.
        assert!(seen.iter().all(|count| (1_120..1_310).contains(count)), "{seen:?}");
    }

    #[test]
    fn what_is_safe_and_what_saving_took_add_up() {
        let (every, cost) = (Some(Span::mins(30)), Span::mins(2));
        let saves = Checkpointing { every, cost, restart: Span::ZERO };
        assert_eq!(saves.time_for(Span::mins(60)), Span::mins(62));
        assert_eq!(saves.time_for(Span::mins(61)), Span::mins(65));
        assert_eq!(saves.safe_after(Span::mins(70)), (Span::mins(60), Span::mins(4)));
        assert_eq!(saves.progress_in(Span::mins(70)), (Span::mins(66), Span::mins(4)));
        // In the middle of the second checkpoint.
        assert_eq!(saves.progress_in(Span::mins(63)), (Span::mins(60), Span::mins(3)));
        assert_eq!(Checkpointing::default().safe_after(Span::mins(70)), (Span::ZERO, Span::ZERO));
        assert_eq!(
            Checkpointing::default().progress_in(Span::mins(70)),
            (Span::mins(70), Span::ZERO)
        );
    }
}
