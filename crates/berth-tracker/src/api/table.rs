//! The table of routes.

use super::call::{Call, Reply};
use super::{
    artifacts, experiments, history, logged_models, logging, registry, runs, shares, versions,
    webhooks,
};
use crate::error::{Code, Error, Result};
use crate::ports::Fut;

/// The right that a route checks before it loads the experiment, run or model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// The route needs no token.
    Public,
    Read,
    Write,
}

pub struct Op {
    /// Its name in the audit log and in `/metrics`.
    pub id: &'static str,
    pub method: &'static str,
    /// After `/api/` or `/ajax-api/`.
    pub path: &'static str,
    pub access: Access,
    pub(super) reads_body_itself: bool,
    pub(super) run: for<'a> fn(&'a Call<'_>) -> Fut<'a, Reply>,
}

macro_rules! ops {
    ($($method:ident $path:literal $access:ident $id:literal $module:ident::$handler:ident $($raw:ident)?;)*) => {
        pub const OPS: &[Op] = &[$(Op {
            id: $id,
            method: stringify!($method),
            path: $path,
            access: Access::$access,
            reads_body_itself: false $(|| { let $raw = true; $raw })?,
            run: |call| Box::pin($module::$handler(call)),
        }),*];
    };
}

ops! {
    POST "2.0/mlflow/experiments/create" Write "create_experiment" experiments::create;
    GET "2.0/mlflow/experiments/get" Read "get_experiment" experiments::get;
    GET "2.0/mlflow/experiments/get-by-name" Read "get_experiment_by_name" experiments::get_by_name;
    GET "2.0/mlflow/experiments/search" Read "search_experiments" experiments::search;
    POST "2.0/mlflow/experiments/search" Read "search_experiments" experiments::search;
    POST "2.0/mlflow/experiments/update" Write "update_experiment" experiments::update;
    POST "2.0/mlflow/experiments/delete" Write "delete_experiment" experiments::delete;
    POST "2.0/mlflow/experiments/restore" Write "restore_experiment" experiments::restore;
    POST "2.0/mlflow/experiments/set-experiment-tag" Write "set_experiment_tag" experiments::set_tag;
    POST "2.0/mlflow/experiments/delete-experiment-tag" Write "delete_experiment_tag" experiments::delete_tag;
    POST "2.0/mlflow/experiments/search-datasets" Read "search_datasets" experiments::search_datasets;
    POST "2.0mlflow/experiments/search-datasets" Read "search_datasets" experiments::search_datasets;
    GET "2.0/mlflow/experiments/shares" Read "list_experiment_shares" shares::of_experiment;
    POST "2.0/mlflow/experiments/share" Write "share_experiment" shares::add;
    POST "2.0/mlflow/experiments/unshare" Write "unshare_experiment" shares::remove;

    POST "2.0/mlflow/runs/create" Write "create_run" runs::create;
    GET "2.0/mlflow/runs/get" Read "get_run" runs::get;
    POST "2.0/mlflow/runs/update" Write "update_run" runs::update;
    POST "2.0/mlflow/runs/delete" Write "delete_run" runs::delete;
    POST "2.0/mlflow/runs/restore" Write "restore_run" runs::restore;
    POST "2.0/mlflow/runs/search" Read "search_runs" runs::search;
    POST "2.0/mlflow/runs/log-batch" Write "log_batch" logging::batch raw;
    POST "2.0/mlflow/runs/log-metric" Write "log_metric" logging::log_metric raw;
    POST "2.0/mlflow/runs/log-parameter" Write "log_parameter" logging::log_param;
    POST "2.0/mlflow/runs/log-model" Write "log_model" logging::log_model;
    POST "2.0/mlflow/runs/log-inputs" Write "log_inputs" logging::log_inputs;
    POST "2.0/mlflow/runs/outputs" Write "log_outputs" logging::log_outputs;
    POST "2.0/mlflow/runs/set-tag" Write "set_run_tag" logging::set_tag;
    POST "2.0/mlflow/runs/delete-tag" Write "delete_run_tag" logging::delete_tag;
    GET "2.0/mlflow/metrics/get-history" Read "get_metric_history" history::history;
    GET "2.0/mlflow/metrics/get-history-bulk-interval" Read "get_metric_history_bulk_interval" history::bulk_interval;

    GET "2.0/mlflow/artifacts/list" Read "list_artifacts" artifacts::of_run;
    POST "2.0/mlflow/artifacts/presigned-upload-url" Write "presigned_upload_url" artifacts::presigned;
    POST "2.0/mlflow/artifacts/presigned-download-url" Read "presigned_download_url" artifacts::presigned;
    GET "2.0/mlflow/logged-models/{}/artifacts/directories" Read "list_logged_model_artifacts" artifacts::of_model;

    POST "2.0/mlflow/logged-models" Write "create_logged_model" logged_models::create;
    POST "2.0/mlflow/logged-models/search" Read "search_logged_models" logged_models::search;
    GET "2.0/mlflow/logged-models/{}" Read "get_logged_model" logged_models::get;
    PATCH "2.0/mlflow/logged-models/{}" Write "finalize_logged_model" logged_models::finalize;
    DELETE "2.0/mlflow/logged-models/{}" Write "delete_logged_model" logged_models::delete;
    PATCH "2.0/mlflow/logged-models/{}/tags" Write "set_logged_model_tags" logged_models::set_tags;
    DELETE "2.0/mlflow/logged-models/{}/tags/{}" Write "delete_logged_model_tag" logged_models::delete_tag;
    POST "2.0/mlflow/logged-models/{}/params" Write "log_logged_model_params" logged_models::log_params;

    POST "2.0/mlflow/registered-models/create" Write "create_registered_model" registry::create;
    POST "2.0/mlflow/registered-models/rename" Write "rename_registered_model" registry::rename;
    PATCH "2.0/mlflow/registered-models/update" Write "update_registered_model" registry::update;
    DELETE "2.0/mlflow/registered-models/delete" Write "delete_registered_model" registry::delete;
    GET "2.0/mlflow/registered-models/get" Read "get_registered_model" registry::get;
    GET "2.0/mlflow/registered-models/search" Read "search_registered_models" registry::search;
    GET "2.0/mlflow/registered-models/get-latest-versions" Read "get_latest_versions" registry::latest_versions;
    POST "2.0/mlflow/registered-models/get-latest-versions" Read "get_latest_versions" registry::latest_versions;
    POST "2.0/mlflow/registered-models/set-tag" Write "set_registered_model_tag" registry::set_tag;
    DELETE "2.0/mlflow/registered-models/delete-tag" Write "delete_registered_model_tag" registry::delete_tag;
    POST "2.0/mlflow/registered-models/alias" Write "set_registered_model_alias" registry::set_alias;
    DELETE "2.0/mlflow/registered-models/alias" Write "delete_registered_model_alias" registry::delete_alias;
    GET "2.0/mlflow/registered-models/alias" Read "get_model_version_by_alias" versions::by_alias;

    POST "2.0/mlflow/model-versions/create" Write "create_model_version" versions::create;
    PATCH "2.0/mlflow/model-versions/update" Write "update_model_version" versions::update;
    DELETE "2.0/mlflow/model-versions/delete" Write "delete_model_version" versions::delete;
    GET "2.0/mlflow/model-versions/get" Read "get_model_version" versions::get;
    GET "2.0/mlflow/model-versions/search" Read "search_model_versions" versions::search;
    GET "2.0/mlflow/model-versions/get-download-uri" Read "get_model_version_download_uri" versions::download_uri;
    POST "2.0/mlflow/model-versions/set-tag" Write "set_model_version_tag" versions::set_tag;
    DELETE "2.0/mlflow/model-versions/delete-tag" Write "delete_model_version_tag" versions::delete_tag;
    POST "2.0/mlflow/model-versions/transition-stage" Write "transition_model_version_stage" versions::transition;

    POST "2.0/mlflow/webhooks" Write "create_webhook" webhooks::create;
    GET "2.0/mlflow/webhooks" Read "list_webhooks" webhooks::list;
    GET "2.0/mlflow/webhooks/{}" Read "get_webhook" webhooks::get;
    PATCH "2.0/mlflow/webhooks/{}" Write "update_webhook" webhooks::update;
    DELETE "2.0/mlflow/webhooks/{}" Write "delete_webhook" webhooks::delete;
    POST "2.0/mlflow/webhooks/{}/test" Write "test_webhook" webhooks::test;

    GET "3.0/mlflow/server-info" Public "server_info" this::server_info;
}

mod this {
    use super::{Call, Reply};
    use crate::error::Result;
    use serde_json::json;

    /// The first request of a client. The answer contains no data of a team.
    pub async fn server_info(_: &Call<'_>) -> Result<Reply> {
        Ok(Reply::json(&json!({
            "store_type": "SqlStore",
            "workspaces_enabled": false,
            "multipart_uploads_enabled": true,
            "multipart_downloads_enabled": false,
            "artifact_serving_enabled": true,
            "artifacts_presigned_only": false,
        })))
    }
}

/// Path prefixes of MLflow's routes that Berth does not implement.
const ABSENT: &[&str] = &[
    "2.0/mlflow/traces",
    "3.0/mlflow/traces",
    "2.0/mlflow/unified-traces",
    "2.0/mlflow/get-online-trace-details",
    "3.0/mlflow/assessments",
    "3.0/mlflow/datasets",
    "3.0/mlflow/scorers",
    "3.0/mlflow/issues",
    "3.0/mlflow/label-schemas",
    "3.0/mlflow/review-queues",
    "3.0/mlflow/prompt-optimization",
    "3.0/mlflow/gateway",
    "3.0/mlflow/workspaces",
    "3.0/mlflow/mcp-servers",
    "3.0/mlflow/skills",
    "3.0/mlflow/assistant",
    "3.0/jobs",
    "2.0/mlflow/users",
    "2.0/mlflow/upload-artifact",
    "2.0/mlflow/gateway-proxy",
];

/// The route of a request, and the values of its placeholders.
pub fn find(method: &str, path: &str) -> Result<(&'static Op, Vec<String>)> {
    let path = path.trim_end_matches('/');
    let mut other_method = false;
    // If several routes match, the one without a placeholder is first in the table.
    for op in OPS {
        let Some(parts) = parts(op.path, path, true) else { continue };
        if op.method == method {
            return Ok((op, parts));
        }
        other_method = true;
    }
    if ABSENT.iter().any(|absent| parts(absent, path, false).is_some()) {
        let said = format!("Not implemented: Berth does not have {method} /api/{path}");
        return Err(Error::new(Code::NotImplemented, said));
    }
    let said = match other_method {
        true => format!("/api/{path} does not take {method}"),
        false => format!("No API found for {method} /api/{path}"),
    };
    Err(Error::new(Code::EndpointNotFound, said))
}

/// The values of the placeholders, if the path matches.
fn parts(pattern: &str, path: &str, whole: bool) -> Option<Vec<String>> {
    let mut found = Vec::new();
    let mut segments = path.split('/');
    for wanted in pattern.split('/') {
        let segment = segments.next()?;
        match wanted {
            "{}" if !segment.is_empty() => found.push(segment.to_owned()),
            wanted if wanted == segment => {}
            _ => return None,
        }
    }
    (!whole || segments.next().is_none()).then_some(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(method: &str, path: &str) -> Result<(&'static str, Vec<String>), Code> {
        find(method, path).map(|(op, parts)| (op.id, parts)).map_err(|error| error.code)
    }

    #[test]
    fn a_path_leads_to_its_route_and_what_is_open_in_it_is_kept() {
        assert_eq!(found("GET", "2.0/mlflow/runs/get"), Ok(("get_run", vec![])));
        assert_eq!(
            found("POST", "2.0/mlflow/logged-models/search"),
            Ok(("search_logged_models", vec![]))
        );
        assert_eq!(
            found("DELETE", "2.0/mlflow/logged-models/m-1/tags/a"),
            Ok(("delete_logged_model_tag", vec!["m-1".to_owned(), "a".to_owned()]))
        );
        assert_eq!(
            found("POST", "2.0mlflow/experiments/search-datasets"),
            Ok(("search_datasets", vec![]))
        );
    }

    #[test]
    fn what_mlflow_has_and_berth_does_not_is_told_apart_from_what_nothing_has() {
        for (method, path) in [
            ("POST", "3.0/mlflow/traces"),
            ("GET", "3.0/mlflow/traces/abc"),
            ("POST", "3.0/mlflow/gateway/endpoints/create"),
        ] {
            assert_eq!(found(method, path), Err(Code::NotImplemented), "{path}");
        }
        for (method, path) in
            [("GET", "2.0/mlflow/runs/nothing"), ("PUT", "2.0/mlflow/runs/get"), ("GET", "")]
        {
            assert_eq!(found(method, path), Err(Code::EndpointNotFound), "{path}");
        }
    }
}
