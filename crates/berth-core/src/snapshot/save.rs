//! Making a snapshot of a state.

use crate::cluster::gpu::Mode;
use crate::state::State;
use berth_model::{
    History, JobId, JobSnapshot, LeaseSnapshot, Micros, NodeSnapshot, Promise, QueueSnapshot,
    Snapshot, StopSnapshot,
};
use std::collections::BTreeMap;
use std::ops::Bound;

impl State {
    /// The state as plain values.
    pub fn snapshot(&self) -> Snapshot {
        Snapshot { jobs: self.job_snapshots(None, usize::MAX), ..self.outline() }
    }

    /// Some jobs of a snapshot, at the most so many: those after one, by id.
    pub fn job_snapshots(&self, after: Option<JobId>, most: usize) -> Vec<JobSnapshot> {
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        let jobs = self.jobs.by_id.range((from, Bound::Unbounded)).take(most);
        jobs.map(|(_, ix)| self.job_snapshot(self.jobs.get(*ix))).collect()
    }

    /// A snapshot without its jobs, which are most of it.
    pub fn outline(&self) -> Snapshot {
        let claims = self.claims.values().cloned().collect();
        Snapshot {
            now: self.now,
            seq: self.seq,
            topologies: self.cluster.topologies.iter().cloned().collect::<BTreeMap<_, _>>(),
            policy: self.policy.clone(),
            classes: self.classes.clone(),
            prices: self.models.prices.clone(),
            speeds: self.models.speeds.clone(),
            watts: self.models.watts.clone(),
            nodes: self.node_snapshots(),
            pools: self.pools.values().cloned().collect(),
            claims,
            claims_made: self.claims_made,
            queues: self.queue_snapshots(),
            history: self
                .history
                .iter()
                .map(|((user, name), past)| History {
                    user: user.clone(),
                    name: name.clone(),
                    runs: past.runs,
                    ratio: past.ratio,
                })
                .collect(),
            jobs: Vec::new(),
            outcomes: self
                .outcome_order
                .iter()
                .map(|id| {
                    let (name, outcome) = &self.outcomes[id];
                    (*id, name.clone(), *outcome)
                })
                .collect(),
            reservations: self.reservations.values().cloned().collect(),
            promises: self.promise_snapshots(),
            moves: self.moves.iter().copied().collect(),
            recent: self.recent.iter().cloned().collect(),
            disruptions: self
                .disruptions
                .keys()
                .filter_map(|budget| Some((budget.clone(), self.disruptions_left(budget)?)))
                .collect(),
        }
    }

    /// Only the nodes of a snapshot. Copying the jobs takes much longer, and some callers do not need
    /// them.
    pub fn node_snapshots(&self) -> Vec<NodeSnapshot> {
        self.cluster.live().map(|(_, node)| self.node_snapshot(node)).collect()
    }

    /// The queues of a snapshot alone.
    pub fn queue_snapshots(&self) -> Vec<QueueSnapshot> {
        self.queues.live().map(|(_, queue)| queue_snapshot(queue)).collect()
    }

    /// A queue and those above it, the lowest first; none where there is no such queue.
    pub fn queue_snapshots_of(&self, name: &str) -> Vec<QueueSnapshot> {
        let path = self.queues.find(name).into_iter().flat_map(|ix| self.queues.path(ix));
        path.map(|ix| queue_snapshot(self.queues.get(ix))).collect()
    }

    /// The places that are kept for waiting jobs.
    pub fn promise_snapshots(&self) -> Vec<Promise> {
        let mut all: Vec<Promise> = self
            .promises
            .iter()
            .map(|(ix, promised)| Promise {
                job: self.jobs.get(*ix).id,
                at: promised.at,
                places: promised.places.iter().map(|(_, place)| place.clone()).collect(),
                firm: promised.firm,
            })
            .collect();
        all.sort_by_key(|promise| promise.job);
        all
    }

    fn node_snapshot(&self, node: &crate::cluster::node::Node) -> NodeSnapshot {
        let mut spec = node.spec.clone();
        for (at, gpu) in node.gpus.iter().enumerate() {
            // Idle instances belong to the node; the leases name those that are held.
            // Where no new ones can be made, those that are held are among those that there are.
            if gpu.mode == Mode::Mig && gpu.division.is_none() {
                let mig = gpu.mig.as_deref().filter(|mig| mig.fixed);
                spec.gpus[at].mig = mig.map(|mig| mig.idle.clone());
            }
        }
        let account = self.ledger.node(&node.spec.name);
        NodeSnapshot {
            spec,
            idle_since: node.idle_since,
            since: account.map_or(node.since, |account| account.since),
            billed: account.map_or(node.since, |account| account.billed),
            data: node.data.clone(),
        }
    }

    fn job_snapshot(&self, job: &crate::jobs::Job) -> JobSnapshot {
        let mut spec = (*job.spec).clone();
        spec.priority = job.priority;
        spec.hold = job.hold;
        spec.deadline = job.deadline;
        spec.queue = self.queues.get(job.queue).spec.name.clone();
        spec.time_limit = Some(job.time_limit);
        let leases = job.leases().map(|(task, lease)| {
            let id = job.lease_id(task, lease.attempt);
            let account = self.ledger.lease(id).map(|(_, account)| account);
            LeaseSnapshot {
                task,
                attempt: lease.attempt,
                node: self.cluster.node(lease.node).spec.name.clone(),
                slices: lease.slices.clone(),
                price: lease.price,
                since: account.map_or(lease.since, |account| account.since),
                billed: account.map_or(lease.since, |account| account.billed),
                bound: lease.bound,
                stopping: lease.stopping.as_ref().map(|stop| StopSnapshot {
                    cause: stop.cause,
                    for_job: stop.for_job,
                    until: stop.until,
                }),
            }
        });
        JobSnapshot {
            element: job.id.element,
            leases: leases.collect(),
            done: (0..job.tasks.len() as u32).filter(|t| job.tasks[*t as usize].done).collect(),
            attempts: job
                .tasks
                .iter()
                .enumerate()
                .filter(|(_, task)| task.attempts > 0)
                .map(|(at, task)| (at as u32, task.attempts))
                .collect(),
            first_start: job.first_start,
            started: job.started,
            last_checkpoint: job.last_checkpoint,
            saved: job.saved,
            estimate: Some(job.estimate),
            stale_since: job.stale_since,
            displaced: job.displaced,
            moved: job.moved,
            pauses: job.pauses.clone(),
            paused: job.paused,
            released: job.released,
            failed: job.failed,
            cancelled: job.cancelled,
            set_aside: job.set_aside.clone(),
            waits_turn: job.waits_turn,
            budgets: job.budgets.clone(),
            spec,
        }
    }

    /// A digest of everything a plan depends on (FNV-1a over the snapshot's text form).
    pub fn hash(&self) -> u64 {
        struct Fnv(u64);
        impl std::fmt::Write for Fnv {
            fn write_str(&mut self, text: &str) -> std::fmt::Result {
                for byte in text.bytes() {
                    self.0 = (self.0 ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
                }
                Ok(())
            }
        }
        let mut hash = Fnv(0xcbf2_9ce4_8422_2325);
        std::fmt::write(&mut hash, format_args!("{:?}", self.snapshot())).expect("never fails");
        hash.0
    }
}

fn queue_snapshot(queue: &crate::queues::Queue) -> QueueSnapshot {
    QueueSnapshot {
        spec: queue.spec.clone(),
        credits: queue.credits,
        past_use: queue.past_use,
        spent: queue.budget.as_ref().map_or(Micros::ZERO, |meter| meter.spent),
        daily: queue.spending.days(),
    }
}
