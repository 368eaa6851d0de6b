//! What a job printed, as one JSON value on each line.

use super::log_cut::Cut;
use super::output::Source;
use crate::app::App;
use crate::http::answer::Failure;
use crate::http::asking::Asking;
use crate::http::extract::{Path, Query};
use crate::http::streams::while_allowed;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse, Response};
use berth_api::access::Permission;
use berth_api::{Code, Problem, wire};
use berth_model::LeaseId;
use berth_node::{LogFollower, LogReader};
use berth_service::Fault;
use berth_service::jobs::find;
use berth_service::stream_right::{Needs, StreamRight};
use berth_store::LeaseRow;
use std::convert::Infallible;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

/// Bytes of a log in one chunk.
const CHUNK: usize = 64 << 10;
/// How often a log is read again while a client follows it.
const LOOK: Duration = Duration::from_millis(200);

pub async fn logs(
    State(app): State<App>,
    Asking(caller): Asking,
    Path(wanted): Path<String>,
    Query(query): Query<wire::LogQuery>,
) -> Result<Response, Failure> {
    let found = find::job(&app.service, &caller, &wanted, Permission::LogsRead).await?;
    if found.is_array() {
        let next = format!("name one, such as `berth logs {}`", found.first().id);
        let detail = format!("job {} is an array; each element has a log of its own", found.id);
        return Err(Fault::new(Code::WrongState, detail).next(next).into());
    }
    let source = Source::of(&app, found.first())?;
    source.must_be_kept(&app, found.first(), &query).await?;
    let id = found.id;
    let right = StreamRight::hold(
        &app.service,
        &caller,
        Needs::OnJob(found.first().id, Permission::LogsRead),
    );
    let (lines, stream) = mpsc::channel(16);
    let teller = Teller { app, source, query, lines, job: id };
    tokio::spawn(teller.tell());
    let body = Body::from_stream(while_allowed(ReceiverStream::new(stream), right, farewell));
    Ok(([(CONTENT_TYPE, "application/x-ndjson")], body).into_response())
}

/// The last chunk of a log whose reader may not read on.
fn farewell(problem: Box<Problem>) -> Result<Bytes, Infallible> {
    let chunk = wire::LogChunk {
        attempt: 0,
        task: 0,
        rank: 0,
        stream: wire::LogStream::Berth,
        position: 0,
        at: None,
        text: format!("the log is not sent any further: {problem}\n"),
        dropped: 0,
        end: false,
        problem: Some(problem),
    };
    Ok(line(&chunk))
}

fn line(chunk: &wire::LogChunk) -> Bytes {
    let mut line = serde_json::to_vec(chunk).expect("chunks are plain data");
    line.push(b'\n');
    Bytes::from(line)
}

struct Teller {
    app: App,
    source: Source,
    query: wire::LogQuery,
    lines: mpsc::Sender<Result<Bytes, Infallible>>,
    job: berth_model::JobId,
}

impl Teller {
    /// Sends one attempt after the other to a client that follows, and one of them otherwise.
    async fn tell(self) {
        let mut told: Option<LeaseId> = None;
        loop {
            let Some(lease) = self.lease(told).await else {
                if !self.query.follow || self.lines.is_closed() || self.has_ended().await {
                    return;
                }
                tokio::time::sleep(LOOK).await;
                continue;
            };
            if self.tell_lease(lease).await.is_none() {
                return;
            }
            told = Some(lease);
            if !self.query.follow || self.query.attempt.is_some() {
                return;
            }
        }
    }

    /// The lease to tell next: the attempt that was asked for, the last one, or one that came
    /// after the one told.
    async fn lease(&self, told: Option<LeaseId>) -> Option<LeaseId> {
        let leases = self.app.service.store.leases_of(self.job).await.ok()?;
        let task = self.query.task.unwrap_or(0);
        // One that the machine could not begin has printed nothing.
        let printed = |row: &&LeaseRow| row.started.is_some() || row.closed.is_none();
        let last = leases.iter().filter(printed).map(|row| row.id).filter(|id| id.task == task);
        let last = last.max_by_key(|id| id.attempt);
        let mut of_task = leases.iter().map(|row| row.id).filter(|id| id.task == task);
        match (self.query.attempt, told) {
            (Some(attempt), _) => of_task.find(|id| id.attempt == attempt),
            (None, None) => last.or_else(|| of_task.max_by_key(|id| id.attempt)),
            (None, Some(told)) => of_task.find(|id| id.attempt > told.attempt),
        }
    }

    async fn has_ended(&self) -> bool {
        let row = self.app.service.store.job(self.job).await;
        row.is_ok_and(|row| row.is_none_or(|row| row.state.is_final()))
    }

    /// Nothing: whoever listened has gone, or may not listen any more.
    async fn tell_lease(&self, lease: LeaseId) -> Option<()> {
        let rank = self.query.rank.unwrap_or(0);
        let Some(mut follower) = self.open(lease, rank).await else {
            return self.is_without_output(lease).then_some(());
        };
        let mut cut = Cut::new(self.query.search.clone(), self.query.lines);
        loop {
            // Asked before reading: what is written until then is read below.
            let ended = self.is_over(lease);
            let (chunk, back) = tokio::task::spawn_blocking(move || {
                let from = follower.position();
                let chunk = follower.read_more(CHUNK).ok().map(|chunk| (from, chunk));
                (chunk, follower)
            })
            .await
            .ok()?;
            follower = back;
            let (from, chunk) = chunk?;
            if !chunk.bytes.is_empty() {
                let dropped = chunk.position.saturating_sub(from);
                let at = self.time_of(lease, rank, chunk.position).await;
                let pieces = cut.take(chunk.position, &chunk.bytes);
                if pieces.is_empty() && dropped > 0 {
                    self.send(lease, rank, &[], at, (chunk.position, dropped), false).await?;
                }
                for (nth, (position, bytes)) in pieces.iter().enumerate() {
                    let dropped = if nth == 0 { dropped } else { 0 };
                    self.send(lease, rank, bytes, at, (*position, dropped), false).await?;
                }
                if cut.is_over() {
                    return Some(());
                }
                continue;
            }
            if ended || !self.query.follow {
                let at = self.time_of(lease, rank, chunk.position).await;
                for (position, bytes) in cut.rest() {
                    self.send(lease, rank, &bytes, at, (position, 0), false).await?;
                }
                return self.send(lease, rank, &[], at, (chunk.position, 0), ended).await;
            }
            if self.lines.is_closed() {
                return None;
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Whether the machine could not begin with it: who follows hears of the next attempt.
    fn is_without_output(&self, lease: LeaseId) -> bool {
        let machine = self.app.machine.as_ref();
        let begun = machine.is_none_or(|machine| machine.driver.has_output(lease));
        !begun && !self.is_live(lease) && !self.lines.is_closed()
    }

    fn is_over(&self, lease: LeaseId) -> bool {
        !self.is_live(lease) && self.source.is_whole(&self.app, lease)
    }

    fn is_live(&self, lease: LeaseId) -> bool {
        let core = self.app.service.engine.core();
        core.jobs.get(&lease.job).is_some_and(|job| job.leases.contains_key(&lease))
    }

    /// The log from where it was asked for. One that is not there yet is waited for.
    async fn open(&self, lease: LeaseId, rank: u32) -> Option<LogFollower> {
        loop {
            self.source.fetch(&self.app, lease, self.is_live(lease), self.query.follow).await;
            let ended = self.is_over(lease);
            let (app, source, query) = (self.app.clone(), self.source.clone(), self.query.clone());
            let opened = tokio::task::spawn_blocking(move || {
                let reader = source.read(&app, lease, rank)?;
                let from = start(&reader, &query)?;
                Some(reader.follow(from))
            });
            if let Some(follower) = opened.await.ok()? {
                return Some(follower);
            }
            if ended || !self.query.follow || self.lines.is_closed() {
                return None;
            }
            tokio::time::sleep(LOOK).await;
        }
    }

    async fn send(
        &self,
        lease: LeaseId,
        rank: u32,
        bytes: &[u8],
        at: Option<berth_model::Time>,
        (position, dropped): (u64, u64),
        end: bool,
    ) -> Option<()> {
        let text = String::from_utf8_lossy(bytes).into_owned();
        let chunk = wire::LogChunk {
            attempt: lease.attempt,
            task: lease.task,
            rank,
            stream: wire::LogStream::Output,
            position,
            at: at.map(wire::At),
            text,
            dropped,
            end,
            problem: None,
        };
        self.lines.send(Ok(line(&chunk))).await.ok()
    }

    async fn time_of(&self, lease: LeaseId, rank: u32, at: u64) -> Option<berth_model::Time> {
        let (app, source) = (self.app.clone(), self.source.clone());
        let found = tokio::task::spawn_blocking(move || {
            source.read(&app, lease, rank)?.time_of(at).ok().flatten()
        });
        found.await.ok().flatten()
    }
}

fn start(reader: &LogReader, query: &wire::LogQuery) -> Option<u64> {
    let line = query.from_line.map(|line| reader.line_start(line)).transpose().ok()?;
    if let Some(from) = line.or(query.from) {
        let before = query.before.map(|lines| reader.back(from, lines as usize));
        return Some(before.transpose().ok()?.unwrap_or(from));
    }
    let since = query.since.map(|at| reader.since(at.0)).transpose().ok()?;
    let tail = query.tail.map(|lines| reader.tail(lines as usize)).transpose().ok()?;
    Some(since.unwrap_or(0).max(tail.unwrap_or(0)))
}
