//! Carries out what was decided. Commands are taken one after another, so that a stop never comes
//! before its start; nothing is chosen here.

use crate::data::{DataCache, DataError};
use crate::energy::Energy;
use crate::fetching::Fetching;
use crate::gpu_holders::{self, GpuHolders};
use crate::identity::Identity;
use crate::recovery::{Recovery, Seen};
use crate::slices::{self, SliceError, Slices};
use crate::workplace::{self, CodeError, Workplace};
use berth_engine::{Core, Inlet, LeaseStart, StartError, clock};
use berth_model::{Cause, LeaseId, Observed, Slice, Span, Time};
use berth_node::{Driver, Lack, Started, Stop, Stranger, Trouble};
use berth_service::Vault;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::mpsc;

/// How long the watcher sleeps without news, at the most.
const WATCH: Duration = Duration::from_secs(1);
/// Between two tries of a command that met trouble of the machine.
const AGAIN: Duration = Duration::from_secs(2);

#[derive(Clone)]
enum DriverCommand {
    Start(Box<LeaseStart>),
    /// Its code and data are here.
    Begin(Box<LeaseStart>),
    Stop(LeaseId, Stop),
    /// A GPU of it has failed.
    GiveUp(LeaseId, Span),
    /// Until then, by the server's clock.
    Limit(LeaseId, Option<Time>),
    Acknowledge(LeaseId),
}

/// The way to the driver.
#[derive(Clone)]
pub struct Executor {
    /// Not more than a start, a stop and an acknowledgement for each open lease, so what the
    /// machine can hold bounds it. The loop must not wait for a driver that waits for the loop.
    commands: mpsc::UnboundedSender<DriverCommand>,
}

/// What the executor works with.
pub struct Tools {
    pub workplace: Arc<Workplace>,
    pub driver: Arc<Driver>,
    pub vault: Vault,
    pub identity: Identity,
    pub holders: Arc<GpuHolders>,
    pub slices: Arc<Slices>,
    /// Nothing where no GPU counts its energy.
    pub energy: Option<Arc<Energy>>,
    pub data: Arc<DataCache>,
}

impl Tools {
    /// Sees that the code and the data of a task are on this machine.
    async fn provide(&self, start: &LeaseStart) -> Result<(), NotStarted> {
        self.workplace.provide_code(start).await?;
        self.data.provide(&self.workplace.home, &start.team, &start.run).await?;
        Ok(())
    }
}

/// Why a task was not started.
#[derive(Debug, thiserror::Error)]
enum NotStarted {
    /// It never will be.
    #[error("{0}")]
    Job(String),
    /// The machine could not, and may later.
    #[error("{0}")]
    Machine(String),
    /// Its GPUs are in use by processes that no job explains.
    #[error("{}", words(.0))]
    Held(Vec<Stranger>),
}

fn words(strangers: &[Stranger]) -> String {
    strangers.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
}

impl From<berth_node::Error> for NotStarted {
    fn from(error: berth_node::Error) -> NotStarted {
        match error.trouble() {
            Some(_) => NotStarted::Machine(error.in_full()),
            None => NotStarted::Job(error.in_full()),
        }
    }
}

impl From<DataError> for NotStarted {
    fn from(error: DataError) -> NotStarted {
        match error.is_passing() {
            true => NotStarted::Machine(error.to_string()),
            false => NotStarted::Job(error.to_string()),
        }
    }
}

impl From<CodeError> for NotStarted {
    fn from(error: CodeError) -> NotStarted {
        let words = format!("its code: {error}");
        match error.is_passing() {
            true => NotStarted::Machine(words),
            false => NotStarted::Job(words),
        }
    }
}

impl NotStarted {
    fn of_slices(error: SliceError) -> NotStarted {
        match error.is_passing() {
            true => NotStarted::Machine(error.to_string()),
            false => NotStarted::Job(error.to_string()),
        }
    }

    /// Why there is no task to start. A place that the job names may be read-only for good, which
    /// is no trouble of the machine; a place of the server's own must not be.
    fn of_task(error: &workplace::Error, home: &Path) -> NotStarted {
        let met = match error {
            workplace::Error::Folder { path, source } => {
                Trouble::of(source).map(|trouble| (trouble, path))
            }
            _ => None,
        };
        let is_machine =
            met.is_some_and(|(trouble, path)| trouble.lack != Lack::Disk || path.starts_with(home));
        match is_machine {
            true => NotStarted::Machine(error.to_string()),
            false => NotStarted::Job(error.to_string()),
        }
    }
}

impl Executor {
    pub fn start(&self, core: &Core, lease: LeaseId) -> Result<(), StartError> {
        let job = core.jobs.get(&lease.job);
        let Some((job, live)) = job.and_then(|job| Some((job, job.leases.get(&lease)?))) else {
            // It was closed before it was begun.
            return Ok(());
        };
        let now = clock::now();
        let start = LeaseStart::of(job, live, now)?.until(core.state.ends(lease.job), now);
        self.send(DriverCommand::Start(Box::new(start)));
        Ok(())
    }

    pub fn stop(&self, lease: LeaseId, cause: Cause, grace: Span) {
        self.send(DriverCommand::Stop(lease, Stop { cause, grace, signal: None }));
    }

    /// Ends a task one of whose GPUs has failed.
    pub fn give_up(&self, lease: LeaseId, grace: Span) {
        self.send(DriverCommand::GiveUp(lease, grace));
    }

    /// Tells the supervisor how long the task may still run: it has to know without a server.
    pub fn limit(&self, core: &Core, lease: LeaseId) {
        self.send(DriverCommand::Limit(lease, core.state.ends(lease.job)));
    }

    pub fn acknowledge(&self, lease: LeaseId) {
        self.send(DriverCommand::Acknowledge(lease));
    }

    fn send(&self, command: DriverCommand) {
        // The receiver is gone only when the server ends; the next server orders again.
        let _ = self.commands.send(command);
    }
}

/// Starts to take commands, and to report what happens.
pub fn begin(tools: Tools, inlet: Inlet<Seen>) -> (Executor, Watch) {
    let (commands, taken) = mpsc::unbounded_channel();
    let condition = tools.holders.condition.clone();
    let recovery = Recovery::new(tools.driver.clone(), condition, inlet.clone());
    let holders = tools.holders.clone();
    let slices = tools.slices.clone();
    let energy = tools.energy.clone();
    let watch = Watch::begin(tools.driver.clone(), inlet.clone(), recovery.clone(), slices, energy);
    let again = commands.downgrade();
    let fetching = Arc::default();
    let tools = Arc::new(tools);
    let worker = Worker { tools, inlet: inlet.clone(), recovery, again, fetching };
    let looking = [
        tokio::spawn(worker.recovery.clone().look_around()),
        tokio::spawn(gpu_holders::look_around(holders, inlet)),
        tokio::spawn(slices::tidy_up(worker.tools.slices.clone())),
        tokio::spawn(slices::look_around(worker.tools.slices.clone())),
    ];
    let (data, told) = (worker.tools.data.clone(), worker.inlet.clone());
    tokio::spawn(async move { data.tell(&told).await });
    tokio::spawn(async move {
        worker.work(taken).await;
        looking.iter().for_each(tokio::task::JoinHandle::abort);
    });
    (Executor { commands }, watch)
}

struct Worker {
    tools: Arc<Tools>,
    inlet: Inlet<Seen>,
    recovery: Arc<Recovery>,
    /// For what has to be tried again.
    again: mpsc::WeakUnboundedSender<DriverCommand>,
    fetching: Arc<Fetching>,
}

/// Why a task ended that was stopped while Berth fetched its code or data.
const STOPPED: &str = "it was asked to stop while its files were fetched";

impl Worker {
    async fn work(&self, mut commands: mpsc::UnboundedReceiver<DriverCommand>) {
        while let Some(command) = commands.recv().await {
            let driver = self.tools.driver.clone();
            let repeated = command.clone();
            let done = match command {
                DriverCommand::Start(start) => {
                    let needs_code = self.tools.workplace.needs_code(&start);
                    match needs_code || DataCache::is_needed(&start.run) {
                        true => self.fetch(*start),
                        false => self.start(*start).await,
                    }
                    Ok(())
                }
                DriverCommand::Begin(start) => {
                    if let Some(start) = self.fetching.finish(*start) {
                        self.start(start).await;
                    }
                    Ok(())
                }
                DriverCommand::Stop(lease, _) if self.fetching.give_up(lease) => {
                    self.inlet.not_started(lease, STOPPED.to_owned()).await;
                    Ok(())
                }
                DriverCommand::GiveUp(lease, _) if self.fetching.give_up(lease) => {
                    let why = "its GPU failed while its files were fetched".to_owned();
                    self.inlet.site(Seen::Trouble { lease, why }).await;
                    Ok(())
                }
                // The core says again how long it may run once it runs.
                DriverCommand::Limit(lease, _) if self.fetching.has(lease) => Ok(()),
                DriverCommand::Stop(lease, stop) => on_disk(move || driver.stop(lease, stop)).await,
                DriverCommand::GiveUp(lease, grace) => {
                    on_disk(move || driver.give_up(lease, grace)).await
                }
                DriverCommand::Limit(lease, ends) => {
                    let left = ends.map(|ends| (ends - clock::now()).max(Span::ZERO));
                    on_disk(move || driver.limit(lease, left)).await
                }
                DriverCommand::Acknowledge(lease) => {
                    let identity = self.tools.identity.clone();
                    let acknowledge = move || {
                        identity.take_back(lease);
                        driver.acknowledge(lease)
                    };
                    match on_disk(acknowledge).await {
                        // Of a task that was never begun nothing is left to put away.
                        Err(berth_node::Error::Unknown { .. }) => Ok(()),
                        done => done,
                    }
                }
            };
            let Err(error) = done else { continue };
            let error_text = error.in_full();
            if error.trouble().is_some() {
                tracing::warn!(error = error_text, "a command is tried again");
                self.recovery.consider();
                self.repeat(repeated);
            } else {
                tracing::error!(error = error_text, "a command could not be carried out");
            }
        }
    }

    /// Tries a command again later. Repeating one has no effect beyond the first time, and a task
    /// is started by one command only, so others may come between.
    fn repeat(&self, command: DriverCommand) {
        let again = self.again.clone();
        tokio::spawn(async move {
            tokio::time::sleep(AGAIN).await;
            if let Some(commands) = again.upgrade() {
                let _ = commands.send(command);
            }
        });
    }

    /// Fetches the code and the data of a task, and has it begun after. Other commands are taken meanwhile.
    fn fetch(&self, start: LeaseStart) {
        let lease = start.lease;
        if !self.fetching.begin(lease) {
            return;
        }
        let (tools, fetching, again) =
            (self.tools.clone(), self.fetching.clone(), self.again.clone());
        let (inlet, recovery) = (self.inlet.clone(), self.recovery.clone());
        let task = tokio::spawn(async move {
            let driver = tools.driver.clone();
            let known = tokio::task::spawn_blocking(move || driver.is_known(lease)).await;
            let provided = match known {
                // It runs, so it has its files.
                Ok(Ok(true)) => Ok(()),
                _ => tools.provide(&start).await,
            };
            if DataCache::is_needed(&start.run) {
                tools.data.tell(&inlet).await;
            }
            match provided {
                Ok(()) => {
                    if let Some(again) = again.upgrade() {
                        let _ = again.send(DriverCommand::Begin(Box::new(start)));
                    }
                }
                Err(error) => {
                    if fetching.give_up_quietly(lease) {
                        told(&inlet, &recovery, lease, error).await;
                    }
                }
            }
        });
        self.fetching.note(lease, task.abort_handle());
    }

    async fn start(&self, start: LeaseStart) {
        let lease = start.lease;
        let Err(why) = self.try_start(start).await else { return };
        if let NotStarted::Held(strangers) = &why {
            tracing::error!(%lease, why = why.to_string(), "GPUs are not used");
            for seen in self.tools.holders.set_aside(strangers) {
                self.inlet.site(seen).await;
            }
        }
        told(&self.inlet, &self.recovery, lease, why).await;
    }

    async fn try_start(&self, start: LeaseStart) -> Result<(), NotStarted> {
        let lease = start.lease;
        // Before anything is looked at that may have changed since: a task that runs keeps its
        // GPUs, whether or not it could be started today.
        let driver = self.tools.driver.clone();
        let known = tokio::task::spawn_blocking(move || driver.is_known(lease)).await;
        if matches!(known, Ok(Ok(true))) {
            self.found(lease, start.slices).await;
            return Ok(());
        }
        let secrets = self.tools.vault.open_all(&start.team, start.secrets()).await;
        let secrets = secrets.map_err(|why| NotStarted::Job(why.to_string()))?;
        let tools = self.tools.clone();
        let begun = tokio::task::spawn_blocking(move || {
            let provided = tools.slices.provide(&start.slices, start.run.kind);
            let provided = provided.map_err(NotStarted::of_slices)?;
            let task = tools.workplace.task(&start, &secrets, provided);
            let home = tools.workplace.home.root();
            let mut task = task.map_err(|why| NotStarted::of_task(&why, home))?;
            tools.identity.equip(lease, &mut task.env);
            tools.identity.equip_tracking(&start, &mut task.env);
            let strangers = tools.holders.of(&task.gpus);
            if !strangers.is_empty() {
                return Err(NotStarted::Held(strangers));
            }
            let (slices, started) = (start.slices, tools.driver.start(task)?);
            if let Some(energy) = tools.energy.as_ref().filter(|_| started != Started::Known) {
                energy.begin(lease, &slices, false);
            }
            Ok((started, slices))
        });
        let panicked = |panic| NotStarted::Job(format!("starting it failed: {panic}"));
        if let (Started::Known, slices) = begun.await.map_err(panicked)?? {
            self.found(lease, slices).await;
        }
        Ok(())
    }

    /// Tells how a lease has ended that was run before, if it has. The driver has told so once, and
    /// a log that was restored from a backup may not know: the lease would then hold its GPUs for
    /// ever. One that goes on uses energy.
    async fn found(&self, lease: LeaseId, slices: Vec<Slice>) {
        let (driver, energy) = (self.tools.driver.clone(), self.tools.energy.clone());
        let ended = tokio::task::spawn_blocking(move || {
            let ended = driver.ended(lease);
            if let (Ok(None), Some(energy)) = (&ended, energy) {
                energy.begin(lease, &slices, true);
            }
            ended
        });
        match ended.await {
            Ok(Ok(Some(ended))) => self.inlet.task(Observed::Ended(Box::new(ended))).await,
            Ok(Ok(None)) | Err(_) => {}
            Ok(Err(error)) => tracing::error!(%lease, %error, "cannot tell how a task has ended"),
        }
    }
}

/// Reports why a task was not started.
async fn told(inlet: &Inlet<Seen>, recovery: &Arc<Recovery>, lease: LeaseId, why: NotStarted) {
    let words = why.to_string();
    match why {
        NotStarted::Job(_) => inlet.not_started(lease, words).await,
        NotStarted::Machine(_) => {
            recovery.consider();
            inlet.site(Seen::Trouble { lease, why: words }).await;
        }
        NotStarted::Held(_) => inlet.site(Seen::Trouble { lease, why: words }).await,
    }
}

async fn on_disk(
    act: impl FnOnce() -> Result<(), berth_node::Error> + Send + 'static,
) -> Result<(), berth_node::Error> {
    tokio::task::spawn_blocking(act).await.unwrap_or(Ok(()))
}

/// The thread that listens to the driver.
pub struct Watch {
    ends: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Watch {
    fn begin(
        driver: Arc<Driver>,
        inlet: Inlet<Seen>,
        recovery: Arc<Recovery>,
        slices: Arc<Slices>,
        energy: Option<Arc<Energy>>,
    ) -> Watch {
        let ends = Arc::new(AtomicBool::new(false));
        let end = ends.clone();
        let thread = std::thread::spawn(move || {
            while !end.load(Ordering::Relaxed) {
                match driver.wait(WATCH) {
                    Ok(news) => {
                        if news.iter().any(is_trouble) {
                            recovery.consider();
                        }
                        for observed in news {
                            if let (Observed::Ended(ended), Some(energy)) = (&observed, &energy) {
                                energy.end(ended.lease);
                            }
                            inlet.blocking_task(explained(observed, &driver, &slices));
                        }
                    }
                    Err(error) => {
                        tracing::error!(%error, "the tasks cannot be watched");
                        std::thread::sleep(WATCH);
                    }
                }
            }
        });
        Watch { ends, thread: Some(thread) }
    }
}

/// An end with what its GPU had to do with it. A program whose MPS daemon dies fails at once, often
/// before anybody has looked after the daemon.
fn explained(observed: Observed, driver: &Driver, slices: &Slices) -> Observed {
    match observed {
        Observed::Ended(ended) if ended.code != Some(0) && ended.gpu_error.is_none() => {
            slices.note_dead_daemons();
            let again = driver.ended(ended.lease).ok().flatten();
            Observed::Ended(again.map_or(ended, Box::new))
        }
        observed => observed,
    }
}

fn is_trouble(observed: &Observed) -> bool {
    matches!(observed, Observed::Ended(ended) if ended.trouble.is_some())
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io;

    #[test]
    fn a_place_that_the_job_names_may_be_read_only_and_one_of_the_server_may_not() {
        let home = Path::new("/srv/berth");
        let is_machine = |path: &str, code: i32| {
            let source = io::Error::from_raw_os_error(code);
            let error = workplace::Error::Folder { path: path.into(), source };
            matches!(NotStarted::of_task(&error, home), NotStarted::Machine(_))
        };
        let (full, read_only, denied) = (28, 30, 13);
        assert!(is_machine("/srv/berth/jobs/1", full) && is_machine("/data/x", full));
        assert!(is_machine("/srv/berth/jobs/1", read_only) && !is_machine("/data/x", read_only));
        assert!(!is_machine("/srv/berth/jobs/1", denied));
    }
}
