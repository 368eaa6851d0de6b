//! A terminal in a running job.

use super::Client;
use super::error::{Error, Result};
use crate::wire::{ShellAsk, ShellTell};
use futures_util::{SinkExt, StreamExt};
use reqwest::header::{CONNECTION, UPGRADE};
use reqwest::{StatusCode, Upgraded};
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::client::generate_key;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::Role;
use tokio_tungstenite::tungstenite::{self, Message};

const WHAT: &str = "job_shell";
const KEY: &str = "sec-websocket-key";
const ACCEPT: &str = "sec-websocket-accept";

/// What comes out of a terminal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ShellOutput {
    /// To be shown as it is.
    Bytes(Vec<u8>),
    Tell(ShellTell),
}

/// An open terminal. Dropping it hangs up.
pub struct Shell {
    socket: WebSocketStream<Upgraded>,
    url: String,
}

impl Client {
    /// Opens a terminal; [`ShellAsk::Open`] has to be the first thing that is sent.
    pub async fn shell(&self, job: &str) -> Result<Shell> {
        let key = generate_key();
        let call = self.call(WHAT, &[job]);
        let response = call
            .upgrade(&[
                (CONNECTION.as_str(), "upgrade"),
                (UPGRADE.as_str(), "websocket"),
                ("sec-websocket-version", "13"),
                (KEY, &key),
            ])
            .await?;
        let accept = response.headers().get(ACCEPT).map(|value| value.as_bytes().to_vec());
        let agreed = accept == Some(derive_accept_key(key.as_bytes()).into_bytes());
        let status = response.status();
        let url = call.place();
        if status != StatusCode::SWITCHING_PROTOCOLS || !agreed {
            return Err(Error::Status { url, what: WHAT, status: status.as_u16() });
        }
        let lost = |source| Error::Lost { url: url.clone(), what: WHAT, source };
        let stream = response.upgrade().await.map_err(lost)?;
        Ok(Shell {
            socket: WebSocketStream::from_raw_socket(stream, Role::Client, None).await,
            url,
        })
    }
}

impl Shell {
    pub async fn ask(&mut self, ask: &ShellAsk) -> Result<()> {
        let json = serde_json::to_string(ask);
        let json = json.map_err(|source| Error::Encode { what: WHAT, source })?;
        self.send(Message::text(json)).await
    }

    pub async fn write(&mut self, typed: Vec<u8>) -> Result<()> {
        self.send(Message::binary(typed)).await
    }

    /// What comes next; nothing when it is over.
    pub async fn next(&mut self) -> Result<Option<ShellOutput>> {
        while let Some(message) = self.socket.next().await {
            match message.map_err(|source| self.broken(source))? {
                Message::Binary(bytes) => return Ok(Some(ShellOutput::Bytes(bytes.to_vec()))),
                Message::Text(text) => {
                    let tell = serde_json::from_str(&text);
                    let tell = tell.map_err(|source| Error::Decode { what: WHAT, source })?;
                    return Ok(Some(ShellOutput::Tell(tell)));
                }
                Message::Close(_) => return Ok(None),
                Message::Ping(_) | Message::Pong(_) | Message::Frame(_) => {}
            }
        }
        Ok(None)
    }

    async fn send(&mut self, message: Message) -> Result<()> {
        let sent = self.socket.send(message).await;
        sent.map_err(|source| self.broken(source))
    }

    fn broken(&self, source: tungstenite::Error) -> Error {
        Error::ShellLost { url: self.url.clone(), source: Box::new(source) }
    }
}
