//! What an event brought about, in the rows of jobs and leases.

use super::{LeaseOrder, Turn};
use crate::live::{LiveLease, Stopped};
use crate::outcome::stop_message;
use crate::{notices, ports, rows};
use berth_api::wire;
use berth_core::Applied;
use berth_model::JobState;
use berth_model::{
    Cause, Decision, Event, JobChange, JobId, LeaseId, LeaseOutcome, Micros, Milli, Outcome, Span,
};
use berth_store::LeaseRow;

impl Turn<'_> {
    /// Writes down what an event brought about.
    pub(super) fn book(&mut self, event: &Event, applied: Applied) {
        match event {
            Event::Decided { decisions, .. } => {
                decisions.iter().for_each(|decision| self.book_decision(decision));
            }
            Event::LeaseStarted { lease } => {
                let at = self.at;
                self.with_lease(*lease, |live| live.row.started = Some(at));
                let job = self.core.jobs.get_mut(&lease.job).expect("its lease is known");
                // The others of a gang change nothing about the job, and its row is long.
                if job.row.started.is_none() {
                    self.core.tallies.started(&job.row.team, at - job.row.submitted);
                }
                if job.row.started.is_none() || job.is_started() {
                    job.row.started.get_or_insert(at);
                    // The machine can start it: the next trouble begins with a short pause.
                    job.detail.tries.trouble = 0;
                    self.touched.insert(lease.job);
                }
            }
            Event::JobChanged { job, change } => self.book_change(*job, change),
            Event::NodeChanged { node, state } => {
                let (node, state) = (node.to_string(), format!("{state:?}").to_lowercase());
                let text = format!("{node} is {state}");
                self.effects.events.push(wire::EventKind::Node { node, state, text });
            }
            Event::QueueSet { queue } => {
                self.effects.events.push(wire::EventKind::Queue { queue: queue.name.to_string() });
            }
            _ => {}
        }
        for row in &applied.rows {
            self.book_cost(row);
        }
        if let Event::LeaseEnded { lease, outcome } = event {
            self.book_end(*lease, *outcome);
        }
        for (job, outcome) in applied.ended {
            self.finish(job, outcome);
        }
        for alert in &applied.alerts {
            self.effects.events.push(notices::budget_alert(alert));
            self.batch.notices.push(notices::of_budget(alert, self.at));
        }
    }

    fn book_decision(&mut self, decision: &Decision) {
        match decision {
            Decision::Start { lease, node, slices, price, .. } => {
                let row = LeaseRow {
                    id: *lease,
                    node: node.to_string(),
                    slices: serde_json::to_string(slices).expect("they are plain data"),
                    price: *price,
                    opened: self.at,
                    started: None,
                    closed: None,
                    outcome: None,
                    exit: None,
                    cost: Micros::ZERO,
                    stop_at: None,
                    stop: None,
                };
                let Some(job) = self.core.jobs.get_mut(&lease.job) else { return };
                job.row.attempt = job.row.attempt.max(lease.attempt + 1);
                job.row.reason.clear();
                // Of a part by its memory it is known only now how much of a GPU that is.
                let held = slices.iter().map(|slice| slice.share.milli()).sum();
                job.row.gpus = job.row.gpus.max(Milli(held));
                job.detail.ready = false;
                if lease.task == 0 {
                    job.detail.port = job.detail.workload.run().and_then(|run| ports::of(run));
                }
                job.leases.insert(*lease, LiveLease { row, stopping: None });
                self.note_lease(*lease);
                self.touched.insert(lease.job);
                self.effects.orders.push(LeaseOrder::Start(*lease));
            }
            Decision::Stop { lease, cause, grace, for_job } => {
                let Some(job) = self.core.jobs.get_mut(&lease.job) else { return };
                self.core.tallies.stopping(job, *cause);
                let grace = if job.kill { Span::ZERO } else { *grace };
                if *cause != Cause::PeerFailed {
                    let early = job.detail.early.clone();
                    job.row.reason = early.unwrap_or_else(|| stop_message(*cause).to_owned());
                }
                let (at, told) = (self.at, Stopped { cause: *cause, for_job: *for_job });
                self.with_lease(*lease, |live| {
                    live.stopping = Some(*cause);
                    live.row.stop_at.get_or_insert(at);
                    live.row.stop = serde_json::to_string(&told).ok();
                });
                self.touched.insert(lease.job);
                self.effects.orders.push(LeaseOrder::Stop { lease: *lease, cause: *cause, grace });
            }
            Decision::SetAside { job, finding } => {
                if let Some(live) = self.core.jobs.get_mut(job) {
                    live.row.reason = format!("put aside: {finding}");
                    self.touched.insert(*job);
                }
            }
            Decision::Reserve { .. }
            | Decision::Unreserve { .. }
            | Decision::Claim { .. }
            | Decision::Return { .. } => {}
        }
    }

    fn book_change(&mut self, job: JobId, change: &JobChange) {
        for id in self.matching(job) {
            let live = self.core.jobs.get_mut(&id).expect("just found");
            match change {
                JobChange::Priority(priority) => live.row.priority = *priority,
                JobChange::Queue(queue) => live.row.team = queue.to_string(),
                JobChange::Hold(held) => {
                    live.detail.held = *held;
                    // Whoever lets it go on does not wait for its next try.
                    if let Some(at) = live.detail.again_at.take_if(|_| !*held) {
                        self.core.retries.remove(&(at, id));
                    }
                }
                JobChange::TimeLimit(limit) => {
                    live.detail.time_limit = Some(*limit);
                    let leases = live.leases.keys().copied();
                    self.effects.orders.extend(leases.map(LeaseOrder::Limit));
                }
                JobChange::Deadline(_)
                | JobChange::Nodes(_)
                | JobChange::Turn(_)
                | JobChange::Budgets(_) => {}
            }
            self.touched.insert(id);
        }
    }

    fn book_cost(&mut self, row: &berth_ledger::CostRow) {
        let before = self.batch.costs.len();
        self.batch.costs.extend(rows::costs(row));
        self.core.costs.cut(&self.batch.costs[before..]);
        let (Some(lease), Some(job)) = (row.lease, row.job) else { return };
        let Some(live) = self.core.jobs.get_mut(&job) else { return };
        live.row.cost += row.amount;
        if let Some(live) = live.leases.get_mut(&lease) {
            live.row.cost += row.amount;
        }
        self.billed.insert(lease);
    }

    fn book_end(&mut self, lease: LeaseId, outcome: LeaseOutcome) {
        let at = self.at;
        self.with_lease(lease, |live| {
            live.row.closed = Some(at);
            live.row.outcome = Some(outcome);
        });
        if let Some(job) = self.core.jobs.get_mut(&lease.job) {
            job.leases.remove(&lease);
            job.kill &= !job.leases.is_empty();
            self.touched.insert(lease.job);
        }
    }

    fn finish(&mut self, id: JobId, outcome: Outcome) {
        let Some(job) = self.core.jobs.get_mut(&id) else { return };
        job.row.state = match outcome {
            Outcome::Done => JobState::Done,
            Outcome::Failed => JobState::Failed,
            Outcome::Cancelled => JobState::Cancelled,
        };
        self.core.tallies.ended(&job.row.team, job.row.state);
        job.row.ended = Some(self.at);
        if let Some(at) = job.detail.again_at.take() {
            self.core.retries.remove(&(at, id));
        }
        self.batch.notices.extend(notices::of_job(job, self.at));
        self.touched.insert(id);
        self.effects.ended.push((id, outcome));
    }

    fn with_lease(&mut self, lease: LeaseId, change: impl FnOnce(&mut LiveLease)) {
        let job = self.core.jobs.get_mut(&lease.job);
        if let Some(live) = job.and_then(|job| job.leases.get_mut(&lease)) {
            change(live);
            self.note_lease(lease);
        }
    }

    fn note_lease(&mut self, lease: LeaseId) {
        let known = self.core.jobs.get(&lease.job).and_then(|job| job.leases.get(&lease));
        if let Some(live) = known {
            self.leases.insert(lease, live.row.clone());
        }
    }
}
