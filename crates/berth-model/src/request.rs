//! A job that is asked for.

use crate::run::{
    Checkpoint, Command, Env, Launch, LogLimits, Network, Port, RetryPlan, RunSpec, Times,
};
use crate::{
    ArraySpec, Dependency, GroupSpec, JobId, JobKind, JobSpec, Lifecycle, Name, PodRef, Span, Time,
};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Everything about a job but its number and the time of its submission: the log gives it those.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct JobRequest {
    pub name: Name,
    pub kind: JobKind,
    pub queue: Name,
    pub user: Name,
    pub project: Name,
    pub experiment: Name,
    pub labels: BTreeMap<Name, Name>,
    pub priority: i32,
    pub preemptible: bool,
    pub lifecycle: Option<Lifecycle>,
    pub time_limit: Option<Span>,
    pub deadline: Option<Time>,
    pub restart_cost: Option<Span>,
    pub grace: Option<Span>,
    pub min_runtime: Option<Span>,
    pub preempt_after: Option<Span>,
    pub array: Option<ArraySpec>,
    pub after: Vec<Dependency>,
    pub singleton: bool,
    pub begin: Option<Time>,
    pub hold: bool,
    pub groups: Vec<GroupSpec>,
    pub workload: Workload,
    /// The job file, as it was submitted; empty where there was none.
    pub file: String,
    /// What it asks for, in the words of its file.
    pub asks: String,
    /// It goes on from what another job saved.
    pub resume_from: Option<JobId>,
}

impl JobRequest {
    /// The job as the core schedules it.
    pub fn spec(&self, id: JobId, submitted: Time) -> JobSpec {
        JobSpec {
            id,
            name: self.name.clone(),
            queue: self.queue.clone(),
            user: self.user.clone(),
            project: self.project.clone(),
            experiment: self.experiment.clone(),
            labels: self.labels.clone(),
            priority: self.priority,
            preemptible: self.preemptible,
            lifecycle: self.lifecycle,
            submitted,
            time_limit: self.time_limit,
            deadline: self.deadline,
            restart_cost: self.restart_cost,
            grace: self.grace,
            min_runtime: self.min_runtime,
            preempt_after: self.preempt_after,
            array: self.array.clone(),
            after: self.after.clone(),
            singleton: self.singleton,
            begin: self.begin,
            hold: self.hold,
            groups: self.groups.clone(),
            data: self.workload.run().map(|run| run.kept_data()).unwrap_or_default(),
        }
    }

    /// How it is run, where Berth runs it, to be changed.
    pub fn run_mut(&mut self) -> Option<&mut RunSpec> {
        match &mut self.workload {
            Workload::Run(run) => Some(Arc::make_mut(run)),
            Workload::Pods(_) => None,
        }
    }

    /// Lets it run only on nodes with these labels.
    pub fn require_labels(&mut self, labels: &BTreeMap<Name, Name>) {
        for group in &mut self.groups {
            group.labels.need.extend(labels.clone());
        }
    }
}

/// What the tasks of a job are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Workload {
    /// Processes that Berth starts; all elements of an array share one description.
    Run(Arc<RunSpec>),
    /// Pods that others have made: Berth decides where and when they run, not what.
    Pods(PodWorkload),
}

/// The pods of a job, by task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PodWorkload {
    pub pods: Vec<PodRef>,
    /// From the signal to the kill.
    pub grace: Span,
}

/// A pod that is lost comes again when its controller makes another one; one that fails has failed.
const RETRY_OF_PODS: RetryPlan =
    RetryPlan { infra: Times::Forever, error: Times::At(0), oom: Times::At(0), wait: Span::ZERO };

impl Workload {
    /// How it is run, where Berth runs it.
    pub fn run(&self) -> Option<&Arc<RunSpec>> {
        match self {
            Workload::Run(run) => Some(run),
            Workload::Pods(_) => None,
        }
    }

    /// Its pods, where others made them.
    pub fn pods(&self) -> &[PodRef] {
        match self {
            Workload::Run(_) => &[],
            Workload::Pods(workload) => &workload.pods,
        }
    }

    pub fn pods_mut(&mut self) -> &mut [PodRef] {
        match self {
            Workload::Run(_) => &mut [],
            Workload::Pods(workload) => &mut workload.pods,
        }
    }

    pub fn grace(&self) -> Span {
        match self {
            Workload::Run(run) => run.grace,
            Workload::Pods(workload) => workload.grace,
        }
    }

    pub fn retry(&self) -> RetryPlan {
        match self {
            Workload::Run(run) => run.retry,
            Workload::Pods(_) => RETRY_OF_PODS,
        }
    }
}

/// Rows keep a run for every job, also for one of pods, which has nothing but its grace.
fn run_of_pods(grace: Span) -> RunSpec {
    RunSpec {
        kind: JobKind::Job,
        command: Command::Program(Vec::new()),
        env: Env::default(),
        secrets: BTreeMap::new(),
        workdir: None,
        code: None,
        setup: None,
        volumes: BTreeMap::new(),
        data: BTreeMap::new(),
        network: Network::Machine,
        launch: Launch::Once,
        ranks: 1,
        port: Port::None,
        ports: Vec::new(),
        ready: None,
        checkpoint: Checkpoint::default(),
        retry: RETRY_OF_PODS,
        grace,
        logs: LogLimits::default(),
        sweep: None,
        budget: None,
        notify: Vec::new(),
        stop_when: Vec::new(),
        open: Vec::new(),
        tags: Vec::new(),
        comment: None,
        container: None,
    }
}

/// The stored form: `run`, and `pods` where there are such.
impl Serialize for Workload {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        struct Stored<'a> {
            run: &'a RunSpec,
            #[serde(skip_serializing_if = "<[PodRef]>::is_empty")]
            pods: &'a [PodRef],
        }
        match self {
            Workload::Run(run) => Stored { run, pods: &[] }.serialize(serializer),
            Workload::Pods(PodWorkload { pods, grace }) => {
                Stored { run: &run_of_pods(*grace), pods }.serialize(serializer)
            }
        }
    }
}

impl<'de> Deserialize<'de> for Workload {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Workload, D::Error> {
        #[derive(Deserialize)]
        struct Stored {
            run: RunSpec,
            #[serde(default)]
            pods: Vec<PodRef>,
        }
        let Stored { run, pods } = Stored::deserialize(deserializer)?;
        Ok(match pods.is_empty() {
            true => Workload::Run(Arc::new(run)),
            false => Workload::Pods(PodWorkload { pods, grace: run.grace }),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stored_form_of_pods_is_that_of_a_run_with_pods_and_reads_back() {
        let pod = PodRef { namespace: "a".into(), name: "b".into(), uid: "c".into() };
        let workload = Workload::Pods(PodWorkload { pods: vec![pod], grace: Span::secs(30) });
        let text = serde_json::to_string(&workload).unwrap();
        assert!(text.starts_with(r#"{"run":{"kind":"job","command":{"program":[]}"#), "{text}");
        assert!(text.ends_with(r#""pods":[{"namespace":"a","name":"b","uid":"c"}]}"#), "{text}");
        assert_eq!(serde_json::from_str::<Workload>(&text).unwrap(), workload);
    }
}
