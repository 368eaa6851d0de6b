//! What happened to each job of a run, whichever scheduler ran it.
//!
//! Policies are compared by outcomes alone, so a policy cannot flatter itself: all figures are
//! worked out from these by one piece of code ([`crate::metrics`]).

use berth_model::{Micros, Milli, Span, Time};
use serde::{Deserialize, Serialize};

/// GPUs of a job by node. Most jobs are on one node, and need no list.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub enum Place {
    /// Where it moved freely, so that nobody kept a record.
    #[default]
    Anywhere,
    One(u32, u32),
    Many(Box<[(u32, u32)]>),
}

impl Place {
    /// Nodes, each with how many of its GPUs.
    pub fn parts(&self) -> impl Iterator<Item = (u32, u32)> + '_ {
        let (one, many) = match self {
            Place::Anywhere => (None, [].as_slice()),
            Place::One(node, gpus) => (Some((*node, *gpus)), [].as_slice()),
            Place::Many(parts) => (None, &**parts),
        };
        one.into_iter().chain(many.iter().copied())
    }
}

/// A stretch of time in which a job held its GPUs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Segment {
    pub from: Time,
    pub to: Time,
    /// At its beginning: loading what was saved before, which is no progress.
    pub restart: Span,
    /// At its end: work after the last checkpoint, which has to be done again.
    pub lost: Span,
    /// In between: saving checkpoints while nothing else happens.
    pub saving: Span,
    pub place: Place,
}

impl Segment {
    /// A stretch in which all time was progress.
    pub fn new(from: Time, to: Time) -> Segment {
        let (restart, lost, saving) = (Span::ZERO, Span::ZERO, Span::ZERO);
        Segment { from, to, restart, lost, saving, place: Place::Anywhere }
    }

    pub fn length(&self) -> Span {
        self.to - self.from
    }

    /// Time that did not bring the job nearer its end. A stop during the restart loses that only.
    pub fn wasted(&self) -> Span {
        (self.restart + self.lost + self.saving).min(self.length())
    }
}

/// What happened to one job.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outcome {
    /// Its place in the list the scheduler was given.
    pub job: u32,
    pub submit: Time,
    /// How long it has to run, without restarts.
    pub duration: Span,
    pub gpus: Milli,
    /// Its team's place in the list of teams.
    pub team: u32,
    /// When it was done; nothing if it never was.
    pub end: Option<Time>,
    /// When it ran, in order of time.
    pub segments: Vec<Segment>,
    /// How often it was stopped for others.
    pub preemptions: u32,
    /// How often a machine failed or left under it.
    pub interruptions: u32,
}

/// GPUs of a node that were out of order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Outage {
    pub node: u32,
    pub gpus: u32,
    pub from: Time,
    pub to: Time,
}

/// A machine that was bought for a time. Its number follows those of the fleet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bought {
    pub gpus: u32,
    /// The place of its model in the fleet's list.
    pub model: u32,
    pub spot: bool,
    /// Dollars an hour, the whole machine.
    pub price: Micros,
    /// Paid from then on.
    pub from: Time,
    /// From when it took work.
    pub ready: Time,
    pub to: Time,
}

/// What happened in a run: to jobs, and to machines.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Timeline {
    /// One for each job of the workload, in its order.
    pub outcomes: Vec<Outcome>,
    pub outages: Vec<Outage>,
    pub bought: Vec<Bought>,
}

impl Outcome {
    pub fn first_start(&self) -> Option<Time> {
        self.segments.first().map(|segment| segment.from)
    }

    /// From submission to the end.
    pub fn completion(&self) -> Option<Span> {
        self.end.map(|end| end - self.submit)
    }

    /// Time between submission and end in which it did not run. For a job that is never stopped
    /// this is the time to its start; for one that is, pauses count too, so that a policy gains
    /// nothing by starting jobs only to stop them.
    pub fn wait(&self) -> Option<Span> {
        self.completion().map(|all| all - self.ran())
    }

    pub fn wait_for_first_start(&self) -> Option<Span> {
        self.first_start().map(|start| start - self.submit)
    }

    pub fn ran(&self) -> Span {
        self.segments.iter().map(Segment::length).sum()
    }

    /// Restarts and work done twice.
    pub fn wasted(&self) -> Span {
        self.segments.iter().map(Segment::wasted).sum()
    }

    pub fn size(&self) -> SizeClass {
        SizeClass::of(self.gpus)
    }
}

/// Jobs by how many GPUs they need: a policy can look good in the mean by starving the large ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum SizeClass {
    /// One GPU or a part of one.
    #[serde(rename = "1")]
    One,
    #[serde(rename = "2-4")]
    TwoToFour,
    #[serde(rename = "5-8")]
    FiveToEight,
    #[serde(rename = ">8")]
    AboveEight,
}

impl SizeClass {
    pub const ALL: [SizeClass; 4] =
        [SizeClass::One, SizeClass::TwoToFour, SizeClass::FiveToEight, SizeClass::AboveEight];

    pub fn of(gpus: Milli) -> SizeClass {
        match gpus.0 {
            ..=1_000 => SizeClass::One,
            1_001..=4_000 => SizeClass::TwoToFour,
            4_001..=8_000 => SizeClass::FiveToEight,
            _ => SizeClass::AboveEight,
        }
    }

    pub fn word(self) -> &'static str {
        match self {
            SizeClass::One => "1",
            SizeClass::TwoToFour => "2-4",
            SizeClass::FiveToEight => "5-8",
            SizeClass::AboveEight => ">8",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn segment(from: i64, to: i64) -> Segment {
        Segment::new(Time(from), Time(to))
    }

    fn outcome(segments: Vec<Segment>) -> Outcome {
        Outcome {
            job: 0,
            submit: Time(0),
            duration: Span(30),
            gpus: Milli::ONE,
            team: 0,
            end: segments.last().map(|last| last.to),
            segments,
            preemptions: 0,
            interruptions: 0,
        }
    }

    #[test]
    fn pauses_count_as_waiting_and_the_first_start_does_not_hide_them() {
        let paused = outcome(vec![segment(5, 15), segment(40, 60)]);
        assert_eq!(paused.wait(), Some(Span(30)));
        assert_eq!(paused.wait_for_first_start(), Some(Span(5)));
        assert_eq!(paused.completion(), Some(Span(60)));
    }

    #[test]
    fn a_job_that_never_ran_has_no_wait_rather_than_a_short_one() {
        let waiting = outcome(Vec::new());
        assert_eq!((waiting.wait(), waiting.wait_for_first_start()), (None, None));
    }

    #[test]
    fn no_more_is_wasted_than_was_run() {
        let cut_short = Segment { restart: Span(20), ..segment(0, 10) };
        assert_eq!(outcome(vec![cut_short]).wasted(), Span(10));
    }

    #[test]
    fn size_classes_meet_without_gaps() {
        let of = |milli| SizeClass::of(Milli(milli)).word();
        assert_eq!([of(460), of(1_000), of(2_000), of(4_000)], ["1", "1", "2-4", "2-4"]);
        assert_eq!([of(5_000), of(8_000), of(9_000)], ["5-8", "5-8", ">8"]);
    }
}
