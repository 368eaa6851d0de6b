//! What a user asks for.

use crate::{Bytes, Cpu, GpuAsk, JobId, Lifecycle, Milli, Name, Span, Time};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};

/// A job as submitted. Its groups are started all together or not at all.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobSpec {
    pub id: JobId,
    pub name: Name,
    pub queue: Name,
    pub user: Name,
    pub project: Name,
    pub experiment: Name,
    pub labels: BTreeMap<Name, Name>,
    /// Larger goes first; the value of a priority class or a number of its own.
    pub priority: i32,
    pub preemptible: bool,
    /// `None`: any.
    pub lifecycle: Option<Lifecycle>,
    pub submitted: Time,
    pub time_limit: Option<Span>,
    pub deadline: Option<Time>,
    pub restart_cost: Option<Span>,
    pub grace: Option<Span>,
    pub min_runtime: Option<Span>,
    pub preempt_after: Option<Span>,
    pub array: Option<ArraySpec>,
    pub after: Vec<Dependency>,
    /// At most one job of this user and name runs at a time.
    pub singleton: bool,
    pub begin: Option<Time>,
    pub hold: bool,
    pub groups: Vec<GroupSpec>,
    /// The versions of data that its tasks read, as nodes that keep them name them.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub data: BTreeSet<Name>,
}

/// The elements of an array job, and how many may run at once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ArraySpec {
    pub elements: Vec<u32>,
    pub at_most: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum After {
    /// Ended well.
    Ok,
    /// Ended in any way.
    Any,
    /// Ended badly.
    NotOk,
    /// Started.
    Start,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub enum JobRef {
    Id(JobId),
    Name(Name),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Dependency {
    pub after: After,
    pub job: JobRef,
}

/// How a job ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Outcome {
    Done,
    Failed,
    Cancelled,
}

/// A group of like tasks, or of groups: exactly one of `count` tasks and `groups` is there.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct GroupSpec {
    pub name: Name,
    pub count: u32,
    /// Tasks (or, of a group of groups, children) without which it does not start.
    pub min: u32,
    pub groups: Vec<GroupSpec>,
    pub gpus: GpuAsk,
    /// Acceptable models, best first; empty: any.
    pub models: Vec<ModelAsk>,
    pub min_gpu_memory: Option<Bytes>,
    pub cpu: Cpu,
    pub memory: Bytes,
    pub topology: Option<TopologyAsk>,
    pub spread: Option<Spread>,
    pub labels: LabelAsk,
    pub tolerations: Vec<Toleration>,
    pub near: Vec<Near>,
    /// What each task takes of what a node counts, by name.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub counted: BTreeMap<Name, i64>,
    /// Nodes by name, where somebody else knows on which it may lie.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nodes: Option<NodeAsk>,
}

impl GroupSpec {
    pub fn is_leaf(&self) -> bool {
        self.groups.is_empty()
    }

    /// The leaf group, among these and below them, that a task belongs to.
    pub fn of_task(groups: &[GroupSpec], task: u32) -> Option<&GroupSpec> {
        fn find<'a>(groups: &'a [GroupSpec], left: &mut u32) -> Option<&'a GroupSpec> {
            for group in groups {
                match group.is_leaf() {
                    true if *left < group.count => return Some(group),
                    true => *left -= group.count,
                    false => match find(&group.groups, left) {
                        None => {}
                        found => return found,
                    },
                }
            }
            None
        }
        find(groups, &mut task.clone())
    }

    /// The leaf groups below this one, in order.
    pub fn leaves(&self) -> Vec<&GroupSpec> {
        if self.is_leaf() {
            return vec![self];
        }
        self.groups.iter().flat_map(GroupSpec::leaves).collect()
    }
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ModelAsk {
    pub model: Name,
    /// Speed relative to the first choice, in thousandths.
    pub speed: Milli,
}

/// Where the tasks of a group must or should be together. Levels are label keys of a topology,
/// or `node` or `nvlink`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct TopologyAsk {
    /// Which named topology; `None`: the default one.
    pub within: Option<Name>,
    pub required: Option<Name>,
    pub preferred: Option<Name>,
    pub segment: Option<Segment>,
}

/// Tasks are placed in blocks of `size`, each block inside one domain of the level.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Segment {
    pub size: u32,
    pub within: Name,
}

/// At most so many tasks of the group in one domain of the level.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Spread {
    pub over: Name,
    pub at_most: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct LabelAsk {
    pub need: BTreeMap<Name, Name>,
    pub prefer: BTreeMap<Name, Name>,
    /// What each preferred label is worth, by its key: a node is the better the more it has. Where
    /// none is said, nodes that have all of them come before all others.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub weights: BTreeMap<Name, i32>,
}

/// Nodes by name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct NodeAsk {
    /// One of these; `None`: any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub only: Option<BTreeSet<Name>>,
    /// None of these.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub never: BTreeSet<Name>,
    /// One of these where all of the group find room there.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub prefer: BTreeSet<Name>,
}

impl NodeAsk {
    pub fn admits(&self, node: &str) -> bool {
        self.only.as_ref().is_none_or(|only| only.contains(node)) && !self.never.contains(node)
    }
}

/// Tolerates taints with this key; with a value only those that have it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Toleration {
    pub key: Name,
    pub value: Option<Name>,
}

/// Must lie in (or, with `away`, outside) the domains where the named jobs run.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Near {
    pub target: JobTarget,
    pub within: Name,
    pub away: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum JobTarget {
    Name(Name),
    Label { key: Name, value: Name },
}
