//! The server: HTTP routes, listening, and wiring. No policy and no business logic: what is started or
//! stopped is what the core decided, and what a route does is a function of `berth-service`.

mod app;
mod audit_export;
mod error;
mod first;
mod http;
mod lead;
mod listen;
mod notifier;
mod oidc;
mod options;
mod peer;
mod restore;
mod serve;
mod tls;
mod tracking;
mod tracking_clean;
mod tracking_orphans;
mod tracking_place;
mod webhook;

pub use audit_export::{ExportPlace, PlaceError};
pub use berth_blobs::{Address as BlobAddress, Keys as BlobKeys};
pub use berth_cluster::{
    AdmissionWebhook, Compat, FetchSettings, FigureSources, HoldError, LeaseOptions, NodeData,
    Options as ClusterOptions, Peer, PeerMap, PodSettings, Publish, crds, hold_gpu,
};
pub use berth_machine::{CheckAtStart, KeepOutput, shown_check};
pub use berth_service::sessions::SessionLimits;
pub use berth_service::sign_in::{GroupRule, OidcRules};
pub use berth_service::{BlobLimits, FigureOptions, KeepFigures};
pub use error::Error;
pub use listen::ConnectionLimits;
pub use oidc::{OidcError, OidcOptions};
pub use options::{BlobOptions, Options, Place, Stage, Started};
pub use restore::{Restore, Restored, Tracked, restore};
pub use serve::serve;
pub use tls::{Tls, TlsError};
pub use webhook::Webhook;
