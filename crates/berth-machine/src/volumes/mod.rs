//! Named volumes: folders that the server keeps for teams, `team-volumes/TEAM/NAME`. Only the server
//! can write to the folder of a team; jobs write in the volumes.

mod measure;
mod purge;
mod sizes;

use berth_model::Time;
use berth_node::Accounts;
use berth_service::Home;
use berth_service::home::private;
use berth_service::host::{KeptVolume, Removal, VolumeSize};
use berth_service::volumes::is_name;
use purge::Purger;
pub use sizes::Sizes;
use std::fs::{self, DirBuilder, Metadata, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::UNIX_EPOCH;

/// Where a team's deleted volumes go until nothing is left of them. It is beside them, so that a
/// rename takes one there whatever is mounted where. No volume has such a name.
const REMOVED: &str = ".removed";

/// Why a team has no such volume.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("`{0}` is no name for a volume: use letters, digits, `-`, `_` and `.`")]
    BadName(String),
    #[error("the name of team `{0}` is that of no folder, so it has no volumes")]
    BadTeam(String),
    #[error(
        "the volume {name} was made before volumes belonged to teams; an admin gives it to team \
         {team} with `mv {} {}`",
        old.display(),
        new.display()
    )]
    OfNobody { name: String, team: String, old: PathBuf, new: PathBuf },
    #[error("cannot make the volume {name}: {error}")]
    Make { name: String, error: io::Error },
}

#[derive(Debug)]
pub struct Volumes {
    home: Home,
    /// Held while a volume is looked for and made, and while one is deleted: a job that starts gets
    /// the old one, which is then in use, or a new one.
    gate: Mutex<()>,
    purger: Arc<Purger>,
}

impl Volumes {
    /// Goes on deleting what an earlier server has not finished.
    pub fn open(home: Home) -> Volumes {
        let purger = Arc::new(Purger::new(home.team_volumes()));
        purger.soon();
        Volumes { home, gate: Mutex::default(), purger }
    }

    fn gate(&self) -> MutexGuard<'_, ()> {
        self.gate.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The folder that is kept for the team by that name, made where it is not there yet. With
    /// accounts it is for the members of the team, who may have different ones.
    pub fn keep(&self, team: &str, name: &str, accounts: bool) -> Result<PathBuf, Error> {
        let (name, team) = (name.to_owned(), team.to_owned());
        if !is_name(&name) {
            return Err(Error::BadName(name));
        }
        if !is_name(&team) {
            return Err(Error::BadTeam(team));
        }
        let folder = self.home.volume(&team, &name);
        let _gate = self.gate();
        if folder.is_dir() {
            return Ok(folder);
        }
        let old = self.home.old_volumes().join(&name);
        if old.exists() {
            return Err(Error::OfNobody { name, team, old, new: folder });
        }
        make(&folder, accounts.then(|| Accounts::group(&team)))
            .map_err(|error| Error::Make { name, error })?;
        Ok(folder)
    }

    /// All there are, also those of teams that are gone.
    pub fn list(&self) -> io::Result<Vec<KeptVolume>> {
        let mut found = Vec::new();
        for (team, _) in entries(&self.home.team_volumes(), Path::is_dir)? {
            found.extend(self.of_team(&team)?);
        }
        found.sort_by(|one, other| (&one.team, &one.name).cmp(&(&other.team, &other.name)));
        Ok(found)
    }

    pub fn of_team(&self, team: &str) -> io::Result<Vec<KeptVolume>> {
        if !is_name(team) {
            return Ok(Vec::new());
        }
        let is_there = |path: &Path| fs::symlink_metadata(path).is_ok_and(|found| is_one(&found));
        let volumes = entries(&self.home.team_volumes().join(team), is_there)?.into_iter();
        let volumes = volumes.filter(|(name, _)| is_name(name));
        let shown = volumes.map(|(name, path)| {
            let created = fs::symlink_metadata(path).ok().and_then(|found| made_at(&found));
            KeptVolume { team: team.to_owned(), name, created }
        });
        Ok(shown.collect())
    }

    /// What it takes, as far as that is found with so many entries.
    pub fn measure(&self, team: &str, name: &str, most_entries: u64) -> VolumeSize {
        measure::measure(&self.home.volume(team, name), most_entries)
    }

    /// Puts a volume aside, if it is free in that moment, and deletes it in the background.
    pub fn remove(
        &self,
        team: &str,
        name: &str,
        is_free: &dyn Fn() -> bool,
    ) -> io::Result<Removal> {
        if !is_name(team) || !is_name(name) {
            return Ok(Removal::Absent);
        }
        let folder = self.home.volume(team, name);
        let gate = self.gate();
        if !fs::symlink_metadata(&folder).is_ok_and(|found| is_one(&found)) {
            return Ok(Removal::Absent);
        }
        if !is_free() {
            return Ok(Removal::InUse);
        }
        let removed = folder.with_file_name(REMOVED);
        // A link is moved as a link. What is mounted here cannot be moved, and stays.
        let put_aside = || {
            private(&removed)?;
            fs::rename(&folder, removed.join(purge::fresh_name()))
        };
        match put_aside() {
            // The purger has just removed the place, because it was empty.
            Err(error) if error.kind() == io::ErrorKind::NotFound => put_aside()?,
            done => done?,
        }
        drop(gate);
        self.purger.soon();
        Ok(Removal::Done)
    }
}

/// An admin may have put a link to a folder elsewhere in the place of a volume.
fn is_one(found: &Metadata) -> bool {
    found.is_dir() || found.is_symlink()
}

/// When the folder was made, where the file system keeps that: by the clock on the wall, because the
/// server's own is away from it by another amount each time one looks.
fn made_at(found: &Metadata) -> Option<Time> {
    let since = found.created().ok()?.duration_since(UNIX_EPOCH).ok()?;
    Some(Time(i64::try_from(since.as_millis()).ok()?))
}

/// What is in a folder and is no hidden file. A folder that is not there is empty.
fn entries(folder: &Path, wanted: impl Fn(&Path) -> bool) -> io::Result<Vec<(String, PathBuf)>> {
    let read = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        read => read?,
    };
    let mut found = Vec::new();
    for entry in read {
        let entry = entry?;
        let Ok(name) = entry.file_name().into_string() else { continue };
        if !name.starts_with('.') && wanted(&entry.path()) {
            found.push((name, entry.path()));
        }
    }
    Ok(found)
}

/// For the members of the team, who may have different accounts. What is made in it belongs to the
/// team too.
fn make(folder: &Path, group: Option<u32>) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let is_root = rustix::process::geteuid().is_root();
    let Some(group) = group.filter(|_| is_root) else { return Ok(()) };
    rustix::fs::chown(folder, None, Some(rustix::fs::Gid::from_raw(group)))?;
    fs::set_permissions(folder, Permissions::from_mode(0o2770))
}

#[cfg(test)]
mod tests;
