//! The pool and the jobs of a trace as the core sees them.

use super::Rules;
use crate::peers::{Job, Pool};
use crate::workload::Workload;
use berth_model::{
    Amount, Bytes, Cpu, GpuAsk, GpuQuota, GpuSpec, GroupSpec, Health, JobId, JobSpec, LabelAsk,
    Lifecycle, Milli, Name, NodeSnapshot, NodeSpec, NodeState, QueueSnapshot, QueueSpec, Quota,
    Snapshot, Span, Time,
};
use std::collections::BTreeMap;

pub(super) struct Shop {
    /// The queue of each team.
    queues: Vec<Name>,
    per_node: u32,
    user: Name,
    whole: Name,
    rest: Name,
    preemptible: bool,
    restart: Span,
}

/// An idle pool, with its queues, and what jobs are made with.
pub(super) fn world(rules: &Rules, pool: Pool, workload: &Workload, now: Time) -> (Snapshot, Shop) {
    let teams = workload.teams.len().max(1);
    let apart = !rules.quotas.is_empty();
    let queues: Vec<Name> = (0..teams)
        .map(|team| match apart {
            true => Name::from(format!("team-{team:04}")),
            false => Name::new("all"),
        })
        .collect();
    let quotas = match apart {
        true => shares(&rules.quotas, teams, pool),
        // Jobs that cannot be stopped start within a quota only, and one that is used up would
        // keep those that wait from holding reservations: with one queue it has no end.
        false => vec![Amount::Unlimited],
    };
    let snapshot = Snapshot {
        now,
        policy: rules.policy.clone(),
        nodes: (0..pool.nodes).map(|number| node(number, pool.gpus_per_node, now)).collect(),
        queues: queues.iter().zip(quotas).map(|(name, quota)| queue(name, quota)).collect(),
        ..Snapshot::default()
    };
    let shop = Shop {
        queues,
        per_node: pool.gpus_per_node,
        user: Name::new("user"),
        whole: Name::new("whole"),
        rest: Name::new("rest"),
        preemptible: rules.preemptible,
        restart: rules.restart,
    };
    (snapshot, shop)
}

/// The pool divided in proportion, in whole thousandths of a GPU and without any left over by
/// rounding up: the sum may not exceed the pool.
fn shares(quotas: &[u64], teams: usize, pool: Pool) -> Vec<Amount<Milli>> {
    let of = |team: usize| u128::from(quotas.get(team).copied().unwrap_or(1));
    let all: u128 = (0..teams).map(of).sum::<u128>().max(1);
    let gpus = u128::from(pool.gpus()) * 1_000;
    (0..teams).map(|team| Amount::Of(Milli((gpus * of(team) / all) as i64))).collect()
}

fn queue(name: &Name, gpus: Amount<Milli>) -> QueueSnapshot {
    let mut spec = QueueSpec::new(name);
    spec.quota =
        Quota { gpu: GpuQuota { total: Some(gpus), ..GpuQuota::default() }, ..Quota::default() };
    QueueSnapshot { spec, credits: 0, past_use: 0, spent: Default::default() }
}

fn node(number: u32, gpus: u32, now: Time) -> NodeSnapshot {
    let model = Name::new("GPU");
    let gpu = GpuSpec { model, memory: Bytes::gb(80), health: Health::Ok, mig: None };
    let spec = NodeSpec {
        name: Name::from(format!("node-{number:05}")),
        gpus: vec![gpu; gpus as usize],
        cpu: None,
        memory: None,
        labels: BTreeMap::new(),
        taints: Vec::new(),
        nvlink: Vec::new(),
        state: NodeState::Ready,
        price: None,
        pool: None,
        lifecycle: Lifecycle::OnDemand,
    };
    NodeSnapshot { spec, idle_since: Some(now), since: now, billed: now }
}

impl Shop {
    pub(super) fn spec(&self, number: u32, job: &Job) -> JobSpec {
        JobSpec {
            id: id(number),
            // Its own, so that nothing is learned from others.
            name: Name::from(number.to_string()),
            queue: self.queues[job.team as usize].clone(),
            user: self.user.clone(),
            project: Name::default(),
            experiment: Name::default(),
            labels: BTreeMap::new(),
            priority: 0,
            preemptible: self.preemptible,
            lifecycle: None,
            submitted: job.submit,
            time_limit: Some(limit(job)),
            deadline: None,
            restart_cost: Some(self.restart),
            grace: Some(Span::ZERO),
            min_runtime: None,
            preempt_after: None,
            array: None,
            after: Vec::new(),
            singleton: false,
            begin: None,
            hold: false,
            groups: self.groups(job.gpus),
        }
    }

    fn groups(&self, gpus: u32) -> Vec<GroupSpec> {
        let (nodes, rest) = (gpus / self.per_node, gpus % self.per_node);
        let whole = (nodes > 0).then(|| group(&self.whole, nodes, self.per_node));
        let rest = (rest > 0).then(|| group(&self.rest, 1, rest));
        whole.into_iter().chain(rest).collect()
    }

    /// Tasks of a job.
    pub(super) fn tasks(&self, job: &Job) -> u32 {
        job.gpus.div_ceil(self.per_node)
    }
}

fn group(name: &Name, count: u32, gpus: u32) -> GroupSpec {
    GroupSpec {
        name: name.clone(),
        count,
        min: count,
        groups: Vec::new(),
        gpus: GpuAsk::Whole { count: gpus },
        models: Vec::new(),
        min_gpu_memory: None,
        cpu: Cpu::default(),
        memory: Bytes::default(),
        topology: None,
        spread: None,
        labels: LabelAsk::default(),
        tolerations: Vec::new(),
        near: Vec::new(),
    }
}

pub(super) fn limit(job: &Job) -> Span {
    job.estimate.max(Span::secs(1))
}

/// Jobs are numbered from 1 on, as a server would.
pub(super) fn id(number: u32) -> JobId {
    JobId::new(u64::from(number) + 1)
}

pub(super) fn number(id: JobId) -> usize {
    id.number as usize - 1
}
