//! The Kubernetes adapter: objects of the API server become the nouns of `berth-model`, and
//! decisions of the scheduler become bindings and preemptions.
//!
//! This crate makes no scheduling choice. Requests, constraints and gang annotations are what the
//! manifest says. What the manifest says in a way that is not supported is an error value with a
//! text for its author, and is never ignored: the pod waits and shows that text.
//!
//! | module | what it holds |
//! | --- | --- |
//! | [`quantity`] | quantities such as `500m`, `64Gi`, `1e3` |
//! | [`object`] | the fields of pods, nodes, owners, volumes and classes that bear on scheduling |
//! | [`selector`] | label selectors and label expressions |
//! | [`pod`] | resource requests, node constraints, inter-pod constraints, shared GPUs |
//! | [`node`] | a node with its GPUs, as the device plugin advertises them |
//! | [`hypernode`] | network topology as Volcano's HyperNodes describe it |
//! | [`gang`] | gang annotations of Berth, KAI, Kueue, Volcano and Kubernetes, and of owners |
//! | [`queue`] | queues of KAI, Kueue and Volcano |
//! | [`dra`] | dynamic resource allocation: slices, classes, claims, allocations |
//! | [`admission`] | the mutating webhook that gives pods with GPUs our scheduler's name |
//! | `client` | requests, watches, bindings, [events](event), logs, exec, leader election, the kubelet's list of devices |

pub mod admission;
mod client;
pub mod dra;
mod fnv;
pub mod gang;
pub mod hypernode;
mod invalid_field;
pub mod node;
pub mod object;
pub mod pod;
pub mod quantity;
pub mod queue;
pub mod selector;

pub use client::event;
pub use client::{
    AcquiredLease, AllowedRules, Api, BindOutcome, Change, ClientMetrics, Error, Exec, ExecEvent,
    GroupResource, HeldLease, LeaderElection, ListResult, LogLine, LogStream, PatchType,
    Permission, PodDevices, PodResourcesError, Result, WatchCounts, WatchUpdate, percent_encode,
    pod_devices, watch_objects, watch_objects_protobuf,
};
pub use invalid_field::InvalidField;
