//! Projects: what the jobs of a team are for.

use super::{every, remove, shows, write};
use crate::app::App;
use crate::clock;
use crate::http::answer::{Answer, Created, Done, Fault, Json};
use crate::http::auth::Caller;
use crate::http::checks;
use crate::http::extract::{Body, Path};
use crate::http::names::{self, OfTeam};
use axum::extract::State;
use berth_api::access::Permission;
use berth_api::wire;
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

async fn visible(app: &App, caller: &Caller) -> Result<Vec<ProjectRow>, Fault> {
    let teams = caller.reads(Permission::ProjectsRead);
    let mut rows = every::<ProjectRow>(&app.store).await?;
    rows.retain(|row| shows(&teams, &row.team));
    Ok(rows)
}

pub async fn list(State(app): State<App>, caller: Caller) -> Answer<wire::Items<wire::Project>> {
    let rows = visible(&app, &caller).await?.into_iter();
    let items = rows.map(|row| wire::Project { name: row.name, team: row.team }).collect();
    Ok(Json(wire::Items { items }))
}

pub async fn create(
    State(app): State<App>,
    caller: Caller,
    Body(wish): Body<wire::Project>,
) -> Result<Created<wire::Project>, Fault> {
    names::check("project", &wish.name)?;
    checks::team(&app.store, &wish.team).await?;
    caller.must(Permission::ProjectsManage, Some(&wish.team), None)?;
    let row =
        ProjectRow { team: wish.team.clone(), name: wish.name.clone(), created: clock::now() };
    let target = format!("project {} of {}", row.name, row.team);
    let audit = caller.audit(&target, json!({}));
    let (team, name) = (row.team.clone(), row.name.clone());
    write(
        &app,
        audit,
        |batch| batch.put(&row),
        async move |store| {
            checks::team(&store, &team).await?;
            checks::free::<ProjectRow>(&store, (&team, &name), &target).await
        },
    )
    .await?;
    Ok(Created(wish))
}

/// Jobs keep the name of their project, and its cost stays with it.
pub async fn delete(
    State(app): State<App>,
    caller: Caller,
    Path(wanted): Path<String>,
) -> Result<Done, Fault> {
    let row = names::pick(&caller, visible(&app, &caller).await?, &wanted)?;
    caller.must(Permission::ProjectsManage, Some(&row.team), None)?;
    let audit = caller.audit(format!("project {} of {}", row.name, row.team), json!({}));
    remove(&app, audit, |batch| batch.delete::<ProjectRow>((&row.team, &row.name))).await?;
    Ok(Done)
}
