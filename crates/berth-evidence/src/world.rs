//! Worlds made from a seed: clusters, queues and jobs as snapshots. The same seed gives the same
//! world on every machine. The benchmarks of the core use this file too.

use berth_model::{
    Amount, Bytes, Cpu, GpuAsk, GpuQuota, GpuSpec, GroupSpec, Health, JobId, JobSnapshot, JobSpec,
    LabelAsk, LeaseSnapshot, Lifecycle, Micros, Milli, Name, NodeSnapshot, NodeSpec, NodeState,
    QueueSnapshot, QueueSpec, Quota, Share, Slice, Snapshot, Span, SplitMix64, Time, TopologyAsk,
};
use std::collections::{BTreeMap, BTreeSet};

pub const GPUS: u32 = 8;
const MODEL: &str = "H100-80GB";
const GPU_PRICE: Micros = Micros(2_500_000);

/// The moment every world begins: 2026-06-01T00:00:00Z.
pub const START: Time = Time(1_780_272_000_000);

/// GPUs per job and number of jobs in the Philly trace (Jeon et al., ATC 2019).
pub const PHILLY: [(u32, u64); 8] =
    [(1, 50_188), (2, 904), (4, 945), (8, 713), (12, 7), (16, 65), (24, 4), (32, 23)];

/// Random numbers from a seed, with what worlds draw besides.
#[derive(Debug, Clone)]
pub struct Random(SplitMix64);

impl Random {
    pub fn new(seed: u64) -> Random {
        Random(SplitMix64::new(seed))
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.0.below(bound)
    }

    pub fn one_in(&mut self, n: u64) -> bool {
        self.below(n) == 0
    }

    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        self.0.choose(from)
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        self.0.shuffle(items);
    }

    /// A value by its weight.
    fn weighted(&mut self, among: &[(u32, u64)]) -> u32 {
        let total: u64 = among.iter().map(|(_, weight)| weight).sum();
        let mut left = self.below(total);
        for (value, weight) in among {
            if left < *weight {
                return *value;
            }
            left -= weight;
        }
        among[0].0
    }
}

/// What one job asks for: `tasks` of `gpus` each.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ask {
    pub tasks: u32,
    pub gpus: u32,
    /// All of it in one rack.
    pub rack: bool,
}

impl Ask {
    pub const fn new(tasks: u32, gpus: u32) -> Ask {
        Ask { tasks, gpus, rack: false }
    }

    pub const fn in_one_rack(self) -> Ask {
        Ask { rack: true, ..self }
    }

    /// So many GPUs: on one node where that is enough, otherwise as a gang of whole nodes.
    pub const fn of_size(gpus: u32) -> Ask {
        match gpus {
            0..=GPUS => Ask::new(1, gpus),
            _ if gpus.is_multiple_of(GPUS) => Ask::new(gpus / GPUS, GPUS),
            _ => Ask::new(gpus / 4, 4),
        }
    }

    pub const fn total(self) -> u32 {
        self.tasks * self.gpus
    }

    fn group(self) -> GroupSpec {
        GroupSpec {
            name: Name::default(),
            count: self.tasks,
            min: self.tasks,
            groups: Vec::new(),
            gpus: GpuAsk::Whole { count: self.gpus },
            models: Vec::new(),
            min_gpu_memory: None,
            cpu: Cpu(0),
            memory: Bytes(0),
            topology: self
                .rack
                .then(|| TopologyAsk { required: Some(Name::new("rack")), ..Default::default() }),
            spread: None,
            labels: LabelAsk::default(),
            tolerations: Vec::new(),
            near: Vec::new(),
            counted: BTreeMap::new(),
            nodes: None,
        }
    }
}

pub fn job(id: u64, queue: &Name, user: &Name, ask: Ask) -> JobSpec {
    JobSpec {
        id: JobId::new(id),
        name: Name::new("train"),
        queue: queue.clone(),
        user: user.clone(),
        project: Name::new("project"),
        experiment: Name::default(),
        labels: BTreeMap::new(),
        priority: 50,
        preemptible: true,
        lifecycle: None,
        submitted: START - Span::hours(1),
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
        groups: vec![ask.group()],
        data: BTreeSet::new(),
    }
}

fn node(name: String, zone: &Name, rack: &Name) -> NodeSnapshot {
    let gpu = GpuSpec {
        model: Name::new(MODEL),
        memory: Bytes::gb(80),
        health: Health::Ok,
        mig: None,
        division: None,
    };
    let spec = NodeSpec {
        name: Name::from(name),
        gpus: vec![gpu; GPUS as usize],
        cpu: Some(Cpu::cores(192)),
        memory: Some(Bytes::gib(2_048)),
        labels: BTreeMap::from([
            (Name::new("zone"), zone.clone()),
            (Name::new("rack"), rack.clone()),
        ]),
        taints: Vec::new(),
        nvlink: Vec::new(),
        state: NodeState::Ready,
        price: None,
        pool: None,
        lifecycle: Lifecycle::OnDemand,
        tasks: None,
        counted: BTreeMap::new(),
    };
    let since = START - Span::days(30);
    NodeSnapshot { spec, idle_since: Some(since), since, billed: START, data: BTreeMap::new() }
}

/// A world without queues and jobs.
pub fn cluster(nodes: u32, nodes_per_rack: u32, racks_per_zone: u32) -> Snapshot {
    let place = |at: u32| {
        let rack = at / nodes_per_rack;
        (Name::from(format!("z{:02}", rack / racks_per_zone)), Name::from(format!("r{rack:03}")))
    };
    let nodes = (0..nodes).map(|at| {
        let (zone, rack) = place(at);
        node(format!("n{at:05}"), &zone, &rack)
    });
    Snapshot {
        now: START,
        topologies: BTreeMap::from([(
            Name::new("default"),
            vec![Name::new("zone"), Name::new("rack")],
        )]),
        nodes: nodes.collect(),
        ..Snapshot::default()
    }
}

pub fn gpu_quota(gpus: i64) -> Quota {
    Quota {
        gpu: GpuQuota { total: Some(Amount::Of(Milli::whole(gpus))), ..GpuQuota::default() },
        ..Quota::default()
    }
}

pub fn queue(name: &str, parent: Option<&Name>, quota: Option<i64>, weight: i64) -> QueueSnapshot {
    let spec = QueueSpec {
        parent: parent.cloned(),
        quota: quota.map(gpu_quota).unwrap_or_default(),
        weight: Milli::whole(weight),
        ..QueueSpec::new(name)
    };
    QueueSnapshot { spec, credits: 0, past_use: 0, spent: Micros::ZERO, daily: Vec::new() }
}

/// Makes a job of a spec run on these GPUs, `ran` before now.
pub fn running(spec: JobSpec, places: &[(Name, Vec<u32>)], ran: Span) -> JobSnapshot {
    let started = START - ran;
    let leases = places.iter().enumerate().map(|(task, (node, gpus))| LeaseSnapshot {
        task: task as u32,
        attempt: 0,
        node: node.clone(),
        slices: gpus.iter().map(|gpu| Slice { gpu: *gpu, share: Share::Whole }).collect(),
        price: Micros(GPU_PRICE.0 * gpus.len() as i64),
        since: started,
        billed: START,
        bound: true,
        stopping: None,
    });
    JobSnapshot {
        leases: leases.collect(),
        attempts: (0..places.len() as u32).map(|task| (task, 1)).collect(),
        first_start: Some(started),
        started: Some(started),
        ..JobSnapshot::new(spec)
    }
}

/// GPUs of a world in the making that may still be leased.
struct Space {
    names: Vec<Name>,
    free: Vec<u32>,
    used: Vec<u32>,
}

impl Space {
    fn of(world: &Snapshot) -> Space {
        let names: Vec<Name> = world.nodes.iter().map(|node| node.spec.name.clone()).collect();
        Space { free: vec![GPUS; names.len()], used: vec![0; names.len()], names }
    }

    /// Takes GPUs of the node, from 0 up.
    fn take(&mut self, at: usize, gpus: u32) -> (Name, Vec<u32>) {
        let first = self.used[at];
        self.free[at] -= gpus;
        self.used[at] += gpus;
        (self.names[at].clone(), (first..first + gpus).collect())
    }
}

fn names(stem: &str, n: u64) -> Vec<Name> {
    (0..n).map(|at| Name::from(format!("{stem}{at}"))).collect()
}

/// Empty nodes and `jobs` of one kind that wait in ten queues.
pub fn fill(nodes: u32, jobs: u64, ask: Ask) -> Snapshot {
    let mut world = cluster(nodes, 32, 16);
    let queues = names("team", 10);
    let quota = i64::from(nodes * GPUS) / 10;
    world.queues = queues.iter().map(|name| queue(name, None, Some(quota), 1)).collect();
    let users = names("user", 40);
    for id in 0..jobs {
        let spec = job(id + 1, &queues[(id % 10) as usize], &users[(id % 40) as usize], ask);
        world.jobs.push(JobSnapshot::new(spec));
    }
    world
}

/// One queue without a quota holds every GPU with jobs of one GPU; another waits with as many
/// jobs, all within its quota.
pub fn reclaim(nodes: u32) -> Snapshot {
    let mut world = cluster(nodes, 32, 16);
    let gpus = nodes * GPUS;
    world.queues =
        vec![queue("borrower", None, Some(0), 1), queue("owner", None, Some(i64::from(gpus)), 1)];
    let (borrower, owner) = (Name::new("borrower"), Name::new("owner"));
    let users = names("user", 40);
    for at in 0..gpus {
        let user = &users[at as usize % users.len()];
        let place = (world.nodes[(at / GPUS) as usize].spec.name.clone(), vec![at % GPUS]);
        let spec = job(u64::from(at) + 1, &borrower, user, Ask::new(1, 1));
        world.jobs.push(running(spec, &[place], Span::mins(1 + i64::from(at % 180))));
    }
    for at in 0..gpus {
        let user = &users[at as usize % users.len()];
        let id = u64::from(gpus) + u64::from(at) + 1;
        world.jobs.push(JobSnapshot::new(job(id, &owner, user, Ask::new(1, 1))));
    }
    for node in &mut world.nodes {
        node.idle_since = None;
    }
    world
}

/// 1,000 nodes in racks of 64; `free` GPUs are free, dealt out over all racks but the first, which
/// has `in_first` free ones. Everything else is leased. One gang waits that must lie in one rack.
pub fn refuse(free: u32, in_first: u32, gang: Ask) -> Snapshot {
    const RACK: u32 = 64;
    let mut world = cluster(1_024, RACK, 4);
    let team = Name::new("team");
    let gpus = i64::from(1_024 * GPUS);
    world.queues = vec![queue("team", None, Some(gpus), 1)];
    // Tasks of whole nodes are refused for want of whole nodes; others for want of GPUs.
    let step = if gang.gpus == GPUS { GPUS } else { 1 };
    let mut free_on = vec![0; world.nodes.len()];
    for at in 0..in_first / step {
        free_on[(at % RACK) as usize] += step;
    }
    let (mut left, mut at) = (free.saturating_sub(in_first), 0);
    while left > 0 {
        let (rack, turn) = (1 + at % 15, at / 15);
        free_on[(rack * RACK + turn % RACK) as usize] += step;
        left = left.saturating_sub(step);
        at += 1;
    }
    let mut space = Space::of(&world);
    let users = names("user", 40);
    let mut id = 0;
    for (at, wanted) in free_on.into_iter().enumerate() {
        while space.free[at] > wanted {
            id += 1;
            let place = space.take(at, 1);
            let mut spec = job(id, &team, &users[id as usize % users.len()], Ask::new(1, 1));
            spec.time_limit = Some(Span::hours(4 + (id % 20) as i64));
            let mut made = running(spec, &[place], Span::mins(1 + (id % 180) as i64));
            made.last_checkpoint = id.is_multiple_of(2).then_some(START - Span::mins(1));
            world.jobs.push(made);
            world.nodes[at].idle_since = None;
        }
    }
    world.jobs.push(JobSnapshot::new(job(id + 1, &team, &users[0], gang.in_one_rack())));
    world
}

/// How the jobs of a large cluster are drawn.
#[derive(Debug, Clone)]
pub struct Load {
    pub random: Random,
    queues: Vec<Name>,
    users: Vec<Name>,
    /// The number of the last job.
    pub last: u64,
}

const LIMITS: [Span; 9] = [
    Span::mins(15),
    Span::mins(30),
    Span::hours(1),
    Span::hours(2),
    Span::hours(4),
    Span::hours(8),
    Span::hours(12),
    Span::hours(24),
    Span::hours(48),
];

impl Load {
    /// The next job of the load, in that queue: sizes as in the trace, and of those that wait
    /// every tenth a gang that must lie in one rack.
    fn job(&mut self, queue: usize, gangs: bool) -> (JobSpec, Ask) {
        self.last += 1;
        let ask = if gangs && self.last.is_multiple_of(10) {
            Ask::of_size(self.random.weighted(&PHILLY[4..])).in_one_rack()
        } else {
            Ask::of_size(self.random.weighted(&PHILLY))
        };
        let user = self.random.below(5) as usize;
        let user = &self.users[queue * 5 + user];
        let mut spec = job(self.last, &self.queues[queue], user, ask);
        spec.name = Name::from(format!("train-{}", self.random.below(20)));
        spec.time_limit = Some(*self.random.pick(&LIMITS));
        spec.priority = match self.random.below(100) {
            0..5 => 100,
            5..15 => 10,
            _ => 50,
        };
        (spec, ask)
    }

    /// A job that somebody submits at that time.
    pub fn submission(&mut self, at: Time) -> JobSpec {
        let queue = self.random.below(self.queues.len() as u64) as usize;
        let (mut spec, _) = self.job(queue, true);
        spec.submitted = at;
        spec
    }
}

/// Queues in three levels, 4 × 10 × 5: what the 200 leaves are guaranteed sums to four fifths of
/// the cluster. Returns the leaves with their quotas.
fn tree(world: &mut Snapshot, random: &mut Random, gpus: i64) -> Vec<(Name, i64)> {
    let mut leaves = Vec::new();
    let mut sizes: Vec<i64> = (0..200).map(|_| 2 + random.below(7) as i64).collect();
    let total: i64 = sizes.iter().sum();
    for size in &mut sizes {
        *size = (*size * gpus * 4 / 5 / total).max(1);
    }
    let mut sizes = sizes.into_iter();
    for top in 0..4 {
        let top = Name::from(format!("org{top}"));
        let weight = 1 + random.below(3) as i64;
        world.queues.push(queue(&top, None, None, weight));
        for middle in 0..10 {
            let middle = Name::from(format!("{top}-dep{middle}"));
            world.queues.push(queue(&middle, Some(&top), None, 1 + random.below(3) as i64));
            for team in 0..5 {
                let name = Name::from(format!("{middle}-team{team}"));
                let quota = sizes.next().expect("one for each leaf");
                let mut leaf = queue(&name, Some(&middle), Some(quota), 1 + random.below(4) as i64);
                // Some may use only so much beyond what they are guaranteed.
                if random.one_in(5) {
                    leaf.spec.limit = gpu_quota(quota * 2);
                }
                world.queues.push(leaf);
                leaves.push((name, quota));
            }
        }
    }
    leaves
}

/// A large busy cluster: racks of 32 nodes, nine GPUs of ten leased, 200 leaf queues in three
/// levels, eight waiting jobs per node with the sizes of the Philly trace.
pub fn busy(nodes: u32, seed: u64) -> (Snapshot, Load) {
    let mut random = Random::new(seed);
    let mut world = cluster(nodes, 32, 16);
    let gpus = i64::from(nodes * GPUS);
    let leaves = tree(&mut world, &mut random, gpus);
    let mut load = Load {
        random,
        queues: leaves.iter().map(|(name, _)| name.clone()).collect(),
        users: names("user", 1_000),
        last: 0,
    };
    lease(&mut world, &mut load, &leaves, gpus * 9 / 10);
    // Numbers on from a multiple of ten, so that exactly every tenth waiting job is a gang.
    load.last = load.last.next_multiple_of(10);
    for _ in 0..u64::from(nodes) * 8 {
        let queue = load.random.below(200) as usize;
        let (mut spec, _) = load.job(queue, true);
        spec.submitted = START - Span::secs(1 + load.random.below(26 * 3_600) as i64);
        world.jobs.push(JobSnapshot::new(spec));
    }
    (world, load)
}

/// Leases `gpus` of the cluster: each queue holds what it is guaranteed and an eighth more, give
/// or take a tenth.
fn lease(world: &mut Snapshot, load: &mut Load, leaves: &[(Name, i64)], gpus: i64) {
    let mut space = Space::of(world);
    // One node in five has a few GPUs free: half of what is free lies scattered like that.
    for free in &mut space.free {
        if load.random.one_in(5) {
            *free -= 1 + load.random.below(4) as u32;
        }
    }
    let mut order: Vec<usize> = (0..space.names.len()).collect();
    load.random.shuffle(&mut order);
    let mut left = gpus;
    let mut wanted: Vec<i64> = leaves
        .iter()
        .map(|(_, quota)| quota * 9 / 8 * (90 + load.random.below(21) as i64) / 100)
        .collect();
    let mut turn = 0;
    while left > 0 {
        turn += 1;
        let queue = turn % leaves.len();
        if wanted[queue] <= 0 && wanted.iter().any(|more| *more > 0) {
            continue;
        }
        let (mut spec, ask) = load.job(queue, false);
        let Some(places) = place(&mut space, &mut order, ask) else { continue };
        let limit = spec.time_limit.unwrap_or(Span::hours(1));
        // It has had between nothing and nine tenths of its time.
        let ran = Span(load.random.below(limit.0 as u64 * 9 / 10) as i64 + 1);
        spec.submitted = START - ran - Span::secs(load.random.below(36_000) as i64);
        let mut made = running(spec, &places, ran);
        if load.random.one_in(2) {
            made.last_checkpoint = Some(START - Span(load.random.below(ran.0 as u64) as i64));
        }
        world.jobs.push(made);
        wanted[queue] -= i64::from(ask.total());
        left -= i64::from(ask.total());
    }
    for (node, used) in world.nodes.iter_mut().zip(&space.used) {
        if *used > 0 {
            node.idle_since = None;
        }
    }
}

/// Takes places for the tasks of a job on the first nodes with room.
fn place(space: &mut Space, order: &mut Vec<usize>, ask: Ask) -> Option<Vec<(Name, Vec<u32>)>> {
    let mut chosen: Vec<usize> = Vec::new();
    let mut at = 0;
    while chosen.len() < ask.tasks as usize {
        let node = *order.get(at)?;
        let mine = chosen.iter().filter(|other| **other == node).count() as u32;
        if space.free[node] >= ask.gpus * (mine + 1) {
            chosen.push(node);
        } else {
            at += 1;
        }
    }
    let places = chosen.iter().map(|node| space.take(*node, ask.gpus)).collect();
    while order.first().is_some_and(|node| space.free[*node] == 0) {
        order.remove(0);
    }
    Some(places)
}
