//! Where the output of a job is: with the driver of this machine, or with its pods.

use super::log_layout::Which;
use crate::app::App;
use berth_api::Code;
use berth_cluster::{Logs, Step, pod_ref};
use berth_engine::Detail;
use berth_model::LeaseId;
use berth_model::PodRef;
use berth_node::LogReader;
use berth_service::Fault;
use berth_store::JobRow;
use std::time::Duration;

/// How long a request that does not follow waits for the log to be fetched.
const PATIENCE: Duration = Duration::from_secs(10);

#[derive(Clone)]
pub enum Source {
    Here,
    /// Pods that Berth has made, by the namespace they are in and the name of their job.
    Pods {
        namespace: String,
        name: String,
    },
}

impl Source {
    pub fn of(app: &App, job: &JobRow) -> Result<Source, Fault> {
        if app.machine.is_some() {
            return Ok(Source::Here);
        }
        let detail: Option<Detail> = serde_json::from_str(&job.detail).ok();
        let run = detail.as_ref().and_then(|detail| detail.workload.run());
        match run.and_then(|run| run.container.clone()) {
            Some(container) => {
                Ok(Source::Pods { namespace: container.namespace, name: job.name.clone() })
            }
            // Who may look into it the API server decides.
            None => {
                let detail = format!("job {} came as pods, and is theirs who made them", job.id);
                let next = "use `kubectl logs` and `kubectl exec`";
                Err(Fault::new(Code::WrongState, detail).next(next))
            }
        }
    }

    /// Says so where the output that is asked for was deleted: it is kept for some time only.
    pub async fn must_be_kept(
        &self,
        app: &App,
        job: &JobRow,
        which: Which,
        attempt: Option<u32>,
    ) -> Result<(), Fault> {
        let (Source::Here, Some(machine)) = (self, &app.machine) else { return Ok(()) };
        if !job.state.is_final() || job.started.is_none() {
            return Ok(());
        }
        let leases = app.service.store.leases_of(job.id).await?;
        let wanted = |id: LeaseId| {
            which.has_task(id.task) && attempt.is_none_or(|wanted| wanted == id.attempt)
        };
        let mut ran = leases.iter().filter(|row| row.started.is_some());
        let is_kept = match ran.any(|row| wanted(row.id)) {
            true => leases.iter().any(|row| wanted(row.id) && machine.driver.has_output(row.id)),
            // Its leases are not in the database any more, or there was no such attempt.
            false => !leases.is_empty(),
        };
        if is_kept {
            return Ok(());
        }
        let detail = format!("the output of job {} was deleted", job.id);
        let next = "an operator sees how long output is kept in `berth config server`";
        Err(Fault::new(Code::NotFound, detail).next(next))
    }

    /// The pod of a lease.
    pub fn pod(&self, lease: LeaseId) -> Option<PodRef> {
        match self {
            Source::Here => None,
            Source::Pods { namespace, name } => Some(pod_ref(namespace, name, lease)),
        }
    }

    /// Sees to it that what a pod has printed can be read here.
    pub async fn fetch(&self, app: &App, lease: LeaseId, is_live: bool, follow: bool) {
        let (Some(pod), Some(pods)) = (self.pod(lease), &app.pods) else { return };
        if pods.logs.is_whole(lease) {
            return;
        }
        let step = pods.logs.fetch(lease, &pod);
        let wanted = if is_live { Step::CaughtUp } else { Step::Whole };
        if !follow || !is_live {
            Logs::reach(step, wanted, PATIENCE).await;
        }
    }

    /// The same without an end: the caller has a deadline of its own.
    pub async fn fetched(&self, app: &App, lease: LeaseId, is_live: bool) {
        let (Some(pod), Some(pods)) = (self.pod(lease), &app.pods) else { return };
        if pods.logs.is_whole(lease) {
            return;
        }
        let mut step = pods.logs.fetch(lease, &pod);
        let wanted = if is_live { Step::CaughtUp } else { Step::Whole };
        // It fails where the fetching has ended, and then there is nothing to wait for.
        let _ = step.wait_for(|step| *step >= wanted).await;
    }

    /// Whether Berth has tried long enough to fetch the log of a pod, over several requests.
    pub fn is_given_up(&self, app: &App, lease: LeaseId) -> bool {
        let tried = app.pods.as_ref().and_then(|pods| pods.logs.fetched_for(lease));
        tried.is_none_or(|tried| tried >= PATIENCE)
    }

    /// Whether nothing more will come of a lease that has ended.
    pub fn is_whole(&self, app: &App, lease: LeaseId) -> bool {
        match (self, &app.pods) {
            (Source::Pods { .. }, Some(pods)) => {
                pods.logs.is_whole(lease) || !pods.logs.is_open(lease)
            }
            _ => true,
        }
    }

    pub fn read(&self, app: &App, lease: LeaseId, rank: u32) -> Option<LogReader> {
        match self {
            Source::Here => app.machine.as_ref()?.driver.log(lease, rank).ok(),
            // All ranks of a task print into one log.
            Source::Pods { .. } => app.pods.as_ref()?.logs.read(lease),
        }
    }
}
