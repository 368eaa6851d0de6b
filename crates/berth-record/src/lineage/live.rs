//! The jobs and data of this server.

use super::known::{Job, Known, Spent};
use berth_api::access::Permission;
use berth_api::{Code, wire};
use berth_model::{JobId, Time};
use berth_service::jobs::find;
use berth_service::money::cost;
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
        let detail = format!("job {} is an array; each element has a run of its own", found.id);
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
        // The ledger aggregates old cost by day, so filter by job and not by time.
        let query = wire::CostQuery {
            by: Some("job".to_owned()),
            from: Some(Time(0).into()),
            job: Some(job.row.id.to_string()),
            ..wire::CostQuery::default()
        };
        let found = cost::list(self.service, self.caller, query).await?;
        let gpu_ms = found.rows.iter().map(|row| row.gpu_ms).sum();
        Ok(match found.rows.is_empty() {
            true => Spent { cost_micros: job.row.cost.0, gpu_ms: 0 },
            false => Spent { cost_micros: found.total_micros, gpu_ms },
        })
    }

    async fn versions(&self, team: &str, name: Option<&str>) -> Result<Vec<DataVersionRow>, Fault> {
        Ok(self.service.store.data_versions(team, name).await?)
    }
}
