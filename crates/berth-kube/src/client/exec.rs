//! A program started in a container that runs, with a terminal: a WebSocket whose messages begin
//! with the number of a channel.

use super::api::{Api, percent_encode};
use super::binding::pod_path;
use super::error::{Error, Result, Status};
use super::rbac::Permission;
use berth_model::PodRef;
use futures_util::{SinkExt, StreamExt};
use http::{Request, StatusCode, header};
use hyper::upgrade::Upgraded;
use hyper_util::rt::TokioIo;
use serde::Deserialize;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::protocol::{Message, Role};

const PROTOCOL: &str = "v5.channel.k8s.io";
const STDIN: u8 = 0;
const STDOUT: u8 = 1;
const STDERR: u8 = 2;
const STATUS: u8 = 3;
const RESIZE: u8 = 4;

/// A program that runs, and whoever sits at its terminal.
pub struct Exec {
    socket: WebSocketStream<TokioIo<Upgraded>>,
}

impl std::fmt::Debug for Exec {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Exec").finish_non_exhaustive()
    }
}

/// What comes from the program.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExecEvent {
    Output(Vec<u8>),
    /// It has ended with that code.
    Exited(i32),
    /// It could not be started, or it is not known how it ended.
    Failed(String),
}

impl Api {
    pub async fn exec(&self, pod: &PodRef, container: &str, command: &[String]) -> Result<Exec> {
        let mut path = format!(
            "{}/exec?container={container}&stdin=true&stdout=true&stderr=false&tty=true",
            pod_path(pod)
        );
        for word in command {
            path.push_str(&format!("&command={}", percent_encode(word)));
        }
        let request = Request::get(&path)
            .header(header::CONNECTION, "Upgrade")
            .header(header::UPGRADE, "websocket")
            .header(header::SEC_WEBSOCKET_VERSION, "13")
            .header(header::SEC_WEBSOCKET_KEY, generate_key())
            .header(header::SEC_WEBSOCKET_PROTOCOL, PROTOCOL);
        let answer = self.send_as(&path, request, Vec::new()).await?;
        let code = answer.status();
        if code != StatusCode::SWITCHING_PROTOCOLS {
            let body = answer.into_body().collect_bytes().await.unwrap_or_default();
            let error = Status::read(code.as_u16(), &body).error(&pod_path(pod));
            // A terminal is opened by a GET, and whoever opens one makes something.
            self.metrics().failed_within(&error, Permission::new("create", "", "pods/exec"));
            return Err(error);
        }
        let spoken = answer.headers().get(header::SEC_WEBSOCKET_PROTOCOL);
        if spoken.is_none_or(|spoken| spoken != PROTOCOL) {
            let why = format!("the API server does not speak {PROTOCOL}");
            return Err(Error::Unreadable { what: pod_path(pod), why });
        }
        let upgraded = hyper::upgrade::on(answer).await;
        let upgraded = upgraded
            .map_err(|why| Error::Unreachable { what: pod_path(pod), why: why.to_string() })?;
        let socket =
            WebSocketStream::from_raw_socket(TokioIo::new(upgraded), Role::Client, None).await;
        Ok(Exec { socket })
    }
}

impl Exec {
    /// What the program says next; nothing when the connection is over.
    pub async fn next(&mut self) -> Option<ExecEvent> {
        loop {
            let bytes = match self.socket.next().await?.ok()? {
                Message::Binary(bytes) => bytes,
                Message::Close(_) => return None,
                _ => continue,
            };
            match bytes.split_first() {
                // An empty message only opens its channel.
                Some((&(STDOUT | STDERR), text)) if !text.is_empty() => {
                    return Some(ExecEvent::Output(text.to_vec()));
                }
                Some((&STATUS, status)) if !status.is_empty() => return Some(ended(status)),
                _ => {}
            }
        }
    }

    /// Sends input to the command. Returns whether the connection still stands.
    pub async fn write_stdin(&mut self, bytes: &[u8]) -> bool {
        self.send(STDIN, bytes).await
    }

    pub async fn resize(&mut self, rows: u16, columns: u16) -> bool {
        let size = format!(r#"{{"Width":{columns},"Height":{rows}}}"#);
        self.send(RESIZE, size.as_bytes()).await
    }

    async fn send(&mut self, channel: u8, bytes: &[u8]) -> bool {
        let message = [&[channel], bytes].concat();
        self.socket.send(Message::Binary(message.into())).await.is_ok()
    }
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Ended {
    status: String,
    message: String,
    details: Details,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Details {
    causes: Vec<Cause>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Cause {
    reason: String,
    message: String,
}

fn ended(status: &[u8]) -> ExecEvent {
    let Ok(ended) = serde_json::from_slice::<Ended>(status) else {
        return ExecEvent::Failed(String::from_utf8_lossy(status).into_owned());
    };
    if ended.status == "Success" {
        return ExecEvent::Exited(0);
    }
    let code = ended.details.causes.iter().find(|cause| cause.reason == "ExitCode");
    match code.and_then(|cause| cause.message.parse().ok()) {
        Some(code) => ExecEvent::Exited(code),
        None => ExecEvent::Failed(ended.message),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_end_of_a_program_is_its_code_or_why_there_is_none() {
        assert_eq!(ended(br#"{"status":"Success"}"#), ExecEvent::Exited(0));
        let failed = br#"{"status":"Failure","reason":"NonZeroExitCode","message":"exit code 3",
            "details":{"causes":[{"reason":"ExitCode","message":"3"}]}}"#;
        assert_eq!(ended(failed), ExecEvent::Exited(3));
        let refused = br#"{"status":"Failure","message":"no such file"}"#;
        assert_eq!(ended(refused), ExecEvent::Failed("no such file".to_owned()));
    }
}
