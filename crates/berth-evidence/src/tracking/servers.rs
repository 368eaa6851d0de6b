//! The servers that are measured, each started as its own pages say.

use super::tree::{self, Member, Memory};
use super::wire::Wire;
use anyhow::{Context, Result, bail};
use std::fs::File;
use std::net::{SocketAddr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// MLflow's default takes most of a minute on two cores.
const START_TIMEOUT: Duration = Duration::from_secs(300);
const STOP_TIMEOUT: Duration = Duration::from_secs(15);
/// Any server answers this from its database.
const FIRST: &str = "/api/2.0/mlflow/experiments/get?experiment_id=0";

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Who {
    Berth,
    BerthOnPostgres,
    FastTrackMl,
    /// One worker, and no processes for jobs of its own.
    MlflowSmall,
    MlflowDefault,
}

impl Who {
    pub const ALL: [Who; 5] =
        [Who::Berth, Who::BerthOnPostgres, Who::FastTrackMl, Who::MlflowSmall, Who::MlflowDefault];

    pub fn name(self) -> &'static str {
        match self {
            Who::Berth => "Berth",
            Who::BerthOnPostgres => "Berth on PostgreSQL",
            Who::FastTrackMl => "FastTrackML",
            Who::MlflowSmall => "MLflow, 1 worker",
            Who::MlflowDefault => "MLflow, default",
        }
    }
}

/// How a server is started.
pub struct Recipe<'a> {
    pub who: Who,
    pub berth: &'a Path,
    /// The virtual environment with the other servers.
    pub others: &'a Path,
    /// Where its data are.
    pub home: &'a Path,
    /// For Berth on PostgreSQL.
    pub database: Option<&'a str>,
}

pub struct Server {
    pub who: Who,
    child: Child,
    pub address: SocketAddr,
    token: Option<String>,
    log: PathBuf,
    /// From its start to the first answer.
    pub took: Duration,
    /// What that took of the CPU.
    pub cpu: Duration,
}

impl Recipe<'_> {
    fn command(&self, address: SocketAddr) -> Command {
        let mut command = match self.who {
            Who::Berth | Who::BerthOnPostgres => {
                let mut command = Command::new(self.berth);
                command.args(["up", "--gpus", "1xL4", "--listen", &address.to_string(), "--home"]);
                command
                    .arg(self.home)
                    .args(self.database.map(|_| "--database"))
                    .args(self.database);
                command
            }
            Who::FastTrackMl => {
                let mut command = Command::new(self.others.join("bin/fml"));
                command.args(["server", "--listen-address", &address.to_string()]);
                command.arg("--database-uri").arg(sqlite(&self.home.join("fasttrackml.db"), 2));
                command
            }
            Who::MlflowSmall | Who::MlflowDefault => self.mlflow(address),
        };
        command.current_dir(self.home);
        command
    }

    fn mlflow(&self, address: SocketAddr) -> Command {
        let mut command = Command::new(self.others.join("bin/mlflow"));
        command
            .args(["server", "--host", "127.0.0.1", "--port", &address.port().to_string()])
            .arg("--backend-store-uri")
            .arg(sqlite(&self.mlflow_database(), 3))
            .arg("--artifacts-destination")
            .arg(self.home.join("artifacts"))
            .env("MLFLOW_DISABLE_TELEMETRY", "true")
            .env("GIT_PYTHON_REFRESH", "quiet");
        let path = std::env::var("PATH").unwrap_or_default();
        // It starts programs that lie beside it.
        command.env("PATH", format!("{}:{path}", self.others.join("bin").display()));
        if self.who == Who::MlflowSmall {
            command.args(["--workers", "1"]).env("MLFLOW_SERVER_ENABLE_JOB_EXECUTION", "false");
        }
        command
    }

    /// The database of MLflow's server.
    pub fn mlflow_database(&self) -> PathBuf {
        self.home.join("mlflow.db")
    }

    pub fn start(&self) -> Result<Server> {
        let free = TcpListener::bind("127.0.0.1:0").context("finding a free port")?;
        let address = free.local_addr().context("finding a free port")?;
        drop(free);
        let log = self.home.join("server.log");
        let output = File::create(&log).context("making a log")?;
        let mut command = self.command(address);
        command
            .stdin(Stdio::null())
            .stdout(output.try_clone().context("making a log")?)
            .stderr(output)
            .env_remove("MLFLOW_TRACKING_URI")
            .env_remove("BERTH_URL");
        let clock = Instant::now();
        let child = command.spawn().with_context(|| format!("starting {}", self.who.name()))?;
        let mut server = Server {
            who: self.who,
            child,
            address,
            token: None,
            log,
            took: Duration::ZERO,
            cpu: Duration::ZERO,
        };
        while !server.answers(self.home) {
            let ended = server.child.try_wait().is_ok_and(|status| status.is_some());
            if ended || clock.elapsed() > START_TIMEOUT {
                bail!("{} does not start:\n{}", self.who.name(), server.log_end());
            }
            sleep(Duration::from_millis(2));
        }
        server.took = clock.elapsed();
        server.cpu = server.cpu_so_far();
        Ok(server)
    }
}

/// The address of a SQLite file, as those take it that want so many slashes before the path.
fn sqlite(path: &Path, slashes: usize) -> String {
    format!("sqlite:{}{}", "/".repeat(slashes), path.display())
}

impl Server {
    fn answers(&mut self, home: &Path) -> bool {
        if matches!(self.who, Who::Berth | Who::BerthOnPostgres) && self.token.is_none() {
            let token = std::fs::read_to_string(home.join("admin.token")).unwrap_or_default();
            if token.trim().is_empty() {
                return false;
            }
            self.token = Some(token.trim().to_owned());
        }
        let answer = self.wire().get(FIRST);
        answer.is_ok_and(|answer| answer.status == 200)
    }

    /// A new connection to it.
    pub fn wire(&self) -> Wire {
        Wire::new(self.address, self.token.as_deref())
    }

    pub fn cpu_so_far(&self) -> Duration {
        tree::cpu(self.child.id())
    }

    pub fn memory(&self) -> Memory {
        tree::memory(self.child.id())
    }

    /// What it has logged last.
    pub fn log_end(&self) -> String {
        let log = std::fs::read(&self.log).unwrap_or_default();
        String::from_utf8_lossy(&log[log.len().saturating_sub(4_000)..]).into_owned()
    }
}

impl Drop for Server {
    /// Asks it to stop, waits a while, and kills what is left of it.
    fn drop(&mut self) {
        let members: Vec<Member> = tree::members(self.child.id());
        let process = rustix::process::Pid::from_child(&self.child);
        let _ = rustix::process::kill_process(process, rustix::process::Signal::TERM);
        let clock = Instant::now();
        while self.child.try_wait().is_ok_and(|status| status.is_none())
            && clock.elapsed() < STOP_TIMEOUT
        {
            sleep(Duration::from_millis(20));
        }
        tree::kill(&members);
        let _ = self.child.wait();
    }
}
