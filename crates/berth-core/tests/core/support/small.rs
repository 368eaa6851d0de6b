//! Small worlds of like GPUs in which everything can be tried: one job waits, some run wherever
//! they were put, and every set of victims it may take is enumerated.

use super::draw::{Bytes as Raw, Draw};
use super::world::{name, plain_group, plain_job, plain_node};
use super::{drive::START, facts};
use berth_core::State;
use berth_model::*;
use std::collections::{BTreeMap, BTreeSet};

/// Tasks of the running jobs in all; every subset of them is looked at.
const TASKS: usize = 12;

pub const CLAIMANT: JobId = JobId::new(100);

/// What kinds of world to make.
#[derive(Debug, Clone, Copy)]
pub struct Kind {
    /// Jobs of unequal priority.
    pub classes: bool,
    /// Gangs beyond their minimum.
    pub elastic: bool,
}

/// A world with one waiting job.
pub fn snapshot(bytes: &[Raw], kind: Kind) -> Snapshot {
    let mut d = Draw::new(&bytes[0]);
    let mut base = State::new().snapshot();
    base.now = START;
    base.topologies = BTreeMap::from([(Name::new("default"), vec![Name::new("rack")])]);
    base.policy.grace = d.pick(&[Span::mins(5), Span::secs(30)]);
    let gpus = d.pick(&[4, 2, 8]);
    for at in 0..1 + d.below(4) {
        let mut spec = plain_node(&name("n", at), gpus, "H100-80GB");
        spec.labels.insert(Name::new("rack"), name("r", d.below(2)));
        let (since, data) = (START, BTreeMap::new());
        base.nodes.push(NodeSnapshot { spec, idle_since: None, since, billed: since, data });
    }
    // Two or three teams, the first two of them perhaps below one roof.
    let roof = d.one_in(3);
    let capacity = (base.nodes.len() * gpus) as i64;
    let mut quotas = |d: &mut Draw<'_>, name: &str, parent: Option<&str>, gpus: i64| {
        let mut spec = QueueSpec::new(name);
        spec.parent = parent.map(Name::new);
        spec.quota.gpu.total = Some(Amount::Of(Milli::whole(gpus)));
        spec.min_runtime = d.maybe(8, &[Span::mins(30)]);
        base.queues.push(QueueSnapshot {
            spec,
            credits: 0,
            past_use: 0,
            spent: Micros::ZERO,
            daily: Vec::new(),
        });
    };
    if roof {
        let all = d.below(capacity as usize + 1) as i64;
        quotas(&mut d, "roof", None, all);
        let first = d.below(all as usize + 1) as i64;
        quotas(&mut d, "a", Some("roof"), first);
        quotas(&mut d, "b", Some("roof"), all - first);
        quotas(&mut d, "c", None, capacity - all);
    } else {
        let first = d.below(capacity as usize + 1) as i64;
        quotas(&mut d, "a", None, first);
        quotas(&mut d, "b", None, capacity - first);
        if d.one_in(2) {
            quotas(&mut d, "c", None, 0);
        }
    }
    let mut free: Vec<Vec<u32>> = vec![(0..gpus as u32).collect(); base.nodes.len()];
    let leaves: Vec<Name> = base.queues.iter().map(|queue| queue.spec.name.clone()).collect();
    let leaves: Vec<Name> = leaves.into_iter().filter(|name| name.as_str() != "roof").collect();
    let mut tasks = 0;
    for (at, bytes) in bytes[2..].iter().enumerate() {
        let mut d = Draw::new(bytes);
        let queue = d.pick(&leaves);
        let job = running(at as u64 + 1, &queue, &mut d, kind, &mut free, TASKS - tasks);
        tasks += job.leases.len();
        if !job.leases.is_empty() {
            base.jobs.push(job);
        }
    }
    base.jobs.push(JobSnapshot::new(waiting(&mut Draw::new(&bytes[1]), kind)));
    base
}

fn running(
    id: u64,
    queue: &str,
    d: &mut Draw<'_>,
    kind: Kind,
    free: &mut [Vec<u32>],
    most: usize,
) -> JobSnapshot {
    let count = d.pick(&[1, 1, 2, 3]);
    let gpus = d.pick(&[1, 2, 4]);
    let mut group = plain_group(count, GpuAsk::Whole { count: gpus });
    if kind.elastic && d.one_in(2) {
        group.min = 1;
    }
    let mut spec = plain_job(id, queue, vec![group]);
    spec.preemptible = !d.one_in(5);
    spec.submitted = START - Span::hours(2);
    spec.time_limit = Some(Span::hours(10));
    if kind.classes {
        spec.priority = d.pick(&[50, 50, 100, 10]);
    }
    let mut job = JobSnapshot::new(spec);
    let since = START - d.pick(&[Span::hours(1), Span::mins(40), Span::mins(10)]);
    job.started = Some(since);
    job.first_start = Some(since);
    job.last_checkpoint = d.maybe(3, &[START - Span::mins(1)]);
    for task in 0..count {
        let from = d.below(free.len());
        let at = (0..free.len()).map(|n| (from + n) % free.len());
        let fits = at.into_iter().find(|node| free[*node].len() >= gpus as usize);
        let Some(node) = fits.filter(|_| (task as usize) < most) else { break };
        let slices = free[node].drain(..gpus as usize);
        let slices = slices.map(|gpu| Slice { gpu, share: Share::Whole }).collect();
        job.attempts.insert(task, 1);
        job.leases.push(LeaseSnapshot {
            task,
            attempt: 0,
            node: name("n", node),
            slices,
            price: Micros::ZERO,
            since,
            billed: START,
            bound: true,
            stopping: None,
        });
    }
    // A gang that did not fit does not run.
    let min = job.spec.groups[0].min as usize;
    if job.leases.len() < min {
        for lease in std::mem::take(&mut job.leases) {
            let node: usize = lease.node[1..].parse().expect("n and a number");
            free[node].extend(lease.slices.iter().map(|slice| slice.gpu));
            free[node].sort_unstable();
        }
    }
    job
}

fn waiting(d: &mut Draw<'_>, kind: Kind) -> JobSpec {
    let count = d.pick(&[1, 1, 2, 3]);
    let mut group = plain_group(count, GpuAsk::Whole { count: d.pick(&[2, 1, 4, 8]) });
    if d.one_in(3) {
        let required = Some(Name::new(d.pick(&["rack", "node"])));
        group.topology = Some(TopologyAsk { required, ..TopologyAsk::default() });
    }
    let mut spec = plain_job(CLAIMANT.number, d.pick(&["a", "a", "b"]), vec![group]);
    spec.submitted = START - Span::mins(1);
    spec.time_limit = Some(Span::hours(1));
    spec.preemptible = !d.one_in(4);
    if kind.classes {
        spec.priority = d.pick(&[100, 50, 1_000]);
    }
    spec
}

/// The world as plain numbers, with tasks freed one after another.
pub struct Small<'a> {
    snapshot: &'a Snapshot,
    /// Every running task: its job, its node and its GPUs.
    tasks: Vec<(usize, usize, i64)>,
    quotas: BTreeMap<Name, i64>,
    parents: BTreeMap<Name, Option<Name>>,
}

/// Which victims count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Victims {
    All,
    SurplusOnly,
}

impl<'a> Small<'a> {
    pub fn of(snapshot: &'a Snapshot) -> Small<'a> {
        let mut tasks = Vec::new();
        for (at, job) in snapshot.jobs.iter().enumerate() {
            for lease in &job.leases {
                let node = snapshot.nodes.iter().position(|node| node.spec.name == lease.node);
                tasks.push((at, node.expect("it is there"), lease.slices.len() as i64));
            }
        }
        let quota = |queue: &QueueSpec| match queue.quota.gpu.total {
            Some(Amount::Of(milli)) => milli.0 / 1_000,
            _ => 0,
        };
        let specs = || snapshot.queues.iter().map(|queue| &queue.spec);
        Small {
            snapshot,
            tasks,
            quotas: specs().map(|queue| (queue.name.clone(), quota(queue))).collect(),
            parents: specs().map(|queue| (queue.name.clone(), queue.parent.clone())).collect(),
        }
    }

    fn path(&self, leaf: &Name) -> Vec<Name> {
        let above = |queue: &Name| self.parents[queue].clone();
        std::iter::successors(Some(leaf.clone()), |queue| above(queue)).collect()
    }

    fn used(&self, queue: &Name, freed: u32) -> i64 {
        let inside = |job: usize| self.path(&self.snapshot.jobs[job].spec.queue).contains(queue);
        let tasks = self.tasks.iter().enumerate().filter(|(at, _)| freed & (1 << at) == 0);
        tasks.filter(|(_, (job, _, _))| inside(*job)).map(|(_, (_, _, gpus))| gpus).sum()
    }

    pub fn claimant(&self) -> &JobSpec {
        &self.snapshot.jobs.last().expect("the last one waits").spec
    }

    fn asks(&self) -> (i64, i64) {
        let group = &self.claimant().groups[0];
        (i64::from(group.count), i64::from(group.gpus.count()))
    }

    /// Whether the waiting job would leave every queue above it within its quota.
    pub fn within_quota(&self) -> bool {
        let (count, gpus) = self.asks();
        let path = self.path(&self.claimant().queue);
        path.iter().all(|queue| self.used(queue, 0) + count * gpus <= self.quotas[queue])
    }

    /// Whether the waiting job fits with these tasks freed.
    pub fn fits(&self, freed: u32) -> bool {
        let (count, gpus) = self.asks();
        let mut slots: BTreeMap<Name, i64> = BTreeMap::new();
        let required = self.claimant().groups[0].topology.as_ref();
        let required = required.and_then(|topology| topology.required.clone());
        for (at, node) in self.snapshot.nodes.iter().enumerate() {
            let held = self
                .tasks
                .iter()
                .enumerate()
                .filter(|(task, (_, on, _))| *on == at && freed & (1 << task) == 0);
            let held: i64 = held.map(|(_, (_, _, gpus))| gpus).sum();
            let domain = match required.as_deref() {
                Some("node") => node.spec.name.clone(),
                Some(key) => node.spec.labels[key].clone(),
                None => Name::default(),
            };
            *slots.entry(domain).or_default() += (node.spec.gpus.len() as i64 - held) / gpus;
        }
        slots.values().any(|slots| *slots >= count)
    }

    /// Whether a job's queue has to give to the claimant's with these tasks freed: quotas only.
    fn gives(&self, job: usize, freed: u32) -> bool {
        let mut mine = self.path(&self.claimant().queue);
        let mut theirs = self.path(&self.snapshot.jobs[job].spec.queue);
        if mine[0] == theirs[0] {
            return false;
        }
        while let (Some(a), Some(b)) = (mine.last(), theirs.last()) {
            if a != b {
                break;
            }
            mine.pop();
            theirs.pop();
        }
        let theirs = theirs.last().expect("leaves differ");
        self.used(theirs, freed) > self.quotas[theirs]
    }

    /// Whether the job is one of a lower class that the claimant may take from.
    fn below(&self, job: usize) -> bool {
        let (claimant, victim) = (self.claimant(), &self.snapshot.jobs[job].spec);
        let reaches = claimant.queue == victim.queue || claimant.priority >= 1_000;
        reaches && victim.priority < claimant.priority
    }

    /// Whether a job may be stopped at all now.
    fn stoppable(&self, job: usize) -> bool {
        let job = &self.snapshot.jobs[job];
        let queue = self.snapshot.queues.iter().find(|queue| queue.spec.name == job.spec.queue);
        let least = queue.and_then(|queue| queue.spec.min_runtime).unwrap_or_default();
        job.spec.preemptible && job.started.is_some_and(|at| at + least <= self.snapshot.now)
    }

    fn live(&self, job: usize, freed: u32) -> impl Iterator<Item = usize> + '_ {
        let all = self.tasks.iter().enumerate().filter(move |(_, (of, _, _))| *of == job);
        all.map(|(at, _)| at).filter(move |at| freed & (1 << at) == 0)
    }

    /// What may be freed next.
    fn steps(&self, freed: u32, which: Victims) -> Vec<u32> {
        let mut steps = Vec::new();
        for (at, job) in self.snapshot.jobs.iter().enumerate() {
            let live: Vec<usize> = self.live(at, freed).collect();
            let min = job.spec.groups[0].min as usize;
            let own = job.spec.queue == self.claimant().queue;
            let given = self.gives(at, freed) || self.below(at);
            if live.len() > min && (own || given) {
                // The newest member goes first.
                steps.extend(live.last().map(|task| freed | 1 << task));
            }
            if which == Victims::All && !live.is_empty() && given && self.stoppable(at) {
                steps.push(live.iter().fold(freed, |freed, task| freed | 1 << task));
            }
        }
        steps
    }

    /// Whether some victims, each of them one that may be taken when it is, make the job start.
    pub fn could_start(&self, which: Victims) -> bool {
        let mut seen = BTreeSet::from([0u32]);
        let mut open = vec![0u32];
        while let Some(freed) = open.pop() {
            if self.fits(freed) {
                return true;
            }
            open.extend(self.steps(freed, which).into_iter().filter(|next| seen.insert(*next)));
        }
        false
    }

    /// The tasks a plan stops for the waiting job, and whether each is surplus.
    pub fn stopped(&self, stops: &[(LeaseId, Cause)]) -> Vec<(usize, bool)> {
        let mut found = Vec::new();
        for (lease, cause) in stops {
            let job = self.snapshot.jobs.iter().position(|job| job.id() == lease.job);
            let job = job.expect("it runs");
            let before = self.tasks.iter().take_while(|(of, _, _)| *of < job).count();
            let nth = self.snapshot.jobs[job].leases.iter().position(|l| l.task == lease.task);
            found.push((before + nth.expect("it is held"), *cause == Cause::Shrink));
        }
        found
    }

    /// A victim the job would fit without, if there is one.
    pub fn needless(&self, stopped: &[(usize, bool)]) -> Option<JobId> {
        let all = stopped.iter().fold(0u32, |freed, (task, _)| freed | 1 << task);
        let jobs: BTreeSet<usize> = stopped.iter().map(|(task, _)| self.tasks[*task].0).collect();
        for job in jobs {
            let of_job = stopped.iter().filter(|(task, _)| self.tasks[*task].0 == job);
            let units: Vec<u32> = if of_job.clone().all(|(_, surplus)| *surplus) {
                of_job.map(|(task, _)| 1 << task).collect()
            } else {
                vec![of_job.fold(0, |unit, (task, _)| unit | 1 << task)]
            };
            if units.iter().any(|unit| self.fits(all & !unit)) {
                return Some(self.snapshot.jobs[job].id());
            }
        }
        None
    }

    pub fn overcommitted(&self) -> Option<String> {
        facts::overcommitted(self.snapshot)
    }
}
