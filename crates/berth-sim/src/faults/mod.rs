//! Fault mode: the loop of production on a small made-up world in which reports are lost, late,
//! doubled and out of order, machines die and come back, and the scheduler crashes between any two
//! steps and goes on from its log.
//!
//! Everything follows from a seed. What is checked is checked from the log alone, by an auditor
//! that shares nothing with planner or core.

mod auditor;
mod bounds;
mod case;
mod claims;
mod inject;
mod lines;
mod machines;
mod money;
mod places;
mod play;
mod seam;
mod shares;
mod shrink;
mod work;
mod world;

pub use case::{Case, Size};
pub use seam::{Honest, Record, Seam};
pub use shrink::shrink;

use berth_model::Time;
use serde::Serialize;
use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What kind of promise was broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Class {
    /// A part of a GPU was held twice at once.
    DoubleLease,
    /// A gang ran below its minimum for longer than it may.
    HalfGang,
    /// A submitted job is neither waiting nor running nor ended, or it is two of them.
    LostJob,
    /// Rows do not sum to price times time.
    Money,
    /// A task was started where nothing may start.
    ClosedNode,
    /// A task was started while it ran already.
    TwiceAtOnce,
    /// A task lies where it must not: on a machine it did not ask for, or apart from its group.
    Place,
    /// A job was started before its turn.
    Order,
    /// A queue went beyond its limit, or on after its budget was spent.
    Bound,
    /// A machine was bought or given back that should not have been, or is lost track of.
    Claims,
    /// A state rebuilt from the log differs from the one that was lost.
    Replay,
    /// The same seed went two ways.
    NonDeterminism,
    /// The scheduler panicked.
    Panic,
    /// The planner's decisions were refused by the check or by the state.
    Refused,
    /// The plans of one moment did not come to an end, or jobs wait beside machines that are free.
    Stuck,
}

/// The first promise that was broken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    pub class: Class,
    pub at: Time,
    pub text: String,
}

/// What is wrong with the log, before it is known when.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text}")]
struct Finding {
    class: Class,
    text: String,
}

impl Finding {
    fn at(self, at: Time) -> Violation {
        Violation { class: self.class, at, text: self.text }
    }
}

/// How one seed went.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Verdict {
    pub seed: u64,
    pub size: Size,
    /// Of everything that went through the log, with its cost rows.
    pub hash: u64,
    pub events: usize,
    pub starts: usize,
    pub crashes: usize,
    /// Reports that were lost, late or doubled, and what befell nodes, GPUs and jobs.
    pub faults: usize,
    pub ended: usize,
    pub broken: Option<Violation>,
    /// The log as readable lines; empty where nothing broke, unless it was asked for.
    pub log: Vec<String>,
}

impl Verdict {
    pub fn passed(&self) -> bool {
        self.broken.is_none()
    }

    /// The command that plays this seed again.
    pub fn command(&self) -> String {
        format!("berth sim faults --seed {} --size {}", self.seed, self.size)
    }
}

/// Plays the world of a seed twice.
pub fn run(seed: u64, size: Size) -> Verdict {
    judge(&Case::new(seed, size), &mut || Honest)
}

/// The same with the log, whether anything broke or not.
pub fn run_with_log(seed: u64, size: Size) -> Verdict {
    let verdict = run(seed, size);
    if !verdict.log.is_empty() {
        return verdict;
    }
    let case = Case::new(seed, size);
    let played = play::play(&case, Honest);
    let log = played.records.iter().map(|record| lines::line(record, case.start)).collect();
    Verdict { log, ..verdict }
}

/// Plays a case twice, with something between core and world, and compares the two.
pub fn judge<S: Seam>(case: &Case, seam: &mut dyn FnMut() -> S) -> Verdict {
    let first = match catch_unwind(AssertUnwindSafe(|| play::play(case, seam()))) {
        Ok(first) => first,
        Err(panic) => return panicked(case, &*panic),
    };
    if first.broken.is_some() {
        return first.verdict(case);
    }
    let second = play::play(case, seam());
    let same = first.hash == second.hash && second.broken.is_none();
    if same { first.verdict(case) } else { differing(case, &first, &second) }
}

/// What can be told of a run that panicked: the log went with it.
fn panicked(case: &Case, panic: &(dyn Any + Send)) -> Verdict {
    let message = panic.downcast_ref::<String>().map(String::as_str);
    let message = message.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("a panic");
    let broken = Violation { class: Class::Panic, at: case.start, text: message.to_owned() };
    let (events, starts, crashes, faults, ended) = (0, 0, 0, 0, 0);
    Verdict {
        seed: case.seed,
        size: case.size,
        hash: 0,
        events,
        starts,
        crashes,
        faults,
        ended,
        broken: Some(broken),
        log: vec![format!("{case:#?}")],
    }
}

fn differing(case: &Case, first: &play::Played, second: &play::Played) -> Verdict {
    let pairs = first.records.iter().zip(&second.records);
    let same = pairs.take_while(|(one, other)| one == other).count();
    let line = |played: &play::Played| {
        let record = played.records.get(same);
        record.map_or("the end of the log".to_owned(), |record| lines::line(record, case.start))
    };
    let at = first.records.get(same).map_or(case.start, |record| record.stamped.at);
    let text = format!(
        "the second run differs after {same} events: {} against {}",
        line(second),
        line(first)
    );
    let mut verdict = first.verdict(case);
    verdict.broken = Some(Violation { class: Class::NonDeterminism, at, text });
    let upto = first.records.iter().take(same + 1);
    verdict.log = upto.map(|record| lines::line(record, case.start)).collect();
    verdict
}
