//! What would become of a job.

use super::{Blocker, Eta, Warning};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// The answer to a dry run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Plan {
    pub name: String,
    pub team: String,
    /// In the words of the file: `4 x H100:8`.
    pub asks: String,
    pub elements: u32,
    pub starts_now: bool,
    /// Where it would start now.
    pub places: Vec<Placement>,
    /// When it would start otherwise.
    pub eta: Option<Eta>,
    /// Why it would not start now.
    pub blockers: Vec<Blocker>,
    /// Where it would start, or the cheapest place it could; none where there is no price.
    pub price_micros_per_hour: Option<i64>,
    /// Price times how long it is expected to run, over all elements.
    pub total_micros: Option<i64>,
    /// How long one run is expected to take.
    pub estimate_ms: Option<i64>,
    /// The same at its time limit: it costs no more.
    pub most_micros: Option<i64>,
    pub warnings: Vec<Warning>,
    /// Its GPUs would be declared, not real.
    pub declared: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Placement {
    pub task: u32,
    pub node: String,
    pub model: Option<String>,
    pub gpus: Vec<u32>,
}
