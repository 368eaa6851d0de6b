//! The server: HTTP routes, listening, and wiring. No policy and no business logic: what is started or
//! stopped is what the core decided, and what a route does is a function of `berth-service`.

mod app;
mod error;
mod first;
mod http;
mod lead;
mod listen;
mod notifier;
mod restore;
mod serve;
mod webhook;

pub use berth_cluster::{
    Adoption, HoldError, LeaseOptions, Options as ClusterOptions, Peer, PeerMap, PodSettings,
    Publish, StandIn, crds, hold_gpu,
};
pub use error::Error;
pub use listen::{EncryptError, Tls, TlsError};
pub use restore::{Restored, restore};
pub use serve::{Options, Place, Stage, Started, serve};
pub use webhook::Webhook;
