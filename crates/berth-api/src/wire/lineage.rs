//! Lineage, and recipes that repeat a finished job.

use super::{At, Id};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

/// The direction of a lineage.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum LineageWay {
    /// Upstream: to the inputs.
    Up,
    /// Downstream: to the outputs.
    Down,
    #[default]
    Both,
}

/// The start of a lineage, and its limit.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
pub struct LineageQuery {
    /// Such as `model:chat@3`, `run:ID`, `job:17`, `data:c4@v3` or `logged_model:m-ID`. Instead of the
    /// version of a model, it may have an alias: `model:chat@champion`.
    pub of: String,
    /// The team; by default your default team.
    pub team: Option<String>,
    /// By default both.
    #[param(inline)]
    pub way: LineageWay,
    /// The maximum number of nodes; the default and the limit are 2000.
    pub limit: Option<u32>,
}

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum LineageKind {
    /// A version of a registered model.
    Model,
    LoggedModel,
    Run,
    Job,
    /// A version of data in Berth.
    Data,
    /// A data set that a run names, outside of Berth.
    Dataset,
    Code,
    Image,
}

impl LineageKind {
    /// The prefix of ids.
    pub const fn word(self) -> &'static str {
        match self {
            LineageKind::Model => "model",
            LineageKind::LoggedModel => "logged_model",
            LineageKind::Run => "run",
            LineageKind::Job => "job",
            LineageKind::Data => "data",
            LineageKind::Dataset => "dataset",
            LineageKind::Code => "code",
            LineageKind::Image => "image",
        }
    }
}

/// The details of a node. Each kind has only the fields that apply to it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct LineageDetails {
    /// `RUNNING` or `FINISHED` of a run, `done` of a job, `READY` of a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// The user who created it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<At>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started: Option<At>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<At>,
    /// The cost of the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_micros: Option<i64>,
    /// GPUs times milliseconds, over all tasks of the job.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_ms: Option<i64>,
    /// The GPUs that a run had, such as `8xH100`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpus: Option<String>,
    /// The resources of the job, as in its file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub asks: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    /// The name of the experiment of a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub experiment: Option<String>,
    /// The number of the experiment, as clients of MLflow name it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub experiment_id: Option<String>,
    /// The hash of a version of data, or the digest of another data set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hash: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub files: Option<u64>,
    /// The commit of the code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The code had uncommitted changes.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dirty: Option<bool>,
    /// The newest checkpoint of a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<String>,
    /// The aliases of a version of a model.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// The location of the files of a model or data set.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A node of a lineage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LineageNode {
    /// Its kind and name, such as `model:chat@3`. For another team than the requested one, it includes the
    /// team: `data:audio/c4@v3`.
    pub id: String,
    pub kind: LineageKind,
    /// Empty if it is hidden.
    pub name: String,
    /// Empty if it is hidden.
    pub team: String,
    /// A label of one line.
    pub label: String,
    /// It belongs to a team whose data you may not see.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hidden: bool,
    /// It was deleted, but another node refers to it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gone: bool,
    pub details: LineageDetails,
}

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum LineageLink {
    /// From a version to the logged model, run or version that it was registered from.
    RegisteredFrom,
    /// From a logged model to the run that logged it.
    LoggedBy,
    /// From a run to a logged model that it reads.
    ReadModel,
    /// From a child run to its parent.
    ChildOf,
    /// From a run to its job.
    RunOf,
    /// From a run to data that it reads.
    Read,
    /// From a run to its code.
    WithCode,
    /// From a run to its image.
    InImage,
    /// From a version of data to its parent.
    DerivedFrom,
    /// From a job to the run of the job whose checkpoint it resumed.
    ResumedFrom,
}

/// An edge from an output, `from`, to its input, `to`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
pub struct LineageEdge {
    /// The id of a node.
    pub from: String,
    /// The id of the input.
    pub to: String,
    pub kind: LineageLink,
}

/// A lineage: nodes in the order of their distance from the first, and edges.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Lineage {
    /// The requested node.
    pub of: String,
    pub nodes: Vec<LineageNode>,
    pub edges: Vec<LineageEdge>,
    /// The cost of all upstream jobs, including the start.
    pub cost_micros: i64,
    /// GPUs times milliseconds of the same jobs.
    pub gpu_ms: i64,
    /// The limit has cut the graph.
    pub more: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
pub struct RecipeQuery {
    /// The team of the run; by default your default team. Ids of runs are unique, so this is only a check.
    pub team: Option<String>,
}

/// Where the job file of a recipe comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RecipeSource {
    /// The job.
    Job,
    /// The artifact `berth/job.yaml` of the run.
    Artifact,
}

/// The code of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RecipeCode {
    /// Its snapshot: `sha256:` and a digest.
    pub snapshot: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The code had uncommitted changes. The snapshot contains them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dirty: Option<bool>,
    /// The server still has the snapshot.
    pub kept: bool,
}

/// Data of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RecipeData {
    /// The path of the data in the job.
    pub path: String,
    /// Such as `c4@v3`.
    pub version: String,
    /// The hash that the run had.
    pub hash: String,
    /// The current hash; `null` if the version was removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now: Option<String>,
}

/// A difference from the time of the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RecipeDifference {
    /// The subject, such as `data c4@v3`, `code`, `image`, `gpus` or `price`.
    pub what: String,
    /// The value at the time of the run.
    pub then: String,
    /// The current value.
    pub now: String,
    /// What to do about it.
    pub next: String,
    /// This difference blocks a repetition. Other differences may change the result or the cost.
    pub blocks: bool,
}

/// How to repeat a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Recipe {
    /// The id of the run.
    pub run: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<Id>,
    pub team: String,
    pub source: RecipeSource,
    /// The job file as YAML, with the hashes of the run's data. Berth refuses the file if a version has
    /// another hash now.
    pub file: String,
    /// The same as JSON.
    #[schema(value_type = Object)]
    pub job_file: Value,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<RecipeCode>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<String>,
    pub data: Vec<RecipeData>,
    pub differs: Vec<RecipeDifference>,
}
