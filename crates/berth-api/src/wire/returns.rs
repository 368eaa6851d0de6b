//! Cost per result.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// The grouping of runs.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ReturnsBy {
    #[default]
    Experiment,
    Project,
}

/// Which values of a metric are better.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum BetterValues {
    Higher,
    Lower,
}

/// The runs and the metric to compare.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
pub struct ReturnsQuery {
    /// By default your default team.
    pub team: Option<String>,
    /// An experiment, by name or id; by default all of the team.
    pub experiment: Option<String>,
    /// The grouping of rows.
    pub by: ReturnsBy,
    /// The metric of the result.
    pub metric: Option<String>,
    /// The value to reach; by default the best value of each row.
    pub goal: Option<f64>,
    /// The default is lower if the name of the metric contains loss or error, else higher.
    pub better: Option<BetterValues>,
}

/// The cost and results of an experiment or a project.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Return {
    /// The name of the experiment or project; empty for runs without a project.
    pub name: String,
    /// The id of the experiment, if rows are experiments.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub experiment: Option<String>,
    /// The number of active runs.
    pub runs: u64,
    /// Runs without a cost, because they have no job.
    pub without_cost: u64,
    /// The cost of all runs.
    pub spent_micros: i64,
    /// Hours of one whole GPU.
    pub gpu_hours: f64,
    /// The best value of the metric.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub best: Option<f64>,
    /// The run with the best value.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub best_run: Option<String>,
    /// The goal of this row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal: Option<f64>,
    /// The number of runs that reached the goal.
    pub reached: u64,
    /// The cost of all runs until the first run reached the goal. For runs that were still running then, the
    /// cost in proportion to their time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until_goal_micros: Option<i64>,
    /// The cost for each run that reached the goal.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_result_micros: Option<i64>,
    /// The cost of failed and killed runs.
    pub failed_micros: i64,
    /// The cost of other ended runs whose best value is no better than that of an earlier run.
    pub superseded_micros: i64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Returns {
    /// The team of the runs.
    pub team: String,
    /// The grouping of rows.
    pub by: ReturnsBy,
    /// The metric of the result.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
    /// Which values of the metric are better.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub better: Option<BetterValues>,
    /// The rows, highest cost first.
    pub rows: Vec<Return>,
    /// The total over all rows.
    pub total_micros: i64,
    /// Omitted runs, and why.
    pub notes: Vec<String>,
}
