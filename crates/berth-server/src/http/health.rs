//! Whether the server runs, whether it takes requests, and which one it is.

use super::answer::{Answer, Failure, Json};
use crate::app::App;
use axum::extract::State;
use axum::routing::{MethodFilter, MethodRouter, on};
use berth_api::{Code, wire};
use std::collections::BTreeMap;

pub(super) fn handler(id: &str, filter: MethodFilter) -> Option<MethodRouter<App>> {
    Some(match id {
        "health" => on(filter, health),
        "ready" => on(filter, ready),
        "version" => on(filter, version),
        _ => return None,
    })
}

/// Whoever can say so runs.
async fn health(State(app): State<App>) -> Answer<wire::Health> {
    Ok(Json(parts(&app)))
}

async fn ready(State(app): State<App>) -> Answer<wire::Health> {
    let health = parts(&app);
    if health.ok {
        return Ok(Json(health));
    }
    Err(Failure::new(Code::StoreDown, health.parts["log"].clone()))
}

/// It answers anybody, so it says that something is wrong, and the server's log says what.
fn parts(app: &App) -> wire::Health {
    let stalled = app.service.engine.core().stalled.as_ref().map(|stalled| stalled.since);
    let log = stalled.map(|since| format!("nothing could be written since {since}"));
    let ok = log.is_none();
    let mut parts: BTreeMap<String, String> = [("log".to_owned(), log.unwrap_or_default())].into();
    if !app.audit_exports.is_empty() {
        let behind = app.audit_exports.iter().any(|export| export.failing().is_some());
        let words = if behind { "the audit log cannot be exported; trying again" } else { "" };
        parts.insert("audit_export".to_owned(), words.to_owned());
    }
    if !app.service.audit_watch.findings().is_empty() {
        let words = "the database was changed without the server; see `berth audit verify`";
        parts.insert("audit".to_owned(), words.to_owned());
    }
    wire::Health { ok, parts }
}

async fn version() -> Answer<wire::Version> {
    let version = env!("CARGO_PKG_VERSION").to_owned();
    Ok(Json(wire::Version { version, api: "v1".to_owned() }))
}
