//! Streams artifacts over MLflow's routes.

use super::Client;
use super::error::{Error, Result};
use super::stream::Pieces;
use super::tracked::refusal;
use futures_util::Stream;
use reqwest::header::{CONTENT_LENGTH, ETAG};
use reqwest::{Response, Url};
use std::io;

/// The name of these requests in messages.
const WHAT: &str = "artifacts";

/// The bytes of an upload.
pub trait ArtifactPieces: Stream<Item = io::Result<Vec<u8>>> + Send + 'static {}

impl<S: Stream<Item = io::Result<Vec<u8>>> + Send + 'static> ArtifactPieces for S {}

impl Client {
    /// Uploads a file to a path such as `nlp/1/RUN/artifacts/model.bin`, without a time limit.
    pub async fn put_artifact(
        &self,
        path: &str,
        pieces: impl ArtifactPieces,
        bytes: Option<u64>,
    ) -> Result<()> {
        let body = reqwest::Body::wrap_stream(pieces);
        let mut request = self.http.put(self.place_of(path)).body(body);
        if let Some(bytes) = bytes {
            request = request.header(CONTENT_LENGTH, bytes);
        }
        self.artifact_answer(request).await.map(drop)
    }

    /// A streamed download.
    pub async fn artifact(&self, path: &str) -> Result<Pieces> {
        let request = self.http.get(self.place_of(path));
        Ok(self.pieces_of(self.artifact_answer(request).await?))
    }

    /// The ETag, if the server sends one. For a server of Berth it is the SHA-256 sum.
    pub async fn artifact_tag(&self, path: &str) -> Result<Option<String>> {
        let request = self.http.head(self.place_of(path)).timeout(self.timeout);
        let response = self.artifact_answer(request).await?;
        let tag = response.headers().get(ETAG).and_then(|tag| tag.to_str().ok());
        Ok(tag.map(|tag| tag.trim_matches('"').to_owned()))
    }

    /// Downloads from another route, such as MLflow's `get-artifact`.
    pub async fn file_at(&self, place: &str, query: &[(&str, &str)]) -> Result<Pieces> {
        let mut url = self.below(place.split('/'));
        url.query_pairs_mut().extend_pairs(query);
        Ok(self.pieces_of(self.artifact_answer(self.http.get(url)).await?))
    }

    fn place_of(&self, path: &str) -> Url {
        let route = ["api", "2.0", "mlflow-artifacts", "artifacts"];
        self.below(route.into_iter().chain(path.split('/')))
    }

    fn below<'a>(&self, parts: impl Iterator<Item = &'a str>) -> Url {
        let mut url = self.base.clone();
        let mut path = url.path_segments_mut().expect("a base address has a path");
        path.pop_if_empty().extend(parts);
        drop(path);
        url
    }

    fn pieces_of(&self, response: Response) -> Pieces {
        Pieces::new(response, self.shown(), WHAT)
    }

    fn shown(&self) -> String {
        self.base.as_str().trim_end_matches('/').to_owned()
    }

    async fn artifact_answer(&self, request: reqwest::RequestBuilder) -> Result<Response> {
        let url = self.shown();
        let failed = |source: reqwest::Error| match source.is_connect() {
            true => Error::Unreachable { url: url.clone(), source },
            false => Error::Lost { url: url.clone(), what: WHAT, source },
        };
        let response = request.send().await.map_err(failed)?;
        match response.status().is_success() {
            true => Ok(response),
            false => {
                let status = response.status().as_u16();
                let bytes = response.bytes().await.unwrap_or_default();
                Err(refusal(&bytes, status, url.clone(), WHAT))
            }
        }
    }
}
