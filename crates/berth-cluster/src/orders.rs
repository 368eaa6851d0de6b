//! Carrying out what was decided about pods. Many at once, and each until it is done or can never
//! be: the API server may be away for a while.

use super::admit;
use super::dynamic::{Prepare, claims};
use super::patience::{FIRST_PAUSE, LONGEST_PAUSE};
use super::prepare::{Step, Unprepared};
use super::queued::JobAt;
use super::reserve::{self, Reserve};
use super::shares::Spot;
use super::window::Window;
use berth_kube::event::{About, Events, Level, Saying};
use berth_kube::{Api, shares};
use berth_model::PodRef;
use berth_model::{LeaseId, Name};
use futures_util::StreamExt;
use futures_util::stream::FuturesUnordered;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio_stream::wrappers::UnboundedReceiverStream;

/// Reasons that are written at once. They are less urgent, and must not stand in the way.
const WORDS_AT_ONCE: usize = 8;

/// Who says what is said about objects.
const CONTROLLER: &str = "berth";
/// The annotation that says which job and lease a pod is.
pub const LEASE: &str = "berth.dev/lease";

#[derive(Debug)]
pub enum Order {
    Bind(Bind),
    /// A pod is to hold a GPU for those that share it.
    Reserve {
        spot: Spot,
        tries: u32,
    },
    /// Nobody shares the GPU of this pod any more.
    Release {
        pod: PodRef,
    },
    Displace {
        pod: PodRef,
        grace_secs: i64,
        why: &'static str,
    },
    /// On the pod as it was in that version.
    SayWhy {
        pod: PodRef,
        version: String,
        message: String,
    },
    /// An event on an object.
    Note(Note),
    /// Suspends a job of others, or lets it go, as is wanted when it is written.
    Hold {
        job: Box<JobAt>,
        suspended: Arc<AtomicBool>,
    },
}

/// What is wrong with an object, and what to do.
#[derive(Debug)]
pub struct Note {
    pub about: About,
    /// In one word.
    pub reason: &'static str,
    pub note: String,
    /// What tells it from another one of the same reason; the note where left out. A note with
    /// figures changes with them, and says nothing new.
    pub apart: Option<String>,
}

#[derive(Debug)]
pub struct Bind {
    pub lease: LeaseId,
    pub pod: PodRef,
    pub node: Name,
    /// A gate is in the way that is ours to lift.
    pub open: Option<Open>,
    /// What is to be done for its volumes before.
    pub claims: Vec<Prepare>,
    pub wanted: Wanted,
    /// What its containers are told of the GPUs they share.
    pub gpus: Option<String>,
    /// What has to be written first for the devices that it claims.
    pub devices: Vec<Step>,
}

impl Bind {
    /// Nothing has to be written before.
    fn is_one_request(&self) -> bool {
        self.open.is_none() && self.claims.is_empty() && self.devices.is_empty()
    }
}

/// Lifts a gate. Until the pod is bound it may run nowhere else: another scheduler may see it in
/// between.
#[derive(Debug)]
pub struct Open {
    /// As the label of its node has it.
    pub hostname: Option<String>,
}

/// Whether a binding is still meant. Its lease may end while it waits for the API server.
#[derive(Debug, Clone, Default)]
pub struct Wanted(Arc<AtomicBool>);

impl Wanted {
    pub fn revoke(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    fn is_revoked(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// Waits until it is not meant any more.
    async fn revoked(&self) {
        while !self.is_revoked() {
            tokio::time::sleep(LONGEST_PAUSE).await;
        }
    }
}

/// What came of an order.
#[derive(Debug)]
pub enum Done {
    Bound(LeaseId),
    /// The pod is gone, or somebody else has given it a node.
    Lost {
        lease: LeaseId,
        pod: PodRef,
        why: String,
    },
    /// What it needs first was not to be had; it may be another time.
    Unready {
        lease: LeaseId,
        pod: PodRef,
        why: String,
    },
    /// It is not possible there, but may be elsewhere.
    NotThere(LeaseId, String),
    /// It will never be possible.
    Never(LeaseId, String),
    /// The pod had changed meanwhile, so nothing was written on it.
    Unsaid(PodRef),
    /// No pod could be made that holds the GPU.
    NotReserved(Spot, String),
}

type Tell = Arc<dyn Fn(Done) + Send + Sync>;

/// Takes orders until nobody gives any.
pub async fn work(
    api: Api,
    reserve: Reserve,
    mut orders: mpsc::UnboundedReceiver<Order>,
    tell: Tell,
) {
    let (acts, mut act) = mpsc::unbounded_channel();
    let (words, word) = mpsc::unbounded_channel();
    let events = Events::new(api.clone(), CONTROLLER);
    let hand = Arc::new(Hand { api, reserve, events, again: acts.clone(), tell });
    let later = acts.clone();
    let sorts = async move {
        while let Some(order) = orders.recv().await {
            let sent = match order {
                Order::SayWhy { .. } | Order::Note(_) => words.send(order).is_ok(),
                Order::Reserve { tries: 1.., .. } => {
                    come_again(later.clone(), order);
                    true
                }
                order => acts.send(Try { order, pause: FIRST_PAUSE }).is_ok(),
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
            tokio::select! {
                Some(bound) = under_way.next() => {
                    match bound {
                        Tried::Bound(took) => window.answered(took, count),
                        Tried::Several => window.got_through(),
                        Tried::TooMany => window.refused(),
                        Tried::Other => {}
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
    let words = UnboundedReceiverStream::new(word)
        .for_each_concurrent(WORDS_AT_ONCE, move |word| hand.clone().say(word));
    tokio::join!(sorts, acts, words);
}

/// What was tried before is tried again after a while.
fn come_again(to: mpsc::UnboundedSender<Try>, order: Order) {
    tokio::spawn(async move {
        if let Order::Reserve { tries, .. } = &order {
            tokio::time::sleep(reserve::pause(*tries)).await;
        }
        let _ = to.send(Try { order, pause: FIRST_PAUSE });
    });
}

/// An order, and how long it waits if it has to be tried again.
struct Try {
    order: Order,
    pause: Duration,
}

/// What an order that was tried says of how many are tried at once.
enum Tried {
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
struct Hand {
    api: Api,
    reserve: Reserve,
    events: Events,
    again: mpsc::UnboundedSender<Try>,
    tell: Tell,
}

impl Hand {
    /// Tries an order once. One that may succeed later comes again, and is in nobody's way
    /// meanwhile.
    async fn attempt(self: Arc<Hand>, act: Try) -> Tried {
        let begun = Instant::now();
        let Try { order, pause } = act;
        let tried = match &order {
            Order::Bind(bind) if bind.wanted.is_revoked() => return Tried::Other,
            Order::Bind(bind) if !bind.claims.is_empty() => {
                // That may take long, and others are not to wait for it.
                tokio::spawn(self.prepare(order));
                return Tried::Other;
            }
            Order::Bind(bind) => match self::bind(&self.api, bind).await {
                Ok(done) => {
                    let tried = match &done {
                        Done::Bound(_) if bind.is_one_request() => Tried::Bound(begun.elapsed()),
                        Done::Bound(_) => Tried::Several,
                        _ => Tried::Other,
                    };
                    (self.tell)(done);
                    return tried;
                }
                Err(error) => Err(error),
            },
            Order::Displace { pod, grace_secs, why } => {
                self.api.displace(pod, *grace_secs, why).await
            }
            Order::Reserve { spot, .. } => self.reserve.hold(&self.api, spot).await,
            Order::Release { pod } => reserve::release(&self.api, pod).await,
            Order::Hold { job, suspended } => admit::hold(&self.api, job, suspended).await,
            Order::SayWhy { .. } | Order::Note(_) => return Tried::Other,
        };
        let Err(error) = tried else { return Tried::Other };
        if let Order::Reserve { spot, .. } = &order
            && !error.is_for_now()
        {
            (self.tell)(Done::NotReserved(spot.clone(), error.to_string()));
            return Tried::Other;
        }
        if error.is_denied() {
            // Failing the job would not give us the right.
            tracing::error!(%error, "not allowed; trying again");
        } else if !error.is_for_now() {
            match order {
                Order::Bind(bind) => (self.tell)(Done::Never(bind.lease, error.to_string())),
                Order::Hold { job, .. } => {
                    tracing::error!(%error, job = job.name, "a job could not be let go");
                }
                _ => tracing::error!(%error, "a pod could not be asked to end"),
            }
            return Tried::Other;
        }
        let is_bind = matches!(order, Order::Bind(_));
        let asked = error.wait().unwrap_or_default();
        tokio::spawn(async move {
            tokio::time::sleep(pause.max(asked)).await;
            let _ = self.again.send(Try { order, pause: (pause * 2).min(LONGEST_PAUSE) });
        });
        if is_bind && error.is_overload() { Tried::TooMany } else { Tried::Other }
    }

    async fn note(&self, Note { about, reason, note, apart }: Note) {
        let level = Level::Warning;
        let saying = Saying { level, action: "Read", reason, note: &note, about: apart.as_deref() };
        if let Err(error) = self.events.say(&about, saying).await {
            tracing::warn!(%error, "{} {}: {note}", about.kind, about.name);
        }
    }

    /// Has the volumes of a pod made or given, and binds it then.
    async fn prepare(self: Arc<Hand>, order: Order) {
        let Order::Bind(bind) = order else { return };
        let prepared = tokio::select! {
            prepared = claims::prepare(&self.api, &bind.claims, &bind.node) => prepared,
            () = bind.wanted.revoked() => return,
        };
        match prepared {
            Ok(()) => {
                let order = Order::Bind(Bind { claims: Vec::new(), ..bind });
                let _ = self.again.send(Try { order, pause: FIRST_PAUSE });
            }
            Err(why) => (self.tell)(Done::NotThere(bind.lease, why)),
        }
    }

    async fn say(self: Arc<Hand>, word: Order) {
        let (pod, version, message) = match word {
            Order::SayWhy { pod, version, message } => (pod, version, message),
            Order::Note(note) => return self.note(note).await,
            _ => return,
        };
        match self.api.say_why(&pod, &version, &message).await {
            Ok(true) => {}
            Ok(false) => (self.tell)(Done::Unsaid(pod)),
            Err(error) => {
                tracing::debug!(%error, pod = pod.name, "a reason could not be written");
                (self.tell)(Done::Unsaid(pod));
            }
        }
    }
}

async fn bind(api: &Api, bind: &Bind) -> berth_kube::Result<Done> {
    let Bind { lease, pod, node, .. } = bind;
    let lost = |why: String| Done::Lost { lease: *lease, pod: pod.clone(), why };
    if let Some(open) = &bind.open {
        api.open(pod, open.hostname.as_deref()).await?;
    }
    let unready = |why: String| Done::Unready { lease: *lease, pod: pod.clone(), why };
    for step in &bind.devices {
        match step.carry_out(api, pod).await {
            Ok(()) => {}
            Err(Unprepared::Gone(why)) => return Ok(unready(why)),
            Err(Unprepared::Api(error)) if error.is_missing() || error.is_conflict() => {
                return Ok(unready(error.to_string()));
            }
            Err(Unprepared::Api(error)) => return Err(error),
        }
    }
    let mut annotations = BTreeMap::from([(LEASE, lease.to_string())]);
    annotations.extend(bind.gpus.clone().map(|gpus| (shares::GPUS, gpus)));
    match api.bind(pod, node, &annotations).await {
        Ok(()) => Ok(Done::Bound(*lease)),
        Err(error) if error.is_missing() => Ok(lost("its pod is gone".to_owned())),
        // Also where our own write came through and its answer did not.
        Err(error) if error.is_conflict() => Ok(match api.node_of(pod).await? {
            Some(bound) if bound == node.as_str() => Done::Bound(*lease),
            Some(bound) => lost(format!("its pod was put on {bound}")),
            None => lost("its pod is gone".to_owned()),
        }),
        Err(error) => Err(error),
    }
}
