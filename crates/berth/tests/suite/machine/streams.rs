//! What is open when a right is lost: it ends, and says why.

use super::people::People;
use super::server::until;
use berth_api::Client;
use berth_api::client::{Options, Shell, ShellOutput};
use berth_api::wire::{EventKind, EventQuery, LogQuery, ShellAsk, ShellTell};
use serde_json::json;
use std::future::Future;
use std::sync::LazyLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;
use tokio::runtime::Runtime;

/// How long anything may take. It is not a measure of speed.
const PATIENCE: Duration = Duration::from_secs(60);

fn client(people: &People, token: &str) -> Client {
    let mut options = Options::new(&people.server.url).token(token);
    options.patience = Duration::ZERO;
    Client::new(options).expect("a client")
}

/// On threads of their own: tests ask the server for other things meanwhile.
fn wait<T>(what: impl Future<Output = T>) -> T {
    static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| Runtime::new().expect("threads"));
    let ended = RUNTIME.block_on(async { tokio::time::timeout(PATIENCE, what).await });
    ended.expect("the server ends it")
}

/// A terminal in which `sleep` runs, and for how long: no other process sleeps so long.
async fn open_shell(people: &People, token: &str, job: &str) -> (Shell, String) {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let long = format!("600.{}{count}", std::process::id());
    let line = format!("echo it is up.; exec sleep {long}");
    let mut shell = client(people, token).shell(job).await.expect("a terminal");
    let open = ShellAsk::Open {
        task: None,
        command: ["bash", "-c", &line].map(str::to_owned).into(),
        term: "dumb".to_owned(),
        rows: 24,
        columns: 80,
    };
    shell.ask(&open).await.expect("it is open");
    let mut shown = String::new();
    loop {
        match shell.next().await.expect("it goes on") {
            Some(ShellOutput::Bytes(bytes)) => shown.push_str(&String::from_utf8_lossy(&bytes)),
            other => panic!("{other:?} after {shown}"),
        }
        if shown.contains("it is up.") {
            return (shell, long);
        }
    }
}

/// The code of the last message.
async fn end_of_shell(mut shell: Shell) -> String {
    let mut code = None;
    while let Some(output) = shell.next().await.unwrap_or(None) {
        if let ShellOutput::Tell(ShellTell::Problem { problem }) = output {
            code = Some(problem.code);
        }
    }
    code.expect("it says why it ends")
}

/// Whether a process sleeps so long. It has another number in its sandbox than outside.
fn lives(long: &str) -> bool {
    let all = std::fs::read_dir("/proc").expect("processes").flatten();
    let mut lines = all.filter_map(|process| std::fs::read(process.path().join("cmdline")).ok());
    let wanted = format!("sleep\0{long}\0");
    lines.any(|line| line == wanted.as_bytes())
}

#[test]
fn a_terminal_is_hung_up_with_its_token_its_role_and_its_user() {
    let people = People::start("1xL4");
    let job = people.runs(&people.kim, "vision", "sleep 600");
    type Loss = (&'static str, fn(&People, &str));
    let losses: [Loss; 4] = [
        ("BRT0005", |people, token| people.revoke(token)),
        ("BRT0006", |people, _| people.give("kim", "vision", "viewer")),
        ("BRT0006", |people, _| people.take("kim", "vision")),
        ("BRT0005", |people, _| {
            people.admin("DELETE", "/v1/users/kim?force=true", &json!({}));
        }),
    ];
    for (code, lose) in losses {
        people.give("kim", "vision", "researcher");
        let (id, token) = people.new_token("kim", "all", None);
        let (shell, long) = wait(open_shell(&people, &token, &job));
        until("it sleeps", || lives(&long));
        lose(&people, &id);
        assert_eq!(wait(end_of_shell(shell)), code);
        until("what ran in the terminal is gone", || !lives(&long));
    }
    assert_eq!(people.server.job(&job)["state"], "running", "the job goes on");
}

#[test]
fn a_log_that_never_pauses_ends_with_the_right_to_read_it() {
    let people = People::start("1xL4");
    let job = people.runs(&people.kim, "vision", "yes a line of a log that never ends");
    let follow = LogQuery { follow: true, ..LogQuery::default() };
    type Loss = (&'static str, Option<&'static str>, fn(&People, &str));
    let losses: [Loss; 3] = [
        ("BRT0005", None, |people, token| people.revoke(token)),
        // By itself, when its time is over.
        ("BRT0005", Some("1500ms"), |_, _| ()),
        ("BRT0006", None, |people, _| people.take("kim", "vision")),
    ];
    for (code, lasts, lose) in losses {
        let (id, token) = people.new_token("kim", "read", lasts);
        let client = client(&people, &token);
        let problem = wait(async {
            let mut logs = client.logs(&job, &follow).await.expect("a log");
            let first = logs.next().await.expect("it goes on").expect("a chunk");
            assert!(first.text.contains("a line"), "{first:?}");
            tokio::task::block_in_place(|| lose(&people, &id));
            let mut last = None;
            while let Some(chunk) = logs.next().await.expect("it ends in order") {
                last = chunk.problem;
            }
            last.expect("it says why it ends")
        });
        assert_eq!(problem.code, code);
    }
}

#[test]
fn berth_logs_ends_with_the_problem_when_its_token_is_revoked() {
    let people = People::start("1xL4");
    let job = people.runs(&people.kim, "vision", "echo begun; sleep 600");
    let (id, token) = people.new_token("kim", "read", None);
    let mut command = people.server.command(&["logs", "-f", &job]);
    command.env("BERTH_URL", &people.server.url).env("BERTH_TOKEN", token);
    command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
    let mut child = command.spawn().expect("berth runs");
    let mut out = std::io::BufReader::new(child.stdout.take().unwrap());
    let mut line = String::new();
    std::io::BufRead::read_line(&mut out, &mut line).unwrap();
    assert_eq!(line, "begun\n");
    people.revoke(&id);
    let ended = child.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&ended.stderr);
    assert_eq!(ended.status.code(), Some(3), "{said}");
    assert!(said.contains("BRT0005"), "{said}");
}

#[test]
fn events_of_a_team_end_with_the_right_to_see_it() {
    let people = People::start("1xL4");
    people.give("kim", "audio", "researcher");
    let kim = client(&people, &people.kim);
    let of_vision = EventQuery { team: Some("vision".into()), ..EventQuery::default() };
    let problem = wait(async {
        let mut all = kim.events(&EventQuery::default()).await.expect("events");
        let mut vision = kim.events(&of_vision).await.expect("events");
        tokio::task::block_in_place(|| people.take("kim", "vision"));
        // A stream for one team ends.
        let problem = loop {
            match vision.next().await.expect("it ends in order").expect("it says why").kind {
                EventKind::End { problem } => break problem,
                other => assert!(matches!(other, EventKind::Queue { .. }), "{other:?}"),
            }
        };
        assert!(vision.next().await.expect("it ends in order").is_none());
        // One for all goes on without it, once the rights have been looked at.
        for round in 0.. {
            assert!(round < 100, "events of the team still come");
            tokio::task::block_in_place(|| {
                for team in ["vision", "audio"] {
                    let file = format!("name: {team}-{round}\nteam: {team}\nrun: 'true'\n");
                    people.job(&people.admin, &file);
                }
            });
            let mut seen = false;
            let last = format!("audio-{round}");
            loop {
                let event = all.next().await.expect("it goes on").expect("an event");
                let EventKind::Job { name, team, .. } = event.kind else { continue };
                seen |= team == "vision";
                if name == last {
                    break;
                }
            }
            if !seen {
                break;
            }
        }
        problem
    });
    assert_eq!(problem.code, "BRT0006");
    assert!(problem.detail.contains("team vision"), "{problem:?}");
}
