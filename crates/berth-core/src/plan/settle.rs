//! Settling what has to be: jobs past their limit, cancelled or broken ones, closing nodes, spent
//! budgets; then the promises whose time has come.

use crate::ix::JobIx;
use crate::jobs::Standing;
use crate::plan::planner::Planner;
use crate::transaction::Transaction;
use berth_ledger::Standing as BudgetStanding;
use berth_model::{BudgetAction, Cause, JobId, NodeState, Span, Time};
use std::collections::BTreeSet;

impl Planner<'_> {
    pub(super) fn settle(&mut self) {
        self.end_overdue();
        self.stop_cancelled_and_held();
        self.end_stale();
        self.clear_closing();
        self.clear_reserved();
        self.pause_spent();
    }

    fn stop_all(&mut self, job: JobIx, cause: Cause, grace: Span) {
        let tasks = self.live_tasks(job);
        let id = self.state().jobs.get(job).id;
        let decisions = self.stop(job, &tasks, cause, None, grace);
        if !decisions.is_empty() {
            self.transactions.push(Transaction { job: Some(id), decisions });
        }
    }

    fn grace(&self, job: JobIx) -> Span {
        self.state().jobs.get(job).grace(&self.state().policy)
    }

    fn end_overdue(&mut self) {
        let now = self.now();
        let due = |&&(ends, _, _): &&(Time, JobId, JobIx)| ends <= now;
        let overdue = self.state().ends.iter().take_while(due).map(|(_, _, ix)| *ix);
        // Those that are being stopped already are as good as over.
        let runs = |ix: &JobIx| self.state().jobs.get(*ix).live() > 0;
        let overdue: Vec<JobIx> = overdue.filter(runs).collect();
        for ix in overdue {
            self.stop_all(ix, Cause::TimeLimit, self.grace(ix));
        }
    }

    fn stop_cancelled_and_held(&mut self) {
        let ids: Vec<JobId> = self.state().must_stop.iter().copied().collect();
        for id in ids {
            let Some(ix) = self.state().jobs.find(id) else { continue };
            let job = self.state().jobs.get(ix);
            let cause = if job.cancelled {
                Cause::Cancelled
            } else if job.failed {
                Cause::PeerFailed
            } else if job.hold {
                Cause::Held
            } else {
                continue;
            };
            self.stop_all(ix, cause, self.grace(ix));
        }
    }

    fn end_stale(&mut self) {
        let ids: Vec<JobId> = self.state().stale.iter().copied().collect();
        for id in ids {
            let Some(ix) = self.state().jobs.find(id) else { continue };
            let Some(since) = self.state().jobs.get(ix).stale_since else { continue };
            if since + self.state().policy.stale <= self.now() {
                self.stop_all(ix, Cause::Stale, self.grace(ix));
            }
        }
    }

    /// Jobs on draining nodes move; on nodes that leave they save themselves in time.
    fn clear_closing(&mut self) {
        let nodes: Vec<_> = self.state().closing.iter().copied().collect();
        for node in nodes {
            let state = self.state().cluster.node(node).spec.state;
            for ix in self.jobs_on(node) {
                let job = self.state().jobs.get(ix);
                if job.standing != Standing::Running {
                    continue;
                }
                let preemptible = job.preemptible();
                let grace = self.grace(ix);
                match state {
                    // One that cannot be stopped is let run to its end.
                    NodeState::Draining if preemptible => self.stop_all(ix, Cause::Drain, grace),
                    NodeState::Leaving { at } if at - grace <= self.now() => {
                        let left = (at - self.now()).max(Span::ZERO);
                        self.stop_all(ix, Cause::Leaving, grace.min(left));
                    }
                    NodeState::Leaving { at } => self.wake(at - grace),
                    _ => {}
                }
            }
        }
    }

    /// An operator's reservation is empty when it begins, but for its owner's jobs.
    fn clear_reserved(&mut self) {
        let now = self.now();
        let due: Vec<_> = self
            .state()
            .reservations
            .values()
            .filter(|r| r.from - self.state().policy.grace <= now && now < r.to)
            .cloned()
            .collect();
        for reservation in due {
            let owner = self.state().queues.find(&reservation.owner);
            for name in &reservation.nodes {
                let Some(node) = self.state().cluster.find(name) else { continue };
                for ix in self.jobs_on(node) {
                    let job = self.state().jobs.get(ix);
                    let grace = self.grace(ix);
                    if job.standing == Standing::Running
                        && job.preemptible()
                        && owner != Some(job.queue)
                        && job.ends().is_none_or(|ends| ends > reservation.from)
                    {
                        if reservation.from - grace <= now {
                            self.stop_all(ix, Cause::Drain, grace);
                        } else {
                            self.wake(reservation.from - grace);
                        }
                    }
                }
            }
        }
    }

    pub(super) fn jobs_on(&self, node: crate::ix::NodeIx) -> Vec<JobIx> {
        let state = self.state();
        let jobs: BTreeSet<(JobId, JobIx)> = state
            .cluster
            .node(node)
            .tasks
            .iter()
            .map(|task| (state.jobs.get(task.job).id, task.job))
            .collect();
        jobs.into_iter().map(|(_, ix)| ix).collect()
    }

    fn pause_spent(&mut self) {
        let spent: Vec<_> = self
            .state()
            .queues
            .live()
            .filter(|(_, queue)| {
                queue.budget.as_ref().is_some_and(|meter| {
                    meter.standing() == BudgetStanding::Spent(BudgetAction::Pause)
                })
            })
            .map(|(ix, _)| ix)
            .collect();
        for queue in spent {
            let leaves: Vec<_> = self
                .state()
                .queues
                .leaves()
                .filter(|leaf| self.state().queues.path(*leaf).any(|up| up == queue))
                .collect();
            for leaf in leaves {
                let running: Vec<JobIx> =
                    self.state().queues.get(leaf).running.values().copied().collect();
                for ix in running {
                    let job = self.state().jobs.get(ix);
                    if job.standing == Standing::Running && job.preemptible() {
                        self.stop_all(ix, Cause::Budget, self.grace(ix));
                    }
                }
            }
        }
    }
}
