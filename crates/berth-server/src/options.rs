//! How a server is to run, and what it says of itself once it does.

use crate::audit_export::ExportPlace;
use crate::listen::ConnectionLimits;
use crate::oidc::OidcOptions;
use crate::tls::Tls;
use crate::webhook::Webhook;
use berth_api::wire;
use berth_blobs::{Address, Keys};
use berth_machine::{CheckAtStart, KeepOutput};
use berth_model::{Micros, Name, Span};
use berth_node::{Declared, Isolation, Launcher, PowerCaps, Wanted};
use berth_service::sessions::SessionLimits;
use berth_service::{BlobLimits, FigureOptions};
use ipnet::IpNet;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use url::Url;

/// How a server is to run.
#[derive(Debug, Clone)]
pub struct Options {
    pub home: PathBuf,
    pub listen: SocketAddr,
    pub tls: Option<Tls>,
    pub connections: ConnectionLimits,
    /// SQLite in the home where left out.
    pub database: Option<String>,
    /// What secrets are sealed with; a file in the home where left out. Replicas share one.
    pub key: Option<PathBuf>,
    /// What the audit log is signed with; a file in the home where left out. Replicas share one.
    pub audit_key: Option<PathBuf>,
    /// Where the audit log is exported to as it grows.
    pub audit_exports: Vec<ExportPlace>,
    /// Networks that messages may go to although they are not public.
    pub notify_allow: Vec<IpNet>,
    /// The name of this machine.
    pub node: String,
    pub place: Place,
    pub prices: BTreeMap<Name, Micros>,
    /// How long what has ended is kept in detail; for ever where left out.
    pub keep: Option<Span>,
    /// Grams of CO₂ for each kWh, where that is known.
    pub carbon_intensity: Option<i64>,
    /// Where artifacts and data are kept, and how much of them.
    pub blobs: BlobOptions,
    /// How long to keep deleted experiments and runs; by default forever.
    pub keep_deleted_runs: Option<Span>,
    /// How long browsers stay signed in.
    pub sessions: SessionLimits,
    /// Where browsers find the server, where it does not see that itself.
    pub public_url: Option<Url>,
    /// Who says who somebody is, where a provider does.
    pub oidc: Option<OidcOptions>,
    /// Who becomes the first admin.
    pub admin: String,
    pub config: Vec<wire::ConfigEntry>,
}

/// Where artifacts and data are kept, and how much of them.
#[derive(Debug, Clone)]
pub struct BlobOptions {
    /// A bucket with its keys; the server's own folder where left out.
    pub bucket: Option<(Address, Keys)>,
    /// What stays free on the disk of the server.
    pub reserve: u64,
    /// The largest object.
    pub most: u64,
    pub limits: BlobLimits,
}

/// Where jobs run.
#[derive(Debug, Clone)]
pub enum Place {
    Machine {
        /// GPUs that are bookkeeping, instead of the real ones.
        gpus: Option<Declared>,
        /// A file that says what declared GPUs tell.
        recording: Option<PathBuf>,
        power: PowerCaps,
        /// Whether GPUs that owe a check are checked first.
        gpu_check: CheckAtStart,
        launcher: Launcher,
        cgroups: bool,
        isolation: Wanted,
        /// Folders that jobs of everybody see where jobs have no accounts of their own.
        shares: Vec<PathBuf>,
        /// How long the output of ended jobs is kept.
        keep_output: KeepOutput,
        figures: FigureOptions,
        /// What copies of data may take.
        data_cache: u64,
    },
    Cluster {
        options: Box<berth_cluster::Options>,
        /// Nothing where pods name their scheduler themselves.
        webhook: Option<Webhook>,
    },
}

impl Place {
    /// Where the API server asks about pods, if it does.
    pub fn webhook(&self) -> Option<&Webhook> {
        match self {
            Place::Machine { .. } => None,
            Place::Cluster { webhook, .. } => webhook.as_ref(),
        }
    }
}

/// What people have to know of a server that runs.
#[derive(Debug, Clone)]
pub struct Started {
    pub url: String,
    /// Where the API server asks about pods, if it does.
    pub webhook: Option<SocketAddr>,
    pub home: PathBuf,
    pub token: PathBuf,
    pub database: String,
    pub gpus: String,
    pub has_gpus: bool,
    pub declared: bool,
    /// Why jobs are not held to their CPU and memory, where they are not.
    pub unlimited: Option<String>,
    /// How jobs are kept apart, where Berth starts their processes.
    pub isolation: Option<Isolation>,
}

/// How far a server has got.
#[derive(Debug, Clone, Copy)]
pub enum Stage<'a> {
    /// Another replica leads.
    StandsBy {
        url: &'a str,
        leader: &'a str,
    },
    Ready(&'a Started),
}

/// Hears how far a start is.
pub type Tell<'a> = &'a dyn Fn(Stage<'_>);
