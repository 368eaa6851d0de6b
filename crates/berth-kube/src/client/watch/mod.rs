//! Following a kind of object: a list, and then every change, without missing any.
//!
//! A watch ends often: the server closes it after its time, when it is slow to read, or when it
//! restarts. It is then taken up where it was; where the server has forgotten that moment,
//! everything is listed again, and whoever follows compares.

use crate::client::api::{Api, Format, decode, decode_as};
use crate::client::error::{Error, Result, Status};
use crate::client::protobuf::{self, MessageSchema, ProtobufObject};
use futures_util::StreamExt;
use http::Method;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::value::RawValue;
use std::time::Duration;
use tokio::sync::mpsc;

/// How long the server keeps a watch open, and after how long of silence it is taken for dead:
/// bookmarks come about every minute.
const OPEN_FOR: u32 = 290;
const SILENCE: Duration = Duration::from_secs(150);
/// How long the server has to begin with an answer.
const ANSWER: Duration = Duration::from_secs(20);
/// Between two tries, at the least and at the most.
const FIRST_PAUSE: Duration = Duration::from_millis(50);
const LONGEST_PAUSE: Duration = Duration::from_secs(2);
/// Bytes of one change, at the most: an object of etcd is at most a tenth of this.
const LONGEST_CHANGE: usize = 16 << 20;

/// What a watch sends to its listener.
#[derive(Debug)]
pub enum WatchUpdate<T> {
    /// Everything there is, as of now: what is not among it is gone.
    Snapshot(Vec<T>),
    /// What happened since, in order.
    Changes(Vec<Change<T>>),
}

#[derive(Debug)]
pub enum Change<T> {
    /// It is new, or different.
    Applied(T),
    /// It is gone; this is the last that is known of it.
    Deleted(T),
}

/// Why a watch has ended.
enum Ended {
    /// The watch is over, and can be taken up again.
    Watch,
    /// The moment to go on from is forgotten.
    Forgotten,
    /// The listener is gone.
    Listener,
}

/// Follows the objects at a path until the listener is gone. It never gives up: an API server that
/// is away is tried again.
pub async fn watch_objects<T>(
    api: Api,
    path: String,
    query: String,
    tell: mpsc::Sender<WatchUpdate<T>>,
) where
    T: DeserializeOwned + Send + 'static,
{
    watch(Format::json(), api, path, query, tell).await;
}

/// The same in binary, for kinds of which there are many.
pub async fn watch_objects_protobuf<T>(
    api: Api,
    path: String,
    query: String,
    tell: mpsc::Sender<WatchUpdate<T>>,
) where
    T: ProtobufObject + Send + 'static,
{
    watch(Format::protobuf(T::SCHEMA), api, path, query, tell).await;
}

async fn watch<T>(
    format: Format<T>,
    api: Api,
    path: String,
    query: String,
    tell: mpsc::Sender<WatchUpdate<T>>,
) where
    T: DeserializeOwned + Send + 'static,
{
    let (version, buffer) = (String::new(), Vec::new());
    let mut watcher = Watcher { api, path, query, format, tell, version, buffer };
    let mut pause = FIRST_PAUSE;
    loop {
        match watcher.once().await {
            Ok(Ended::Listener) => return,
            Ok(Ended::Watch) => {
                // A server that ends every watch at once is not asked again at once.
                tokio::time::sleep(FIRST_PAUSE).await;
                pause = FIRST_PAUSE;
            }
            Ok(Ended::Forgotten) => {
                tracing::info!(path = watcher.path, "the watch is too old; listing again");
                watcher.version.clear();
                // A list that is too old as soon as it is there is not asked for without end.
                tokio::time::sleep(pause).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
            Err(error @ Error::Protobuf { .. }) => {
                tracing::warn!(%error, "asking for JSON from now on, which costs more");
                watcher.format.binary = None;
                watcher.version.clear();
            }
            Err(error) => {
                tracing::warn!(%error, "following; trying again");
                tokio::time::sleep(pause.max(error.retry_after().unwrap_or_default())).await;
                pause = (pause * 2).min(LONGEST_PAUSE);
            }
        }
        if watcher.tell.is_closed() {
            return;
        }
    }
}

struct Watcher<T> {
    api: Api,
    path: String,
    query: String,
    format: Format<T>,
    tell: mpsc::Sender<WatchUpdate<T>>,
    /// Where the next watch goes on; empty: from a new list.
    version: String,
    buffer: Vec<u8>,
}

impl<T: DeserializeOwned + Send + 'static> Watcher<T> {
    /// Lists if that is needed, and watches until the watch ends.
    async fn once(&mut self) -> Result<Ended> {
        if self.version.is_empty() {
            let listed = self.api.list_as(self.format, &self.path, &self.query).await?;
            self.api.metrics().listed(&self.path, listed.in_binary);
            if self.tell.send(WatchUpdate::Snapshot(listed.items)).await.is_err() {
                return Ok(Ended::Listener);
            }
            self.version = listed.version;
        }
        match self.watch().await {
            Err(error) if error.is_expired() => Ok(Ended::Forgotten),
            ended => ended,
        }
    }

    async fn watch(&mut self) -> Result<Ended> {
        let Watcher { path, query, version, .. } = self;
        let mut path = format!(
            "{path}?watch=true&allowWatchBookmarks=true&timeoutSeconds={OPEN_FOR}\
             &resourceVersion={version}"
        );
        if !query.is_empty() {
            path = format!("{path}&{query}");
        }
        let asked = self.api.send(self.format.accept(), Method::GET, &path, None);
        let Ok(answer) = tokio::time::timeout(ANSWER, asked).await else {
            tracing::warn!(path = self.path, "the API server did not answer; watching again");
            return Ok(Ended::Watch);
        };
        let answer = answer?;
        let code = answer.status();
        if !code.is_success() {
            let body = tokio::time::timeout(ANSWER, answer.into_body().collect_bytes()).await;
            let body = body.ok().and_then(|body| body.ok()).unwrap_or_default();
            let error = Status::read(code.as_u16(), &body).error(&self.path);
            self.api.metrics().failed(&error);
            return Err(error);
        }
        let binary = self.format.binary.filter(|_| protobuf::is_protobuf_response(&answer));
        let form = binary.map(|kinds| kinds.one);
        self.api.metrics().watches(&self.path, form.is_some());
        self.buffer.clear();
        let mut body = http_body_util::BodyStream::new(answer.into_body());
        loop {
            let frame = match tokio::time::timeout(SILENCE, body.next()).await {
                Ok(Some(Ok(frame))) => frame,
                // However it ended: it goes on from the last change that came whole.
                Ok(Some(Err(_)) | None) | Err(_) => return Ok(Ended::Watch),
            };
            let Ok(data) = frame.into_data() else { continue };
            self.buffer.extend_from_slice(&data);
            let mut changes = Vec::new();
            let read = self.changes(form, &mut changes);
            // Also before an error: the watch goes on after what was read.
            if !changes.is_empty() && self.tell.send(WatchUpdate::Changes(changes)).await.is_err() {
                return Ok(Ended::Listener);
            }
            read?;
            if self.buffer.len() > LONGEST_CHANGE {
                self.version.clear();
                return Ok(Ended::Watch);
            }
        }
    }

    /// Takes the changes out of the buffer that have come whole.
    fn changes(
        &mut self,
        form: Option<&'static MessageSchema>,
        changes: &mut Vec<Change<T>>,
    ) -> Result<()> {
        let split = if form.is_some() { event } else { line };
        let mut rest = self.buffer.as_slice();
        // Only the last one that has come says where the next watch goes on.
        let mut newest: Option<&[u8]> = None;
        let mut read = || {
            while let Some((change, after)) = split(&self.path, rest)? {
                let Some((kind, object)) = change else {
                    rest = after;
                    continue;
                };
                match kind {
                    "ERROR" => return Err(Status::read(500, object).error(&self.path)),
                    "ADDED" | "MODIFIED" => {
                        changes.extend(self.object(form, object)?.map(Change::Applied));
                    }
                    "DELETED" => changes.extend(self.object(form, object)?.map(Change::Deleted)),
                    // A bookmark only says how far the watch has come.
                    _ => {}
                }
                (rest, newest) = (after, Some(object));
            }
            Ok(())
        };
        let read = read();
        if let Some(object) = newest {
            let version: Versioned = decode_as(&self.path, form, object)?;
            self.version.clear();
            self.version.push_str(version.metadata.resource_version);
        }
        let taken = self.buffer.len() - rest.len();
        self.buffer.drain(..taken);
        read
    }

    /// Nothing where it cannot be read: one such object must not stop all others. What cannot be
    /// read in binary is asked for as JSON.
    fn object(&self, form: Option<&'static MessageSchema>, object: &[u8]) -> Result<Option<T>> {
        match (self.format.object)(&self.path, form, object) {
            Ok(object) => Ok(Some(object)),
            Err(error @ Error::Protobuf { .. }) => Err(error),
            Err(error) => {
                tracing::error!(%error, "a change is left out");
                Ok(None)
            }
        }
    }
}

/// The first change of what has come and the rest; a change may be an empty line.
type First<'a> = (Option<(&'a str, &'a [u8])>, &'a [u8]);

/// In binary.
fn event<'a>(path: &str, bytes: &'a [u8]) -> Result<Option<First<'a>>> {
    let Some((event, rest)) = protobuf::frame(bytes) else { return Ok(None) };
    let event = protobuf::event(event).map_err(|why| Error::binary(path, &why))?;
    Ok(Some((Some(event), rest)))
}

/// In JSON.
fn line<'a>(path: &str, bytes: &'a [u8]) -> Result<Option<First<'a>>> {
    let Some(end) = bytes.iter().position(|byte| *byte == b'\n') else { return Ok(None) };
    let (line, rest) = (&bytes[..end], &bytes[end + 1..]);
    let change = if line.is_empty() { None } else { Some(parts(path, line)?) };
    Ok(Some((change, rest)))
}

/// The kind of a change and its object. The server writes the kind first, so that a line need not
/// be read to its end to find the object.
fn parts<'a>(path: &str, line: &'a [u8]) -> Result<(&'a str, &'a [u8])> {
    const OBJECT: &[u8] = b"\",\"object\":";
    let usual = line.strip_prefix(b"{\"type\":\"").and_then(|rest| {
        let end = rest.iter().position(|byte| *byte == b'"')?;
        let object = rest[end..].strip_prefix(OBJECT)?.trim_ascii_end().strip_suffix(b"}")?;
        Some((str::from_utf8(&rest[..end]).ok()?, object))
    });
    if let Some(parts) = usual {
        return Ok(parts);
    }
    let line: Line<'a> = decode(path, line)?;
    Ok((line.kind, line.object.get().as_bytes()))
}

#[derive(Deserialize)]
struct Line<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    #[serde(borrow)]
    object: &'a RawValue,
}

#[derive(Deserialize)]
struct Versioned<'a> {
    #[serde(borrow)]
    metadata: Version<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Version<'a> {
    resource_version: &'a str,
}

#[cfg(test)]
mod tests;
