//! Replicas of one server: one leads, the others stand by and answer nothing but that.

use crate::error::Error;
use crate::http::answer::{Failure, Json};
use crate::options::{Stage, Tell};
use axum::Router;
use axum::routing::get;
use berth_api::{Code, wire};
use berth_kube::{AcquiredLease, Api, LeaderElection};
use ring::rand::{SecureRandom, SystemRandom};
use std::fs::{File, OpenOptions};
use std::io::{self, Read, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use tokio::sync::watch;

/// A replica of a server, and how it comes to lead.
pub struct Replica {
    pub api: Api,
    election: LeaderElection,
    /// No other process can take the name of this replica while this is open.
    _identity: File,
}

impl Replica {
    /// Finds the API server, and who this is there.
    pub async fn open(
        cluster: &berth_cluster::Options,
        node: &str,
        file: &Path,
    ) -> Result<Replica, Error> {
        let api = berth_cluster::connect(cluster).await.map_err(Error::Kube)?;
        let (identity, held) =
            identity(file).map_err(|source| Error::Home { path: file.to_owned(), source })?;
        let namespace = cluster.lease.namespace.as_deref().unwrap_or_else(|| api.namespace());
        let identity = format!("{node}_{identity}");
        let (name, lasts) = (&cluster.lease.name, cluster.lease.duration);
        let election = LeaderElection::new(api.clone(), namespace, name, identity, lasts);
        Ok(Replica { api, election, _identity: held })
    }

    /// Waits until this replica leads. Meanwhile `leader` has the name of the one that does.
    pub async fn win(
        &self,
        url: &str,
        leader: &watch::Sender<String>,
        tell: Tell<'_>,
    ) -> Result<AcquiredLease, Error> {
        let told = |holder: &str| {
            leader.send_replace(holder.to_owned());
            if !holder.is_empty() {
                tell(Stage::StandsBy { url, leader: holder });
            }
        };
        self.election.acquire(told).await.map_err(Error::Kube)
    }
}

/// A name that no other replica has. It outlives the process, so that a process that is started in
/// the place of one that was killed leads at once.
fn identity(path: &Path) -> io::Result<(String, File)> {
    let mut file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(false)
        .mode(0o600)
        .open(path)?;
    file.try_lock().map_err(|_| io::Error::other("another server uses this folder"))?;
    let mut known = String::new();
    file.read_to_string(&mut known)?;
    if known.is_empty() {
        let mut bytes = [0; 8];
        SystemRandom::new().fill(&mut bytes).map_err(|_| io::Error::other("no random numbers"))?;
        known = hex::encode(bytes);
        file.write_all(known.as_bytes())?;
        file.sync_all()?;
    }
    Ok((known, file))
}

/// The answer of a standby replica: it is alive, and the client should ask the leader.
pub fn router(leader: watch::Receiver<String>) -> Router {
    let alive = leader.clone();
    let health = get(async move || {
        let parts = [("lead".to_owned(), stands_by(&alive))].into();
        Json(wire::Health { ok: true, parts })
    });
    let elsewhere = async move || Failure::new(Code::NotReady, stands_by(&leader));
    Router::new().route("/healthz", health).fallback(elsewhere)
}

fn stands_by(leader: &watch::Receiver<String>) -> String {
    match leader.borrow().as_str() {
        "" => "this replica is on standby, and no replica leads yet".to_owned(),
        leader => format!("this replica is on standby; {leader} leads"),
    }
}
