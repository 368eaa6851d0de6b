//! Calls of the routes that clients of MLflow use.

use super::Client;
use super::error::{Error, Result};
use crate::code::Code;
use crate::problem::Problem;
use crate::routes::Method;
use reqwest::header::CONTENT_TYPE;
use serde_json::Value;

/// The name of these requests in messages.
const WHAT: &str = "tracking";

impl Client {
    /// Asks one of MLflow's routes: `path` comes after `/api/`, such as `2.0/mlflow/runs/search`. What a
    /// route reads by GET stands in the query, everything else in the body.
    pub async fn tracked(
        &self,
        (method, path): (Method, &str),
        fields: &Value,
        team: Option<&str>,
    ) -> Result<Value> {
        let mut url = self.base.clone();
        let place = self.base.as_str().trim_end_matches('/').to_owned();
        url.path_segments_mut()
            .expect("a base address has a path")
            .pop_if_empty()
            .push("api")
            .extend(path.split('/'));
        let http_method = match method {
            Method::Get => reqwest::Method::GET,
            Method::Post => reqwest::Method::POST,
            Method::Put => reqwest::Method::PUT,
            Method::Patch => reqwest::Method::PATCH,
            Method::Delete => reqwest::Method::DELETE,
        };
        if method == Method::Get {
            for (name, value) in fields.as_object().into_iter().flatten() {
                let several = value.as_array().cloned().unwrap_or_else(|| vec![value.clone()]);
                for one in several.iter().filter(|one| !one.is_null()) {
                    let text = one.as_str().map_or_else(|| one.to_string(), str::to_owned);
                    url.query_pairs_mut().append_pair(name, &text);
                }
            }
        }
        let mut request = self.http.request(http_method, url).timeout(self.timeout);
        if let Some(team) = team {
            request = request.header("x-berth-team", team);
        }
        if method != Method::Get {
            request = request.header(CONTENT_TYPE, "application/json").body(fields.to_string());
        }
        let failed = |source: reqwest::Error| {
            let url = place.clone();
            match (source.is_connect(), source.is_timeout()) {
                (true, _) => Error::Unreachable { url, source },
                (false, true) => Error::Timeout { url, what: WHAT, after: self.timeout },
                (false, false) => Error::Lost { url, what: WHAT, source },
            }
        };
        let response = request.send().await.map_err(&failed)?;
        let status = response.status();
        let bytes = response.bytes().await.map_err(&failed)?;
        if status.is_success() {
            return serde_json::from_slice(&bytes)
                .map_err(|source| Error::Decode { what: WHAT, source });
        }
        Err(refusal(&bytes, status.as_u16(), place, WHAT))
    }
}

/// Reads an error in MLflow's format, else the HTTP status.
pub(super) fn refusal(bytes: &[u8], status: u16, url: String, what: &'static str) -> Error {
    match serde_json::from_slice::<Value>(bytes) {
        Ok(body) if body["message"].is_string() => Error::Problem(Box::new(problem(&body))),
        _ => Error::Status { url, what, status },
    }
}

/// A refusal of these routes as one of the others.
fn problem(body: &Value) -> Problem {
    let code = match body["error_code"].as_str().unwrap_or_default() {
        "RESOURCE_DOES_NOT_EXIST" | "ENDPOINT_NOT_FOUND" => Code::NotFound,
        "RESOURCE_ALREADY_EXISTS" => Code::Exists,
        "UNAUTHENTICATED" => Code::NoToken,
        "PERMISSION_DENIED" => Code::Forbidden,
        "REQUEST_LIMIT_EXCEEDED" => Code::TooMany,
        "TEMPORARILY_UNAVAILABLE" => Code::StoreDown,
        "INTERNAL_ERROR" => Code::Internal,
        _ => Code::BadRequest,
    };
    let problem = Problem::new(code, body["message"].as_str().unwrap_or_default());
    match code {
        Code::NotFound => problem.next(
            "List them with `berth experiments list`, `berth runs`, `berth models list` or \
             `berth team list`.",
        ),
        Code::BadRequest => {
            problem.next("docs/tracking.md has the grammar of filters, the names and the limits.")
        }
        _ => problem,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_refusal_names_commands_of_tracking_to_go_on_with() {
        let of = |code: &str| problem(&json!({ "error_code": code, "message": "No such run" }));
        let missing = of("RESOURCE_DOES_NOT_EXIST");
        assert_eq!(missing.detail, "No such run");
        assert!(missing.next.contains("`berth experiments list`"), "{}", missing.next);
        let wrong = of("INVALID_PARAMETER_VALUE");
        assert!(wrong.next.contains("docs/tracking.md"), "{}", wrong.next);
    }
}
