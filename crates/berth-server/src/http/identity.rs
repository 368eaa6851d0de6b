//! People, teams, tokens, projects and secrets.

use super::answer::{Answer, Created, Done, Failure, Json};
use super::asking::Asking;
use super::extract::{Body, Path, Query};
use super::tracking::to_failure;
use crate::app::App;
use crate::tracking_clean::{forget_team, removed_teams};
use axum::extract::State;
use axum::routing::{MethodFilter, MethodRouter, on};
use berth_api::wire;
use berth_service::identity;

pub(super) fn handler(id: &str, filter: MethodFilter) -> Option<MethodRouter<App>> {
    Some(match id {
        "me" => on(filter, me),
        "list_tokens" => on(filter, list_tokens),
        "create_token" => on(filter, create_token),
        "revoke_token" => on(filter, revoke_token),
        "list_users" => on(filter, list_users),
        "create_user" => on(filter, create_user),
        "delete_user" => on(filter, delete_user),
        "list_teams" => on(filter, list_teams),
        "create_team" => on(filter, create_team),
        "delete_team" => on(filter, delete_team),
        "list_members" => on(filter, list_members),
        "set_member" => on(filter, set_member),
        "delete_member" => on(filter, delete_member),
        "list_projects" => on(filter, list_projects),
        "create_project" => on(filter, create_project),
        "delete_project" => on(filter, delete_project),
        "list_secrets" => on(filter, list_secrets),
        "set_secret" => on(filter, set_secret),
        "delete_secret" => on(filter, delete_secret),
        _ => return None,
    })
}

async fn list_tokens(
    State(app): State<App>,
    Asking(caller): Asking,
) -> Answer<wire::Items<wire::Token>> {
    Ok(Json(identity::tokens::list(&app.service, &caller).await?))
}

async fn create_token(
    State(app): State<App>,
    Asking(caller): Asking,
    Body(wish): Body<wire::TokenCreate>,
) -> Result<Created<wire::TokenCreated>, Failure> {
    Ok(Created(identity::tokens::create(&app.service, &caller, wish).await?))
}

async fn revoke_token(
    State(app): State<App>,
    Asking(caller): Asking,
    Path(wanted): Path<String>,
) -> Result<Done, Failure> {
    identity::tokens::revoke(&app.service, &caller, &wanted).await?;
    Ok(Done)
}

async fn list_users(
    State(app): State<App>,
    Asking(caller): Asking,
) -> Answer<wire::Items<wire::User>> {
    Ok(Json(identity::users::list(&app.service, &caller).await?))
}

async fn create_user(
    State(app): State<App>,
    Asking(caller): Asking,
    Body(wish): Body<wire::UserCreate>,
) -> Result<Created<wire::User>, Failure> {
    Ok(Created(identity::users::create(&app.service, &caller, wish).await?))
}

async fn delete_user(
    State(app): State<App>,
    Asking(caller): Asking,
    Path(name): Path<String>,
    Query(how): Query<wire::Removal>,
) -> Result<Done, Failure> {
    identity::users::delete(&app.service, &caller, &name, how).await?;
    Ok(Done)
}

async fn list_teams(State(app): State<App>, _: Asking) -> Answer<wire::Items<wire::Team>> {
    Ok(Json(identity::teams::list(&app.service).await?))
}

async fn create_team(
    State(app): State<App>,
    Asking(caller): Asking,
    Body(wish): Body<wire::Team>,
) -> Result<Created<wire::Team>, Failure> {
    let _held = app.tracking.teams.lock().await;
    identity::teams::check_new(&app.service, &caller, &wish)?;
    forget_team(&app, &wish.name).await.map_err(to_failure)?;
    Ok(Created(identity::teams::create(&app.service, &caller, wish).await?))
}

async fn delete_team(
    State(app): State<App>,
    Asking(caller): Asking,
    Path(name): Path<String>,
) -> Result<Done, Failure> {
    identity::teams::delete(&app.service, &caller, &name).await?;
    tokio::spawn(async move { removed_teams(&app, &[name]).await });
    Ok(Done)
}

async fn list_members(
    State(app): State<App>,
    Asking(caller): Asking,
    Path(name): Path<String>,
) -> Answer<wire::Items<wire::Member>> {
    Ok(Json(identity::members::list(&app.service, &caller, &name).await?))
}

async fn set_member(
    State(app): State<App>,
    Asking(caller): Asking,
    Path((name, user)): Path<(String, String)>,
    Body(wish): Body<wire::MemberSet>,
) -> Answer<wire::Member> {
    Ok(Json(identity::members::set(&app.service, &caller, &name, &user, wish).await?))
}

async fn delete_member(
    State(app): State<App>,
    Asking(caller): Asking,
    Path((name, user)): Path<(String, String)>,
) -> Result<Done, Failure> {
    identity::members::delete(&app.service, &caller, &name, &user).await?;
    Ok(Done)
}

async fn list_projects(
    State(app): State<App>,
    Asking(caller): Asking,
) -> Answer<wire::Items<wire::Project>> {
    Ok(Json(identity::projects::list(&app.service, &caller).await?))
}

async fn create_project(
    State(app): State<App>,
    Asking(caller): Asking,
    Body(wish): Body<wire::Project>,
) -> Result<Created<wire::Project>, Failure> {
    Ok(Created(identity::projects::create(&app.service, &caller, wish).await?))
}

async fn delete_project(
    State(app): State<App>,
    Asking(caller): Asking,
    Path(wanted): Path<String>,
    Query(how): Query<wire::Removal>,
) -> Result<Done, Failure> {
    identity::projects::delete(&app.service, &caller, &wanted, how).await?;
    Ok(Done)
}

async fn list_secrets(
    State(app): State<App>,
    Asking(caller): Asking,
) -> Answer<wire::Items<wire::Secret>> {
    Ok(Json(identity::secrets::list(&app.service, &caller).await?))
}

async fn set_secret(
    State(app): State<App>,
    Asking(caller): Asking,
    Path((of, name)): Path<(String, String)>,
    Body(wish): Body<wire::SecretSet>,
) -> Answer<wire::Secret> {
    Ok(Json(identity::secrets::set(&app.service, &caller, &of, &name, wish).await?))
}

async fn delete_secret(
    State(app): State<App>,
    Asking(caller): Asking,
    Path((of, name)): Path<(String, String)>,
) -> Result<Done, Failure> {
    identity::secrets::delete(&app.service, &caller, &of, &name).await?;
    Ok(Done)
}

async fn me(State(app): State<App>, Asking(caller): Asking) -> Answer<wire::Me> {
    Ok(Json(identity::me::me(&app.service, &caller)))
}
