//! Carrying out what was decided about Berth's own jobs. What concerns one lease is done in its
//! order, and a stop does not wait for a start that cannot be done.

use super::logs::{Logs, Step};
use super::sight::{BERTH, JOB, MANAGED};
use super::{Create, Made, Order, Settings, Teams, claims, manifest};
use crate::clock;
use crate::engine::{Handle, Inlet};
use crate::kube::orders::LEASE;
use crate::kube::patience::patiently;
use crate::vault::Vault;
use berth_kube::{Api, Error, escape};
use berth_model::{Cause, JobId, LeaseId, Span};
use berth_node::{Ended, Observed};
use serde::Deserialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

/// Pods that are made at once.
const AT_ONCE: usize = 64;
/// A quota that is exceeded may be so only until the last pod has gone.
const QUOTA_PAUSE: Duration = Duration::from_millis(500);
const QUOTA_TRIES: u32 = 120;
/// How long a pod that is to end waits for its log to be fetched.
const BRIEFLY: Duration = Duration::from_secs(2);
/// How often it is looked for services that nobody needs.
const TIDY_EVERY: Duration = Duration::from_secs(2);

/// Nothing special about a deletion.
static NO_OPTIONS: BTreeMap<&str, &str> = BTreeMap::new();

/// What is worked with.
pub struct Tools {
    pub api: Api,
    pub vault: Vault,
    pub settings: Settings,
    /// The scheduler that pods name: whose they are.
    pub scheduler: String,
    pub logs: Arc<Logs>,
    pub teams: Arc<Teams>,
    pub inlet: Inlet,
    pub services: Services,
}

/// Services that were made, for as long as their jobs are there.
#[derive(Default)]
pub struct Services(Mutex<BTreeSet<(JobId, String)>>);

impl Services {
    /// Whether it was not known before.
    fn add(&self, job: JobId, path: String) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).insert((job, path))
    }

    fn remove(&self, job: JobId, path: &str) {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.remove(&(job, path.to_owned()));
    }

    /// Takes out those whose jobs have ended.
    fn ended(&self, is_live: impl Fn(JobId) -> bool) -> Vec<String> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let (live, ended): (BTreeSet<_>, Vec<_>) = {
            let (live, ended): (Vec<_>, Vec<_>) =
                std::mem::take(&mut *all).into_iter().partition(|(job, _)| is_live(*job));
            (live.into_iter().collect(), ended)
        };
        *all = live;
        ended.into_iter().map(|(_, path)| path).collect()
    }
}

/// Why there is no pod.
enum Failure {
    /// There never will be one.
    Never(String),
    /// Elsewhere or later there may be one.
    Lost(String),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        match error.is_missing() || is_closing(&error) {
            true => Failure::Lost(error.to_string()),
            false => Failure::Never(error.to_string()),
        }
    }
}

/// Deletes services whose jobs have ended, also those of an earlier server.
pub async fn tidy(tools: Arc<Tools>, engine: Handle) {
    let query = format!("labelSelector={}", escape(&format!("{MANAGED}={BERTH},{JOB}")));
    match patiently(|| tools.api.list::<Service>("/api/v1/services", &query)).await {
        Ok(found) => found.items.iter().for_each(|service| {
            let Meta { name, namespace, labels } = &service.metadata;
            if let Some(Ok(job)) = labels.get(JOB).map(|job| job.parse()) {
                tools.services.add(job, path(namespace, "services", name));
            }
        }),
        Err(error) => tracing::warn!(%error, "services of ended jobs are not found"),
    }
    loop {
        tokio::time::sleep(TIDY_EVERY).await;
        let ended = tools.services.ended(|job| engine.core().jobs.contains_key(&job));
        for service in ended {
            match patiently(|| tools.api.delete(&service, &NO_OPTIONS)).await {
                Err(error) if !error.is_missing() => {
                    tracing::warn!(%error, "the service of a job could not be deleted");
                }
                _ => {}
            }
        }
    }
}

#[derive(Deserialize)]
struct Service {
    metadata: Meta,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Meta {
    name: String,
    namespace: String,
    labels: BTreeMap<String, String>,
}

/// Takes orders until nobody gives any.
pub async fn work(tools: Arc<Tools>, mut orders: mpsc::UnboundedReceiver<Order>) {
    let mut lanes: BTreeMap<LeaseId, mpsc::UnboundedSender<Order>> = BTreeMap::new();
    let mut tasks = JoinSet::new();
    let turns = Arc::new(Semaphore::new(AT_ONCE));
    loop {
        tokio::select! {
            order = orders.recv() => {
                let Some(order) = order else { return };
                let lease = order.lease();
                let order = match lanes.get(&lease) {
                    None => order,
                    Some(lane) => match lane.send(order) {
                        Ok(()) => continue,
                        // It was about to end.
                        Err(back) => back.0,
                    },
                };
                let (lane, taken) = mpsc::unbounded_channel();
                let _ = lane.send(order);
                lanes.insert(lease, lane);
                let lane = Lane { tools: tools.clone(), turns: turns.clone(), lease, made: None };
                tasks.spawn(lane.run(taken));
            }
            Some(ended) = tasks.join_next() => {
                if let Ok(lease) = ended
                    && lanes.get(&lease).is_some_and(mpsc::UnboundedSender::is_closed)
                {
                    lanes.remove(&lease);
                }
            }
        }
    }
}

/// What is done about one lease, one thing after the other.
struct Lane {
    tools: Arc<Tools>,
    turns: Arc<Semaphore>,
    lease: LeaseId,
    made: Option<Made>,
}

impl Lane {
    async fn run(mut self, mut orders: mpsc::UnboundedReceiver<Order>) -> LeaseId {
        let mut next = None;
        loop {
            let order = match next.take() {
                Some(order) => Some(order),
                None => orders.recv().await,
            };
            match order {
                None => return self.lease,
                Some(Order::Create(create)) => {
                    self.made = Some(Made { pod: create.pod(), secret: create.has_secrets() });
                    tokio::select! {
                        biased;
                        order = orders.recv() => next = order,
                        made = self.make(&create) => self.tell(made),
                    }
                }
                Some(Order::Stop { pod, cause, grace, .. }) => self.stop(pod, cause, grace).await,
                Some(Order::Remove { pod, .. }) => {
                    self.remove(&pod).await;
                    self.made = None;
                    // What was said before is still heard.
                    orders.close();
                }
                Some(Order::Forget { pod, .. }) => {
                    if let Some(made) = pod.or_else(|| self.made.clone()) {
                        self.delete_secret(&made).await;
                    }
                    orders.close();
                }
            }
        }
    }

    fn tell(&self, made: Result<(), Failure>) {
        let lease = self.lease;
        match made {
            // That it runs its node says.
            Ok(()) => {}
            Err(Failure::Never(why)) => self.tools.inlet.not_started(lease, why),
            Err(Failure::Lost(why)) => {
                let ended = Ended::lost(lease, clock::now(), why);
                self.tools.inlet.observed(Observed::Ended(Box::new(ended)));
            }
        }
    }

    async fn make(&self, create: &Create) -> Result<(), Failure> {
        let tools = &*self.tools;
        let run = &create.start.run;
        let namespace = &create.container.namespace;
        // A semaphore that nobody closes gives turns for ever.
        let _turn = self.turns.acquire().await;
        patiently(|| tools.teams.ensure(&create.start.team, namespace)).await?;
        if let Some(service) = manifest::service(create) {
            self.make_service(create, &service).await?;
        }
        if create.has_secrets() {
            self.make_secret(create).await?;
        }
        if tools.settings.checkpoints.is_some() || manifest::claims(run).next().is_some() {
            let checked = patiently(|| claims::check(&tools.api, create, &tools.settings)).await?;
            checked.map_err(Failure::Never)?;
        }
        let pod = manifest::pod(create, &tools.settings, &tools.scheduler);
        self.make_pod(create, &pod).await
    }

    async fn make_service(&self, create: &Create, service: &Value) -> Result<(), Failure> {
        let namespace = &create.container.namespace;
        let path = format!("/api/v1/namespaces/{namespace}/services");
        let name = service["metadata"]["name"].as_str().unwrap_or_default();
        let (job, at) = (create.start.lease.job, format!("{path}/{name}"));
        if !self.tools.services.add(job, at.clone()) {
            return Ok(());
        }
        let made = there(patiently(|| self.tools.api.post(&path, service)).await);
        if made.is_err() {
            self.tools.services.remove(job, &at);
        }
        made
    }

    async fn make_secret(&self, create: &Create) -> Result<(), Failure> {
        let (tools, start) = (&*self.tools, &create.start);
        let values = tools.vault.open_all(&start.team, start.secrets()).await;
        let values = values.map_err(Failure::Never)?;
        if let Some(missing) = start.secrets().find(|name| !values.contains_key(*name)) {
            let team = &start.team;
            return Err(Failure::Never(format!(
                "team {team} has no secret `{missing}`; add it with `berth secret set {missing}`"
            )));
        }
        let path = format!("/api/v1/namespaces/{}/secrets", create.container.namespace);
        let secret = manifest::secret(create, &values);
        there(patiently(|| tools.api.post(&path, &secret)).await)
    }

    async fn make_pod(&self, create: &Create, pod: &Value) -> Result<(), Failure> {
        let tools = &*self.tools;
        let namespace = &create.container.namespace;
        let path = format!("/api/v1/namespaces/{namespace}/pods");
        for _ in 0..QUOTA_TRIES {
            match patiently(|| tools.api.post(&path, pod)).await {
                Ok(_) => return Ok(()),
                Err(error) if error.is_conflict() => return self.is_ours(create).await,
                Err(error) if is_quota(&error) => tokio::time::sleep(QUOTA_PAUSE).await,
                Err(error) => {
                    if error.is_missing() || is_closing(&error) {
                        // Somebody deleted the namespace.
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
    async fn is_ours(&self, create: &Create) -> Result<(), Failure> {
        #[derive(Deserialize, Default)]
        #[serde(default)]
        struct Found {
            metadata: Marks,
        }
        #[derive(Deserialize, Default)]
        #[serde(default)]
        struct Marks {
            annotations: BTreeMap<String, String>,
        }
        let at = create.pod();
        let path = path(&at.namespace, "pods", &at.name);
        let found: Found = patiently(|| self.tools.api.get(&path)).await?;
        if found.metadata.annotations.get(LEASE) == Some(&self.lease.to_string()) {
            return Ok(());
        }
        let (namespace, name) = (at.namespace, at.name);
        Err(Failure::Never(format!(
            "there is another pod {name} in the namespace {namespace}; delete it, and clone the job"
        )))
    }

    async fn stop(&self, pod: Option<Made>, cause: Cause, grace: Span) {
        let there = match pod.or_else(|| self.made.clone()) {
            None => false,
            Some(made) => {
                // Its output goes with it.
                let step = self.tools.logs.fetch(self.lease, &made.pod);
                Logs::reach(step, Step::CaughtUp, BRIEFLY).await;
                // Zero would take it off the books while it runs.
                self.delete(&made, ((grace.0 + 999) / 1_000).max(1)).await
            }
        };
        if !there {
            let mut ended = Ended::lost(self.lease, clock::now(), "it had no pod".to_owned());
            ended.asked = Some(cause);
            self.tools.inlet.observed(Observed::Ended(Box::new(ended)));
        }
    }

    async fn remove(&self, made: &Made) {
        self.tools.logs.finish(self.lease, &made.pod).await;
        self.delete(made, 1).await;
    }

    /// Whether there was anything to delete. The Secret goes first: whoever finds the pod again
    /// finds the Secret by it, and not the other way round.
    async fn delete(&self, made: &Made, grace_secs: i64) -> bool {
        self.delete_secret(made).await;
        let (api, pod) = (&self.tools.api, &made.pod);
        let mut options = json!({ "gracePeriodSeconds": grace_secs });
        if !pod.uid.is_empty() {
            options["preconditions"] = json!({ "uid": pod.uid });
        }
        let at = path(&pod.namespace, "pods", &pod.name);
        match patiently(|| api.delete(&at, &options)).await {
            Ok(_) => true,
            // It is gone, or another one has its name.
            Err(error) if error.is_missing() || error.is_conflict() => false,
            Err(error) => {
                tracing::error!(%error, "a pod could not be deleted");
                true
            }
        }
    }
}

impl Lane {
    async fn delete_secret(&self, made: &Made) {
        if !made.secret {
            return;
        }
        let secret = path(&made.pod.namespace, "secrets", &made.pod.name);
        let deleted = patiently(|| self.tools.api.delete(&secret, &NO_OPTIONS)).await;
        if let Err(error) = deleted
            && !error.is_missing()
        {
            tracing::warn!(%error, "the secret of a pod could not be deleted");
        }
    }
}

fn path(namespace: &str, kind: &str, name: &str) -> String {
    format!("/api/v1/namespaces/{namespace}/{kind}/{name}")
}

/// What was made before is as good.
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
