//! A terminal in a pod: what is typed and printed passes through the API server.

use axum::extract::ws::{Message, WebSocket};
use berth_api::wire::ShellAsk;
use berth_api::{Code, Problem};
use berth_cluster::{CONTAINER, ManagedJobs};
use berth_kube::{Exec, ExecEvent};
use berth_model::PodRef;
use berth_node::Size;
use std::time::Duration;

/// The shell of whoever names no command: bash where there is one.
const SHELL: &str = "command -v bash >/dev/null 2>&1 && exec bash -l; exec sh";

/// How long what was printed last is waited for.
const LAST_WORDS: Duration = Duration::from_secs(2);

pub async fn open(
    pods: &ManagedJobs,
    pod: &PodRef,
    command: &[String],
    term: &str,
    size: Size,
) -> berth_kube::Result<Exec> {
    let mut words = vec!["env".to_owned(), format!("TERM={term}")];
    match command {
        [] => words.extend(["sh", "-c", SHELL].map(str::to_owned)),
        command => words.extend(command.iter().cloned()),
    }
    let mut exec = pods.api.exec(pod, CONTAINER, &words).await?;
    exec.resize(size.rows, size.columns).await;
    Ok(exec)
}

/// Carries bytes both ways until the program ends: then its exit code. Nothing if the client went;
/// the terminal hangs up then.
pub async fn bridge(
    socket: &mut WebSocket,
    mut exec: Box<Exec>,
) -> Option<Result<i32, Box<Problem>>> {
    let failed = |why: String| Some(Err(Box::new(Problem::new(Code::WrongState, why))));
    loop {
        tokio::select! {
            said = exec.next() => match said {
                Some(ExecEvent::Output(bytes)) => {
                    socket.send(Message::Binary(bytes.into())).await.ok()?;
                }
                Some(ExecEvent::Exited(code)) => {
                    drain(socket, &mut exec).await;
                    return Some(Ok(code));
                }
                Some(ExecEvent::Failed(why)) => return failed(why),
                None => return failed("the pod has gone, or its node has".to_owned()),
            },
            message = socket.recv() => match message?.ok()? {
                Message::Binary(typed) => {
                    exec.write_stdin(&typed).await;
                }
                Message::Text(text) => {
                    if let Ok(ShellAsk::Resize { rows, columns }) = serde_json::from_str(&text) {
                        exec.resize(rows, columns).await;
                    }
                }
                Message::Close(_) => return None,
                Message::Ping(_) | Message::Pong(_) => {}
            },
        }
    }
}

/// What was printed last may come after the exit code: they travel on channels of their own.
async fn drain(socket: &mut WebSocket, exec: &mut Exec) {
    while let Ok(Some(said)) = tokio::time::timeout(LAST_WORDS, exec.next()).await {
        if let ExecEvent::Output(bytes) = said
            && socket.send(Message::Binary(bytes.into())).await.is_err()
        {
            return;
        }
    }
}
