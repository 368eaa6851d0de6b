//! What is set up, to compare documents with.

use crate::app::App;
use crate::http::answer::Fault;
use crate::http::identity::every;
use berth_model::{Micros, Milli, Name, Policy, PriorityClass, QueueSpec};
use berth_store::{ProjectRow, TeamRow};
use std::collections::{BTreeMap, BTreeSet};

/// Prices, speeds and watts by model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModelFacts {
    pub prices: BTreeMap<Name, Micros>,
    pub speeds: BTreeMap<Name, Milli>,
    pub watts: BTreeMap<Name, i64>,
}

#[derive(Debug, Clone, Default)]
pub struct SetUp {
    pub teams: BTreeSet<String>,
    /// By team and name.
    pub projects: BTreeSet<(String, String)>,
    pub queues: BTreeMap<Name, QueueSpec>,
    pub policy: Policy,
    pub classes: BTreeMap<Name, PriorityClass>,
    pub models: ModelFacts,
}

impl SetUp {
    pub async fn load(app: &App) -> Result<SetUp, Fault> {
        let teams = every::<TeamRow>(app).await?;
        let projects = every::<ProjectRow>(app).await?;
        let snapshot = app.engine.core().state.snapshot();
        let queues = snapshot.queues.into_iter().map(|queue| (queue.spec.name.clone(), queue.spec));
        Ok(SetUp {
            teams: teams.into_iter().map(|row| row.name).collect(),
            projects: projects.into_iter().map(|row| (row.team, row.name)).collect(),
            queues: queues.collect(),
            policy: snapshot.policy,
            classes: snapshot.classes,
            models: ModelFacts {
                prices: snapshot.prices,
                speeds: snapshot.speeds,
                watts: snapshot.watts,
            },
        })
    }
}
