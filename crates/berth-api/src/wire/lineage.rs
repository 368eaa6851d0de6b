//! What came from what, and how to run a finished job again.

use super::{At, Id};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use utoipa::{IntoParams, ToSchema};

/// Which way to go from a node.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum LineageWay {
    /// To what it was made from.
    Up,
    /// To what was made from it.
    Down,
    #[default]
    Both,
}

/// Where to begin, and how far to go.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
pub struct LineageQuery {
    /// Such as `model:chat@3`, `run:ID`, `job:17`, `data:c4@v3` or `logged_model:m-ID`. An alias may
    /// stand for the version of a model: `model:chat@champion`.
    pub of: String,
    /// The team whose things are meant; your default team where left out.
    pub team: Option<String>,
    /// Both ways where left out.
    pub way: LineageWay,
    /// So many nodes at the most; 2000 where left out, and at the most.
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
    /// A version of data that Berth keeps.
    Data,
    /// A data set that a run names and Berth does not keep.
    Dataset,
    Code,
    Image,
}

impl LineageKind {
    /// As ids begin with it.
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

/// What is known of a node. What does not apply to its kind is left out.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct LineageDetails {
    /// `RUNNING` or `FINISHED` of a run, `done` of a job, `READY` of a model.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<String>,
    /// Who made it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub by: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub created: Option<At>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub started: Option<At>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ended: Option<At>,
    /// What the job has cost.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cost_micros: Option<i64>,
    /// GPUs times milliseconds: what all tasks of the job have held.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpu_ms: Option<i64>,
    /// The GPUs that a run had, such as `8xH100`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub gpus: Option<String>,
    /// What the job asks for, in the words of its file.
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
    /// The code had changes that are in no commit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dirty: Option<bool>,
    /// The newest checkpoint of a run.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<String>,
    /// Names that point to a version of a model.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// Where the files of a model, or of another data set, are.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub source: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// A thing in a lineage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct LineageNode {
    /// Its kind and its name, such as `model:chat@3`; of another team than was asked for with that
    /// team, such as `data:audio/c4@v3`.
    pub id: String,
    pub kind: LineageKind,
    /// Empty where it is hidden.
    pub name: String,
    /// Empty where it is hidden.
    pub team: String,
    /// One line for people.
    pub label: String,
    /// It belongs to a team whose things you may not see.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub hidden: bool,
    /// Something names it, and it is not there any more.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub gone: bool,
    pub details: LineageDetails,
}

#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum LineageLink {
    /// A version was registered from a logged model, a run or another version.
    RegisteredFrom,
    /// A logged model was made by a run.
    LoggedBy,
    /// A run reads a logged model.
    ReadModel,
    /// A run is part of another one.
    ChildOf,
    /// A run is that of a job.
    RunOf,
    /// A run reads data.
    Read,
    /// A run was made with code.
    WithCode,
    /// A run was made in an image.
    InImage,
    /// A version of data was made from another one.
    DerivedFrom,
    /// A job goes on from the checkpoint of another one.
    ResumedFrom,
}

/// `from` was made from, or with, `to`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
pub struct LineageEdge {
    /// The id of a node.
    pub from: String,
    /// The id of a node that was there before.
    pub to: String,
    pub kind: LineageLink,
}

/// What came from what: nodes in the order of their distance from the first, and what joins them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Lineage {
    /// The node that was asked for.
    pub of: String,
    pub nodes: Vec<LineageNode>,
    pub edges: Vec<LineageEdge>,
    /// What the jobs above it have cost, with its own.
    pub cost_micros: i64,
    /// GPUs times milliseconds of the same jobs.
    pub gpu_ms: i64,
    /// The limit cut it: there is more.
    pub more: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
pub struct RecipeQuery {
    /// The team whose experiment the run is in; your default team where left out. A run has an id of
    /// its own, so this only makes sure.
    pub team: Option<String>,
}

/// Where the job file of a recipe comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RecipeSource {
    /// The job, which the server still has.
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
    /// It had changes that are in no commit. The snapshot has them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dirty: Option<bool>,
    /// The snapshot is still there.
    pub kept: bool,
}

/// Data of a run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RecipeData {
    /// Where the job finds it.
    pub path: String,
    /// Such as `c4@v3`.
    pub version: String,
    /// What the run had.
    pub hash: String,
    /// What the version has now; none where it was removed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub now: Option<String>,
}

/// Something that is not as it was for the run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct RecipeDifference {
    /// What it is about, such as `data c4@v3`, `code`, `image`, `gpus` or `price`.
    pub what: String,
    /// What it was then.
    pub then: String,
    /// What it is now.
    pub now: String,
    /// What to do about it.
    pub next: String,
    /// The run cannot be repeated as long as this is so. Otherwise it may come out different, or cost
    /// something else.
    pub blocks: bool,
}

/// How to make a run again.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Recipe {
    /// The id of the run.
    pub run: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub job: Option<Id>,
    pub team: String,
    pub source: RecipeSource,
    /// The job file as YAML. Its data has the hashes that the run had: Berth refuses the file where a
    /// version has other data now.
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
