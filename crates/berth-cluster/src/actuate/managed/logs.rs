//! Logs of pods, kept beside the database: they outlive their pods.
//!
//! Berth fetches a log when a user wants to read it, and before it deletes the pod. It keeps the
//! log in the form that the log of a task on a machine has.

use super::archive::{Archive, WHOLE, lease_of};
use crate::view::{CONTAINER, FETCH};
use berth_kube::object::ContainerStatus;
use berth_kube::{Api, LogLine};
use berth_model::PodRef;
use berth_model::{JobId, LeaseId, Time};
use berth_node::{LogLimits, LogReader, LogWriter};
use berth_service::home;
use berth_store::Store;
use jiff::Timestamp;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::{Notify, watch};

/// Between two looks at a pod that has nothing to say.
const FIRST_RETRY: Duration = Duration::from_millis(300);
const MAX_RETRY: Duration = Duration::from_secs(5);
/// How often Berth checks whether a pod whose log it follows still exists.
const POLL_INTERVAL: Duration = Duration::from_secs(30);
/// How often Berth asks for the log of a pod that has ended before it gives up.
const MAX_TRIES: u32 = 4;
/// How long the removal of a pod waits for its log.
const FINISH_TIMEOUT: Duration = Duration::from_secs(20);

/// How far the fetching of a log has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Step {
    Begun,
    /// It has what was printed before it was begun.
    CaughtUp,
    Whole,
}

pub struct Logs {
    api: Api,
    root: PathBuf,
    /// Where whole logs are kept for other replicas.
    pub archive: Archive,
    /// Those that are being fetched.
    open: Mutex<BTreeMap<LeaseId, Open>>,
}

#[derive(Clone)]
struct Open {
    step: watch::Receiver<Step>,
    since: Instant,
    /// Rung when the pod is over: not every node ends a log with its container.
    over: Arc<Notify>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Pod {
    metadata: Meta,
    status: Status,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Meta {
    uid: String,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Status {
    phase: String,
    init_container_statuses: Vec<ContainerStatus>,
}

impl Status {
    /// The container that has something to say: where the code of the job could not be fetched, the
    /// command never ran.
    fn speaker(&self) -> &'static str {
        let failed = |one: &ContainerStatus| {
            let end = one.state.terminated.as_ref();
            &*one.name == FETCH && end.is_some_and(|end| end.exit_code != 0)
        };
        if self.init_container_statuses.iter().any(failed) { FETCH } else { CONTAINER }
    }
}

/// Why a log could not be copied.
#[derive(Debug, thiserror::Error)]
enum CopyError {
    #[error(transparent)]
    Api(#[from] berth_kube::Error),
    #[error(transparent)]
    Io(#[from] std::io::Error),
}

#[derive(PartialEq, Eq)]
enum Stage {
    Live,
    /// With the container that has something to say.
    Over(&'static str),
    Gone,
}

impl Logs {
    pub fn new(api: Api, root: PathBuf) -> Arc<Logs> {
        let (archive, open) = (Archive::default(), Mutex::new(BTreeMap::new()));
        Arc::new(Logs { api, root, archive, open })
    }

    /// Begins to fetch the log of a pod, unless that was done.
    pub fn fetch(self: &Arc<Logs>, lease: LeaseId, pod: &PodRef) -> watch::Receiver<Step> {
        self.begin(lease, pod).step
    }

    /// Fetches what there is of the log of a pod that is over.
    pub async fn finish(self: &Arc<Logs>, lease: LeaseId, pod: &PodRef) {
        let Open { step, over, .. } = self.begin(lease, pod);
        over.notify_one();
        Logs::reach(step, Step::Whole, FINISH_TIMEOUT).await;
    }

    fn begin(self: &Arc<Logs>, lease: LeaseId, pod: &PodRef) -> Open {
        let mut all = self.open();
        if let Some(open) = all.get(&lease) {
            return open.clone();
        }
        let (tell, step) = watch::channel(Step::Begun);
        let open = Open { step, since: Instant::now(), over: Arc::default() };
        all.insert(lease, open.clone());
        let (logs, pod, over) = (self.clone(), pod.clone(), open.over.clone());
        tokio::spawn(async move {
            logs.keep(lease, &pod, &tell, &over).await;
            let _ = tell.send(Step::Whole);
            logs.open().remove(&lease);
            logs.archive.put(lease, &logs.folder(lease)).await;
        });
        open
    }

    /// Waits until a log has come so far, or until the patience is used up.
    pub async fn reach(mut step: watch::Receiver<Step>, wanted: Step, patience: Duration) {
        let reached = step.wait_for(|step| *step >= wanted);
        let _ = tokio::time::timeout(patience, reached).await;
    }

    /// How long the log of a pod is being fetched by now; nothing if it is not.
    pub fn fetched_for(&self, lease: LeaseId) -> Option<Duration> {
        self.open().get(&lease).map(|open| open.since.elapsed())
    }

    /// Whether nothing will be added to what is here.
    pub fn is_whole(&self, lease: LeaseId) -> bool {
        self.folder(lease).join(WHOLE).exists()
    }

    /// Deletes logs that have not changed since then, of leases that are in no row any more. It
    /// goes by the files here and not by the rows that were deleted: other replicas delete rows,
    /// too.
    pub async fn delete_old(self: Arc<Logs>, store: Store, before: Time) {
        let is_idle = |(lease, _): &(LeaseId, PathBuf)| !self.is_open(*lease);
        let old: Vec<_> = older(&self.root, before).into_iter().filter(is_idle).collect();
        if let Err(error) = delete_unknown(old, &store).await {
            tracing::warn!(%error, "old logs could not be deleted; retrying with the next");
        }
        if let Err(error) = self.archive.delete_old(&store, before).await {
            tracing::warn!(%error, "old logs in the bucket could not be deleted; retrying with the next");
        }
    }

    /// Keeps the whole logs that an earlier server did not get to.
    pub async fn archive_all(self: Arc<Logs>) {
        let now = Time(Timestamp::now().as_millisecond());
        for (lease, folder) in older(&self.root, now) {
            if self.is_whole(lease) {
                self.archive.put(lease, &folder).await;
            }
        }
    }

    pub fn is_open(&self, lease: LeaseId) -> bool {
        self.open().contains_key(&lease)
    }

    pub fn read(&self, lease: LeaseId) -> Option<LogReader> {
        LogReader::open(&self.folder(lease), 0).ok()
    }

    fn folder(&self, lease: LeaseId) -> PathBuf {
        self.root.join(format!("{}.{}.{}", lease.job, lease.task, lease.attempt))
    }

    fn open(&self) -> MutexGuard<'_, BTreeMap<LeaseId, Open>> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn keep(&self, lease: LeaseId, pod: &PodRef, tell: &watch::Sender<Step>, over: &Notify) {
        if self.is_whole(lease) {
            return;
        }
        let mut copy = Copy { folder: self.folder(lease), writer: None, last: None };
        let mut failed = 0;
        let mut pause = FIRST_RETRY;
        loop {
            // Asked before reading: what is printed until then is read below.
            let stage = self.stage(pod).await;
            if stage == Stage::Gone {
                // Another replica may have seen to it.
                if copy.writer.is_none() && self.archive.get(lease, &copy.folder).await {
                    return;
                }
                break;
            }
            let follow = stage == Stage::Live && *tell.borrow() >= Step::CaughtUp;
            let container = if let Stage::Over(speaker) = stage { speaker } else { CONTAINER };
            let copied = tokio::select! {
                copied = self.copy(pod, container, &mut copy, follow) => copied,
                // What is missing is read once more below, from where it was left.
                () = over.notified(), if follow => continue,
                () = tokio::time::sleep(POLL_INTERVAL), if follow => continue,
            };
            match copied {
                Ok(()) => {
                    tell.send_if_modified(|step| {
                        let is_news = *step < Step::CaughtUp;
                        *step = Step::CaughtUp;
                        is_news
                    });
                    if matches!(stage, Stage::Over(_)) {
                        break;
                    }
                    pause = FIRST_RETRY;
                    if !follow {
                        // It may be about to go.
                        continue;
                    }
                }
                Err(why) if matches!(stage, Stage::Over(_)) => {
                    failed += 1;
                    if failed >= MAX_TRIES {
                        copy.add_remark(&format!("[berth: the log could not be fetched: {why}]\n"));
                        break;
                    }
                }
                // Its container has not started, or its node does not answer.
                Err(_) => pause = (pause * 2).min(MAX_RETRY),
            }
            tokio::select! {
                () = tokio::time::sleep(pause) => {}
                () = over.notified() => pause = FIRST_RETRY,
            }
        }
        copy.close();
    }

    /// Adds what is not here yet.
    async fn copy(
        &self,
        pod: &PodRef,
        container: &str,
        copy: &mut Copy,
        follow: bool,
    ) -> Result<(), CopyError> {
        let mut log = self.api.log(pod, container, copy.last, follow).await?;
        copy.begin()?;
        let known = copy.last;
        let mut skips = true;
        while let Some(lines) = log.next().await? {
            for line in lines {
                // From the moment that was named on, its own lines come again.
                skips &= known.is_some() && line.at.is_none_or(|at| Some(at) <= known);
                if !skips {
                    copy.add(&line);
                }
            }
        }
        Ok(())
    }

    async fn stage(&self, pod: &PodRef) -> Stage {
        let path = format!("/api/v1/namespaces/{}/pods/{}", pod.namespace, pod.name);
        match self.api.get::<Pod>(&path).await {
            Err(error) if error.is_not_found() => Stage::Gone,
            // The API server or the network is down; the pod counts as alive until they are back.
            Err(_) => Stage::Live,
            Ok(found) if !pod.uid.is_empty() && found.metadata.uid != pod.uid => Stage::Gone,
            Ok(found) => match found.status.phase.as_str() {
                "Succeeded" | "Failed" => Stage::Over(found.status.speaker()),
                _ => Stage::Live,
            },
        }
    }
}

/// Logs to which nothing was added since, in the order of their jobs.
fn older(root: &Path, before: Time) -> BTreeMap<LeaseId, PathBuf> {
    let old = |entry: std::fs::DirEntry| {
        let lease = lease_of(entry.file_name().to_str()?)?;
        let changed = Timestamp::try_from(entry.metadata().ok()?.modified().ok()?).ok()?;
        (changed.as_millisecond() < before.0).then(|| (lease, entry.path()))
    };
    let entries = std::fs::read_dir(root).into_iter().flatten().flatten();
    entries.filter_map(old).collect()
}

async fn delete_unknown(
    logs: Vec<(LeaseId, PathBuf)>,
    store: &Store,
) -> Result<(), berth_store::Error> {
    let mut of: Option<JobId> = None;
    let mut known = BTreeSet::new();
    for (lease, folder) in logs {
        if of != Some(lease.job) {
            let rows = store.leases_of(lease.job).await?;
            known = rows.into_iter().map(|row| row.id).collect();
            of = Some(lease.job);
        }
        if !known.contains(&lease)
            && let Err(error) = tokio::fs::remove_dir_all(&folder).await
        {
            tracing::warn!(%error, folder = %folder.display(), "an old log cannot be deleted");
        }
    }
    Ok(())
}

/// A log as it is written here. What an earlier server had begun is only replaced when there is
/// something to replace it with.
struct Copy {
    folder: PathBuf,
    writer: Option<LogWriter>,
    last: Option<Timestamp>,
}

impl Copy {
    fn begin(&mut self) -> std::io::Result<()> {
        if self.writer.is_some() {
            return Ok(());
        }
        let logs = self.folder.join("logs");
        match std::fs::remove_dir_all(&logs) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        home::private(&logs)?;
        self.writer = Some(LogWriter::new(&logs, 0, LogLimits::default()));
        Ok(())
    }

    fn add(&mut self, line: &LogLine) {
        let at = line.at.or(self.last).unwrap_or_else(Timestamp::now);
        self.last = Some(at);
        if let Some(writer) = &mut self.writer {
            writer.write(&line.text, Time(at.as_millisecond()));
        }
    }

    fn add_remark(&mut self, text: &str) {
        let has_some = self.writer.is_none() && self.folder.join("logs").exists();
        if !has_some && self.begin().is_ok() {
            self.add(&LogLine { at: None, text: text.as_bytes().to_vec() });
        }
    }

    fn close(&mut self) {
        let made = home::private(&self.folder.join("logs"))
            .and_then(|()| std::fs::write(self.folder.join(WHOLE), ""));
        if let Err(error) = made {
            tracing::warn!(%error, folder = %self.folder.display(), "a log cannot be kept");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_model::{Micros, Span};
    use berth_store::{Batch, LeaseRow, Options};

    fn lease(text: &str) -> LeaseId {
        lease_of(text).unwrap()
    }

    async fn store(folder: &Path, leases: &[LeaseId]) -> Store {
        let url = berth_store::sqlite_url(&folder.join("berth.db"));
        let store = Store::open(&url, Options::default()).await.unwrap();
        let row = |id: &LeaseId| LeaseRow {
            id: *id,
            node: "a".to_owned(),
            slices: "[]".to_owned(),
            price: Micros::ZERO,
            opened: Time(0),
            started: None,
            closed: None,
            outcome: None,
            exit: None,
            cost: Micros::ZERO,
            stop_at: None,
            stop: None,
        };
        let batch = Batch { leases: leases.iter().map(row).collect(), ..Batch::default() };
        store.writer("a test").await.unwrap().commit(&batch).await.unwrap();
        store
    }

    #[tokio::test]
    async fn old_logs_go_with_the_rows_of_their_leases() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("logs");
        let names = ["17.0.0", "17.0.1", "17_3.2.0", "notes"];
        for name in names {
            std::fs::create_dir_all(root.join(name).join("logs")).unwrap();
        }
        let store = store(folder.path(), &[lease("17.0.1")]).await;
        let left = || names.map(|name| root.join(name).exists());
        let now = berth_engine::clock::now();
        assert!(older(&root, now - Span::hours(1)).is_empty(), "they are new");
        let old = older(&root, now + Span::hours(1)).into_iter().collect();
        delete_unknown(old, &store).await.unwrap();
        assert_eq!(left(), [false, true, false, true]);
    }
}
