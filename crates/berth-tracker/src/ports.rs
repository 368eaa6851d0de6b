//! What the use cases need from outside: a store and the caller.

use crate::error::{Error, Result};
use crate::event::{Event, Tried};
use crate::grammar::{Clause, Order};
use crate::model::{
    Experiment, Input, ModelMetric, Point, Run, RunHead, RunModel, Status, Webhook,
};
use crate::watch::Watch;
use futures_util::future::BoxFuture;
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

pub type Fut<'a, T> = BoxFuture<'a, Result<T>>;

/// What a caller wants to do in a team.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Right {
    Read,
    /// Create, and log.
    Write,
    /// Delete, restore and share them.
    Manage,
}

/// The caller.
pub trait Actor: Send + Sync {
    fn user(&self) -> &str;
    /// The team of this request.
    fn team(&self) -> Option<&str>;
    /// Whether the caller has the right in a team. `by` is the user who created the entity.
    fn may(&self, right: Right, team: &str, by: Option<&str>) -> bool;
    /// Whether the team exists.
    fn is_team(&self, name: &str) -> bool;
    /// The sender of messages, if this server sends any.
    fn outbox(&self) -> Option<&dyn Outbox> {
        None
    }
    /// What the id `0` means for the caller, if not the default experiment of the team.
    fn home(&self) -> Option<i64> {
        None
    }
    /// Whether the caller is a job whose client resumes that run. Such a program may log a param again
    /// with another value after a requeue.
    fn resumes(&self, _run: &str) -> bool {
        false
    }
    /// Lists a folder of artifacts by name. A path begins with a team. If the caller may not read it, the
    /// answer is "not found".
    fn files<'a>(&'a self, folder: &'a str) -> Fut<'a, Vec<File>> {
        Box::pin(async move { Err(Error::absent(format!("There is no folder {folder}"))) })
    }
}

/// Sends messages of the registry.
pub trait Outbox: Send + Sync {
    /// Whether the server may send messages to a URL.
    fn check_url(&self, url: &str) -> Result<()>;
    /// Encrypts the secret of a webhook with the key of the server.
    fn seal(&self, team: &str, id: &str, secret: &str) -> String;
    /// Sends one message now and waits for the response.
    fn test<'a>(&'a self, team: &'a str, hook: &'a Webhook, event: &'a Event) -> Fut<'a, Tried>;
}

/// A file or folder of artifacts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct File {
    /// The name without the folder.
    pub name: String,
    /// The size of a file; `None` for a folder.
    pub bytes: Option<u64>,
}

/// Entities that the store keeps as documents. A team has few of each, and Berth reads them whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Experiment = 1,
    RegisteredModel = 2,
    ModelVersion = 3,
    LoggedModel = 4,
    Webhook = 5,
    /// Lists the models that are shared with a team: the scope is that team or `*`, the name is
    /// `TEAM/MODEL`. The model itself decides who may read it.
    ModelShare = 6,
}

/// The key of a document.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct DocKey {
    pub kind: Kind,
    /// A team; for a logged model its experiment.
    pub scope: String,
    pub name: String,
    /// The number of an experiment or version.
    pub sub: i64,
}

/// Which documents to read: all in a scope, all of a name in it, or one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Load {
    pub kind: Kind,
    pub scope: String,
    pub name: Option<String>,
    pub sub: Option<i64>,
}

/// A side effect of a change of documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Effect {
    /// Deletes or restores all runs of an experiment.
    RunsOf { experiment: i64, deleted: bool, at: i64 },
}

/// Documents in a transaction. No other change interferes.
pub struct DocSet {
    docs: BTreeMap<DocKey, String>,
    touched: BTreeSet<DocKey>,
    /// The number that the next new experiment gets.
    pub next_experiment: i64,
    pub effects: Vec<Effect>,
}

impl DocSet {
    pub fn new(docs: impl IntoIterator<Item = (DocKey, String)>, next_experiment: i64) -> DocSet {
        let docs = docs.into_iter().collect();
        DocSet { docs, touched: BTreeSet::new(), next_experiment, effects: Vec::new() }
    }

    pub fn get<T: DeserializeOwned>(&self, key: &DocKey) -> Result<Option<T>> {
        self.docs.get(key).map(|doc| read(doc)).transpose()
    }

    /// The documents of a kind.
    pub fn all<T: DeserializeOwned>(&self, kind: Kind) -> Result<Vec<(DocKey, T)>> {
        let of_kind = self.docs.iter().filter(|(key, _)| key.kind == kind);
        of_kind.map(|(key, doc)| Ok((key.clone(), read(doc)?))).collect()
    }

    pub fn put<T: Serialize>(&mut self, key: DocKey, value: &T) {
        let doc = serde_json::to_string(value).expect("documents are plain data");
        self.docs.insert(key.clone(), doc);
        self.touched.insert(key);
    }

    pub fn remove(&mut self, key: &DocKey) {
        self.docs.remove(key);
        self.touched.insert(key.clone());
    }

    /// The changes. `None` removes a document.
    pub fn changes(&self) -> impl Iterator<Item = (&DocKey, Option<&str>)> {
        self.touched.iter().map(|key| (key, self.docs.get(key).map(String::as_str)))
    }
}

/// Reads a document.
pub fn read<T: DeserializeOwned>(doc: &str) -> Result<T> {
    serde_json::from_str(doc)
        .map_err(|error| Error::internal(format!("a document cannot be read: {error}")))
}

/// Changes documents and returns the answer.
pub type Edit = Box<dyn FnOnce(&mut DocSet) -> Result<Vec<u8>> + Send>;

/// An atomic change of documents.
pub struct DocChange {
    pub load: Vec<Load>,
    pub edit: Edit,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metric {
    pub key: String,
    pub point: Point,
    /// The logged model of a metric, with the data set of the measurement.
    pub model: Option<OfModel>,
}

#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct OfModel {
    pub id: String,
    pub dataset_name: String,
    pub dataset_digest: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewRun {
    pub id: String,
    pub experiment: i64,
    pub name: String,
    pub user: String,
    pub by: String,
    pub start: i64,
    pub tags: Vec<(String, String)>,
}

/// A change of one run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunChange {
    Create(NewRun),
    Update {
        run: RunHead,
        status: Option<Status>,
        end: Option<i64>,
        name: Option<String>,
    },
    Stage {
        run: RunHead,
        deleted: bool,
        at: i64,
    },
    Log {
        run: RunHead,
        metrics: Vec<Metric>,
        params: Vec<(String, String)>,
        tags: Vec<(String, String)>,
    },
    DeleteTag {
        run: RunHead,
        key: String,
    },
    Inputs {
        run: RunHead,
        datasets: Vec<Input>,
        models: Vec<RunModel>,
    },
    /// Moves the run, with everything logged to it, to another experiment.
    Move {
        run: RunHead,
        experiment: i64,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum View {
    Active,
    Deleted,
    All,
}

#[derive(Debug, Clone, PartialEq)]
pub struct RunQuery {
    /// Includes the location of artifacts, which a search can filter by.
    pub experiments: Vec<i64>,
    pub view: View,
    pub clauses: Vec<Clause>,
    pub orders: Vec<Order>,
    pub offset: u64,
    pub limit: usize,
}

/// Points of one metric of a run, in the order of steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryQuery<'a> {
    pub run: &'a RunHead,
    pub key: &'a str,
    pub offset: u64,
    pub limit: usize,
}

/// Points of one metric of a run after a step and a time, ordered by step and time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NewerQuery<'a> {
    pub run: &'a RunHead,
    pub key: &'a str,
    /// The step and time of the last known point; `None` for all points.
    pub after: Option<(i64, i64)>,
    pub limit: usize,
}

/// A sample of the points of one metric between two steps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SampleQuery<'a> {
    pub run: &'a RunHead,
    pub key: &'a str,
    pub steps: Option<(i64, i64)>,
    pub most: usize,
}

/// The best value of a metric for each of these runs of one experiment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BestQuery<'a> {
    pub experiment: i64,
    pub key: &'a str,
    pub runs: &'a [i64],
    /// Whether higher values are better.
    pub higher: bool,
}

/// The best value of a run, as stored. NaN is never the best.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Best {
    pub run: i64,
    pub value: i64,
}

/// When a metric of each run first reached a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReachedQuery<'a> {
    pub of: BestQuery<'a>,
    /// As stored.
    pub goal: i64,
}

/// A data set of an experiment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DatasetSummary {
    pub experiment: i64,
    pub name: String,
    pub digest: String,
    pub context: String,
}

/// What to look for among the inputs of runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReadBy<'a> {
    /// A data set with this digest, in any experiment.
    Digest(&'a str),
    /// The logged model with this id.
    Model(&'a str),
}

/// The store. A change is durable when its future is ready.
pub trait Store: Send + Sync {
    /// Experiments are in memory, all of them.
    fn experiment(&self, no: i64) -> Option<Arc<Experiment>>;
    fn experiment_named(&self, team: &str, name: &str) -> Option<Arc<Experiment>>;
    fn experiments(&self) -> Vec<Arc<Experiment>>;

    fn edit(&self, change: DocChange) -> Fut<'_, Vec<u8>>;
    fn write(&self, change: RunChange) -> Fut<'_, ()>;

    fn docs(&self, load: Load) -> Fut<'_, Vec<(DocKey, String)>>;
    fn count(&self, kind: Kind, scope: String) -> Fut<'_, u64>;
    /// The document of a kind with a unique name, in any scope.
    fn named(&self, kind: Kind, name: String) -> Fut<'_, Option<(DocKey, String)>>;

    fn run_head<'a>(&'a self, id: &'a str) -> Fut<'a, Option<RunHead>>;
    /// Reads runs in this order. Skips runs that do not exist.
    fn runs<'a>(&'a self, numbers: &'a [i64]) -> Fut<'a, Vec<Run>>;
    fn search<'a>(&'a self, query: &'a RunQuery) -> Fut<'a, Vec<i64>>;
    fn history<'a>(&'a self, query: HistoryQuery<'a>) -> Fut<'a, Vec<Point>>;
    fn newer<'a>(&'a self, query: NewerQuery<'a>) -> Fut<'a, Vec<Point>>;
    fn bests<'a>(&'a self, query: BestQuery<'a>) -> Fut<'a, Vec<Best>>;
    /// For each run that reached the goal: the run and the time of its first such point.
    fn reached<'a>(&'a self, query: ReachedQuery<'a>) -> Fut<'a, Vec<(i64, i64)>>;
    fn samples<'a>(&'a self, query: SampleQuery<'a>) -> Fut<'a, Vec<Point>>;
    fn model_metrics<'a>(&'a self, models: &'a [String]) -> Fut<'a, Vec<ModelMetric>>;
    fn datasets<'a>(&'a self, experiments: &'a [i64]) -> Fut<'a, Vec<DatasetSummary>>;
    /// Which runs have new points.
    fn watch(&self) -> &Watch;
    /// Runs with this input, newest first.
    fn runs_that_read<'a>(&'a self, of: ReadBy<'a>, limit: usize) -> Fut<'a, Vec<i64>>;
}
