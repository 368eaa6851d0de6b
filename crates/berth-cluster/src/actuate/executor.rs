//! Executes orders to the API server, many at once, and each until it is done or impossible: the
//! API server may be away for a while.

use super::pod_events::PodEvents;
use super::prepare::Unprepared;
use super::reserve::{self, Reserve};
use super::window::Window;
use super::{suspend, volumes};
use crate::retry::{FIRST_PAUSE, LONGEST_PAUSE};
use crate::state::observation::Observation;
use crate::state::orders::{ApiOrder, Bind, BindPermit, OrderOutcome, UnwrittenReason};
use crate::state::time_limits::CONDITION;
use crate::view::{LEASE, ObjectEvent};
use berth_engine::Inlet;
use berth_kube::Api;
use berth_kube::event::{EventRecorder, Level, NewEvent};
use berth_kube::pod::gpu_sharing;
use berth_model::PodRef;
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;

/// Reasons that are written at once. They are less urgent, and must not stand in the way.
const MAX_CONCURRENT_MESSAGES: usize = 8;

/// The reporting controller of events.
const CONTROLLER: &str = "berth";

/// Executes orders until the sender is dropped.
pub async fn work(
    api: Api,
    reserve: Reserve,
    mut orders: mpsc::UnboundedReceiver<ApiOrder>,
    inlet: Inlet<Observation>,
    pod_events: Arc<PodEvents>,
) {
    let (acts, mut act) = mpsc::unbounded_channel();
    let (messages, message) = mpsc::unbounded_channel();
    let events = EventRecorder::new(api.clone(), CONTROLLER);
    let recorder = events.clone();
    let binds = pod_events.clone();
    let retries = acts.clone();
    let hand =
        Arc::new(Executor { api, reserve, events, retries, inlet, pod_events: pod_events.clone() });
    let written = pod_events.clone().write(recorder);
    let later = acts.clone();
    let sorts = async move {
        while let Some(order) = orders.recv().await {
            let sent = match order {
                ApiOrder::WritePodEvent(event) => {
                    pod_events.put(event);
                    true
                }
                ApiOrder::WriteReason { .. }
                | ApiOrder::AnnounceEnd { .. }
                | ApiOrder::WriteEvent(_) => messages.send(order).is_ok(),
                ApiOrder::Reserve { tries: 1.., .. } => {
                    retry_later(later.clone(), order);
                    true
                }
                order => acts.send(Attempt { order, pause: FIRST_PAUSE }).is_ok(),
            };
            if !sent {
                return;
            }
        }
    };
    let to = hand.clone();
    let acts = async move {
        let mut window = Window::default();
        let mut under_way = FuturesUnordered::new();
        loop {
            let count = under_way.len();
            binds.set_under_way(count);
            tokio::select! {
                Some(bound) = under_way.next() => {
                    match bound {
                        AttemptOutcome::Bound(took) => window.answered(took, count),
                        AttemptOutcome::Several => window.got_through(),
                        AttemptOutcome::TooMany => window.refused(),
                        AttemptOutcome::Other => {}
                    }
                }
                next = act.recv(), if count < window.size() => {
                    let Some(next) = next else { break };
                    under_way.push(to.clone().attempt(next));
                }
            }
        }
        under_way.for_each(|_| std::future::ready(())).await;
    };
    let messages = UnboundedReceiverStream::new(message)
        .for_each_concurrent(MAX_CONCURRENT_MESSAGES, move |message| {
            hand.clone().write_message(message)
        });
    tokio::select! {
        _ = futures_util::future::join3(sorts, acts, messages) => {}
        () = written => {}
    }
}

/// What was tried before is tried again after a while.
fn retry_later(to: mpsc::UnboundedSender<Attempt>, order: ApiOrder) {
    tokio::spawn(async move {
        if let ApiOrder::Reserve { tries, .. } = &order {
            tokio::time::sleep(reserve::pause(*tries)).await;
        }
        let _ = to.send(Attempt { order, pause: FIRST_PAUSE });
    });
}

/// An order, and how long it waits if it has to be tried again.
struct Attempt {
    order: ApiOrder,
    pause: Duration,
}

/// What an order that was tried says of how many are tried at once.
enum AttemptOutcome {
    /// A single request has bound a pod in that time. A refusal, or a server that is away, comes
    /// quicker than any work is done.
    Bound(Duration),
    /// Several have.
    Several,
    /// The server did not get to it.
    TooMany,
    Other,
}

/// What carries out orders.
struct Executor {
    api: Api,
    reserve: Reserve,
    events: EventRecorder,
    retries: mpsc::UnboundedSender<Attempt>,
    inlet: Inlet<Observation>,
    pod_events: Arc<PodEvents>,
}

impl Executor {
    /// Tries an order once. An order that may succeed later is queued again after a pause, and does
    /// not delay others meanwhile.
    async fn attempt(self: Arc<Executor>, act: Attempt) -> AttemptOutcome {
        let begun = Instant::now();
        let Attempt { order, pause } = act;
        let tried = match &order {
            ApiOrder::Bind(bind) if bind.permit.is_revoked() => return AttemptOutcome::Other,
            ApiOrder::Bind(bind) if !bind.claims.is_empty() => {
                // That may take long, and others are not to wait for it.
                tokio::spawn(self.prepare(order));
                return AttemptOutcome::Other;
            }
            ApiOrder::Bind(bind) => match self::bind(&self.api, bind).await {
                Ok(done) => {
                    let tried = match &done {
                        OrderOutcome::Bound(_) if bind.is_one_request() => {
                            AttemptOutcome::Bound(begun.elapsed())
                        }
                        OrderOutcome::Bound(_) => AttemptOutcome::Several,
                        _ => AttemptOutcome::Other,
                    };
                    if let OrderOutcome::Bound(_) = done {
                        self.pod_events.scheduled(&bind.pod, &bind.node);
                    }
                    self.report(done).await;
                    return tried;
                }
                Err(error) => Err(error),
            },
            ApiOrder::Evict { pod, grace_secs, why } => {
                self.api.preempt(pod, *grace_secs, why).await
            }
            ApiOrder::Reserve { slot, .. } => self.reserve.hold(&self.api, slot).await,
            ApiOrder::Release { pod } => reserve::release(&self.api, pod).await,
            ApiOrder::SetSuspended { job, suspended } => {
                suspend::hold(&self.api, job, suspended).await
            }
            ApiOrder::WriteReason { .. }
            | ApiOrder::AnnounceEnd { .. }
            | ApiOrder::WriteEvent(_)
            | ApiOrder::WritePodEvent(_) => return AttemptOutcome::Other,
        };
        let Err(error) = tried else { return AttemptOutcome::Other };
        if let ApiOrder::Reserve { slot, .. } = &order
            && !error.is_transient()
        {
            self.report(OrderOutcome::NotReserved(slot.clone(), error.to_string())).await;
            return AttemptOutcome::Other;
        }
        if error.is_denied() {
            // Failing the job would not give us the right.
            tracing::error!(%error, "not allowed; trying again");
        } else if !error.is_transient() {
            match order {
                ApiOrder::Bind(bind) => {
                    self.report(OrderOutcome::Impossible(bind.lease, error.to_string())).await
                }
                ApiOrder::SetSuspended { job, .. } => {
                    tracing::error!(%error, job = job.name, "a job could not be suspended or resumed");
                }
                _ => tracing::error!(%error, "a pod could not be asked to end"),
            }
            return AttemptOutcome::Other;
        }
        let is_bind = matches!(order, ApiOrder::Bind(_));
        let asked = error.retry_after().unwrap_or_default();
        tokio::spawn(async move {
            tokio::time::sleep(pause.max(asked)).await;
            let _ = self.retries.send(Attempt { order, pause: (pause * 2).min(LONGEST_PAUSE) });
        });
        if is_bind && error.is_overload() { AttemptOutcome::TooMany } else { AttemptOutcome::Other }
    }

    async fn report(&self, outcome: OrderOutcome) {
        self.inlet.site(Observation::OrderDone(outcome)).await;
    }

    async fn write_event(&self, event: ObjectEvent) {
        let ObjectEvent { about, reason, note, dedup_key } = event;
        let level = Level::Warning;
        let event = NewEvent {
            level,
            action: "Read",
            reason,
            note: &note,
            dedup_key: dedup_key.as_deref(),
        };
        if let Err(error) = self.events.record(&about, event).await {
            tracing::warn!(%error, "{} {}: {note}", about.kind, about.name);
        }
    }

    async fn announce_end(&self, pod: &PodRef, message: &str) {
        let set = self.api.set_condition(pod, CONDITION, "TimeLimitNear", message).await;
        if let Err(error) = set {
            tracing::warn!(%error, pod = pod.name, "the end of a pod could not be announced on it");
        }
    }

    /// Has the volumes of a pod made or given, and binds it then.
    async fn prepare(self: Arc<Executor>, order: ApiOrder) {
        let ApiOrder::Bind(bind) = order else { return };
        let prepared = tokio::select! {
            prepared = volumes::prepare(&self.api, &bind.claims, &bind.node) => prepared,
            () = revoked(&bind.permit) => return,
        };
        match prepared {
            Ok(()) => {
                let order = ApiOrder::Bind(Bind { claims: Vec::new(), ..bind });
                let _ = self.retries.send(Attempt { order, pause: FIRST_PAUSE });
            }
            Err(error) => {
                self.report(OrderOutcome::Infeasible(bind.lease, error.to_string())).await;
            }
        }
    }

    async fn write_message(self: Arc<Executor>, message: ApiOrder) {
        let (pod, version, reason, message) = match message {
            ApiOrder::WriteReason { pod, version, reason, message } => {
                (pod, version, reason, message)
            }
            ApiOrder::AnnounceEnd { pod, message } => {
                return self.announce_end(&pod, &message).await;
            }
            ApiOrder::WriteEvent(event) => return self.write_event(event).await,
            _ => return,
        };
        let again = match self.api.set_unschedulable(&pod, &version, reason, &message).await {
            Ok(true) => return,
            Ok(false) => false,
            Err(error) => {
                tracing::debug!(%error, pod = pod.name, "a reason could not be written");
                error.is_transient()
            }
        };
        let unwritten = UnwrittenReason { pod, version, reason, message, again };
        let unwritten = OrderOutcome::ReasonNotWritten(unwritten);
        // The pause is not spent in the place of another message.
        tokio::spawn(async move {
            if again {
                tokio::time::sleep(LONGEST_PAUSE).await;
            }
            self.report(unwritten).await;
        });
    }
}

/// Waits until a binding is revoked.
async fn revoked(permit: &BindPermit) {
    while !permit.is_revoked() {
        tokio::time::sleep(LONGEST_PAUSE).await;
    }
}

async fn bind(api: &Api, bind: &Bind) -> berth_kube::Result<OrderOutcome> {
    let Bind { lease, pod, node, .. } = bind;
    let lost = |why: String| OrderOutcome::Lost { lease: *lease, pod: pod.clone(), why };
    if let Some(open) = &bind.open {
        api.remove_scheduling_gates(pod, open.hostname.as_deref()).await?;
    }
    let unready = |why: String| OrderOutcome::Unready { lease: *lease, pod: pod.clone(), why };
    for step in &bind.devices {
        match step.carry_out(api, pod).await {
            Ok(()) => {}
            Err(Unprepared::Devices(error)) => return Ok(unready(error.to_string())),
            Err(Unprepared::Api(error)) if error.is_not_found() || error.is_conflict() => {
                return Ok(unready(error.to_string()));
            }
            Err(Unprepared::Api(error)) => return Err(error),
        }
    }
    let mut annotations = BTreeMap::from([(LEASE, lease.to_string())]);
    annotations.extend(bind.gpus.clone().map(|gpus| (gpu_sharing::GPUS, gpus)));
    match api.bind(pod, node, &annotations).await {
        Ok(()) => Ok(OrderOutcome::Bound(*lease)),
        Err(error) if error.is_not_found() => Ok(lost("its pod is gone".to_owned())),
        // Also where our own write came through and its answer did not.
        Err(error) if error.is_conflict() => Ok(match api.bound_node(pod).await? {
            Some(bound) if bound == node.as_str() => OrderOutcome::Bound(*lease),
            Some(bound) => lost(format!("its pod was put on {bound}")),
            None => lost("its pod is gone".to_owned()),
        }),
        Err(error) => Err(error),
    }
}
