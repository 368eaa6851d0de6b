//! A server with two teams: blue has something to lose, and mallory of team red wants it.

use crate::machine::server::{Server, until};
use berth_testbed::Account;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};

/// What blue's jobs hold.
pub const SECRET: &str = "blues-secret-value";

pub struct Stage {
    pub server: Server,
    /// Mallory's token.
    pub token: String,
    /// A job of blue's that runs with the secret.
    pub victim: String,
    /// A folder that everybody may use, and that the server shares.
    pub work: tempfile::TempDir,
}

/// Who the server is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum As {
    /// Whoever runs the tests, which is root in most containers.
    Us,
    /// An ordinary user. Nothing where we are one already: then the first case is this one.
    Ordinary,
}

impl Stage {
    /// One where all jobs have the server's account.
    pub fn without_accounts(args: &[&str]) -> Stage {
        Stage::set(As::Ordinary, args)
            .or_else(|| Stage::set(As::Us, args))
            .expect("one of them is an ordinary user")
    }

    pub fn set(who: As, args: &[&str]) -> Option<Stage> {
        let work = tempfile::tempdir().expect("a folder");
        open_to_all(work.path(), 0o777);
        let shared = work.path().to_str().expect("it is plain");
        let usual = ["--gpus", "8xH100", "--isolation", "required", "--share", shared];
        let args = [&usual, args].concat();
        let server = match who {
            As::Us => Server::start(&args),
            As::Ordinary => Server::start_as(Account::unprivileged()?, &args),
        };
        for line in [
            "team add blue",
            "team add red",
            "user add bob",
            "user add mallory",
            "member set blue bob researcher",
            "member set red mallory researcher",
        ] {
            server.run_ok(&line.split(' ').collect::<Vec<_>>());
        }
        let mut set = server.command(&["secret", "set", "key", "--team", "blue"]);
        let mut child = set.stdin(Stdio::piped()).spawn().expect("berth runs");
        let input = child.stdin.as_mut().expect("it is piped");
        std::io::Write::write_all(input, SECRET.as_bytes()).expect("it reads");
        assert!(child.wait().expect("it ends").success());
        let token = made_token(&server, "mallory");
        let bob = made_token(&server, "bob");
        let mut stage = Stage { server, token, victim: String::new(), work };
        let file = "name: victim\nteam: blue\nsecrets: {KEY: key}\nvolumes: {/data: shared}\n\
                    run: 'echo mine > /data/mine; echo up; exec sleep 10000'\n";
        stage.victim = stage.submit(&bob, file).expect("bob may");
        let victim = stage.victim.clone();
        until("the victim runs", || stage.server.job(&victim)["state"] == "running");
        Some(stage)
    }

    /// Submits a job file with a token; what the server says where it refuses.
    pub fn submit(&self, token: &str, file: &str) -> Result<String, String> {
        let path = self.work.path().join("job.yaml");
        std::fs::write(&path, file).expect("it can be written");
        let ran =
            self.with_token(token, &["run", "-d", "-o", "json", "-f", path.to_str().unwrap()]);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        if !ran.status.success() {
            return Err(text(&ran.stderr));
        }
        let answer: Value = serde_json::from_slice(&ran.stdout).expect("it is JSON");
        Ok(answer["id"].as_str().expect("it has a number").to_owned())
    }

    /// Runs a command of `berth` as whoever the token is of.
    pub fn with_token(&self, token: &str, args: &[&str]) -> Output {
        let mut command = self.server.command(args);
        command.env_remove("BERTH_HOME").env("BERTH_URL", &self.server.url);
        command.env("BERTH_TOKEN", token).env("HOME", self.work.path());
        command.current_dir(self.work.path()).output().expect("berth runs")
    }

    /// Runs a job of mallory's to its end and returns what it printed.
    pub fn run(&self, file: &str) -> String {
        let id = self.submit(&self.token, file).expect("mallory may submit");
        self.ended(&id);
        let logs = self.with_token(&self.token, &["logs", &id]);
        let why = self.with_token(&self.token, &["why", &id]);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        format!("{}{}{}", text(&logs.stdout), text(&logs.stderr), text(&why.stdout))
    }

    /// Waits for the end of a job.
    pub fn ended(&self, job: &str) {
        until("the job has ended", || {
            let state = self.server.job(job)["state"].as_str().unwrap_or_default().to_owned();
            ["done", "failed", "cancelled"].contains(&state.as_str())
        });
    }

    /// Whether jobs of others than whoever started the server have accounts of their own.
    pub fn has_accounts(&self) -> bool {
        self.server.json(&["nodes"])["items"][0]["isolation"] == "accounts"
    }

    pub fn token_of(&self, user: &str) -> String {
        made_token(&self.server, user)
    }

    pub fn home(&self) -> PathBuf {
        self.server.home.path().canonicalize().expect("it is there")
    }
}

pub fn open_to_all(path: &Path, mode: u32) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("it is ours");
}

fn made_token(server: &Server, user: &str) -> String {
    let made = server.json(&["token", "create", "attack", "--user", user]);
    made["secret"].as_str().unwrap_or_else(|| panic!("no secret in {made}")).to_owned()
}
