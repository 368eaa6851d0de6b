//! Starting a helper process, and not waiting for it for ever.

use crate::helper::{Order, Target};
use crate::measured::{Measured, Played};
use crate::verdict::{Check, judge};
use std::ffi::OsString;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::time::{Duration, Instant};

/// How the binary is started so that it comes to [`helper`](crate::helper).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Helper {
    pub exe: PathBuf,
    pub args: Vec<OsString>,
}

/// What is checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Subject {
    /// A GPU by its UUID.
    Gpu(String),
    /// A declared GPU, of which a file says what a check would tell.
    Played(Played),
}

/// An answer is short.
const LONGEST_ANSWER: u64 = 64 << 10;
/// A helper that was killed is gone at once, unless the driver holds it.
const KILL_WAIT: Duration = Duration::from_secs(2);
const LOOK_EVERY: Duration = Duration::from_millis(10);

enum News {
    Step(String),
    Answer(Vec<u8>),
}

/// Checks a GPU of that model. This blocks, for about `limit` at the most; `step` hears what the
/// helper does.
pub fn check(
    helper: &Helper,
    subject: Subject,
    model: &str,
    limit: Duration,
    mut step: impl FnMut(&str),
) -> Check {
    let begun = Instant::now();
    let mut child = match start(helper, subject, limit) {
        Ok(child) => child,
        Err(error) => return Check::failed(format!("the check cannot be started: {error}")),
    };
    let news = listen(&mut child);
    let mut last = String::from("starting");
    let answer = wait(&news, begun + limit, |doing| {
        step(&doing);
        last = doing;
    });
    // A helper that has answered may still hang in the driver when it lets go of the GPU.
    let ended = end(child, if answer.is_some() { begun + limit } else { Instant::now() });
    let measured: Option<Measured> =
        answer.as_deref().and_then(|answer| serde_json::from_slice(answer).ok());
    let mut check = match (measured, answer, ended) {
        (Some(measured), _, Some(status)) if status.success() => judge(model, &measured),
        (_, Some(_), Some(status)) => {
            Check::failed(format!("the check ended early ({status}): {last}"))
        }
        (_, _, _) => Check::failed(format!(
            "the check did not end within {} s and was killed: {last}",
            limit.as_secs()
        )),
    };
    check.took_ms = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    check
}

fn start(helper: &Helper, subject: Subject, limit: Duration) -> std::io::Result<Child> {
    let mut command = Command::new(&helper.exe);
    command.args(&helper.args).env_clear().current_dir("/");
    for name in ["PATH", "LD_LIBRARY_PATH"] {
        command.envs(std::env::var_os(name).map(|value| (name, value)));
    }
    // Code that the driver has compiled is not left in somebody's home.
    command.env("CUDA_CACHE_DISABLE", "1");
    let target = match subject {
        Subject::Gpu(uuid) => {
            // The driver opens no other one: they are in use, or ill.
            command.env("CUDA_VISIBLE_DEVICES", &uuid);
            Target::Gpu(uuid)
        }
        Subject::Played(played) => Target::Played(played),
    };
    let limit_ms = u64::try_from(limit.as_millis()).unwrap_or(u64::MAX);
    let order = serde_json::to_vec(&Order { subject: target, limit_ms })?;
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        // One that ends before it reads is told of by how it ends.
        let _ = stdin.write_all(&order);
    }
    Ok(child)
}

/// Threads of their own read what the helper says: where it cannot be killed, they stay behind.
fn listen(child: &mut Child) -> Receiver<News> {
    let (tell, news) = mpsc::channel();
    if let Some(steps) = child.stderr.take() {
        let tell = tell.clone();
        std::thread::spawn(move || {
            for line in BufReader::new(steps.take(LONGEST_ANSWER)).lines().map_while(Result::ok) {
                let _ = tell.send(News::Step(line));
            }
        });
    }
    if let Some(answer) = child.stdout.take() {
        std::thread::spawn(move || {
            let mut text = Vec::new();
            let _ = answer.take(LONGEST_ANSWER).read_to_end(&mut text);
            let _ = tell.send(News::Answer(text));
        });
    }
    news
}

/// What the helper has answered when it closed its output; nothing if time was over before.
fn wait(news: &Receiver<News>, until: Instant, mut step: impl FnMut(String)) -> Option<Vec<u8>> {
    let mut answer = None;
    loop {
        match news.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(News::Step(doing)) => step(doing),
            // What it said last may still come.
            Ok(News::Answer(text)) => answer = Some(text),
            Err(RecvTimeoutError::Timeout | RecvTimeoutError::Disconnected) => return answer,
        }
    }
}

/// Kills the helper if it has not ended by then. Nothing if it was killed, or cannot be.
fn end(mut child: Child, until: Instant) -> Option<ExitStatus> {
    let ended = ends(&mut child, until);
    if ended.is_some() {
        return ended;
    }
    let _ = child.kill();
    if ends(&mut child, Instant::now() + KILL_WAIT).is_none() {
        // The kernel ends it as soon as the driver lets go; until then nobody has to wait.
        std::thread::spawn(move || child.wait());
    }
    None
}

fn ends(child: &mut Child, until: Instant) -> Option<ExitStatus> {
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        if Instant::now() >= until {
            return None;
        }
        std::thread::sleep(LOOK_EVERY);
    }
}
