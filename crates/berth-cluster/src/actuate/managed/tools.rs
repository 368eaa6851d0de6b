//! What the workers of managed pods share.

use super::logs::Logs;
use super::services::Services;
use crate::options::PodSettings;
use crate::state::observation::Observation;
use crate::state::pod_orders::LeaseEnd;
use crate::tenancy::Teams;
use berth_engine::{Detail, Inlet};
use berth_kube::Api;
use berth_model::PodRef;
use berth_model::{JobId, LeaseId};
use berth_service::Vault;
use berth_store::Store;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::Semaphore;

/// Between two tries to read the store.
const STORE_RETRY: Duration = Duration::from_secs(2);

/// What is worked with.
pub struct Tools {
    pub api: Api,
    pub store: Store,
    pub vault: Vault,
    pub settings: PodSettings,
    /// The scheduler that pods name: whose they are.
    pub scheduler: String,
    pub logs: Arc<Logs>,
    pub teams: Arc<Teams>,
    /// For leases that are over and have no pod by which that is observed.
    pub inlet: Inlet<Observation>,
    pub services: Services,
}

/// What the store has of a job: the namespace of its pods, and the name that theirs begin with.
pub(super) struct JobRecord {
    pub namespace: String,
    pub name: String,
}

impl Tools {
    pub(super) async fn lease_ended(&self, lease: LeaseId, over: LeaseEnd) {
        self.inlet.site(Observation::TaskOver { lease, over }).await;
    }

    /// Nothing for jobs that do not exist, or that came as pods.
    pub(super) async fn job_record(&self, job: JobId) -> Option<JobRecord> {
        let row = loop {
            match self.store.job(job).await {
                Ok(row) => break row?,
                Err(error) => tracing::warn!(%error, %job, "a job cannot be read; trying again"),
            }
            tokio::time::sleep(STORE_RETRY).await;
        };
        let detail: Detail = serde_json::from_str(&row.detail).ok()?;
        let namespace = detail.workload.run()?.container.as_ref()?.namespace.clone();
        Some(JobRecord { namespace, name: row.name })
    }
}

/// What is done about one lease, one thing after the other.
pub(super) struct LeaseWorker {
    pub tools: Arc<Tools>,
    pub turns: Arc<Semaphore>,
    pub lease: LeaseId,
    /// The pod that was to be made.
    pub made: Option<PodRef>,
}

pub(super) fn path(namespace: &str, kind: &str, name: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/{kind}/{name}")
}
