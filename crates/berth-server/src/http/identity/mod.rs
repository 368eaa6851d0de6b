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
use super::checks;
use crate::app::App;
use crate::engine::Write;
use axum::routing::{MethodFilter, MethodRouter, on};
use berth_store::{AuditEntry, Batch, Row, Store};

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
pub(super) async fn every<R: Row>(store: &Store) -> Result<Vec<R>, Fault> {
    Ok(store.page(None, ALL).await?)
}

/// Writes documents with who did it, if what they depend on is so in that moment.
pub(super) async fn write<F>(
    app: &App,
    audit: AuditEntry,
    change: impl FnOnce(&mut Batch),
    check: impl FnOnce(Store) -> F + Send + 'static,
) -> Result<(), Fault>
where
    F: Future<Output = Result<(), Fault>> + Send + 'static,
{
    let mut documents = Batch::default();
    change(&mut documents);
    let write = Write::documents(documents, audit);
    app.engine.write(write.only_if(|store| checks::all(check(store)))).await?;
    Ok(())
}

/// Deletes documents, which depends on nothing: what has gone meanwhile stays so.
pub(super) async fn remove(
    app: &App,
    audit: AuditEntry,
    change: impl FnOnce(&mut Batch),
) -> Result<(), Fault> {
    let mut documents = Batch::default();
    change(&mut documents);
    app.engine.write(Write::documents(documents, audit)).await?;
    Ok(())
}

/// Whether a team's things are among those to be shown.
pub(super) fn shows(teams: &Option<Vec<String>>, team: &str) -> bool {
    teams.as_ref().is_none_or(|teams| teams.iter().any(|of| of == team))
}
