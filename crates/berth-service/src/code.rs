//! Snapshots of code: kept for a team under their digest, so that each is sent and stored once.

use crate::caller::Caller;
use crate::checks;
use crate::fault::{self, Fault};
use crate::home::private;
use crate::identity::write;
use crate::service::Service;
use berth_api::access::Permission;
use berth_api::{Code, wire};
use berth_model::CodeId;
use berth_store::{ScheduleRow, TemplateRow};
use ring::digest::{Context, SHA256};
use serde_json::json;
use std::collections::BTreeSet;
use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

/// What one snapshot may take, and all of a team.
pub const MOST_BYTES: u64 = 100_000_000;
const MOST_BYTES_OF_TEAM: u64 = 10_000_000_000;
/// After its last use. What a job, a schedule or a template names stays longer.
const KEPT: Duration = Duration::from_secs(30 * 86_400);
/// An upload that broke off is removed after this time.
const LONGEST_UPLOAD: Duration = Duration::from_secs(3_600);
const PARTIAL: &str = "part";

/// A snapshot that is there.
pub async fn info(
    service: &Service,
    caller: &Caller,
    team: &str,
    id: &str,
) -> Result<wire::CodeSnapshot, Fault> {
    let (team, id) = of(service, caller, Permission::LogsRead, team, id).await?;
    let path = service.home.snapshot(&team, &id);
    let found = on_disk(move || match fs::metadata(&path) {
        Ok(found) => used(&path).map(|()| Some(found.len())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    });
    match found.await? {
        Some(bytes) => Ok(wire::CodeSnapshot { id: id.to_string(), team, bytes }),
        None => Err(missing(&team, &id)),
    }
}

/// A snapshot, packed.
pub async fn open(
    service: &Service,
    caller: &Caller,
    team: &str,
    id: &str,
) -> Result<(File, u64), Fault> {
    let (team, id) = of(service, caller, Permission::LogsRead, team, id).await?;
    must_be_its_own(service, caller, &id)?;
    let path = service.home.snapshot(&team, &id);
    let opened = on_disk(move || match File::open(&path) {
        Ok(file) => file.metadata().map(|found| Some((file, found.len()))),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    });
    opened.await?.ok_or_else(|| missing(&team, &id))
}

/// A snapshot that is being sent. It is removed again unless it is finished.
pub struct Upload {
    team: String,
    id: CodeId,
    file: File,
    part: PathBuf,
    place: PathBuf,
    context: Context,
    bytes: u64,
}

impl Drop for Upload {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.part);
    }
}

/// Begins to take a snapshot in.
pub async fn begin(
    service: &Service,
    caller: &Caller,
    team: &str,
    id: &str,
) -> Result<Upload, Fault> {
    let (team, id) = of(service, caller, Permission::JobsSubmit, team, id).await?;
    service.host.must_have_room()?;
    let needed = named(service, &team).await?;
    let place = service.home.snapshot(&team, &id);
    let folder = service.home.code(&team);
    let begun = on_disk(move || {
        private(&folder)?;
        if tidy(&folder, &needed)? >= MOST_BYTES_OF_TEAM {
            return Ok(None);
        }
        let part = part(&place);
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&part)?;
        Ok(Some((file, part, place)))
    });
    let Some((file, part, place)) = begun.await? else {
        let detail = format!(
            "the snapshots of code of team {team} take {} GB, which is all they may",
            MOST_BYTES_OF_TEAM / 1_000_000_000
        );
        let next = "use a volume for data; Berth removes snapshots 30 days after their last use";
        return Err(Fault::new(Code::TooLarge, detail).next(next));
    };
    Ok(Upload { team, id, file, part, place, context: Context::new(&SHA256), bytes: 0 })
}

impl Upload {
    /// Takes a piece in. This blocks for as long as the disk does.
    pub fn write(&mut self, bytes: &[u8]) -> Result<(), Fault> {
        self.bytes = self.bytes.saturating_add(bytes.len() as u64);
        if self.bytes > MOST_BYTES {
            let detail = format!("a snapshot of code has at most {} MB", MOST_BYTES / 1_000_000);
            let next = "name large files in .gitignore or .berthignore, and keep data in a volume";
            return Err(Fault::new(Code::TooLarge, detail).next(next));
        }
        self.context.update(bytes);
        self.file.write_all(bytes).map_err(|error| fault::hidden(Code::Internal, &error))
    }

    /// Keeps it, if it is what its name says.
    pub async fn finish(
        mut self,
        service: &Service,
        caller: &Caller,
    ) -> Result<wire::CodeSnapshot, Fault> {
        let found = hex::encode(self.context.clone().finish());
        if found != self.id.digits() {
            let detail = format!("what was sent is sha256:{found}, not {}", self.id);
            return Err(Fault::new(Code::BadRequest, detail).next("send it again"));
        }
        let snapshot = wire::CodeSnapshot {
            id: self.id.to_string(),
            team: self.team.clone(),
            bytes: self.bytes,
        };
        let detail = json!({ "team": self.team, "bytes": self.bytes });
        let audit = caller.audit(format!("code {}", self.id), detail);
        let of = self.team.clone();
        let check = async move |store| checks::team(&store, &of).await.map(drop);
        write(service, audit, |_| {}, check).await?;
        on_disk(move || {
            self.file.flush()?;
            self.file.sync_all()?;
            fs::rename(&self.part, &self.place)
        })
        .await?;
        Ok(snapshot)
    }
}

/// Refuses a job whose snapshot is not there, and notes that this one is used.
pub async fn must_be_there(service: &Service, team: &str, id: &CodeId) -> Result<(), Fault> {
    let path = service.home.snapshot(team, id);
    let found = on_disk(move || match used(&path) {
        Ok(()) => Ok(true),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    });
    match found.await? {
        true => Ok(()),
        false => Err(missing(team, id)),
    }
}

/// A token that only fetches the code of a job is good for no other snapshot of its team.
fn must_be_its_own(service: &Service, caller: &Caller, id: &CodeId) -> Result<(), Fault> {
    let Some(number) = caller.fetches_of() else { return Ok(()) };
    let core = service.engine.core();
    let job = core.jobs.get(&number);
    let own = job.and_then(|job| job.detail.workload.run()?.code.as_ref());
    if own == Some(id) {
        return Ok(());
    }
    let detail = format!("this token of job {number} fetches the job's code and no other");
    Err(Fault::new(Code::ScopeTooSmall, detail))
}

fn missing(team: &str, id: &CodeId) -> Fault {
    let detail = format!("team {team} has no snapshot of code {id}");
    Fault::new(Code::NotFound, detail)
        .next("submit from the folder again, with `berth run --code FOLDER`")
}

async fn of(
    service: &Service,
    caller: &Caller,
    permission: Permission,
    team: &str,
    id: &str,
) -> Result<(String, CodeId), Fault> {
    checks::team(&service.store, team).await?;
    caller.must(permission, Some(team), Some(caller.user()))?;
    let id = id.parse().map_err(|error| Fault::new(Code::BadRequest, format!("{error}")))?;
    Ok((team.to_owned(), id))
}

/// Two uploads of the same snapshot do not meet.
fn part(place: &Path) -> PathBuf {
    static NUMBER: AtomicU64 = AtomicU64::new(0);
    let number = NUMBER.fetch_add(1, Ordering::Relaxed);
    place.with_extension(format!("{}-{number}.{PARTIAL}", std::process::id()))
}

fn used(path: &Path) -> io::Result<()> {
    OpenOptions::new().append(true).open(path)?.set_modified(SystemTime::now())
}

/// Removes what nothing has used for long. Returns what is left, in bytes.
fn tidy(folder: &Path, needed: &BTreeSet<String>) -> io::Result<u64> {
    let mut left = 0u64;
    for entry in fs::read_dir(folder)?.flatten() {
        let Ok(found) = entry.metadata() else { continue };
        let path = entry.path();
        let is_partial = path.extension().is_some_and(|end| end == PARTIAL);
        let kept = if is_partial { LONGEST_UPLOAD } else { KEPT };
        let age = found.modified().ok().and_then(|at| at.elapsed().ok()).unwrap_or_default();
        let name = entry.file_name();
        let digits = name.to_str().and_then(|name| name.split('.').next()).unwrap_or_default();
        if age > kept && (is_partial || !needed.contains(digits)) {
            fs::remove_file(&path)?;
        } else {
            left = left.saturating_add(found.len());
        }
    }
    Ok(left)
}

/// The digits of snapshots that jobs, schedules and templates of a team name.
async fn named(service: &Service, team: &str) -> Result<BTreeSet<String>, Fault> {
    let mut named = BTreeSet::new();
    {
        let core = service.engine.core();
        let jobs = core.jobs.values().filter(|job| job.row.team == team);
        let codes = jobs.filter_map(|job| job.detail.workload.run()?.code.clone());
        named.extend(codes.map(|id| id.digits().to_owned()));
    }
    let schedules = service.store.every::<ScheduleRow>().await?;
    let templates = service.store.every::<TemplateRow>().await?;
    let files = schedules.iter().map(|row| (&row.team, &row.file));
    let files = files.chain(templates.iter().map(|row| (&row.team, &row.file)));
    for (_, file) in files.filter(|(of, _)| *of == team) {
        let parsed = berth_file::job::read(file).ok();
        let code = parsed.and_then(|parsed| parsed.file.code?.parse::<CodeId>().ok());
        named.extend(code.map(|id| id.digits().to_owned()));
    }
    Ok(named)
}

async fn on_disk<T: Send + 'static>(
    ask: impl FnOnce() -> io::Result<T> + Send + 'static,
) -> Result<T, Fault> {
    let asked = tokio::task::spawn_blocking(ask).await;
    let asked = asked.map_err(|_| Fault::new(Code::Internal, "the disk was not asked"))?;
    asked.map_err(|error| fault::hidden(Code::Internal, &error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_nothing_uses_is_removed_after_its_time() {
        let folder = tempfile::tempdir().unwrap();
        let make = |name: &str, days: u64| {
            let path = folder.path().join(name);
            fs::write(&path, "12345678").unwrap();
            let at = SystemTime::now() - Duration::from_secs(days * 86_400);
            File::options().append(true).open(&path).unwrap().set_modified(at).unwrap();
        };
        for (name, days) in [("aa.tar.gz", 31), ("bb.tar.gz", 31), ("cc.tar.gz", 29)] {
            make(name, days);
        }
        make("dd.1-1.part", 1);
        make("ee.1-2.part", 0);
        let needed = BTreeSet::from(["bb".to_owned()]);
        assert_eq!(tidy(folder.path(), &needed).unwrap(), 24);
        let mut left: Vec<_> =
            fs::read_dir(folder.path()).unwrap().map(|one| one.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["bb.tar.gz", "cc.tar.gz", "ee.1-2.part"]);
    }
}
