//! What the operator of a server says about the cluster.

use crate::compat::Compat;
use berth_service::{FigureOptions, KeepFigures};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

/// Which cluster, and which of its pods.
#[derive(Debug, Clone)]
pub struct Options {
    pub kubeconfig: Option<PathBuf>,
    pub context: Option<String>,
    /// Pods that name one of these as their scheduler are ours.
    pub scheduler_names: Vec<String>,
    /// The queue of pods that name none.
    pub queue: String,
    /// The schedulers that Berth replaces, and what their names mean here.
    pub compat: Compat,
    pub lease: LeaseOptions,
    /// Where pods hold the GPUs that are shared by fractions, and what they run.
    pub reservation_namespace: String,
    pub reservation_image: String,
    /// How urgent those pods are; the default of the cluster where left out.
    pub reservation_priority: Option<String>,
    /// How jobs of Berth's own run.
    pub jobs: PodSettings,
    pub figures: FigureSources,
    /// Nothing where people know where the server is.
    pub publish: Option<Publish>,
}

/// The Lease that says which replica leads.
#[derive(Debug, Clone)]
pub struct LeaseOptions {
    /// Our own where left out.
    pub namespace: Option<String>,
    pub name: String,
    /// After so long without a sign of life another replica leads.
    pub duration: Duration,
}

/// How Berth's own jobs run on the cluster.
#[derive(Debug, Clone, Default)]
pub struct PodSettings {
    /// There are none, and no rights are needed for them.
    pub are_off: bool,
    /// The image of jobs that name none.
    pub image: Option<String>,
    /// The claim, in each team's namespace, that keeps what jobs save.
    pub checkpoints: Option<String>,
    /// What the namespaces of teams begin with.
    pub namespace_prefix: String,
    /// Namespaces of teams that have another one.
    pub namespaces: BTreeMap<String, String>,
    /// Whether every team has its namespace, or only those whose jobs have run.
    pub teams: bool,
}

/// Whether figures of GPUs are gathered, and from which pods.
#[derive(Debug, Clone)]
pub struct FigureSources {
    pub figures: FigureOptions,
    /// Label selectors of the pods that tell them. Of several pods on a node the one that the first
    /// of these finds is asked.
    pub selectors: Vec<String>,
    /// Only pods in these namespaces; where there are none, in all but those of teams.
    pub namespaces: Vec<String>,
    /// The port that they listen on; the one that they call `metrics`, or 9400, where left out.
    pub port: Option<u16>,
}

impl Default for FigureSources {
    /// From nowhere.
    fn default() -> FigureSources {
        FigureSources {
            figures: FigureOptions { every: None, keep: KeepFigures::default() },
            selectors: Vec::new(),
            namespaces: Vec::new(),
            port: None,
        }
    }
}

/// The Service of ours, and the address to publish for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Publish {
    pub service: String,
    pub address: SocketAddr,
}
