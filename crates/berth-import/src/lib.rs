//! Moves what is tracked from one place to another: experiments, runs, models and their files.
//!
//! A place is a server that speaks MLflow's API, MLflow's SQLite database or its folder of files. Each
//! is a [`Source`]; those that can be written are a [`Sink`] too, and so can be read back and compared.
//! This crate has no rights of its own: into Berth it writes as any client does. It keeps no journal.
//! What has come from where stands in tags at the target, so an import that was cut off goes on where
//! it stopped, also on another machine.

pub mod check;
pub mod copy;
mod error;
mod files;
mod http;
mod model;
mod report;
mod sink;
mod source;
mod sqlite;
mod sums;
pub mod tags;

pub use copy::{Checked, Options, Watch, copy};
pub use error::{Error, Result};
pub use files::FileStore;
pub use http::Server;
pub use model::{
    Content, Dataset, Experiment, FileInfo, LoggedModel, Metric, ModelMetric, Owner, Pairs, Place,
    Point, RegisteredModel, Run, Version,
};
pub use report::{Difference, ExperimentReport, ModelsReport, Problem, Problems, Report, Totals};
pub use sink::{Cuts, NewRun, NewVersion, Sink, Target};
pub use source::{Fut, Pages, Source};
pub use sqlite::Database;
