//! What the machines of a run cost and drew, and what for: all of it is used, lost, idle for a
//! reason, or out of order, and the parts sum to the whole.

use super::sweep::{Series, Sweep, Tally};
use super::{GpuTime, gpu_hours, gpu_time, seconds};
use crate::fleet::Fleet;
use crate::outcome::Timeline;
use crate::peers::Job;
use crate::prices::PriceList;
use berth_model::{Milli, Time};
use serde::Serialize;

/// A quantity of the machines of a run by what became of it.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Parts {
    /// Brought jobs nearer their end.
    pub used: f64,
    /// Held by jobs for restarts, checkpoints and work that was done again.
    pub lost: f64,
    /// Idle, and nobody waited who could have used them.
    pub no_demand: f64,
    /// Idle, and those who waited needed more than was free.
    pub too_few: f64,
    /// Idle, and enough was free for one who waited, but not together.
    pub fragmented: f64,
    /// Idle, though one who waited would have fitted: kept by an order, a quota or a reservation.
    pub held_back: f64,
    pub out_of_order: f64,
    /// Bought, and not there yet.
    pub booting: f64,
}

impl Parts {
    pub const NAMES: [&str; 8] = [
        "used",
        "lost",
        "no demand",
        "too few free",
        "fragmented",
        "held back",
        "out of order",
        "booting",
    ];

    pub fn all(&self) -> [f64; 8] {
        [
            self.used,
            self.lost,
            self.no_demand,
            self.too_few,
            self.fragmented,
            self.held_back,
            self.out_of_order,
            self.booting,
        ]
    }

    pub fn total(&self) -> f64 {
        self.all().iter().sum()
    }

    pub fn idle(&self) -> f64 {
        self.no_demand + self.too_few + self.fragmented + self.held_back
    }

    /// The part that brought jobs nearer their end.
    pub fn utilization(&self) -> f64 {
        self.used / self.total().max(1e-9)
    }

    /// The part that jobs held.
    pub fn allocation(&self) -> f64 {
        (self.used + self.lost) / self.total().max(1e-9)
    }

    fn from_all(
        [used, lost, no_demand, too_few, fragmented, held_back, out_of_order, booting]: [f64; 8],
    ) -> Parts {
        Parts { used, lost, no_demand, too_few, fragmented, held_back, out_of_order, booting }
    }
}

/// Dollars.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Cost {
    pub total: f64,
    pub on_demand: f64,
    pub spot: f64,
    pub parts: Parts,
}

/// Where GPU time, money and energy went, from the first submission to the last end.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Account {
    /// In seconds of the trace.
    pub from: f64,
    pub to: f64,
    pub gpu_hours: Parts,
    pub cost: Cost,
    pub energy_kwh: f64,
    /// Of the free GPU time, the part that a job drawn from the trace could not have used for lack
    /// of GPUs on the same node.
    pub fragmentation: f64,
    pub series: Series,
}

/// Machines of one model at one price.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Class {
    model: u32,
    spot: bool,
    /// A millionth of a dollar per GPU-hour.
    price: i64,
}

impl Account {
    pub fn new(timeline: &Timeline, fleet: &Fleet, jobs: &[Job], prices: &PriceList) -> Account {
        let window = window(timeline);
        let (classes, class) = classes(timeline, fleet, prices);
        let swept = Sweep::run(timeline, fleet, jobs, &class, window);
        let lost = lost(timeline, &class, classes.len());
        let booting = booting(timeline, fleet.nodes.len(), &class, classes.len());
        let (mut hours, mut dollars) = ([0.0; 8], [0.0; 8]);
        let (mut on_demand, mut spot, mut watt_ms) = (0.0, 0.0, 0.0);
        for (number, kind) in classes.iter().enumerate() {
            let Tally { busy, idle, down } = swept.tallies.get(number).copied().unwrap_or_default();
            let lost = lost[number].min(busy);
            let times =
                [busy - lost, lost, idle[0], idle[1], idle[2], idle[3], down, booting[number]];
            let rate = prices.rate(fleet.models[kind.model as usize].as_str());
            for (place, time) in times.into_iter().enumerate() {
                hours[place] += gpu_hours(time);
                let cost = gpu_hours(time) * kind.price as f64 / 1e6;
                dollars[place] += cost;
                *(if kind.spot { &mut spot } else { &mut on_demand }) += cost;
            }
            let idle: GpuTime = idle.iter().sum::<GpuTime>() + booting[number];
            watt_ms += busy as f64 * rate.busy_watts as f64 + idle as f64 * rate.idle_watts as f64;
        }
        let parts = Parts::from_all(dollars);
        let free = swept.free as f64;
        Account {
            from: seconds(window.0 - Time(0)),
            to: seconds(window.1 - Time(0)),
            gpu_hours: Parts::from_all(hours),
            cost: Cost { total: parts.total(), on_demand, spot, parts },
            // Thousandths of GPUs × milliseconds × watts.
            energy_kwh: watt_ms / (1_000.0 * 3_600_000.0 * 1_000.0),
            fragmentation: if free > 0.0 { swept.unusable / free } else { 0.0 },
            series: swept.series,
        }
    }
}

fn window(timeline: &Timeline) -> (Time, Time) {
    let first = timeline.outcomes.iter().map(|outcome| outcome.submit).min().unwrap_or(Time(0));
    let ends = timeline.outcomes.iter().flat_map(|outcome| &outcome.segments);
    let last = ends.map(|segment| segment.to).max().unwrap_or(first);
    (first, timeline.bought.iter().map(|one| one.to).fold(last, Time::max))
}

/// The kinds of machines there are, and the kind of each.
fn classes(timeline: &Timeline, fleet: &Fleet, prices: &PriceList) -> (Vec<Class>, Vec<usize>) {
    let mut classes: Vec<Class> = Vec::new();
    let mut number = |class: Class| {
        classes.iter().position(|known| *known == class).unwrap_or_else(|| {
            classes.push(class);
            classes.len() - 1
        })
    };
    let mut of = Vec::new();
    for node in &fleet.nodes {
        let rate = prices.rate(fleet.models[node.model as usize].as_str());
        of.push(number(Class { model: node.model, spot: false, price: rate.on_demand.0 }));
    }
    for one in &timeline.bought {
        let price = one.price.0 / i64::from(one.gpus.max(1));
        of.push(number(Class { model: one.model, spot: one.spot, price }));
    }
    (classes, of)
}

fn lost(timeline: &Timeline, class: &[usize], classes: usize) -> Vec<GpuTime> {
    let mut lost = vec![0; classes];
    for segment in timeline.outcomes.iter().flat_map(|outcome| &outcome.segments) {
        for (node, gpus) in segment.place.parts() {
            lost[class[node as usize]] += gpu_time(Milli::whole(i64::from(gpus)), segment.wasted());
        }
    }
    lost
}

fn booting(timeline: &Timeline, fixed: usize, class: &[usize], classes: usize) -> Vec<GpuTime> {
    let mut times = vec![0; classes];
    for (number, one) in timeline.bought.iter().enumerate() {
        let gpus = Milli::whole(i64::from(one.gpus));
        times[class[fixed + number]] += gpu_time(gpus, one.ready.min(one.to) - one.from);
    }
    times
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outcome::{Bought, Outage, Outcome, Place, Segment};
    use crate::peers::{self, Policy};
    use crate::prices::Rate;
    use berth_model::{Micros, Span};

    const HOUR: i64 = 3_600_000;

    /// `gpus` from–to on a node, submitted when told, all in hours.
    fn timeline(jobs: &[(u32, i64, i64, i64, u32)]) -> (Timeline, Vec<Job>) {
        let mut timeline = Timeline::default();
        let mut list = Vec::new();
        for (number, (gpus, submit, from, to, node)) in jobs.iter().copied().enumerate() {
            let job = Job {
                submit: Time(submit * HOUR),
                duration: Span::hours(to - from),
                estimate: Span::hours(to - from),
                gpus,
                team: 0,
                models: u64::MAX,
            };
            let mut outcome: Outcome = peers::blank(number, &job);
            let place = Place::One(node, gpus);
            let segment = Segment::new(Time(from * HOUR), Time(to * HOUR));
            outcome.segments.push(Segment { place, ..segment });
            outcome.end = Some(Time(to * HOUR));
            timeline.outcomes.push(outcome);
            list.push(job);
        }
        (timeline, list)
    }

    fn near(found: f64, wanted: f64) -> bool {
        (found - wanted).abs() < 1e-6
    }

    fn account(timeline: &Timeline, fleet: &Fleet, jobs: &[Job]) -> Account {
        let mut prices = PriceList::default();
        let rate = Rate {
            on_demand: Micros::dollars(2),
            spot: Micros::dollars(1),
            idle_watts: 100,
            busy_watts: 500,
        };
        prices.set("A100".into(), rate);
        Account::new(timeline, fleet, jobs, &prices)
    }

    #[test]
    fn idle_time_is_told_by_its_cause_and_all_parts_sum_to_the_machines() {
        // Two nodes of 4. Until 10: 3 + 3 run, 2 are asked for from 2 on and do not fit (2 are
        // free, apart), from 4 on 1 is asked for and held back. From 10 to 12 both run.
        let (timeline, jobs) =
            timeline(&[(3, 0, 0, 10, 0), (3, 0, 0, 10, 1), (2, 2, 10, 12, 0), (1, 4, 10, 12, 0)]);
        let fleet = Fleet::like(2, 4, "A100");
        let account = account(&timeline, &fleet, &jobs);
        let hours = account.gpu_hours;
        assert!(near(hours.used, 66.0) && near(hours.total(), 96.0), "{hours:?}");
        assert!(near(hours.fragmented, 4.0) && near(hours.held_back, 12.0), "{hours:?}");
        assert!(near(hours.no_demand, 4.0 + 10.0), "{hours:?}");
        assert!(near(account.cost.total, 192.0) && near(account.cost.parts.used, 132.0));
        assert!(near(account.energy_kwh, 66.0 * 0.5 + 30.0 * 0.1), "{}", account.energy_kwh);
    }

    #[test]
    fn utilization_and_idle_time_are_parts_of_the_same_whole() {
        // Nothing is submitted after 0, and one of the nodes is idle from 2 to 10.
        let (timeline, jobs) = timeline(&[(4, 0, 0, 10, 0), (4, 0, 0, 2, 1)]);
        let hours = account(&timeline, &Fleet::like(2, 4, "A100"), &jobs).gpu_hours;
        assert!(near(hours.utilization(), 0.6) && near(hours.allocation(), 0.6), "{hours:?}");
        assert!(near(hours.no_demand / hours.total(), 0.4), "{hours:?}");
        let rest = hours.total() - hours.used - hours.lost;
        assert!(near(hours.allocation() + rest / hours.total(), 1.0), "{hours:?}");
    }

    #[test]
    fn jobs_that_need_more_than_is_free_do_not_blame_the_policy() {
        let (timeline, jobs) = timeline(&[(3, 0, 0, 2, 0), (4, 0, 2, 3, 0)]);
        let account = account(&timeline, &Fleet::like(1, 4, "A100"), &jobs);
        assert!(near(account.gpu_hours.too_few, 2.0), "{:?}", account.gpu_hours);
        assert!(near(account.gpu_hours.idle(), 2.0));
        // Of the one free GPU, the larger job cannot make use, and the other cannot either.
        assert!(near(account.fragmentation, 1.0), "{}", account.fragmentation);
    }

    #[test]
    fn failures_boots_and_lost_work_are_parts_of_the_bill() {
        let (mut timeline, jobs) = timeline(&[(2, 0, 0, 4, 0), (4, 1, 2, 4, 1)]);
        timeline.outcomes[0].segments[0].lost = Span::hours(1);
        timeline.outages.push(Outage { node: 0, gpus: 1, from: Time(HOUR), to: Time(3 * HOUR) });
        timeline.bought.push(Bought {
            gpus: 4,
            model: 0,
            spot: true,
            price: Micros::dollars(4),
            from: Time(HOUR),
            ready: Time(2 * HOUR),
            to: Time(5 * HOUR),
        });
        let account = account(&timeline, &Fleet::like(1, 4, "A100"), &jobs);
        let hours = account.gpu_hours;
        assert!(near(hours.lost, 2.0) && near(hours.used, 6.0 + 8.0), "{hours:?}");
        assert!(near(hours.out_of_order, 2.0) && near(hours.booting, 4.0), "{hours:?}");
        assert!(near(hours.total(), 4.0 * 5.0 + 4.0 * 4.0), "{hours:?}");
        assert!(near(account.cost.spot, 16.0) && near(account.cost.on_demand, 40.0));
    }

    #[test]
    fn every_policy_accounts_for_the_whole_cluster() {
        let (_, jobs) =
            timeline(&[(3, 0, 0, 5, 0), (4, 0, 0, 3, 0), (8, 1, 1, 2, 0), (1, 2, 2, 9, 0)]);
        let fleet = Fleet::like(2, 4, "A100");
        for policy in Policy::ALL {
            let timeline = peers::run_at(policy, &fleet.clone().into(), &jobs, &[]);
            let account = account(&timeline, &fleet, &jobs);
            let span = (account.to - account.from) / 3_600.0;
            assert!(near(account.gpu_hours.total(), 8.0 * span), "{}", policy.word());
            assert!(near(account.gpu_hours.used, 15.0 + 12.0 + 8.0 + 7.0), "{}", policy.word());
        }
    }
}
