//! Requests to the API server, as bytes: what is read of an object is ours to choose.

use super::error::{Error, Result, Status};
use super::metrics::ClientMetrics;
use super::protobuf;
use http::{Method, Request, Response, header};
use kube::client::Body;
use kube::{Client, Config};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde::Serialize;
use serde::de::{DeserializeOwned, IgnoredAny};
use serde_json::value::RawValue;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::{JoinError, JoinSet};

/// Objects that a list brings in one answer.
const PAGE: u32 = 1_000;
/// Bytes of a page before its objects, at the most.
const LONGEST_HEAD: usize = 4 << 10;
/// What answers are written in, unless something else is asked for.
const JSON: &str = "application/json";
/// An answer that takes longer does not come. A watch is not bound by it.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(20);

/// The API server, with our identity. Cheap to clone; the connections are shared.
#[derive(Clone)]
pub struct Api {
    client: Client,
    config: Arc<Config>,
    metrics: Arc<ClientMetrics>,
}

impl std::fmt::Debug for Api {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Api").finish_non_exhaustive()
    }
}

/// What a list has answered, page by page.
#[derive(Debug)]
pub struct ListResult<T> {
    pub items: Vec<T>,
    /// Where a watch goes on.
    pub version: String,
    /// Whether it was all written in binary.
    pub(crate) in_binary: bool,
}

/// How a patch is meant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PatchType {
    /// Lists with keys are merged by them; only for kinds that Kubernetes brings along.
    Strategic,
    Merge,
    /// A list of operations, all of them or none.
    Json,
    /// The fields that are given are ours from now on, whoever had them before.
    Apply,
}

impl PatchType {
    const fn content_type(self) -> &'static str {
        match self {
            PatchType::Strategic => "application/strategic-merge-patch+json",
            PatchType::Merge => "application/merge-patch+json",
            PatchType::Json => "application/json-patch+json",
            PatchType::Apply => "application/apply-patch+yaml",
        }
    }
}

impl Api {
    /// By that kubeconfig, or, where none is named, as kubectl would: by the environment, the file
    /// in the home, or the account of the pod this runs in.
    pub async fn connect(kubeconfig: Option<&Path>, context: Option<&str>) -> Result<Api> {
        let failed = |why: String| Error::Access { why };
        let options = kube::config::KubeConfigOptions {
            context: context.map(str::to_owned),
            ..Default::default()
        };
        let mut config = match kubeconfig {
            Some(path) => {
                let file = kube::config::Kubeconfig::read_from(path);
                let file = file.map_err(|error| failed(error.to_string()))?;
                let config = Config::from_custom_kubeconfig(file, &options).await;
                config.map_err(|error| failed(error.to_string()))?
            }
            None if context.is_some() => {
                let config = Config::from_kubeconfig(&options).await;
                config.map_err(|error| failed(error.to_string()))?
            }
            None => Config::infer().await.map_err(|error| failed(error.to_string()))?,
        };
        // A watch may be silent for as long as nothing happens; it has a time limit of its own.
        config.read_timeout = None;
        let client = connections(&config)?;
        Ok(Api { client, config: Arc::new(config), metrics: Arc::default() })
    }

    /// The same with connections of its own, for a runtime of its own.
    pub fn with_own_connections(&self) -> Result<Api> {
        Ok(Api { client: connections(&self.config)?, ..self.clone() })
    }

    /// How it went so far; shared by all clones.
    pub fn metrics(&self) -> &Arc<ClientMetrics> {
        &self.metrics
    }

    /// The namespace of whoever we are, where objects of our own belong.
    pub fn namespace(&self) -> &str {
        self.client.default_namespace()
    }

    /// Everything at a path, as of one moment.
    pub async fn list<T: DeserializeOwned>(
        &self,
        path: &str,
        query: &str,
    ) -> Result<ListResult<T>> {
        self.list_as(Format::json(), path, query).await
    }

    /// The same, also of a kind that the server may write in binary. It comes in pages: one is on
    /// its way while the one before it is read.
    pub(crate) async fn list_as<T: DeserializeOwned>(
        &self,
        format: Format<T>,
        path: &str,
        query: &str,
    ) -> Result<ListResult<T>> {
        let (accept, binary) = (format.accept(), format.binary);
        let first = match query {
            "" => format!("{path}?limit={PAGE}"),
            query => format!("{path}?limit={PAGE}&{query}"),
        };
        let mut listed = ListResult { items: Vec::new(), version: String::new(), in_binary: true };
        let mut answer = self.call_as(accept, Method::GET, &first, None).await?;
        loop {
            let form = binary.filter(|_| protobuf::is_protobuf(&answer)).map(|kinds| kinds.list);
            // A set, because what is in it ends with it.
            let mut next = JoinSet::new();
            if let Some(from) = next_page(path, form, &answer)? {
                let (api, path) =
                    (self.clone(), format!("{first}&continue={}", percent_encode(&from)));
                next.spawn(async move { api.call_as(accept, Method::GET, &path, None).await });
            }
            let page = match (format.page)(path, form, &answer) {
                Err(Error::Unreadable { .. }) => readable(path, &answer)?,
                page => page?,
            };
            listed.items.extend(page.items);
            listed.in_binary &= form.is_some();
            listed.version = page.metadata.resource_version;
            let Some(next) = next.join_next().await else { return Ok(listed) };
            let lost =
                |why: JoinError| Error::Unreachable { what: path.to_owned(), why: why.to_string() };
            answer = next.map_err(lost)??;
        }
    }

    pub async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T> {
        let answer = self.call(Method::GET, path, None).await?;
        decode(path, &answer)
    }

    pub async fn post(&self, path: &str, body: &impl Serialize) -> Result<Vec<u8>> {
        let body = encode(path, body)?;
        self.call(Method::POST, path, Some((JSON, body))).await
    }

    pub async fn put(&self, path: &str, body: &impl Serialize) -> Result<Vec<u8>> {
        let body = encode(path, body)?;
        self.call(Method::PUT, path, Some((JSON, body))).await
    }

    pub async fn patch(
        &self,
        path: &str,
        how: PatchType,
        body: &impl Serialize,
    ) -> Result<Vec<u8>> {
        let body = encode(path, body)?;
        self.call(Method::PATCH, path, Some((how.content_type(), body))).await
    }

    /// Makes an object as it is given, or makes the one that is there like it.
    pub async fn apply(&self, path: &str, object: &impl Serialize) -> Result<()> {
        let path = format!("{path}?fieldManager=berth&force=true");
        self.patch(&path, PatchType::Apply, object).await.map(drop)
    }

    pub async fn delete(&self, path: &str, options: &impl Serialize) -> Result<Vec<u8>> {
        let body = encode(path, options)?;
        self.call(Method::DELETE, path, Some((JSON, body))).await
    }

    /// The answer's body, read whole. An answer that is no success is an error.
    async fn call(
        &self,
        method: Method,
        path: &str,
        body: Option<(&'static str, Vec<u8>)>,
    ) -> Result<Vec<u8>> {
        self.call_as(JSON, method, path, body).await
    }

    async fn call_as(
        &self,
        accept: &'static str,
        method: Method,
        path: &str,
        body: Option<(&'static str, Vec<u8>)>,
    ) -> Result<Vec<u8>> {
        let (asked, begun) = (method.clone(), Instant::now());
        let answer = self.answer(accept, method, path, body);
        let answered = tokio::time::timeout(REQUEST_TIMEOUT, answer).await;
        let silent = |_| Err(Error::Timeout { what: path.to_owned(), after: REQUEST_TIMEOUT });
        let answer = answered.unwrap_or_else(silent);
        self.metrics.answered(&asked, path, &answer, begun.elapsed());
        answer
    }

    async fn answer(
        &self,
        accept: &'static str,
        method: Method,
        path: &str,
        body: Option<(&'static str, Vec<u8>)>,
    ) -> Result<Vec<u8>> {
        let answer = self.send(accept, method, path, body).await?;
        let code = answer.status();
        let body = answer.into_body().collect_bytes().await;
        let body =
            body.map_err(|why| Error::Unreachable { what: path.to_owned(), why: why.to_string() })?;
        if code.is_success() {
            return Ok(body.into());
        }
        Err(Status::read(code.as_u16(), &body).error(path))
    }

    /// The answer as it comes in.
    pub(crate) async fn send(
        &self,
        accept: &'static str,
        method: Method,
        path: &str,
        body: Option<(&'static str, Vec<u8>)>,
    ) -> Result<Response<Body>> {
        let mut request = Request::builder().method(method).uri(path);
        request = request.header(header::ACCEPT, accept);
        let bytes = match body {
            Some((kind, bytes)) => {
                request = request.header(header::CONTENT_TYPE, kind);
                bytes
            }
            None => Vec::new(),
        };
        self.send_as(path, request, bytes).await
    }

    /// Sends a request whose method, path and headers the caller has set.
    pub(crate) async fn send_as(
        &self,
        path: &str,
        request: http::request::Builder,
        body: Vec<u8>,
    ) -> Result<Response<Body>> {
        let request = request.body(Body::from(body));
        let request = request.map_err(|why| Error::Path { path: path.to_owned(), why })?;
        let sent = self.client.send(request).await;
        sent.map_err(|why| Error::Unreachable { what: path.to_owned(), why: why.to_string() })
    }
}

/// Reads an answer: in binary of that form, or else in JSON.
type Decode<T> = fn(&str, Option<&'static protobuf::MessageSchema>, &[u8]) -> Result<T>;

/// How the objects of one kind are asked for and read. The functions are values, so that the
/// compiler makes a way to read protobuf only for kinds that are asked for in it.
pub(crate) struct Format<T> {
    /// How the kind is written in binary, where it is asked for in that.
    pub binary: Option<&'static protobuf::ObjectSchema>,
    page: Decode<Page<T>>,
    pub object: Decode<T>,
}

impl<T> Clone for Format<T> {
    fn clone(&self) -> Format<T> {
        *self
    }
}

impl<T> Copy for Format<T> {}

impl<T: DeserializeOwned> Format<T> {
    pub fn json() -> Format<T> {
        Format {
            binary: None,
            page: |what, _, body| decode(what, body),
            object: |what, _, body| decode(what, body),
        }
    }

    /// In binary, or in JSON where the server answers in that all the same.
    pub fn protobuf(schema: &'static protobuf::ObjectSchema) -> Format<T> {
        Format {
            binary: Some(schema),
            page: |what, form, body| decode_as(what, form, body),
            object: |what, form, body| decode_as(what, form, body),
        }
    }
}

impl<T> Format<T> {
    /// What an answer may be written in.
    pub const fn accept(&self) -> &'static str {
        if self.binary.is_some() { protobuf::ACCEPT } else { JSON }
    }
}

fn connections(config: &Config) -> Result<Client> {
    Client::try_from(config.clone()).map_err(|error| Error::Access { why: error.to_string() })
}

#[derive(serde::Deserialize)]
#[serde(bound = "T: DeserializeOwned")]
struct Page<T> {
    metadata: PageMeta,
    #[serde(default = "Vec::new")]
    items: Vec<T>,
}

#[derive(serde::Deserialize)]
#[serde(rename_all = "camelCase")]
struct PageMeta {
    resource_version: String,
    #[serde(default)]
    r#continue: String,
}

/// What can be read of a page, one by one: an odd object must not keep all others from being seen.
fn readable<T: DeserializeOwned>(path: &str, page: &[u8]) -> Result<Page<T>> {
    let Page { metadata, items } = decode::<Page<Box<RawValue>>>(path, page)?;
    let read = items.iter().filter_map(|item| {
        let item = decode(path, item.get().as_bytes());
        item.inspect_err(|error| tracing::error!(%error, "an object is left out")).ok()
    });
    Ok(Page { metadata, items: read.collect() })
}

/// Where the next page begins; nothing on the last one. The server writes that before the objects,
/// so that in JSON they need not be read to find it; in binary they are passed over.
fn next_page(
    path: &str,
    form: Option<&'static protobuf::MessageSchema>,
    page: &[u8],
) -> Result<Option<String>> {
    const ITEMS: &[u8] = b",\"items\":[";
    let head = &page[..page.len().min(LONGEST_HEAD)];
    let end = head.windows(ITEMS.len()).position(|window| window == ITEMS);
    let usual = end.filter(|_| form.is_none()).and_then(|end| {
        let head = [&head[..end], b"}"].concat();
        serde_json::from_slice::<Page<IgnoredAny>>(&head).ok()
    });
    let page = usual.map_or_else(|| decode_as::<Page<IgnoredAny>>(path, form, page), Ok)?;
    let next = page.metadata.r#continue;
    Ok((!next.is_empty()).then_some(next))
}

pub(crate) fn decode<'a, T: serde::Deserialize<'a>>(what: &str, body: &'a [u8]) -> Result<T> {
    serde_json::from_slice(body)
        .map_err(|why| Error::Unreadable { what: what.to_owned(), why: why.to_string() })
}

/// In binary of that form, or else in JSON.
pub(crate) fn decode_as<'a, T: serde::Deserialize<'a>>(
    what: &str,
    form: Option<&'static protobuf::MessageSchema>,
    body: &'a [u8],
) -> Result<T> {
    match form {
        Some(form) => protobuf::decode(form, body).map_err(|why| Error::binary(what, &why)),
        None => decode(what, body),
    }
}

fn encode(what: &str, body: &impl Serialize) -> Result<Vec<u8>> {
    serde_json::to_vec(body)
        .map_err(|why| Error::Unreadable { what: what.to_owned(), why: why.to_string() })
}

/// Everything that is not unreserved in RFC 3986.
const QUERY_VALUE: &AsciiSet =
    &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

/// A value inside a query.
pub fn percent_encode(value: &str) -> String {
    utf8_percent_encode(value, QUERY_VALUE).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_page_is_found_whichever_way_a_page_is_written() {
        let next = |page: &str| next_page("/pods", None, page.as_bytes()).unwrap();
        let usual = r#"{"kind":"PodList","metadata":{"resourceVersion":"7","continue":"a,b"}"#;
        assert_eq!(next(&format!("{usual},\"items\":[{{\"cut")).as_deref(), Some("a,b"));
        let other = r#"{"items": [], "metadata": {"resourceVersion":"7","continue":"c"}}"#;
        assert_eq!(next(other).as_deref(), Some("c"));
        // What an object says of itself is not what the page says.
        let tricky = r#"{"a":{"b":1,"items":[]},"metadata":{"resourceVersion":"7"},"items":[]}"#;
        assert_eq!(next(tricky), None);
        assert!(next_page("/pods", None, b"{}").is_err());
    }

    #[test]
    fn a_value_in_a_query_keeps_nothing_that_could_end_it() {
        assert_eq!(percent_encode("a.b-c_d~9"), "a.b-c_d~9");
        assert_eq!(percent_encode("x=1&y/ü"), "x%3D1%26y%2F%C3%BC");
    }
}
