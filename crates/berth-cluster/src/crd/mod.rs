//! Custom resources: queues, policies, budgets, pools and jobs. What they ask for is written to the
//! log like any other request; what became of it stands in their status.
//!
//! An object holds while it exists: what is changed elsewhere is changed back, and what it set up
//! goes when it is deleted. An invalid object says so in its status and changes nothing.

mod bad_spec;
mod jobs;
mod leave;
mod money;
mod object;
mod queues;
mod schema;
mod status;
mod watch;
mod write;

pub use crate::crd::schema::crds;

use crate::state::observation::Observation;
use crate::tenancy::ownership::OwnedQueues;
use crate::tenancy::rows;
use berth_engine::Inlet;
use berth_file::object::Kind;
use berth_kube::event::{EventRecorder, Level, NewEvent};
use berth_kube::{Api, Change, WatchUpdate};
use berth_model::{JobId, Name};
use berth_service::Service;
use berth_service::objects;
use berth_store::SettingRow;
use object::{Acceptance, Key, Known, Object};
use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio::time::MissedTickBehavior;
use watch::ObjectUpdate;

/// How often statuses are looked at, and how often what objects say is compared with what is.
const STATUS_INTERVAL: Duration = Duration::from_secs(2);
const RECONCILE_INTERVAL: Duration = Duration::from_secs(10);
/// What comes together is taken together.
const DEBOUNCE: Duration = Duration::from_millis(50);
const OBJECT_BUFFER: usize = 64;
/// Rows that are read of what objects have set up: one for each object.
const MAX_SETTING_ROWS: u32 = 1_000_000;

/// What is needed of the cluster beside its objects.
pub struct ControllerContext {
    pub api: Api,
    /// By which queues that others describe are looked at again, and refused pods retried.
    pub inlet: Inlet<Observation>,
    /// The queue of pods that name none. It is never removed.
    pub queue: Name,
    /// Where others learn which queues are set up by objects of our own.
    pub owned_queues: OwnedQueues,
}

pub struct Controller {
    service: Service,
    context: ControllerContext,
    events: EventRecorder,
    objects: BTreeMap<Kind, BTreeMap<Key, Known>>,
    /// What objects have set up, by kind and name of the object; the value is the queue it is about.
    owned: BTreeMap<(Kind, String), String>,
    /// Objects that are gone and have left something.
    gone: BTreeSet<(Kind, String)>,
    /// Jobs that came as objects, by the uid of the object.
    jobs: BTreeMap<String, JobId>,
    /// Jobs whose object is gone, with its uid.
    cancelled: BTreeSet<(JobId, String)>,
    /// The queues that existed when refused pods were last retried.
    queues: BTreeSet<Name>,
}

/// Looks after objects until it is stopped.
pub async fn run(service: Service, context: ControllerContext) {
    let (tell, mut news) = mpsc::channel(OBJECT_BUFFER);
    let watching = watch::watch(context.api.clone(), tell);
    let mut controller = loop {
        match before(&service).await {
            Ok((owned, jobs)) => break Controller::new(service, context, owned, jobs),
            Err(error) => {
                tracing::warn!(%error, "what objects have set up cannot be read; trying again");
                tokio::time::sleep(STATUS_INTERVAL).await;
            }
        }
    };
    let attending = async {
        let mut tick = tokio::time::interval(STATUS_INTERVAL);
        tick.set_missed_tick_behavior(MissedTickBehavior::Delay);
        let mut compared = Instant::now();
        loop {
            let mut is_due = compared.elapsed() >= RECONCILE_INTERVAL;
            tokio::select! {
                some = news.recv() => {
                    let Some(some) = some else { return };
                    is_due |= controller.apply(some);
                    tokio::time::sleep(DEBOUNCE).await;
                    while let Ok(more) = news.try_recv() {
                        is_due |= controller.apply(more);
                    }
                    if !is_due {
                        continue;
                    }
                }
                _ = tick.tick() => {}
            }
            if is_due {
                controller.reconcile().await;
                compared = Instant::now();
            }
            controller.write_statuses().await;
        }
    };
    tokio::join!(watching, attending);
}

type Owned = BTreeMap<(Kind, String), String>;

type Jobs = BTreeMap<String, JobId>;

/// What objects have set up before, and the jobs they have made.
async fn before(service: &Service) -> berth_store::Result<(Owned, Jobs)> {
    let rows = service.store.page::<SettingRow>(None, MAX_SETTING_ROWS).await?;
    let owned = rows.into_iter().filter_map(|row| Some((rows::owner(&row.name)?, row.value)));
    Ok((owned.collect(), objects::live(service)))
}

impl Controller {
    fn new(service: Service, context: ControllerContext, owned: Owned, jobs: Jobs) -> Controller {
        let events =
            EventRecorder::new(context.api.clone(), &format!("process {}", std::process::id()));
        Controller {
            service,
            context,
            events,
            objects: BTreeMap::new(),
            owned,
            gone: BTreeSet::new(),
            jobs,
            cancelled: BTreeSet::new(),
            queues: BTreeSet::new(),
        }
    }

    /// Takes in what was seen. Returns whether any spec has changed.
    fn apply(&mut self, (kind, seen): ObjectUpdate) -> bool {
        match seen {
            WatchUpdate::Snapshot(all) => {
                self.all(kind, all);
                true
            }
            WatchUpdate::Changes(changes) => {
                let mut wanted = false;
                for change in changes {
                    match change {
                        Change::Applied(object) => wanted |= self.put(kind, object),
                        Change::Deleted(object) => {
                            self.remove(kind, &object.key());
                            wanted = true;
                        }
                    }
                }
                wanted
            }
        }
    }

    fn all(&mut self, kind: Kind, all: Vec<Object>) {
        let there: BTreeSet<Key> = all.iter().map(Object::key).collect();
        let uids: BTreeSet<&str> = all.iter().map(|one| one.metadata.uid.as_str()).collect();
        if kind == Kind::Job {
            // Objects that were deleted while no server was watching.
            let lost = self.jobs.iter().filter(|(uid, _)| !uids.contains(uid.as_str()));
            self.cancelled.extend(lost.map(|(uid, job)| (*job, uid.clone())));
        }
        drop(uids);
        let known = self.objects.get(&kind).into_iter().flat_map(BTreeMap::keys);
        let missing: Vec<Key> = known.filter(|key| !there.contains(*key)).cloned().collect();
        for key in missing {
            self.remove(kind, &key);
        }
        let left = self
            .owned
            .keys()
            .filter(|(of, name)| *of == kind && !there.contains(&(String::new(), name.clone())));
        self.gone.extend(left.cloned());
        for object in all {
            self.put(kind, object);
        }
    }

    fn put(&mut self, kind: Kind, object: Object) -> bool {
        let (key, uid) = (object.key(), object.metadata.uid.clone());
        let known = self.objects.entry(kind).or_default();
        if known.get(&key).is_some_and(|known| known.object.metadata.uid != uid) {
            // Another one took its name, and its end was not seen.
            self.remove(kind, &key);
        }
        self.gone.remove(&(kind, key.1.clone()));
        let known = self.objects.entry(kind).or_default();
        match known.get_mut(&key) {
            Some(known) => known.update(kind, object),
            None => {
                let mut new = Known::new(kind, object);
                new.job = new.job.or_else(|| self.jobs.get(&uid).copied());
                known.insert(key, new);
                true
            }
        }
    }

    fn remove(&mut self, kind: Kind, key: &Key) {
        let known = self.objects.get_mut(&kind).and_then(|known| known.remove(key));
        let owner = (kind, key.1.clone());
        if self.owned.contains_key(&owner) {
            self.gone.insert(owner);
        }
        if let Some(known) = known {
            self.jobs.remove(&known.object.metadata.uid);
            let job = known.job.filter(|_| !known.is_over);
            self.cancelled.extend(job.map(|job| (job, known.object.metadata.uid)));
        }
    }

    fn of(&self, kind: Kind) -> impl Iterator<Item = &Known> {
        self.objects.get(&kind).into_iter().flat_map(BTreeMap::values)
    }

    /// Makes true what objects say, as far as it makes sense.
    async fn reconcile(&mut self) {
        // Before they are set up: otherwise an object of another scheduler could take the name.
        let is_other = self.context.owned_queues.set(self.owned_queues());
        self.reconcile_queues().await;
        self.reconcile_policy().await;
        self.reconcile_budgets().await;
        self.reconcile_pools();
        self.reconcile_gone().await;
        self.reconcile_jobs().await;
        let queues: BTreeSet<Name> = {
            let core = self.service.engine.core();
            core.state.queue_parents().map(|(name, _)| name.clone()).collect()
        };
        if queues != self.queues || is_other {
            self.queues = queues;
            self.context.inlet.site(Observation::QueuesAgain).await;
        }
        self.write_warnings().await;
    }

    fn set_acceptance(&mut self, kind: Kind, key: &Key, acceptance: Acceptance) {
        if let Some(known) = self.objects.get_mut(&kind).and_then(|known| known.get_mut(key)) {
            known.acceptance = Some(acceptance);
        }
    }

    /// Writes events on objects that are rejected or doubtful, once for each version of their spec.
    async fn write_warnings(&self) {
        for (kind, objects) in &self.objects {
            for known in objects.values() {
                let Some(acceptance) = &known.acceptance else { continue };
                let (reason, note) = match (&acceptance.warning, acceptance.is_accepted) {
                    (_, false) => (acceptance.reason.as_str(), acceptance.message.as_str()),
                    (Some((reason, note)), true) => (*reason, note.as_str()),
                    (None, true) => continue,
                };
                let generation = known.object.metadata.generation.to_string();
                let (level, about) = (Level::Warning, Some(generation.as_str()));
                let event = NewEvent { level, action: "Accept", reason, note, dedup_key: about };
                if let Err(error) = self.events.record(&known.object.about(*kind), event).await {
                    tracing::debug!(%error, "an event could not be written");
                }
            }
        }
    }
}
