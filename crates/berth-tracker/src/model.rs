//! The entities: experiments, runs, models, versions and webhooks.

use crate::error::{Error, Result};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

pub type Tags = BTreeMap<String, String>;

/// The name of the default experiment.
pub const DEFAULT_EXPERIMENT: &str = "Default";

/// An experiment. Its number is its id on the wire.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Experiment {
    pub no: i64,
    pub team: String,
    pub name: String,
    #[serde(default)]
    pub deleted: bool,
    pub created: i64,
    pub updated: i64,
    /// The user who made it.
    pub by: String,
    #[serde(default)]
    pub tags: Tags,
    /// Teams that it is shared with.
    #[serde(default)]
    pub shared_with: Vec<String>,
}

impl Experiment {
    /// The location of its artifacts. Its first part is the team, which decides the rights.
    pub fn artifacts(&self) -> String {
        format!("mlflow-artifacts:/{}/{}", self.team, self.no)
    }
}

pub fn stage(deleted: bool) -> &'static str {
    if deleted { "deleted" } else { "active" }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Running,
    Scheduled,
    Finished,
    Failed,
    Killed,
}

impl Status {
    const ALL: [Status; 5] =
        [Status::Running, Status::Scheduled, Status::Finished, Status::Failed, Status::Killed];

    pub const fn word(self) -> &'static str {
        match self {
            Status::Running => "RUNNING",
            Status::Scheduled => "SCHEDULED",
            Status::Finished => "FINISHED",
            Status::Failed => "FAILED",
            Status::Killed => "KILLED",
        }
    }

    pub fn parse(word: &str) -> Result<Status> {
        let found = Status::ALL.into_iter().find(|status| status.word() == word);
        found.ok_or_else(|| Error::bad_value("status", serde_json::json!(word), ""))
    }
}

/// The fields of a run that seldom change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunHead {
    pub no: i64,
    pub id: Arc<str>,
    pub experiment: i64,
    /// The user of Berth who made it.
    pub by: Arc<str>,
}

/// The newest point of a metric.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Latest {
    pub key: Arc<str>,
    pub point: Point,
}

/// One point of a metric, with its value as stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Point {
    pub step: i64,
    pub timestamp: i64,
    pub value: i64,
}

/// A run with everything that clients logged to it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    pub no: i64,
    pub id: String,
    pub experiment: i64,
    pub name: String,
    /// The user that the client named.
    pub user: String,
    pub status: String,
    pub start: Option<i64>,
    pub end: Option<i64>,
    pub deleted: bool,
    pub metrics: Vec<Latest>,
    pub params: Vec<(String, String)>,
    pub tags: Vec<(String, String)>,
    pub datasets: Vec<Input>,
    pub models: Vec<RunModel>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Dataset {
    pub name: String,
    pub digest: String,
    #[serde(default)]
    pub source_type: String,
    #[serde(default)]
    pub source: String,
    #[serde(default)]
    pub schema: Option<String>,
    #[serde(default)]
    pub profile: Option<String>,
}

/// A data set that a run has read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Input {
    pub dataset: Dataset,
    pub tags: Vec<(String, String)>,
}

impl Input {
    /// The purpose, such as `train`.
    pub fn context(&self) -> Option<&str> {
        let tag = self.tags.iter().find(|(key, _)| key == "mlflow.data.context");
        tag.map(|(_, value)| value.as_str())
    }
}

/// A logged model that a run has read or made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RunModel {
    pub id: String,
    pub is_output: bool,
    pub step: i64,
}

/// A metric of a logged model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelMetric {
    pub model: String,
    pub key: String,
    pub run: String,
    pub dataset_name: String,
    pub dataset_digest: String,
    pub point: Point,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoggedModel {
    pub id: String,
    pub experiment: i64,
    pub name: String,
    #[serde(default)]
    pub model_type: String,
    #[serde(default)]
    pub run: String,
    /// `LOGGED_MODEL_PENDING` and so on.
    pub status: String,
    pub created: i64,
    pub updated: i64,
    pub by: String,
    #[serde(default)]
    pub tags: Tags,
    #[serde(default)]
    pub params: Tags,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RegisteredModel {
    pub name: String,
    pub created: i64,
    pub updated: i64,
    pub by: String,
    #[serde(default)]
    pub description: Option<String>,
    #[serde(default)]
    pub deployment_job: Option<String>,
    #[serde(default)]
    pub tags: Tags,
    /// The version of each alias.
    #[serde(default)]
    pub aliases: BTreeMap<String, u64>,
    /// The highest version number so far. Berth never reuses a number.
    #[serde(default)]
    pub last_version: u64,
    /// The newest version in each stage.
    #[serde(default)]
    pub newest: BTreeMap<String, u64>,
    /// Teams that it is shared with.
    #[serde(default)]
    pub shared_with: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ModelVersion {
    pub name: String,
    pub version: u64,
    pub created: i64,
    pub updated: i64,
    pub by: String,
    #[serde(default)]
    pub description: Option<String>,
    pub stage: String,
    pub source: String,
    /// The location of its files: the source, or that of its logged model.
    #[serde(default)]
    pub storage: String,
    #[serde(default)]
    pub run: Option<String>,
    #[serde(default)]
    pub run_link: Option<String>,
    #[serde(default)]
    pub model: Option<String>,
    #[serde(default)]
    pub tags: Tags,
}

pub const IS_PROMPT: &str = "mlflow.prompt.is_prompt";

/// Prompts are models with a tag.
pub fn is_prompt(tags: &Tags) -> bool {
    tags.get(IS_PROMPT).is_some_and(|is| is == "true")
}

/// The URL of a receiver, with its events, in the registry of a team.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Webhook {
    pub id: String,
    pub name: String,
    #[serde(default)]
    pub description: Option<String>,
    pub url: String,
    /// Such as `model_version.created`.
    pub events: Vec<String>,
    pub active: bool,
    /// The encrypted secret that signs its messages. No answer contains it.
    #[serde(default)]
    pub sealed: Option<String>,
    pub created: i64,
    pub updated: i64,
    pub by: String,
}

/// Encodes pairs for one column.
pub fn pairs_to_json(pairs: &[(String, String)]) -> String {
    serde_json::to_string(pairs).expect("texts are JSON")
}

pub fn pairs_of_json(json: &str) -> Vec<(String, String)> {
    serde_json::from_str(json).unwrap_or_default()
}
