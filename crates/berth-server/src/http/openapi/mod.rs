//! The description of this API, made from the table of routes and the types on the wire.

mod examples;
mod shapes;
mod words;

use crate::app::App;
use axum::body::Bytes;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::{MethodFilter, MethodRouter, on};
use berth_api::problem::MEDIA_TYPE;
use berth_api::{Problem, ROUTES, Route, wire};
use berth_service::job_schema;
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

/// The name of the schema of a job file.
const JOB: &str = "JobDocument";

fn document() -> Value {
    let mut parts = Parts::default();
    parts.refer::<Problem>();
    // Parameters name it.
    parts.refer::<wire::At>();
    parts.add(JOB, job_schema());
    let mut paths: BTreeMap<&str, Map<String, Value>> = BTreeMap::new();
    for route in ROUTES {
        let method = route.method.to_string().to_lowercase();
        let operation = operation(route, shape(route.id, &mut parts));
        paths.entry(route.path).or_default().insert(method, operation);
    }
    let mut schemas = parts.into_schemas();
    schemas.iter_mut().for_each(|(name, schema)| words::describe_fields(name, schema));
    let mut paths = json!(paths);
    words::describe_fields("", &mut paths);
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Berth",
            "description": "Runs jobs on GPUs: who gets which, when, and at what cost.",
            "version": env!("CARGO_PKG_VERSION"),
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "servers": [
            { "url": "/", "description": "The server that gives this document" },
            {
                "url": "https://{address}",
                "description": "Another server",
                "variables": {
                    "address": {
                        "default": "127.0.0.1:7117",
                        "description": "Its name and port",
                    },
                },
            },
        ],
        "paths": paths,
        "components": {
            "schemas": schemas,
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
    let mut parameters: Vec<Value> = in_path(route.path).chain(shape.parameters).collect();
    parameters.iter_mut().for_each(words::describe_parameter);
    if !parameters.is_empty() {
        operation["parameters"] = Value::Array(parameters);
    }
    if let Some(body) = &shape.body {
        let mut content = media(body);
        let example = examples::body(route.id);
        if let (Some(json), Some(example)) = (content.get_mut("application/json"), example) {
            json["example"] = example;
        }
        if let Some(yaml) = content.get_mut("application/yaml") {
            yaml["example"] = examples::JOB_FILE.into();
        }
        operation["requestBody"] = json!({ "required": shape.needs_body, "content": content });
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

    /// Fields of a schema and of what is in it, as `Type.field`, with how they are described.
    fn fields<'a>(of: &str, schema: &'a Value, found: &mut Vec<(String, &'a Value)>) {
        match schema {
            Value::Object(parts) => {
                if let Some(Value::Object(own)) = parts.get("properties") {
                    found.extend(own.iter().map(|(name, field)| (format!("{of}.{name}"), field)));
                }
                parts.values().for_each(|part| fields(of, part, found));
            }
            Value::Array(items) => items.iter().for_each(|item| fields(of, item, found)),
            _ => {}
        }
    }

    fn operations(document: &Value) -> impl Iterator<Item = &Value> {
        let paths = document["paths"].as_object().unwrap().values();
        paths.flat_map(|path| path.as_object().unwrap().values())
    }

    /// What may go without a description. Nothing does.
    const WITHOUT_WORDS: &[&str] = &[];

    fn is_said(name: &str, value: &Value) -> bool {
        let words = value["description"].as_str().or(value["summary"].as_str());
        words.is_some_and(|words| words.len() > 2) || WITHOUT_WORDS.contains(&name)
    }

    #[test]
    fn every_operation_parameter_and_field_says_what_it_is() {
        let document = document();
        let mut silent = Vec::new();
        for operation in operations(&document) {
            let id = operation["operationId"].as_str().unwrap();
            if !is_said(id, &json!({ "summary": operation["summary"] })) {
                silent.push(id.to_owned());
            }
            for parameter in operation["parameters"].as_array().into_iter().flatten() {
                let name = format!("{id} {}", parameter["name"].as_str().unwrap());
                if !is_said(&name, parameter) {
                    silent.push(name);
                }
            }
        }
        let mut all = Vec::new();
        fields("paths", &document["paths"], &mut all);
        for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
            fields(name, schema, &mut all);
        }
        assert!(all.len() > 500, "{}", all.len());
        silent
            .extend(all.into_iter().filter(|(name, field)| !is_said(name, field)).map(|one| one.0));
        assert_eq!(silent, Vec::<String>::new(), "see words.rs");
    }

    #[test]
    fn every_request_with_a_body_has_an_example() {
        for operation in operations(&document()) {
            let Some(content) = operation["requestBody"]["content"].as_object() else { continue };
            for (kind, of_kind) in content {
                let id = &operation["operationId"];
                if of_kind["schema"]["format"] == "binary" {
                    continue;
                }
                assert!(!of_kind["example"].is_null(), "{id} has no example in {kind}");
            }
        }
    }

    #[test]
    fn a_job_file_is_described_with_all_its_keys() {
        let document = document();
        let body = &document["paths"]["/v1/jobs"]["post"]["requestBody"]["content"];
        let reference = body["application/json"]["schema"]["$ref"].as_str().unwrap();
        let schema = document.pointer(reference.strip_prefix('#').unwrap()).unwrap();
        let keys = schema["properties"].as_object().unwrap();
        assert!(keys.len() > 40 && keys.contains_key("run") && keys.contains_key("gpus"));
        assert!(document["servers"][0]["url"].is_string());
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
