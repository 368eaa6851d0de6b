//! A terminal in a running job, over a WebSocket.
//!
//! Binary messages are what is typed and what is shown. Text messages are JSON: `{"rows": 40,
//! "columns": 120}` from the client when its window changes, `{"exit": 0}` from the server at the
//! end.

use super::find;
use crate::app::App;
use crate::http::answer::Fault;
use crate::http::auth::Caller;
use crate::http::extract::{Path, Query};
use axum::extract::State;
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::response::Response;
use berth_api::Code;
use berth_api::access::Permission;
use berth_model::LeaseId;
use berth_node::{Shell, Size};
use serde::Deserialize;
use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::AsFd;
use tokio::sync::mpsc;

/// Which terminal.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Wanted {
    /// The task of a job on several nodes.
    task: u32,
    rows: Option<u16>,
    columns: Option<u16>,
    term: Option<String>,
    /// Words of a command, one after the other; the user's shell where left out.
    command: Option<String>,
}

#[derive(Deserialize)]
struct Resized {
    rows: u16,
    columns: u16,
}

pub async fn shell(
    State(app): State<App>,
    caller: Caller,
    Path(wanted): Path<String>,
    Query(how): Query<Wanted>,
    upgrade: Result<WebSocketUpgrade, axum::extract::ws::rejection::WebSocketUpgradeRejection>,
) -> Result<Response, Fault> {
    let found = find::job(&app, &caller, &wanted, Permission::JobsShell).await?;
    let upgrade = upgrade.map_err(|why| Fault::new(Code::BadRequest, why.body_text()))?;
    let lease = {
        let core = app.engine.core();
        let live = core.jobs.get(&found.id);
        let mut leases = live.into_iter().flat_map(|job| job.leases.keys().copied());
        leases.find(|lease| lease.task == how.task)
    };
    let Some(lease) = lease else {
        let detail = format!("job {} does not run, so there is nothing to look into", found.id);
        return Err(Fault::new(Code::WrongState, detail));
    };
    let size = Size { rows: how.rows.unwrap_or(24), columns: how.columns.unwrap_or(80) };
    let shell = open(&app, lease, how, size).await?;
    // Opening one is a change in the world like any other: it is on record.
    let audit = caller.audit(format!("job {}", found.id), serde_json::json!({}));
    app.engine.write(crate::engine::Write::act(crate::engine::Act::Nothing, audit)).await?;
    Ok(upgrade.on_upgrade(move |socket| bridge(socket, shell)))
}

async fn open(app: &App, lease: LeaseId, how: Wanted, size: Size) -> Result<Shell, Fault> {
    let driver = app.driver.clone();
    let opened = tokio::task::spawn_blocking(move || {
        let words: Vec<String> = match how.command {
            None => Vec::new(),
            Some(line) => vec!["bash".to_owned(), "-c".to_owned(), line],
        };
        driver.shell(lease, &words, how.term.as_deref().unwrap_or("xterm-256color"), size)
    });
    let opened = opened.await.map_err(|why| Fault::new(Code::Internal, why.to_string()))?;
    opened.map_err(|why| Fault::new(Code::WrongState, why.to_string()))
}

/// Carries bytes both ways until the shell ends or the client goes; then the terminal hangs up.
async fn bridge(mut socket: WebSocket, mut shell: Shell) {
    let (shown, mut to_show) = mpsc::channel::<Vec<u8>>(64);
    let Ok(ends) = ends(&shell) else { return };
    let (mut from, mut into) = ends;
    std::thread::spawn(move || {
        let mut buffer = [0; 8 << 10];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            if shown.blocking_send(buffer[..count].to_vec()).is_err() {
                return;
            }
        }
    });
    loop {
        tokio::select! {
            bytes = to_show.recv() => match bytes {
                Some(bytes) => if socket.send(Message::Binary(bytes.into())).await.is_err() {
                    return;
                },
                None => break,
            },
            message = socket.recv() => match message {
                Some(Ok(Message::Binary(typed))) => if into.write_all(&typed).is_err() {
                    break;
                },
                Some(Ok(Message::Text(text))) => {
                    if let Ok(Resized { rows, columns }) = serde_json::from_str(&text) {
                        let _ = shell.resize(Size { rows, columns });
                    }
                }
                Some(Ok(Message::Close(_))) | Some(Err(_)) | None => return,
                Some(Ok(_)) => {}
            },
        }
    }
    let code = loop {
        match shell.try_wait() {
            Ok(Some(status)) => break status.code(),
            Ok(None) => tokio::time::sleep(std::time::Duration::from_millis(20)).await,
            Err(_) => break None,
        }
    };
    let end = serde_json::json!({ "exit": code }).to_string();
    let _ = socket.send(Message::Text(end.into())).await;
    let _ = socket.send(Message::Close(None)).await;
}

fn ends(shell: &Shell) -> std::io::Result<(File, File)> {
    let fd = shell.as_fd();
    Ok((File::from(fd.try_clone_to_owned()?), File::from(fd.try_clone_to_owned()?)))
}
