//! Projects: what the jobs of a team are for.

use super::{every, shows, team, write};
use crate::app::App;
use crate::clock;
use crate::http::answer::{Answer, Created, Done, Fault, Json};
use crate::http::auth::Caller;
use crate::http::extract::{Body, Path};
use crate::http::names::{self, OfTeam};
use axum::extract::State;
use berth_api::access::Permission;
use berth_api::{Code, wire};
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
    let mut rows = every::<ProjectRow>(app).await?;
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
    team(&app, &wish.team).await?;
    caller.must(Permission::ProjectsManage, Some(&wish.team), None)?;
    if app.store.get::<ProjectRow>((&wish.team, &wish.name)).await?.is_some() {
        let detail = format!("team {} has a project `{}` already", wish.team, wish.name);
        return Err(Fault::new(Code::Exists, detail));
    }
    let row =
        ProjectRow { team: wish.team.clone(), name: wish.name.clone(), created: clock::now() };
    let target = format!("project {} of {}", row.name, row.team);
    write(&app, &caller, target, json!({}), |batch| batch.put(&row)).await?;
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
    let target = format!("project {} of {}", row.name, row.team);
    write(&app, &caller, target, json!({}), |batch| {
        batch.delete::<ProjectRow>((&row.team, &row.name));
    })
    .await?;
    Ok(Done)
}
