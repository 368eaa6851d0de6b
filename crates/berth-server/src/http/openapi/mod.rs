//! The description of this API, made from the table of routes and the types on the wire.

mod shapes;

use crate::app::App;
use axum::body::Bytes;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::{MethodFilter, MethodRouter, on};
use berth_api::problem::MEDIA_TYPE;
use berth_api::{Problem, ROUTES, Route, wire};
use berth_service::sessions::{COOKIE, KEY_HEADER};
use serde_json::{Map, Value, json};
use shapes::{Content, Parts, Shape, shape};
use std::collections::BTreeMap;
use std::sync::LazyLock;

pub(super) fn handler(id: &str, filter: MethodFilter) -> Option<MethodRouter<App>> {
    (id == "openapi").then(|| on(filter, openapi))
}

/// Anybody may ask for it any number of times and leave it unread, so all answers share one text.
async fn openapi() -> impl IntoResponse {
    static TEXT: LazyLock<Bytes> = LazyLock::new(|| Bytes::from(document().to_string()));
    ([(CONTENT_TYPE, "application/json")], TEXT.clone())
}

fn document() -> Value {
    let mut parts = Parts::default();
    parts.refer::<Problem>();
    // Parameters name it.
    parts.refer::<wire::At>();
    let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    for route in ROUTES {
        let method = route.method.to_string().to_lowercase();
        let operation = operation(route, shape(route.id, &mut parts));
        paths.entry(route.path).or_default().insert(method, operation);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Berth",
            "description": "Orchestrates jobs on GPUs.",
            "version": env!("CARGO_PKG_VERSION"),
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "paths": paths,
        "components": {
            "schemas": parts.into_schemas(),
            "responses": {
                "Problem": {
                    "description": "It was not done; the body says why, and what to do",
                    "content": { MEDIA_TYPE: { "schema": schema("Problem") } },
                },
            },
            "securitySchemes": {
                "token": { "type": "http", "scheme": "bearer" },
                // Both together. The cookie is called `__Host-berth_session` over TLS.
                "session": { "type": "apiKey", "in": "cookie", "name": COOKIE },
                "sessionKey": { "type": "apiKey", "in": "header", "name": KEY_HEADER },
            },
        },
    })
}

fn schema(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

fn operation(route: &Route, shape: Shape) -> Value {
    let problem = json!({ "$ref": "#/components/responses/Problem" });
    let mut success = json!({ "description": shape.says });
    if let Some(content) = &shape.answer {
        success["content"] = media(content);
    }
    let mut operation = json!({
        "operationId": route.id,
        "summary": route.about,
        "tags": [tag(route.path)],
        "x-berth-permission": route.permission.name(),
        "security": if route.is_public() { json!([]) } else { json!([{ "token": [] }, { "session": [], "sessionKey": [] }]) },
        "responses": { shape.status: success, "4XX": problem, "5XX": problem },
    });
    let parameters: Vec<Value> = in_path(route.path).chain(shape.parameters).collect();
    if !parameters.is_empty() {
        operation["parameters"] = Value::Array(parameters);
    }
    if let Some(body) = &shape.body {
        operation["requestBody"] = json!({ "required": shape.needs_body, "content": media(body) });
    }
    operation
}

fn media(contents: &[Content]) -> Value {
    let each =
        contents.iter().map(|(kind, schema)| ((*kind).to_owned(), json!({ "schema": schema })));
    Value::Object(each.collect())
}

/// The part of the API that a route belongs to.
fn tag(path: &str) -> &str {
    path.strip_prefix("/v1/").map_or("server", |rest| rest.split('/').next().unwrap_or(rest))
}

fn in_path(path: &str) -> impl Iterator<Item = Value> {
    let names = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    names.map(|name| {
        json!({ "name": name, "in": "path", "required": true, "schema": { "type": "string" } })
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    #[test]
    fn the_committed_document_is_the_one_the_server_gives() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/openapi.json");
        let expect = serde_json::to_string_pretty(&document()).unwrap() + "\n";
        if std::env::var_os("BERTH_WRITE_DOCS").is_some() {
            std::fs::write(&path, &expect).expect("a document to write");
        }
        let found = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(
            found == expect,
            "docs/openapi.json is not what the server gives; write it anew with \
             BERTH_WRITE_DOCS=1 cargo test -p berth-server openapi, and look at the difference"
        );
    }

    fn references<'a>(value: &'a Value, found: &mut Vec<&'a str>) {
        match value {
            Value::Object(fields) => {
                found.extend(fields.get("$ref").and_then(Value::as_str));
                fields.values().for_each(|value| references(value, found));
            }
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            _ => {}
        }
    }

    #[test]
    fn every_reference_leads_somewhere() {
        let document = document();
        let mut found = Vec::new();
        references(&document, &mut found);
        assert!(found.len() > ROUTES.len());
        for reference in found {
            let pointer = reference.strip_prefix('#').unwrap();
            assert!(document.pointer(pointer).is_some(), "{reference} leads nowhere");
        }
    }

    #[test]
    fn every_route_is_described_and_only_public_ones_need_no_token() {
        let document = document();
        for route in ROUTES {
            let operation = &document["paths"][route.path][route.method.to_string().to_lowercase()];
            assert_eq!(operation["operationId"], route.id);
            let open = operation["security"].as_array().unwrap().is_empty();
            assert_eq!(open, route.is_public(), "{}", route.id);
        }
    }
}
