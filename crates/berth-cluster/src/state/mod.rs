//! What is known of the cluster, and which pod is which task of a job. Observations become events
//! of the core; decisions of the core become orders about pods.
//!
//! The state does no I/O and knows no channel: it collects orders in a list that the site takes. It
//! chooses nothing itself. It is changed only inside a turn of the loop or when the loop hands out
//! decisions, so it is never ahead of the core or behind it.

mod act;
mod adopt;
mod budgets;
mod claims;
pub mod device_claims;
mod explain;
mod external;
mod fractions;
mod gang_annotations;
mod gangs;
mod incomplete;
mod initial;
mod managed;
mod measured;
pub mod nodes;
pub mod observation;
mod offers;
pub mod orders;
pub mod pod_orders;
mod rejoin;
mod release;
mod replacements;
pub mod shares;
mod submission;
mod suspended;
mod tasks;
pub mod time_limits;
pub mod topology;

pub use act::Explanation;
pub use initial::InitialObjects;
use managed::ManagedPods;
use pod_orders::PodOrder;
use tasks::{Stage, Tasks, lease_of};

use crate::constraints::dynamic::{ConstrainedJobs, PodQuery};
use crate::constraints::predicates::PredicateRefs;
use crate::state::device_claims::Claims;
use crate::state::nodes::{Nodes, Taken};
use crate::state::orders::{ApiOrder, BindPermit, OrderOutcome};
use crate::state::shares::SharedGpus;
use crate::tenancy::ownership::QueueOwnership;
use crate::view::{GangKey, NodePredicate, NodeView, PodView, SchedulingRequest};
use berth_engine::{Core, Turn};
use berth_kube::{Change, WatchUpdate};
use berth_model::{GroupSpec, JobId, LeaseId, Name, Time};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub(super) type Uid = String;

pub struct ClusterState {
    /// Orders that were not taken yet.
    orders: Vec<ApiOrder>,
    /// The queue of pods that name none.
    pub(super) queue: Name,
    pub(super) nodes: Nodes,
    pub(super) pods: BTreeMap<Uid, Pod>,
    pub(super) gangs: BTreeMap<GangKey, Gang>,
    pub(super) jobs: BTreeMap<JobId, Tasks>,
    /// Bindings that are under way.
    pub(super) binds: BTreeMap<LeaseId, BindPermit>,
    /// Gangs that the core would not have, and why.
    refused: BTreeMap<GangKey, gang_annotations::Refusal>,
    /// Queues that other schedulers have described.
    queue_ownership: QueueOwnership,
    /// Jobs that are held back until they have got their place.
    held: BTreeMap<GangKey, suspended::HeldJob>,
    held_by: BTreeMap<Uid, GangKey>,
    /// The gangs that are jobs, by who makes their pods.
    owners: BTreeMap<Uid, GangKey>,
    pub(super) constrained_jobs: ConstrainedJobs,
    /// Queries that pending jobs were not checked against yet.
    pub(super) new_queries: Vec<PodQuery>,
    managed: ManagedPods,
    shares: SharedGpus,
    pub(super) claims: Claims,
    /// Those that wait because of a claim.
    without_claims: BTreeSet<GangKey>,
    pub(super) replacements: replacements::Replacements,
    budgets: budgets::Budgets,
    rejoining: rejoin::Rejoining,
    /// Bindings that are not ordered, because a rule would not hold.
    refused_binds: Vec<OrderOutcome>,
    /// Gangs that miss pods.
    incomplete: BTreeMap<GangKey, incomplete::Incomplete>,
}

/// What is to be done at the API server.
#[derive(Debug, Default)]
pub struct Orders {
    pub api: Vec<ApiOrder>,
    /// About the pods of managed jobs.
    pub pods: Vec<PodOrder>,
}

pub(super) struct Pod {
    pub(super) view: PodView,
    pub(super) task: Option<(JobId, u32)>,
    /// The task it was before it lost its place.
    was: Option<(JobId, u32)>,
    /// It came when its gang had begun, and is a job of its own.
    is_apart: bool,
    /// Where it is, or will be.
    pub(super) placed: Option<Name>,
    /// What is counted of it on its node, while it is no task.
    counted: Option<(Name, Taken)>,
    /// Why it waits, as it says itself.
    reported_reason: String,
    /// The last event that says so: its key, and when.
    reported_event: Option<(String, Time)>,
    /// The node predicates that it uses.
    predicate_refs: PredicateRefs,
}

/// Pods that belong together.
#[derive(Default)]
pub(super) struct Gang {
    /// Those that are no task of a job yet.
    pub(super) waiting: BTreeSet<Uid>,
    /// The job of the others.
    pub(super) job: Option<JobId>,
    /// It was a job before.
    has_begun: bool,
    /// Those of it that ended well.
    done: BTreeSet<Uid>,
    /// Who makes its pods, where it is a job.
    owner: Option<Uid>,
}

impl Gang {
    /// Whether nothing is known of it any more.
    fn is_empty(&self) -> bool {
        self.job.is_none() && self.waiting.is_empty() && self.done.is_empty()
    }
}

impl ClusterState {
    pub fn new(queue: Name, claims: Claims, queue_ownership: QueueOwnership) -> ClusterState {
        ClusterState {
            orders: Vec::new(),
            queue,
            nodes: Nodes::default(),
            pods: BTreeMap::new(),
            gangs: BTreeMap::new(),
            jobs: BTreeMap::new(),
            binds: BTreeMap::new(),
            refused: BTreeMap::new(),
            queue_ownership,
            held: BTreeMap::new(),
            held_by: BTreeMap::new(),
            owners: BTreeMap::new(),
            constrained_jobs: ConstrainedJobs::default(),
            new_queries: Vec::new(),
            managed: ManagedPods::default(),
            shares: SharedGpus::default(),
            claims,
            without_claims: BTreeSet::new(),
            replacements: replacements::Replacements::default(),
            budgets: budgets::Budgets::default(),
            rejoining: rejoin::Rejoining::default(),
            refused_binds: Vec::new(),
            incomplete: BTreeMap::new(),
        }
    }

    /// Keeps the predicates of the pods that Berth makes for good.
    pub fn keep_predicates(&mut self, rules: &[NodePredicate]) {
        let _for_good = self.nodes.track_predicates(rules, &BTreeMap::new());
    }

    /// Takes in what was seen of nodes.
    pub fn observe_nodes(&mut self, turn: &mut Turn<'_>, seen: WatchUpdate<NodeView>) {
        let failed = rejoin::failed_nodes(&seen);
        match seen {
            WatchUpdate::Snapshot(nodes) => {
                let there: BTreeSet<Name> =
                    nodes.iter().map(|node| node.spec.name.clone()).collect();
                for gone in self.nodes.names().difference(&there) {
                    self.lose_node(turn, gone);
                }
                nodes.into_iter().for_each(|node| self.put_node(node));
            }
            WatchUpdate::Changes(changes) => {
                for change in changes {
                    match change {
                        Change::Applied(node) => self.put_node(node),
                        Change::Deleted(node) => self.lose_node(turn, &node.spec.name),
                    }
                }
            }
        }
        self.nodes.report(turn);
        self.leave_failed_nodes(turn, &failed);
        self.reconsider(turn);
        self.release_waiting(turn);
    }

    /// Takes in what was seen of pods.
    pub fn observe_pods(&mut self, turn: &mut Turn<'_>, seen: WatchUpdate<PodView>) {
        match seen {
            WatchUpdate::Snapshot(pods) => {
                let there: BTreeSet<&Uid> = pods.iter().map(|pod| &pod.at.uid).collect();
                let gone: Vec<Uid> =
                    self.pods.keys().filter(|uid| !there.contains(uid)).cloned().collect();
                drop(there);
                for uid in gone {
                    self.gone(turn, &uid);
                }
                for pod in pods {
                    self.observe_pod(turn, pod);
                }
            }
            WatchUpdate::Changes(changes) => {
                for change in changes {
                    match change {
                        Change::Applied(pod) => self.observe_pod(turn, pod),
                        Change::Deleted(pod) => {
                            // How it ended may be news too.
                            let uid = pod.at.uid.clone();
                            self.observe_pod(turn, pod);
                            self.gone(turn, &uid);
                        }
                    }
                }
            }
        }
        self.nodes.report(turn);
        self.release_waiting(turn);
    }

    fn observe_pod(&mut self, turn: &mut Turn<'_>, view: PodView) {
        let uid = view.at.uid.clone();
        let task = match self.pods.get_mut(&uid) {
            Some(known) => {
                let is_relabelled = known.view.labels != view.labels;
                let before = known.renew(view);
                let task = known.task;
                match task {
                    Some((job, _)) => {
                        self.change(turn, &uid, job, before.as_deref());
                        if is_relabelled {
                            self.relabelled(turn, job);
                        }
                    }
                    None => self.change_gang(&uid, before.as_deref()),
                }
                task
            }
            None => {
                self.pods.insert(uid.clone(), Pod::new(view));
                None
            }
        };
        self.observe_sharing(&uid);
        let is_managed = self.pods[&uid].view.managed.is_some();
        let task = if is_managed { self.identify_managed(turn.core, &uid) } else { task };
        match task {
            Some(_) => {
                if is_managed {
                    self.observe_managed(turn, &uid);
                } else {
                    self.observe_task(turn, &uid);
                }
                self.count_beyond(turn.core, &uid);
            }
            None => {
                self.count(&uid);
                self.observe_former_task(turn, &uid);
                self.observe_unassigned(turn, &uid);
            }
        }
        self.place(turn.core, &uid);
    }

    /// Counts what a pod that is no task takes of its node: the core cannot give that to jobs.
    fn count(&mut self, uid: &Uid) {
        if let Some(Pod { view, task, counted, .. }) = self.pods.get_mut(uid) {
            let is_taken = task.is_none() && !self.shares.is_used(view);
            self.nodes.count(counted, is_taken.then_some(view));
        }
    }

    /// Counts what a task takes of its node beyond its lease after it was resized in place.
    fn count_beyond(&mut self, core: &Core, uid: &Uid) {
        let Some(Pod { view, task: Some((job, task)), counted, .. }) = self.pods.get_mut(uid)
        else {
            return;
        };
        let groups = core.state.asks_of(*job).unwrap_or_default();
        if let Some(group) = GroupSpec::of_task(groups, *task) {
            self.nodes.count_beyond(counted, view, (group.cpu, group.memory));
        }
    }

    pub(super) fn order(&mut self, order: ApiOrder) {
        self.orders.push(order);
    }

    /// What is kept of jobs, in words.
    #[cfg(test)]
    fn leftovers(&self) -> Vec<String> {
        let mut rest = Vec::new();
        rest.extend(self.constrained_jobs.waiting.keys().map(|job| format!("locks of job {job}")));
        rest.extend(self.binds.keys().map(|lease| format!("a binding of {lease}")));
        rest.extend(self.jobs.keys().map(|job| format!("pods of job {job}")));
        rest.extend(self.gangs.keys().map(|gang| format!("the gang {}", gang.name)));
        rest.extend((!self.replacements.is_empty()).then(|| "jobs that await pods".to_owned()));
        rest.extend((!self.rejoining.is_empty()).then(|| "gangs that await members".to_owned()));
        rest
    }

    /// What came of bindings that were decided and not ordered.
    pub fn take_refused_binds(&mut self) -> Vec<OrderOutcome> {
        std::mem::take(&mut self.refused_binds)
    }

    /// What is to be done since this was last called, in its order.
    pub fn take_orders(&mut self) -> Orders {
        Orders { api: std::mem::take(&mut self.orders), pods: self.managed.take_orders() }
    }
}

impl Pod {
    fn new(view: PodView) -> Pod {
        Pod {
            view,
            task: None,
            was: None,
            is_apart: false,
            placed: None,
            counted: None,
            reported_reason: String::new(),
            reported_event: None,
            predicate_refs: PredicateRefs::default(),
        }
    }

    /// One of ours that runs and is no task of anything.
    pub(super) fn runs_unknown(&self) -> bool {
        self.task.is_none() && self.view.is_placed() && self.request().is_some()
    }

    /// Takes in a newer view and returns the request before. A request that was read once is kept
    /// when a related object is gone or cannot be read any more.
    fn renew(&mut self, view: PodView) -> Option<Arc<SchedulingRequest>> {
        let before = std::mem::replace(&mut self.view, view);
        let is_task = self.task.is_some();
        let is_read = matches!(self.view.request, Some(Ok(_)));
        let keeps = match &before.request {
            Some(Ok(_)) => !is_read && (is_task || self.view.request.is_none()),
            Some(Err(_)) => self.view.request.is_none(),
            None => false,
        };
        let request = before.request.as_ref().and_then(|request| request.as_ref().ok()).cloned();
        if keeps {
            self.view.request = before.request;
        } else if self.is_apart {
            self.separate();
        }
        request
    }

    /// From now on it is a job of its own.
    fn separate(&mut self) {
        self.is_apart = true;
        if let Some(Ok(request)) = &mut self.view.request {
            *request = Arc::new(request.apart(&self.view.at));
        }
    }

    pub(super) fn request(&self) -> Option<&Arc<SchedulingRequest>> {
        self.view.request.as_ref()?.as_ref().ok()
    }
}

#[cfg(test)]
mod tests;
