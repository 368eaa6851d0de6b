//! A Kubernetes cluster as a site: nodes and pods are followed, pods are bound and evicted.
//!
//! The API server is the truth about what runs where, the log about what was asked for and decided.
//! A server that starts lists everything before it plans.
//!
//! Deliberately absent: any scheduling choice, and HTTP routes.

mod actuate;
mod compat;
mod constraints;
mod crd;
mod figures;
mod observe;
mod options;
mod rbac;
mod retry;
mod shared;
mod site;
mod state;
mod tenancy;
mod view;

pub use actuate::holder::{HoldError, hold_gpu};
pub use actuate::managed::{Logs, ManagedJobs, Step};
pub use berth_kube::admission::AdmissionWebhook;
pub use compat::{BadPeerMap, Compat, Peer, PeerMap, UnknownPeer};
pub use crd::crds;
pub use options::{
    FetchSettings, FigureSources, LeaseOptions, NodeData, Options, PodSettings, Publish,
};
pub use site::{BeginError, Cluster, ClusterTasks, connect, gather_figures};
pub use view::{CONTAINER, pod_ref};
