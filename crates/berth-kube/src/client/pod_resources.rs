//! Which devices the kubelet of a node has given to which pod, asked of its socket by gRPC: one
//! message of bytes in each direction over HTTP/2.

use super::protobuf::{self, DecodeError, POD_RESOURCES};
use crate::object::{List, Text};
use http::{HeaderMap, Request, StatusCode, header};
use http_body_util::{BodyExt, Full, LengthLimitError, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http2;
use hyper_util::rt::{TokioExecutor, TokioIo};
use serde::Deserialize;
use std::path::Path;
use std::time::Duration;
use tokio::net::UnixStream;
use tokio::task::JoinSet;

const METHOD: &str = "http://localhost/v1.PodResourcesLister/List";
const TIMEOUT: Duration = Duration::from_secs(5);
/// As much as the kubelet sends in one message.
const LARGEST_ANSWER: usize = 16 << 20;
/// Before each message: whether it is compressed, and its length.
const PREFIX: usize = 5;
/// A request that says nothing.
const NOTHING: [u8; PREFIX] = [0; PREFIX];

#[derive(Debug, thiserror::Error)]
pub enum PodResourcesError {
    #[error("the socket of the kubelet cannot be opened: {0}")]
    Connect(std::io::Error),
    #[error("the kubelet does not answer as a server of gRPC: {0}")]
    Http(hyper::Error),
    #[error("the kubelet answers {code}")]
    Status { code: StatusCode },
    #[error("the kubelet refuses, with code {code} of gRPC: {message}")]
    Refused { code: String, message: String },
    #[error("the answer of the kubelet was cut off: {0}")]
    Body(String),
    #[error("the answer of the kubelet cannot be read: {0}")]
    Unreadable(String),
    #[error("the kubelet did not answer within {} seconds", TIMEOUT.as_secs())]
    Timeout,
}

impl From<DecodeError> for PodResourcesError {
    fn from(error: DecodeError) -> PodResourcesError {
        PodResourcesError::Unreadable(error.to_string())
    }
}

/// The devices of a pod.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default)]
pub struct PodDevices {
    pub namespace: String,
    pub name: String,
    /// Each by its resource, such as `nvidia.com/gpu`, and the name that its plugin has for it.
    pub devices: Vec<(String, String)>,
    /// Each by its driver, such as `gpu.nvidia.com`, and the name that it has in its pool.
    pub claimed: Vec<(String, String)>,
}

/// The pods of this node that have devices.
pub async fn pod_devices(socket: &Path) -> Result<Vec<PodDevices>, PodResourcesError> {
    let asked = tokio::time::timeout(TIMEOUT, ask(socket)).await;
    let answer = asked.map_err(|_| PodResourcesError::Timeout)??;
    let listed: Listed = protobuf::message(&POD_RESOURCES, message(&answer)?)?;
    let pods = listed.pod_resources.into_iter().map(PodDevices::from);
    Ok(pods.filter(|pod| !pod.devices.is_empty() || !pod.claimed.is_empty()).collect())
}

async fn ask(socket: &Path) -> Result<Bytes, PodResourcesError> {
    let stream = UnixStream::connect(socket).await.map_err(PodResourcesError::Connect)?;
    let handshake = http2::handshake(TokioExecutor::new(), TokioIo::new(stream)).await;
    let (mut sender, connection) = handshake.map_err(PodResourcesError::Http)?;
    // A set, because what is in it ends with it.
    let mut connections = JoinSet::new();
    connections.spawn(connection);
    let request = Request::post(METHOD)
        .header(header::CONTENT_TYPE, "application/grpc")
        .header(header::TE, "trailers")
        .body(Full::new(Bytes::from_static(&NOTHING)))
        .expect("it has no part that could be wrong");
    let answer = sender.send_request(request).await.map_err(PodResourcesError::Http)?;
    let (head, body) = answer.into_parts();
    if head.status != StatusCode::OK {
        return Err(PodResourcesError::Status { code: head.status });
    }
    // A refusal comes in the place of trailers.
    refusal(&head.headers)?;
    let body = Limited::new(body, LARGEST_ANSWER).collect().await;
    let body = body.map_err(|why| match why.is::<LengthLimitError>() {
        true => PodResourcesError::Unreadable(format!("it is larger than {LARGEST_ANSWER} bytes")),
        false => PodResourcesError::Body(why.to_string()),
    })?;
    if let Some(trailers) = body.trailers() {
        refusal(trailers)?;
    }
    Ok(body.to_bytes())
}

fn refusal(headers: &HeaderMap) -> Result<(), PodResourcesError> {
    let text = |key: &str| {
        let value = headers.get(key).map(|value| String::from_utf8_lossy(value.as_bytes()));
        value.map(std::borrow::Cow::into_owned)
    };
    match text("grpc-status") {
        Some(code) if code != "0" => {
            let message = text("grpc-message").unwrap_or_default();
            Err(PodResourcesError::Refused { code, message })
        }
        _ => Ok(()),
    }
}

/// The one message of an answer.
fn message(answer: &[u8]) -> Result<&[u8], PodResourcesError> {
    let wrong = |why: &str| PodResourcesError::Unreadable(why.to_owned());
    let (prefix, rest) =
        answer.split_first_chunk::<PREFIX>().ok_or_else(|| wrong("it has no message"))?;
    let [compressed, length @ ..] = *prefix;
    if compressed != 0 {
        return Err(wrong("it is compressed"));
    }
    let length = usize::try_from(u32::from_be_bytes(length)).unwrap_or(usize::MAX);
    rest.get(..length).ok_or_else(|| wrong("its message is cut off"))
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Listed {
    pod_resources: List<Pod>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Pod {
    name: Text,
    namespace: Text,
    containers: List<Container>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Container {
    devices: List<Devices>,
    dynamic_resources: List<Claim>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Devices {
    resource_name: Text,
    device_ids: List<Text>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Claim {
    claim_resources: List<Claimed>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Claimed {
    driver_name: Text,
    device_name: Text,
}

impl From<&Pod> for PodDevices {
    fn from(pod: &Pod) -> PodDevices {
        let of_plugins = pod.containers.iter().flat_map(|container| &container.devices);
        let devices = of_plugins.flat_map(|devices| {
            let each = devices.device_ids.iter();
            each.map(|id| (devices.resource_name.to_string(), id.to_string()))
        });
        let claims = pod.containers.iter().flat_map(|container| &container.dynamic_resources);
        let claimed = claims.flat_map(|claim| &claim.claim_resources);
        let claimed = claimed.map(|one| (one.driver_name.to_string(), one.device_name.to_string()));
        PodDevices {
            namespace: pod.namespace.to_string(),
            name: pod.name.to_string(),
            devices: devices.collect(),
            claimed: claimed.collect(),
        }
    }
}

#[cfg(test)]
mod tests;
