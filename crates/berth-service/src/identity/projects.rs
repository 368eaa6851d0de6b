//! Projects: what the jobs of a team are for.

use super::{remove, shows, write};
use crate::caller::Caller;
use crate::fault::Fault;
use crate::names::{self, OfTeam};
use crate::service::Service;
use crate::{checks, live};
use berth_api::access::Permission;
use berth_api::{Code, wire};
use berth_engine::{LiveJob, clock};
use berth_store::ProjectRow;
use serde_json::json;

impl OfTeam for ProjectRow {
    const WHAT: &'static str = "project";
    fn team(&self) -> &str {
        &self.team
    }
    fn name(&self) -> &str {
        &self.name
    }
}

async fn visible(service: &Service, caller: &Caller) -> Result<Vec<ProjectRow>, Fault> {
    let teams = caller.reads(Permission::ProjectsRead);
    let mut rows = service.store.every::<ProjectRow>().await?;
    rows.retain(|row| shows(&teams, &row.team));
    Ok(rows)
}

pub async fn list(service: &Service, caller: &Caller) -> Result<wire::Items<wire::Project>, Fault> {
    let rows = visible(service, caller).await?.into_iter();
    let items = rows.map(|row| wire::Project { name: row.name, team: row.team }).collect();
    Ok(wire::Items { items })
}

pub async fn create(
    service: &Service,
    caller: &Caller,
    wish: wire::Project,
) -> Result<wire::Project, Fault> {
    names::check("project", &wish.name)?;
    checks::team(&service.store, &wish.team).await?;
    caller.must(Permission::ProjectsManage, Some(&wish.team), None)?;
    let row =
        ProjectRow { team: wish.team.clone(), name: wish.name.clone(), created: clock::now() };
    let target = format!("project {} of {}", row.name, row.team);
    let audit = caller.audit(&target, json!({}));
    let (team, name) = (row.team.clone(), row.name.clone());
    write(
        service,
        audit,
        |batch| batch.put(&row),
        async move |store| {
            checks::team(&store, &team).await?;
            checks::free::<ProjectRow>(&store, (&team, &name), &target).await
        },
    )
    .await?;
    Ok(wish)
}

/// Jobs keep the name of their project, and its cost stays with it.
pub async fn delete(
    service: &Service,
    caller: &Caller,
    wanted: &str,
    how: wire::Removal,
) -> Result<(), Fault> {
    let row = names::pick(caller.default_team(), visible(service, caller).await?, wanted)?;
    caller.must(Permission::ProjectsManage, Some(&row.team), None)?;
    let is_in_it = |job: &LiveJob| job.row.project == row.name && job.row.team == row.team;
    let jobs = live::jobs_where(service, is_in_it);
    if jobs > 0 && how.force != Some(true) {
        let detail =
            format!("project `{}` has {} that wait or run", row.name, live::count(jobs, "job"));
        let next = format!(
            "end them first (`berth ps --project {}` lists them), or delete the project with \
             --force: jobs go on and keep its name",
            row.name
        );
        return Err(Fault::new(Code::InUse, detail).next(next));
    }
    let audit = caller.audit(format!("project {} of {}", row.name, row.team), json!({}));
    remove(service, audit, |batch| batch.delete::<ProjectRow>((&row.team, &row.name))).await?;
    Ok(())
}
