//! What was spent, and what may be.

use super::answer::{Answer, Done, Failure, Json};
use super::asking::Asking;
use super::extract::{Body, Path, Query};
use super::limits;
use crate::app::App;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, MethodRouter, on};
use berth_api::{Code, wire};
use berth_service::{Fault, money};
use serde::Serialize;

pub(super) fn handler(id: &str, filter: MethodFilter) -> Option<MethodRouter<App>> {
    Some(match id {
        "list_cost" => on(filter, list_cost),
        "cost_series" => on(filter, cost_series),
        "cost_rows" => on(filter, cost_rows),
        "cost_idle" => on(filter, cost_idle),
        "budget_forecast" => on(filter, budget_forecast),
        "list_budgets" => on(filter, list_budgets),
        "set_budget" => on(filter, set_budget),
        "delete_budget" => on(filter, delete_budget),
        _ => return None,
    })
}

async fn list_cost(
    State(app): State<App>,
    Asking(caller): Asking,
    headers: HeaderMap,
    Query(query): Query<wire::CostQuery>,
) -> Result<Response, Failure> {
    let csv = wants_csv(&headers, query.format.as_deref())?;
    let report = money::cost::list(&app.service, &caller, query).await?;
    Ok(shown(&report, csv, money::cost::report_csv))
}

async fn cost_series(
    State(app): State<App>,
    Asking(caller): Asking,
    headers: HeaderMap,
    Query(query): Query<wire::CostSeriesQuery>,
) -> Result<Response, Failure> {
    let csv = wants_csv(&headers, query.format.as_deref())?;
    let series = money::series::series(&app.service, &caller, query).await?;
    Ok(shown(&series, csv, money::series::series_csv))
}

async fn cost_rows(
    State(app): State<App>,
    Asking(caller): Asking,
    headers: HeaderMap,
    Query(query): Query<wire::CostRowsQuery>,
) -> Result<Response, Failure> {
    let csv = wants_csv(&headers, query.format.as_deref())?;
    let rows = money::series::rows(&app.service, &caller, query).await?;
    Ok(shown(&rows, csv, money::series::rows_csv))
}

async fn cost_idle(
    State(app): State<App>,
    Asking(caller): Asking,
    headers: HeaderMap,
    Query(query): Query<wire::CostIdleQuery>,
) -> Result<Response, Failure> {
    let csv = wants_csv(&headers, query.format.as_deref())?;
    let idle = money::idle::idle(&app.service, &caller, query).await?;
    Ok(shown(&idle, csv, money::idle::idle_csv))
}

async fn budget_forecast(
    State(app): State<App>,
    Asking(caller): Asking,
    Path(name): Path<String>,
) -> Answer<wire::BudgetForecast> {
    Ok(Json(money::burn::forecast(&app.service, &caller, &name).await?))
}

fn wants_csv(headers: &HeaderMap, format: Option<&str>) -> Result<bool, Failure> {
    match format {
        Some("csv") => Ok(true),
        Some("json") => Ok(false),
        Some(other) => {
            let fault = Fault::new(Code::BadRequest, format!("format: there is no `{other}`"));
            Err(fault.next("use json or csv").into())
        }
        None => {
            let accept = limits::text_of(headers, &ACCEPT)?.unwrap_or_default();
            let first = accept.split([',', ';']).next().unwrap_or_default();
            Ok(first.trim().eq_ignore_ascii_case("text/csv"))
        }
    }
}

/// An answer in JSON, or as a table of comma-separated values.
fn shown<T: Serialize>(answer: &T, csv: bool, table: fn(&T) -> String) -> Response {
    match csv {
        true => ([(CONTENT_TYPE, "text/csv; charset=utf-8")], table(answer)).into_response(),
        false => Json(answer).into_response(),
    }
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
