//! What GPUs and tasks did over time.

use super::{At, Id};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// Which time, how finely, and which figures.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
pub struct FigureQuery {
    /// The start of the job, or an hour ago.
    #[param(value_type = Option<At>)]
    pub from: Option<At>,
    /// Now.
    #[param(value_type = Option<At>)]
    pub to: Option<At>,
    /// The time that one point stands for, such as 30s; one that gives about 500 points.
    pub step: Option<String>,
    /// Some of the figures, separated by commas; all of them.
    pub figure: Option<String>,
}

/// One figure over the times of its set.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FigureLine {
    pub figure: String,
    /// What the numbers count: thousandths, MiB, mW, mJ, MHz, bits, celsius, millicores, KiB/s or
    /// processes.
    pub unit: String,
    pub mean: Option<i64>,
    /// 95 of 100 points are not above it.
    pub p95: Option<i64>,
    pub max: Option<i64>,
    pub last: Option<i64>,
    /// One for each time; nothing where it was not measured.
    pub values: Vec<Option<i64>>,
    /// The largest within each point, where a point stands for several measurements.
    pub largest: Vec<Option<i64>>,
}

/// What the figures of GPUs come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct FigureSummary {
    /// An estimate of the share of the largest throughput of dense matrix products, in thousandths.
    pub mfu: Option<i64>,
    pub energy_joules: Option<i64>,
    /// The time in which nothing was computed.
    pub idle_ms: i64,
    /// How long that has been so at the end.
    pub idle_at_end_ms: i64,
}

/// The use of a GPU. A caller who may see only a job gets the time in which the job held the GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GpuFigures {
    pub node: String,
    pub gpu: u32,
    pub model: Option<String>,
    pub uuid: Option<String>,
    /// How much of the GPU was held, in thousandths. Figures are always those of the whole GPU.
    pub milli: i64,
    /// Milliseconds since 1970, one for each point.
    pub times_ms: Vec<i64>,
    pub figures: Vec<FigureLine>,
    pub summary: FigureSummary,
}

/// What the processes of one attempt of a task used, and what its GPUs did.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct TaskFigures {
    pub task: u32,
    pub attempt: u32,
    pub node: String,
    pub from: At,
    /// Nothing while it runs.
    pub to: Option<At>,
    /// Milliseconds since 1970, one for each point.
    pub times_ms: Vec<i64>,
    pub figures: Vec<FigureLine>,
    pub gpus: Vec<GpuFigures>,
}

/// A part of a GPU that would have done.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct FigureAdvice {
    /// A MIG profile, or a share under MPS.
    pub part: String,
    /// How much of the GPU's price the part has, in thousandths.
    pub share: i64,
    /// What it would have saved in the time that was looked at.
    pub saves_micros: i64,
    /// The evidence: 95 of 100 points are not above these.
    pub sm_active_p95: i64,
    pub gpu_memory_p95: i64,
    pub text: String,
}

/// What a job did over time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobFigures {
    pub job: Id,
    pub from: At,
    pub to: At,
    /// The time that one point stands for.
    pub step_ms: i64,
    /// The newest attempt last.
    pub tasks: Vec<TaskFigures>,
    /// All GPUs together, each for the time in which the job held it.
    pub summary: FigureSummary,
    pub advice: Vec<FigureAdvice>,
    /// What has to be known to read the figures, and why some are missing.
    pub notes: Vec<String>,
}

/// Which figure of all GPUs, and of which time.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
pub struct ClusterFigureQuery {
    /// An hour ago.
    #[param(value_type = Option<At>)]
    pub from: Option<At>,
    /// Now.
    #[param(value_type = Option<At>)]
    pub to: Option<At>,
    /// The time that one value stands for, such as 12m; one that gives about 120 values. Nobody gets
    /// more than 240.
    pub step: Option<String>,
    /// One figure of GPUs; `utilization` where left out.
    pub figure: Option<String>,
    /// Only of this machine.
    pub node: Option<String>,
}

/// One figure of one GPU.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct GpuRow {
    pub node: String,
    /// As its figures have it.
    pub gpu: u32,
    /// The mean of each step; nothing where nothing was measured.
    pub values: Vec<Option<i64>>,
}

/// One figure of all GPUs over time: rows and columns of a heat map.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct ClusterFigures {
    pub figure: String,
    pub unit: String,
    /// Where the first value begins.
    pub from: At,
    /// Where the last one ends.
    pub to: At,
    pub step_ms: i64,
    pub rows: Vec<GpuRow>,
    /// GPUs beyond those that one answer has.
    pub left_out: u32,
    pub notes: Vec<String>,
}

/// What the GPUs of a machine did over time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct NodeFigures {
    pub node: String,
    pub from: At,
    pub to: At,
    /// The time that one point stands for.
    pub step_ms: i64,
    pub gpus: Vec<GpuFigures>,
    pub notes: Vec<String>,
}
