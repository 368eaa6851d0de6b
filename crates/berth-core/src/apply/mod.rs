//! Folding an event into the state. It never plans; an event that is refused changes nothing.

mod history;

use crate::draft::Draft;
use crate::ix::{JobIx, NodeIx, TaskIx};
use crate::jobs::{Job, Lease, Parked, Promised, Standing, Stop, Task};
use crate::queues::InLine;
use crate::state::State;
use crate::{fair_share, validate};
use berth_ledger::{Alert, CostRow, Loss};
use berth_model::{
    Cause, ClaimSpec, Decision, Event, GroupSpec, JobChange, JobId, JobSpec, LeaseId, LeaseOutcome,
    Milli, Name, NodeAsk, NodeSpec, NodeState, Outcome, RecentAsk, Rejected, Span, Stamped, Time,
};
use std::collections::{BTreeSet, VecDeque};
use std::sync::Arc;

/// What an event brought about besides the change of state.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
#[must_use = "cost rows are written nowhere else"]
pub struct Applied {
    pub rows: Vec<CostRow>,
    pub alerts: Vec<Alert>,
    pub losses: Vec<Loss>,
    /// Reservations that had to move, with the time they were for and the one they are for now.
    pub moved: Vec<(JobId, Time, Time)>,
    /// Jobs that ended with this event.
    pub ended: Vec<(JobId, Outcome)>,
}

impl State {
    /// Folds the next event of the log into the state.
    pub fn apply(&mut self, stamped: &Stamped) -> Result<Applied, Rejected> {
        if stamped.seq <= self.seq {
            return Err(Rejected::Duplicate { seq: stamped.seq, last: self.seq });
        }
        if stamped.seq > self.seq + 1 {
            return Err(Rejected::Gap { seq: stamped.seq, last: self.seq });
        }
        if stamped.at < self.now {
            return Err(Rejected::TimeWentBack { at: stamped.at, now: self.now });
        }
        validate::event(self, &stamped.event, stamped.at)?;
        let mut applied = Applied::default();
        if let Event::Decided { decisions, .. } = &stamped.event {
            // The one event whose parts depend on each other: tried as a whole first, at its time.
            let before = Earlier::of(self);
            let begun = self.advance(stamped.at);
            if let Err(why) = self.decided(decisions, &mut applied) {
                self.turn_back(before, begun);
                return Err(why);
            }
        } else {
            let _ = self.advance(stamped.at);
            self.fold(&stamped.event, &mut applied);
        }
        self.seq = stamped.seq;
        Ok(applied)
    }

    /// Lets time pass: use and credits accrue, begin times come, budgets start anew. Returns the
    /// jobs whose begin time has come.
    pub(crate) fn advance(&mut self, at: Time) -> Vec<InLine> {
        let mut begun = Vec::new();
        if at > self.now {
            fair_share::accrue(self, at);
            self.now = at;
        }
        while let Some((begin, _, ix)) = self.begins.first().copied() {
            if begin > at {
                break;
            }
            begun.extend(self.begins.pop_first());
            self.reconsider(ix);
        }
        let hour = at - Span::hours(1);
        while self.moves.front().is_some_and(|moved| *moved <= hour) {
            self.moves.pop_front();
        }
        for at_queue in 0..self.queues.all.len() {
            let queue = &mut self.queues.all[at_queue];
            if let Some(meter) = &mut queue.budget {
                meter.roll(at);
            }
        }
        begun
    }

    /// Takes back that time has passed.
    fn turn_back(&mut self, before: Earlier, begun: Vec<InLine>) {
        for (begin, id, ix) in begun {
            if self.is_waiting(ix) {
                self.step_out(ix);
                self.free_array_place(ix);
            }
            self.jobs.get_mut(ix).standing = Standing::Parked(Parked::Begin(begin));
            self.begins.insert((begin, id, ix));
        }
        for (queue, (credits, past_use, budget)) in self.queues.all.iter_mut().zip(before.queues) {
            queue.credits = credits;
            queue.past_use = past_use;
            queue.budget = budget;
        }
        self.moves = before.moves;
        self.now = before.now;
    }

    fn fold(&mut self, event: &Event, applied: &mut Applied) {
        match event {
            Event::JobSubmitted { spec } => self.submitted(spec),
            Event::JobCancelled { job } => self.cancelled(*job, applied),
            Event::JobChanged { job, change } => self.changed(*job, change),
            Event::LeaseStarted { lease } => self.lease_started(*lease, applied),
            Event::LeaseSaved { job } => self.saved(*job),
            Event::LeaseEnded { lease, outcome } => self.lease_ended(*lease, *outcome, applied),
            Event::NodeAdded { node } => self.node_added(node, applied),
            Event::NodeChanged { node, state } => self.node_changed(node, *state),
            Event::NodeRemoved { node } => self.node_removed(node, applied),
            Event::GpuChanged { node, gpu, health } => {
                let ix = self.cluster.find(node).expect("validated");
                self.cluster.set_health(ix, *gpu as usize, *health);
                self.drop_promises_on(ix);
                self.wake_aside();
            }
            Event::QueueSet { queue } => self.queue_set(queue, applied),
            Event::QueueRemoved { queue } => self.queue_removed(queue),
            Event::PolicySet { policy } => {
                let version = policy.version.max(self.policy.version + 1);
                // Jobs stand in line by how long they would hold their places, too.
                let same =
                    policy.backfill == self.policy.backfill && policy.grace == self.policy.grace;
                let lined = if same { Vec::new() } else { self.jobs.lined() };
                lined.iter().for_each(|ix| {
                    self.step_out(*ix);
                });
                self.policy = berth_model::Policy { version, ..(**policy).clone() };
                lined.into_iter().for_each(|ix| self.line_up(ix));
                self.cluster.mark_all_dirty();
                self.cluster.version += 1;
                self.cluster.kinds += 1;
                let promised: Vec<JobIx> = self.promises.keys().copied().collect();
                promised.into_iter().for_each(|ix| self.retime(ix));
            }
            Event::ClassesSet { classes } => {
                self.classes = classes.clone();
                self.cluster.kinds += 1;
            }
            Event::ModelsSet { prices, speeds, watts } => {
                self.models.prices = prices.clone();
                self.models.speeds = speeds.clone();
                self.models.watts = watts.clone();
                self.cluster.version += 1;
                self.reprice(applied);
            }
            Event::TopologySet { topologies } => self.set_topologies(topologies),
            Event::PoolSet { pool } => {
                self.pools.insert(pool.name.clone(), (**pool).clone());
            }
            Event::PoolRemoved { pool } => {
                self.pools.remove(pool);
            }
            Event::ClaimReady { claim, node } => {
                self.claims.remove(claim);
                self.node_added(node, applied);
            }
            Event::ClaimFailed { claim, retry_at } => {
                let claim = self.claims.remove(claim).expect("validated");
                if let Some(pool) = self.pools.get_mut(&claim.pool) {
                    for offering in &mut pool.offerings {
                        if offering.instance == claim.instance
                            && offering.zone == claim.zone
                            && offering.lifecycle == claim.lifecycle
                        {
                            offering.unavailable_until = Some(*retry_at);
                        }
                    }
                }
            }
            Event::ReservationSet { reservation } => {
                let before =
                    self.reservations.insert(reservation.name.clone(), reservation.clone());
                // Nodes it no longer names are free again.
                self.lay_blocks(&before.map_or(Vec::new(), |before| before.nodes));
                self.lay_blocks(&reservation.nodes);
            }
            Event::ReservationRemoved { name } => {
                let gone = self.reservations.remove(name).expect("validated");
                self.lay_blocks(&gone.nodes);
            }
            Event::Tick => self.tick(applied),
            Event::Decided { .. } => unreachable!("handled by apply"),
        }
    }

    fn tick(&mut self, applied: &mut Applied) {
        let fragmented = crate::fragmentation::unusable(self);
        let rows = self.ledger.tick(self.now, &|node| {
            fragmented.get(node).copied().unwrap_or(berth_model::Micros::ZERO)
        });
        self.book(rows, applied);
    }

    /// Hands rows out and lets budgets see them.
    fn book(&mut self, rows: Vec<CostRow>, applied: &mut Applied) {
        for row in &rows {
            let Some(queue) = row.queue.as_ref().and_then(|name| self.queues.find(name)) else {
                continue;
            };
            let path: Vec<_> = self.queues.path(queue).collect();
            for ix in path {
                let queue = self.queues.get_mut(ix);
                if let Some(meter) = &mut queue.budget {
                    applied.alerts.extend(meter.add(row.from, row.amount));
                }
            }
        }
        applied.rows.extend(rows);
    }

    fn submitted(&mut self, spec: &JobSpec) {
        let spec = Arc::new(spec.clone());
        match &spec.array {
            None => {
                self.admit(spec.clone(), spec.id);
            }
            Some(array) => {
                for element in &array.elements {
                    self.admit(spec.clone(), spec.id.element(*element));
                }
            }
        }
    }

    /// Makes a job of a spec and puts it in line, or where it must wait first.
    pub(crate) fn admit(&mut self, spec: Arc<JobSpec>, id: JobId) -> JobIx {
        let job = self.make(spec, id);
        let name = job.spec.name.clone();
        let ix = self.insert(job);
        self.reconsider(ix);
        self.wake_dependents(id, &name);
        ix
    }

    /// A new job, with its estimate from the history of its user and name.
    pub(crate) fn make(&mut self, spec: Arc<JobSpec>, id: JobId) -> Job {
        let shape = self.intern_shape(&spec.groups, spec.lifecycle);
        let time_limit = spec.time_limit.unwrap_or(self.policy.default_time_limit);
        let past = self.history.get(&(spec.user.clone(), spec.name.clone()));
        let estimate = past.map_or(time_limit, |past| {
            Span((i128::from(time_limit.0) * i128::from(past.ratio.0) / 1_000) as i64)
        });
        let queue = self.queues.find(&spec.queue).expect("validated");
        let tasks = self.shapes[shape.at()].tasks as usize;
        Job {
            id,
            queue,
            shape,
            priority: spec.priority,
            time_limit,
            deadline: spec.deadline,
            hold: spec.hold,
            tasks: vec![Task::default(); tasks],
            standing: Standing::Parked(Parked::Held),
            open: 0,
            stopping: 0,
            done: 0,
            first_start: None,
            started: None,
            last_checkpoint: None,
            saved: Span::ZERO,
            estimate: estimate.max(Span::secs(1)),
            stale_since: None,
            displaced: 0,
            moved: 0,
            pauses: Vec::new(),
            paused: false,
            failed: false,
            released: false,
            cancelled: false,
            set_aside: None,
            lined: false,
            speed: 1_000,
            spec,
        }
    }

    /// Puts a job into the tables, parked; its standing is settled by [`State::reconsider`].
    pub(crate) fn insert(&mut self, job: Job) -> JobIx {
        let key = (job.spec.name.clone(), job.spec.user.clone());
        let labels: Vec<(Name, Name)> =
            job.spec.labels.iter().map(|(k, v)| (k.clone(), v.clone())).collect();
        let id = job.id;
        if self.shapes[job.shape.at()].elastic() {
            self.elastic.insert(id);
        }
        let ix = self.jobs.insert(job);
        self.named.entry(key).or_default().insert(id);
        for label in labels {
            self.labelled.entry(label).or_default().insert(id);
        }
        ix
    }

    fn cancelled(&mut self, job: JobId, applied: &mut Applied) {
        let mut jobs: Vec<JobIx> = self.jobs.find(job).into_iter().collect();
        if job.element.is_none() {
            let elements = self.jobs.by_id.range(job.element(0)..=job.element(u32::MAX));
            jobs.extend(elements.map(|(_, ix)| *ix));
        }
        for ix in jobs {
            let job = self.jobs.get_mut(ix);
            job.cancelled = true;
            let id = job.id;
            if job.open == 0 {
                self.finish(ix, Outcome::Cancelled, applied);
            } else {
                self.unsettled.insert(id);
            }
        }
    }

    fn changed(&mut self, job: JobId, change: &JobChange) {
        let ix = self.jobs.find(job).expect("validated");
        let waiting = self.is_waiting(ix);
        // What it was promised by the right of another queue, or elsewhere, is not its own any more.
        let promised = self.unpromise(ix);
        let promised =
            promised.filter(|_| !matches!(change, JobChange::Queue(_) | JobChange::Nodes(_)));
        if waiting {
            self.step_out(ix);
        }
        if let Some(ends) = self.jobs.get(ix).ends() {
            self.ends.remove(&(ends, job, ix));
        }
        let queue = match change {
            JobChange::Queue(name) => self.queues.find(name),
            _ => None,
        };
        self.hold_all(ix, -1);
        let job_mut = self.jobs.get_mut(ix);
        job_mut.set_aside = None;
        match change {
            JobChange::Priority(priority) => {
                let before = std::mem::replace(&mut job_mut.priority, *priority);
                if job_mut.open > 0 {
                    let running = &mut self.queues.get_mut(job_mut.queue).running_priorities;
                    crate::state::pending::less(running, before);
                    *running.entry(*priority).or_default() += 1;
                }
            }
            JobChange::Hold(hold) => job_mut.hold = *hold,
            JobChange::Deadline(deadline) => job_mut.deadline = *deadline,
            JobChange::TimeLimit(limit) => {
                job_mut.time_limit = *limit;
                job_mut.estimate = job_mut.estimate.min(*limit);
            }
            JobChange::Queue(_) => job_mut.queue = queue.expect("validated"),
            JobChange::Nodes(nodes) => {
                let spec = Arc::make_mut(&mut job_mut.spec);
                let mut nodes = nodes.iter();
                spec.groups.iter_mut().for_each(|group| put_nodes(group, &mut nodes));
                let (before, lifecycle) = (job_mut.shape, job_mut.spec.lifecycle);
                let groups = job_mut.spec.groups.clone();
                let shape = self.intern_shape(&groups, lifecycle);
                self.jobs.get_mut(ix).shape = shape;
                self.drop_shape(before);
            }
        }
        let job_mut = self.jobs.get_mut(ix);
        if job_mut.hold && job_mut.open > 0 {
            self.unsettled.insert(job);
        }
        self.hold_all(ix, 1);
        self.aside.remove(&job);
        if let Some(ends) = self.jobs.get(ix).ends() {
            self.ends.insert((ends, job, ix));
        }
        self.mark_nodes_dirty(ix);
        if waiting {
            self.line_up(ix);
        }
        if let Some(promised) = promised {
            self.promise(ix, promised);
            self.retime(ix);
        }
        self.reconsider(ix);
    }

    /// Counts all GPUs of a job's live leases among those it may have to give up.
    fn hold_all(&mut self, ix: JobIx, times: i32) {
        for task in 0..self.jobs.get(ix).tasks.len() as u32 {
            let lease = self.jobs.get(ix).tasks[task as usize].lease.as_deref();
            if lease.is_some_and(|lease| lease.stopping.is_none()) {
                self.hold_gpus(TaskIx { job: ix, task }, times);
            }
        }
    }

    fn lease_started(&mut self, lease: LeaseId, applied: &mut Applied) {
        let ix = self.jobs.find(lease.job).expect("validated");
        let task = &mut self.jobs.get_mut(ix).tasks[lease.task as usize];
        task.lease.as_mut().expect("validated").bound = true;
        let rows = self.ledger.lease_bound(self.now, lease);
        self.book(rows, applied);
    }

    fn saved(&mut self, job: JobId) {
        let ix = self.jobs.find(job).expect("validated");
        self.jobs.get_mut(ix).last_checkpoint = Some(self.now);
    }

    fn lease_ended(&mut self, lease: LeaseId, outcome: LeaseOutcome, applied: &mut Applied) {
        let ix = self.jobs.find(lease.job).expect("validated");
        let node = {
            let task = TaskIx { job: ix, task: lease.task };
            let closed = self.close_lease(task);
            let unsaved = self.jobs.get(ix).unsaved(self.now);
            let lost = matches!(outcome, LeaseOutcome::Lost | LeaseOutcome::Stopped)
                .then_some(unsaved.min(self.now - closed.since))
                .filter(|span| *span > Span::ZERO);
            let ended = self.ledger.lease_closed(self.now, lease, lost);
            self.book(ended.rows, applied);
            applied.losses.extend(ended.loss);
            self.end_task(ix, lease.task, &closed, outcome);
            closed.node
        };
        let node = &mut self.cluster.nodes[node.at()];
        if node.tasks.is_empty() {
            node.idle_since = Some(self.now);
        }
        self.after_end(ix, applied);
    }

    fn end_task(&mut self, ix: JobIx, task: u32, closed: &Lease, outcome: LeaseOutcome) {
        let job = self.jobs.get_mut(ix);
        match outcome {
            LeaseOutcome::Done => {
                job.tasks[task as usize].done = true;
                job.done += 1;
            }
            LeaseOutcome::Failed => {
                // A task that dies while we stop it for another job was stopped, however it says.
                match closed.stopping.as_ref().map(|stop| stop.cause) {
                    Some(cause) if cause.requeues() => {}
                    _ => job.failed = true,
                }
            }
            LeaseOutcome::Stopped | LeaseOutcome::Lost => {
                match closed.stopping.as_ref().map(|stop| stop.cause) {
                    Some(Cause::TimeLimit | Cause::PeerFailed) => job.failed = true,
                    Some(Cause::Cancelled) => job.cancelled = true,
                    _ => {}
                }
            }
        }
    }

    /// What follows for the job when one of its leases has ended.
    fn after_end(&mut self, ix: JobIx, applied: &mut Applied) {
        let job = self.jobs.get(ix);
        let (id, open, failed, cancelled) = (job.id, job.open, job.failed, job.cancelled);
        if open > 0 {
            if failed || cancelled {
                self.unsettled.insert(id);
            } else {
                self.look_for_gaps(ix);
            }
            return;
        }
        let done = job.done > 0 && self.whole(ix);
        if done {
            self.finish(ix, Outcome::Done, applied);
        } else if cancelled {
            self.finish(ix, Outcome::Cancelled, applied);
        } else if failed {
            self.finish(ix, Outcome::Failed, applied);
        } else {
            self.requeue(ix);
        }
    }

    /// A gang that has fallen below its minimum without being stopped is stale.
    pub(crate) fn look_for_gaps(&mut self, ix: JobIx) {
        let job = self.jobs.get(ix);
        // One that failed or was cancelled is on its way out for that reason.
        if job.standing != Standing::Running || job.failed || job.cancelled {
            return;
        }
        let whole = self.whole(ix);
        let now = self.now;
        let job = self.jobs.get_mut(ix);
        let id = job.id;
        if whole {
            job.stale_since = None;
            self.stale.remove(&id);
        } else {
            job.stale_since.get_or_insert(now);
            self.stale.insert(id);
        }
    }

    /// Back in line from its last checkpoint.
    fn requeue(&mut self, ix: JobIx) {
        let job = self.jobs.get(ix);
        let id = job.id;
        if let (Some(started), Some(saved)) = (job.started, job.last_checkpoint) {
            let kept = (saved - started).max(Span::ZERO);
            self.set_started(ix, None);
            self.jobs.get_mut(ix).saved += kept;
        } else {
            self.set_started(ix, None);
        }
        self.stale.remove(&id);
        self.unsettled.remove(&id);
        let job = self.jobs.get_mut(ix);
        job.stale_since = None;
        job.last_checkpoint = None;
        for task in &mut job.tasks {
            task.done = false;
        }
        job.done = 0;
        job.standing = Standing::Parked(Parked::Held);
        self.retime(ix);
        self.free_array_place(ix);
        self.reconsider(ix);
        self.line_up_elements(id);
    }

    fn finish(&mut self, ix: JobIx, outcome: Outcome, applied: &mut Applied) {
        self.unpromise(ix);
        if self.is_waiting(ix) {
            self.step_out(ix);
        }
        let standing = self.jobs.get(ix).standing.clone();
        if !matches!(standing, Standing::Parked(_)) {
            self.free_array_place(ix);
        }
        self.learn(ix, outcome);
        self.set_started(ix, None);
        let job = self.jobs.remove(ix);
        self.rouse(ix, job.id, &job.spec);
        self.stale.remove(&job.id);
        self.unsettled.remove(&job.id);
        self.aside.remove(&job.id);
        self.elastic.remove(&job.id);
        let key = (job.spec.name.clone(), job.spec.user.clone());
        remove_from(&mut self.named, key, job.id);
        for (k, v) in &job.spec.labels {
            remove_from(&mut self.labelled, (k.clone(), v.clone()), job.id);
        }
        self.drop_shape(job.shape);
        self.outcomes.insert(job.id, (job.spec.name.clone(), outcome));
        self.outcome_order.push_back(job.id);
        while self.outcome_order.len() > self.policy.outcomes as usize {
            let oldest = self.outcome_order.pop_front().expect("not empty");
            self.outcomes.remove(&oldest);
        }
        applied.ended.push((job.id, outcome));
        self.wake_for(job.id, &job.spec);
    }

    fn node_added(&mut self, spec: &NodeSpec, applied: &mut Applied) {
        if let Some(ix) = self.cluster.find(&spec.name) {
            if !self.cluster.node(ix).tasks.is_empty() {
                // Validated: it has the same GPUs.
                self.drop_promises_on(ix);
                self.cluster.describe(ix, spec);
                self.price_node(ix, applied);
                self.node_state_changed(ix);
                self.wake_aside();
                return;
            }
            self.take_out(ix, applied);
        }
        let ix = self.cluster.add(spec.clone(), self.now);
        self.cluster.nodes[ix.at()].gpu_prices = self.gpu_prices(spec);
        let price = berth_ledger::cost::node_price(spec, &self.models.prices);
        let rows = self.ledger.node_joined(self.now, &spec.name, price);
        self.book(rows, applied);
        self.lay_blocks(std::slice::from_ref(&spec.name));
        self.node_state_changed(ix);
        self.wake_aside();
    }

    pub(crate) fn gpu_prices(&self, spec: &NodeSpec) -> Vec<berth_model::Micros> {
        berth_ledger::cost::gpu_prices(spec, &self.models.prices)
    }

    fn reprice(&mut self, applied: &mut Applied) {
        let all: Vec<NodeIx> = self.cluster.live().map(|(ix, _)| ix).collect();
        for ix in all {
            self.price_node(ix, applied);
        }
    }

    /// A new price counts from now on, for the node and for what runs there.
    fn price_node(&mut self, ix: NodeIx, applied: &mut Applied) {
        let spec = self.cluster.node(ix).spec.clone();
        self.cluster.nodes[ix.at()].gpu_prices = self.gpu_prices(&spec);
        let tasks = self.cluster.node(ix).tasks.clone();
        let mut prices = Vec::new();
        for task in tasks {
            let (id, slices, cpu) = {
                let job = self.jobs.get(task.job);
                let lease = job.tasks[task.task as usize].lease.as_ref().expect("it is there");
                let id = job.lease_id(task.task, lease.attempt);
                (id, lease.slices.clone(), lease.charge.cpu)
            };
            let price = self.price_of(ix, &slices, cpu);
            let job = self.jobs.get_mut(task.job);
            job.tasks[task.task as usize].lease.as_mut().expect("it is there").price = price;
            prices.push((id, price));
        }
        let price = berth_ledger::cost::node_price(&spec, &self.models.prices);
        let mut rows = self.ledger.node_repriced(self.now, &spec.name, price);
        for (id, price) in prices {
            rows.extend(self.ledger.lease_repriced(self.now, id, price));
        }
        self.book(rows, applied);
    }

    fn node_changed(&mut self, name: &Name, state: NodeState) {
        let ix = self.cluster.find(name).expect("validated");
        self.cluster.state(ix, state);
        self.node_state_changed(ix);
        self.wake_aside();
    }

    fn node_state_changed(&mut self, ix: NodeIx) {
        let state = self.cluster.node(ix).spec.state;
        match state {
            NodeState::Draining | NodeState::Leaving { .. } => self.closing.insert(ix),
            _ => self.closing.remove(&ix),
        };
        if state != NodeState::Ready {
            self.drop_promises_on(ix);
        }
        let jobs: BTreeSet<JobIx> =
            self.cluster.node(ix).tasks.iter().map(|task| task.job).collect();
        for job in jobs {
            self.look_for_gaps(job);
        }
    }

    /// Promises that lean on this node are made anew by the next plan.
    pub(crate) fn drop_promises_on(&mut self, ix: NodeIx) {
        let jobs: Vec<JobIx> = self.cluster.node(ix).kept.iter().map(|kept| kept.job).collect();
        for job in jobs {
            self.unpromise(job);
        }
    }

    fn take_out(&mut self, ix: NodeIx, applied: &mut Applied) {
        self.drop_promises_on(ix);
        let name = self.cluster.node(ix).spec.name.clone();
        let rows = self.ledger.node_left(self.now, &name);
        self.book(rows, applied);
        self.closing.remove(&ix);
        self.cluster.remove(ix);
    }

    fn node_removed(&mut self, name: &Name, applied: &mut Applied) {
        let ix = self.cluster.find(name).expect("validated");
        self.take_out(ix, applied);
        // A reservation is for nodes that are there.
        for reservation in self.reservations.values_mut() {
            reservation.nodes.retain(|node| node != name);
        }
        self.reservations.retain(|_, reservation| !reservation.nodes.is_empty());
        // Ordinals of removed nodes are not used again, so that order is age; once most are dead
        // the tables are built anew.
        if self.cluster.removed > 1_024
            && self.cluster.removed as usize * 2 > self.cluster.nodes.len()
        {
            self.rebuild();
        }
    }

    pub(crate) fn rebuild(&mut self) {
        let snapshot = self.snapshot();
        *self = State::load(&snapshot).expect("a snapshot of a state loads");
    }

    fn set_topologies(&mut self, topologies: &std::collections::BTreeMap<Name, Vec<Name>>) {
        let mut snapshot = self.snapshot();
        snapshot.topologies = topologies.clone();
        *self = State::load(&snapshot).expect("validated");
    }

    pub(crate) fn lay_blocks(&mut self, nodes: &[Name]) {
        for name in nodes {
            let Some(ix) = self.cluster.find(name) else { continue };
            let blocks = self
                .reservations
                .values()
                .filter(|reservation| reservation.nodes.contains(name))
                .map(|reservation| crate::cluster::node::Block {
                    from: reservation.from,
                    to: reservation.to,
                    owner: self.queues.find(&reservation.owner),
                })
                .collect();
            self.cluster.block(ix, blocks);
            self.drop_promises_on(ix);
        }
    }

    fn queue_set(&mut self, spec: &berth_model::QueueSpec, applied: &mut Applied) {
        let parent = spec.parent.as_ref().and_then(|name| self.queues.find(name));
        let ix = match self.queues.find(&spec.name) {
            None => self.queues.add(spec.clone(), parent),
            Some(ix) => {
                let old = self.queues.get(ix).parent;
                if old != parent {
                    let usage = self.queues.get(ix).usage.clone();
                    let siblings = match old {
                        Some(old) => &mut self.queues.get_mut(old).children,
                        None => &mut self.queues.roots,
                    };
                    siblings.retain(|sibling| *sibling != ix);
                    let mut at = old;
                    while let Some(up) = at {
                        self.queues.get_mut(up).usage.add(&usage, -1);
                        at = self.queues.get(up).parent;
                    }
                    match parent {
                        Some(parent) => self.queues.get_mut(parent).children.push(ix),
                        None => self.queues.roots.push(ix),
                    }
                    let mut at = parent;
                    while let Some(up) = at {
                        self.queues.get_mut(up).usage.add(&usage, 1);
                        at = self.queues.get(up).parent;
                    }
                }
                let queue = self.queues.get_mut(ix);
                queue.parent = parent;
                queue.spec = spec.clone();
                ix
            }
        };
        let now = self.now;
        let queue = self.queues.get_mut(ix);
        queue.budget = match (&spec.budget, queue.budget.take()) {
            (None, _) => None,
            (Some(budget), Some(mut meter)) => {
                applied.alerts.extend(meter.set(now, budget.clone()));
                Some(meter)
            }
            (Some(budget), None) => {
                Some(berth_ledger::BudgetMeter::new(spec.name.clone(), budget.clone(), now))
            }
        };
        self.queues.resolved = None;
    }

    fn queue_removed(&mut self, name: &Name) {
        let ix = self.queues.find(name).expect("validated");
        let parent = self.queues.get(ix).parent;
        match parent {
            Some(parent) => self.queues.get_mut(parent).children.retain(|child| *child != ix),
            None => self.queues.roots.retain(|root| *root != ix),
        }
        self.queues.get_mut(ix).removed = true;
        self.queues.by_name.remove(name);
        self.queues.resolved = None;
    }

    /// A gang's decisions: all of them, or, if one does not fit the state, none.
    fn decided(&mut self, decisions: &[Decision], applied: &mut Applied) -> Result<(), Rejected> {
        for decision in decisions {
            if let Decision::Reserve { job, at, .. } = decision
                && let Some(before) = self.jobs.find(*job).and_then(|ix| self.promises.get(&ix))
                && *at > before.at
            {
                applied.moved.push((*job, before.at, *at));
            }
        }
        let mut draft = Draft::new(self);
        let mark = draft.mark();
        for decision in decisions {
            if let Err(why) = try_decision(&mut draft, decision) {
                draft.roll_back(mark);
                return Err(Rejected::BadDecision { why });
            }
        }
        let mut touched: BTreeSet<JobIx> = BTreeSet::new();
        for decision in decisions {
            if let Decision::Start { lease, .. } = decision {
                touched.extend(draft.state.jobs.find(lease.job));
            }
        }
        if let Some(short) = touched.iter().find(|ix| !draft.state.whole(**ix)) {
            let id = draft.state.jobs.get(*short).id;
            draft.roll_back(mark);
            return Err(Rejected::BadDecision {
                why: format!("job {id} would start below its minimum"),
            });
        }
        draft.commit();
        for ix in touched {
            self.begun(ix);
        }
        for decision in decisions {
            self.follow(decision, applied);
        }
        Ok(())
    }

    /// The job's minimum runs: it leaves the line.
    fn begun(&mut self, ix: JobIx) {
        if self.jobs.get(ix).standing == Standing::Running {
            return;
        }
        self.unpromise(ix);
        self.step_out(ix);
        let now = self.now;
        self.set_started(ix, Some(now));
        let speed = crate::plan::job_speed(self, ix);
        let job = self.jobs.get_mut(ix);
        job.standing = Standing::Running;
        job.paused = false;
        job.speed = speed;
        let first = job.first_start.is_none();
        job.first_start.get_or_insert(now);
        let (id, spec) = (job.id, job.spec.clone());
        for leaf in self.shape_of(ix).leaves.clone() {
            // What it holds is in the log. What a share by memory amounts to by the shape depends
            // on when a plan last looked at the nodes, and a log is read back without planning.
            let own = leaf.first..leaf.first + leaf.count;
            let held = self.jobs.get(ix).leases().find(|(task, _)| own.contains(task));
            let Some((_, lease)) = held else { continue };
            let ask = RecentAsk {
                gpus: Milli(lease.charge.gpu),
                cpu: berth_model::Cpu(leaf.need.cpu),
                memory: berth_model::Bytes(leaf.need.memory),
            };
            self.recent.push_back(ask);
        }
        while self.recent.len() > self.policy.mix as usize {
            self.recent.pop_front();
        }
        if first {
            self.wake_dependents(id, &spec.name);
        }
    }

    /// What a decision means beyond the capacity it takes or frees.
    fn follow(&mut self, decision: &Decision, applied: &mut Applied) {
        match decision {
            Decision::Start { lease, node, price, .. } => {
                let ix = self.jobs.find(lease.job).expect("just started");
                let job = self.jobs.get_mut(ix);
                job.tasks[lease.task as usize].attempts += 1;
                let mut keys = berth_ledger::Keys::from(&*job.spec);
                keys.queue = self.queues.get(job.queue).spec.name.clone();
                let held = job.tasks[lease.task as usize].lease.as_ref().expect("just opened");
                let gpus = Milli(held.charge.gpu);
                self.ledger.lease_opened(self.now, *lease, keys, node, gpus, *price);
                let node = self.cluster.find(node).expect("just used");
                self.cluster.nodes[node.at()].idle_since = None;
            }
            Decision::Stop { lease, cause, for_job, .. } => {
                self.stopped(*lease, *cause, *for_job, applied);
            }
            Decision::Claim { claim, pool, instance, zone, lifecycle, for_job } => {
                self.claims_made += 1;
                let spec = ClaimSpec {
                    name: claim.clone(),
                    pool: pool.clone(),
                    instance: instance.clone(),
                    zone: zone.clone(),
                    lifecycle: *lifecycle,
                    for_job: *for_job,
                    since: self.now,
                };
                self.claims.insert(claim.clone(), spec);
            }
            Decision::Return { node } => {
                let ix = self.cluster.find(node).expect("checked");
                self.cluster.state(ix, NodeState::Cordoned);
                self.node_state_changed(ix);
            }
            Decision::SetAside { job, finding } => {
                let ix = self.jobs.find(*job).expect("checked");
                self.jobs.get_mut(ix).set_aside = Some(finding.clone());
                self.aside.insert(*job);
                self.reconsider(ix);
                // Its place among the elements of an array is another's.
                self.line_up_elements(*job);
            }
            Decision::Reserve { .. } | Decision::Unreserve { .. } => {}
        }
    }

    fn stopped(
        &mut self,
        lease: LeaseId,
        cause: Cause,
        for_job: Option<JobId>,
        applied: &mut Applied,
    ) {
        let ix = self.jobs.find(lease.job).expect("checked");
        let rows = self.ledger.lease_stopping(self.now, lease);
        self.book(rows, applied);
        if cause == Cause::Across {
            // What a class that reaches across takes is paid back as credit.
            let span = for_job
                .and_then(|id| self.jobs.find(id))
                .map_or(Span::ZERO, |by| self.jobs.get(by).estimate_left());
            let job = self.jobs.get(ix);
            let gpu = job.tasks[lease.task as usize].lease.as_ref().map_or(0, |l| l.charge.gpu);
            let queue = self.queues.get_mut(job.queue);
            queue.credits = berth_ledger::credit::pay(queue.credits, Milli(gpu), span);
        }
        if cause == Cause::Shrink {
            return;
        }
        let now = self.now;
        let whole = self.whole(ix);
        let job = self.jobs.get_mut(ix);
        if job.standing != Standing::Running || whole {
            return;
        }
        job.standing = Standing::Ending;
        if cause.displaces() {
            job.displaced += 1;
        }
        if cause == Cause::Defragment {
            job.moved += 1;
            self.moves.push_back(now);
        }
        if cause == Cause::TimeShare {
            job.pauses.push(now);
            job.paused = true;
        }
        let id = job.id;
        self.stale.remove(&id);
        self.unsettled.remove(&id);
    }
}

/// What the passing of time changes.
struct Earlier {
    now: Time,
    queues: Vec<(i64, i64, Option<berth_ledger::BudgetMeter>)>,
    moves: VecDeque<Time>,
}

impl Earlier {
    fn of(state: &State) -> Earlier {
        let all = state.queues.all.iter();
        Earlier {
            now: state.now,
            queues: all.map(|q| (q.credits, q.past_use, q.budget.clone())).collect(),
            moves: state.moves.clone(),
        }
    }
}

fn remove_from(
    index: &mut std::collections::BTreeMap<(Name, Name), BTreeSet<JobId>>,
    key: (Name, Name),
    id: JobId,
) {
    if let Some(ids) = index.get_mut(&key) {
        ids.remove(&id);
        if ids.is_empty() {
            index.remove(&key);
        }
    }
}

/// Carries a decision out on the draft, or says why it cannot be.
fn try_decision(draft: &mut Draft<'_>, decision: &Decision) -> Result<(), String> {
    let state = &mut *draft.state;
    match decision {
        Decision::Start { lease, node, slices, price, .. } => {
            let ix = state.jobs.find(lease.job).ok_or("there is no such job")?;
            let node_ix = state.cluster.find(node).ok_or("there is no such node")?;
            let job = state.jobs.get(ix);
            if !matches!(job.standing, Standing::Waiting | Standing::Running) {
                return Err(format!("job {} is not in line", lease.job));
            }
            let task = job.tasks.get(lease.task as usize).ok_or("there is no such task")?;
            if task.lease.is_some() || task.attempts != lease.attempt {
                return Err(format!("lease {lease} is not the next of its task"));
            }
            let target = state.cluster.node(node_ix);
            if !target.open() {
                return Err(format!("node {node} takes no work"));
            }
            let leaf = state.leaf_of(ix, lease.task).clone();
            let mut gpus = target.gpus.clone();
            for slice in slices {
                let at = slice.gpu as usize;
                let gpu = gpus.get_mut(at).ok_or_else(|| format!("{node} has no GPU {at}"))?;
                let model = &target.spec.gpus[at].model;
                if !gpu.healthy || !gpu.fits(&slice.share, model) {
                    return Err(format!("GPU {at} of {node} has no room"));
                }
                gpu.take(&slice.share, model);
            }
            if target.spec.cpu.is_some() && target.cpu_free < leaf.need.cpu {
                return Err(format!("{node} has too little CPU"));
            }
            if target.spec.memory.is_some() && target.memory_free < leaf.need.memory {
                return Err(format!("{node} has too little memory"));
            }
            if target.tasks_left() < 1 {
                return Err(format!("{node} takes no more tasks"));
            }
            let free = |resource: &Name| target.counted_free.get(resource).copied().unwrap_or(0);
            let lacks = |(resource, asks): &(&Name, &i64)| free(resource) < **asks;
            if let Some((resource, _)) = leaf.need.counted.iter().find(lacks) {
                return Err(format!("{node} has too little {resource}"));
            }
            let charge = state.charge_of(&leaf, node_ix, slices);
            let opened = Lease {
                attempt: lease.attempt,
                node: node_ix,
                slices: slices.clone(),
                charge,
                price: *price,
                since: state.now,
                bound: false,
                stopping: None,
            };
            draft.open(TaskIx { job: ix, task: lease.task }, opened);
        }
        Decision::Stop { lease, cause, for_job, grace } => {
            let ix = state.jobs.find(lease.job).ok_or("there is no such job")?;
            let job = state.jobs.get(ix);
            let held = job.tasks.get(lease.task as usize).and_then(|task| task.lease.as_ref());
            let held = held.filter(|held| held.attempt == lease.attempt);
            let held = held.ok_or_else(|| format!("there is no open lease {lease}"))?;
            if held.stopping.is_some() {
                return Err(format!("lease {lease} is being stopped already"));
            }
            let until = state.now + *grace;
            let stop = Stop { cause: *cause, for_job: *for_job, until };
            draft.stop(TaskIx { job: ix, task: lease.task }, stop);
        }
        Decision::Reserve { job, at, places, firm } => {
            let ix = state.jobs.find(*job).ok_or("there is no such job")?;
            // A job on its way out may be promised where it goes on.
            if !matches!(state.jobs.get(ix).standing, Standing::Waiting | Standing::Ending)
                && !state.jobs.get(ix).leases().any(|(_, lease)| lease.stopping.is_some())
            {
                return Err(format!("job {job} neither waits nor is being moved"));
            }
            let promised = promised(state, ix, *at, places, *firm)?;
            draft.unpromise(ix);
            draft.promise(ix, promised);
        }
        Decision::Unreserve { job } => {
            let ix = state.jobs.find(*job).ok_or("there is no such job")?;
            draft.unpromise(ix);
        }
        Decision::Claim { claim, pool, .. } => {
            if state.claims.contains_key(claim) {
                return Err(format!("there is a claim {claim} already"));
            }
            if !state.pools.contains_key(pool) {
                return Err(format!("there is no pool {pool}"));
            }
        }
        Decision::Return { node } => {
            let ix = state.cluster.find(node).ok_or("there is no such node")?;
            if !state.cluster.node(ix).tasks.is_empty() {
                return Err(format!("node {node} is in use"));
            }
        }
        Decision::SetAside { job, .. } => {
            let ix = state.jobs.find(*job).ok_or("there is no such job")?;
            if state.jobs.get(ix).open > 0 {
                return Err(format!("job {job} runs"));
            }
        }
    }
    Ok(())
}

/// Places by ordinal, with the time the job would be off them again.
pub(crate) fn promised(
    state: &State,
    ix: JobIx,
    at: Time,
    places: &[berth_model::Place],
    firm: bool,
) -> Result<Promised, String> {
    let job = state.jobs.get(ix);
    let mut found = Vec::with_capacity(places.len());
    for place in places {
        let node = state.cluster.find(&place.node).ok_or("there is no such node")?;
        let gpus = state.cluster.node(node).gpus.len();
        if place.slices.iter().any(|slice| slice.gpu as usize >= gpus) {
            return Err(format!("{} has no such GPU", place.node));
        }
        if place.task as usize >= job.tasks.len() {
            return Err(format!("job {} has no task {}", job.id, place.task));
        }
        found.push((node, place.clone()));
    }
    let to = at + state.hold(job);
    Ok(Promised { at, to, places: found, firm })
}

/// Gives the leaves of a group their nodes, in order.
fn put_nodes<'a>(group: &mut GroupSpec, nodes: &mut impl Iterator<Item = &'a Option<NodeAsk>>) {
    if group.is_leaf() {
        group.nodes = nodes.next().cloned().flatten();
        return;
    }
    group.groups.iter_mut().for_each(|child| put_nodes(child, nodes));
}
