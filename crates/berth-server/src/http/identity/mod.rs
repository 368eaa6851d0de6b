//! People, teams, tokens, projects and secrets.

mod me;
mod members;
mod projects;
mod secrets;
mod teams;
mod tokens;
mod users;

pub(super) use teams::{removal as team_removal, row as team_row};

use super::answer::Fault;
use super::auth::Caller;
use crate::app::App;
use crate::engine::{Act, Write};
use axum::routing::{MethodFilter, MethodRouter, on};
use berth_store::{Batch, Row, TeamRow};

/// More than any cluster has of users, teams or the like: their lists come whole.
pub(super) const ALL: u32 = 100_000;

pub(super) fn handler(id: &str, filter: MethodFilter) -> Option<MethodRouter<App>> {
    Some(match id {
        "me" => on(filter, me::me),
        "list_tokens" => on(filter, tokens::list),
        "create_token" => on(filter, tokens::create),
        "revoke_token" => on(filter, tokens::revoke),
        "list_users" => on(filter, users::list),
        "create_user" => on(filter, users::create),
        "delete_user" => on(filter, users::delete),
        "list_teams" => on(filter, teams::list),
        "create_team" => on(filter, teams::create),
        "delete_team" => on(filter, teams::delete),
        "list_members" => on(filter, members::list),
        "set_member" => on(filter, members::set),
        "delete_member" => on(filter, members::delete),
        "list_projects" => on(filter, projects::list),
        "create_project" => on(filter, projects::create),
        "delete_project" => on(filter, projects::delete),
        "list_secrets" => on(filter, secrets::list),
        "set_secret" => on(filter, secrets::set),
        "delete_secret" => on(filter, secrets::delete),
        _ => return None,
    })
}

/// Every row of a kind.
pub(super) async fn every<R: Row>(app: &App) -> Result<Vec<R>, Fault> {
    Ok(app.store.page(None, ALL).await?)
}

/// Writes documents with who did it.
pub(super) async fn write(
    app: &App,
    caller: &Caller,
    target: String,
    detail: serde_json::Value,
    change: impl FnOnce(&mut Batch),
) -> Result<(), Fault> {
    let mut documents = Batch::default();
    change(&mut documents);
    let audit = Some(caller.audit(target, detail));
    app.engine.write(Write { act: Act::Nothing, documents, audit, once: None }).await?;
    Ok(())
}

pub(super) async fn team(app: &App, name: &str) -> Result<TeamRow, Fault> {
    let row = app.store.get::<TeamRow>(name).await?;
    row.ok_or_else(|| Fault::not_found("team", name))
}

/// Whether a team's things are among those to be shown.
pub(super) fn shows(teams: &Option<Vec<String>>, team: &str) -> bool {
    teams.as_ref().is_none_or(|teams| teams.iter().any(|of| of == team))
}
