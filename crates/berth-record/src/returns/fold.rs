//! Aggregates runs into one row.

use berth_api::wire::{BetterValues, Return};
use berth_tracker::value;

/// The figures of one run.
#[derive(Debug, Clone, PartialEq)]
pub struct Facts {
    pub id: String,
    pub start: i64,
    /// `None` while it runs.
    pub end: Option<i64>,
    /// The run failed or was killed.
    pub failed: bool,
    pub micros: Option<i64>,
    pub gpu_hours: f64,
    /// The best value of the metric, as stored.
    pub best: Option<i64>,
    /// When it first reached the goal.
    pub reached: Option<i64>,
}

/// Any script may log any cost and any time: no sum runs over.
pub fn add(amounts: impl IntoIterator<Item = i64>) -> i64 {
    amounts.into_iter().fold(0, i64::saturating_add)
}

fn is_better(better: BetterValues, value: i64, than: i64) -> bool {
    match better {
        BetterValues::Higher => value > than,
        BetterValues::Lower => value < than,
    }
}

/// The best value and its run. Among equal values, the earliest run.
pub fn best(runs: &[Facts], better: BetterValues) -> Option<(i64, &str)> {
    let mut found: Option<(i64, &str)> = None;
    for run in runs {
        if let Some(value) = run.best
            && found.is_none_or(|(best, _)| is_better(better, value, best))
        {
            found = Some((value, &run.id));
        }
    }
    found
}

/// Aggregates runs, ordered by start. `goal` is encoded as stored.
pub fn row(runs: &[Facts], better: BetterValues, goal: Option<i64>, now: i64) -> Return {
    let first = runs.iter().filter_map(|run| run.reached).min();
    let reached = runs.iter().filter(|run| run.reached.is_some()).count() as u64;
    let spent = add(runs.iter().filter_map(|run| run.micros));
    let best = best(runs, better);
    let (mut failed, mut superseded) = (0, 0);
    let mut so_far: Option<i64> = None;
    for run in runs {
        let improves =
            run.best.is_some_and(|value| so_far.is_none_or(|best| is_better(better, value, best)));
        let micros = run.micros.unwrap_or(0);
        if run.failed {
            failed = add([failed, micros]);
        } else if run.end.is_some() && goal.is_some() && !improves {
            superseded = add([superseded, micros]);
        }
        if improves {
            so_far = run.best;
        }
    }
    Return {
        name: String::new(),
        experiment: None,
        runs: runs.len() as u64,
        without_cost: runs.iter().filter(|run| run.micros.is_none()).count() as u64,
        spent_micros: spent,
        gpu_hours: runs.iter().map(|run| run.gpu_hours).sum(),
        best: best.map(|(value, _)| value::decode(value)),
        best_run: best.map(|(_, id)| id.to_owned()),
        goal: goal.map(value::decode),
        reached,
        until_goal_micros: first.map(|first| add(runs.iter().map(|run| until(run, first, now)))),
        per_result_micros: i64::try_from(reached).ok().filter(|n| *n > 0).map(|n| spent / n),
        failed_micros: failed,
        superseded_micros: superseded,
    }
}

/// The cost of a run up to a moment, assuming a constant rate.
fn until(run: &Facts, at: i64, now: i64) -> i64 {
    let micros = i128::from(run.micros.unwrap_or(0));
    let since_start = |at: i64| i128::from(at) - i128::from(run.start);
    let end = run.end.unwrap_or(now).max(run.start);
    let part = match (since_start(at), since_start(end)) {
        (passed, _) if passed < 0 => 0,
        (passed, length) if passed >= length => micros,
        (passed, length) => micros * passed / length,
    };
    i64::try_from(part).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    const DOLLAR: i64 = 1_000_000;

    fn run(id: &str, (start, end): (i64, i64), dollars: i64, best: f64) -> Facts {
        Facts {
            id: id.to_owned(),
            start,
            end: Some(end),
            failed: false,
            micros: Some(dollars * DOLLAR),
            gpu_hours: 2.0,
            best: Some(value::encode(best)),
            reached: None,
        }
    }

    #[test]
    fn money_is_counted_until_the_goal_was_first_reached_and_for_each_run_that_reached_it() {
        let runs = [
            run("a", (0, 100), 10, 0.7),
            Facts { reached: Some(150), ..run("b", (100, 200), 20, 0.91) },
            Facts { reached: Some(350), ..run("c", (300, 400), 30, 0.95) },
        ];
        let row = row(&runs, BetterValues::Higher, Some(value::encode(0.9)), 1_000);
        assert_eq!((row.runs, row.reached, row.spent_micros), (3, 2, 60 * DOLLAR));
        assert_eq!(row.until_goal_micros, Some(20 * DOLLAR), "the first run, and half the second");
        assert_eq!(row.per_result_micros, Some(30 * DOLLAR));
        assert_eq!((row.best, row.best_run.as_deref()), (Some(0.95), Some("c")));
        assert_eq!((row.goal, row.gpu_hours.to_bits()), (Some(0.9), 6.0_f64.to_bits()));
        assert_eq!((row.failed_micros, row.superseded_micros), (0, 0), "each was the best so far");
    }

    #[test]
    fn failed_runs_and_those_that_brought_nothing_better_are_told_apart() {
        let going_on = Facts { end: None, ..run("d", (300, 0), 8, 0.9) };
        let runs = [
            run("a", (0, 100), 1, 0.5),
            Facts { failed: true, ..run("b", (100, 200), 2, 0.6) },
            run("c", (200, 300), 4, 0.5),
            going_on,
            Facts { best: None, ..run("e", (400, 500), 16, 0.0) },
        ];
        let goal = Some(value::encode(0.1));
        let row = row(&runs, BetterValues::Lower, goal, 1_000);
        assert_eq!((row.failed_micros, row.superseded_micros), (2 * DOLLAR, 20 * DOLLAR));
        assert_eq!((row.reached, row.until_goal_micros, row.per_result_micros), (0, None, None));
    }

    #[test]
    fn without_a_metric_nothing_is_superseded_and_runs_without_a_cost_are_counted() {
        let bare = |id: &str| Facts { best: None, micros: None, ..run(id, (0, 10), 0, 0.0) };
        let row = row(&[bare("a"), run("b", (5, 9), 3, 0.5)], BetterValues::Higher, None, 10);
        assert_eq!((row.without_cost, row.spent_micros), (1, 3 * DOLLAR));
        assert_eq!((row.superseded_micros, row.goal), (0, None));
    }

    #[test]
    fn costs_and_times_that_a_script_made_up_run_over_nothing() {
        let odd = |id: &str, micros| Facts {
            start: i64::MIN,
            end: Some(i64::MAX),
            failed: true,
            micros: Some(micros),
            reached: Some(i64::MAX),
            ..run(id, (0, 1), 1, 0.5)
        };
        let row = row(&[odd("a", i64::MAX), odd("b", i64::MAX)], BetterValues::Higher, Some(0), 0);
        assert_eq!((row.spent_micros, row.failed_micros), (i64::MAX, i64::MAX));
        assert_eq!(row.until_goal_micros, Some(i64::MAX));
    }
}
