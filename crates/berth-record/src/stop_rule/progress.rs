//! The progress of a rule, folded from the points of its metric.

use berth_model::run::{Better, StopRule, StopWhen};
use berth_tracker::{Point, value};

/// A value of the metric, and its step.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Seen {
    pub value: f64,
    pub step: i64,
}

/// The state after the points so far. The batches of points do not matter.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Progress {
    /// The step and time of the last point.
    pub last: Option<(i64, i64)>,
    newest: Option<Seen>,
    /// The best number. NaN is never the best.
    pub best: Option<Seen>,
    /// Evaluations since the best one.
    since_best: u32,
}

impl Progress {
    /// Folds the next points, ordered by step and time.
    pub fn take(&mut self, rule: &StopRule, points: &[Point]) {
        for point in points {
            self.take_one(rule, point);
        }
    }

    fn take_one(&mut self, rule: &StopRule, point: &Point) {
        let before = self.last.replace((point.step, point.timestamp));
        let seen = Seen { value: value::decode(point.value), step: point.step };
        self.newest = Some(seen);
        // A job that resumes from a checkpoint evaluates some steps again. Clients without steps log
        // everything at step 0.
        if before.is_some_and(|(step, _)| step == point.step && step != 0) {
            return;
        }
        let (better, by) = match &rule.when {
            StopWhen::NotBetterFor { better, by, .. } => {
                (*better, by.as_ref().map_or(0.0, |by| by.value()))
            }
            StopWhen::NotBetterThan { better, .. } => (*better, 0.0),
            // Only the newest value counts.
            StopWhen::Above(_) | StopWhen::Below(_) | StopWhen::IsNan => return,
        };
        let is_better = |best: Seen| is_better(better, seen.value, best.value, by);
        if !seen.value.is_nan() && self.best.is_none_or(is_better) {
            (self.best, self.since_best) = (Some(seen), 0);
        } else {
            self.since_best = self.since_best.saturating_add(1);
        }
    }

    /// Whether the rule is met, regardless of the minimum running time.
    pub fn is_met(&self, rule: &StopRule) -> bool {
        let newest = self.newest.map_or(f64::NAN, |seen| seen.value);
        match &rule.when {
            StopWhen::Above(value) => newest > value.value(),
            StopWhen::Below(value) => newest < value.value(),
            StopWhen::IsNan => self.newest.is_some() && newest.is_nan(),
            StopWhen::NotBetterFor { evaluations, .. } => self.since_best >= *evaluations,
            StopWhen::NotBetterThan { value, better } => {
                let reached = self
                    .best
                    .is_some_and(|best| is_better(*better, best.value, value.value(), 0.0));
                self.newest.is_some() && !reached
            }
        }
    }

    /// Describes the state of the metric.
    pub fn words(&self, rule: &StopRule) -> String {
        let at = |what: &str, seen: Seen| match seen.step {
            0 => format!("{what} {}", number(seen.value)),
            step => format!("{what} {} at step {step}", number(seen.value)),
        };
        match (&rule.when, self.best, self.newest) {
            (StopWhen::NotBetterFor { .. } | StopWhen::NotBetterThan { .. }, Some(best), _) => {
                at("best", best)
            }
            (_, _, Some(newest)) => at("newest", newest),
            _ => "no value".to_owned(),
        }
    }
}

fn is_better(better: Better, value: f64, than: f64, by: f64) -> bool {
    match better {
        Better::Lower => value < than - by,
        Better::Higher => value > than + by,
    }
}

/// Enough digits to tell two results apart.
fn number(value: f64) -> String {
    if value.is_nan() {
        return "NaN".to_owned();
    }
    let size = value.abs();
    if size != 0.0 && !(1e-4..1e7).contains(&size) {
        return format!("{value:.3e}");
    }
    let short = format!("{value:.4}");
    match short.contains('.') {
        true => short.trim_end_matches('0').trim_end_matches('.').to_owned(),
        false => short,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_file::job;

    fn rule(text: &str) -> StopRule {
        let file = format!("run: x\nstop_when: '{text}'\n");
        job::read(&file).unwrap().file.stop_when.remove(0)
    }

    fn points(values: &[f64]) -> Vec<Point> {
        let point = |(step, kept): (i64, &f64)| Point {
            step,
            timestamp: 1_000 + step,
            value: value::encode(*kept),
        };
        (1..).zip(values).map(point).collect()
    }

    fn after(text: &str, values: &[f64]) -> (bool, String) {
        let rule = rule(text);
        let mut progress = Progress::default();
        progress.take(&rule, &points(values));
        (progress.is_met(&rule), progress.words(&rule))
    }

    fn met(text: &str, values: &[f64]) -> bool {
        after(text, values).0
    }

    #[test]
    fn patience_counts_evaluations_since_the_best_one() {
        let rule = "loss not better for 3 evaluations";
        assert!(!met(rule, &[]) && !met(rule, &[0.5]));
        assert!(!met(rule, &[0.5, 0.6, 0.5]));
        assert_eq!(after(rule, &[0.9, 0.5, 0.6, 0.5, 0.7]), (true, "best 0.5 at step 2".into()));
        assert!(!met(rule, &[0.5, 0.6, 0.5, 0.4]), "the last one was better");
        let up = "acc not better for 2 evaluations max";
        assert!(met(up, &[0.1, 0.1, 0.05]) && !met(up, &[0.1, 0.2, 0.15]));
    }

    #[test]
    fn an_improvement_that_is_too_small_does_not_count() {
        let rule = "loss not better by 0.1 for 2 evaluations";
        assert!(met(rule, &[1.0, 0.95, 0.91]));
        assert!(!met(rule, &[1.0, 0.95, 0.85]));
    }

    #[test]
    fn nan_is_an_evaluation_that_is_not_better_and_a_rule_of_its_own() {
        assert!(met("loss not better for 2 evaluations", &[f64::NAN, f64::NAN]));
        assert!(met("loss is nan", &[0.3, f64::NAN]));
        assert!(!met("loss is nan", &[f64::NAN, 0.3]) && !met("loss is nan", &[]));
        assert!(!met("loss above 3", &[f64::NAN]) && !met("loss below 3", &[f64::NAN]));
    }

    #[test]
    fn a_bound_looks_at_the_newest_value_and_a_goal_at_the_best() {
        assert_eq!(after("loss above 10", &[12.0, 11.5]), (true, "newest 11.5 at step 2".into()));
        assert!(!met("loss above 10", &[12.0, 9.0]) && met("acc below 0.2", &[0.1]));
        let goal = "loss not better than 0.3";
        assert!(met(goal, &[0.9, 0.3]) && !met(goal, &[0.9, 0.29, 0.8]) && !met(goal, &[]));
        assert!(met("loss above 10", &[f64::INFINITY]));
    }

    #[test]
    fn points_in_pieces_come_to_the_same_as_all_of_them_at_once() {
        let rule = rule("loss not better for 4 evaluations");
        let all = points(&[0.9, 0.5, 0.6, 0.7, 0.5, 0.55]);
        let mut whole = Progress::default();
        whole.take(&rule, &all);
        for cut in 0..all.len() {
            let mut pieces = Progress::default();
            pieces.take(&rule, &all[..cut]);
            pieces.take(&rule, &all[cut..]);
            assert_eq!(pieces, whole);
        }
        assert!(whole.is_met(&rule));
    }

    #[test]
    fn a_step_that_is_evaluated_again_after_a_restart_counts_once_and_points_without_steps_each() {
        let rule = rule("loss not better for 3 evaluations");
        let point = |step, at| Point { step, timestamp: at, value: value::encode(0.5) };
        let mut progress = Progress::default();
        progress.take(&rule, &[point(1, 1), point(2, 2), point(2, 9), point(3, 3), point(3, 9)]);
        assert!(!progress.is_met(&rule));
        let mut progress = Progress::default();
        progress.take(&rule, &[point(0, 1), point(0, 2), point(0, 3), point(0, 4)]);
        assert!(progress.is_met(&rule));
        assert_eq!(progress.words(&rule), "best 0.5");
    }

    #[test]
    fn numbers_are_short() {
        for (value, shown) in [
            (0.31, "0.31"),
            (12.0, "12"),
            (0.123_456, "0.1235"),
            (3.0e-7, "3.000e-7"),
            (-1.5e9, "-1.500e9"),
            (0.0, "0"),
        ] {
            assert_eq!(number(value), shown);
        }
    }
}
