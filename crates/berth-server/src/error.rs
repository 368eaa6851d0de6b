//! Why a server could not start, or had to end.

use crate::oidc::OidcError;
use crate::tls::TlsError;
use berth_engine::{BootError, Fatal, Refused};
use berth_machine::ShareError;
use berth_service::audit_end::PrepareError;
use berth_service::audit_key::KeyError;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("cannot use the folder {path}: {source}. Name another one with --home")]
    Home { path: PathBuf, source: io::Error },
    #[error(
        "{address} can be reached from other machines, so it needs TLS: give --tls-cert and \
         --tls-key, or listen on 127.0.0.1"
    )]
    NeedsTls { address: SocketAddr },
    #[error(
        "{address} is in use. Another server may run there already; stop it, or choose another \
         port with --listen"
    )]
    PortInUse { address: SocketAddr },
    #[error("cannot listen on {address}: {source}")]
    Listen { address: SocketAddr, source: io::Error },
    #[error(
        "a server runs on {}. Stop it first: it would go on with what the backup does not know",
        home.display()
    )]
    ServerRuns { home: PathBuf },
    #[error(
        "cannot read what GPUs are to tell from {}: {source}. docs/figures.md has an example",
        path.display()
    )]
    Recording { path: PathBuf, source: io::Error },
    #[error(transparent)]
    Oidc(OidcError),
    #[error("--share: {0}")]
    Share(ShareError),
    #[error(transparent)]
    Key(berth_machine::KeyError),
    #[error(transparent)]
    Tls(TlsError),
    #[error("{}", with_source(.0))]
    Blobs(berth_blobs::Error),
    #[error(transparent)]
    Store(berth_store::Error),
    #[error(transparent)]
    Tracking(berth_tracker_store::OpenError),
    #[error(transparent)]
    RestoreTracking(berth_tracker_store::BackupError),
    #[error(transparent)]
    Node(berth_node::Error),
    #[error(transparent)]
    Kube(berth_kube::Error),
    #[error(transparent)]
    Boot(BootError),
    #[error(transparent)]
    AuditKey(KeyError),
    #[error(
        "the audit log of the backup was signed with {ids}, which is not in {}. Put the audit.key \
         of the server that made the backup there, or name it with --audit-key; if the file has \
         other keys, put those of the backup before them. Only if the key is lost for good: with \
         --without-audit-key Berth restores rows that it cannot verify, and the audit log says so",
        path.display()
    )]
    AuditKeyMissing { path: PathBuf, ids: String },
    #[error("the audit log could not be made ready: {0}")]
    Audit(PrepareError),
    #[error("the first admin could not be set up: {0}")]
    First(FirstError),
    #[error(transparent)]
    Fatal(Fatal),
    #[error("the server failed: {0}")]
    Serve(io::Error),
}

/// Why the first admin could not be set up.
#[derive(Debug, thiserror::Error)]
pub enum FirstError {
    #[error(transparent)]
    Store(berth_store::Error),
    #[error(transparent)]
    Refused(Refused),
    #[error("{}: {source}", path.display())]
    Write { path: PathBuf, source: std::io::Error },
}

/// What went wrong, with what it comes from.
fn with_source(error: &berth_blobs::Error) -> String {
    let source = std::error::Error::source(error);
    source.map_or_else(|| error.to_string(), |source| format!("{error}: {source}"))
}
