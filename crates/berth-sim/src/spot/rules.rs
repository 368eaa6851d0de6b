//! What a rule sees and may do, and the rules that ours is compared with.

use super::market::Terms;

/// What the job is on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum On {
    Nothing,
    /// Spot in this zone.
    Spot(usize),
    Demand,
}

/// What is done until the next sample.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Wait,
    /// In a zone that has a machine now.
    Spot(usize),
    OnDemand,
}

/// What is known at a sample: nothing of the future.
#[derive(Debug, Clone, Copy)]
pub struct View<'v> {
    pub now_s: i64,
    /// Work that is still to be done.
    pub left_s: i64,
    /// A spot machine that was lost is gone already.
    pub on: On,
    /// Overhead of the last start that is not over yet.
    pub owed_s: i64,
    /// Which zones have a machine until the next sample.
    pub up: &'v [bool],
    pub step_s: i64,
    pub terms: &'v Terms,
}

impl View<'_> {
    /// Time that can be lost without being late, if what is held were held until the end.
    pub fn slack_s(&self) -> i64 {
        self.terms.deadline_s - self.now_s - self.left_s - self.owed_s
    }

    pub fn first_up(&self) -> Option<usize> {
        self.up.iter().position(|up| *up)
    }

    /// Whether a wait of one more sample leaves the time to start on demand.
    pub fn may_wait(&self) -> bool {
        self.slack_s() - self.step_s >= self.terms.overhead_s
    }

    /// Whether a start on spot that is lost at once leaves the time to start on demand.
    pub fn may_risk(&self) -> bool {
        self.slack_s() + self.owed_s >= 2 * self.terms.overhead_s
    }
}

/// Decides at every sample, with whatever memory it keeps.
pub trait Rule {
    fn choose(&mut self, view: &View<'_>) -> Action;
}

/// The safe and dear way.
#[derive(Debug, Clone, Copy, Default)]
pub struct OnDemand;

impl Rule for OnDemand {
    fn choose(&mut self, _: &View<'_>) -> Action {
        Action::OnDemand
    }
}

/// Spot or nothing as long as there is time, then on demand until the end.
#[derive(Debug, Clone, Copy, Default)]
pub struct Greedy {
    hurried: bool,
}

impl Rule for Greedy {
    fn choose(&mut self, view: &View<'_>) -> Action {
        if let On::Spot(zone) = view.on {
            return Action::Spot(zone);
        }
        match view.first_up() {
            Some(zone) if !self.hurried && view.may_risk() => Action::Spot(zone),
            None if !self.hurried && view.may_wait() => Action::Wait,
            _ => {
                self.hurried = true;
                Action::OnDemand
            }
        }
    }
}

/// Uniform Progress (Wu et al., NSDI 2024): work is to advance in step with time, so whoever is
/// behind that goes on demand until it is ahead by two overheads; spot is taken whenever it is
/// there and kept until it is lost; with two overheads of time left, on demand until the end.
#[derive(Debug, Clone, Copy, Default)]
pub struct UniformProgress {
    hurried: bool,
}

impl UniformProgress {
    /// Whether the work done is what should be done by then.
    fn keeps_up(view: &View<'_>, by_s: i64) -> bool {
        let terms = view.terms;
        let done_s = terms.work_s - view.left_s;
        i128::from(done_s) * i128::from(terms.deadline_s)
            >= i128::from(by_s) * i128::from(terms.work_s)
    }
}

impl Rule for UniformProgress {
    fn choose(&mut self, view: &View<'_>) -> Action {
        if let On::Spot(zone) = view.on {
            return Action::Spot(zone);
        }
        let up = view.first_up();
        self.hurried |= !view.may_risk() || (up.is_none() && !view.may_wait());
        if self.hurried {
            return Action::OnDemand;
        }
        let ahead = UniformProgress::keeps_up(view, view.now_s + 2 * view.terms.overhead_s);
        if view.on == On::Demand && !ahead {
            return Action::OnDemand;
        }
        match up {
            Some(zone) => Action::Spot(zone),
            None if UniformProgress::keeps_up(view, view.now_s) => Action::Wait,
            None => Action::OnDemand,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Market, play};
    use super::*;

    fn market(up: &str) -> Market {
        Market { step_s: 100, zones: vec![up.chars().map(|c| c == '#').collect()] }
    }

    const TERMS: Terms =
        Terms { work_s: 1_000, deadline_s: 2_000, overhead_s: 50, spot_milli: 300 };

    #[test]
    fn greed_waits_until_there_is_just_time_for_all_of_it_on_demand() {
        let outcome = play(&market(""), &TERMS, &mut Greedy::default());
        assert_eq!((outcome.finished_s, outcome.missed), (1_950, false));
        assert_eq!(outcome.cost, 1_050 * 1_000);
    }

    #[test]
    fn greed_stays_on_demand_once_it_has_begun_even_if_spot_comes() {
        let late = format!("{}{}", ".".repeat(9), "#".repeat(11));
        let outcome = play(&market(&late), &TERMS, &mut Greedy::default());
        assert_eq!(outcome.cost, (1_000 + 50) * 300, "at 900 there is time for two starts");
        let later = format!("{}{}", ".".repeat(10), "#".repeat(10));
        let outcome = play(&market(&later), &TERMS, &mut Greedy::default());
        assert_eq!(outcome.cost, (1_000 + 50) * 1_000);
    }

    #[test]
    fn uniform_progress_goes_on_demand_as_soon_as_it_is_behind() {
        let mut rule = UniformProgress::default();
        let view = View {
            now_s: 100,
            left_s: 1_000,
            on: On::Nothing,
            owed_s: 0,
            up: &[false],
            step_s: 100,
            terms: &TERMS,
        };
        assert_eq!(rule.choose(&view), Action::OnDemand);
        assert_eq!(rule.choose(&View { left_s: 900, ..view }), Action::Wait);
        assert_eq!(rule.choose(&View { up: &[true], ..view }), Action::Spot(0));
    }

    #[test]
    fn uniform_progress_leaves_on_demand_only_when_ahead_by_two_overheads() {
        let mut rule = UniformProgress::default();
        let view = View {
            now_s: 1_000,
            left_s: 500,
            on: On::Demand,
            owed_s: 0,
            up: &[true],
            step_s: 100,
            terms: &TERMS,
        };
        assert_eq!(rule.choose(&view), Action::OnDemand);
        assert_eq!(rule.choose(&View { left_s: 450, ..view }), Action::Spot(0));
    }
}
