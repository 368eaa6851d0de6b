//! A terminal in a running job, over a WebSocket; `berth_api::wire::ShellAsk` says how.

use super::output::Source;
use super::pod_shell;
use crate::app::App;
use crate::http::answer::Failure;
use crate::http::asking::Asking;
use crate::http::extract::Path;
use crate::listen::UnderWay;
use axum::body::Bytes;
use axum::extract::ws::rejection::WebSocketUpgradeRejection;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::extract::{Extension, State};
use axum::response::Response;
use berth_api::access::Permission;
use berth_api::wire::{ShellAsk, ShellTell};
use berth_api::{Code, Problem};
use berth_kube::Exec;
use berth_model::JobId;
use berth_node::{Shell, Size};
use berth_service::jobs::find;
use berth_service::sessions::SHELL_PROTOCOL;
use berth_service::stream_right::{Needs, StreamRight};
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use std::os::unix::process::ExitStatusExt;
use std::time::Duration;
use tokio::sync::mpsc;

/// Whoever opens a terminal says what for, or has gone.
const OPENING: Duration = Duration::from_secs(30);
/// The largest message of a client: more than anybody types or pastes at once.
const MOST_BYTES: usize = 1 << 20;
/// How long the last message may take.
const FAREWELL: Duration = Duration::from_secs(5);

pub async fn shell(
    State(app): State<App>,
    Asking(caller): Asking,
    Path(wanted): Path<String>,
    Extension(under_way): Extension<UnderWay>,
    upgrade: Result<WebSocketUpgrade, WebSocketUpgradeRejection>,
) -> Result<Response, Failure> {
    let found = find::job(&app.service, &caller, &wanted, Permission::JobsShell).await?;
    let upgrade = upgrade.map_err(|why| Failure::new(Code::BadRequest, why.body_text()))?;
    let runs =
        app.service.engine.core().jobs.get(&found.id).is_some_and(|job| !job.leases.is_empty());
    if !runs {
        let detail = format!("job {} does not run, so there is nothing to look into", found.id);
        return Err(Failure::new(Code::WrongState, detail));
    }
    let source = Source::of(&app, found.first())?;
    if !under_way.is_protected() {
        // A terminal keeps its connection for as long as it likes.
        let detail = "you have as many requests, streams and terminals open as you may";
        return Err(Failure::new(Code::TooMany, detail));
    }
    // Opening one is a change in the world like any other: it is on record.
    let audit = caller.audit(format!("job {}", found.id), serde_json::json!({}));
    app.service.engine.write(berth_engine::Write::act(berth_engine::Act::Nothing, audit)).await?;
    let needs = Needs::OnJob(found.id, Permission::JobsShell);
    let right = StreamRight::hold(&app.service, &caller, needs);
    // The only one of a browser's protocols that is none: the other is the key of its session.
    let upgrade = upgrade.protocols([SHELL_PROTOCOL]);
    let upgrade = upgrade.max_message_size(MOST_BYTES).max_frame_size(MOST_BYTES);
    Ok(upgrade.on_upgrade(async move |socket| {
        talk(app, source, found.id, right, socket).await;
        // It counts for its user until here.
        drop(under_way);
    }))
}

async fn talk(app: App, source: Source, job: JobId, mut right: StreamRight, mut socket: WebSocket) {
    let talked = tokio::select! {
        biased;
        // The terminal goes with the future that holds it, and what runs in it is hung up.
        problem = right.lost() => Some(Err(problem)),
        talked = converse(&app, &source, job, &mut socket) => talked,
    };
    let tell = match talked {
        None => return,
        Some(Ok(code)) => ShellTell::Exit { code },
        Some(Err(problem)) => ShellTell::Problem { problem: *problem },
    };
    let text = serde_json::to_string(&tell).expect("it is plain data");
    // A client that does not read is not waited for.
    let _ = tokio::time::timeout(FAREWELL, async {
        let _ = socket.send(Message::Text(text.into())).await;
        let _ = socket.send(Message::Close(None)).await;
    })
    .await;
}

/// Opens a terminal and stays until it is over. Nothing: the client has gone.
async fn converse(
    app: &App,
    source: &Source,
    job: JobId,
    socket: &mut WebSocket,
) -> Option<Result<i32, Box<Problem>>> {
    match begin(app, source, job, socket).await? {
        Ok(Opened::Here(shell)) => bridge(socket, shell).await.map(Ok),
        Ok(Opened::Pod(exec)) => pod_shell::bridge(socket, exec).await,
        Err(problem) => Some(Err(problem)),
    }
}

/// A terminal, here or in a pod.
enum Opened {
    Here(Shell),
    Pod(Box<Exec>),
}

/// The terminal that the first message asks for; nothing if there is none.
async fn begin(
    app: &App,
    source: &Source,
    job: JobId,
    socket: &mut WebSocket,
) -> Option<Result<Opened, Box<Problem>>> {
    let message = tokio::time::timeout(OPENING, socket.recv()).await.ok()??.ok()?;
    let Message::Text(text) = message else { return None };
    let bad = |code, detail: String| Some(Err(Box::new(Problem::new(code, detail))));
    let ask = serde_json::from_str::<ShellAsk>(&text);
    let Ok(ShellAsk::Open { task, command, term, rows, columns }) = ask else {
        return bad(Code::BadRequest, "the first message has to open a terminal".to_owned());
    };
    let lease = {
        let core = app.service.engine.core();
        let mut leases = core.jobs.get(&job)?.leases.keys().copied();
        leases.find(|lease| lease.task == task.unwrap_or(0))
    };
    let Some(lease) = lease else {
        return bad(Code::WrongState, format!("that task of job {job} does not run"));
    };
    let size = Size { rows, columns };
    if let (Some(pod), Some(pods)) = (source.pod(lease), &app.pods) {
        let opened = pod_shell::open(pods, &pod, &command, &term, size).await;
        return match opened {
            Ok(exec) => Some(Ok(Opened::Pod(Box::new(exec)))),
            Err(why) => bad(Code::WrongState, why.to_string()),
        };
    }
    let Some(driver) = app.machine.as_ref().map(|machine| machine.driver.clone()) else {
        return bad(Code::Internal, "the job runs nowhere that is known".to_owned());
    };
    let opened = tokio::task::spawn_blocking(move || driver.shell(lease, &command, &term, size));
    match opened.await {
        Ok(Ok(shell)) => Some(Ok(Opened::Here(shell))),
        Ok(Err(why)) => bad(Code::WrongState, why.to_string()),
        Err(why) => bad(Code::Internal, why.to_string()),
    }
}

/// Carries bytes both ways until the shell ends: then its exit code. Nothing if the client went;
/// the terminal hangs up then.
async fn bridge(socket: &mut WebSocket, mut shell: Shell) -> Option<i32> {
    let (shown, mut to_show) = mpsc::channel::<Vec<u8>>(64);
    let (typed, mut to_type) = mpsc::channel::<Bytes>(64);
    let (mut from, mut into) = ends(&shell).ok()?;
    // A program that does not read lets nobody write: that must not hold up anything else here.
    let typing = std::thread::Builder::new().spawn(move || {
        while let Some(bytes) = to_type.blocking_recv() {
            if into.write_all(&bytes).is_err() {
                return;
            }
        }
    });
    typing.ok()?;
    let showing = std::thread::Builder::new().spawn(move || {
        let mut buffer = [0; 8 << 10];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            if shown.blocking_send(buffer[..count].to_vec()).is_err() {
                return;
            }
        }
    });
    showing.ok()?;
    let mut waiting = None;
    loop {
        tokio::select! {
            bytes = to_show.recv() => match bytes {
                Some(bytes) => socket.send(Message::Binary(bytes.into())).await.ok()?,
                None => break,
            },
            room = typed.reserve(), if waiting.is_some() => match (room, waiting.take()) {
                (Ok(room), Some(bytes)) => room.send(bytes),
                _ => break,
            },
            message = socket.recv(), if waiting.is_none() => match message?.ok()? {
                Message::Binary(bytes) => waiting = Some(bytes),
                Message::Text(text) => {
                    if let Ok(ShellAsk::Resize { rows, columns }) = serde_json::from_str(&text) {
                        let _ = shell.resize(Size { rows, columns });
                    }
                }
                Message::Close(_) => return None,
                Message::Ping(_) | Message::Pong(_) => {}
            },
        }
    }
    loop {
        match shell.try_wait() {
            Ok(Some(status)) => {
                let signal = status.signal().map(|signal| 128 + signal);
                return status.code().or(signal);
            }
            Ok(None) => tokio::time::sleep(Duration::from_millis(20)).await,
            Err(_) => return None,
        }
    }
}

fn ends(shell: &Shell) -> std::io::Result<(File, File)> {
    let fd = shell.as_fd();
    Ok((File::from(fd.try_clone_to_owned()?), File::from(fd.try_clone_to_owned()?)))
}
