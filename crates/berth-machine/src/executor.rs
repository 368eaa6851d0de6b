//! Carries out what was decided. Commands are taken one after another, so that a stop never comes
//! before its start; nothing is chosen here.

use crate::identity::Identity;
use crate::workplace::Workplace;
use berth_engine::{Core, Inlet, LeaseStart, StartError, clock};
use berth_model::{Cause, LeaseId, Observed, Span};
use berth_node::{Driver, Started, Stop};
use berth_service::Vault;
use std::convert::Infallible;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::mpsc;

/// How long the watcher sleeps without news, at the most.
const WATCH: Duration = Duration::from_secs(1);

enum DriverCommand {
    Start(Box<LeaseStart>),
    Stop(LeaseId, Stop),
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
}

impl Executor {
    pub fn start(&self, core: &Core, lease: LeaseId) -> Result<(), StartError> {
        let job = core.jobs.get(&lease.job);
        let Some((job, live)) = job.and_then(|job| Some((job, job.leases.get(&lease)?))) else {
            // It was closed before it was begun.
            return Ok(());
        };
        let start = LeaseStart::of(job, live, clock::now())?;
        self.send(DriverCommand::Start(Box::new(start)));
        Ok(())
    }

    pub fn stop(&self, lease: LeaseId, cause: Cause, grace: Span) {
        self.send(DriverCommand::Stop(lease, Stop { cause, grace, signal: None }));
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
pub fn begin(tools: Tools, inlet: Inlet<Infallible>) -> (Executor, Watch) {
    let (commands, taken) = mpsc::unbounded_channel();
    let watch = Watch::begin(tools.driver.clone(), inlet.clone());
    tokio::spawn(work(tools, inlet, taken));
    (Executor { commands }, watch)
}

async fn work(
    tools: Tools,
    inlet: Inlet<Infallible>,
    mut commands: mpsc::UnboundedReceiver<DriverCommand>,
) {
    let tools = Arc::new(tools);
    while let Some(command) = commands.recv().await {
        let driver = tools.driver.clone();
        let done = match command {
            DriverCommand::Start(start) => start_one(&tools, &inlet, *start).await,
            DriverCommand::Stop(lease, stop) => on_disk(move || driver.stop(lease, stop)).await,
            DriverCommand::Acknowledge(lease) => {
                let identity = tools.identity.clone();
                on_disk(move || {
                    identity.take_back(lease);
                    driver.acknowledge(lease)
                })
                .await
            }
        };
        if let Err(error) = done {
            tracing::error!(%error, "a command could not be carried out");
        }
    }
}

async fn start_one(
    tools: &Arc<Tools>,
    inlet: &Inlet<Infallible>,
    start: LeaseStart,
) -> Result<(), berth_node::Error> {
    let lease = start.lease;
    let secrets = match tools.vault.open_all(&start.team, start.secrets()).await {
        Ok(secrets) => secrets,
        Err(why) => {
            inlet.not_started(lease, why.to_string()).await;
            return Ok(());
        }
    };
    let driver = tools.driver.clone();
    let tools = tools.clone();
    let begun = tokio::task::spawn_blocking(move || {
        let task = tools.workplace.task(&start, &secrets);
        let mut task = task.map_err(|error| error.to_string())?;
        tools.identity.equip(lease, &mut task.env);
        tools.driver.start(task).map_err(|error| error.to_string())
    });
    match begun.await {
        Ok(Ok(Started::Fresh)) => {}
        Ok(Ok(Started::Known)) => tell_end(driver, inlet, lease).await,
        Ok(Err(why)) => inlet.not_started(lease, why).await,
        Err(panic) => inlet.not_started(lease, format!("starting it failed: {panic}")).await,
    }
    Ok(())
}

/// Tells how a lease has ended that was run before, if it has. The driver has told so once, and a
/// log that was restored from a backup may not know: the lease would then hold its GPUs for ever.
async fn tell_end(driver: Arc<Driver>, inlet: &Inlet<Infallible>, lease: LeaseId) {
    let ended = tokio::task::spawn_blocking(move || driver.ended(lease)).await;
    match ended {
        Ok(Ok(Some(ended))) => inlet.task(Observed::Ended(Box::new(ended))).await,
        Ok(Ok(None)) | Err(_) => {}
        Ok(Err(error)) => tracing::error!(%lease, %error, "cannot tell how a task has ended"),
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
    fn begin(driver: Arc<Driver>, inlet: Inlet<Infallible>) -> Watch {
        let ends = Arc::new(AtomicBool::new(false));
        let end = ends.clone();
        let thread = std::thread::spawn(move || {
            while !end.load(Ordering::Relaxed) {
                match driver.wait(WATCH) {
                    Ok(news) => news.into_iter().for_each(|observed| inlet.blocking_task(observed)),
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

impl Drop for Watch {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}
