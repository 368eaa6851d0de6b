//! Jobs that come as objects of a cluster: submitted as anybody submits them, and looked at without
//! anybody who asks.

use crate::caller::Caller;
use crate::fault::Fault;
use crate::jobs::show::{self, Waiting};
use crate::jobs::{find, list, submit};
use crate::names;
use crate::service::Service;
use berth_api::access::Permission;
use berth_api::{Code, wire};
use berth_file::error::{did_you_mean, or_list};
use berth_file::job::JobFile;
use berth_model::JobId;
use berth_store::JobRow;
use std::collections::BTreeMap;

/// The label by which a job knows its object, so that a server that was away finds out whose object
/// is gone.
pub const LABEL: &str = "berth.dev/object";

/// The label of a namespace that says whose it is.
pub const TEAM: &str = "berth.dev/team";

/// Jobs for which the reason is worked out in one round: each costs the better part of a plan.
const WITH_REASON: usize = 20;

/// Whose object it is.
pub struct Owner<'a> {
    pub namespace: &'a str,
    pub uid: &'a str,
    /// The team whose secrets and volumes those may use who may write into the namespace.
    pub own: Option<&'a str>,
    /// The team of everybody.
    pub shared: &'a str,
}

/// Submits the job of an object. An object makes one job, however often this is called.
pub async fn submit(service: &Service, owner: &Owner<'_>, text: &str) -> Result<JobId, Fault> {
    service.host.must_take_jobs()?;
    let mut parsed = submit::read(text)?;
    let file = &mut parsed.file;
    if file.schedule.is_some() {
        let fault = Fault::new(Code::JobRefused, "a Job object is one job, and has no schedule");
        return Err(fault.next("leave `schedule` out, or submit the file with `berth run`"));
    }
    let team = file.team.get_or_insert_with(|| team_of(service, owner)).clone();
    must_be_there(service, &team)?;
    must_be_allowed(owner, file, &team)?;
    file.labels.insert(LABEL.to_owned(), owner.uid.to_owned());
    let caller = Caller::of_namespace(service, owner.namespace, &team);
    let submits = Permission::JobsSubmit;
    let (request, remarks) = submit::prepare(service, &caller, &parsed, None, submits).await?;
    let key = format!("object {}", owner.uid);
    // The object is the request: what else it says later makes no other one.
    let made = submit::make(service, &caller, Some(key.clone()), request, remarks, key).await?;
    made.id.map(|id| id.0).ok_or_else(|| Fault::new(Code::Internal, "the job got no number"))
}

/// The team of a job that names none: the namespace's own, where there is such a one.
fn team_of(service: &Service, owner: &Owner<'_>) -> String {
    let core = service.engine.core();
    let is_there = |team: &&str| core.state.queue_parents().any(|(name, _)| name.as_str() == *team);
    owner.own.filter(is_there).unwrap_or(owner.shared).to_owned()
}

/// A job can use the secrets, volumes and data of its team. So a namespace may name only its own
/// team or the shared one, and a job of the shared team may use none of these.
fn must_be_allowed(owner: &Owner<'_>, file: &JobFile, team: &str) -> Result<(), Fault> {
    let namespace = owner.namespace;
    let label = format!("`kubectl label namespace {namespace} {TEAM}=TEAM`");
    if owner.own == Some(team) {
        return Ok(());
    }
    if team != owner.shared {
        let detail = format!("the namespace `{namespace}` is not that of the team `{team}`");
        let next = format!("leave `team` out, or have an admin say whose it is: {label}");
        return Err(Fault::new(Code::Forbidden, detail).next(next));
    }
    if file.secrets.is_empty() && file.volumes.is_empty() && file.data.is_empty() {
        return Ok(());
    }
    let detail = format!("secrets, volumes and data are a team's, and `{namespace}` has no team");
    Err(Fault::new(Code::Forbidden, detail).next(format!("have an admin say whose it is: {label}")))
}

/// Also of a team of which there is only the queue.
fn must_be_there(service: &Service, team: &str) -> Result<(), Fault> {
    let core = service.engine.core();
    let names = || core.state.queue_parents().map(|(name, _)| name.as_str());
    if names().any(|name| name == team) {
        return Ok(());
    }
    let detail = format!("there is no queue `{team}`{}", did_you_mean(team, names()));
    let next = format!("name one of {} as `team`, or make that queue", or_list(names()));
    Err(Fault::new(Code::NotFound, detail).next(next))
}

/// What is wrong, without line numbers: the user has written an object and not this job file.
pub fn words(fault: &Fault) -> String {
    let problem = &fault.0;
    let errors: Vec<&str> = problem.errors.iter().map(|error| error.message.as_str()).collect();
    let detail = if errors.is_empty() { problem.detail.clone() } else { errors.join("; ") };
    sentences(&detail, &problem.next)
}

/// What is wrong and what to do, each a sentence.
pub fn sentences(detail: &str, next: &str) -> String {
    let mut letters = next.chars();
    let Some(first) = letters.next() else { return detail.to_owned() };
    let stop = if detail.ends_with(['?', '.']) { "" } else { "." };
    format!("{detail}{stop} {}{}", first.to_uppercase(), letters.as_str())
}

/// Whether something may be called so.
pub fn check_name(what: &str, name: &str) -> Result<(), Fault> {
    names::check(what, name)
}

/// Jobs as people see them, by number. One that is not known any more is not among them.
pub async fn shown(service: &Service, ids: &[JobId]) -> Result<BTreeMap<JobId, wire::Job>, Fault> {
    let (live, other): (Vec<JobId>, Vec<JobId>) = {
        let core = service.engine.core();
        ids.iter().partition(|id| core.jobs.contains_key(id))
    };
    let mut shown = of_live(service, &live);
    for id in other {
        if let Some(found) = find::by_number(service, id).await? {
            shown.insert(id, list::shown(service, &found));
        }
    }
    Ok(shown)
}

/// Those that have not ended, all at once: each alone would look at the whole line.
fn of_live(service: &Service, ids: &[JobId]) -> BTreeMap<JobId, wire::Job> {
    let mut core = service.engine.core();
    let rows = ids.iter().filter_map(|id| core.jobs.get_mut(id).map(|job| job.refreshed()));
    let rows: Vec<JobRow> = rows.collect();
    let waiting = Waiting::of(&*service.host, &mut core, rows.iter(), WITH_REASON);
    rows.iter().map(|row| (row.id, show::job(service, &core, row, &waiting))).collect()
}

/// Jobs that have not ended and came as objects, by the uid of the object.
pub fn live(service: &Service) -> BTreeMap<String, JobId> {
    let core = service.engine.core();
    let known = core.jobs.values().filter_map(|job| {
        let uid = job.detail.labels.get(LABEL)?.clone();
        // An array is one job to its object.
        Some((uid, JobId::new(job.row.id.number)))
    });
    known.collect()
}

/// Whether a job, or an element of it, has yet to end, and is that of the object.
pub fn is_live(service: &Service, id: JobId, uid: &str) -> bool {
    let core = service.engine.core();
    let found = core.jobs.range(id..JobId::new(id.number + 1)).next();
    found.is_some_and(|(_, job)| job.detail.labels.get(LABEL).is_some_and(|of| of == uid))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_uses_its_own_team_and_of_the_shared_one_nothing_that_is_somebodys() {
        let owner = Owner { namespace: "nlp", uid: "7", own: Some("nlp"), shared: "default" };
        let (plain, mut secret) = (JobFile::default(), JobFile::default());
        secret.secrets.insert("TOKEN".into(), "hf".into());
        assert!(must_be_allowed(&owner, &secret, "nlp").is_ok());
        assert!(must_be_allowed(&owner, &plain, "default").is_ok());
        assert!(must_be_allowed(&owner, &secret, "default").is_err());
        let fault = must_be_allowed(&owner, &plain, "vision").unwrap_err();
        assert!(words(&fault).contains("kubectl label namespace nlp berth.dev/team=TEAM"));
    }

    #[test]
    fn what_is_wrong_and_what_to_do_are_two_sentences() {
        assert_eq!(sentences("it is odd", "leave it out"), "it is odd. Leave it out");
        assert_eq!(sentences("did you mean `a`?", "take it"), "did you mean `a`? Take it");
        assert_eq!(sentences("it is odd", ""), "it is odd");
    }
}
