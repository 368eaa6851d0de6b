//! Which of several replicas leads: whoever has the Lease, for as long as it is renewed.
//!
//! Clocks of two machines are not compared. A replica that stands by measures by its own clock how
//! long the Lease has not changed; the one that leads stops before that time is over.

use super::api::{Api, decode};
use super::error::Result;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::time::Duration;
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep, sleep_until, timeout};

/// How long it is tried to give the Lease back.
const RELEASE_TIMEOUT: Duration = Duration::from_secs(2);

/// Where the Lease is, and who wants it.
#[derive(Debug, Clone)]
pub struct LeaderElection {
    api: Api,
    namespace: String,
    name: String,
    identity: String,
    /// After so long without a sign of life another one may lead.
    duration: Duration,
}

/// As far as we read and write it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(default)]
struct Lease {
    metadata: LeaseMeta,
    spec: LeaseSpec,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct LeaseMeta {
    resource_version: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct LeaseSpec {
    holder_identity: Option<String>,
    lease_duration_seconds: Option<u32>,
    acquire_time: Option<String>,
    renew_time: Option<String>,
    lease_transitions: Option<u32>,
}

/// The Lease is ours.
#[derive(Debug)]
pub struct AcquiredLease {
    election: LeaderElection,
    lease: Lease,
    /// When it was last written with success: before the answer, since others may count from there.
    renewed: Instant,
}

impl LeaderElection {
    pub fn new(
        api: Api,
        namespace: &str,
        name: &str,
        identity: String,
        duration: Duration,
    ) -> LeaderElection {
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        LeaderElection { api, namespace, name, identity, duration }
    }

    /// Waits until the Lease is ours. `tell` learns who leads, each time that changes.
    pub async fn acquire(&self, mut tell: impl FnMut(&str)) -> Result<AcquiredLease> {
        let mut seen: Option<(Lease, Instant)> = None;
        let mut told = String::new();
        loop {
            match self.try_acquire(&mut seen).await {
                Ok(Some(term)) => return Ok(term),
                Ok(None) => {}
                // Without the right to it this replica would stand by for ever.
                Err(error) if error.is_denied() => return Err(error),
                Err(error) => tracing::warn!(%error, "standing by; trying again"),
            }
            let holder = seen.as_ref().and_then(|(lease, _)| lease.spec.holder_identity.clone());
            let holder = holder.unwrap_or_default();
            if holder != told {
                tell(&holder);
                told = holder;
            }
            sleep(self.pause()).await;
        }
    }

    async fn try_acquire(
        &self,
        seen: &mut Option<(Lease, Instant)>,
    ) -> Result<Option<AcquiredLease>> {
        let now = Instant::now();
        let found = match timeout(self.duration, self.api.get::<Lease>(&self.path())).await {
            Err(_) => return Ok(None),
            Ok(Err(error)) if error.is_not_found() => return self.create(now).await,
            Ok(found) => found?,
        };
        if seen.as_ref().is_none_or(|(lease, _)| *lease != found) {
            *seen = Some((found.clone(), now));
        }
        let since = seen.as_ref().map_or(now, |(_, since)| *since);
        let holder = found.spec.holder_identity.clone().unwrap_or_default();
        let lasts = found.spec.lease_duration_seconds.map_or(self.duration, |seconds| {
            // Whoever leads may have been told another time than we were.
            Duration::from_secs(seconds.into()).max(self.duration)
        });
        let is_over = now.duration_since(since) > lasts;
        if !holder.is_empty() && holder != self.identity && !is_over {
            return Ok(None);
        }
        let mut lease = found;
        if holder != self.identity {
            lease.spec.acquire_time = Some(micro_time());
            lease.spec.lease_transitions =
                Some(lease.spec.lease_transitions.unwrap_or(0).saturating_add(1));
        }
        let mut term = AcquiredLease { election: self.clone(), lease, renewed: now };
        match term.renew().await {
            Ok(()) => Ok(Some(term)),
            Err(error) if error.is_conflict() => Ok(None),
            Err(error) => Err(error),
        }
    }

    async fn create(&self, now: Instant) -> Result<Option<AcquiredLease>> {
        let spec = LeaseSpec {
            acquire_time: Some(micro_time()),
            lease_transitions: Some(0),
            ..self.signed(LeaseSpec::default())
        };
        let body = json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": { "name": self.name, "namespace": self.namespace },
            "spec": spec,
        });
        let folder = format!("/apis/coordination.k8s.io/v1/namespaces/{}/leases", self.namespace);
        match self.api.post(&folder, &body).await {
            Ok(answer) => {
                let lease = decode(&self.path(), &answer)?;
                Ok(Some(AcquiredLease { election: self.clone(), lease, renewed: now }))
            }
            Err(error) if error.is_conflict() => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn signed(&self, spec: LeaseSpec) -> LeaseSpec {
        LeaseSpec {
            holder_identity: Some(self.identity.clone()),
            lease_duration_seconds: Some(self.duration.as_secs().max(1) as u32),
            renew_time: Some(micro_time()),
            ..spec
        }
    }

    fn path(&self) -> String {
        let LeaderElection { namespace, name, .. } = self;
        format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{name}")
    }

    /// Between two looks, or two signs of life.
    fn pause(&self) -> Duration {
        self.duration / 6
    }

    /// The one that leads stops this long after its last sign of life: well before anybody may take
    /// its place, so that what it has under way is over by then.
    fn deadline(&self) -> Duration {
        self.duration * 2 / 3
    }
}

/// The Lease is ours and is renewed, until this is dropped. A thread of its own does it: the others
/// may be busy with a large cluster for as long as that takes.
#[derive(Debug)]
pub struct HeldLease {
    over: oneshot::Receiver<()>,
    release: oneshot::Sender<()>,
    renewed: watch::Receiver<Instant>,
    /// So long after its last sign of life this replica must not act, whatever the thread does.
    deadline: Duration,
}

impl HeldLease {
    /// Returns when this replica must not act any more.
    pub async fn lost(&mut self) {
        loop {
            let until = *self.renewed.borrow() + self.deadline;
            tokio::select! {
                // The thread that renews the lease has ended.
                _ = &mut self.over => return,
                () = sleep_until(until) => {}
            }
            if *self.renewed.borrow() + self.deadline <= Instant::now() {
                return tracing::error!("the lease was not renewed in time");
            }
        }
    }

    /// Lets another replica lead at once.
    pub async fn release(self) {
        if self.release.send(()).is_ok() {
            let _ = timeout(RELEASE_TIMEOUT * 2, self.over).await;
        }
    }
}

impl AcquiredLease {
    /// Renews from now on.
    pub fn renew_in_background(self) -> HeldLease {
        let (tell, over) = oneshot::channel();
        let (release, told) = oneshot::channel();
        let (tell_renewed, renewed) = watch::channel(self.renewed);
        let deadline = self.election.deadline();
        let keeping = move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            match runtime {
                Ok(runtime) => {
                    runtime.block_on(self.renew_until(told, &tell_renewed));
                    let _ = tell.send(());
                    // A DNS lookup or a credential plugin may still run, and is not waited for.
                    runtime.shutdown_background();
                }
                Err(error) => tracing::error!(%error, "the lease cannot be renewed"),
            }
        };
        let thread = std::thread::Builder::new().name("lease".to_owned()).spawn(keeping);
        if let Err(error) = thread {
            tracing::error!(%error, "the lease cannot be renewed");
        }
        HeldLease { over, release, renewed, deadline }
    }

    async fn renew_until(mut self, release: oneshot::Receiver<()>, tell: &watch::Sender<Instant>) {
        match self.election.api.with_own_connections() {
            Ok(api) => self.election.api = api,
            Err(error) => return tracing::error!(%error, "the lease cannot be renewed"),
        }
        tokio::select! {
            () = self.renew_repeatedly(tell) => {}
            asked = release => {
                if asked.is_ok() {
                    self.release().await;
                }
            }
        }
    }

    /// Renews for as long as that works.
    async fn renew_repeatedly(&mut self, tell: &watch::Sender<Instant>) {
        loop {
            sleep(self.election.pause()).await;
            let left = self.election.deadline().checked_sub(self.renewed.elapsed());
            let Some(left) = left else {
                tracing::error!("the lease could not be renewed in time");
                return;
            };
            let renewed = timeout(left, self.renew()).await;
            tell.send_replace(self.renewed);
            let Ok(Err(error)) = renewed else { continue };
            tracing::warn!(%error, "the lease was not renewed");
            let ours = timeout(left, self.is_still_ours());
            if error.is_conflict() && ours.await == Ok(false) {
                tracing::error!("another replica has taken the lease");
                return;
            }
        }
    }

    /// Asks after a conflict: another client may have written to the lease without taking it over.
    async fn is_still_ours(&mut self) -> bool {
        let Ok(found) = self.election.api.get::<Lease>(&self.election.path()).await else {
            return true;
        };
        let ours = found.spec.holder_identity.as_deref() == Some(&self.election.identity);
        if ours {
            self.lease = found;
        }
        ours
    }

    async fn renew(&mut self) -> Result<()> {
        let now = Instant::now();
        let spec = self.election.signed(self.lease.spec.clone());
        self.lease = self.write(spec).await?;
        self.renewed = now;
        Ok(())
    }

    async fn write(&self, spec: LeaseSpec) -> Result<Lease> {
        let LeaderElection { api, namespace, name, .. } = &self.election;
        let path = self.election.path();
        let body = json!({
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": {
                "name": name,
                "namespace": namespace,
                "resourceVersion": self.lease.metadata.resource_version,
            },
            "spec": spec,
        });
        decode(&path, &api.put(&path, &body).await?)
    }

    async fn release(self) {
        let spec = LeaseSpec {
            holder_identity: Some(String::new()),
            lease_duration_seconds: Some(1),
            ..self.election.signed(self.lease.spec.clone())
        };
        if let Ok(Err(error)) = timeout(RELEASE_TIMEOUT, self.write(spec)).await {
            tracing::warn!(%error, "the lease was not given back; it runs out by itself");
        }
    }
}

/// As a Lease has it: in microseconds, always six digits.
fn micro_time() -> String {
    format!("{:.6}", Timestamp::now())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_have_six_digits_behind_the_second() {
        let text = micro_time();
        let (_, digits) = text.split_once('.').unwrap();
        assert_eq!(digits.len(), "123456Z".len(), "{text}");
    }
}
