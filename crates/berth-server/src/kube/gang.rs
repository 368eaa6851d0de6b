//! From the pods of a gang to a job of the core.

use super::sight::{Asks, PodSight, Wish};
use crate::engine::Submission;
use berth_file::job::{
    Checkpoint, Command, Env, Kind, Launch, LogLimits, Port, RetryPlan, RunSpec, Times,
};
use berth_kube::PodRef;
use berth_model::{GpuAsk, GroupSpec, JobId, JobSpec, LabelAsk, Name, Span, TopologyAsk};
use berth_store::JobKind;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Pods that ask for the same are one group of tasks.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Alike {
    part: Option<(Name, Option<u32>)>,
    asks: Asks,
    labels: LabelAsk,
    topology: Option<TopologyAsk>,
}

/// A job whose tasks are these pods, in the order of the pods it names. They are all of one gang.
pub fn submission(pods: &[&PodSight], queue: &Name) -> Option<Submission> {
    let mut alike: BTreeMap<Alike, Vec<&PodSight>> = BTreeMap::new();
    let mut first: Option<&Wish> = None;
    for pod in pods {
        let wish = pod.wish.as_ref()?.as_ref().ok()?;
        // What is said of the gang as a whole is what its first pod says.
        let known = first.get_or_insert(wish);
        if wish.created < known.created {
            *known = wish;
        }
        let key = Alike {
            part: wish.part.clone(),
            asks: pod.asks.clone(),
            labels: wish.labels.clone(),
            topology: wish.topology.clone(),
        };
        alike.entry(key).or_default().push(pod);
    }
    let wish = first?;
    let mut refs = Vec::with_capacity(pods.len());
    let mut groups = Vec::with_capacity(alike.len());
    let count = pods.len() as u32;
    let several = alike.len() > 1;
    for (at, (key, mut members)) in alike.into_iter().enumerate() {
        // Ranks are numbered by names, and w-10 comes after w-9.
        members.sort_by(|a, b| {
            let key = |pod: &PodSight| (pod.at.name.len(), pod.at.name.clone());
            key(a).cmp(&key(b))
        });
        let all = members.len() as u32;
        // Which of several kinds can be spared, nobody says.
        let part = key.part.as_ref().and_then(|(_, min)| *min);
        let min = part.unwrap_or(if several { all } else { wish.min }).min(all);
        refs.extend(members.iter().map(|pod| pod.at.clone()));
        groups.push(group(&format!("g{at}"), all, min, key));
    }
    let spec = spec(wish, queue, groups);
    let asks = asks(count, &spec.groups);
    Some(Submission {
        spec,
        run: run(wish.grace),
        kind: JobKind::Job,
        file: String::new(),
        asks,
        resume_from: None,
        pods: refs,
    })
}

fn group(name: &str, count: u32, min: u32, key: Alike) -> GroupSpec {
    let Alike { asks, labels, topology, .. } = key;
    GroupSpec {
        name: Name::new(name),
        count,
        min,
        groups: Vec::new(),
        gpus: asks.gpus,
        models: Vec::new(),
        min_gpu_memory: None,
        cpu: asks.cpu,
        memory: asks.memory,
        topology,
        spread: None,
        labels,
        tolerations: Vec::new(),
        near: Vec::new(),
    }
}

fn spec(wish: &Wish, queue: &Name, groups: Vec<GroupSpec>) -> JobSpec {
    JobSpec {
        id: JobId::new(0),
        name: wish.name.clone(),
        queue: queue.clone(),
        user: wish.gang.namespace.clone(),
        project: wish.gang.namespace.clone(),
        experiment: Name::default(),
        labels: BTreeMap::new(),
        priority: wish.priority,
        preemptible: wish.preemptible,
        lifecycle: None,
        submitted: wish.created,
        time_limit: wish.time_limit,
        deadline: None,
        restart_cost: None,
        grace: Some(wish.grace),
        min_runtime: wish.min_runtime,
        preempt_after: wish.preempt_after,
        array: None,
        after: Vec::new(),
        singleton: false,
        begin: None,
        hold: false,
        groups,
    }
}

/// What the pods ask for, in a word.
fn asks(count: u32, groups: &[GroupSpec]) -> String {
    let gpus: u32 = groups.iter().map(|group| group.gpus.count() * group.count).sum();
    let pods = if count == 1 { "1 pod".to_owned() } else { format!("{count} pods") };
    match groups.iter().map(|group| &group.gpus).find(|ask| !matches!(ask, GpuAsk::None)) {
        None => pods,
        Some(GpuAsk::Whole { .. }) if gpus == 1 => format!("{pods}, 1 GPU"),
        Some(GpuAsk::Whole { .. }) => format!("{pods}, {gpus} GPUs"),
        Some(_) => format!("{pods}, parts of {gpus} GPUs"),
    }
}

/// How pods are run is their own affair. A pod that is lost comes again when its controller makes
/// another one; one that fails has failed.
fn run(grace: Span) -> Arc<RunSpec> {
    Arc::new(RunSpec {
        kind: Kind::Job,
        command: Command::Program(Vec::new()),
        env: Env::default(),
        secrets: BTreeMap::new(),
        workdir: None,
        volumes: BTreeMap::new(),
        data: BTreeMap::new(),
        launch: Launch::Once,
        ranks: 1,
        port: Port::None,
        ports: Vec::new(),
        ready: None,
        checkpoint: Checkpoint::default(),
        retry: RetryPlan {
            infra: Times::Forever,
            error: Times::At(0),
            oom: Times::At(0),
            wait: Span::ZERO,
        },
        grace,
        logs: LogLimits::default(),
        sweep: None,
        budget: None,
        notify: Vec::new(),
        open: Vec::new(),
        tags: Vec::new(),
        comment: None,
    })
}

/// The pods of a job by task, as its row keeps them.
pub fn refs(pods: &[PodRef]) -> impl Iterator<Item = (u32, &PodRef)> {
    pods.iter().enumerate().map(|(task, pod)| (task as u32, pod))
}
