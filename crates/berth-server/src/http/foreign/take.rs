//! The body of an upload, piece by piece. What is refused half-way is read on for a moment, so that a
//! client that only writes hears why.

use crate::http::answer::Failure;
use crate::http::extract::timed_out;
use axum::body::{Body, BodyDataStream, Bytes};
use axum::http::HeaderMap;
use axum::http::header::CONTENT_LENGTH;
use berth_api::Code;
use berth_service::Fault;
use futures_util::StreamExt;
use std::time::Duration;

/// Between two pieces of an upload. All of it may take as long as it takes.
const PIECE_TIMEOUT: Duration = Duration::from_secs(60);
/// What is read of a body that was refused.
const MOST_IGNORED: usize = 64 << 20;
const LONGEST_IGNORED: Duration = Duration::from_secs(10);

/// How many bytes will come, where the client says so.
pub fn said(headers: &HeaderMap) -> Option<u64> {
    headers.get(CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

pub struct Taken(BodyDataStream);

impl Taken {
    pub fn new(body: Body) -> Taken {
        Taken(body.into_data_stream())
    }

    /// Nothing at the end of the body.
    pub async fn next(&mut self) -> Result<Option<Bytes>, Failure> {
        let next = tokio::time::timeout(PIECE_TIMEOUT, self.0.next()).await;
        let next = next.map_err(|_| timed_out(PIECE_TIMEOUT))?;
        let broken = |error| Failure::new(Code::BadRequest, format!("the body broke off: {error}"));
        next.transpose().map_err(broken)
    }

    /// Reads on, and keeps nothing.
    pub async fn refuse<T>(mut self, fault: Fault) -> Result<T, Failure> {
        let ignore = async {
            let mut ignored = 0;
            while let Some(Ok(piece)) = self.0.next().await {
                ignored += piece.len();
                if ignored > MOST_IGNORED {
                    break;
                }
            }
        };
        let _ = tokio::time::timeout(LONGEST_IGNORED, ignore).await;
        Err(Failure(fault))
    }
}
