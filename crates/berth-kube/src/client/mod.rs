//! The client of the API server: requests, watches, bindings, events, logs, terminals and leader
//! election, with the errors and the metrics of all of these; and of a kubelet's socket.

mod access_review;
mod api;
mod binding;
mod discovery;
mod error;
pub mod event;
mod exec;
mod leader_election;
mod log;
mod metrics;
mod pod_resources;
mod protobuf;
mod rbac;
mod watch;

pub(crate) use api::decode;
pub use api::{Api, ListResult, PatchType, percent_encode};
pub use discovery::GroupResource;
pub use error::{Error, Result};
pub use exec::{Exec, ExecEvent};
pub use leader_election::{AcquiredLease, HeldLease, LeaderElection};
pub use log::{LogLine, LogStream};
pub use metrics::{BindOutcome, ClientMetrics, WatchCounts};
pub use pod_resources::{PodDevices, PodResourcesError, pod_devices};
pub use rbac::{AllowedRules, Permission};
pub use watch::{Change, WatchUpdate, watch_objects, watch_objects_protobuf};
