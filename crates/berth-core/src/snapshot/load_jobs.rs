//! The jobs of a snapshot, with their leases and promises.

use crate::apply::validate;
use crate::ix::{NodeIx, TaskIx};
use crate::jobs::{Lease, Standing, Stop};
use crate::snapshot::load::{LoadError, at};
use crate::state::State;
use crate::state::promises::resolve_promise;
use berth_ledger::LeaseAccount;
use berth_model::{JobSnapshot, LeaseSnapshot, Rejected, Snapshot};
use std::sync::Arc;

impl State {
    pub(super) fn load_jobs(&mut self, snapshot: &Snapshot) -> Result<(), LoadError> {
        let mut loaded = Vec::with_capacity(snapshot.jobs.len());
        for (n, job) in snapshot.jobs.iter().enumerate() {
            let path = || format!("jobs[{n}]");
            validate::jobs::job(self, &job.spec, validate::groups::JobOrigin::Loaded)
                .map_err(at(path()))?;
            if self.jobs.find(job.id()).is_some() {
                let rejected = Rejected::JobExists { job: job.id() };
                return Err(LoadError { path: path(), rejected });
            }
            let made = self.build_job(Arc::new(job.spec.clone()), job.id());
            let ix = self.insert_job(made);
            let known = self.jobs.get_mut(ix);
            known.first_start = job.first_start;
            known.last_checkpoint = job.last_checkpoint;
            known.saved = job.saved;
            known.estimate = job.estimate.unwrap_or(known.estimate);
            known.stale_since = job.stale_since;
            known.displaced = job.displaced;
            known.moved = job.moved;
            known.pauses = job.pauses.clone();
            known.paused = job.paused;
            known.released = job.released;
            known.failed = job.failed;
            known.cancelled = job.cancelled;
            known.set_aside = job.set_aside.clone();
            known.waits_turn = job.waits_turn;
            known.budgets = job.budgets.clone();
            for (task, attempts) in &job.attempts {
                if let Some(task) = known.tasks.get_mut(*task as usize) {
                    task.attempts = *attempts;
                }
            }
            for task in &job.done {
                if let Some(task) = known.tasks.get_mut(*task as usize) {
                    task.done = true;
                    known.done += 1;
                }
            }
            if job.set_aside.is_some() {
                self.set_aside.insert(job.id());
            }
            loaded.push(ix);
        }
        for (n, job) in snapshot.jobs.iter().enumerate() {
            for (m, lease) in job.leases.iter().enumerate() {
                let path = format!("jobs[{n}].leases[{m}]");
                self.load_lease(loaded[n], job, lease).map_err(at(path))?;
            }
        }
        for (n, job) in snapshot.jobs.iter().enumerate() {
            if !job.leases.is_empty() {
                self.set_running(loaded[n], job);
            }
        }
        let mut order: Vec<usize> = (0..loaded.len()).collect();
        // Elements of an array that hold a promise keep their place in line.
        let promised: std::collections::BTreeSet<_> =
            snapshot.promises.iter().map(|promise| promise.job).collect();
        order.sort_by_key(|n| {
            let id = snapshot.jobs[*n].id();
            (!promised.contains(&id), id)
        });
        for n in order {
            self.reconsider(loaded[n]);
        }
        for (n, promise) in snapshot.promises.iter().enumerate() {
            let path = format!("reservations[{n}]");
            let found = self.jobs.find(promise.job);
            let unknown = Rejected::UnknownJob { job: promise.job };
            let ix = found.ok_or(LoadError { path: path.clone(), rejected: unknown })?;
            if !matches!(self.jobs.get(ix).standing, Standing::Waiting | Standing::Ending) {
                continue;
            }
            let made = resolve_promise(self, ix, promise.at, &promise.places, promise.firm)
                .map_err(|why| Rejected::BadDecision { why: why.to_string() })
                .map_err(|rejected| LoadError { path, rejected })?;
            self.promise(ix, made);
        }
        Ok(())
    }

    fn load_lease(
        &mut self,
        ix: crate::ix::JobIx,
        job: &JobSnapshot,
        lease: &LeaseSnapshot,
    ) -> Result<(), Rejected> {
        let bad = |why: String| Rejected::BadJob { what: format!("job {}", job.spec.name), why };
        let unknown = || Rejected::UnknownNode { node: lease.node.clone() };
        let node: NodeIx = self.cluster.find(&lease.node).ok_or_else(unknown)?;
        let known = self.jobs.get(ix);
        let Some(task) = known.tasks.get(lease.task as usize) else {
            return Err(bad(format!("it has no task {}", lease.task)));
        };
        if task.lease.is_some() {
            return Err(bad(format!("task {} is placed twice", lease.task)));
        }
        let leaf = self.leaf_of(ix, lease.task).clone();
        let target = self.cluster.node(node);
        let mut gpus = target.gpus.clone();
        for slice in &lease.slices {
            let has = gpus.len() as u32;
            let at = slice.gpu as usize;
            let Some(gpu) = gpus.get_mut(at) else {
                return Err(Rejected::UnknownGpu { node: lease.node.clone(), gpu: slice.gpu, has });
            };
            let model = &target.spec.gpus[at].model;
            if !gpu.fits(&slice.share, model) {
                return Err(bad(format!(
                    "GPU {} of {} is held already, or has no room for this share beside the others",
                    slice.gpu, lease.node
                )));
            }
            gpu.take(&slice.share, model, known.queue);
        }
        let charge = self.charge_of(&leaf, node, &lease.slices);
        // What is placed is placed: a node may have less CPU and memory than when it was.
        let id = known.lease_id(lease.task, lease.attempt);
        let keys = berth_ledger::Keys::from(&*known.spec);
        let opened = Lease {
            attempt: lease.attempt,
            node,
            slices: lease.slices.clone(),
            charge,
            price: lease.price,
            since: lease.since,
            bound: lease.bound,
            stopping: lease.stopping.as_ref().map(|stop| Stop {
                cause: stop.cause,
                for_job: stop.for_job,
                until: stop.until,
            }),
        };
        let account = LeaseAccount {
            keys,
            gpus: berth_model::Milli(charge.gpu),
            price: lease.price,
            since: lease.since,
            billed: lease.billed,
            bound: lease.bound,
        };
        self.ledger.restore_lease(id, &lease.node, account);
        self.open_lease(TaskIx { job: ix, task: lease.task }, opened);
        let attempts = &mut self.jobs.get_mut(ix).tasks[lease.task as usize].attempts;
        *attempts = (*attempts).max(lease.attempt + 1);
        Ok(())
    }

    fn set_running(&mut self, ix: crate::ix::JobIx, job: &JobSnapshot) {
        let started = job.started.or_else(|| job.leases.iter().map(|lease| lease.since).min());
        self.set_started(ix, started);
        let speed = crate::state::speed::job_speed(self, ix);
        let known = self.jobs.get_mut(ix);
        known.speed = speed;
        known.released |= !known.spec.after.is_empty();
        known.first_start = known.first_start.or(started);
        let id = known.id;
        let ending = known.live() == 0 || (known.stopping > 0 && job.stale_since.is_none());
        let whole = self.has_minimum(ix);
        let known = self.jobs.get_mut(ix);
        known.standing = if ending && !whole { Standing::Ending } else { Standing::Running };
        if known.standing == Standing::Running {
            if known.failed || known.cancelled || known.hold {
                self.must_stop.insert(id);
            }
            if known.stale_since.is_some() {
                self.stale.insert(id);
            }
        }
        if known.spec.array.as_ref().is_some_and(|array| array.at_most.is_some()) {
            *self.arrays.entry(id.number).or_default() += 1;
        }
        self.find_missing_members(ix);
    }
}
