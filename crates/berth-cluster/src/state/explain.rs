//! Reasons of the core in the terms of Kubernetes.
//!
//! The core knows nodes by labels, less what pods of other schedulers take, and knows a job that
//! waits for the state here as one on hold. What it says of these is true of its own books only, so
//! people read what is true of the cluster instead.

use super::ClusterState;
use crate::constraints::dynamic::Infeasible;
use crate::view::GangKey;
use berth_engine::Core;
use berth_model::{GroupSpec, JobId, Milli, Name, Reason, RuledOut, Time};

/// A gang that is no job yet, because pods of it do not exist.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct IncompleteGang {
    pub namespace: Name,
    pub name: Name,
    pub queue: Name,
    pub since: Time,
    pub pods: u32,
    pub needed: u32,
}

impl IncompleteGang {
    pub fn reason(&self) -> Reason {
        let IncompleteGang { name, pods, needed, .. } = self;
        Reason::GangIncomplete { gang: name.clone(), pods: *pods, needed: *needed }
    }
}

impl ClusterState {
    /// The reasons of a job as people read them. `job` is nothing for one that is not submitted yet.
    pub fn refine(
        &self,
        core: &Core,
        job: Option<JobId>,
        groups: &[GroupSpec],
        reasons: Vec<Reason>,
    ) -> Vec<Reason> {
        let mut refined: Vec<Reason> = Vec::with_capacity(reasons.len());
        for reason in reasons {
            let reason = match (reason, job) {
                (Reason::Held, Some(job)) => self.held_reason(core, job),
                // Others that have rules about it go first.
                (Reason::Next, Some(job)) if core.state.waits_turn(job) => {
                    Infeasible::TakesTurns.reason()
                }
                (reason, _) => self.in_all_reason(groups, reason),
            };
            if !refined.contains(&reason) {
                refined.push(reason);
            }
        }
        refined
    }

    /// Why a job is held: by a user, or by the state here.
    fn held_reason(&self, core: &Core, job: JobId) -> Reason {
        let Some(live) = core.jobs.get(&job).filter(|live| !live.detail.held) else {
            return Reason::Held;
        };
        if let Some(at) = live.detail.again_at {
            return Reason::PodsWait {
                why: format!("{}; it is tried again at {at}", live.row.reason),
            };
        }
        if let Some(incomplete) = self.incomplete_job(job) {
            return incomplete;
        }
        let constrained = self.constrained_jobs.waiting.get(&job);
        match constrained.filter(|constrained| constrained.since.is_none()) {
            Some(constrained) => match &constrained.why {
                Some(why) => why.reason(),
                None => Reason::PodsWait {
                    why:
                        "Berth is about to look for nodes that suit its rules about other pods, or \
                          its volumes"
                            .to_owned(),
                },
            },
            None => Reason::Held,
        }
    }

    /// Pods of a job that are gone and were not made anew.
    fn incomplete_job(&self, job: JobId) -> Option<Reason> {
        let tasks = self.jobs.get(&job).filter(|tasks| !tasks.is_whole())?;
        // Its pods come when it has its place.
        if self.is_held_by_us(&tasks.gang) {
            return None;
        }
        let there =
            tasks.pods.iter().zip(&tasks.done).filter(|(pod, done)| **done || pod.is_some());
        let (pods, needed) = (there.count() as u32, tasks.pods.len() as u32);
        if needed == 1 {
            let why = "its pod is gone; it goes on when its controller has made another one";
            return Some(Reason::PodsWait { why: why.to_owned() });
        }
        Some(Reason::GangIncomplete { gang: gang_name(&tasks.gang), pods, needed })
    }

    fn in_all_reason(&self, groups: &[GroupSpec], reason: Reason) -> Reason {
        match reason {
            Reason::NoLabel { .. } | Reason::Tainted { .. } => {
                self.ruled_out(groups).unwrap_or(reason)
            }
            Reason::TooLargeCpu { asks, .. } => {
                let enough = self
                    .enough(groups, |view, group| view.spec.cpu.is_none_or(|cpu| cpu >= group.cpu));
                held_by_others("CPU cores", asks.to_string(), enough).unwrap_or(reason)
            }
            Reason::TooLargeMemory { asks, .. } => {
                let enough = self.enough(groups, |view, group| {
                    view.spec.memory.is_none_or(|memory| memory >= group.memory)
                });
                held_by_others("of memory", asks.to_string(), enough).unwrap_or(reason)
            }
            Reason::TooLargeCounted { ref resource, .. }
            | Reason::NoFitCounted { ref resource, .. }
                if self.nodes.is_port(resource) =>
            {
                self.port_in_use(groups, resource)
            }
            Reason::TooLargeCounted { ref resource, asks, .. } => {
                let enough =
                    self.enough(groups, |view, _| self.nodes.in_all(view, resource) >= asks);
                held_by_others(resource, asks.to_string(), enough).unwrap_or(reason)
            }
            Reason::TooLarge { asks, tasks, .. } => {
                self.held_as_a_whole(groups, asks, tasks).unwrap_or(reason)
            }
            reason => reason,
        }
    }

    /// How many nodes each condition of the first group that has no node rules out.
    fn ruled_out(&self, groups: &[GroupSpec]) -> Option<Reason> {
        groups.iter().flat_map(GroupSpec::leaves).find_map(|group| {
            let suits = self.nodes.suits(group);
            let nodes = suits.ruled_out.iter().map(|cause| cause.nodes).sum();
            let causes = suits.ruled_out;
            (suits.nodes.is_empty() && nodes > 0).then_some(Reason::NodesRuledOut { nodes, causes })
        })
    }

    /// A port or a disk that is in use on every node that would do.
    fn port_in_use(&self, groups: &[GroupSpec], resource: &Name) -> Reason {
        let mut leaves = groups.iter().flat_map(GroupSpec::leaves);
        let group = leaves.find(|group| group.counted.contains_key(resource));
        let mut causes = Vec::new();
        if let Some(group) = group {
            let suits = self.nodes.suits(group);
            causes = suits.ruled_out;
            if !suits.nodes.is_empty() {
                let why = format!("where the {resource} is in use");
                let nodes = suits.nodes.len() as u32;
                causes.insert(0, RuledOut { nodes, why, passes: true });
            }
        }
        let nodes = causes.iter().map(|cause| cause.nodes).sum();
        Reason::NodesRuledOut { nodes, causes }
    }

    /// How many nodes that would do have enough in all.
    fn enough(
        &self,
        groups: &[GroupSpec],
        has: impl Fn(&crate::view::NodeView, &GroupSpec) -> bool,
    ) -> u32 {
        let leaves = groups.iter().flat_map(GroupSpec::leaves);
        let nodes = leaves.map(|group| {
            let suits = self.nodes.suits(group);
            suits.nodes.into_iter().filter(|view| has(view, group)).count() as u32
        });
        nodes.min().unwrap_or(0)
    }

    /// Where the nodes would have room for all of it, were pods of other schedulers not there.
    fn held_as_a_whole(&self, groups: &[GroupSpec], asks: Milli, tasks: u32) -> Option<Reason> {
        let mut nodes = 0;
        for group in groups.iter().flat_map(GroupSpec::leaves) {
            let suits = self.nodes.suits(group);
            let rooms = suits.nodes.iter().map(|view| self.nodes.room_in_all(view, group));
            let rooms: Vec<u32> = rooms.filter(|room| *room > 0).collect();
            let room = rooms.iter().fold(0_u32, |sum, room| sum.saturating_add(*room));
            if room < group.min.min(tasks) {
                return None;
            }
            nodes = nodes.max(rooms.len() as u32);
        }
        match asks {
            Milli(0) => held_by_others("task slots", tasks.to_string(), nodes),
            asks => held_by_others("GPUs", asks.to_string(), nodes),
        }
    }
}

fn held_by_others(resource: &str, asks: String, nodes: u32) -> Option<Reason> {
    let resource = Name::new(resource);
    (nodes > 0).then_some(Reason::HeldByOthers { resource, asks, nodes })
}

/// What a gang is called: its key also has the kind and the uid of what makes it.
pub fn gang_name(key: &GangKey) -> Name {
    let mut parts = key.name.splitn(2, '/');
    let (_, rest) = (parts.next(), parts.next().unwrap_or_default());
    Name::new(rest.rsplit_once('/').map_or(rest, |(name, _)| name))
}
