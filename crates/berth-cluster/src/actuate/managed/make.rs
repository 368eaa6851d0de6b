//! Creates the pod of a lease, and the objects beside it.

use super::claims::{self, ClaimError};
use super::tools::{LeaseWorker, path};
use super::track::Track;
use super::{fetch, manifest};
use crate::options::Fetch;
use crate::retry::retry_while_recoverable;
use crate::state::pod_orders::CreatePod;
use crate::tenancy::NamespaceError;
use crate::view::LEASE;
use crate::view::managed::SECRET;
use berth_kube::Error;
use berth_kube::object::Meta;
use berth_model::PodRef;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::Duration;

/// A quota that is exceeded may be so only until the last pod has gone.
const QUOTA_PAUSE: Duration = Duration::from_millis(500);
const QUOTA_TRIES: u32 = 120;

/// Why there is no pod.
pub enum Failure {
    /// There never will be one.
    Never(String),
    /// Elsewhere or later there may be one.
    Lost(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        match error.is_not_found() || is_closing(&error) {
            true => Failure::Lost(error.to_string()),
            false => Failure::Never(error.to_string()),
        }
    }
}

impl From<NamespaceError> for Failure {
    fn from(error: NamespaceError) -> Failure {
        match error {
            NamespaceError::Api(error) => error.into(),
            refused => Failure::Never(refused.to_string()),
        }
    }
}

impl From<ClaimError> for Failure {
    fn from(error: ClaimError) -> Failure {
        match error {
            ClaimError::Api(error) => error.into(),
            unusable => Failure::Never(unusable.to_string()),
        }
    }
}

/// What is read of a pod that was made.
#[derive(Deserialize)]
struct Found {
    metadata: Meta,
}

impl LeaseWorker {
    pub(super) async fn make(&self, create: &CreatePod) -> Result<(), Failure> {
        let tools = &*self.tools;
        let create = &Track::sealing(create, &tools.settings.fetch);
        let (start, namespace) = (&create.start, &create.container.namespace);
        retry_while_recoverable(|| tools.teams.ensure(&start.team, namespace)).await?;
        if let Some(service) = manifest::service(create) {
            self.make_service(create, &service).await?;
        }
        if tools.settings.checkpoints.is_some() || manifest::claims(&start.run).next().is_some() {
            self.ask(|| claims::check(&tools.api, create, &tools.settings)).await?;
        }
        let fetch = match start.run.is_fetched() {
            true => Some(tools.settings.fetch.check().map_err(Failure::Never)?),
            false => None,
        };
        let values = self.open_secrets(create).await?;
        let pod = self.make_pod(create, fetch.as_ref()).await?;
        match pod.metadata.annotation(SECRET) {
            None => Ok(()),
            Some(secret) => {
                let more = fetch.map(|fetch| self.sealed(create, &fetch)).transpose()?;
                let mut more = more.unwrap_or_default();
                if let Some(track) = Track::of(create, &tools.settings.fetch) {
                    more.extend(track.sealed(create, tools.vault.job_tokens()));
                }
                let secret = manifest::secret(create, &pod.metadata, secret, &values, more);
                self.make_secret(create, &secret).await
            }
        }
    }

    async fn make_service(&self, create: &CreatePod, service: &Value) -> Result<(), Failure> {
        let namespace = &create.container.namespace;
        let path = format!("/api/v1/namespaces/{namespace}/services");
        let name = service["metadata"]["name"].as_str().unwrap_or_default();
        let (job, at) = (create.start.lease.job, format!("{path}/{name}"));
        if !self.tools.services.add(job, at.clone()) {
            return Ok(());
        }
        let made = there(self.ask(|| self.tools.api.post(&path, service)).await);
        if made.is_err() {
            self.tools.services.remove(job, &at);
        }
        made
    }

    async fn open_secrets(&self, create: &CreatePod) -> Result<BTreeMap<String, String>, Failure> {
        let start = &create.start;
        if create.secret.is_none() {
            return Ok(BTreeMap::new());
        }
        let values = self.tools.vault.open_all(&start.team, start.secrets()).await;
        let values = values.map_err(|error| Failure::Never(error.to_string()))?;
        if let Some(missing) = start.secrets().find(|name| !values.contains_key(*name)) {
            let team = &start.team;
            return Err(Failure::Never(format!(
                "team {team} has no secret `{missing}`; add it with `berth secret set {missing}`"
            )));
        }
        Ok(values)
    }

    /// The token by which the pod fetches its code, and what goes with it.
    fn sealed(
        &self,
        create: &CreatePod,
        fetch: &Fetch,
    ) -> Result<BTreeMap<String, String>, Failure> {
        let sealed = fetch::sealed(create, fetch, self.tools.vault.job_tokens());
        // It may be renewed right now.
        let lost = |error| format!("the certificate of the server cannot be read: {error}");
        sealed.map_err(|error| Failure::Lost(lost(error)))
    }

    async fn make_pod(&self, create: &CreatePod, fetch: Option<&Fetch>) -> Result<Found, Failure> {
        let tools = &*self.tools;
        let pod = manifest::pod(create, &tools.settings, fetch, &tools.scheduler);
        let namespace = &create.container.namespace;
        let path = format!("/api/v1/namespaces/{namespace}/pods");
        for _ in 0..QUOTA_TRIES {
            match self.ask(|| tools.api.post(&path, &pod)).await {
                Ok(made) => {
                    let made = serde_json::from_slice(&made);
                    return made.map_err(|error| Failure::Lost(error.to_string()));
                }
                Err(error) if error.is_conflict() => return self.made_before(create).await,
                // Others take their turns meanwhile: it is this team's quota alone.
                Err(error) if is_quota(&error) => tokio::time::sleep(QUOTA_PAUSE).await,
                Err(error) => {
                    if error.is_not_found() || is_closing(&error) {
                        // The namespace was deleted; it is made again with the next pod.
                        tools.teams.forget(namespace).await;
                    }
                    return Err(error.into());
                }
            }
        }
        let why = format!("the ResourceQuota of the namespace {namespace} leaves no room for it");
        Err(Failure::Lost(why))
    }

    /// There is a pod of that name. It is ours if it was made for the same lease before.
    async fn made_before(&self, create: &CreatePod) -> Result<Found, Failure> {
        let at = create.pod();
        match self.look(&at).await? {
            Some(found) => Ok(found),
            None => {
                let (namespace, name) = (at.namespace, at.name);
                Err(Failure::Never(format!(
                    "there is another pod {name} in the namespace {namespace}; delete it, and \
                     clone the job"
                )))
            }
        }
    }

    /// The pod of that name, if it is that of the lease.
    async fn look(&self, at: &PodRef) -> berth_kube::Result<Option<Found>> {
        let path = path(&at.namespace, "pods", &at.name);
        let found: Found = self.ask(|| self.tools.api.get(&path)).await?;
        let lease = self.lease.to_string();
        let is_it = found.metadata.annotation(LEASE) == Some(lease.as_str());
        Ok(is_it.then_some(found))
    }

    /// The pod that was to be made, if it is there. Another one may have its name.
    pub(super) async fn find(&self) -> Option<PodRef> {
        let at = self.made.clone()?;
        match self.look(&at).await {
            Ok(found) => {
                let uid = found?.metadata.uid.to_string();
                Some(PodRef { uid, ..at })
            }
            Err(error) => {
                if !error.is_not_found() {
                    tracing::error!(%error, "a pod could not be looked for");
                }
                None
            }
        }
    }

    /// Made after the pod and owned by it, so that it is deleted with the pod. The kubelet waits
    /// for it before it starts the pod.
    async fn make_secret(&self, create: &CreatePod, secret: &Value) -> Result<(), Failure> {
        let path = format!("/api/v1/namespaces/{}/secrets", create.container.namespace);
        there(self.ask(|| self.tools.api.post(&path, secret)).await)
    }
}

/// An object that an earlier try has made is as good.
fn there(made: berth_kube::Result<Vec<u8>>) -> Result<(), Failure> {
    match made {
        Err(error) if error.is_conflict() => Ok(()),
        made => Ok(made.map(drop)?),
    }
}

/// A quota that is full, or was made just now and has not been counted.
fn is_quota(error: &Error) -> bool {
    match error {
        Error::Refused { code: 403, message, .. } => {
            message.contains("exceeded quota") || message.contains("status unknown for quota")
        }
        _ => false,
    }
}

/// The namespace is being deleted.
fn is_closing(error: &Error) -> bool {
    match error {
        Error::Refused { code: 403, message, .. } => message.contains("being terminated"),
        _ => false,
    }
}
