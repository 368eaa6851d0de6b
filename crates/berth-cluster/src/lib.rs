//! A Kubernetes cluster as a site: nodes and pods are followed, pods are bound and evicted.
//!
//! The API server is the truth about what runs where, the log about what was asked for and decided.
//! A server that starts lists everything before it plans.
//!
//! Deliberately absent: any scheduling choice, and HTTP routes.

mod admit;
mod adopt;
mod around;
mod claims;
mod crd;
mod devices;
mod dra;
mod dynamic;
mod foreign;
mod gang;
mod heed;
mod holder;
mod hypernodes;
mod mirror;
mod names;
mod native;
mod nodes;
mod observation;
mod orders;
mod own;
mod patience;
mod prepare;
mod publish;
mod queued;
mod read;
mod reasons;
mod reserve;
mod rights;
mod settle;
mod shares;
mod sight;
mod site;
mod stand_in;
mod storage;
mod topology;
mod vgpu;
mod whose;
mod window;

pub use berth_kube::admission::Adoption;
pub use crd::crds;
pub use holder::{HoldError, hold_gpu};
pub use own::{CONTAINER, Jobs, Logs, Settings as PodSettings, Step, pod_ref};
pub use publish::Publish;
pub use site::{BeginError, Cluster, Follows, LeaseOptions, Options, connect};
pub use stand_in::{Map as PeerMap, Peer, StandIn};
