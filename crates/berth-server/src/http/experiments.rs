//! Shares of experiments and registered models.

use super::answer::{Answer, Failure, Json};
use super::asking::Asking;
use super::extract::Path;
use super::tracking::{Member, finished, note, to_failure};
use crate::app::App;
use axum::extract::State;
use axum::routing::{MethodFilter, MethodRouter, on};
use berth_api::wire::{ExperimentShares, ModelShares};
use berth_engine::clock;
use berth_service::Caller;
use berth_tracker::{Named, NamedModel, model_shares, set_model_share, set_share, shares};

pub(super) fn handler(id: &str, filter: MethodFilter) -> Option<MethodRouter<App>> {
    Some(match id {
        "experiment_shares" => on(filter, list),
        "share_experiment" => on(filter, share),
        "unshare_experiment" => on(filter, unshare),
        "model_shares" => on(filter, list_of_model),
        "share_model" => on(filter, share_model),
        "unshare_model" => on(filter, unshare_model),
        _ => return None,
    })
}

async fn list(
    State(app): State<App>,
    Asking(caller): Asking,
    Path((team, experiment)): Path<(String, String)>,
) -> Answer<ExperimentShares> {
    let of = Named { team: &team, experiment: &experiment };
    let actor = Member::of_team(&app.service, caller, &team);
    let teams = shares(&*app.tracking.store, &actor, of).map_err(to_failure)?;
    Ok(Json(ExperimentShares { teams }))
}

async fn share(
    State(app): State<App>,
    Asking(caller): Asking,
    Path(named): Path<(String, String, String)>,
) -> Answer<ExperimentShares> {
    set(&app, caller, named, true).await
}

async fn unshare(
    State(app): State<App>,
    Asking(caller): Asking,
    Path(named): Path<(String, String, String)>,
) -> Answer<ExperimentShares> {
    set(&app, caller, named, false).await
}

async fn set(
    app: &App,
    caller: Caller,
    (team, experiment, with): (String, String, String),
    shared: bool,
) -> Answer<ExperimentShares> {
    let app = app.clone();
    let work = async move {
        let of = Named { team: &team, experiment: &experiment };
        let actor = Member::of_team(&app.service, caller, &team);
        let (store, now) = (&*app.tracking.store, clock::now().0);
        let done = set_share(store, &actor, of, (&with, shared), now).await;
        let (teams, changed) = done.map_err(to_failure)?;
        note(&app, actor.caller.audit(changed.target, changed.detail)).await;
        Ok::<_, Failure>(Json(ExperimentShares { teams }))
    };
    finished(work).await
}

async fn list_of_model(
    State(app): State<App>,
    Asking(caller): Asking,
    Path((team, model)): Path<(String, String)>,
) -> Answer<ModelShares> {
    let of = NamedModel { team: &team, model: &model };
    let actor = Member::of_team(&app.service, caller, &team);
    let teams = model_shares(&*app.tracking.store, &actor, of).await.map_err(to_failure)?;
    Ok(Json(ModelShares { teams }))
}

async fn share_model(
    State(app): State<App>,
    Asking(caller): Asking,
    Path(named): Path<(String, String, String)>,
) -> Answer<ModelShares> {
    set_model(&app, caller, named, true).await
}

async fn unshare_model(
    State(app): State<App>,
    Asking(caller): Asking,
    Path(named): Path<(String, String, String)>,
) -> Answer<ModelShares> {
    set_model(&app, caller, named, false).await
}

async fn set_model(
    app: &App,
    caller: Caller,
    (team, model, with): (String, String, String),
    shared: bool,
) -> Answer<ModelShares> {
    let app = app.clone();
    let work = async move {
        let of = NamedModel { team: &team, model: &model };
        let actor = Member::of_team(&app.service, caller, &team);
        let (store, now) = (&*app.tracking.store, clock::now().0);
        let done = set_model_share(store, &actor, of, (&with, shared), now).await;
        let (teams, changed) = done.map_err(to_failure)?;
        note(&app, actor.caller.audit(changed.target, changed.detail)).await;
        Ok::<_, Failure>(Json(ModelShares { teams }))
    };
    finished(work).await
}
