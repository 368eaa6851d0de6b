//! The site and the jobs of a trace as the core sees them.

use super::Rules;
use crate::fleet::Machine;
use crate::peers::free::FreeGpus;
use crate::peers::{Ask, Job};
use crate::site::{Offer, Site, Spot};
use crate::workload::Workload;
use berth_model::{
    Amount, Bytes, Cpu, GpuAsk, GpuQuota, GpuSpec, GroupSpec, Health, JobId, JobSpec, LabelAsk,
    Lifecycle, Micros, Milli, ModelAsk, Name, NodeSnapshot, NodeSpec, NodeState, Offering,
    PoolSpec, QueueSnapshot, QueueSpec, Quota, Snapshot, Span, Time,
};
use std::collections::{BTreeMap, BTreeSet};

/// When every replay begins. A trace may count from any time, even from one after its first job,
/// and the core takes no time before 1970.
pub(super) const BEGIN: Time = Time(Span::days(10_957).0);

pub(super) struct JobMaker {
    /// The queue of each team.
    queues: Vec<Name>,
    /// All there could ever be, empty: what fits here can run some day.
    reach: FreeGpus,
    models: Vec<Name>,
    /// User and thing of each job, where the core may learn from them.
    kinds: Vec<(u32, u32)>,
    user: Name,
    whole: Name,
    rest: Name,
    preemptible: bool,
    restart: Span,
    grace: Span,
}

/// An idle site, with its queues, and what jobs are made with.
pub(super) fn world(
    rules: &Rules,
    site: &Site,
    workload: &Workload,
    now: Time,
) -> (Snapshot, JobMaker) {
    let teams = workload.teams.len().max(1);
    let apart = !rules.quotas.is_empty();
    let queues: Vec<Name> = (0..teams)
        .map(|team| match apart {
            true => Name::from(format!("team-{team:04}")),
            false => Name::new("all"),
        })
        .collect();
    let quotas = match apart {
        true => shares(&rules.quotas, teams, site.fleet.gpus()),
        // Jobs that cannot be stopped start within a quota only, and one that is used up would
        // keep those that wait from holding reservations: with one queue it has no end.
        false => vec![Amount::Unlimited],
    };
    let machine = |(number, node): (usize, &Machine)| {
        let model = &site.fleet.models[node.model as usize];
        let spec = node_spec(node_name(number as u32), node.gpus, model);
        NodeSnapshot { spec, idle_since: Some(now), since: now, billed: now, data: BTreeMap::new() }
    };
    let snapshot = Snapshot {
        now,
        policy: rules.policy.clone(),
        nodes: site.fleet.nodes.iter().enumerate().map(machine).collect(),
        queues: queues.iter().zip(quotas).map(|(name, quota)| queue(name, quota)).collect(),
        pools: pools(site),
        ..Snapshot::default()
    };
    let job_maker = JobMaker {
        queues,
        reach: FreeGpus::new(&site.reach()),
        models: site.fleet.models.clone(),
        kinds: if rules.learns { workload.kinds.clone() } else { Vec::new() },
        user: Name::new("user"),
        whole: Name::new("whole"),
        rest: Name::new("rest"),
        // A job that cannot be stopped is never bought a spot machine.
        preemptible: rules.preemptible || site.has_spot(),
        restart: rules.restart.max(site.saves.restart),
        // Enough to save itself before its machine leaves.
        grace: if site.has_spot() { Span::mins(1) } else { Span::ZERO },
    };
    (snapshot, job_maker)
}

/// The pool divided in proportion, in whole thousandths of a GPU and without any left over by
/// rounding up: the sum may not exceed the pool.
fn shares(quotas: &[u64], teams: usize, gpus: u64) -> Vec<Amount<Milli>> {
    let of = |team: usize| u128::from(quotas.get(team).copied().unwrap_or(1));
    let all: u128 = (0..teams).map(of).sum::<u128>().max(1);
    let gpus = u128::from(gpus) * 1_000;
    (0..teams).map(|team| Amount::Of(Milli((gpus * of(team) / all) as i64))).collect()
}

fn queue(name: &Name, gpus: Amount<Milli>) -> QueueSnapshot {
    let mut spec = QueueSpec::new(name);
    spec.quota =
        Quota { gpu: GpuQuota { total: Some(gpus), ..GpuQuota::default() }, ..Quota::default() };
    QueueSnapshot { spec, credits: 0, past_use: 0, spent: Default::default(), daily: Vec::new() }
}

pub(super) fn pool_name(offer: usize) -> Name {
    Name::from(format!("pool-{offer}"))
}

/// The offers as the core sees them.
fn pools(site: &Site) -> Vec<PoolSpec> {
    let one = |(number, offer): (usize, &Offer)| {
        let price = offer.spot.as_ref().map(|spot| spot.price);
        pool(site, number, offer, price)
    };
    site.market.iter().enumerate().map(one).collect()
}

pub(super) fn pool(
    site: &Site,
    number: usize,
    offer: &Offer,
    spot_price: Option<Micros>,
) -> PoolSpec {
    let offering = |lifecycle, price, interruptions| Offering {
        instance: Name::from(format!("{}x{}", offer.gpus, site.fleet.models[offer.model as usize])),
        gpus: offer.gpus,
        model: site.fleet.models[offer.model as usize].clone(),
        memory_per_gpu: Bytes::gb(80),
        cpu: None,
        memory: None,
        zone: Name::new("zone"),
        lifecycle,
        price,
        boot: offer.boot,
        interruptions,
        unavailable_until: None,
    };
    let per_1000_h =
        |spot: &Spot| spot.lasts.map_or(0, |lasts| Span::hours(1_000).0 / lasts.0.max(1));
    let spot = offer.spot.as_ref().zip(spot_price);
    let spot = spot.map(|(spot, price)| offering(Lifecycle::Spot, price, per_1000_h(spot)));
    let on_demand = offer.on_demand.map(|price| offering(Lifecycle::OnDemand, price, 0));
    PoolSpec {
        name: pool_name(number),
        min: 0,
        max: offer.max,
        offerings: spot.into_iter().chain(on_demand).collect(),
        labels: BTreeMap::new(),
    }
}

pub(super) fn node_name(number: u32) -> Name {
    Name::from(format!("node-{number:05}"))
}

pub(super) fn node_spec(name: Name, gpus: u32, model: &Name) -> NodeSpec {
    let model = model.clone();
    let gpu =
        GpuSpec { model, memory: Bytes::gb(80), health: Health::Ok, mig: None, division: None };
    NodeSpec {
        name,
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
        tasks: None,
        counted: BTreeMap::new(),
    }
}

impl JobMaker {
    pub(super) fn spec(&self, number: u32, job: &Job) -> JobSpec {
        JobSpec {
            id: id(number),
            // Its own, so that nothing is learned from others, unless that is wanted.
            name: match self.kinds.get(number as usize) {
                Some((_, thing)) => Name::from(format!("thing-{thing}")),
                None => Name::from(number.to_string()),
            },
            queue: self.queues[job.team as usize].clone(),
            user: match self.kinds.get(number as usize) {
                Some((user, _)) => Name::from(format!("user-{user}")),
                None => self.user.clone(),
            },
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
            grace: Some(self.grace),
            min_runtime: None,
            preempt_after: None,
            array: None,
            after: Vec::new(),
            singleton: false,
            begin: None,
            hold: false,
            groups: self.groups(Ask::of(job)),
            data: BTreeSet::new(),
        }
    }

    fn groups(&self, ask: Ask) -> Vec<GroupSpec> {
        let (nodes, rest, per_node) = self.reach.parts_of(ask);
        let allowed = |place: usize| ask.models >> place & 1 == 1;
        let all = (0..self.models.len()).all(allowed);
        let named = self.models.iter().enumerate().filter(|(place, _)| !all && allowed(*place));
        let models: Vec<ModelAsk> =
            named.map(|(_, model)| ModelAsk { model: model.clone(), speed: Milli::ONE }).collect();
        let whole = (nodes > 0).then(|| group(&self.whole, nodes, per_node, &models));
        let rest = (rest > 0).then(|| group(&self.rest, 1, rest, &models));
        whole.into_iter().chain(rest).collect()
    }

    /// Whether the job could run if all were there and free.
    pub(super) fn can_ever(&self, job: &Job) -> bool {
        self.reach.fits(Ask::of(job))
    }

    /// Tasks of a job.
    pub(super) fn tasks(&self, job: &Job) -> u32 {
        let (nodes, rest, _) = self.reach.parts_of(Ask::of(job));
        nodes + u32::from(rest > 0)
    }

    pub(super) fn restart(&self) -> Span {
        self.restart
    }

    pub(super) fn preemptible(&self) -> bool {
        self.preemptible
    }
}

fn group(name: &Name, count: u32, gpus: u32, models: &[ModelAsk]) -> GroupSpec {
    GroupSpec {
        name: name.clone(),
        count,
        min: count,
        groups: Vec::new(),
        gpus: GpuAsk::Whole { count: gpus },
        models: models.to_vec(),
        min_gpu_memory: None,
        cpu: Cpu::default(),
        memory: Bytes::default(),
        topology: None,
        spread: None,
        labels: LabelAsk::default(),
        tolerations: Vec::new(),
        near: Vec::new(),
        counted: BTreeMap::new(),
        nodes: None,
    }
}

pub(super) fn limit(job: &Job) -> Span {
    job.estimate.max(Span::secs(1))
}

/// Jobs are numbered from 1 on, as a server would.
pub(super) fn id(number: u32) -> JobId {
    JobId::new(u64::from(number) + 1)
}

pub(super) fn id_of(place: usize) -> JobId {
    id(place as u32)
}

pub(super) fn number(id: JobId) -> usize {
    id.number as usize - 1
}
