//! Deletes services that no job needs any more.

use super::tools::{Tools, path};
use crate::retry::retry_while_recoverable;
use crate::view::managed::{BERTH, JOB, MANAGED};
use crate::view::managed_names::of_job;
use berth_engine::Handle;
use berth_kube::object::Meta;
use berth_kube::percent_encode;
use berth_model::JobId;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// How often Berth looks for services without a job.
const COLLECT_INTERVAL: Duration = Duration::from_secs(2);

/// Nothing special about a deletion.
static NO_OPTIONS: BTreeMap<&str, &str> = BTreeMap::new();

/// Deletes services whose jobs have ended, also those of an earlier server.
pub async fn collect_services(tools: Arc<Tools>, engine: Handle) {
    let query = format!("labelSelector={}", percent_encode(&format!("{MANAGED}={BERTH},{JOB}")));
    match retry_while_recoverable(|| tools.api.list::<Service>("/api/v1/services", &query)).await {
        Ok(found) => {
            for service in found.items {
                remember(&tools, &service.metadata).await;
            }
        }
        Err(error) => tracing::warn!(%error, "services of ended jobs are not found"),
    }
    loop {
        tokio::time::sleep(COLLECT_INTERVAL).await;
        let ended = tools.services.ended(|job| engine.core().jobs.contains_key(&job));
        for service in ended {
            match retry_while_recoverable(|| tools.api.delete(&service, &NO_OPTIONS)).await {
                Err(error) if !error.is_not_found() => {
                    tracing::warn!(%error, "the service of a job could not be deleted");
                }
                _ => {}
            }
        }
    }
}

/// Takes in a service that an earlier server has made. A user can write its label, too, so its name
/// and namespace also have to be those of the job.
async fn remember(tools: &Tools, service: &Meta) {
    let Some(Ok(job)) = service.label(JOB).map(str::parse::<JobId>) else { return };
    let Some(job_record) = tools.job_record(job).await else { return };
    let (namespace, name) = (&*service.namespace, &*service.name);
    if namespace == job_record.namespace && name == of_job(&job_record.name, job) {
        tools.services.add(job, path(namespace, "services", name));
    }
}

#[derive(Deserialize)]
struct Service {
    metadata: Meta,
}
