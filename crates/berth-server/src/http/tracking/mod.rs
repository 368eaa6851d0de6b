//! MLflow's routes, under `/api/` and `/ajax-api/`. `berth-tracker` implements them. This module finds the
//! caller and writes to the audit log.

mod actor;
mod answer;
mod handler;
mod identify;

pub use actor::Asking as Member;
pub use answer::to_failure;
pub use handler::{finished, note};
mod of_job;

use crate::app::App;
use axum::Router;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, get};

/// The version of MLflow that the server reports. Clients refuse much older servers. This is the newest
/// version whose routes we have compared with ours.
const VERSION: &str = "3.18.0";

/// Where each version of the routes is. One path of MLflow has no slash in the middle.
const PREFIXES: [&str; 3] = ["2.0/mlflow", "3.0/mlflow", "2.0mlflow"];

/// MLflow's routes, without the guard of Berth's own routes: their handler finds the caller.
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
