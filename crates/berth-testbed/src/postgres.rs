//! A PostgreSQL server of our own, from the binaries of the machine.

use crate::Account;
use crate::guard::{End, Guard};
use std::fs::{self, File};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// How a server is stopped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stop {
    /// Connections are ended, everything is written.
    Fast,
    /// As in a crash: nothing is written, and the next start has to recover.
    Immediate,
}

/// Waiting ends when what is awaited happens. This is only for a machine where it never does.
const PATIENCE: Duration = Duration::from_secs(120);

const PASSWORD: &str = "a-password-for-tests";

/// A server with its data in a folder that is deleted with it. It listens on a port of loopback
/// and on a socket that only its own user can reach.
#[derive(Debug)]
pub struct Postgres {
    server: Option<Guard>,
    folder: TempDir,
    binaries: PathBuf,
    account: Option<Account>,
    /// Zero until a server has started on one.
    port: u16,
    databases: AtomicU32,
}

impl Postgres {
    /// # Panics
    ///
    /// If PostgreSQL is not installed or does not start: a test without its surroundings has
    /// failed.
    pub fn start() -> Postgres {
        let folder = TempDir::with_prefix("berth-pg-").expect("a temporary folder");
        let account = Account::unprivileged();
        if let Some(account) = account {
            account.give(folder.path()).expect("root can give a folder away");
        }
        let mut postgres = Postgres {
            server: None,
            folder,
            binaries: binaries(),
            account,
            port: 0,
            databases: AtomicU32::new(0),
        };
        postgres.initialize();
        postgres.resume();
        postgres
    }

    /// Makes an empty database and gives its address.
    pub fn database(&self) -> String {
        let name = format!("test_{}", self.databases.fetch_add(1, Ordering::Relaxed));
        self.sql("postgres", &format!("CREATE DATABASE {name}"));
        format!("postgres://berth:{PASSWORD}@127.0.0.1:{}/{name}", self.port)
    }

    /// Runs statements as the administrator, and gives what they print.
    ///
    /// # Panics
    ///
    /// If one fails.
    pub fn sql(&self, database: &str, sql: &str) -> String {
        let socket = self.path("socket");
        let port = self.port.to_string();
        let output = Command::new(self.binaries.join("psql"))
            .args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-U", "berth"])
            .args(["-p", &port, "-d", database, "-c", sql])
            .arg("-h")
            .arg(&socket)
            .output()
            .expect("psql is beside the server");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "psql failed: {errors}");
        String::from_utf8_lossy(&output.stdout).trim().to_owned()
    }

    pub fn stop(&mut self, how: Stop) {
        let mode = match how {
            Stop::Fast => "fast",
            Stop::Immediate => "immediate",
        };
        self.run("pg_ctl", &["stop", "-w", "-m", mode, "-D", &self.text("data")]);
        self.server = None;
    }

    /// Starts the server on the port it had, or on a free one the first time.
    pub fn resume(&mut self) {
        let until = Instant::now() + PATIENCE;
        let mut port = self.port;
        loop {
            if self.server.as_mut().is_none_or(Guard::is_over) {
                // The first time, somebody else may have taken the port between our looking and
                // the server's start.
                port = if self.port == 0 { free_port() } else { self.port };
                self.server = Some(self.launch(port));
            }
            if self.is_ready(port) {
                self.port = port;
                return;
            }
            assert!(Instant::now() < until, "PostgreSQL does not start:\n{}", self.log());
            sleep(Duration::from_millis(20));
        }
    }

    fn initialize(&self) {
        let password = self.path("password");
        fs::write(&password, PASSWORD).expect("the folder can be written");
        fs::create_dir(self.path("socket")).expect("the folder can be written");
        // Only the server's user and root come past this folder.
        let private = fs::Permissions::from_mode(0o700);
        fs::set_permissions(self.folder.path(), private).expect("the folder is ours");
        if let Some(account) = self.account {
            for path in [&password, &self.path("socket")] {
                account.give(path).expect("root can give a file away");
            }
        }
        let password = self.text("password");
        let data = self.text("data");
        self.run(
            "initdb",
            &[
                "-U",
                "berth",
                "-D",
                &data,
                "-E",
                "UTF8",
                "--locale=C",
                "--auth-local=trust",
                "--auth-host=scram-sha-256",
                "--pwfile",
                &password,
            ],
        );
    }

    fn launch(&self, port: u16) -> Guard {
        let log = File::options().create(true).append(true).open(self.path("log"));
        let log = log.expect("the folder can be written");
        let (program, data) = (self.binaries.join("postgres"), self.text("data"));
        let program = program.to_str().expect("programs have plain names");
        let port = port.to_string();
        let socket = format!("unix_socket_directories={}", self.text("socket"));
        let command = [
            program,
            "-D",
            &data,
            "-p",
            &port,
            "-c",
            &socket,
            "-c",
            "listen_addresses=127.0.0.1",
            "-c",
            "fsync=on",
            "-c",
            "max_connections=100",
            "-c",
            "shared_buffers=32MB",
        ];
        Guard::start(&command, End::Quit, &[self.folder.path()], self.account, log)
    }

    fn is_ready(&self, port: u16) -> bool {
        let port = port.to_string();
        let ready = Command::new(self.binaries.join("pg_isready"))
            .args(["-q", "-h", &self.text("socket"), "-p", &port])
            .status();
        ready.is_ok_and(|status| status.success())
    }

    fn run(&self, program: &str, arguments: &[&str]) {
        let mut command = Command::new(self.binaries.join(program));
        command.args(arguments).current_dir("/");
        if let Some(account) = self.account {
            account.run(&mut command);
        }
        let output = command.output().expect("the programs of PostgreSQL can be run");
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{program} failed: {errors}\n{}", self.log());
    }

    fn log(&self) -> String {
        fs::read_to_string(self.path("log")).unwrap_or_default()
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn text(&self, name: &str) -> String {
        self.path(name).to_str().expect("temporary folders have plain names").to_owned()
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    listener.local_addr().expect("a bound socket has an address").port()
}

/// The newest version that is installed where Debian puts them, or the one on the path.
fn binaries() -> PathBuf {
    let installed = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let newest = installed
        .map(|version| version.path().join("bin"))
        .filter(|bin| bin.join("initdb").exists())
        .max_by_key(|bin| version_of(bin));
    let on_path = || {
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path).find(|folder| folder.join("initdb").exists())
    };
    newest.or_else(on_path).expect("PostgreSQL is not installed: run `make postgres`")
}

fn version_of(bin: &Path) -> u32 {
    let name = bin.parent().and_then(Path::file_name).and_then(|name| name.to_str());
    name.and_then(|name| name.parse().ok()).unwrap_or(0)
}
