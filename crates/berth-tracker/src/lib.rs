//! Experiments, runs and registered models, as clients of MLflow know them: the requests, the checks
//! and refusals, and the answers.
//!
//! Deliberately absent: SQL, sockets and clocks. A [`Store`] keeps everything, an [`Actor`] knows
//! the rights of the caller, and requests carry the time. This crate does not handle the bytes of
//! artifacts: an experiment only has their location.

mod api;
mod encode;
mod error;
mod event;
mod fields;
pub mod grammar;
pub mod limits;
mod model;
mod page;
mod ports;
pub mod value;
mod watch;

pub use api::{
    Access, Changed, Named, NamedModel, OPS, Op, Reply, Request, Restored, answer, find, hook,
    hooks_of, model_shares, set_model_share, set_share, shares,
};
pub use error::{Code, Error, Result};
pub use event::{EVENTS, Event, Tried};
pub use model::{
    DEFAULT_EXPERIMENT, Dataset, Experiment, Input, Latest, LoggedModel, ModelMetric, ModelVersion,
    Point, RegisteredModel, Run, RunHead, RunModel, Status, Tags, Webhook, pairs_of_json,
    pairs_to_json,
};
pub use ports::{
    Actor, Best, BestQuery, DatasetSummary, DocChange, DocKey, DocSet, Edit, Effect, File, Fut,
    HistoryQuery, Kind, Load, Metric, NewRun, NewerQuery, OfModel, Outbox, ReachedQuery, ReadBy,
    Right, RunChange, RunQuery, SampleQuery, Store, View, read,
};
pub use watch::Watch;
