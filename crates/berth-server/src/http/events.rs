//! What happens, as it happens: server-sent events.

use super::answer::Failure;
use super::asking::Asking;
use super::extract::Query;
use super::limits;
use super::streams::while_allowed;
use crate::app::App;
use axum::extract::State;
use axum::http::{HeaderMap, HeaderName};
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::routing::{MethodFilter, MethodRouter, on};
use berth_api::Problem;
use berth_api::access::Permission;
use berth_api::wire::{self, EventKind};
use berth_service::Caller;
use berth_service::jobs::find;
use berth_service::stream_right::{Needs, StreamRight};
use futures_util::{Stream, stream};
use std::convert::Infallible;
use std::sync::Arc;
use tokio::sync::broadcast;

pub(super) fn handler(id: &str, filter: MethodFilter) -> Option<MethodRouter<App>> {
    (id == "stream_events").then(|| on(filter, listen))
}

async fn listen(
    State(app): State<App>,
    Asking(caller): Asking,
    headers: HeaderMap,
    Query(query): Query<wire::EventQuery>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Failure> {
    // Whoever comes back may have missed something.
    let last = limits::text_of(&headers, &HeaderName::from_static("last-event-id"))?;
    let returns = query.after.is_some() || last.is_some();
    let news = app.service.engine.subscribe();
    let needs = needs(&app, &caller, &query).await;
    let right = StreamRight::hold(&app.service, &caller, needs);
    let telling = Telling { right: right.clone(), query, news, returns };
    let events = stream::unfold(telling, async |mut telling| {
        let event = telling.next().await?;
        Some((Ok(event), telling))
    });
    Ok(Sse::new(while_allowed(events, right, farewell)).keep_alive(KeepAlive::default()))
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

/// Nothing is put by for a client that reads slowly: it learns that there is a gap, and gets each
/// event as far as its rights go in the moment it is sent.
struct Telling {
    right: StreamRight,
    query: wire::EventQuery,
    news: broadcast::Receiver<Arc<wire::Event>>,
    returns: bool,
}

impl Telling {
    async fn next(&mut self) -> Option<Event> {
        if std::mem::take(&mut self.returns) {
            return Some(gap());
        }
        loop {
            match self.news.recv().await {
                Ok(event) => {
                    // Without rights nothing is sent; the stream ends by itself then.
                    let caller = self.right.caller();
                    if caller.is_some_and(|caller| wanted(&caller, &self.query, &event.kind)) {
                        return Some(written(&event));
                    }
                }
                Err(broadcast::error::RecvError::Lagged(_)) => return Some(gap()),
                Err(broadcast::error::RecvError::Closed) => return None,
            }
        }
    }
}

/// The last event for whoever may not listen on.
fn farewell(problem: Box<Problem>) -> Result<Event, Infallible> {
    let at = wire::At(berth_engine::clock::now());
    Ok(written(&wire::Event { seq: 0, at, kind: EventKind::End { problem } }))
}

fn wanted(caller: &Caller, query: &wire::EventQuery, kind: &EventKind) -> bool {
    let (word, team, job) = match kind {
        EventKind::Job { team, id, .. } => ("job", Some(team.as_str()), Some(id.to_string())),
        EventKind::Alert { team, .. } => ("alert", team.as_deref(), None),
        EventKind::Log { id, .. } => ("log", None, Some(id.to_string())),
        EventKind::Node { .. } => ("node", None, None),
        EventKind::Queue { queue } => ("queue", Some(queue.as_str()), None),
        EventKind::Gap => ("gap", None, None),
        EventKind::End { .. } => ("end", None, None),
    };
    let sees = match kind {
        EventKind::Job { .. } | EventKind::Alert { .. } => {
            caller.may(Permission::JobsRead, team, None)
        }
        _ => true,
    };
    let kinds = query.kind.as_deref().unwrap_or_default();
    let listed = |all: &str| all.is_empty() || all.split(',').any(|one| one.trim() == word);
    let same =
        |wish: &Option<String>, is: Option<&str>| wish.as_deref().is_none_or(|w| is == Some(w));
    sees && listed(kinds) && same(&query.team, team) && same(&query.job, job.as_deref())
}

fn written(event: &wire::Event) -> Event {
    let data = serde_json::to_string(event).expect("events are plain data");
    Event::default().id(event.seq.to_string()).data(data)
}

fn gap() -> Event {
    let at = wire::At(berth_engine::clock::now());
    written(&wire::Event { seq: 0, at, kind: EventKind::Gap })
}
