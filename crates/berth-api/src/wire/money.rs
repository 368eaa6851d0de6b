//! What things cost.

use super::{At, Id};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::{IntoParams, ToSchema};

/// What sums can be taken by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum CostKey {
    Team,
    Project,
    Experiment,
    User,
    Job,
}

impl CostKey {
    pub const ALL: [CostKey; 5] =
        [CostKey::Team, CostKey::Project, CostKey::Experiment, CostKey::User, CostKey::Job];

    pub const fn word(self) -> &'static str {
        match self {
            CostKey::Team => "team",
            CostKey::Project => "project",
            CostKey::Experiment => "experiment",
            CostKey::User => "user",
            CostKey::Job => "job",
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
pub struct CostQuery {
    /// Keys, separated by commas; `team` where left out.
    pub by: Option<String>,
    /// From the first of this month on, where left out.
    #[param(value_type = Option<At>)]
    pub from: Option<At>,
    #[param(value_type = Option<At>)]
    pub to: Option<At>,
    pub team: Option<String>,
    pub project: Option<String>,
    pub experiment: Option<String>,
    pub user: Option<String>,
    pub job: Option<String>,
    /// `csv` for a table.
    pub format: Option<String>,
}

/// The rows of a report sum to its total.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CostReport {
    pub by: Vec<CostKey>,
    pub from: At,
    pub to: At,
    pub rows: Vec<CostGroup>,
    pub total_micros: i64,
    /// What machines cost while nobody held them; no row has it.
    pub idle_micros: i64,
    /// What all rows used, in thousandths of a joule, where it was measured.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub energy_mj: Option<i64>,
    /// Grams of CO₂ for each kWh, where the server knows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub carbon_intensity: Option<i64>,
}

/// One sum. Keys that the report does not go by are empty.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default)]
#[schema(as = CostRow)]
pub struct CostGroup {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub team: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub experiment: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    /// The job's name, where rows are by job and you may read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    pub amount_micros: i64,
    /// Milliseconds of one whole GPU.
    pub gpu_ms: i64,
    pub jobs: u64,
    /// In thousandths of a joule, where it was measured: by the counters of GPUs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub energy_mj: Option<i64>,
    /// Milligrams of CO₂ for that energy, where the server knows the intensity.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub carbon_mg: Option<i64>,
}

/// How finely a time is divided, in UTC.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum CostStep {
    /// What is old is kept by the day, and counts at its first hour.
    Hour,
    #[default]
    Day,
}

/// What to add up over time.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
pub struct CostSeriesQuery {
    /// One key; `team` where left out.
    pub by: Option<String>,
    pub step: CostStep,
    /// From the first of this month on, where left out.
    #[param(value_type = Option<At>)]
    pub from: Option<At>,
    #[param(value_type = Option<At>)]
    pub to: Option<At>,
    pub team: Option<String>,
    pub project: Option<String>,
    pub experiment: Option<String>,
    pub user: Option<String>,
    pub job: Option<String>,
    /// Keys that have an amount of their own: those that cost most. At most 50; 12 where left out.
    pub top: Option<u32>,
    /// `csv` for a table.
    pub format: Option<String>,
}

/// What was spent in one step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CostPoint {
    pub at: At,
    /// By key; those without any are left out.
    pub amounts: BTreeMap<String, i64>,
    /// Of all other keys.
    pub others_micros: i64,
    /// What machines cost while nobody held them, for those who may see all teams.
    pub idle_micros: i64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CostSeries {
    pub by: CostKey,
    pub step: CostStep,
    pub from: At,
    pub to: At,
    /// The keys, highest cost first.
    pub keys: Vec<String>,
    /// One for each step in which something was spent, the oldest first.
    pub points: Vec<CostPoint>,
    pub total_micros: i64,
}

/// Which rows a sum was made of.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
pub struct CostRowsQuery {
    /// From the first of this month on, where left out.
    #[param(value_type = Option<At>)]
    pub from: Option<At>,
    #[param(value_type = Option<At>)]
    pub to: Option<At>,
    pub team: Option<String>,
    pub project: Option<String>,
    pub experiment: Option<String>,
    pub user: Option<String>,
    pub job: Option<String>,
    /// `used`, `held`, `unallocated`, `fragmented` or `shared`.
    pub kind: Option<String>,
    pub node: Option<String>,
    /// At most 1,000; 100 where left out.
    pub limit: Option<u32>,
    /// `next` of the page before.
    pub cursor: Option<String>,
    /// `csv` for a table.
    pub format: Option<String>,
}

/// What a part of one machine cost from one moment to another.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CostLine {
    pub from: At,
    pub to: At,
    pub kind: String,
    pub node: String,
    /// None of what nobody held.
    pub job: Option<Id>,
    pub task: Option<u32>,
    pub attempt: Option<u32>,
    pub team: String,
    pub project: String,
    pub experiment: String,
    pub user: String,
    pub gpus_milli: i64,
    pub amount_micros: i64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CostLines {
    /// The newest first.
    pub rows: Vec<CostLine>,
    pub next: Option<String>,
    /// What is older has become one sum for each day, and has no rows any more.
    pub notes: Vec<String>,
}

/// Of which time.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
pub struct CostIdleQuery {
    /// From the first of this month on, where left out.
    #[param(value_type = Option<At>)]
    pub from: Option<At>,
    #[param(value_type = Option<At>)]
    pub to: Option<At>,
    /// Only what this team was billed for.
    pub team: Option<String>,
    /// `csv` for a table.
    pub format: Option<String>,
}

/// What was paid for and brought nothing, by cause.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct IdleCause {
    /// `unallocated`, `fragmented`, `starting`, `held_idle`, `lost_failed` or `lost_machine`.
    pub cause: String,
    pub text: String,
    pub amount_micros: i64,
    /// Milliseconds of one whole GPU.
    pub gpu_ms: i64,
    /// It is a part of what teams were billed for, and not of what nobody held.
    pub billed: bool,
}

/// Jobs that held GPUs and did nothing with them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct IdleHolder {
    #[serde(flatten)]
    pub of: super::JobRef,
    pub amount_micros: i64,
    pub gpu_ms: i64,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CostIdle {
    pub from: At,
    pub to: At,
    /// Whose bill was looked at; everybody's, and what nobody is billed for, where there are none.
    pub teams: Vec<String>,
    pub causes: Vec<IdleCause>,
    /// The most expensive ones that the caller may read, highest cost first.
    pub holders: Vec<IdleHolder>,
    /// All that was spent in this time, idle or not.
    pub total_micros: i64,
    pub notes: Vec<String>,
}

/// What was spent of a budget up to a moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BudgetPoint {
    pub at: At,
    pub spent_micros: i64,
}

/// What it will have come to by a moment.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BudgetForecastPoint {
    pub at: At,
    pub p50_micros: i64,
    pub p90_micros: i64,
}

/// How a budget burns down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct BudgetForecast {
    pub queue: String,
    pub limit_micros: i64,
    pub spent_micros: i64,
    pub period_from: Option<At>,
    pub period_to: Option<At>,
    /// At the end of each day, and now.
    pub points: Vec<BudgetPoint>,
    /// From now to the end of the period, or for 30 days where it has none. It goes on as the last
    /// days did: P50 at their mean, P90 as far above it as these days differ.
    pub forecast: Vec<BudgetForecastPoint>,
    /// When the limit is met, at the mean; none where it is not within the forecast.
    pub runs_out_at: Option<At>,
    /// The same at the P90.
    pub runs_out_at_p90: Option<At>,
    /// Days that the forecast was made from.
    pub days: u32,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum BudgetAction {
    Notify,
    Block,
    LowerPriority,
    Pause,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum BudgetPeriod {
    Day,
    Week,
    Month,
    Once,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Budget {
    pub queue: String,
    pub limit_micros: i64,
    pub spent_micros: i64,
    pub per: BudgetPeriod,
    pub action: BudgetAction,
    /// Thousandths of the limit at which an alert goes out.
    pub thresholds_milli: Vec<i64>,
    pub period_from: Option<At>,
    pub period_to: Option<At>,
    /// What it will have come to at the end of the period, at the rate of the last day.
    pub forecast_micros: Option<i64>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct BudgetSet {
    pub limit_micros: i64,
    pub per: BudgetPeriod,
    pub action: BudgetAction,
    #[serde(default)]
    pub thresholds_milli: Vec<i64>,
}
