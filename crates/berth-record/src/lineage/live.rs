//! The jobs and data of this server.

use super::known::{Job, Known, Spent};
use crate::gpu_time;
use berth_api::Code;
use berth_api::access::Permission;
use berth_engine::clock;
use berth_model::JobId;
use berth_service::jobs::find;
use berth_service::{Caller, Fault, Service};
use berth_store::DataVersionRow;

/// Finds a job by number or name, if the caller may read its logs.
pub(crate) async fn job_number(
    service: &Service,
    caller: &Caller,
    wanted: &str,
) -> Result<JobId, Fault> {
    let found = find::job(service, caller, wanted, Permission::LogsRead).await?;
    if found.is_array() {
        let detail = format!("job {} is an array; each element has its own run", found.id);
        let next = format!("name one, such as {}", found.first().id);
        return Err(Fault::new(Code::WrongState, detail).next(next));
    }
    Ok(found.first().id)
}

pub(crate) struct Live<'a> {
    pub service: &'a Service,
    pub caller: &'a Caller,
}

impl Known for Live<'_> {
    fn reads(&self, team: &str) -> bool {
        self.caller.may(Permission::LogsRead, Some(team), None)
    }

    fn must_read(&self, team: &str, user: &str) -> Result<(), Fault> {
        self.caller.must(Permission::LogsRead, Some(team), Some(user))
    }

    fn reads_data(&self, team: &str) -> bool {
        self.caller.may(Permission::DataRead, Some(team), None)
    }

    async fn job(&self, id: JobId) -> Result<Option<Job>, Fault> {
        let Some(row) = self.service.store.job(id).await? else { return Ok(None) };
        let (team, user) = (Some(row.team.as_str()), Some(row.user.as_str()));
        let visible = self.caller.may(Permission::JobsRead, team, user);
        let detail = serde_json::from_str(&row.detail).ok();
        Ok(Some(Job { row, detail, visible }))
    }

    async fn spent(&self, job: &Job) -> Result<Spent, Fault> {
        let (id, now) = (job.row.id, clock::now());
        let leases = self.service.store.leases_of(id).await?;
        let core = self.service.engine.core();
        let cost = core.jobs.get(&id).map_or(job.row.cost, |live| core.cost(live, now));
        Ok(Spent { cost_micros: cost.0, gpu_ms: gpu_time::held(&leases, now) })
    }

    async fn versions(&self, team: &str, name: Option<&str>) -> Result<Vec<DataVersionRow>, Fault> {
        Ok(self.service.store.data_versions(team, name).await?)
    }
}
