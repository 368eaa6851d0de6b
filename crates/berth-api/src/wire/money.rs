//! What things cost.

use super::At;
use serde::{Deserialize, Serialize};
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
