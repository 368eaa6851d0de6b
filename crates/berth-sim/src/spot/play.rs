//! Plays one job through.

use super::market::{Market, Terms};
use super::rules::{Action, On, Rule, View};

/// How it went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outcome {
    /// In thousandths of a second on demand.
    pub cost: i64,
    pub finished_s: i64,
    pub missed: bool,
    /// Starts after the first.
    pub restarts: u32,
}

/// Asks the rule at every sample until the work is done.
pub fn play(market: &Market, terms: &Terms, rule: &mut dyn Rule) -> Outcome {
    let step_s = market.step_s;
    let (mut left_s, mut cost, mut starts) = (terms.work_s, 0, 0_u32);
    let (mut on, mut owed_s) = (On::Nothing, 0);
    let mut up = vec![false; market.zones.len()];
    for sample in 0.. {
        let now_s = sample as i64 * step_s;
        for (zone, up) in up.iter_mut().enumerate() {
            *up = market.is_up(zone, sample);
        }
        if let On::Spot(zone) = on
            && !up[zone]
        {
            (on, owed_s) = (On::Nothing, 0);
        }
        let action = rule.choose(&View { now_s, left_s, on, owed_s, up: &up, step_s, terms });
        let next = match action {
            Action::Wait => On::Nothing,
            Action::Spot(zone) => {
                assert!(up[zone], "a machine that is not there was asked for");
                On::Spot(zone)
            }
            Action::OnDemand => On::Demand,
        };
        if next != on {
            on = next;
            owed_s = 0;
            if on != On::Nothing {
                owed_s = terms.overhead_s;
                starts += 1;
            }
        }
        let price = match on {
            On::Nothing => {
                assert!(now_s <= terms.deadline_s, "the rule waits past the deadline");
                continue;
            }
            On::Spot(_) => terms.spot_milli,
            On::Demand => 1_000,
        };
        let run_s = step_s.min(owed_s + left_s);
        let overhead_s = owed_s.min(run_s);
        owed_s -= overhead_s;
        left_s -= run_s - overhead_s;
        cost += price * run_s;
        if left_s == 0 {
            let finished_s = now_s + run_s;
            let missed = finished_s > terms.deadline_s;
            return Outcome { cost, finished_s, missed, restarts: starts.saturating_sub(1) };
        }
    }
    unreachable!("there are always more samples")
}

#[cfg(test)]
mod tests {
    use super::super::{Greedy, OnDemand};
    use super::*;

    fn market(up: &str) -> Market {
        Market { step_s: 100, zones: vec![up.chars().map(|c| c == '#').collect()] }
    }

    const TERMS: Terms =
        Terms { work_s: 1_000, deadline_s: 2_000, overhead_s: 50, spot_milli: 300 };

    #[test]
    fn on_demand_the_work_and_one_overhead_are_paid_in_full() {
        let outcome = play(&market(""), &TERMS, &mut OnDemand);
        assert_eq!(outcome.cost, 1_050 * 1_000);
        assert_eq!((outcome.finished_s, outcome.missed, outcome.restarts), (1_050, false, 0));
    }

    #[test]
    fn a_lost_machine_costs_another_overhead_but_no_work() {
        let outcome = play(&market("#####.#######"), &TERMS, &mut Greedy::default());
        assert_eq!(outcome.cost, (1_000 + 2 * 50) * 300);
        assert_eq!((outcome.finished_s, outcome.restarts), (1_200, 1));
    }
}
