//! Berth's own rule: spend the time that may be lost on changes of machine first.
//!
//! The cost is the work on demand, less what spot saves, plus the overheads. Waiting costs no money
//! but uses up the slack, and so does each overhead. Whoever waits the slack away early must stay
//! on demand through later spot, because going over and back no longer fits. So the rule keeps back
//! the slack that the changes still to come will need, judged by the stretches seen so far, and
//! waits only with what is beyond that. Once on demand it stays until spot is worth going back to.

use super::rules::{Action, On, Rule, View};
use super::seen::Seen;

/// Slack that is kept whatever the estimate says.
const KEPT_S: i64 = 900;

/// Overheads that are kept back for each stretch of spot to come: there and back, and half as much
/// again, since stretches differ.
const KEPT_PER_STRETCH: i128 = 3;

#[derive(Debug, Clone, Default)]
pub struct Steady {
    zones: Vec<Seen>,
    /// All zones together: whether there is a machine anywhere.
    any: Seen,
}

impl Steady {
    fn look(&mut self, view: &View<'_>) {
        self.zones.resize(view.up.len(), Seen::default());
        for (seen, up) in self.zones.iter_mut().zip(view.up) {
            seen.look(*up, view.step_s);
        }
        self.any.look(view.first_up().is_some(), view.step_s);
    }

    /// The zone whose machines stay the longest, of those that have one.
    fn best(&self, view: &View<'_>) -> Option<usize> {
        let up = (0..view.up.len()).filter(|zone| view.up[*zone]);
        up.max_by_key(|zone| (self.zones[*zone].mean_up_s(), std::cmp::Reverse(*zone)))
    }

    /// Slack that changes to and from spot will need until the work is done or the time is over.
    fn kept_back_s(&self, view: &View<'_>) -> i64 {
        let (up_s, down_s) = (self.any.mean_up_s().max(1), self.any.mean_down_s());
        let cycle_s = i128::from(up_s + down_s);
        let until_deadline_s = i128::from(view.terms.deadline_s - view.now_s);
        // On spot alone the work takes longer by the times without.
        let on_spot_s = i128::from(view.left_s) * cycle_s / i128::from(up_s);
        let overhead_s = i128::from(view.terms.overhead_s);
        let changes_s = until_deadline_s.min(on_spot_s) * KEPT_PER_STRETCH * overhead_s / cycle_s;
        view.terms.overhead_s + KEPT_S + changes_s as i64
    }

    /// Whether to leave a machine on demand for this zone: it has been there for as long as going
    /// over and back takes, since most stretches that end do so early, and what it can be expected
    /// to save is more than the two starts cost.
    fn pays(&self, view: &View<'_>, zone: usize) -> bool {
        let (terms, seen) = (view.terms, &self.zones[zone]);
        // It came up between the samples: half a step ago on average.
        if seen.since_s() + view.step_s / 2 < 2 * terms.overhead_s {
            return false;
        }
        let lasts_s = seen.mean_up_s().min(view.left_s);
        let way_back = if lasts_s < view.left_s { 1_000 } else { 0 };
        let saved = lasts_s * (1_000 - terms.spot_milli);
        saved > terms.overhead_s * (terms.spot_milli + way_back)
    }
}

impl Rule for Steady {
    fn choose(&mut self, view: &View<'_>) -> Action {
        self.look(view);
        let best = self.best(view);
        match (view.on, best) {
            (On::Spot(zone), _) => Action::Spot(zone),
            (On::Demand, Some(zone)) if view.may_risk() && self.pays(view, zone) => {
                Action::Spot(zone)
            }
            (On::Demand, _) => Action::OnDemand,
            (On::Nothing, Some(zone)) if view.may_risk() => Action::Spot(zone),
            (On::Nothing, Some(_)) => Action::OnDemand,
            (On::Nothing, None) => {
                let spare_s = view.slack_s() - view.step_s - self.kept_back_s(view);
                if spare_s >= 0 { Action::Wait } else { Action::OnDemand }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Market, Terms, UniformProgress, bound, play};
    use super::*;
    use crate::random::Rng;

    const TERMS: Terms =
        Terms { work_s: 172_800, deadline_s: 216_000, overhead_s: 720, spot_milli: 317 };

    fn always(up: bool) -> Market {
        Market { step_s: 600, zones: vec![vec![up; 400]] }
    }

    /// Zones whose machines come and go at random.
    fn random(zones: usize, seed: u64, up: u64, down: u64) -> Market {
        let mut random = Rng::new(seed);
        let mut zone = || {
            let mut now = random.below(2) == 0;
            let samples = (0..400).map(|_| {
                now ^= random.below(if now { up } else { down }) == 0;
                now
            });
            samples.collect()
        };
        Market { step_s: 600, zones: (0..zones).map(|_| zone()).collect() }
    }

    #[test]
    fn spot_that_never_fails_is_used_for_everything() {
        let outcome = play(&always(true), &TERMS, &mut Steady::default());
        assert_eq!(outcome.cost, bound(&always(true), &TERMS));
    }

    #[test]
    fn without_any_spot_the_work_is_done_on_demand_in_time() {
        let outcome = play(&always(false), &TERMS, &mut Steady::default());
        assert_eq!((outcome.cost, outcome.missed), (173_520_000, false));
    }

    #[test]
    fn no_deadline_is_missed_however_machines_come_and_go() {
        for seed in 0..300 {
            let (up, down) = (1 + seed % 17, 1 + seed % 13);
            let overhead_s = [0, 72, 599, 720, 1_440][seed as usize % 5];
            let spare_s = [overhead_s, 600, 7_200, 80_000][seed as usize % 4].max(overhead_s);
            let terms = Terms { overhead_s, deadline_s: TERMS.work_s + spare_s, ..TERMS };
            let market = random(1 + seed as usize % 3, seed, up, down);
            let outcome = play(&market, &terms, &mut Steady::default());
            assert!(!outcome.missed, "seed {seed}: {outcome:?}");
            assert!(outcome.cost >= bound(&market.window(0, terms.deadline_s), &terms));
        }
    }

    #[test]
    fn machines_that_come_and_go_by_the_hour_are_used_better_than_by_uniform_progress() {
        let (mut ours, mut theirs) = (0, 0);
        for seed in 0..100 {
            let market = random(1, seed, 10, 10);
            ours += play(&market, &TERMS, &mut Steady::default()).cost;
            theirs += play(&market, &TERMS, &mut UniformProgress::default()).cost;
        }
        assert!(ours < theirs, "{ours} and {theirs}");
    }

    #[test]
    fn another_zone_takes_over_where_one_fails() {
        let half = |first: bool| (0..400).map(|at| (at < 150) == first).collect::<Vec<bool>>();
        let market = Market { step_s: 600, zones: vec![half(true), half(false)] };
        let outcome = play(&market, &TERMS, &mut Steady::default());
        assert_eq!(outcome.cost, (172_800 + 2 * 720) * 317);
        assert_eq!(outcome.restarts, 1);
    }
}
