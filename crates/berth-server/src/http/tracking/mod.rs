//! What clients of MLflow speak to: the same routes under `/api/` and `/ajax-api/`. What they do is
//! `berth-tracker`'s; here it is decided who asks, and the audit log is told.

mod actor;
mod answer;
mod handler;

use crate::app::App;
use axum::Router;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};

/// The version of MLflow that clients are told. They refuse servers that are much older than they
/// are, and this is the newest whose routes were compared.
const VERSION: &str = "3.18.0";

/// Where each version of the routes is. One path of MLflow has no slash in the middle.
const PREFIXES: [&str; 3] = ["2.0/mlflow", "3.0/mlflow", "2.0mlflow"];

/// The routes, without a guard: they know their callers themselves.
pub fn routes(mut router: Router<App>) -> Router<App> {
    for root in ["/api", "/ajax-api"] {
        for prefix in PREFIXES {
            router = router.route(&format!("{root}/{prefix}/{{*rest}}"), any(handler::handle));
        }
    }
    router
        .route("/version", get(async || plain(VERSION)))
        .route("/health", get(async || plain("OK")))
}

fn plain(text: &'static str) -> Response {
    text.into_response()
}
