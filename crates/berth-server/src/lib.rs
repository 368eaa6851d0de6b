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

pub use kube::Options as ClusterOptions;
pub use listen::{EncryptError, Tls, TlsError};
pub use restore::{Restored, restore};
pub use serve::{Error, Options, Place, Started, serve};
