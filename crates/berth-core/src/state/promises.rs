//! Places promised to jobs.

use crate::cluster::node::PromisedSlot;
use crate::cluster::tenants::Apart;
use crate::ix::JobIx;
use crate::jobs::Promised;
use crate::state::State;
use berth_model::{JobId, Name, Time};

/// A place cannot be promised to a job: what it names does not exist.
#[derive(Debug, thiserror::Error)]
pub(crate) enum UnknownTarget {
    #[error("there is no such node")]
    Node,
    #[error("{node} has no such GPU")]
    Gpu { node: Name },
    #[error("job {job} has no task {task}")]
    Task { job: JobId, task: u32 },
}

impl State {
    /// Keeps places for a job. What is firmly promised counts as used.
    pub(crate) fn promise(&mut self, ix: JobIx, promised: Promised) {
        let (queue, apart) = (self.jobs.get(ix).queue, Apart::of(&self.policy));
        for (node, place) in &promised.places {
            let leaf = self.leaf_of(ix, place.task);
            let kept = PromisedSlot {
                job: ix,
                queue,
                apart,
                from: promised.at,
                to: promised.to,
                slices: place.slices.clone(),
                gpus: place
                    .slices
                    .iter()
                    .filter(|slice| slice.gpu < 64)
                    .fold(0, |gpus, slice| gpus | 1 << slice.gpu),
                cpu: leaf.need.cpu,
                memory: leaf.need.memory,
                counted: leaf.need.counted.clone(),
                ready: false,
            };
            self.cluster.add_promised_slot(*node, kept);
            self.refresh_task_ends(*node);
            self.update_releasing(*node);
        }
        if promised.firm {
            self.charge_promise(ix, &promised, 1);
        }
        self.list_promise(ix, &promised, true);
        let firm = promised.firm;
        let before = self.promises.insert(ix, promised);
        assert!(before.is_none(), "a job was promised two sets of places");
        if firm {
            self.dequeue(ix);
        }
    }

    pub(crate) fn unpromise(&mut self, ix: JobIx) -> Option<Promised> {
        let promised = self.promises.remove(&ix)?;
        for (node, _) in &promised.places {
            self.cluster.remove_promised_slots(*node, ix);
            self.refresh_task_ends(*node);
            self.update_releasing(*node);
        }
        self.cluster.clear_awaited(ix);
        if promised.firm {
            self.charge_promise(ix, &promised, -1);
        }
        self.list_promise(ix, &promised, false);
        if promised.firm && self.is_waiting(ix) {
            self.enqueue(ix);
        }
        Some(promised)
    }

    /// Enters a promise in the lists of promises, or strikes it out.
    fn list_promise(&mut self, ix: JobIx, promised: &Promised, enter: bool) {
        let job = self.jobs.get(ix);
        let place = (promised.at, job.id, ix);
        let of_shape = self.promises_by_shape.entry(job.shape).or_default();
        let queue = self.queues.get_mut(job.queue);
        if enter {
            of_shape.insert(place);
            self.promises_by_time.insert(place);
        } else {
            of_shape.remove(&place);
            self.promises_by_time.remove(&place);
        }
        if of_shape.is_empty() {
            self.promises_by_shape.remove(&job.shape);
        }
        // The same whether it was never entered or struck out again.
        if !promised.firm {
            queue.soft_fingerprint ^= promised.fingerprint(ix);
        }
        match (promised.firm, enter) {
            (true, true) => queue.firm_promised += 1,
            (true, false) => queue.firm_promised -= 1,
            (false, true) => {
                queue.soft_promised.insert(ix);
            }
            (false, false) => {
                queue.soft_promised.remove(&ix);
            }
        }
    }

    /// Works out anew until when what is promised to the job would be held by it.
    pub(crate) fn retime(&mut self, ix: JobIx) {
        if let Some(mut promised) = self.unpromise(ix) {
            promised.to = promised.at + self.hold_span(self.jobs.get(ix));
            self.promise(ix, promised);
        }
    }

    fn charge_promise(&mut self, ix: JobIx, promised: &Promised, times: i64) {
        let (queue, user) = {
            let job = self.jobs.get(ix);
            (job.queue, job.spec.user.clone())
        };
        for (node, place) in &promised.places {
            let charge = self.charge_of(self.leaf_of(ix, place.task), *node, &place.slices);
            self.queues.charge(queue, &user, &charge, times);
        }
    }
}

/// Places by ordinal, with the time the job would be off them again.
pub(crate) fn resolve_promise(
    state: &State,
    ix: JobIx,
    at: Time,
    places: &[berth_model::Place],
    firm: bool,
) -> Result<Promised, UnknownTarget> {
    let job = state.jobs.get(ix);
    let mut found = Vec::with_capacity(places.len());
    for place in places {
        let node = state.cluster.find(&place.node).ok_or(UnknownTarget::Node)?;
        let gpus = state.cluster.node(node).gpus.len();
        if place.slices.iter().any(|slice| slice.gpu as usize >= gpus) {
            return Err(UnknownTarget::Gpu { node: place.node.clone() });
        }
        if place.task as usize >= job.tasks.len() {
            return Err(UnknownTarget::Task { job: job.id, task: place.task });
        }
        found.push((node, place.clone()));
    }
    let to = at + state.hold_span(job);
    Ok(Promised { at, to, places: found, firm })
}
