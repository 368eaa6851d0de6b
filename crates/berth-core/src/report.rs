//! What people ask about queues: who is entitled to what, and uses how much of it; and until when
//! jobs run.

use crate::fair_share::Shares;
use crate::state::State;
use berth_model::{JobId, Micros, Milli, Name, QueueSpec, Time};

/// Where a queue stands right now. Amounts are GPUs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QueueReport {
    pub name: Name,
    pub parent: Option<Name>,
    pub quota: Milli,
    pub fair_share: Milli,
    pub used: Milli,
    /// What it uses and what its waiting jobs ask for.
    pub demand: Milli,
    pub waiting: u32,
    pub running: u32,
    /// Its children are promised more than it has itself.
    pub overcommitted: bool,
    /// GPU-seconds in the bank.
    pub credits: i64,
    /// Decayed GPU-seconds used.
    pub past_use: i64,
    /// What its budget has paid in this period, if it has one.
    pub spent: Option<Micros>,
}

impl State {
    /// When a job that runs reaches its time limit.
    pub fn ends(&self, job: JobId) -> Option<Time> {
        self.jobs.get(self.jobs.find(job)?).ends()
    }

    /// Every queue with the one it lies below.
    pub fn queue_parents(&self) -> impl Iterator<Item = (&Name, Option<&Name>)> {
        self.queues.live().map(|(_, queue)| (&queue.spec.name, queue.spec.parent.as_ref()))
    }

    /// A queue and those it lies below, the lowest first; nothing where there is no such queue.
    pub fn queue_path(&self, queue: &str) -> impl Iterator<Item = &QueueSpec> {
        let path = self.queues.find(queue).into_iter().flat_map(|ix| self.queues.path(ix));
        path.map(|ix| &self.queues.get(ix).spec)
    }

    /// All queues in the order they were set up.
    pub fn queue_reports(&mut self) -> Vec<QueueReport> {
        self.refresh();
        let shares = Shares::of(self, true);
        let queues = &self.queues;
        queues
            .live()
            .map(|(ix, queue)| {
                let quota = queue.quota.gpu.unwrap_or(0);
                let promised: i64 = queue
                    .children
                    .iter()
                    .filter_map(|child| queues.get(*child).quota.gpu)
                    .fold(0, i64::saturating_add);
                QueueReport {
                    name: queue.spec.name.clone(),
                    parent: queue.spec.parent.clone(),
                    quota: Milli(quota),
                    fair_share: Milli(shares.fair[ix.at()].gpu),
                    used: Milli(queue.usage.gpu),
                    demand: Milli(shares.demand[ix.at()].gpu),
                    waiting: queue.pending.oldest.len() as u32 + queue.firm_promised,
                    running: queue.running.len() as u32,
                    overcommitted: promised > quota,
                    credits: queue.credits / 1_000,
                    past_use: queue.past_use / 1_000,
                    spent: queue
                        .budget
                        .as_ref()
                        .map(|meter| meter.spent + self.unbilled_below(&queue.spec.name, self.now)),
                }
            })
            .collect()
    }
}
