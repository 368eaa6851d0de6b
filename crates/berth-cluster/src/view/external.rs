//! Queues that the objects of other schedulers describe.

use berth_kube::event::ObjectReference;
use berth_model::QueueSpec;
use std::collections::BTreeSet;

/// What an object of another scheduler is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ExternalKind {
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

impl ExternalKind {
    /// The kinds that describe queues, as the store knows them.
    const WORDS: [(ExternalKind, &str); 4] = [
        (ExternalKind::KaiQueue, "kai"),
        (ExternalKind::VolcanoQueue, "volcano"),
        (ExternalKind::ClusterQueue, "kueue"),
        (ExternalKind::Cohort, "kueue-cohort"),
    ];

    pub fn of_word(word: &str) -> Option<ExternalKind> {
        ExternalKind::WORDS.iter().find(|(_, known)| *known == word).map(|(what, _)| *what)
    }

    pub fn word(self) -> &'static str {
        let known = ExternalKind::WORDS.iter().find(|(what, _)| *what == self);
        known.expect("it describes queues").1
    }

    /// Whether queues depend on it.
    pub const fn is_queue(self) -> bool {
        match self {
            ExternalKind::KaiQueue
            | ExternalKind::VolcanoQueue
            | ExternalKind::ClusterQueue
            | ExternalKind::Cohort
            | ExternalKind::ResourceFlavor => true,
            ExternalKind::LocalQueue
            | ExternalKind::WorkloadPriorityClass
            | ExternalKind::PriorityClass
            | ExternalKind::Topology
            | ExternalKind::HyperNode => false,
        }
    }
}

/// A queue of another scheduler.
#[derive(Debug, Clone)]
pub struct ExternalQueue {
    pub spec: QueueSpec,
    /// The kind of what describes it.
    pub what: ExternalKind,
    /// The object that does, if it has one of its own.
    pub about: Option<ObjectReference>,
}

/// The queues of other schedulers.
#[derive(Debug, Default)]
pub struct ExternalQueues {
    /// Each after the one above it.
    pub all: Vec<ExternalQueue>,
    /// The kinds of which these are all.
    pub listed: BTreeSet<ExternalKind>,
}
