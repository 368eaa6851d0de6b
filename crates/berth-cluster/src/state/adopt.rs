//! Adopts running pods that the log does not know, or does not know to run: a database was lost, or
//! an older one was restored. The pods are not stopped; they get leases where they run.

use super::submission as gang;
use super::{ClusterState, Uid};
use crate::view::{GangKey, PodView};
use berth_engine::Turn;
use berth_model::Observed;
use berth_model::{Decision, Event, JobId, LeaseId, Name};
use std::collections::BTreeSet;

impl ClusterState {
    /// Jobs that wait in the log while pods of theirs run.
    pub(super) fn adopt_known(&mut self, turn: &mut Turn<'_>, jobs: Vec<JobId>) {
        for job in jobs {
            let pods: Vec<Uid> = self.tasks_of(job);
            let pods: Vec<Uid> =
                pods.into_iter().filter(|uid| self.runs_unbooked(turn.core, uid)).collect();
            if !self.start_where_they_are(turn, job, &pods) {
                // A pod that the core cannot account for must not run.
                pods.iter().for_each(|uid| self.observe_task(turn, uid));
            }
        }
    }

    /// Submits gangs whose pods run and which are no jobs. Where the core refuses such a gang, its
    /// pods are left alone, and what they take counts as used.
    pub(super) fn adopt_unknown(&mut self, turn: &mut Turn<'_>) {
        let unknown = self.pods.values().filter(|pod| pod.runs_unknown());
        let gangs: BTreeSet<GangKey> =
            unknown.filter_map(|pod| Some(pod.request()?.gang.clone())).collect();
        for gang in gangs {
            self.adopt_gang(turn, &gang);
        }
    }

    fn adopt_gang(&mut self, turn: &mut Turn<'_>, key: &GangKey) {
        if self.gangs.get(key).is_some_and(|gang| gang.job.is_some()) {
            return;
        }
        let members = self.pods.iter().filter(|(_, pod)| {
            let alive = !pod.view.phase.is_over() && !pod.view.is_leaving;
            alive && !pod.view.is_gated && pod.request().is_some_and(|request| request.gang == *key)
        });
        let (uids, pods): (Vec<Uid>, Vec<&PodView>) =
            members.map(|(uid, pod)| (uid.clone(), &pod.view)).unzip();
        let request = pods.first().and_then(|pod| pod.request.as_ref()?.as_ref().ok());
        let queue =
            request.and_then(|request| request.queue.clone()).unwrap_or_else(|| self.queue.clone());
        let policy = turn.core.state.policy();
        let job_request = gang::request(&pods, &queue, &self.nodes, &self.claims, policy);
        let Ok(job_request) = job_request else { return };
        let refs = job_request.workload.pods().to_vec();
        let Ok(job) = turn.submit(job_request) else { return };
        self.track_predicates(&uids);
        // The core has to know the labels and ports of nodes before these pods take them.
        self.nodes.report(turn);
        self.gangs.entry(key.clone()).or_default();
        self.assign(key, job, &refs);
        let running = uids.into_iter().filter(|uid| self.pods[uid].view.is_placed());
        let running: Vec<Uid> = running.collect();
        if !self.start_where_they_are(turn, job, &running) {
            tracing::warn!(gang = %key.name, "pods that run cannot be taken into the books");
            self.abandon(turn, key, job);
        }
    }

    /// Books the leases of pods that run. All of them or none.
    fn start_where_they_are(&self, turn: &mut Turn<'_>, job: JobId, pods: &[Uid]) -> bool {
        let place = |uid: &Uid| {
            let pod = &self.pods[uid];
            Some((pod.task?.1, pod.view.node.clone()?))
        };
        let Some(places) = pods.iter().map(place).collect::<Option<Vec<(u32, Name)>>>() else {
            return false;
        };
        let Some(starts) = turn.core.state.adoption(job, &places) else { return false };
        let leases: Vec<LeaseId> = starts
            .iter()
            .filter_map(|start| match start {
                Decision::Start { lease, .. } => Some(*lease),
                _ => None,
            })
            .collect();
        if !turn.apply_observed(Event::Decided { job: Some(job), decisions: starts }) {
            return false;
        }
        for lease in leases {
            turn.observe(Observed::Started { lease, at: turn.at });
        }
        true
    }

    /// A job that was made for a gang and cannot be.
    fn abandon(&mut self, turn: &mut Turn<'_>, key: &GangKey, job: JobId) {
        for uid in self.tasks_of(job) {
            self.forget_task(&uid);
        }
        self.forget_job(key, job);
        turn.apply_observed(Event::JobCancelled { job });
    }
}
