//! The steps that remove for good: deleted runs and experiments, and all that a removed team had.

use serde::{Deserialize, Serialize};
use sqlx::Row;
use sqlx::any::AnyRow;

/// One step of a removal.
#[derive(Debug)]
pub enum Clean {
    /// Marks runs for removal that were deleted before a time and have a higher number.
    /// With `dry`, only lists them.
    Runs { before: i64, after: i64, dry: bool },
    /// Marks an experiment for removal that was deleted before a time and has no runs.
    Experiment { no: i64, before: i64 },
    /// Removes a batch of what a team has: marks its runs and experiments for removal, then removes its
    /// registered models, versions and webhooks. The team must not exist.
    Team { team: String },
    /// Removes a batch of rows of one removal.
    Rows(Removal),
    /// Completes a removal that has no rows left.
    End(Removal),
}

/// A run or experiment in removal.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Removal {
    pub is_run: bool,
    pub no: i64,
    pub experiment: i64,
    pub team: String,
    /// The folder of its artifacts, below the team.
    pub path: String,
}

/// The result of a step.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cleaned {
    pub begun: Vec<Removal>,
    /// Where the next step begins; `None` at the end.
    pub next: Option<i64>,
    /// Registered models that a step for a team removed.
    #[serde(default)]
    pub models: u64,
}

impl Removal {
    pub(crate) fn kind(&self) -> i64 {
        if self.is_run { 2 } else { 1 }
    }
}

pub(crate) fn removal(row: &AnyRow) -> sqlx::Result<Removal> {
    Ok(Removal {
        is_run: row.try_get::<i64, _>(0)? == 2,
        no: row.try_get(1)?,
        experiment: row.try_get(2)?,
        team: row.try_get(3)?,
        path: row.try_get(4)?,
    })
}
