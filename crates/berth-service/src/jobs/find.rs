//! Jobs by number or name, as far as one may see them.

use crate::caller::Caller;
use crate::fault::Fault;
use crate::service::Service;
use berth_api::Code;
use berth_api::access::Permission;
use berth_engine::Detail;
use berth_model::JobId;
use berth_store::{JobFilter, JobRow};

/// The label of a job that another job has submitted, with that job's number.
pub const PARENT: &str = "berth.dev/parent";

/// Elements of an array that are looked at together.
const MOST_ELEMENTS: u32 = 100_000;

/// A job, one element of an array, or a whole array.
pub struct Found {
    pub id: JobId,
    /// One, or the elements in their order; never none.
    pub rows: Vec<JobRow>,
}

impl Found {
    pub fn first(&self) -> &JobRow {
        &self.rows[0]
    }

    pub fn is_array(&self) -> bool {
        self.id.element.is_none() && self.first().id.element.is_some()
    }
}

/// The job that is meant, if one may do that with it. What one may not even read is not there.
pub async fn job(
    service: &Service,
    caller: &Caller,
    wanted: &str,
    permission: Permission,
) -> Result<Found, Fault> {
    let found = look(service, caller, wanted).await?;
    let row = found.first();
    let (team, user) = (Some(row.team.as_str()), Some(row.user.as_str()));
    if !caller.may(Permission::JobsRead, team, user) {
        return Err(Fault::no_job(wanted));
    }
    caller.must(permission, team, user)?;
    if permission == Permission::JobsControl && !controls(caller, &found) {
        let job = caller.job().map(|job| job.to_string()).unwrap_or_default();
        let detail =
            format!("job {job} may act on itself and on jobs it has submitted, and no more");
        return Err(Fault::new(Code::Forbidden, detail).next("use a token of your own"));
    }
    Ok(found)
}

/// Whether the caller is a person, or a job that acts on itself or on a job that it has submitted.
pub fn controls(caller: &Caller, found: &Found) -> bool {
    let Some(job) = caller.job() else { return true };
    let detail: Option<Detail> = serde_json::from_str(&found.first().detail).ok();
    let parent = detail.as_ref().and_then(|detail| detail.labels.get(PARENT));
    found.id == job
        || (parent.is_some_and(|parent| *parent == job.to_string())
            && found.first().user == caller.user())
}

async fn look(service: &Service, caller: &Caller, wanted: &str) -> Result<Found, Fault> {
    let Ok(id) = wanted.parse::<JobId>() else { return by_name(service, caller, wanted).await };
    by_number(service, id).await?.ok_or_else(|| Fault::no_job(wanted))
}

/// The job of that number, whoever's it is.
pub async fn by_number(service: &Service, id: JobId) -> Result<Option<Found>, Fault> {
    if let Some(row) = service.store.job(id).await? {
        return Ok(Some(Found { id, rows: vec![row] }));
    }
    let filter = JobFilter { number: Some(id.number), ..JobFilter::default() };
    let rows = match id.element {
        None => service.store.jobs(&filter, None, MOST_ELEMENTS).await?,
        Some(_) => Vec::new(),
    };
    Ok((!rows.is_empty()).then_some(Found { id, rows }))
}

/// The newest of that name among those one may see.
async fn by_name(service: &Service, caller: &Caller, name: &str) -> Result<Found, Fault> {
    let teams = caller.reads(Permission::JobsRead);
    if teams.as_ref().is_some_and(Vec::is_empty) {
        return Err(Fault::no_job(name));
    }
    let filter = JobFilter {
        name: Some(name.to_owned()),
        teams: teams.unwrap_or_default(),
        ..JobFilter::default()
    };
    let newest = service.store.jobs(&filter, None, 1).await?.pop();
    let row = newest.ok_or_else(|| Fault::no_job(name))?;
    if row.id.element.is_none() {
        return Ok(Found { id: row.id, rows: vec![row] });
    }
    let number = row.id.number;
    let filter = JobFilter { number: Some(number), ..JobFilter::default() };
    let rows = service.store.jobs(&filter, None, MOST_ELEMENTS).await?;
    Ok(Found { id: JobId::new(number), rows })
}
