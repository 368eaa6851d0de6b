//! The cluster as it was last seen, and which pod is which task. What is seen becomes events of the
//! core; what the core decides becomes orders about pods. Nothing is chosen here.
//!
//! A mirror is only ever used inside a turn of the loop or when its orders are given, so it is never
//! ahead of the state or behind it.

mod act;
mod adopt;
mod claims;
pub mod device_claims;
mod external;
mod fractions;
mod gang_annotations;
mod gather;
mod initial;
mod managed;
pub mod nodes;
pub mod observation;
mod offers;
pub mod orders;
pub mod pod_orders;
mod release;
mod replacements;
pub mod shares;
mod submission;
mod suspended;
mod tasks;
pub mod topology;

pub use managed::Own;
use tasks::{Stage, Tasks, lease_of};

use crate::constraints::dynamic::{Dynamics, Watch};
use crate::constraints::predicates::Heeded;
use crate::state::device_claims::Claims;
use crate::state::nodes::{Nodes, Taken};
use crate::state::orders::{ApiOrder, Wanted};
use crate::state::shares::Shares;
use crate::tenancy::ownership::ForeignQueues;
use crate::view::{GangKey, NodeSight, PodSight, Rule, Wish};
use berth_engine::{Core, Turn};
use berth_kube::{Change, Seen};
use berth_model::{GroupSpec, JobId, LeaseId, Name};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use tokio::sync::mpsc;

pub(super) type Uid = String;

pub struct Mirror {
    orders: mpsc::UnboundedSender<ApiOrder>,
    /// The queue of pods that name none.
    pub(super) queue: Name,
    pub(super) nodes: Nodes,
    pub(super) pods: BTreeMap<Uid, Pod>,
    pub(super) gangs: BTreeMap<GangKey, Gang>,
    pub(super) jobs: BTreeMap<JobId, Tasks>,
    /// Bindings that are under way.
    pub(super) binds: BTreeMap<LeaseId, Wanted>,
    /// Gangs that the core would not have, and why.
    refused: BTreeMap<GangKey, gang_annotations::Refusal>,
    /// Queues that other schedulers have described.
    foreign: ForeignQueues,
    /// Jobs that are held back until they have got their place.
    held: BTreeMap<GangKey, suspended::Held>,
    held_by: BTreeMap<Uid, GangKey>,
    /// The gangs that are jobs, by who makes their pods.
    owners: BTreeMap<Uid, GangKey>,
    pub(super) dynamics: Dynamics,
    /// What somebody has begun to ask about, and nobody has been told.
    pub(super) fresh: Vec<Watch>,
    own: Own,
    shares: Shares,
    pub(super) claims: Claims,
    /// Those that wait because of a claim.
    without_claims: BTreeSet<GangKey>,
    pub(super) heirs: replacements::Heirs,
}

pub(super) struct Pod {
    pub(super) sight: PodSight,
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
    said: String,
    /// What nodes are told apart by for its sake.
    heeded: Heeded,
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

impl Mirror {
    pub fn new(
        orders: mpsc::UnboundedSender<ApiOrder>,
        own: Own,
        queue: Name,
        claims: Claims,
        foreign: ForeignQueues,
    ) -> Mirror {
        Mirror {
            orders,
            queue,
            nodes: Nodes::default(),
            pods: BTreeMap::new(),
            gangs: BTreeMap::new(),
            jobs: BTreeMap::new(),
            binds: BTreeMap::new(),
            refused: BTreeMap::new(),
            foreign,
            held: BTreeMap::new(),
            held_by: BTreeMap::new(),
            owners: BTreeMap::new(),
            dynamics: Dynamics::default(),
            fresh: Vec::new(),
            own,
            shares: Shares::default(),
            claims,
            without_claims: BTreeSet::new(),
            heirs: replacements::Heirs::default(),
        }
    }

    /// Nodes are told apart by these rules for good: those of pods that Berth makes.
    pub fn obey(&mut self, rules: &[Rule]) {
        let _for_good = self.nodes.heed(rules, &BTreeMap::new());
    }

    /// Takes in what was seen of nodes.
    pub fn see_nodes(&mut self, turn: &mut Turn<'_>, seen: Seen<NodeSight>) {
        match seen {
            Seen::All(nodes) => {
                let there: BTreeSet<Name> =
                    nodes.iter().map(|node| node.spec.name.clone()).collect();
                for gone in self.nodes.names().difference(&there) {
                    self.lose_node(turn, gone);
                }
                nodes.into_iter().for_each(|node| self.put_node(node));
            }
            Seen::Changes(changes) => {
                for change in changes {
                    match change {
                        Change::Put(node) => self.put_node(node),
                        Change::Gone(node) => self.lose_node(turn, &node.spec.name),
                    }
                }
            }
        }
        self.nodes.tell(turn);
        self.reconsider(turn);
        self.settle(turn);
    }

    /// Takes in what was seen of pods.
    pub fn see_pods(&mut self, turn: &mut Turn<'_>, seen: Seen<PodSight>) {
        match seen {
            Seen::All(pods) => {
                let there: BTreeSet<&Uid> = pods.iter().map(|pod| &pod.at.uid).collect();
                let gone: Vec<Uid> =
                    self.pods.keys().filter(|uid| !there.contains(uid)).cloned().collect();
                drop(there);
                for uid in gone {
                    self.gone(turn, &uid);
                }
                for pod in pods {
                    self.see(turn, pod);
                }
            }
            Seen::Changes(changes) => {
                for change in changes {
                    match change {
                        Change::Put(pod) => self.see(turn, pod),
                        Change::Gone(pod) => {
                            // How it ended may be news too.
                            let uid = pod.at.uid.clone();
                            self.see(turn, pod);
                            self.gone(turn, &uid);
                        }
                    }
                }
            }
        }
        self.nodes.tell(turn);
        self.settle(turn);
    }

    fn see(&mut self, turn: &mut Turn<'_>, sight: PodSight) {
        let uid = sight.at.uid.clone();
        let task = match self.pods.get_mut(&uid) {
            Some(known) => {
                let before = known.renew(sight);
                let task = known.task;
                match task {
                    Some((job, _)) => self.change(turn, &uid, job, before.as_deref()),
                    None => self.change_gang(&uid, before.as_deref()),
                }
                task
            }
            None => {
                self.pods.insert(uid.clone(), Pod::new(sight));
                None
            }
        };
        self.see_sharing(&uid);
        let is_own = self.pods[&uid].sight.own.is_some();
        let task = if is_own { self.know_own(turn.core, &uid) } else { task };
        match task {
            Some(_) => {
                if is_own {
                    self.of_own(turn, &uid);
                } else {
                    self.of_task(turn, &uid);
                }
                self.count_beyond(turn.core, &uid);
            }
            None => {
                self.count(&uid);
                self.of_former_task(turn, &uid);
                self.of_nobody(turn, &uid);
            }
        }
        self.place(turn.core, &uid);
    }

    /// A pod that is no task takes what it takes from everybody.
    fn count(&mut self, uid: &Uid) {
        if let Some(Pod { sight, task, counted, .. }) = self.pods.get_mut(uid) {
            let is_taken = task.is_none() && !self.shares.is_used(sight);
            self.nodes.count(counted, is_taken.then_some(sight));
        }
    }

    /// A pod that is a task takes from everybody what it was given in place beyond its lease.
    fn count_beyond(&mut self, core: &Core, uid: &Uid) {
        let Some(Pod { sight, task: Some((job, task)), counted, .. }) = self.pods.get_mut(uid)
        else {
            return;
        };
        let groups = core.state.asks_of(*job).unwrap_or_default();
        if let Some(group) = GroupSpec::of_task(groups, *task) {
            self.nodes.count_beyond(counted, sight, (group.cpu, group.memory));
        }
    }

    pub(super) fn order(&self, order: ApiOrder) {
        // Only at the end of the server is there nobody to take it; the next one orders again.
        let _ = self.orders.send(order);
    }
}

impl Pod {
    fn new(sight: PodSight) -> Pod {
        Pod {
            sight,
            task: None,
            was: None,
            is_apart: false,
            placed: None,
            counted: None,
            said: String::new(),
            heeded: Heeded::default(),
        }
    }

    /// One of ours that runs and is no task of anything.
    pub(super) fn runs_unknown(&self) -> bool {
        self.task.is_none() && self.sight.is_placed() && self.wish().is_some()
    }

    /// Takes a newer sight and returns the wish before. What was understood once is not forgotten
    /// because something around the pod is gone or makes no sense any more.
    fn renew(&mut self, sight: PodSight) -> Option<Arc<Wish>> {
        let before = std::mem::replace(&mut self.sight, sight);
        let is_task = self.task.is_some();
        let is_read = matches!(self.sight.wish, Some(Ok(_)));
        let keeps = match &before.wish {
            Some(Ok(_)) => !is_read && (is_task || self.sight.wish.is_none()),
            Some(Err(_)) => self.sight.wish.is_none(),
            None => false,
        };
        let wish = before.wish.as_ref().and_then(|wish| wish.as_ref().ok()).cloned();
        if keeps {
            self.sight.wish = before.wish;
        } else if self.is_apart {
            self.part();
        }
        wish
    }

    /// From now on it is a job of its own.
    fn part(&mut self) {
        self.is_apart = true;
        if let Some(Ok(wish)) = &mut self.sight.wish {
            *wish = Arc::new(wish.apart(&self.sight.at));
        }
    }

    pub(super) fn wish(&self) -> Option<&Arc<Wish>> {
        self.sight.wish.as_ref()?.as_ref().ok()
    }
}
