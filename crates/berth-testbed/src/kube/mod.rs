//! A Kubernetes control plane of our own: etcd, the API server and what else a test asks for, each
//! a process on loopback with private ports and a folder that is deleted with it.
//!
//! The programs are those that `make kube-tools` builds. Nodes are simulated, or only written down.
//! What is deliberately missing: a kubelet, a network between pods, and a way to add users later.

mod client;
mod discovery;
mod flags;
mod identity;
mod objects;
mod options;
mod part;
mod pool;
mod ports;
mod probe;
mod programs;
mod reset;
mod usage;
mod watch;
mod wire;
mod words;

pub use client::Tool;
pub use identity::{ADMIN, CONTROLLER_MANAGER, SCHEDULER};
pub use objects::{Objects, Refusal};
pub use options::{Builder, Kwok, Storage};
pub use part::Part;
pub use pool::{Pool, Pooled};
pub use usage::Usage;
pub use watch::Watch;
pub use wire::Wire;

use crate::guard::{End, Guard};
use identity::{Identities, file_name};
use rustix::process::{Pid, Signal, kill_process};
use std::collections::{BTreeMap, BTreeSet};
use std::env;
use std::fmt;
use std::fs::{self, File, Permissions};
use std::io;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::thread::sleep;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Waiting ends when what is awaited happens. This is only for a machine where it never does.
const PATIENCE: Duration = Duration::from_secs(120);

/// How often a part is started on another port because somebody has taken the one it had.
const ATTEMPTS: u32 = 3;

/// So many lines of a log are shown when a part does not start.
const TAIL_LINES: usize = 30;

pub struct Cluster {
    /// Killed before the folders go, in which they write.
    guards: BTreeMap<Part, Guard>,
    /// Those that have been ready once, and whose port others know by now.
    settled: BTreeSet<Part>,
    ports: BTreeMap<Part, u16>,
    peer_port: u16,
    identities: Identities,
    kwok: Kwok,
    has_kwok: bool,
    bare_admission: bool,
    extra_flags: BTreeMap<Part, Vec<String>>,
    /// Made when the API server has a certificate to be known by.
    objects: OnceLock<Objects>,
    /// For parts with certificates of their own.
    probe: OnceLock<reqwest::Client>,
    etcd_data: TempDir,
    folder: TempDir,
}

impl Cluster {
    pub fn builder() -> Builder {
        Builder::new()
    }

    fn start_all(options: Builder) -> Cluster {
        let mut cluster = Cluster {
            guards: BTreeMap::new(),
            settled: BTreeSet::new(),
            ports: Part::ALL.into_iter().map(|part| (part, ports::free())).collect(),
            peer_port: ports::free(),
            identities: options.identities,
            has_kwok: options.parts.contains(&Part::Kwok),
            kwok: options.kwok,
            bare_admission: options.bare_admission,
            extra_flags: options.flags,
            objects: OnceLock::new(),
            probe: OnceLock::new(),
            etcd_data: etcd_folder(options.storage),
            folder: private_folder("berth-kube-", &env::temp_dir()).expect("a temporary folder"),
        };
        for name in ["logs", "kubeconfigs", "home"] {
            fs::create_dir(cluster.path(name)).expect("the folder can be written");
        }
        let tokens = cluster.identities.token_file();
        fs::write(cluster.path("tokens.csv"), tokens).expect("the folder can be written");
        cluster.start(Part::Etcd);
        cluster.start(Part::ApiServer);
        // The others need these two and not each other.
        let others = options.parts.iter().copied();
        let others: Vec<Part> =
            others.filter(|part| !matches!(part, Part::Etcd | Part::ApiServer)).collect();
        for part in &others {
            cluster.launch(*part);
        }
        for part in others {
            cluster.wait_for(part);
        }
        cluster
    }

    /// Starts a part that does not run, on the port it had, and waits until it is ready. This may
    /// be one that the cluster was begun without.
    ///
    /// # Panics
    ///
    /// If it runs, or does not become ready; then with the end of its log.
    pub fn start(&mut self, part: Part) {
        assert!(!self.is_running(part), "{} runs already", part.program());
        self.launch(part);
        self.wait_for(part);
    }

    /// Ends a part as a crash would.
    ///
    /// # Panics
    ///
    /// If it does not run.
    pub fn kill(&mut self, part: Part) {
        assert!(self.is_running(part), "{} does not run", part.program());
        self.guards.remove(&part);
    }

    pub fn is_running(&mut self, part: Part) -> bool {
        self.guards.get_mut(&part).is_some_and(|guard| !guard.is_over())
    }

    /// Stops a part where it is: it keeps its connections and answers nothing.
    pub fn pause(&self, part: Part) {
        self.signal(part, Signal::STOP);
    }

    /// Lets a part go on that was paused.
    pub fn resume(&self, part: Part) {
        self.signal(part, Signal::CONT);
    }

    /// What a part has used since it was started.
    ///
    /// # Panics
    ///
    /// If it does not run.
    pub fn usage(&self, part: Part) -> Usage {
        let usage = Usage::of(self.process(part));
        usage.unwrap_or_else(|| panic!("{} is over:\n{}", part.program(), self.log_tail(part)))
    }

    /// The number of a part's process.
    ///
    /// # Panics
    ///
    /// If it was never started, or was killed.
    pub fn process(&self, part: Part) -> u32 {
        let guard = self.guards.get(&part);
        guard.unwrap_or_else(|| panic!("{} does not run", part.program())).process()
    }

    /// Where the API server listens.
    pub fn url(&self) -> String {
        format!("https://127.0.0.1:{}", self.port(Part::ApiServer))
    }

    /// The certificate to know the API server by, as PEM.
    pub fn ca(&self) -> PathBuf {
        self.path("certs/apiserver.crt")
    }

    /// # Panics
    ///
    /// If no such user was declared.
    pub fn token(&self, user: &str) -> &str {
        self.identities.token(user)
    }

    /// A file for clients that act as this user.
    ///
    /// # Panics
    ///
    /// If no such user was declared.
    pub fn kubeconfig(&self, user: &str) -> PathBuf {
        let file = self.path("kubeconfigs").join(file_name(user));
        assert!(file.exists(), "no user {user} was declared");
        file
    }

    /// The same by way of another port, for whoever is to lose its connections.
    pub fn kubeconfig_through(&self, user: &str, port: u16) -> PathBuf {
        let url = format!("https://127.0.0.1:{port}");
        let file = self.path("kubeconfigs").join(format!("{}-{port}", file_name(user)));
        let text = self.identities.kubeconfig(user, &url, &self.ca());
        fs::write(&file, text).expect("the folder can be written");
        file
    }

    pub fn port_of_api_server(&self) -> u16 {
        self.port(Part::ApiServer)
    }

    /// Everything a part has said, over all its starts.
    pub fn log(&self, part: Part) -> String {
        let bytes = fs::read(self.log_file(part)).unwrap_or_default();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    /// The folder with all files of the cluster, but for the data of etcd.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn launch(&mut self, part: Part) {
        if part == Part::ApiServer {
            self.write_kubeconfigs();
        }
        let log = File::options().create(true).append(true).open(self.log_file(part));
        let log = log.expect("the folder can be written");
        let program = programs::program(part.program());
        let flags = self.flags(part);
        // Some would read settings of whoever runs the test.
        let home = format!("HOME={}", self.path("home").display());
        let mut command = vec!["env", &home, program.to_str().expect("programs have plain names")];
        command.extend(flags.iter().map(String::as_str));
        // Etcd is there from the first to the last, so its guard sees to the folders.
        let folders: &[&Path] = match part {
            Part::Etcd => &[self.etcd_data.path(), self.folder.path()],
            Part::ApiServer | Part::ControllerManager | Part::Scheduler | Part::Kwok => &[],
        };
        let guard = Guard::start(&command, End::Kill, folders, None, log);
        self.guards.insert(part, guard);
    }

    fn wait_for(&mut self, part: Part) {
        let until = Instant::now() + PATIENCE;
        let mut attempts = 1;
        // Somebody else who has taken the port may answer as well, but then ours ends.
        while !(self.is_ready(part) && self.is_running(part)) {
            let (program, runs) = (part.program(), self.is_running(part));
            if !runs && attempts < ATTEMPTS && !self.settled.contains(&part) {
                attempts += 1;
                self.take_other_ports(part);
                self.launch(part);
            } else if !runs || Instant::now() >= until {
                let what = if runs { "does not become ready" } else { "ended" };
                panic!("{program} {what}:\n{}", self.log_tail(part));
            }
            sleep(Duration::from_millis(50));
        }
        self.settled.insert(part);
    }

    /// Somebody else may have taken the port between our looking and the program's start.
    fn take_other_ports(&mut self, part: Part) {
        self.ports.insert(part, ports::free());
        self.objects = OnceLock::new();
        if part == Part::Etcd {
            self.peer_port = ports::free();
        }
    }

    fn write_kubeconfigs(&self) {
        for user in self.identities.names() {
            let text = self.identities.kubeconfig(user, &self.url(), &self.ca());
            let file = self.path("kubeconfigs").join(file_name(user));
            fs::write(file, text).expect("the folder can be written");
        }
    }

    fn signal(&self, part: Part, signal: Signal) {
        let process = i32::try_from(self.process(part)).ok().and_then(Pid::from_raw);
        let process = process.expect("the kernel counts processes from one");
        let sent = kill_process(process, signal);
        sent.unwrap_or_else(|error| panic!("{}: {error}", part.program()));
    }

    fn port(&self, part: Part) -> u16 {
        self.ports[&part]
    }

    fn log_file(&self, part: Part) -> PathBuf {
        self.path("logs").join(format!("{}.log", part.program()))
    }

    fn log_tail(&self, part: Part) -> String {
        let log = self.log(part);
        let lines: Vec<&str> = log.lines().collect();
        lines[lines.len().saturating_sub(TAIL_LINES)..].join("\n")
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }
}

/// Without the tokens.
impl fmt::Debug for Cluster {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut out = out.debug_struct("Cluster");
        out.field("url", &self.url()).field("folder", &self.folder.path());
        out.field("parts", &self.guards.keys()).finish_non_exhaustive()
    }
}

fn etcd_folder(storage: Storage) -> TempDir {
    let prefix = "berth-etcd-";
    let in_memory = match storage {
        Storage::Memory => private_folder(prefix, Path::new("/dev/shm")).ok(),
        Storage::Disk => None,
    };
    let on_disk = || private_folder(prefix, &env::temp_dir()).expect("a temporary folder");
    in_memory.unwrap_or_else(on_disk)
}

/// The tokens and keys in it are nobody else's business.
fn private_folder(prefix: &str, parent: &Path) -> io::Result<TempDir> {
    let private = Permissions::from_mode(0o700);
    tempfile::Builder::new().prefix(prefix).permissions(private).tempdir_in(parent)
}
