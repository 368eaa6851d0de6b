//! What happens, as it happens: server-sent events.

use super::answer::Failure;
use super::asking::Asking;
use super::extract::Query;
use super::limits;
use super::streams::while_allowed;
use crate::app::App;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName};
use axum::response::{IntoResponse, Response};
use axum::routing::{MethodFilter, MethodRouter, on};
use berth_api::Problem;
use berth_api::access::Permission;
use berth_api::wire::{self, EventKind};
use berth_engine::{Heard, Listener};
use berth_service::Caller;
use berth_service::jobs::find;
use berth_service::stream_right::{Needs, StreamRight};
use futures_util::stream;
use std::convert::Infallible;
use std::time::Duration;

pub(super) fn handler(id: &str, filter: MethodFilter) -> Option<MethodRouter<App>> {
    (id == "stream_events").then(|| on(filter, listen))
}

/// Nothing to say for so long is said, so that nobody between takes the connection for dead.
const KEEP_ALIVE: Duration = Duration::from_secs(15);

/// Frames are written here and not by axum: it would write each event anew for everybody.
async fn listen(
    State(app): State<App>,
    Asking(caller): Asking,
    headers: HeaderMap,
    Query(query): Query<wire::EventQuery>,
) -> Result<Response, Failure> {
    let last = limits::text_of(&headers, &HeaderName::from_static("last-event-id"))?;
    // A number that is none of ours is one that nothing is known of: there may be a gap.
    let last = last.map(|last| last.trim().parse().unwrap_or(0));
    let (heard, until) = match query.past {
        true => {
            let (heard, newest) = app.service.engine.listen_to_kept();
            (heard, Some(newest))
        }
        false => (app.service.engine.listen(last.or(query.after)), None),
    };
    let needs = needs(&app, &caller, &query).await;
    let right = StreamRight::hold(&app.service, &caller, needs);
    let begin = Some(begin(heard.last()));
    let telling = Telling { right: right.clone(), wish: Wish::of(query), heard, until, begin };
    let events = stream::unfold(telling, async |mut telling| {
        let frame = telling.next().await?;
        Some((Ok::<_, Infallible>(frame), telling))
    });
    let body = Body::from_stream(while_allowed(events, right, farewell));
    let fields = [(CONTENT_TYPE, "text/event-stream"), (CACHE_CONTROL, "no-cache")];
    Ok((fields, body).into_response())
}

/// Who asks for one job or team that they may see has nothing to listen to without that right.
async fn needs(app: &App, caller: &Caller, query: &wire::EventQuery) -> Needs {
    let reads = Permission::JobsRead;
    if let Some(job) = &query.job
        && let Ok(found) = find::job(&app.service, caller, job, reads).await
    {
        return Needs::OnJob(found.id, reads);
    }
    match &query.team {
        Some(team) if caller.may(reads, Some(team), None) => Needs::InTeam(team.clone(), reads),
        _ => Needs::Token,
    }
}

struct Telling {
    right: StreamRight,
    wish: Wish,
    heard: Listener,
    /// The stream ends after this event.
    until: Option<u64>,
    begin: Option<Bytes>,
}

impl Telling {
    /// The next frame. Whoever reads slowly gets each event as far as its rights go in the moment it
    /// is sent.
    async fn next(&mut self) -> Option<Bytes> {
        if let Some(begin) = self.begin.take() {
            return Some(begin);
        }
        loop {
            if self.until.is_some_and(|until| self.heard.last() >= until) {
                return None;
            }
            let Ok(heard) = tokio::time::timeout(KEEP_ALIVE, self.heard.next()).await else {
                return Some(Bytes::from_static(b":\n\n"));
            };
            match heard? {
                Heard::Gap(newest) => return Some(gap(newest)),
                Heard::Event(told) => {
                    // Without rights nothing is sent; the stream ends by itself then.
                    let caller = self.right.caller();
                    if caller.is_some_and(|caller| self.wish.wants(&caller, &told.event.kind)) {
                        return Some(frame(told.event.seq, &told.json));
                    }
                }
            }
        }
    }
}

/// What is asked for, read once.
struct Wish {
    kinds: Vec<String>,
    job: Option<String>,
    team: Option<String>,
}

impl Wish {
    fn of(query: wire::EventQuery) -> Wish {
        let kinds = query.kind.unwrap_or_default();
        let kinds = kinds.split(',').map(str::trim).filter(|kind| !kind.is_empty());
        let kinds = kinds.map(str::to_owned).collect();
        Wish { kinds, job: query.job, team: query.team }
    }

    fn wants(&self, caller: &Caller, kind: &EventKind) -> bool {
        let word = match kind {
            EventKind::Job { .. } => "job",
            EventKind::Alert { .. } => "alert",
            EventKind::Log { .. } => "log",
            EventKind::Node { .. } => "node",
            EventKind::Queue { .. } => "queue",
            EventKind::Gap => "gap",
            EventKind::End { .. } => "end",
        };
        if !self.kinds.is_empty() && !self.kinds.iter().any(|one| one == word) {
            return false;
        }
        let team = match kind {
            EventKind::Job { team, .. } => Some(team.as_str()),
            EventKind::Alert { team, .. } => team.as_deref(),
            EventKind::Queue { queue } => Some(queue.as_str()),
            EventKind::Node { .. } | EventKind::Log { .. } => None,
            EventKind::Gap | EventKind::End { .. } => None,
        };
        if self.team.as_deref().is_some_and(|wish| team != Some(wish)) {
            return false;
        }
        if let Some(wish) = &self.job {
            let (EventKind::Job { id, .. } | EventKind::Log { id, .. }) = kind else {
                return false;
            };
            let id = id.to_string();
            // An array stands for its elements.
            let array = id.split_once('_').map(|(array, _)| array);
            if id != *wish && array != Some(wish.as_str()) {
                return false;
            }
        }
        match kind {
            EventKind::Job { .. } | EventKind::Alert { .. } => {
                caller.may(Permission::JobsRead, team, None)
            }
            EventKind::Node { .. } | EventKind::Queue { .. } | EventKind::Log { .. } => true,
            EventKind::Gap | EventKind::End { .. } => true,
        }
    }
}

/// Where the stream begins, for whoever loses it before the first event: a frame without data is no
/// event, and its id counts.
fn begin(last: u64) -> Bytes {
    Bytes::from(format!("id: {last}\n\n"))
}

fn frame(seq: u64, json: &str) -> Bytes {
    Bytes::from(format!("id: {seq}\ndata: {json}\n\n"))
}

fn written(seq: u64, kind: EventKind) -> Bytes {
    let at = wire::At(berth_engine::clock::now());
    let json = serde_json::to_string(&wire::Event { seq, at, kind });
    frame(seq, &json.expect("events are plain data"))
}

/// The last event for whoever may not listen on.
fn farewell(problem: Box<Problem>) -> Result<Bytes, Infallible> {
    Ok(written(0, EventKind::End { problem }))
}

fn gap(newest: u64) -> Bytes {
    written(newest, EventKind::Gap)
}
