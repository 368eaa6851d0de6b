//! What was spent, and what may be.

use super::answer::{Answer, Done, Failure, Json};
use super::asking::Asking;
use super::extract::{Body, Path, Query};
use crate::app::App;
use axum::extract::State;
use axum::routing::{MethodFilter, MethodRouter, on};
use berth_api::wire;
use berth_service::money;

pub(super) fn handler(id: &str, filter: MethodFilter) -> Option<MethodRouter<App>> {
    Some(match id {
        "list_cost" => on(filter, list_cost),
        "list_budgets" => on(filter, list_budgets),
        "set_budget" => on(filter, set_budget),
        "delete_budget" => on(filter, delete_budget),
        _ => return None,
    })
}

async fn list_cost(
    State(app): State<App>,
    Asking(caller): Asking,
    Query(query): Query<wire::CostQuery>,
) -> Answer<wire::CostReport> {
    Ok(Json(money::cost::list(&app.service, &caller, query).await?))
}

async fn list_budgets(
    State(app): State<App>,
    Asking(caller): Asking,
) -> Answer<wire::Items<wire::Budget>> {
    Ok(Json(money::budgets::list(&app.service, &caller).await?))
}

async fn set_budget(
    State(app): State<App>,
    Asking(caller): Asking,
    Path(name): Path<String>,
    Body(wish): Body<wire::BudgetSet>,
) -> Answer<wire::Budget> {
    Ok(Json(money::budgets::set(&app.service, &caller, &name, wish).await?))
}

async fn delete_budget(
    State(app): State<App>,
    Asking(caller): Asking,
    Path(name): Path<String>,
) -> Result<Done, Failure> {
    money::budgets::delete(&app.service, &caller, &name).await?;
    Ok(Done)
}
