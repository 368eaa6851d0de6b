//! What was spent, and what may be.

mod budgets;
mod cost;

pub(super) use cost::month_start;

use crate::app::App;
use axum::routing::{MethodFilter, MethodRouter, on};

pub(super) fn handler(id: &str, filter: MethodFilter) -> Option<MethodRouter<App>> {
    Some(match id {
        "list_cost" => on(filter, cost::list),
        "list_budgets" => on(filter, budgets::list),
        "set_budget" => on(filter, budgets::set),
        "delete_budget" => on(filter, budgets::delete),
        _ => return None,
    })
}
