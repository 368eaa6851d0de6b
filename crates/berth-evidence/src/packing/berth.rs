//! The core on the same pods: each is a job that starts at once or is taken back.

use super::openb::Cluster;
use super::placer::Placer;
use crate::drive::plan_and_check;
use crate::world::{START, queue};
use anyhow::{Context, Result, ensure};
use berth_core::{Plan, State};
use berth_model::{
    Bytes, Cpu, Decision, Event, GpuAsk, GpuSpec, GroupSpec, Health, JobId, JobSpec, LabelAsk,
    Lifecycle, Milli, ModelAsk, Name, NodeSnapshot, NodeSpec, NodeState, Pass, Policy, RecentAsk,
    Share, Snapshot, Span, Stamped,
};
use berth_sim::packing::{List, Node, Pod, Progress, Ties, Typical, WHOLE};
use berth_sim::random::Rng;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

const QUEUE: &str = "team";
const MIB: i64 = 1_048_576;

/// A state, and what the decisions mean on nodes that are counted apart from it.
pub struct Core<'l> {
    state: State,
    list: &'l List,
    types: Vec<Name>,
    nodes: Vec<Node>,
    by_name: BTreeMap<Name, usize>,
    typical: Typical,
    progress: Progress,
}

impl<'l> Core<'l> {
    /// The core breaks ties by the order in which nodes joined: that of their names, or a random
    /// one.
    pub fn new(cluster: &Cluster, list: &'l List, ties: Ties, seed: u64) -> Result<Core<'l>> {
        let mut nodes = cluster.nodes.clone();
        if ties == Ties::Random {
            Rng::new(seed ^ 0x7469_6573).shuffle(&mut nodes);
        }
        let types: Vec<Name> = cluster.types.iter().map(|name| Name::new(name)).collect();
        let name = |node: &Node| Name::from(format!("n{}", node.name));
        let policy = Policy {
            // Only what puts a new job somewhere: nothing that runs is moved or stopped.
            passes: BTreeSet::from([Pass::Place]),
            ..Policy::default()
        };
        // Rivals know the common shapes of the list from the start. The core learns them from what
        // started of late, so it is given as much of the list as it would remember.
        let step = (list.pods.len() / policy.mix as usize).max(1);
        let recent =
            list.pods.iter().step_by(step).take(policy.mix as usize).map(|pod| RecentAsk {
                gpus: Milli(pod.total_milli()),
                cpu: Cpu(pod.cpu_milli),
                memory: Bytes(pod.memory_mib * MIB),
            });
        let described = |node: &Node| {
            let spec = spec(name(node), node, &types, &cluster.gpu_memory_mgib);
            NodeSnapshot {
                spec,
                idle_since: Some(START),
                since: START,
                billed: START,
                data: BTreeMap::new(),
            }
        };
        let world = Snapshot {
            now: START,
            nodes: nodes.iter().map(described).collect(),
            queues: vec![queue(QUEUE, None, None, 1)],
            recent: recent.collect(),
            policy,
            ..Snapshot::default()
        };
        let by_name = nodes.iter().enumerate().map(|(at, node)| (name(node), at)).collect();
        Ok(Core {
            state: State::load(&world).context("the openb nodes load")?,
            list,
            types,
            nodes,
            by_name,
            typical: list.typical.clone(),
            progress: Progress::default(),
        })
    }

    fn apply(&mut self, event: Event) -> Result<()> {
        let stamped =
            Stamped { seq: self.state.seq() + 1, at: self.state.now() + Span::ms(1), event };
        let applied = self.state.apply(&stamped);
        let _rows = applied.with_context(|| format!("refused: {:?}", stamped.event))?;
        Ok(())
    }

    /// Records the decisions and starts what they start; whether that was the job.
    fn carry_out(&mut self, plan: &Plan, id: JobId, pod: &Pod) -> Result<bool> {
        for transaction in &plan.transactions {
            let (job, decisions) = (transaction.job, transaction.decisions.clone());
            self.apply(Event::Decided { job, decisions })?;
        }
        let mut started = false;
        for decision in plan.decisions() {
            let Decision::Start { lease, node, slices, .. } = decision else { continue };
            ensure!(lease.job == id, "only the pod that arrived can start");
            started = true;
            self.apply(Event::LeaseStarted { lease: *lease })?;
            let node = &mut self.nodes[self.by_name[node]];
            node.cpu_milli -= pod.cpu_milli;
            node.memory_mib -= pod.memory_mib;
            for slice in slices {
                node.free[slice.gpu as usize] -= milli(&slice.share)?;
            }
            let over = node.free.iter().any(|milli| *milli < 0);
            let fits = node.cpu_milli >= 0 && node.memory_mib >= 0 && !over;
            ensure!(fits, "{} holds more than it has", node.name);
            ensure!(node.is_of(pod.types) || pod.gpus == 0, "{} is of the wrong type", node.name);
        }
        Ok(started)
    }
}

fn milli(share: &Share) -> Result<i64> {
    match share {
        Share::Whole => Ok(WHOLE),
        Share::Fraction(milli) => Ok(milli.0),
        other => anyhow::bail!("nobody asked for {other:?}"),
    }
}

impl Placer for Core<'_> {
    fn arrive(&mut self, at: usize) -> Result<Duration> {
        let pod = self.list.pods[at];
        let id = JobId::new(at as u64 + 1);
        let mut spec = job(id, &pod, &self.types);
        spec.submitted = self.state.now();
        self.apply(Event::JobSubmitted { spec: Box::new(spec) })?;
        let (plan, time) = plan_and_check(&mut self.state, true)?;
        self.progress.arrived_milli += pod.total_milli();
        if self.carry_out(&plan, id, &pod)? {
            self.progress.allocated_milli += pod.total_milli();
        } else {
            self.progress.dropped[pod.size() as usize] += 1;
            self.apply(Event::JobCancelled { job: id })?;
        }
        Ok(time)
    }

    fn progress(&self) -> Progress {
        self.progress
    }

    fn fragmented_milli(&self) -> i64 {
        let sum: i64 = self.nodes.iter().map(|node| self.typical.fragments_of(node)).sum();
        sum / self.typical.weight.max(1)
    }
}

fn spec(name: Name, node: &Node, types: &[Name], gpu_memory_mgib: &[i64]) -> NodeSpec {
    let memory = gpu_memory_mgib[node.gpu_type as usize] * 1_024 / 1_000 * MIB;
    let gpu = GpuSpec {
        model: types[node.gpu_type as usize].clone(),
        memory: Bytes(memory),
        health: Health::Ok,
        mig: None,
        division: None,
    };
    NodeSpec {
        name,
        gpus: vec![gpu; node.free.len()],
        cpu: Some(Cpu(node.cpu_milli)),
        memory: Some(Bytes(node.memory_mib * MIB)),
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

fn job(id: JobId, pod: &Pod, types: &[Name]) -> JobSpec {
    let gpus = match (pod.gpus, pod.is_share()) {
        (0, _) => GpuAsk::None,
        (_, true) => GpuAsk::Fraction { milli: Milli(pod.gpu_milli), count: 1 },
        (count, false) => GpuAsk::Whole { count },
    };
    let named = types.iter().enumerate().filter(|(at, _)| pod.types >> at & 1 == 1);
    let group = GroupSpec {
        name: Name::default(),
        count: 1,
        min: 1,
        groups: Vec::new(),
        gpus,
        models: named
            .map(|(_, name)| ModelAsk { model: name.clone(), speed: Milli::ONE })
            .collect(),
        min_gpu_memory: None,
        cpu: Cpu(pod.cpu_milli),
        memory: Bytes(pod.memory_mib * MIB),
        topology: None,
        spread: None,
        labels: LabelAsk::default(),
        tolerations: Vec::new(),
        near: Vec::new(),
        counted: BTreeMap::new(),
        nodes: None,
    };
    JobSpec {
        groups: vec![group],
        time_limit: Some(Span::days(3_650)),
        ..crate::world::job(
            id.number,
            &Name::new(QUEUE),
            &Name::new("user"),
            crate::world::Ask::new(1, 1),
        )
    }
}
