//! Worlds to plan in, and decisions by hand.

use berth_core::{Finding, FindingCode, Plan, State, Transaction, check};
use berth_model::{
    Amount, Bytes, Cause, Cpu, Decision, GpuAsk, GpuSpec, GroupSpec, Health, JobId, JobSnapshot,
    JobSpec, LabelAsk, LeaseId, LeaseSnapshot, Lifecycle, Micros, Milli, Name, NodeSnapshot,
    NodeSpec, NodeState, Place, QueueSnapshot, QueueSpec, Share, Slice, Snapshot, Span, Time,
    catalog,
};
use std::collections::{BTreeMap, BTreeSet};

pub const NOW: Time = Time(1_800_000_000_000);

pub fn name(text: &str) -> Name {
    Name::new(text)
}

pub fn node_of(name: &str, gpus: u32, model: &str, rack: &str) -> NodeSpec {
    let gpu = GpuSpec {
        model: Name::new(model),
        memory: catalog(model).expect("a known model").memory,
        health: Health::Ok,
        mig: None,
        division: None,
    };
    NodeSpec {
        name: Name::new(name),
        gpus: vec![gpu; gpus as usize],
        cpu: None,
        memory: None,
        labels: BTreeMap::from([(Name::new("rack"), Name::new(rack))]),
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

pub fn node(name: &str, gpus: u32, rack: &str) -> NodeSpec {
    node_of(name, gpus, "H100-80GB", rack)
}

pub fn queue(name: &str, quota: i64) -> QueueSpec {
    let mut queue = QueueSpec::new(name);
    queue.quota.gpu.total = Some(Amount::Of(Milli::whole(quota)));
    queue
}

pub fn group(gpus: GpuAsk, count: u32) -> GroupSpec {
    GroupSpec {
        name: name("workers"),
        count,
        min: count,
        groups: Vec::new(),
        gpus,
        models: Vec::new(),
        min_gpu_memory: None,
        cpu: Cpu(0),
        memory: Bytes(0),
        topology: None,
        spread: None,
        labels: LabelAsk::default(),
        tolerations: Vec::new(),
        near: Vec::new(),
        counted: BTreeMap::new(),
        nodes: None,
    }
}

pub fn whole(count: u32) -> GpuAsk {
    GpuAsk::Whole { count }
}

pub fn job_with(id: u64, queue: &str, groups: Vec<GroupSpec>) -> JobSpec {
    JobSpec {
        id: JobId::new(id),
        name: Name::from(format!("job-{id}")),
        queue: Name::new(queue),
        user: name("ada"),
        project: name("p"),
        experiment: name("e"),
        labels: BTreeMap::new(),
        priority: 50,
        preemptible: true,
        lifecycle: None,
        submitted: NOW - Span::mins(10),
        time_limit: Some(Span::hours(4)),
        deadline: None,
        restart_cost: None,
        grace: None,
        min_runtime: None,
        preempt_after: None,
        array: None,
        after: Vec::new(),
        singleton: false,
        begin: None,
        hold: false,
        groups,
        data: BTreeSet::new(),
    }
}

pub fn job(id: u64, queue: &str, tasks: u32, gpus: u32) -> JobSpec {
    job_with(id, queue, vec![group(whole(gpus), tasks)])
}

pub fn lease(task: u32, node: &str, slices: Vec<Slice>) -> LeaseSnapshot {
    LeaseSnapshot {
        task,
        attempt: 0,
        node: Name::new(node),
        slices,
        price: Micros::dollars(1),
        since: NOW - Span::hours(1),
        billed: NOW - Span::hours(1),
        bound: true,
        stopping: None,
    }
}

pub fn gpus(range: std::ops::Range<u32>) -> Vec<Slice> {
    range.map(|gpu| Slice { gpu, share: Share::Whole }).collect()
}

/// A job that has run for an hour, one task on each of these places.
pub fn running(spec: JobSpec, places: &[(&str, std::ops::Range<u32>)]) -> JobSnapshot {
    let mut job = JobSnapshot::new(spec);
    job.leases = places
        .iter()
        .enumerate()
        .map(|(task, (node, range))| lease(task as u32, node, gpus(range.clone())))
        .collect();
    job.started = Some(NOW - Span::hours(1));
    job.first_start = job.started;
    job
}

#[derive(Default)]
pub struct World(pub Snapshot);

impl World {
    /// Four nodes of eight GPUs in two racks, and queues a and b with sixteen each.
    pub fn new() -> World {
        World::default()
            .nodes([node("n1", 8, "r1"), node("n2", 8, "r1"), node("n3", 8, "r2")])
            .nodes([node("n4", 8, "r2")])
            .queues([queue("a", 16), queue("b", 16)])
    }

    pub fn nodes(mut self, nodes: impl IntoIterator<Item = NodeSpec>) -> World {
        self.0.now = NOW;
        self.0.topologies = BTreeMap::from([(name("default"), vec![name("rack")])]);
        for spec in nodes {
            let since = NOW - Span::days(1);
            let data = BTreeMap::new();
            self.0.nodes.push(NodeSnapshot { spec, idle_since: None, since, billed: since, data });
        }
        self
    }

    pub fn queues(mut self, queues: impl IntoIterator<Item = QueueSpec>) -> World {
        for spec in queues {
            let spent = Micros(0);
            self.0.queues.push(QueueSnapshot {
                spec,
                credits: 0,
                past_use: 0,
                spent,
                daily: Vec::new(),
            });
        }
        self
    }

    pub fn jobs(mut self, jobs: impl IntoIterator<Item = JobSpec>) -> World {
        self.0.jobs.extend(jobs.into_iter().map(JobSnapshot::new));
        self
    }

    pub fn running(mut self, job: JobSnapshot) -> World {
        self.0.jobs.push(job);
        self
    }

    pub fn with(mut self, change: impl FnOnce(&mut Snapshot)) -> World {
        change(&mut self.0);
        self
    }

    /// The state and its real plan, which must be right.
    pub fn plan(&self) -> (State, Plan) {
        let mut state = State::load(&self.0).expect("the world makes sense");
        let plan = state.plan();
        assert_eq!(check(&state, &plan), [], "a real plan: {:#?}", plan.transactions);
        (state, plan)
    }

    /// The codes found in the real plan after it was spoilt.
    pub fn spoilt(&self, spoil: impl FnOnce(&mut Plan)) -> Vec<FindingCode> {
        let (state, mut plan) = self.plan();
        spoil(&mut plan);
        codes(&check(&state, &plan))
    }

    /// The codes found in a plan of these decisions alone.
    pub fn judged(&self, job: u64, decisions: Vec<Decision>) -> Vec<FindingCode> {
        let state = State::load(&self.0).expect("the world makes sense");
        codes(&check(&state, &plan_of(job, decisions)))
    }
}

pub fn plan_of(job: u64, decisions: Vec<Decision>) -> Plan {
    let transaction = Transaction { job: Some(JobId::new(job)), decisions };
    Plan { at: NOW, transactions: vec![transaction], next: None, blocked: Default::default() }
}

pub fn codes(findings: &[Finding]) -> Vec<FindingCode> {
    let mut codes: Vec<FindingCode> = findings.iter().map(|finding| finding.code).collect();
    codes.sort();
    codes.dedup();
    codes
}

/// The price of so many H100s.
pub fn price(gpus: i64) -> Micros {
    Micros(2_500_000 * gpus)
}

pub fn start(job: u64, task: u32, node: &str, slices: Vec<Slice>) -> Decision {
    let thousandths = |slice: &Slice| match &slice.share {
        Share::Whole => 1_000,
        Share::Fraction(milli) | Share::Mps(milli) | Share::TimeSlice(milli) => milli.0,
        Share::Mig(slot) => {
            slot.profile.as_str()[..1].parse::<i64>().expect("a profile") * 1_000 / 7
        }
    };
    let milli: i64 = slices.iter().map(thousandths).sum();
    Decision::Start {
        lease: LeaseId { job: JobId::new(job), task, attempt: 0 },
        node: Name::new(node),
        slices,
        price: Micros(2_500_000 * milli / 1_000),
        resume: false,
    }
}

pub fn stop(job: u64, task: u32, cause: Cause, for_job: Option<u64>) -> Decision {
    Decision::Stop {
        lease: LeaseId { job: JobId::new(job), task, attempt: 0 },
        cause,
        for_job: for_job.map(JobId::new),
        grace: Span::mins(5),
    }
}

pub fn reserve(job: u64, at: Time, places: &[(&str, std::ops::Range<u32>)]) -> Decision {
    let place = |(task, (node, range)): (usize, &(&str, std::ops::Range<u32>))| Place {
        task: task as u32,
        node: Name::new(node),
        slices: gpus(range.clone()),
    };
    let places = places.iter().enumerate().map(place).collect();
    Decision::Reserve { job: JobId::new(job), at, places, firm: true }
}

/// Queue b holds everything, half of it borrowed; a job of a waits.
pub fn reclaimable() -> World {
    World::new()
        .running(running(job(1, "b", 2, 8), &[("n1", 0..8), ("n2", 0..8)]))
        .running(running(job(2, "b", 1, 8), &[("n3", 0..8)]))
        .running(running(job(3, "b", 1, 8), &[("n4", 0..8)]))
        .jobs([job(4, "a", 1, 8)])
}
