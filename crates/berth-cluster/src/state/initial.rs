//! The initial sync: which pods are which tasks, after a start or with a new leader.

use super::submission as gang;
use super::topology;
use super::{ClusterState, Pod, Tasks, Uid, lease_of};
use crate::constraints::dynamic::StorageUpdate;
use crate::view::{ExternalQueues, NodeView, ObjectEvent, PodView, QueuedJob};
use berth_engine::{Core, Turn};
use berth_kube::hypernode::HyperNodeTree;
use berth_model::PodRef;
use berth_model::{Event, JobChange, JobId, Name};
use std::collections::BTreeMap;

/// What there was when the server started.
#[derive(Default)]
pub struct InitialObjects {
    pub queues: ExternalQueues,
    pub events: Vec<ObjectEvent>,
    pub queued: Vec<QueuedJob>,
    pub topologies: BTreeMap<Name, Vec<Name>>,
    pub hypernodes: HyperNodeTree,
    pub nodes: Vec<NodeView>,
    pub pods: Vec<PodView>,
    pub storage: Vec<StorageUpdate>,
}

impl ClusterState {
    /// Takes in everything there is, before anything is planned.
    pub fn sync_all(&mut self, turn: &mut Turn<'_>, initial: InitialObjects) {
        let known = turn.core.state.outline().topologies;
        let event = topology::event(&known, &initial.nodes, &initial.topologies);
        topology::report(turn, &known, event);
        let InitialObjects { queues, events, queued, nodes, pods, storage, hypernodes, .. } =
            initial;
        self.observe_levels(turn.core);
        self.observe_hypernodes(turn, hypernodes);
        self.write_events(events);
        self.observe_queues(turn, queues);
        self.hold_queued(queued);
        storage.into_iter().for_each(|update| self.observe_storage(turn, update));
        self.sync(turn, nodes, pods);
    }

    /// Begins with what there is. Which pods are which tasks is in the rows of the jobs; what is
    /// not there any more is gone.
    fn sync(&mut self, turn: &mut Turn<'_>, nodes: Vec<NodeView>, pods: Vec<PodView>) {
        let names: Vec<Name> = nodes.iter().map(|node| node.spec.name.clone()).collect();
        nodes.into_iter().for_each(|node| self.put_node(node));
        for view in pods {
            self.pods.insert(view.at.uid.clone(), Pod::new(view));
        }
        let seen: Vec<Uid> = self.pods.keys().cloned().collect();
        seen.iter().for_each(|uid| self.observe_sharing(uid));
        let unbooked = self.remember(turn);
        self.remember_fractions(turn.core);
        names.iter().for_each(|node| self.count_claims(node));
        self.sync_managed(turn);
        let free = self.pods.iter().filter(|(_, pod)| pod.task.is_none());
        let free: Vec<Uid> = free.map(|(uid, _)| uid.clone()).collect();
        for uid in &free {
            if !self.pods[uid].runs_unknown() {
                self.count(uid);
            }
        }
        let tasks = self.pods.iter().filter(|(_, pod)| pod.task.is_some());
        let tasks: Vec<Uid> = tasks.map(|(uid, _)| uid.clone()).collect();
        tasks.iter().for_each(|uid| self.count_beyond(turn.core, uid));
        self.nodes.report(turn);
        self.adopt_known(turn, unbooked);
        self.adopt_unknown(turn);
        self.remember_fractions(turn.core);
        self.give_back_idle();
        names.iter().for_each(|node| self.count_claims(node));
        for uid in free {
            if self.pods[&uid].task.is_none() {
                self.count(&uid);
                self.observe_unassigned(turn, &uid);
            }
        }
        self.enqueue_all(turn);
        self.lift_default_limits(turn);
        let all: Vec<Uid> = self.pods.keys().cloned().collect();
        all.iter().for_each(|uid| self.place(turn.core, uid));
        let jobs: Vec<JobId> = self.jobs.keys().copied().collect();
        for job in jobs {
            // It was the turn of others before this process began.
            if turn.core.state.waits_turn(job) {
                turn.park(job, true);
                turn.apply_observed(Event::JobChanged { job, change: JobChange::Turn(true) });
            }
            self.constrain(turn, job);
            let tasks = &self.jobs[&job];
            // Pods of a suspended job come when it has its place.
            let misses = !tasks.is_whole() && !self.is_held_by_us(&tasks.gang);
            self.hold(turn, job, misses);
        }
        self.nodes.report(turn);
        self.release_waiting(turn);
    }

    /// Returns the jobs of which pods run without a lease.
    pub(super) fn remember(&mut self, turn: &mut Turn<'_>) -> Vec<JobId> {
        let known = turn.core.jobs.iter().filter(|(_, job)| !job.detail.workload.pods().is_empty());
        let known: Vec<(JobId, Vec<PodRef>)> =
            known.map(|(id, job)| (*id, job.detail.workload.pods().to_vec())).collect();
        let mut unbooked = Vec::new();
        for (job, refs) in known {
            if !self.remember_job(turn, job, &refs) {
                unbooked.push(job);
            }
        }
        for node in self.nodes.remember(turn.core) {
            self.lose_node(turn, &node);
        }
        unbooked
    }

    /// Whether every pod of it that runs has a lease.
    pub(super) fn remember_job(
        &mut self,
        turn: &mut Turn<'_>,
        job: JobId,
        refs: &[PodRef],
    ) -> bool {
        let seen = refs.iter().find_map(|pod| self.pods.get(&pod.uid));
        let gang = seen.and_then(|pod| pod.request()).map(|request| request.gang.clone());
        let Some(gang) = gang.or_else(|| self.gang_to_be(refs)) else {
            // None of its pods is left.
            if self.await_after_restart(turn, job, refs) {
                return true;
            }
            self.end_all(turn, job, "its pods are gone");
            turn.apply_observed(Event::JobCancelled { job });
            return true;
        };
        // A pod that came later than the rest of its gang.
        let taken = self.gangs.get(&gang).is_some_and(|gang| gang.job.is_some());
        let gang = if taken { self.separate_from_gang(refs).unwrap_or(gang) } else { gang };
        self.track_predicates(refs.iter().map(|pod| &pod.uid));
        self.track_held_predicates(&gang);
        let is_held = self.is_held_by_us(&gang);
        let mut tasks = Tasks {
            gang: gang.clone(),
            pods: Vec::with_capacity(refs.len()),
            asks: Vec::with_capacity(refs.len()),
            ranks: Vec::with_capacity(refs.len()),
            done: vec![false; refs.len()],
            starts: BTreeMap::new(),
        };
        for task in &turn.core.jobs[&job].detail.done {
            tasks.done[*task as usize] = true;
        }
        // What a pod asked for that is gone is unknown; Berth assumes what the others ask for.
        let usual = refs.iter().find_map(|pod| Some(self.pods.get(&pod.uid)?.view.asks.clone()));
        let usual = usual.unwrap_or_default();
        let mut missing = Vec::new();
        for (task, pod) in gang::refs(refs) {
            let to_be = self.asks_to_be(&gang, pod);
            let is_to_be = to_be.is_some();
            let found = self.pods.get_mut(&pod.uid);
            let asks = found.as_ref().map(|pod| pod.view.asks.clone()).or(to_be);
            tasks.asks.push(asks.unwrap_or_else(|| usual.clone()));
            tasks.ranks.push(found.as_ref().and_then(|pod| pod.view.rank()));
            tasks.pods.push(found.as_ref().map(|_| pod.uid.clone()));
            match found {
                Some(found) => found.task = Some((job, task)),
                None if is_to_be || tasks.done[task as usize] => {}
                None => missing.push(task),
            }
        }
        let owner = refs.iter().find_map(|pod| self.pods.get(&pod.uid)?.view.owner.clone());
        let owner = owner.map(|owner| owner.to_string());
        if let Some(owner) = &owner {
            self.owners.insert(owner.clone(), gang.clone());
        }
        let known = self.gangs.entry(gang.clone()).or_default();
        known.job = Some(job);
        known.has_begun = true;
        known.owner = owner;
        for uid in tasks.pods.iter().flatten() {
            known.waiting.remove(uid);
        }
        let seen: Vec<Uid> = tasks.pods.iter().flatten().cloned().collect();
        self.jobs.insert(job, tasks);
        for task in &missing {
            self.end(turn, job, *task, "its pod is gone");
            self.make_room(turn, &gang, job, *task);
        }
        if !missing.is_empty() && !is_held {
            turn.park(job, true);
        }
        let mut booked = true;
        for uid in seen {
            if self.runs_unbooked(turn.core, &uid) {
                booked = false;
            } else {
                self.observe_task(turn, &uid);
            }
        }
        booked
    }

    /// Whether a pod that is a task runs without a lease.
    pub fn runs_unbooked(&self, core: &Core, uid: &Uid) -> bool {
        let pod = &self.pods[uid];
        let leased = |(job, task)| lease_of(core, job, task).is_some();
        pod.view.is_placed() && pod.task.is_some_and(|task| !leased(task))
    }
}
