//! Executes orders about managed jobs. Orders of one lease are executed in their order, and a stop
//! does not wait for a start that cannot succeed.

use super::logs::{Logs, Step};
use super::make::Failure;
use super::tools::{LeaseWorker, Tools, path};
use crate::retry::{MayComeFromApi, retry_while_recoverable};
use crate::state::pod_orders::{LeaseEnd, PodOrder};
use crate::view::managed_names::is_pod_of;
use berth_engine::clock;
use berth_model::Ended;
use berth_model::PodRef;
use berth_model::{Cause, LeaseId, Span};
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Semaphore, mpsc};
use tokio::task::JoinSet;

/// Requests for pods to be made that are under way at once.
const MAX_CONCURRENT_REQUESTS: usize = 64;
/// How long a pod that is to end waits for its log to be fetched.
const LOG_FETCH_TIMEOUT: Duration = Duration::from_secs(2);

/// Executes orders until the sender is dropped.
pub async fn work(tools: Arc<Tools>, mut orders: mpsc::UnboundedReceiver<PodOrder>) {
    let mut lanes: BTreeMap<LeaseId, mpsc::UnboundedSender<PodOrder>> = BTreeMap::new();
    let mut tasks = JoinSet::new();
    let turns = Arc::new(Semaphore::new(MAX_CONCURRENT_REQUESTS));
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
                let lane = LeaseWorker { tools: tools.clone(), turns: turns.clone(), lease, made: None };
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

impl LeaseWorker {
    async fn run(mut self, mut orders: mpsc::UnboundedReceiver<PodOrder>) -> LeaseId {
        let mut next = None;
        loop {
            let order = match next.take() {
                Some(order) => Some(order),
                None => orders.recv().await,
            };
            match order {
                None => return self.lease,
                Some(PodOrder::CreatePod(create)) => {
                    self.made = Some(create.pod());
                    tokio::select! {
                        biased;
                        order = orders.recv() => next = order,
                        made = self.make(&create) => self.report(made).await,
                    }
                }
                Some(PodOrder::Stop { pod, cause, grace, .. }) => {
                    self.stop(pod, cause, grace).await
                }
                Some(PodOrder::Remove { pod, .. }) => {
                    self.remove(&pod).await;
                    self.made = None;
                    // Orders that were sent before are still executed.
                    orders.close();
                }
                Some(PodOrder::Stray { pod, .. }) => {
                    if self.is_of_job(&pod).await {
                        self.remove(&pod).await;
                    }
                    orders.close();
                }
                Some(PodOrder::Forget { .. }) => orders.close(),
            }
        }
    }

    async fn report(&self, made: Result<(), Failure>) {
        let lease = self.lease;
        match made {
            // That it runs its node says.
            Ok(()) => {}
            Err(Failure::Never(why)) => {
                self.tools.lease_ended(lease, LeaseEnd::NotStarted(why)).await
            }
            Err(Failure::Lost(why)) => {
                let ended = Ended::lost(lease, clock::wall(), why);
                self.tools.lease_ended(lease, LeaseEnd::Ended(Box::new(ended))).await;
            }
        }
    }

    /// Asks until there is an answer. A permit is held while a request is under way and not between
    /// two tries, so that a request that cannot succeed for now does not delay others.
    pub(super) async fn ask<T, E: MayComeFromApi, F: Future<Output = Result<T, E>>>(
        &self,
        act: impl Fn() -> F,
    ) -> Result<T, E> {
        let (turns, act) = (&self.turns, &act);
        retry_while_recoverable(move || async move {
            // The semaphore is never closed, so this never fails.
            let _turn = turns.acquire().await;
            act().await
        })
        .await
    }

    async fn stop(&self, pod: Option<PodRef>, cause: Cause, grace: Span) {
        let pod = match pod {
            Some(pod) => Some(pod),
            None => self.find().await,
        };
        let there = match pod {
            None => false,
            Some(pod) => {
                // Its output goes with it.
                let step = self.tools.logs.fetch(self.lease, &pod);
                Logs::reach(step, Step::CaughtUp, LOG_FETCH_TIMEOUT).await;
                // Zero would delete the Pod object while the containers still run.
                self.delete(&pod, ((grace.0 + 999) / 1_000).max(1)).await
            }
        };
        if !there {
            let mut ended = Ended::lost(self.lease, clock::wall(), "it had no pod".to_owned());
            ended.asked = Some(cause);
            self.tools.lease_ended(self.lease, LeaseEnd::Ended(Box::new(ended))).await;
        }
    }

    async fn remove(&self, pod: &PodRef) {
        self.tools.logs.finish(self.lease, pod).await;
        self.delete(pod, 1).await;
    }

    /// Whether a pod was made for the lease that its labels name. A user can write the labels, too.
    async fn is_of_job(&self, pod: &PodRef) -> bool {
        let job_record = self.tools.job_record(self.lease.job).await;
        let is_it =
            job_record.is_some_and(|job| is_pod_of(&job.namespace, &job.name, self.lease, pod));
        if !is_it {
            let PodRef { namespace, name, .. } = pod;
            tracing::warn!(
                namespace,
                name,
                "a pod says that it was made for a job which is not in the books, or is not there; \
                 it is left alone"
            );
        }
        is_it
    }

    /// Whether there was anything to delete. The Secret beside it goes with it.
    async fn delete(&self, pod: &PodRef, grace_secs: i64) -> bool {
        let options =
            json!({ "gracePeriodSeconds": grace_secs, "preconditions": { "uid": pod.uid } });
        let at = path(&pod.namespace, "pods", &pod.name);
        match retry_while_recoverable(|| self.tools.api.delete(&at, &options)).await {
            Ok(_) => true,
            // It is gone, or another one has its name.
            Err(error) if error.is_not_found() || error.is_conflict() => false,
            Err(error) => {
                tracing::error!(%error, "a pod could not be deleted");
                true
            }
        }
    }
}
