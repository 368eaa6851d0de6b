//! Named volumes of teams, where the host keeps them: who has which, what they take, making and
//! deleting them. Jobs also make them, by naming one that is not there.

use crate::caller::Caller;
use crate::fault::Fault;
use crate::host::{KeptVolume, NotMade, Removal, VolumeSize};
use crate::identity::{remove, shows, write};
use crate::service::Service;
use crate::volume_disk::{failed, names_of, on_disk};
use crate::{checks, names};
use berth_api::access::Permission;
use berth_api::{Code, wire};
use berth_engine::LiveJob;
use berth_model::JobId;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What a name of a folder can have.
const LONGEST: usize = 255;
/// Files and folders that are looked at for one list, and of one volume.
const MOST_ENTRIES: u64 = 400_000;
const MOST_ENTRIES_OF_ONE: u64 = 100_000;
/// Jobs that are named with a volume, and in a refusal.
const MOST_JOBS: usize = 100;
const MOST_JOBS_IN_WORDS: usize = 5;

/// Whether a volume may be called so. It becomes a folder, and hidden ones are the server's own.
pub fn is_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
    let fits = !name.is_empty() && name.len() <= LONGEST;
    fits && !name.starts_with('.') && name.chars().all(is_plain)
}

fn check_name(name: &str) -> Result<(), Fault> {
    if is_name(name) {
        return Ok(());
    }
    let next = format!("use 1 to {LONGEST} letters, digits, `-`, `_` and `.`, and no `.` first");
    let shown: String = name.chars().take(64).collect();
    Err(Fault::new(Code::BadRequest, format!("`{shown}` is no name for a volume")).next(next))
}

pub async fn list(
    service: &Service,
    caller: &Caller,
    query: wire::VolumeQuery,
) -> Result<wire::Items<wire::Volume>, Fault> {
    let teams = caller.reads(Permission::VolumesRead);
    let is_wanted = move |volume: &KeptVolume| {
        query.team.as_ref().is_none_or(|team| *team == volume.team) && shows(&teams, &volume.team)
    };
    let present = Arc::new(());
    let asker = Arc::downgrade(&present);
    let found = on_disk(service, move |volumes| {
        let wanted = volumes.list()?.into_iter().filter(is_wanted);
        let mut left = MOST_ENTRIES;
        let mut measured = Vec::new();
        for volume in wanted {
            // Whoever asks and hangs up, again and again, would keep the disk busy otherwise.
            if asker.strong_count() == 0 {
                break;
            }
            let most = left.min(MOST_ENTRIES_OF_ONE);
            let size = volumes.measure(&volume.team, &volume.name, most);
            left -= size.entries.min(left);
            measured.push((volume, size));
        }
        Ok(measured)
    });
    let found = found.await?.map_err(failed)?;
    drop(present);
    let mut uses = all_uses(service);
    let items = found.into_iter().map(|(volume, size)| {
        let uses = uses.remove(&(volume.team.clone(), volume.name.clone()));
        shown(volume, size, &uses.unwrap_or_default())
    });
    Ok(wire::Items { items: items.collect() })
}

/// Makes an empty one. One that is there stays as it is.
pub async fn create(
    service: &Service,
    caller: &Caller,
    of: &str,
    name: &str,
) -> Result<wire::Volume, Fault> {
    checks::team(&service.store, of).await?;
    caller.must(Permission::VolumesManage, Some(of), None)?;
    check_name(name)?;
    if let Some(there) = find(service, of, name).await? {
        return Ok(there);
    }
    service.host.must_have_room()?;
    let audit = caller.audit(target(of, name), json!({}));
    let (service, team, name) = (service.clone(), of.to_owned(), name.to_owned());
    to_the_end(async move {
        let of = team.clone();
        let check = async move |store| checks::team(&store, &of).await.map(drop);
        write(&service, audit, |_| {}, check).await?;
        let (of, volume) = (team.clone(), name.clone());
        let made = on_disk(&service, move |volumes| volumes.make(&of, &volume)).await?;
        made.map_err(|why| match why {
            NotMade::Refused(why) => Fault::new(Code::WrongState, why),
            NotMade::Failed(error) => failed(error),
        })?;
        let made = find(&service, &team, &name).await?;
        made.ok_or_else(|| Fault::not_found("volume", &name))
    })
    .await
}

/// Deletes one with all that is in it. A job that runs keeps its volumes in any case; one that
/// waits does unless `force` says otherwise, and then finds an empty one.
pub async fn delete(
    service: &Service,
    caller: &Caller,
    of: &str,
    name: &str,
    how: wire::VolumeDelete,
) -> Result<(), Fault> {
    let force = how.force.unwrap_or(false);
    must_be_known(service, caller, of).await?;
    caller.must(Permission::VolumesManage, Some(of), None)?;
    check_name(name)?;
    if !names_of(service, of).await?.iter().any(|there| there == name) {
        return Err(Fault::not_found("volume", name));
    }
    let uses = uses_of(service, of, name);
    if !uses.leaves_free(force) {
        return Err(in_use(of, name, &uses, force));
    }
    // A deletion that is not in the log must not happen. The other way round, a job that starts in
    // this moment keeps its volume, and the refusal is in the log too.
    let audit = caller.audit(target(of, name), json!({ "force": force }));
    let (service, team, name) = (service.clone(), of.to_owned(), name.to_owned());
    to_the_end(async move {
        remove(&service, audit, |_| {}).await?;
        let (asked, of, volume) = (service.clone(), team.clone(), name.clone());
        let removed = on_disk(&service, move |volumes| {
            let is_free = || uses_of(&asked, &of, &volume).leaves_free(force);
            volumes.remove(&of, &volume, &is_free)
        });
        match removed.await? {
            Ok(Removal::Done) => Ok(()),
            Ok(Removal::Absent) => Err(Fault::not_found("volume", &name)),
            Ok(Removal::InUse) => {
                let uses = uses_of(&service, &team, &name);
                Err(in_use(&team, &name, &uses, force))
            }
            Err(error) => Err(failed(error)),
        }
    })
    .await
}

/// Does what is in the audit log by then, also when whoever asked for it hangs up.
async fn to_the_end<T: Send + 'static>(
    work: impl Future<Output = Result<T, Fault>> + Send + 'static,
) -> Result<T, Fault> {
    let done = tokio::spawn(work).await;
    done.unwrap_or_else(|_| Err(Fault::new(Code::Internal, "the volume was not looked after")))
}

/// A team that was removed by an earlier version may have left volumes, which an admin can delete.
async fn must_be_known(service: &Service, caller: &Caller, team: &str) -> Result<(), Fault> {
    let known = checks::team(&service.store, team).await.map(drop);
    let is_admin = caller.may(Permission::VolumesManage, None, None);
    if is_admin && names::check("team", team).is_ok() {
        return match known {
            Err(fault) if fault.0.known_code() != Some(Code::NotFound) => Err(fault),
            _ => Ok(()),
        };
    }
    known
}

async fn find(service: &Service, team: &str, name: &str) -> Result<Option<wire::Volume>, Fault> {
    let (of, wanted) = (team.to_owned(), name.to_owned());
    let found = on_disk(service, move |volumes| {
        let found = volumes.of_team(&of)?.into_iter().find(|volume| volume.name == wanted);
        let size =
            |volume: &KeptVolume| volumes.measure(&volume.team, &volume.name, MOST_ENTRIES_OF_ONE);
        Ok(found.map(|volume| (size(&volume), volume)))
    });
    let found = found.await?.map_err(failed)?;
    Ok(found.map(|(size, volume)| shown(volume, size, &uses_of(service, team, name))))
}

fn shown(volume: KeptVolume, size: VolumeSize, uses: &Uses) -> wire::Volume {
    wire::Volume {
        team: volume.team,
        name: volume.name,
        bytes: size.bytes,
        files: size.files,
        partial: size.partial,
        created: volume.created.map(Into::into),
        jobs: uses.jobs.iter().take(MOST_JOBS).copied().map(Into::into).collect(),
        job_count: uses.jobs.len() as u64,
    }
}

/// Jobs that have not ended and use a volume, an array as one.
#[derive(Debug, Default)]
struct Uses {
    jobs: BTreeSet<JobId>,
    /// Those with a task that runs, or is about to.
    running: BTreeSet<JobId>,
}

impl Uses {
    fn add(&mut self, job: &LiveJob) {
        let id = JobId::new(job.row.id.number);
        self.jobs.insert(id);
        if !job.leases.is_empty() {
            self.running.insert(id);
        }
    }

    fn leaves_free(&self, force: bool) -> bool {
        self.running.is_empty() && (force || self.jobs.is_empty())
    }
}

/// Names of the volumes of its team that a job uses.
fn named_by(job: &LiveJob) -> impl Iterator<Item = &str> {
    let run = job.detail.workload.run().into_iter();
    let sources = run.flat_map(|run| run.volumes.values().chain(run.data.values()));
    sources.map(String::as_str).filter(|source| !source.starts_with('/') && !source.contains(':'))
}

fn uses_of(service: &Service, team: &str, name: &str) -> Uses {
    let mut uses = Uses::default();
    let core = service.engine.core();
    let of_team = core.jobs.values().filter(|job| job.row.team == team);
    of_team.filter(|job| named_by(job).any(|named| named == name)).for_each(|job| uses.add(job));
    uses
}

fn all_uses(service: &Service) -> BTreeMap<(String, String), Uses> {
    let mut all: BTreeMap<(String, String), Uses> = BTreeMap::new();
    for job in service.engine.core().jobs.values() {
        for name in named_by(job) {
            all.entry((job.row.team.clone(), name.to_owned())).or_default().add(job);
        }
    }
    all
}

fn in_use(team: &str, name: &str, uses: &Uses, force: bool) -> Fault {
    let (jobs, are, next) = match uses.running.is_empty() {
        false => {
            let next = "stop them first, or wait for their end: nothing deletes what a running job \
                        uses";
            (&uses.running, "run", next)
        }
        // It was so a moment ago.
        true if force => (&uses.jobs, "have not ended", "try again"),
        true => {
            let next = "stop them first, or delete it with `--force` (`?force=true`): they then \
                        start with an empty one";
            (&uses.jobs, "have not ended", next)
        }
    };
    let named: Vec<String> =
        jobs.iter().take(MOST_JOBS_IN_WORDS).map(|job| format!("job {job}")).collect();
    let more = match jobs.len().saturating_sub(MOST_JOBS_IN_WORDS) {
        0 => String::new(),
        more => format!(" and {more} more"),
    };
    let named = named.join(", ");
    let detail = format!("jobs use the volume `{name}` of team {team} and {are}: {named}{more}");
    Fault::new(Code::InUse, detail).next(next)
}

fn target(team: &str, name: &str) -> String {
    format!("volume {name} of {team}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_that_of_a_folder_that_is_not_hidden_and_leads_nowhere_else() {
        for name in ["a", "Data-2", "a.b_c", &"x".repeat(255)] {
            assert!(check_name(name).is_ok(), "{name}");
        }
        for name in ["", ".", "..", "../x", ".x", "a/b", "a b", "ü", "a\0", &"x".repeat(256)] {
            let fault = check_name(name).unwrap_err();
            assert_eq!(fault.0.known_code(), Some(Code::BadRequest), "{name}");
            assert!(fault.0.detail.len() < 200);
        }
    }

    #[test]
    fn who_waits_can_be_overruled_and_who_runs_cannot() {
        let mut uses = Uses::default();
        assert!(uses.leaves_free(false));
        uses.jobs.extend((1..=7).map(JobId::new));
        assert!(!uses.leaves_free(false) && uses.leaves_free(true));
        let fault = in_use("nlp", "data", &uses, false);
        assert_eq!(fault.0.known_code(), Some(Code::InUse));
        assert!(fault.0.detail.ends_with("job 4, job 5 and 2 more"), "{fault:?}");
        uses.running.insert(JobId::new(2));
        assert!(!uses.leaves_free(true));
        let fault = in_use("nlp", "data", &uses, true);
        assert!(fault.0.detail.ends_with("and run: job 2"), "{fault:?}");
    }
}
