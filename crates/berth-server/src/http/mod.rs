//! The HTTP API: one thin handler for every row of `berth_api::ROUTES`. What a route does is a
//! function of `berth-service`.

mod admin;
pub mod answer;
mod apply;
mod asking;
mod clean_runs;
mod cluster;
mod code;
mod cookie;
mod data;
mod events;
mod experiments;
mod extract;
mod figures;
mod foreign;
mod given;
mod headers;
mod health;
mod identity;
mod jobs;
mod limits;
mod lineage;
mod metrics;
mod metrics_alerts;
mod metrics_audit;
mod metrics_blobs;
mod metrics_figures;
mod metrics_gpu_check;
mod metrics_histograms;
mod metrics_http;
mod metrics_kube;
mod metrics_process;
mod metrics_sign_in;
mod metrics_tracking;
mod money;
mod openapi;
mod page;
mod portal;
mod request_id;
mod returns;
mod session;
mod streams;
mod trace;
mod tracking;
mod visitor;
mod volumes;

use crate::app::App;
use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::middleware::{from_fn, from_fn_with_state};
use axum::routing::{MethodFilter, MethodRouter};
use berth_api::routes::{FOREIGN, Method, ROUTES, Route};

/// The largest body that is read.
const MOST_BYTES: usize = 4 << 20;

/// All routes, guarded.
pub fn router(app: App) -> Router {
    let mut router = Router::new();
    for route in ROUTES.iter().chain(FOREIGN) {
        router = router.route(route.path, handler(route));
    }
    let router = router
        .route_layer(from_fn_with_state(app.clone(), asking::guard))
        .route_layer(from_fn(foreign::as_mlflow));
    let router = tracking::routes(router)
        .layer(DefaultBodyLimit::max(MOST_BYTES))
        .route_layer(from_fn(metrics_http::measured))
        .fallback(portal::fallback)
        .method_not_allowed_fallback(answer::wrong_method)
        .layer(from_fn(headers::of_api))
        .with_state(app);
    trace::traced(router)
}

/// The handler of a route. Each part of the API knows its own.
fn handler(route: &Route) -> MethodRouter<App> {
    let filter = match route.method {
        Method::Get => MethodFilter::GET,
        Method::Post => MethodFilter::POST,
        Method::Put => MethodFilter::PUT,
        Method::Patch => MethodFilter::PATCH,
        Method::Delete => MethodFilter::DELETE,
    };
    let parts = [
        admin::handler,
        apply::handler,
        clean_runs::handler,
        cluster::handler,
        code::handler,
        data::handler,
        events::handler,
        experiments::handler,
        figures::handler,
        foreign::handler,
        health::handler,
        identity::handler,
        jobs::handler,
        lineage::handler,
        metrics::handler,
        money::handler,
        openapi::handler,
        returns::handler,
        session::handler,
        volumes::handler,
    ];
    let found = parts.iter().find_map(|part| part(route.id, filter));
    found.unwrap_or_else(|| panic!("the route {} has no handler", route.id))
}
