//! From a lease to the processes a driver starts.

use berth_engine::LeaseStart;
use berth_model::run::{Command, Launch, ReadyCheck, RunSpec};
use berth_model::{JobId, Name};
use berth_node::{DeviceError, Gang, Inventory, TaskSpec};
use berth_service::home::{self, Home};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};

/// Why a task cannot be made. People read the text as the reason that the job did not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot make the folder {}: {source}", path.display())]
    Folder { path: PathBuf, source: io::Error },
    #[error("team {team} has no secret `{secret}`; add it with `berth secret set {secret}`")]
    NoSecret { team: String, secret: String },
    #[error("the volume {volume} is not on this machine")]
    NoVolume { volume: String },
    #[error(
        "cannot put the volume {volume} at {}: {source}; name a place in the job's own folder, such \
         as `data`",
        path.display()
    )]
    Link { volume: String, path: PathBuf, source: io::Error },
    #[error("{0}")]
    Gpus(DeviceError),
}

/// Makes the task that a driver starts, and its folders.
pub trait MakeTask {
    fn task(
        &self,
        home: &Home,
        inventory: &Inventory,
        secrets: &BTreeMap<String, String>,
    ) -> Result<TaskSpec, Error>;
}

impl MakeTask for LeaseStart {
    fn task(
        &self,
        home: &Home,
        inventory: &Inventory,
        secrets: &BTreeMap<String, String>,
    ) -> Result<TaskSpec, Error> {
        let job = self.lease.job;
        let run = self.run.of_element(job.element);
        let own = home.job(job);
        folder(&own)?;
        let mut env = run.env.0.clone();
        for (variable, secret) in &run.secrets {
            let value = secrets.get(secret).ok_or_else(|| Error::NoSecret {
                team: self.team.clone(),
                secret: secret.clone(),
            })?;
            env.insert(variable.clone(), value.clone());
        }
        let directory = match &run.workdir {
            Some(path) => PathBuf::from(path),
            None => own.clone(),
        };
        for (at, source) in run.volumes.iter().chain(&run.data) {
            volume(home, &directory, at, source)?;
        }
        let checkpoint = checkpoint(home, job, &run);
        folder(&checkpoint)?;
        let resumed = self.resume_from.map(|other| checkpoint_of(home, other));
        let resume_from = resumed.or((self.lease.attempt > 0).then(|| checkpoint.clone()));
        let gpus = inventory.gpus(&self.slices).map_err(Error::Gpus)?;
        Ok(TaskSpec {
            lease: self.lease,
            name: Name::new(&self.name),
            team: Name::new(&self.team),
            queue: Name::new(&self.team),
            command: match &run.command {
                Command::Shell(text) => vec!["bash".into(), "-c".into(), text.clone()],
                Command::Program(words) => words.clone(),
            },
            directory,
            env,
            launch: match run.launch {
                Launch::Once => berth_node::Launch::Once,
                Launch::Ranks => berth_node::Launch::Ranks { count: run.ranks },
                Launch::Torchrun => berth_node::Launch::Torchrun { count: run.ranks },
            },
            gpus,
            cpu: self.cpu,
            memory: self.memory,
            gang: gang(self),
            grace: run.grace,
            ends_at: self.ends_at,
            runs_for: self.runs_for,
            checkpoint: Some(checkpoint),
            resume_from: resume_from.filter(|path| is_filled(path)),
            model: None,
            scratch: None,
            run: None,
            port: self.port,
            ready: self.port.and(run.ready.as_ref()).map(|ready| match &ready.check {
                ReadyCheck::Http(path) => berth_node::Ready::Http { path: path.clone() },
                ReadyCheck::Tcp => berth_node::Ready::Connect,
            }),
            ready_within: run.ready.as_ref().and_then(|ready| ready.within),
            logs: berth_node::LogLimits {
                file_bytes: run.logs.file.0.unsigned_abs(),
                files: run.logs.files,
            },
        })
    }
}

/// All tasks of the job are on this machine, each as if on a node of its own.
fn gang(start: &LeaseStart) -> Gang {
    let mut gang = Gang::alone(start.lease, &start.node);
    gang.hosts = vec![start.node.clone(); start.tasks.max(1) as usize];
    gang.node_rank = start.lease.task;
    gang
}

fn checkpoint_of(home: &Home, job: JobId) -> PathBuf {
    home.job(job).join("checkpoints")
}

fn checkpoint(home: &Home, job: JobId, run: &RunSpec) -> PathBuf {
    match &run.checkpoint.path {
        // Absolute paths stay what they are.
        Some(path) => home.job(job).join(path),
        None => checkpoint_of(home, job),
    }
}

fn is_filled(path: &Path) -> bool {
    std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some())
}

fn folder(path: &Path) -> Result<(), Error> {
    home::private(path).map_err(|source| Error::Folder { path: path.to_owned(), source })
}

/// On one machine a volume is a folder: one of the machine's own, or one that Berth keeps by name.
/// It appears where the job wants it as a link, so that place has to be free, or that folder.
fn volume(home: &Home, directory: &Path, at: &str, source: &str) -> Result<(), Error> {
    let target = if source.starts_with('/') {
        PathBuf::from(source)
    } else {
        let kept = home.volumes().join(source);
        folder(&kept)?;
        kept
    };
    if !target.exists() {
        return Err(Error::NoVolume { volume: source.to_owned() });
    }
    let place = directory.join(at);
    if place == target || std::fs::read_link(&place).is_ok_and(|link| link == target) {
        return Ok(());
    }
    if let Some(parent) = place.parent() {
        std::fs::create_dir_all(parent)
            .map_err(|source| Error::Folder { path: parent.to_owned(), source })?;
    }
    std::os::unix::fs::symlink(&target, &place).map_err(|error| Error::Link {
        volume: source.to_owned(),
        path: place,
        source: error,
    })
}
