//! What the operator of a server says about the cluster.

use crate::compat::Compat;
use berth_model::Bytes;
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
    /// Whether an event on each pod says where it was scheduled.
    pub scheduled_events: bool,
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
    pub fetch: FetchSettings,
    /// Where nodes keep the data of jobs for later ones, if they do.
    pub node_data: Option<NodeData>,
}

impl PodSettings {
    /// The level of Pod Security in the namespaces of teams. `baseline` keeps pods away from the machine they
    /// run on and lets them be root inside, which most images for training are. It allows no folder of a
    /// node.
    pub fn pod_security(&self) -> &'static str {
        if self.node_data.is_some() { "privileged" } else { "baseline" }
    }
}

/// A folder of each node for versions of data.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeData {
    pub path: String,
    /// What all versions on a node may take.
    pub most: Bytes,
}

/// How pods get the code that jobs were submitted with, as far as that is known.
#[derive(Debug, Clone, Default)]
pub struct FetchSettings {
    /// An image with this program.
    pub image: Option<String>,
    /// Where pods reach this server.
    pub url: Option<String>,
    /// The certificate of this server, where it speaks TLS.
    pub certificate: Option<PathBuf>,
}

/// How a pod gets the code of its job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fetch {
    pub image: String,
    pub url: String,
    pub certificate: Option<PathBuf>,
}

impl FetchSettings {
    /// All of it, or what is missing and what to do.
    pub fn check(&self) -> Result<Fetch, String> {
        let missing = |what: &str, flag: &str| {
            format!(
                "pods get no code and no data from this server, because it {what}; have an admin start \
                 it with {flag} (the Helm chart does), or build the files into the image, or mount \
                 a volume that has them"
            )
        };
        let image = self
            .image
            .clone()
            .ok_or_else(|| missing("knows no image with its own program", "--fetch-image IMAGE"))?;
        let url = self
            .url
            .clone()
            .ok_or_else(|| missing("does not know where pods reach it", "--fetch-url URL"))?;
        Ok(Fetch { image, url, certificate: self.certificate.clone() })
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_pods_need_to_fetch_code_is_missed_with_the_flag_that_gives_it() {
        let mut known = FetchSettings::default();
        let why = known.check().unwrap_err();
        assert!(why.contains("knows no image") && why.contains("--fetch-image IMAGE"), "{why}");
        known.image = Some("berth:1".to_owned());
        let why = known.check().unwrap_err();
        assert!(why.contains("where pods reach it") && why.contains("--fetch-url URL"), "{why}");
        known.url = Some("https://berth.berth.svc:7117".to_owned());
        assert!(known.check().is_ok());
    }
}
