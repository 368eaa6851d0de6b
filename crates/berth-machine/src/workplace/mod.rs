//! From a lease to the processes a driver starts: who they are, and what they see.

mod code;
mod keys;
mod paths;
mod python;
mod setups;
mod shares;
mod snapshots;
mod volumes;

use crate::slices::Provided;
use crate::volumes::Volumes;
use berth_engine::LeaseStart;
use berth_file::job::Refused;
use berth_model::run::{Command, Launch, Network, ReadyCheck, RunSpec};
use berth_model::{JobId, Name};
use berth_node::{
    Account, Accounts, Confine, Gang, Isolation, Shown, TaskSpec, give, own_account, remove_tree,
    shell_command,
};
use berth_service::Home;
pub use keys::{KeyError, check as check_keys};
use paths::{Judge, PathError, Rights, normal};
use rustix::fs::{CWD, Dir, Mode, OFlags, ResolveFlags, openat2};
pub use setups::{of_user as setup_of, tidy as tidy_setups};
pub use shares::{ShareError, shares};
pub use snapshots::{CodeError, Snapshots};
use std::collections::BTreeMap;
use std::fs::{DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use volumes::{Volume, VolumeError};

/// Why a task cannot be made. People read the text as the reason that the job did not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot make the folder {}: {source}", path.display())]
    Folder { path: PathBuf, source: io::Error },
    #[error("team {team} has no secret `{secret}`; add it with `berth secret set {secret}`")]
    NoSecret { team: String, secret: String },
    #[error("{0}")]
    Volume(#[from] VolumeError),
    #[error("its code: {0}")]
    Code(#[from] CodeError),
    #[error("the working directory: {0}")]
    Workdir(PathError),
    #[error("this machine has no folder {}; make it first, or name another one", .0.display())]
    NoWorkdir(PathBuf),
    #[error("{} is not a folder", .0.display())]
    NotAFolder(PathBuf),
    #[error("checkpoint.path: {0}")]
    Checkpoint(PathError),
    #[error("checkpoint.path {} is in no folder that the job can write to", .0.display())]
    NoCheckpoint(PathBuf),
    #[error("jobs are not isolated here, so none can be kept from the network")]
    NeedsIsolation,
}

/// Where jobs work on this machine.
#[derive(Debug)]
pub struct Workplace {
    pub home: Home,
    /// The volumes that teams have by name.
    pub volumes: Arc<Volumes>,
    pub isolation: Isolation,
    pub accounts: Accounts,
    /// Folders of the machine for jobs of everybody, where jobs have no accounts of their own.
    pub shares: Vec<PathBuf>,
    /// The server's keys outside of its home, such as that of its certificate, as they were named.
    pub keys: Vec<PathBuf>,
    /// The code of jobs.
    pub snapshots: Arc<Snapshots>,
}

/// Who a job is on this machine.
struct Identity {
    /// What its processes run as; nothing where they keep the server's account.
    account: Option<Account>,
    /// Whose rights decide what of the machine it sees; those of everybody where left out.
    rights: Option<Account>,
    is_operator: bool,
}

impl Workplace {
    /// Makes the task that a driver starts, and its folders.
    pub fn task(
        &self,
        start: &LeaseStart,
        secrets: &BTreeMap<String, String>,
        Provided { gpus, nodes, env: gpu_env, shown }: Provided,
    ) -> Result<TaskSpec, Error> {
        let job = start.lease.job;
        let run = start.run.of_element(job.element);
        let who = self.identity(&start.user, &start.team);
        let own = self.home.job(job);
        let mut env = env(start, &run, secrets)?;
        env.extend(gpu_env);
        let checkpoint = self.checkpoint_of(job, &run)?;
        self.make_own(&own, &checkpoint, who.account.as_ref(), &start.team, &run)?;
        let directory = directory_of(&own, &run);
        let setup = setups::of(&self.home, start, &run);
        if let Some(folder) = &setup {
            let made = setups::make(folder, who.account.as_ref());
            made.map_err(|source| Error::Folder { path: folder.clone(), source })?;
            env.insert(setups::VARIABLE.to_owned(), folder.display().to_string());
        }
        let resumed = start.resume_from.map(|other| self.home.job(other).join("checkpoints"));
        let resumed = resumed.filter(|path| is_filled(path));
        let confine = match self.isolation.is_on() {
            true => {
                let seen = Seen { own: &own, directory: &directory, checkpoint: &checkpoint };
                let mut confine = self.confine(start, &run, &env, who, seen)?;
                confine.shown.extend(resumed.iter().map(|path| Shown::in_place(path, false)));
                confine.shown.extend(setup.iter().map(|path| Shown::in_place(path, true)));
                confine.devices = nodes;
                confine.shown.extend(shown);
                Some(confine)
            }
            false => {
                for volume in volumes_of(&run, &directory, &own, &start.team) {
                    volume.link(&self.home, &self.volumes)?;
                }
                None
            }
        };
        let saved = match &confine {
            Some(confine) => source_of(&checkpoint, &confine.shown),
            None => Some(checkpoint.clone()),
        };
        let is_saved = || start.lease.attempt > 0 && saved.is_some_and(|path| is_filled(&path));
        let resume_from = resumed.or_else(|| is_saved().then(|| checkpoint.clone()));
        Ok(TaskSpec {
            lease: start.lease,
            name: Name::new(&start.name),
            team: Name::new(&start.team),
            queue: Name::new(&start.team),
            command: match &run.command {
                Command::Shell(text) => shell_command(text),
                Command::Program(words) => words.clone(),
            },
            directory,
            env,
            launch: match run.launch {
                Launch::Once => berth_node::Launch::Once,
                Launch::Ranks => berth_node::Launch::Ranks { count: run.ranks },
                Launch::Torchrun => berth_node::Launch::Torchrun { count: run.ranks },
            },
            setup: run.setup.clone(),
            gpus,
            cpu: start.cpu,
            memory: start.memory,
            gang: gang(start),
            grace: run.grace,
            ends_at: start.ends_at,
            runs_for: start.runs_for,
            checkpoint: Some(checkpoint),
            resume_from,
            model: None,
            scratch: None,
            run: None,
            port: start.port,
            ready: start.port.and(run.ready.as_ref()).map(|ready| match &ready.check {
                ReadyCheck::Http(path) => berth_node::Ready::Http { path: path.clone() },
                ReadyCheck::Tcp => berth_node::Ready::Connect,
            }),
            ready_within: run.ready.as_ref().and_then(|ready| ready.within),
            logs: berth_node::LogLimits {
                file_bytes: run.logs.file.0.unsigned_abs(),
                files: run.logs.files,
            },
            confine,
        })
    }

    /// Whether a job has to get its code before its task is made. One that has run has its copy.
    pub fn needs_code(&self, start: &LeaseStart) -> bool {
        start.run.code.is_some() && !self.home.job(start.lease.job).exists()
    }

    /// Sees that the code of a job is on this machine.
    pub async fn provide_code(&self, start: &LeaseStart) -> Result<(), CodeError> {
        match &start.run.code {
            Some(id) if self.needs_code(start) => self.snapshots.provide(&start.team, id).await,
            _ => Ok(()),
        }
    }

    /// Whether a job could have its paths, asked before it is accepted. The folder it starts in has
    /// to be there, unless a job that it comes after may still make it.
    pub fn check(
        &self,
        user: &str,
        team: &str,
        run: &RunSpec,
        is_made_later: bool,
    ) -> Result<(), Refused> {
        // Any number will do: nothing is made.
        let own = self.home.job(JobId::new(u64::MAX >> 12));
        let who = self.identity(user, team);
        let directory = directory_of(&own, run);
        for volume in volumes_of(run, &directory, &own, team) {
            let rights = self.isolation.is_on().then(|| self.rights(&who));
            let checked = volume.check(&self.home, rights.as_ref(), is_made_later);
            let key = if run.data.contains_key(volume.at) { "data" } else { "volumes" };
            checked.map_err(|why| refused(key, &why))?;
        }
        if run.network == Network::None && !self.isolation.is_on() {
            return Err(refused("network", &Error::NeedsIsolation));
        }
        if let Some(path) = &run.checkpoint.path {
            normal(path).map_err(|why| refused("checkpoint", &Error::Checkpoint(why)))?;
        }
        if directory.starts_with(&own) {
            return Ok(());
        }
        if self.isolation.is_on()
            && let Err(why) = self.rights(&who).show(&directory)
            && !why.is_missing()
        {
            return Err(refused("workdir", &Error::Workdir(why)));
        }
        // What lies in a volume the job alone sees where it is named.
        let is_in_volume =
            || run.volumes.keys().chain(run.data.keys()).any(|at| directory.starts_with(at));
        match folder(&directory) {
            Ok(()) => Ok(()),
            Err(_) if is_made_later || is_in_volume() => Ok(()),
            Err(why) => Err(refused("workdir", &why)),
        }
    }

    /// Why no job of the user may start in a folder: it is not there, or all jobs have the server's
    /// account and theirs may not see it.
    pub fn keeps_from_starting_in(&self, user: &str, here: &Path) -> Option<String> {
        if let Err(why) = folder(here) {
            return Some(why.to_string());
        }
        // The team bears on accounts alone.
        let who = self.identity(user, "");
        if !self.isolation.is_on() || who.rights.is_some() {
            return None;
        }
        let why = self.rights(&who).show(here).err()?;
        (!why.is_missing()).then(|| why.to_string())
    }

    fn identity(&self, user: &str, team: &str) -> Identity {
        let is_operator = user == self.accounts.operator;
        match self.isolation {
            Isolation::Sandbox { accounts: true } => {
                let account = self.accounts.of(user, team);
                Identity { account: Some(account.clone()), rights: Some(account), is_operator }
            }
            // All jobs have the server's account, so the rights of others are those of everybody.
            _ if is_operator => {
                Identity { account: None, rights: Some(own_account()), is_operator }
            }
            _ => Identity { account: None, rights: None, is_operator },
        }
    }

    fn rights<'a>(&'a self, who: &'a Identity) -> Rights<'a> {
        Rights {
            judge: match &who.rights {
                Some(account) => Judge::Account(account),
                None => Judge::Everybody { shares: &self.shares },
            },
            is_operator: who.is_operator,
            berth: self.home.root(),
            servers_home: self.accounts.home.as_deref(),
        }
    }

    fn confine(
        &self,
        start: &LeaseStart,
        run: &RunSpec,
        env: &BTreeMap<String, String>,
        who: Identity,
        seen: Seen<'_>,
    ) -> Result<Confine, Error> {
        let rights = self.rights(&who);
        let mut shown = vec![Shown::in_place(seen.own, true)];
        // What the user calls a folder that is really elsewhere: links may name either.
        let mut called = Vec::new();
        // One that is not there is told at the start, in the words for that.
        if !seen.directory.starts_with(seen.own) {
            match rights.show(seen.directory) {
                Err(why) if why.is_missing() => {}
                found => add(found.map_err(Error::Workdir)?, &mut shown, &mut called),
            }
        }
        for path in python::environments(seen.directory, env) {
            // An environment that its user may not read is no reason to fail: it may not be used.
            let Ok(Some(environment)) = rights.show(&path) else { continue };
            let base = python::base(&environment.source);
            let base = base.and_then(|path| rights.show(&path).ok().flatten());
            for one in [Some(environment), base].into_iter().flatten() {
                if !shown.iter().any(|there| one.source.starts_with(&there.source)) {
                    add(Some(Shown { write: false, ..one }), &mut shown, &mut called);
                }
            }
        }
        for volume in volumes_of(run, seen.directory, seen.own, &start.team) {
            shown.extend(volume.mount(&self.home, &self.volumes, &rights)?);
        }
        // In a folder that is shown the job finds the link itself.
        called.retain(|one: &Shown| !shown.iter().any(|there| one.at.starts_with(&there.at)));
        shown.extend(called);
        let is_writable = |one: &Shown| one.write && seen.checkpoint.starts_with(&one.at);
        if !shown.iter().any(is_writable) {
            return Err(Error::NoCheckpoint(seen.checkpoint.to_owned()));
        }
        let mut hidden = vec![self.home.root().to_owned()];
        for key in &self.keys {
            match who.rights {
                // The kernel keeps it from others than its owner.
                Some(_) => hidden.extend(key.canonicalize()),
                None => hidden.extend(keys::hidden(key, &self.shares)),
            }
        }
        let servers_home = self.accounts.home.iter().filter(|_| !who.is_operator);
        hidden.extend(servers_home.filter(|home| home.exists()).cloned());
        Ok(Confine {
            account: who.account,
            user: start.user.clone(),
            home: seen.own.to_owned(),
            shown,
            hidden,
            network: match run.network {
                Network::Machine => berth_node::Network::Machine,
                Network::None => berth_node::Network::None,
            },
            ..Confine::default()
        })
    }

    /// The job's own folder, the same for all attempts. What is in it is the job's, so nothing is
    /// made or changed in there once it has run: a link in it could lead anywhere.
    fn make_own(
        &self,
        own: &Path,
        checkpoint: &Path,
        account: Option<&Account>,
        team: &str,
        run: &RunSpec,
    ) -> Result<(), Error> {
        let fail = |source| Error::Folder { path: own.to_owned(), source };
        match own.symlink_metadata() {
            // An earlier version made it for the server's account.
            Ok(_) => return give(own, account).map_err(fail),
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(fail(error)),
        }
        // Beside its place until it is whole, whatever becomes of the server meanwhile.
        let name = own.file_name().unwrap_or_default().to_string_lossy();
        let new = own.with_file_name(format!(".new-{name}"));
        remove_tree(&new).map_err(fail)?;
        let inside = checkpoint.strip_prefix(own).ok();
        let filled = fill(&new, inside, account, team).map_err(fail);
        let placed = filled.and_then(|()| {
            if let Some(id) = &run.code {
                code::place(&self.snapshots, team, id, &new, account)?;
            }
            std::fs::rename(&new, own).map_err(fail)
        });
        placed.inspect_err(|_| drop(remove_tree(&new)))
    }

    fn checkpoint_of(&self, job: JobId, run: &RunSpec) -> Result<PathBuf, Error> {
        let own = self.home.job(job);
        match &run.checkpoint.path {
            Some(path) => Ok(own.join(normal(path).map_err(Error::Checkpoint)?)),
            None => Ok(own.join("checkpoints")),
        }
    }
}

/// Where the command starts.
fn directory_of(own: &Path, run: &RunSpec) -> PathBuf {
    let base = match &run.code {
        Some(_) => own.join(code::FOLDER),
        None => own.to_owned(),
    };
    run.workdir.as_ref().map_or(base.clone(), |path| base.join(path))
}

/// Makes a job's own folder with that of its checkpoints in it.
fn fill(
    own: &Path,
    checkpoint: Option<&Path>,
    account: Option<&Account>,
    team: &str,
) -> io::Result<()> {
    let make = |path: &Path| {
        let made = DirBuilder::new().mode(0o700).create(path);
        made.and_then(|()| give(path, account))
    };
    make(own)?;
    let Some(checkpoint) = checkpoint else { return Ok(()) };
    let mut path = own.to_owned();
    for part in checkpoint.components() {
        path.push(part);
        make(&path)?;
    }
    // Others of the team may go on from what it saves.
    account.map_or(Ok(()), |account| share(&path, account, team))
}

/// Refuses what is certainly no folder. One that the server may not look into is the start's affair:
/// the job's account may see more.
fn folder(path: &Path) -> Result<(), Error> {
    match std::fs::metadata(path) {
        Ok(found) if !found.is_dir() => Err(Error::NotAFolder(path.to_owned())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(Error::NoWorkdir(path.to_owned()))
        }
        Err(error) if error.kind() == io::ErrorKind::NotADirectory => {
            Err(Error::NotAFolder(path.to_owned()))
        }
        Ok(_) | Err(_) => Ok(()),
    }
}

/// Lets the team read a folder that was just made, and what will be in it.
fn share(folder: &Path, account: &Account, team: &str) -> io::Result<()> {
    let account = Account { gid: Accounts::group(team), ..account.clone() };
    give(folder, Some(&account))?;
    std::fs::set_permissions(folder, Permissions::from_mode(0o2750))
}

/// The folders of a job that depend on its file.
#[derive(Clone, Copy)]
struct Seen<'a> {
    own: &'a Path,
    directory: &'a Path,
    checkpoint: &'a Path,
}

/// Shows something where it really is, and notes what the user calls it where that differs.
fn add(found: Option<Shown>, shown: &mut Vec<Shown>, called: &mut Vec<Shown>) {
    let Some(found) = found else { return };
    shown.push(Shown { at: found.source.clone(), ..found.clone() });
    if found.at != found.source {
        called.push(found);
    }
}

/// Where on the machine a path of the job's view is.
fn source_of(path: &Path, shown: &[Shown]) -> Option<PathBuf> {
    let above = shown.iter().filter(|one| path.starts_with(&one.at));
    let nearest = above.max_by_key(|one| one.at.components().count())?;
    let rest = path.strip_prefix(&nearest.at).ok()?;
    Some(nearest.source.join(rest))
}

fn refused(key: &'static str, why: &dyn std::fmt::Display) -> Refused {
    Refused { key, message: why.to_string() }
}

fn volumes_of<'a>(
    run: &'a RunSpec,
    directory: &'a Path,
    own: &'a Path,
    team: &'a str,
) -> impl Iterator<Item = Volume<'a>> {
    let all = run.volumes.iter().chain(&run.data);
    all.map(move |(at, source)| Volume { source, at, directory, own, team })
}

fn env(
    start: &LeaseStart,
    run: &RunSpec,
    secrets: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, String>, Error> {
    let mut env = run.env.0.clone();
    for (variable, secret) in &run.secrets {
        let missing = || Error::NoSecret { team: start.team.clone(), secret: secret.clone() };
        env.insert(variable.clone(), secrets.get(secret).ok_or_else(missing)?.clone());
    }
    Ok(env)
}

/// All tasks of the job are on this machine, each as if on a node of its own.
fn gang(start: &LeaseStart) -> Gang {
    let mut gang = Gang::alone(start.lease, &start.node);
    gang.hosts = vec![start.node.clone(); start.tasks.max(1) as usize];
    gang.node_rank = start.lease.task;
    gang
}

/// No link on the way is followed: the job could have made it.
fn is_filled(path: &Path) -> bool {
    let flags = OFlags::RDONLY | OFlags::DIRECTORY | OFlags::NONBLOCK | OFlags::CLOEXEC;
    let opened = openat2(CWD, path, flags, Mode::empty(), ResolveFlags::NO_SYMLINKS);
    let Ok(Ok(folder)) = opened.map(Dir::new) else { return false };
    let mut names = folder.flatten().map(|entry| entry.file_name().to_bytes().to_vec());
    names.any(|name| name != b"." && name != b"..")
}
