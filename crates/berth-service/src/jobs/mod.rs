//! Jobs: submitted, looked at, acted on.

pub mod act;
pub mod at_risk;
mod budget_left;
mod data_places;
mod depend;
mod expected;
pub mod files;
pub mod find;
mod incomplete;
mod late;
pub mod list;
mod meant;
mod named;
mod order;
mod order_cost;
mod own_budget;
pub mod plan;
mod priority;
pub mod reasons;
pub mod show;
pub mod stop_preview;
pub mod submit;
pub mod timeline;
pub mod why;
