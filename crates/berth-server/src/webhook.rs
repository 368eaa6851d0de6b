//! The webhook that gives pods with GPUs their scheduler. Every replica answers it, also one that
//! stands by: it needs to know nothing but the pod.

use crate::error::Error;
use crate::listen::{ConnectionLimits, Door};
use crate::tls::Tls;
use axum::Router;
use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, State};
use axum::http::StatusCode;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use berth_cluster::AdmissionWebhook;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::watch;
use tokio::task::JoinHandle;

/// An object of the API server is smaller, with the question around it.
const MOST_BYTES: usize = 8 << 20;

/// Where the webhook listens, and whose pods it takes.
#[derive(Debug, Clone)]
pub struct Webhook {
    pub listen: SocketAddr,
    pub tls: Tls,
    pub adoption: AdmissionWebhook,
}

/// The task that answers; it ends with this.
pub struct Answering {
    task: JoinHandle<()>,
    /// Where it does: the port may have been left to the machine.
    pub address: SocketAddr,
}

impl Drop for Answering {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Answers for as long as the result is kept; none where no webhook is configured.
pub async fn begin(
    webhook: Option<&Webhook>,
    limits: ConnectionLimits,
) -> Result<Option<Answering>, Error> {
    let Some(webhook) = webhook else { return Ok(None) };
    let door = Door::open(webhook.listen, Some(webhook.tls.clone()), limits).await?;
    let address = door.local_address()?;
    let router = Router::new()
        .route("/mutate", post(mutate))
        .layer(DefaultBodyLimit::max(MOST_BYTES))
        .with_state(Arc::new(webhook.adoption.clone()));
    let (never, closes) = watch::channel(false);
    let serving = door.accept(router, closes)?;
    let task = tokio::spawn(async move {
        serving.await;
        drop(never);
    });
    Ok(Some(Answering { task, address }))
}

async fn mutate(State(adoption): State<Arc<AdmissionWebhook>>, question: Bytes) -> Response {
    match adoption.answer(&question) {
        Ok(answer) => ([(CONTENT_TYPE, "application/json")], answer.to_string()).into_response(),
        Err(error) => (StatusCode::BAD_REQUEST, error.to_string()).into_response(),
    }
}
