//! The control loop and everything people and programs talk to. Wiring, no policy: what is started
//! or stopped is what the core decided, and who may ask for what is one table in `berth-api`.

mod app;
mod clock;
mod engine;
mod first;
mod forecast;
mod gpus;
mod hands;
mod home;
mod http;
mod kube;
mod lead;
mod listen;
mod machine;
mod mail;
mod notices;
mod ports;
mod restore;
mod schedule;
mod serve;
mod setup;
mod task;
mod token;
mod vault;
mod views;

pub use kube::own::Settings as PodSettings;
pub use kube::publish::Publish;
pub use kube::webhook::{Adoption, Webhook};
pub use kube::{
    HoldError, LeaseOptions, Map as PeerMap, Options as ClusterOptions, Peer, StandIn, crds,
    hold_gpu,
};
pub use listen::{EncryptError, Tls, TlsError};
pub use restore::{Restored, restore};
pub use serve::{Error, Options, Place, Stage, Started, serve};
