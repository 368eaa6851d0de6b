//! What happens, as it happens: server-sent events.

use super::answer::Failure;
use super::asking::{Asking, bearer};
use super::extract::Query;
use crate::app::App;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::response::sse::{Event, KeepAlive, Sse};
use axum::routing::{MethodFilter, MethodRouter, on};
use berth_api::access::Permission;
use berth_api::wire::{self, EventKind};
use berth_service::caller::{self, Caller};
use futures_util::Stream;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{broadcast, mpsc};
use tokio_stream::wrappers::ReceiverStream;

const CHECK: Duration = Duration::from_secs(2);

pub(super) fn handler(id: &str, filter: MethodFilter) -> Option<MethodRouter<App>> {
    (id == "stream_events").then(|| on(filter, stream))
}

async fn stream(
    State(app): State<App>,
    Asking(caller): Asking,
    headers: HeaderMap,
    Query(query): Query<wire::EventQuery>,
) -> Result<Sse<impl Stream<Item = Result<Event, Infallible>>>, Failure> {
    let token = bearer(&headers).unwrap_or_default().to_owned();
    let (told, events) = mpsc::channel(256);
    // Whoever comes back may have missed something.
    let returns = query.after.is_some() || headers.contains_key("last-event-id");
    let news = app.service.engine.subscribe();
    tokio::spawn(tell(app, caller, token, query, news, told, returns));
    Ok(Sse::new(ReceiverStream::new(events)).keep_alive(KeepAlive::default()))
}

async fn tell(
    app: App,
    caller: Caller,
    token: String,
    query: wire::EventQuery,
    mut news: broadcast::Receiver<Arc<wire::Event>>,
    told: mpsc::Sender<Result<Event, Infallible>>,
    returns: bool,
) {
    let mut check = tokio::time::interval(CHECK);
    if returns && told.send(Ok(gap())).await.is_err() {
        return;
    }
    loop {
        let sent = tokio::select! {
            event = news.recv() => match event {
                Ok(event) if wanted(&caller, &query, &event.kind) => {
                    told.send(Ok(written(&event))).await
                }
                Ok(_) => continue,
                Err(broadcast::error::RecvError::Lagged(_)) => told.send(Ok(gap())).await,
                Err(broadcast::error::RecvError::Closed) => return,
            },
            // A token may end while it listens.
            _ = check.tick() => match caller::valid(&app.service.store, &token).await {
                Ok(_) => continue,
                Err(_) => return,
            },
            () = told.closed() => return,
        };
        if sent.is_err() {
            return;
        }
    }
}

fn wanted(caller: &Caller, query: &wire::EventQuery, kind: &EventKind) -> bool {
    let (word, team, job) = match kind {
        EventKind::Job { team, id, .. } => ("job", Some(team.as_str()), Some(id.to_string())),
        EventKind::Alert { team, .. } => ("alert", team.as_deref(), None),
        EventKind::Log { id, .. } => ("log", None, Some(id.to_string())),
        EventKind::Node { .. } => ("node", None, None),
        EventKind::Queue { queue } => ("queue", Some(queue.as_str()), None),
        EventKind::Gap => ("gap", None, None),
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
