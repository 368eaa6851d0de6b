//! The real program as a server, in a folder of its own.

use crate::account::Account;
use crate::http::{self, Answer, Request};
use berth_api::Client;
use berth_api::client::Options;
use reqwest::Method;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How long anything may take. It is not a measure of speed: a machine under load is slow.
const PATIENCE: Duration = Duration::from_secs(120);

/// What the machine is called.
const NODE: &str = "box";

/// A server that is gone with its jobs when this is.
#[derive(Debug)]
pub struct Server {
    program: PathBuf,
    child: Child,
    pub home: TempDir,
    /// Where commands are run. Jobs start there, and no job sees the home.
    pub work: TempDir,
    /// Whoever runs it, where that is not us.
    account: Option<Account>,
    pub url: String,
    /// `up`, or another command that serves.
    command: &'static str,
    args: Vec<String>,
    log: Log,
    printed: Log,
    http: OnceLock<reqwest::Client>,
}

/// The lines that a server has printed since it was started.
type Log = Arc<Mutex<String>>;

impl Server {
    /// Starts `program up` with these flags on a free port.
    ///
    /// # Panics
    ///
    /// If it does not start: a test without its surroundings has failed.
    pub fn start(program: &Path, args: &[&str]) -> Server {
        Server::begin_with(None, program, "up", args)
    }

    /// Starts `program kube` on the cluster of a kubeconfig.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn start_on(program: &Path, kubeconfig: &Path, args: &[&str]) -> Server {
        let kubeconfig = kubeconfig.display().to_string();
        Server::begin_with(None, program, "kube", &[&["--kubeconfig", &kubeconfig], args].concat())
    }

    /// Starts `program up` as another account of this machine.
    ///
    /// # Panics
    ///
    /// If it does not start.
    pub fn start_as(account: Account, program: &Path, args: &[&str]) -> Server {
        Server::begin_with(Some(account), program, "up", args)
    }

    fn begin_with(
        account: Option<Account>,
        program: &Path,
        command: &'static str,
        args: &[&str],
    ) -> Server {
        let home = TempDir::with_prefix("berth-home-").expect("a temporary folder");
        let work = TempDir::with_prefix("berth-work-").expect("a temporary folder");
        if let Some(account) = account {
            account.give(home.path()).expect("it is ours to give");
        }
        let args: Vec<String> = args.iter().map(|arg| (*arg).to_owned()).collect();
        let (child, url, log, printed) =
            begin(account, program, command, home.path(), "127.0.0.1:0", &args);
        Server {
            account,
            work,
            program: program.to_owned(),
            child,
            home,
            url,
            command,
            args,
            log,
            printed,
            http: OnceLock::new(),
        }
    }

    /// Whether it takes requests, as a load balancer would ask it: one of several replicas does.
    pub fn is_ready(&self) -> bool {
        let address = self.url.trim_start_matches("http://");
        let Ok(mut stream) = TcpStream::connect(address) else { return false };
        let _ = stream.set_read_timeout(Some(Duration::from_secs(5)));
        let asked = format!("GET /readyz HTTP/1.0\r\nHost: {address}\r\n\r\n");
        let mut answer = String::new();
        let answered = stream.write_all(asked.as_bytes()).is_ok();
        answered && stream.read_to_string(&mut answer).is_ok() && answer.contains(" 200 ")
    }

    pub fn process(&self) -> u32 {
        self.child.id()
    }

    pub fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// The code that it ended with by itself; none while it runs.
    pub fn exit_code(&mut self) -> Option<i32> {
        self.child.try_wait().ok().flatten().and_then(|status| status.code())
    }

    /// Ends it without a chance to tidy up.
    pub fn kill(&mut self) {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ended");
    }

    /// Asks it to stop, and waits until it has.
    pub fn stop(&mut self) {
        let process = Pid::from_child(&self.child);
        kill_process(process, Signal::TERM).expect("it runs");
        self.child.wait().expect("it ended");
    }

    /// In the same folder, and where it listened before.
    pub fn start_again(&mut self) {
        let listen = self.url.trim_start_matches("http://");
        (self.child, self.url, self.log, self.printed) =
            begin(self.account, &self.program, self.command, self.home.path(), listen, &self.args);
    }

    /// The same with other flags.
    pub fn start_again_with(&mut self, args: &[&str]) {
        self.args = args.iter().map(|arg| (*arg).to_owned()).collect();
        self.start_again();
    }

    /// What it has logged since it was started.
    pub fn log(&self) -> String {
        self.log.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// What it has printed since it was ready.
    pub fn printed(&self) -> String {
        self.printed.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    pub fn token(&self) -> String {
        let token = std::fs::read_to_string(self.home.path().join("admin.token"));
        token.expect("the server wrote it").trim().to_owned()
    }

    /// A client that outlasts a server that is away.
    pub fn client(&self) -> Client {
        self.client_with(PATIENCE)
    }

    /// A client that tries again for so long.
    pub fn client_with(&self, patience: Duration) -> Client {
        let mut options = Options::new(&self.url).token(self.token());
        options.patience = patience;
        Client::new(options).expect("a client")
    }

    /// Runs a command of `berth` against this server.
    pub fn berth(&self, args: &[&str]) -> Output {
        self.command(args).output().expect("berth runs")
    }

    pub fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(&self.program);
        command
            .args(args)
            .env("BERTH_HOME", self.home.path())
            .env("NO_COLOR", "1")
            .env_remove("BERTH_URL")
            .env_remove("BERTH_TOKEN")
            .env_remove("BERTH_TOKEN_FILE")
            .current_dir(self.work.path())
            .stdin(Stdio::null());
        command
    }

    /// What a command prints, if it ends well.
    pub fn run_ok(&self, args: &[&str]) -> String {
        let output = self.berth(args);
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (out, err) = (text(&output.stdout), text(&output.stderr));
        assert!(output.status.success(), "berth {args:?} ended with {}\n{out}{err}", output.status);
        out
    }

    /// What a command prints as JSON.
    pub fn json(&self, args: &[&str]) -> Value {
        let text = self.run_ok(&[args, &["-o", "json"]].concat());
        serde_json::from_str(&text)
            .unwrap_or_else(|error| panic!("berth {args:?}: {error}\n{text}"))
    }
}

/// The same answers as those of `berth ps` and others, without starting the program.
impl Server {
    /// The jobs that have not ended.
    pub fn jobs(&self) -> Vec<Value> {
        self.list_jobs("/v1/jobs?state=active&limit=1000")
    }

    /// All jobs.
    pub fn all_jobs(&self) -> Vec<Value> {
        self.list_jobs("/v1/jobs?limit=1000")
    }

    /// A job by its number or name.
    ///
    /// # Panics
    ///
    /// If there is no such job.
    pub fn job(&self, job: &str) -> Value {
        self.get(&format!("/v1/jobs/{job}"))
    }

    /// What the server answers to the administrator.
    ///
    /// # Panics
    ///
    /// If that is an error, or there is no answer.
    pub fn get(&self, path: &str) -> Value {
        let request = Request::get(format!("{}{path}", self.url));
        let answer =
            request.send(self.http.get_or_init(|| {
                http::client(&self.token()).build().expect("a client without files")
            }));
        let answer = answer.unwrap_or_else(|error| panic!("{path}: {error}"));
        assert!(answer.is_success(), "{path}: {} {}", answer.status, answer.body);
        answer.json()
    }

    fn list_jobs(&self, path: &str) -> Vec<Value> {
        let list = self.get(path);
        assert!(list["next"].is_null(), "{path}: there are more jobs than one page has");
        list["jobs"].as_array().cloned().unwrap_or_default()
    }
}

impl Server {
    /// Jobs outlive a server, but not a test. None may start in the place of another.
    fn end_jobs(&self) {
        let _ = self.post(&format!("/v1/nodes/{NODE}/cordon"), "{}");
        for job in self.jobs_with_processes() {
            let _ = self.post(&format!("/v1/jobs/{job}/stop"), r#"{"now":true}"#);
        }
        eventually(|| self.jobs_with_processes().is_empty());
    }

    /// Their numbers; none where the server does not answer.
    fn jobs_with_processes(&self) -> Vec<String> {
        let path = "/v1/jobs?state=running,stopping&limit=1000";
        let list = self.send(Request::get(format!("{}{path}", self.url)));
        let list = list.map(|answer| answer.json()).unwrap_or_default();
        let jobs = list["jobs"].as_array().into_iter().flatten();
        jobs.filter_map(|job| job["id"].as_str().map(str::to_owned)).collect()
    }

    fn post(&self, path: &str, body: &str) -> Option<Answer> {
        let request = Request::new(Method::POST, format!("{}{path}", self.url));
        self.send(request.body("application/json", body.to_owned()))
    }

    /// None where there is no token or no answer. A server that is gone leaves its jobs to the next
    /// one, so no caller can do anything about it.
    fn send(&self, request: Request) -> Option<Answer> {
        let token = std::fs::read_to_string(self.home.path().join("admin.token")).ok()?;
        let client = self
            .http
            .get_or_init(|| http::client(token.trim()).build().expect("a client without files"));
        request.send(client).ok()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.is_running() {
            // Pods go with their cluster.
            if self.command == "up" {
                self.end_jobs();
            }
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}

/// A server, its address, and what it writes to either output.
type Begun = (Child, String, Log, Log);

/// Tries to listen where a server was killed a moment ago.
const LISTEN_TRIES: u32 = 60;
const LISTEN_PAUSE: Duration = Duration::from_millis(500);

/// A port that a server had may belong to the near end of another test's connection for a while.
fn begin(
    account: Option<Account>,
    program: &Path,
    command: &str,
    home: &Path,
    listen: &str,
    args: &[String],
) -> Begun {
    for _ in 0..LISTEN_TRIES {
        match try_begin(account, program, command, home, listen, args) {
            Ok(begun) => return begun,
            Err(told) if told.contains("is in use") => std::thread::sleep(LISTEN_PAUSE),
            Err(told) => panic!("the server does not say where it is: {told}"),
        }
    }
    panic!("{listen} stays in use")
}

/// What it wrote, where it ended before it listened.
fn try_begin(
    account: Option<Account>,
    program: &Path,
    command: &str,
    home: &Path,
    listen: &str,
    args: &[String],
) -> Result<Begun, String> {
    let mut server = Command::new(program);
    if let Some(account) = account {
        account.run(&mut server).current_dir("/");
    }
    let mut child = server
        .arg(command)
        .args(["--home", &home.display().to_string(), "--listen", listen, "--name", NODE])
        .args(args)
        .env("BERTH_LOG", "warn,kube_client=off")
        .env("USER", "ada")
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("berth starts");
    let stderr = BufReader::new(child.stderr.take().expect("it is piped"));
    // It is shown as well.
    let log = collect(stderr.lines(), |line| eprintln!("{line}"));
    let mut lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    let url = loop {
        let Some(line) = lines.next() else {
            child.wait().expect("it has ended");
            // What it wrote last may still be on its way.
            std::thread::sleep(Duration::from_millis(200));
            return Err(log.lock().unwrap_or_else(PoisonError::into_inner).clone());
        };
        let line = line.expect("it is text");
        // A replica that stands by listens as well.
        let at = line.strip_prefix("Berth is ready at ");
        let at = at
            .or_else(|| line.strip_prefix("Berth stands by at ")?.split_once(": ").map(|at| at.0));
        if let Some(url) = at {
            break url.to_owned();
        }
    };
    let printed = collect(lines, |_| {});
    Ok((child, url, log, printed))
}

/// Reads all lines, so that whoever prints is never blocked.
fn collect(
    lines: impl Iterator<Item = std::io::Result<String>> + Send + 'static,
    echo: impl Fn(&str) + Send + 'static,
) -> Log {
    let log = Log::default();
    let to = log.clone();
    std::thread::spawn(move || {
        for line in lines.map_while(Result::ok) {
            echo(&line);
            let mut log = to.lock().unwrap_or_else(PoisonError::into_inner);
            log.push_str(&line);
            log.push('\n');
        }
    });
    log
}

/// Waits until something is so.
///
/// # Panics
///
/// If it never is.
pub fn until(what: &str, is_so: impl FnMut() -> bool) {
    assert!(eventually(is_so), "{what} has not happened");
}

/// Waits until something is so, and says whether it came to that.
pub fn eventually(mut is_so: impl FnMut() -> bool) -> bool {
    let deadline = Instant::now() + PATIENCE;
    while !is_so() {
        if Instant::now() >= deadline {
            return false;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    true
}
