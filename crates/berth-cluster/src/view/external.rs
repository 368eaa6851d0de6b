//! Queues that the objects of other schedulers describe.

use berth_kube::event::About;
use berth_model::QueueSpec;
use std::collections::BTreeSet;

/// What an object of another scheduler is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Foreign {
    KaiQueue,
    VolcanoQueue,
    ClusterQueue,
    LocalQueue,
    Cohort,
    ResourceFlavor,
    WorkloadPriorityClass,
    PriorityClass,
    Topology,
    HyperNode,
}

impl Foreign {
    /// The kinds that describe queues, as the store knows them.
    const WORDS: [(Foreign, &str); 4] = [
        (Foreign::KaiQueue, "kai"),
        (Foreign::VolcanoQueue, "volcano"),
        (Foreign::ClusterQueue, "kueue"),
        (Foreign::Cohort, "kueue-cohort"),
    ];

    pub fn of_word(word: &str) -> Option<Foreign> {
        Foreign::WORDS.iter().find(|(_, known)| *known == word).map(|(what, _)| *what)
    }

    pub fn word(self) -> &'static str {
        let known = Foreign::WORDS.iter().find(|(what, _)| *what == self);
        known.expect("it describes queues").1
    }

    /// Whether queues depend on it.
    pub const fn is_queue(self) -> bool {
        match self {
            Foreign::KaiQueue
            | Foreign::VolcanoQueue
            | Foreign::ClusterQueue
            | Foreign::Cohort
            | Foreign::ResourceFlavor => true,
            Foreign::LocalQueue
            | Foreign::WorkloadPriorityClass
            | Foreign::PriorityClass
            | Foreign::Topology
            | Foreign::HyperNode => false,
        }
    }
}

/// A queue of another scheduler.
#[derive(Debug, Clone)]
pub struct Described {
    pub spec: QueueSpec,
    /// The kind of what describes it.
    pub what: Foreign,
    /// The object that does, if it has one of its own.
    pub about: Option<About>,
}

/// The queues of other schedulers.
#[derive(Debug, Default)]
pub struct Queues {
    /// Each after the one above it.
    pub all: Vec<Described>,
    /// The kinds of which these are all.
    pub listed: BTreeSet<Foreign>,
}
