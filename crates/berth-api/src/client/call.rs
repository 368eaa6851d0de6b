//! One request: put together, sent, tried again, and its answer read.

use super::error::{Error, Result};
use super::{Client, stream::Lines, stream::Pieces};
use crate::problem::Problem;
use crate::routes::{self, Method, Route};
use reqwest::header::CONTENT_TYPE;
use reqwest::{Response, Url};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::time::{Duration, Instant};

/// Between tries; it doubles up to a second.
const FIRST_WAIT: Duration = Duration::from_millis(50);
const LONGEST_WAIT: Duration = Duration::from_secs(1);

pub(super) struct Call<'a> {
    client: &'a Client,
    route: &'static Route,
    url: Url,
    body: Option<(&'static str, Vec<u8>)>,
    /// Lets the server recognise the request when it comes again.
    key: Option<String>,
    /// How long it may take.
    timeout: Duration,
}

impl<'a> Call<'a> {
    /// `parts` are put in the places of the path, in order.
    pub fn new(client: &'a Client, id: &'static str, parts: &[&str]) -> Call<'a> {
        let route = routes::named(id).expect("the client calls routes of the table");
        let mut url = client.base.clone();
        let mut parts = parts.iter();
        let mut path = url.path_segments_mut().expect("a base address has a path");
        path.pop_if_empty();
        for segment in route.path.split('/').filter(|segment| !segment.is_empty()) {
            if !segment.starts_with('{') {
                path.push(segment);
                continue;
            }
            let part = parts.next().expect("a part for each place of the path");
            match segment.starts_with("{*") {
                true => path.extend(part.split('/')),
                false => path.push(part),
            };
        }
        drop(path);
        Call { client, route, url, body: None, key: None, timeout: client.timeout }
    }

    /// The fields of a query that say something.
    pub fn query<Q: Serialize>(mut self, query: &Q) -> Result<Call<'a>> {
        let encode = |source| Error::Encode { what: self.route.id, source };
        let fields = serde_json::to_value(query).map_err(encode)?;
        for (name, value) in fields.as_object().into_iter().flatten() {
            let text = match value {
                serde_json::Value::Null | serde_json::Value::Bool(false) => continue,
                serde_json::Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            self.url.query_pairs_mut().append_pair(name, &text);
        }
        Ok(self)
    }

    pub fn body<B: Serialize>(mut self, body: &B) -> Result<Call<'a>> {
        let encode = |source| Error::Encode { what: self.route.id, source };
        let json = serde_json::to_vec(body).map_err(encode)?;
        self.body = Some(("application/json", json));
        Ok(self)
    }

    pub fn text(mut self, media: &'static str, text: &str) -> Call<'a> {
        self.body = Some((media, text.as_bytes().to_vec()));
        self
    }

    pub fn bytes_of(mut self, media: &'static str, bytes: Vec<u8>) -> Call<'a> {
        self.body = Some((media, bytes));
        self
    }

    pub fn key(mut self, key: String) -> Call<'a> {
        self.key = Some(key);
        self
    }

    /// For what the server takes its time for.
    pub fn longest(mut self, timeout: Duration) -> Call<'a> {
        self.timeout = self.timeout.max(timeout);
        self
    }

    /// The answer as JSON; no content reads as `null`.
    pub async fn answer<T: DeserializeOwned>(self) -> Result<T> {
        let what = self.route.id;
        let bytes = self.bytes().await?;
        let json = if bytes.is_empty() { b"null".as_slice() } else { &bytes };
        serde_json::from_slice(json).map_err(|source| Error::Decode { what, source })
    }

    pub async fn answer_text(self) -> Result<String> {
        let bytes = self.bytes().await?;
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    /// When the answer was given.
    pub async fn date(self) -> Result<Option<String>> {
        let response = self.checked(self.send(None).await?).await?;
        let date = response.headers().get(reqwest::header::DATE);
        Ok(date.and_then(|date| date.to_str().ok()).map(str::to_owned))
    }

    /// Sends a body piece by piece, once and for as long as it takes.
    pub async fn stream(self, body: reqwest::Body, bytes: u64) -> Result<()> {
        let request = self.client.http.request(reqwest::Method::POST, self.url.clone());
        let request = request.header(reqwest::header::CONTENT_LENGTH, bytes).body(body);
        let response = request.send().await.map_err(|source| self.failed(source))?;
        self.checked(response).await.map(drop)
    }

    /// The answer line by line, for as long as it comes.
    pub async fn lines(self, accept: &'static str) -> Result<Lines> {
        let response = self.send(Some(accept)).await?;
        Ok(Lines::new(self.checked(response).await?, self.place(), self.route.id))
    }

    /// The answer piece by piece, as it comes.
    pub async fn pieces(self) -> Result<Pieces> {
        let response = self.send(Some("application/octet-stream")).await?;
        Ok(Pieces::new(self.checked(response).await?, self.place(), self.route.id))
    }

    /// Asks for another protocol on the same connection; a refusal is a problem like any other.
    pub async fn upgrade(&self, headers: &[(&str, &str)]) -> Result<Response> {
        let request = self.client.http.get(self.url.clone());
        let request =
            headers.iter().fold(request, |request, (name, value)| request.header(*name, *value));
        let response = request.send().await.map_err(|source| self.failed(source))?;
        match response.status() {
            reqwest::StatusCode::SWITCHING_PROTOCOLS => Ok(response),
            _ => self.checked(response).await,
        }
    }

    async fn bytes(&self) -> Result<Vec<u8>> {
        let start = Instant::now();
        let mut wait = FIRST_WAIT;
        loop {
            let error = match self.once().await {
                Ok(bytes) => return Ok(bytes),
                Err(error) => error,
            };
            let over = start.elapsed() + wait > self.client.patience;
            if over || !self.may_repeat() || !error.passes() {
                return Err(error);
            }
            tokio::time::sleep(wait).await;
            wait = (wait * 2).min(LONGEST_WAIT);
        }
    }

    /// Twice is as good as once.
    fn may_repeat(&self) -> bool {
        self.key.is_some() || self.route.method == Method::Get || self.route.permission.reads()
    }

    async fn once(&self) -> Result<Vec<u8>> {
        let response = self.send(None).await?;
        let response = self.checked(response).await?;
        let bytes = response.bytes().await.map_err(|source| self.failed(source))?;
        Ok(bytes.to_vec())
    }

    /// A stream has no end to wait for, so only other requests have a time they may take.
    async fn send(&self, stream: Option<&'static str>) -> Result<Response> {
        let method = match self.route.method {
            Method::Get => reqwest::Method::GET,
            Method::Post => reqwest::Method::POST,
            Method::Put => reqwest::Method::PUT,
            Method::Patch => reqwest::Method::PATCH,
            Method::Delete => reqwest::Method::DELETE,
        };
        let mut request = self.client.http.request(method, self.url.clone());
        request = match stream {
            Some(accept) => request.header(reqwest::header::ACCEPT, accept),
            None => request.timeout(self.timeout),
        };
        if let Some((media, body)) = &self.body {
            request = request.header(CONTENT_TYPE, *media).body(body.clone());
        }
        if let Some(key) = &self.key {
            request = request.header("idempotency-key", key);
        }
        request.send().await.map_err(|source| self.failed(source))
    }

    async fn checked(&self, response: Response) -> Result<Response> {
        let status = response.status();
        if status.is_success() {
            return Ok(response);
        }
        let body = response.bytes().await.map_err(|source| self.failed(source))?;
        match serde_json::from_slice::<Problem>(&body) {
            Ok(problem) => Err(Error::Problem(Box::new(problem))),
            Err(_) => Err(Error::Status {
                url: self.place(),
                what: self.route.id,
                status: status.as_u16(),
            }),
        }
    }

    pub fn place(&self) -> String {
        self.client.base.as_str().trim_end_matches('/').to_owned()
    }

    fn failed(&self, source: reqwest::Error) -> Error {
        let (url, what) = (self.place(), self.route.id);
        if source.is_connect() {
            return Error::Unreachable { url, source };
        }
        if source.is_timeout() {
            return Error::Timeout { url, what, after: self.timeout };
        }
        Error::Lost { url, what, source }
    }
}
