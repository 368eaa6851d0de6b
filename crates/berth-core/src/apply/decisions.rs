//! Decisions of a plan: all of a transaction, or none.

use crate::apply::applied::Applied;
use crate::apply::try_decision::try_decision;
use crate::draft::Draft;
use crate::ix::JobIx;
use crate::jobs::Standing;
use crate::state::State;
use berth_model::{
    Cause, ClaimSpec, Decision, JobId, LeaseId, Milli, NodeState, RecentAsk, Rejected, Span,
};
use std::collections::BTreeSet;

impl State {
    /// A gang's decisions: all of them, or, if one does not fit the state, none.
    pub(super) fn decided(
        &mut self,
        decisions: &[Decision],
        applied: &mut Applied,
    ) -> Result<(), Rejected> {
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
                return Err(Rejected::BadDecision { why: why.to_string() });
            }
        }
        let mut touched: BTreeSet<JobIx> = BTreeSet::new();
        for decision in decisions {
            if let Decision::Start { lease, .. } = decision {
                touched.extend(draft.state.jobs.find(lease.job));
            }
        }
        if let Some(short) = touched.iter().find(|ix| !draft.state.has_minimum(**ix)) {
            let id = draft.state.jobs.get(*short).id;
            draft.roll_back(mark);
            return Err(Rejected::BadDecision {
                why: format!("job {id} would start below its minimum"),
            });
        }
        draft.commit();
        for ix in touched {
            self.minimum_started(ix);
        }
        for decision in decisions {
            self.after_decision(decision, applied);
        }
        Ok(())
    }

    /// The job's minimum runs: it leaves the line.
    fn minimum_started(&mut self, ix: JobIx) {
        if self.jobs.get(ix).standing == Standing::Running {
            // One that had lost members may have others in their place now.
            return self.find_missing_members(ix);
        }
        self.unpromise(ix);
        self.dequeue(ix);
        let now = self.now;
        self.set_started(ix, Some(now));
        let speed = crate::state::speed::job_speed(self, ix);
        let job = self.jobs.get_mut(ix);
        job.standing = Standing::Running;
        job.paused = false;
        job.speed = speed;
        job.exceeds.clear();
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
    fn after_decision(&mut self, decision: &Decision, applied: &mut Applied) {
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
                self.lease_stopping(*lease, *cause, *for_job, applied);
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
                self.cluster.set_state(ix, NodeState::Cordoned);
                self.node_state_changed(ix);
            }
            Decision::SetAside { job, finding } => {
                let ix = self.jobs.find(*job).expect("checked");
                self.jobs.get_mut(ix).set_aside = Some(finding.clone());
                self.set_aside.insert(*job);
                self.reconsider(ix);
                // Its place among the elements of an array is another's.
                self.enqueue_elements(*job);
            }
            Decision::Reserve { .. } | Decision::Unreserve { .. } => {}
        }
    }

    fn lease_stopping(
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
        // It is said why this had to be.
        let exceeded = self.exceeded_budgets(ix);
        if let Some(claimant) =
            for_job.filter(|_| cause.displaces()).and_then(|id| self.jobs.find(id))
        {
            self.jobs.get_mut(claimant).exceeds.extend(exceeded);
        }
        if cause == Cause::Shrink {
            return;
        }
        let now = self.now;
        let whole = self.has_minimum(ix);
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
        self.must_stop.remove(&id);
    }
}
