//! What the money that runs cost has brought.

use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

/// What runs are put together by.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ReturnsBy {
    #[default]
    Experiment,
    Project,
}

/// Which values of a metric are the better ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum BetterValues {
    Higher,
    Lower,
}

/// Which runs to look at, and for what.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
pub struct ReturnsQuery {
    /// Your default team where left out.
    pub team: Option<String>,
    /// One experiment, by name or id; all of the team where left out.
    pub experiment: Option<String>,
    /// What each row stands for.
    pub by: ReturnsBy,
    /// The metric that a result is measured by.
    pub metric: Option<String>,
    /// The value that a run has to reach; the best value of each row where left out.
    pub goal: Option<f64>,
    /// Lower ones where left out and the metric's name says loss or error, higher ones otherwise.
    pub better: Option<BetterValues>,
}

/// What the runs of an experiment or a project have cost and brought.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct Return {
    /// Of the experiment or the project; empty for runs without a project.
    pub name: String,
    /// The id of the experiment, where rows are by experiment.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub experiment: Option<String>,
    /// Runs that are not deleted.
    pub runs: u64,
    /// Runs among them that say nothing of a cost: those outside of jobs.
    pub without_cost: u64,
    /// What all of them have cost.
    pub spent_micros: i64,
    /// Hours of one whole GPU.
    pub gpu_hours: f64,
    /// The best value that a run has reached.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub best: Option<f64>,
    /// The run that has it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub best_run: Option<String>,
    /// The value that counts as a result in this row.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub goal: Option<f64>,
    /// Runs that have reached it.
    pub reached: u64,
    /// What all runs had cost when one first reached it. Of runs that were under way then, the part
    /// of their time counts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub until_goal_micros: Option<i64>,
    /// What was spent for each run that has reached it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub per_result_micros: Option<i64>,
    /// What runs have cost that failed or were killed.
    pub failed_micros: i64,
    /// What other runs have cost that ended and brought no better value than a run that started
    /// before them.
    pub superseded_micros: i64,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Returns {
    /// Whose runs they are.
    pub team: String,
    /// What each row stands for.
    pub by: ReturnsBy,
    /// The metric that a result is measured by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
    /// Which of its values are the better ones.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub better: Option<BetterValues>,
    /// The ones that cost most first.
    pub rows: Vec<Return>,
    /// The sum of all rows.
    pub total_micros: i64,
    /// What was left out, and why.
    pub notes: Vec<String>,
}
