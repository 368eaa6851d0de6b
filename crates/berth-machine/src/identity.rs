//! What a job is to the server that runs it: a token of its own, by which `berth` works inside it.
//!
//! The token is in the job's environment, and, renewed for as long as the task runs, in a file of
//! the job's folder. Nothing of it is kept by the server.

use berth_engine::{Handle, LeaseStart};
use berth_model::{LeaseId, Name};
use berth_service::Home;
use berth_service::job_token::{JobTokens, LASTS};
use berth_service::pem::certificates;
use berth_service::tracked_run;
use std::collections::BTreeMap;
use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{MetadataExt, OpenOptionsExt, fchown};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;
use tokio::task::AbortHandle;

/// Four times before a token ends: one renewal may fail, and the next one.
const RENEW: Duration = Duration::from_millis(LASTS.0.unsigned_abs() / 4);

/// Where jobs reach the server.
#[derive(Debug, Clone)]
pub struct ServerAddress {
    pub url: String,
    /// The certificate of a server that speaks TLS, as PEM.
    pub certificate: Option<PathBuf>,
}

/// Gives tokens to tasks, and takes them back.
#[derive(Clone)]
pub struct Identity {
    home: Home,
    tokens: JobTokens,
    server: ServerAddress,
}

impl Identity {
    pub fn new(home: Home, tokens: JobTokens, server: ServerAddress) -> Identity {
        Identity { home, tokens, server }
    }

    /// Adds a token to the environment of a task that starts. Job files set no such variables.
    pub fn equip(&self, lease: LeaseId, env: &mut BTreeMap<String, String>) {
        self.write_token(lease);
        let file = self.file(lease).display().to_string();
        env.insert("BERTH_URL".to_owned(), self.server.url.clone());
        env.insert("BERTH_TOKEN".to_owned(), self.tokens.mint(lease));
        env.insert("BERTH_TOKEN_FILE".to_owned(), file);
        if self.server.certificate.is_some() {
            self.write_certificate(lease);
            env.insert("BERTH_CA".to_owned(), self.certificate(lease).display().to_string());
        }
    }

    /// Adds the variables with which the client of MLflow logs to the run of the job. Variables of the job
    /// take precedence.
    pub fn equip_tracking(&self, start: &LeaseStart, env: &mut BTreeMap<String, String>) {
        if !tracked_run::is_told(&start.run) {
            return;
        }
        let (lease, url) = (start.lease, self.server.url.clone());
        let mut add = |name: &str, value: String| {
            env.entry(name.to_owned()).or_insert(value);
        };
        add(tracked_run::URI, url);
        add(tracked_run::TOKEN, self.tokens.mint_for_tracking(lease));
        if tracked_run::is_resumed(&start.run) {
            add(tracked_run::RUN, tracked_run::run_id(lease.job, start.submitted));
        }
        let pem = self.server.certificate.as_ref().and_then(|path| fs::read_to_string(path).ok());
        if pem.is_some_and(|pem| tracked_run::is_told_certificates(&start.run, &pem)) {
            add(tracked_run::CERTIFICATE, self.certificate(lease).display().to_string());
        }
    }

    /// The task is over, and its token with it.
    pub fn take_back(&self, lease: LeaseId) {
        // It may have had none, or have removed it itself.
        let _ = fs::remove_file(self.file(lease));
    }

    /// Renews the tokens and certificates of all that run on this machine, now and again and again.
    pub fn renew(&self, engine: Handle, node: Name) -> Renewal {
        let identity = self.clone();
        let task = tokio::spawn(async move {
            loop {
                let leases = running(&engine, &node);
                let identity = identity.clone();
                let renewed = tokio::task::spawn_blocking(move || {
                    for lease in leases {
                        identity.write_token(lease);
                        identity.write_certificate(lease);
                    }
                });
                let _ = renewed.await;
                tokio::time::sleep(RENEW).await;
            }
        });
        Renewal(task.abort_handle())
    }

    /// A file of its own for each attempt of a task: what is late about an earlier one must not
    /// touch it.
    fn file(&self, lease: LeaseId) -> PathBuf {
        let name = format!(".berth-token-{}-{}", lease.task, lease.attempt);
        self.home.job(lease.job).join(name)
    }

    fn certificate(&self, lease: LeaseId) -> PathBuf {
        self.home.job(lease.job).join(".berth-ca.pem")
    }

    /// The certificate as it is now, where the server has one.
    fn write_certificate(&self, lease: LeaseId) {
        let Some(of_server) = &self.server.certificate else { return };
        let copied = fs::read(of_server).and_then(|pem| {
            let pem = certificates(&String::from_utf8_lossy(&pem));
            put(&self.certificate(lease), pem.as_bytes())
        });
        note(lease, copied);
    }

    /// A job whose folder cannot be written runs on; only `berth` inside it has no token.
    fn write_token(&self, lease: LeaseId) {
        let token = format!("{}\n", self.tokens.mint(lease));
        note(lease, put(&self.file(lease), token.as_bytes()));
    }
}

fn note(lease: LeaseId, written: io::Result<()>) {
    match written {
        Ok(()) => {}
        // A task has no folder before its start, which gives it a token.
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => {
            tracing::warn!(%lease, %error, "a job could not be given its token or certificate")
        }
    }
}

fn running(engine: &Handle, node: &Name) -> Vec<LeaseId> {
    let core = engine.core();
    let leases = core.jobs.values().flat_map(|job| job.leases.values());
    leases.filter(|lease| lease.row.node == node.as_str()).map(|lease| lease.row.id).collect()
}

/// Writes a file in one piece, for the owner of its folder alone. The folder is the job's own: what
/// is found there, such as a link, is replaced and never followed.
fn put(path: &Path, bytes: &[u8]) -> io::Result<()> {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let folder = path.parent().ok_or(io::ErrorKind::NotFound)?;
    let owner = fs::symlink_metadata(folder)?;
    if !owner.is_dir() {
        return Err(io::ErrorKind::NotADirectory.into());
    }
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    let draft = folder.join(format!(".berth-draft-{}-{count}", std::process::id()));
    let _ = fs::remove_file(&draft);
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&draft)?;
    let written = file.write_all(bytes).and_then(|()| {
        let is = file.metadata()?;
        if (is.uid(), is.gid()) != (owner.uid(), owner.gid()) {
            fchown(&file, Some(owner.uid()), Some(owner.gid()))?;
        }
        fs::rename(&draft, path)
    });
    if written.is_err() {
        let _ = fs::remove_file(&draft);
    }
    written
}

/// Ends the renewal when it is dropped.
pub struct Renewal(AbortHandle);

impl Drop for Renewal {
    fn drop(&mut self) {
        self.0.abort();
    }
}
