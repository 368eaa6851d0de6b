//! What nobody can beat.

use super::market::{Market, Terms};

/// A cost that no rule goes below, even one that knows the future.
///
/// With `n` starts on spot, at most the `n` longest stretches can be used, and each start costs an
/// overhead; what is left is done on demand after one start. Where in time the machines on demand
/// fit is left aside, as is moving between zones: both only make the truth dearer. All overheads
/// together have to fit between the work and the deadline.
pub fn bound(market: &Market, terms: &Terms) -> i64 {
    let mut stretches = stretches(market, terms.deadline_s);
    stretches.sort_unstable_by_key(|seconds| -seconds);
    let slack_s = terms.deadline_s - terms.work_s;
    let on_demand = |work_s: i64| if work_s > 0 { (work_s + terms.overhead_s) * 1_000 } else { 0 };
    let mut least = on_demand(terms.work_s);
    let mut held_s = 0;
    for (at, seconds) in stretches.iter().enumerate() {
        let overheads_s = (at as i64 + 1) * terms.overhead_s;
        if overheads_s > slack_s {
            break;
        }
        held_s += seconds;
        let worked_s = (held_s - overheads_s).clamp(0, terms.work_s);
        let spot = (worked_s + overheads_s) * terms.spot_milli;
        least = least.min(spot + on_demand(terms.work_s - worked_s));
    }
    least
}

/// Seconds for which some zone or other has a machine without a break, until the deadline.
fn stretches(market: &Market, deadline_s: i64) -> Vec<i64> {
    let mut found = Vec::new();
    let mut length_s = 0;
    for sample in 0..market.samples() {
        let left_s = deadline_s - sample as i64 * market.step_s;
        if left_s <= 0 {
            break;
        }
        if (0..market.zones.len()).any(|zone| market.is_up(zone, sample)) {
            length_s += market.step_s.min(left_s);
        } else if length_s > 0 {
            found.push(std::mem::take(&mut length_s));
        }
    }
    found.extend((length_s > 0).then_some(length_s));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    fn market(zones: &[&str]) -> Market {
        let zone = |up: &&str| up.chars().map(|c| c == '#').collect();
        Market { step_s: 100, zones: zones.iter().map(zone).collect() }
    }

    const TERMS: Terms =
        Terms { work_s: 1_000, deadline_s: 2_000, overhead_s: 50, spot_milli: 300 };

    #[test]
    fn where_spot_is_always_there_the_work_and_one_overhead_cost_its_price() {
        assert_eq!(bound(&market(&["####################"]), &TERMS), 1_050 * 300);
    }

    #[test]
    fn what_spot_cannot_do_is_bought_on_demand() {
        // 400 seconds of spot do 350 of work.
        let cost = 400 * 300 + (650 + 50) * 1_000;
        assert_eq!(bound(&market(&["....####............"]), &TERMS), cost);
    }

    #[test]
    fn a_stretch_that_costs_more_to_start_on_than_it_saves_is_left_out() {
        let terms = Terms { overhead_s: 90, ..TERMS };
        assert_eq!(bound(&market(&[".....#.............."]), &terms), 1_090 * 1_000);
    }

    #[test]
    fn zones_that_take_turns_count_as_one_stretch() {
        let turns = market(&["##########..........", "..........##########"]);
        assert_eq!(bound(&turns, &TERMS), 1_050 * 300);
    }
}
