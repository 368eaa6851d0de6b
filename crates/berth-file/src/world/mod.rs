//! World files: everything a plan depends on as text, and back.
//!
//! The names of the keys are a contract; `docs/world-file.md` lists them all. [`World::parse`]
//! reads YAML and JSON alike, [`write`] and [`write_json`] write what reads back as the same
//! snapshot. A world that makes no sense is refused with the line and what was expected.

mod allocations;
mod classes;
mod events;
mod expect;
mod groups;
mod jobs;
mod nodes;
pub(crate) mod policy;
pub(crate) mod pools;
pub(crate) mod queues;
mod read;
mod refs;
mod runs;
mod runs_out;
mod topology;
pub(crate) mod words;
mod write;

#[cfg(test)]
mod tests;

pub use crate::error::{Error, Position};
pub use classes::default_classes;
pub(crate) use classes::read_classes;
pub use events::{Action, ScriptedEvent};
pub use expect::{AmountRange, Check, Costs, Expectation, OfJob, When};
pub use jobs::JobScript;
pub use refs::JobNames;
pub use write::{write, write_json, write_world};

use berth_model::{JobId, Name, PriorityClass, Snapshot, Span, Time};
use std::collections::BTreeMap;

/// Reads worlds.
pub struct World;

impl World {
    pub fn parse(text: &str) -> Result<Loaded, Error> {
        read::read(text)
    }
}

/// A world as read: the snapshot, and what a scenario adds to it.
#[derive(Debug, Clone)]
pub struct Loaded {
    /// What the world shows, in words.
    pub name: Option<String>,
    pub snapshot: Snapshot,
    /// By time, and in the order of the file among equal times.
    pub events: Vec<ScriptedEvent>,
    pub expect: Vec<Expectation>,
    /// What the planner must not see, by job; an array's script is that of its elements.
    pub scripts: BTreeMap<JobId, JobScript>,
    pub driver: DriverScript,
    /// Jobs of the world and of its events, by name.
    pub names: JobNames,
    pub lines: Lines,
}

/// How a scenario's machines behave.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DriverScript {
    /// From a decision to stop until the task has stopped; left out: its whole grace.
    pub stop_after: Option<Span>,
    /// From a decision to start until the task runs.
    pub start_after: Span,
}

/// Where the parts of the snapshot stood in the text.
#[derive(Debug, Clone, Default)]
pub struct Lines(BTreeMap<String, Position>);

impl Lines {
    pub(crate) fn note(&mut self, path: String, at: Position) {
        self.0.insert(path, at);
    }

    /// The place of a path such as `jobs[3].leases[1]`, or of the nearest part around it.
    pub fn find(&self, path: &str) -> Option<Position> {
        let mut path = path;
        loop {
            if let Some(at) = self.0.get(path) {
                return Some(*at);
            }
            path = &path[..path.rfind(['.', '['])?];
        }
    }
}

/// What every part of a world is read and written against.
pub(crate) struct Context {
    pub now: Time,
    pub classes: BTreeMap<Name, PriorityClass>,
    /// The policy's, which is also the most a job may ask for.
    pub grace: Span,
}
