//! Routes whose requests and answers the clients of other programs decide: MLflow's artifacts and
//! DVC's remotes.

mod artifacts;
mod dvc;
mod give;
mod media;
mod parts;
mod problem;
mod take;

pub(super) use problem::as_mlflow;

use crate::app::App;
use axum::routing::{MethodFilter, MethodRouter, on};

pub(super) fn handler(id: &str, filter: MethodFilter) -> Option<MethodRouter<App>> {
    Some(match id {
        "dvc_get" => on(filter, dvc::get),
        "dvc_put" | "dvc_post" => on(filter, dvc::put),
        "artifact_list" => on(filter, artifacts::list),
        "artifact_get" => on(filter, artifacts::get),
        "artifact_put" => on(filter, artifacts::put),
        "artifact_delete" => on(filter, artifacts::delete),
        "artifact_presigned" => on(filter, artifacts::presigned),
        "artifact_parts_create" => on(filter, parts::create),
        "artifact_parts_complete" => on(filter, parts::complete),
        "artifact_parts_abort" => on(filter, parts::abort),
        "artifact_part" => on(filter, parts::part),
        _ => return None,
    })
}
