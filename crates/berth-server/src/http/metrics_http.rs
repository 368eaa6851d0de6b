//! How long answers take, by route. A route of the table is one label, whatever stands in the
//! address; so there are as many series as routes, times the kinds of answers they gave.

use super::metrics::{Labels, Page};
use axum::extract::{MatchedPath, Request};
use axum::middleware::Next;
use axum::response::Response;
use berth_engine::Durations;
use berth_model::Span;
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

const BOUNDS: &[Span] = &[
    Span::ms(5),
    Span::ms(10),
    Span::ms(25),
    Span::ms(50),
    Span::ms(100),
    Span::ms(250),
    Span::ms(500),
    Span::secs(1),
    Span::ms(2_500),
    Span::secs(5),
    Span::secs(10),
];

/// A method, a route, and the first digit of the status.
type Kind = (String, String, u16);

static TIMES: Mutex<BTreeMap<Kind, Durations>> = Mutex::new(BTreeMap::new());

fn times() -> MutexGuard<'static, BTreeMap<Kind, Durations>> {
    TIMES.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What an answer counts as, where its route stands for several.
#[derive(Debug, Clone, Copy)]
pub struct As(pub &'static str);

/// Measures until the head of the answer: a stream goes on for as long as it is read.
pub(super) async fn measured(request: Request, next: Next) -> Response {
    let route = request.extensions().get::<MatchedPath>().map(|path| path.as_str().to_owned());
    let method = request.method().to_string();
    let begun = Instant::now();
    let response = next.run(request).await;
    let of = response.extensions().get::<As>().map(|of| format!("/api/{}", of.0));
    if let Some(route) = of.or(route) {
        let us = u64::try_from(begun.elapsed().as_micros()).unwrap_or(u64::MAX);
        note(method, route, response.status().as_u16(), us);
    }
    response
}

fn note(method: String, route: String, status: u16, us: u64) {
    let kind = (method, route, status / 100);
    times().entry(kind).or_insert_with(|| Durations::new(BOUNDS)).add_us(us);
}

impl Page {
    pub(super) fn requests(&mut self) {
        let all: Vec<(Labels, Durations)> = times()
            .iter()
            .map(|((method, route, status), times)| {
                let labels = vec![
                    ("method", method.clone()),
                    ("route", route.clone()),
                    ("status", format!("{status}xx")),
                ];
                (labels, times.clone())
            })
            .collect();
        let help = "Time from a request to the head of its answer";
        self.histogram("http_request_duration_seconds", help, all);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_of_one_route_and_kind_count_together() {
        let route = "/v1/test/{of}/metrics-http";
        for (status, us) in [(200, 100), (204, 20_000), (404, 100)] {
            note("GET".to_owned(), route.to_owned(), status, us);
        }
        let kind = |status| ("GET".to_owned(), route.to_owned(), status);
        let counts = |status| times().get(&kind(status)).map(Durations::count);
        assert_eq!((counts(2), counts(4), counts(5)), (Some(2), Some(1), None));
    }
}
