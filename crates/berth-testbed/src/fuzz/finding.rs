//! What is wrong with a run.

use super::world::Key;
use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum What {
    /// A pod is where a required constraint forbids it, or a node has more than it can hold.
    BrokenConstraint,
    /// Some pods of a gang have a node and others have none.
    PartialGang,
    /// A pod has no node although one would take it now.
    LeftWaiting,
    /// The same for all pods of a gang.
    GangLeftWaiting,
    /// A pod has no node although pods of lower priorities could make room on one.
    LeftWithoutPreempting,
    /// A pod was stopped for none of a higher priority.
    VictimOfNone,
    /// A pod was stopped, and there is still room for it.
    NeedlessVictim,
    /// More pods were stopped than kube-scheduler stopped for the same pod.
    MoreVictims,
    /// A budget was violated although there was a set of victims that violates none.
    BudgetViolated,
    /// The run did not come to rest.
    Restless,
    /// Berth has logged an error.
    Error,
}

#[derive(Debug, Clone)]
pub struct Finding {
    pub what: What,
    /// The pod or gang that it is about.
    pub about: Key,
    pub text: String,
    /// The line of the known limits that explains it.
    pub explained_by: Option<&'static str>,
}

impl Finding {
    pub fn new(what: What, about: &Key, text: String) -> Finding {
        Finding { what, about: about.clone(), text, explained_by: None }
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:?}: {}: {}", self.what, self.about, self.text)?;
        match self.explained_by {
            Some(line) => write!(out, " [explained: {line}]"),
            None => Ok(()),
        }
    }
}
