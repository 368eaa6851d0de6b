//! Moves experiments, runs, models and their files from one place to another.
//!
//! A place is a server with MLflow's API, MLflow's SQLite database or its folder of files. Each is a
//! [`Source`]; writable places are also a [`Sink`], so that Berth can read them back and compare.
//! This crate has no rights of its own: it writes into Berth like any client. It keeps no journal. Tags at
//! the target record the origin of each entity, so an interrupted import can resume, even on another
//! machine.

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
mod transfer;

pub use copy::{Checked, Options, Watch};
pub use error::{Error, Result};
pub use files::FileStore;
pub use http::Server;
pub use model::{
    Content, Dataset, Experiment, FileInfo, LoggedModel, Metric, ModelMetric, Owner, Pairs, Place,
    Point, RegisteredModel, Run, Version,
};
pub use report::{Difference, ExperimentReport, ModelsReport, Problem, Problems, Report, Totals};
pub use sink::{Cuts, NewRun, NewVersion, Sink, Target, Write};
pub use source::{Fut, Pages, Source};
pub use sqlite::Database;
pub use transfer::copy;
