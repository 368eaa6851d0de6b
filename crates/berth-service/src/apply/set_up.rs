//! What is set up, to compare documents with.

use crate::fault::Fault;
use crate::service::Service;
use berth_api::Code;
use berth_core::State;
use berth_file::documents::Want;
use berth_model::{Micros, Milli, Name, Policy, PriorityClass, QueueSpec};
use berth_store::{ProjectRow, SettingRow, Store, TeamRow};
use std::collections::{BTreeMap, BTreeSet};

/// Prices, speeds and watts by model.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ModelFacts {
    pub prices: BTreeMap<Name, Micros>,
    pub speeds: BTreeMap<Name, Milli>,
    pub watts: BTreeMap<Name, i64>,
}

impl ModelFacts {
    /// The tables with those that are wanted changed.
    pub fn with(&self, want: &Want) -> ModelFacts {
        let Want::Prices { prices, speeds, watts } = want else { return self.clone() };
        ModelFacts {
            prices: prices.clone().unwrap_or_else(|| self.prices.clone()),
            speeds: speeds.clone().unwrap_or_else(|| self.speeds.clone()),
            watts: watts.clone().unwrap_or_else(|| self.watts.clone()),
        }
    }
}

#[derive(Debug, Clone, Default)]
pub struct SetUp {
    pub teams: BTreeSet<String>,
    /// By team and name.
    pub projects: BTreeSet<(String, String)>,
    pub rules: Rules,
    /// Where messages go, by the name of the setting.
    pub notify: BTreeMap<String, String>,
}

/// What documents set in the core.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Rules {
    pub queues: BTreeMap<Name, QueueSpec>,
    pub policy: Policy,
    pub classes: BTreeMap<Name, PriorityClass>,
    pub models: ModelFacts,
}

impl SetUp {
    pub async fn load(service: &Service) -> Result<SetUp, Fault> {
        let (teams, projects) = stored(&service.store).await?;
        let notify = service.store.every::<SettingRow>().await?.into_iter();
        let rules = Rules::of(&service.engine.core().state);
        let notify = notify.map(|row| (row.name, row.value)).collect();
        Ok(SetUp { teams, projects, rules, notify })
    }

    /// Whether the teams and projects are still those that were compared with.
    pub async fn holds(&self, store: &Store) -> Result<(), Fault> {
        let (teams, projects) = stored(store).await?;
        if teams == self.teams && projects == self.projects {
            return Ok(());
        }
        Err(outrun("teams or projects"))
    }
}

impl Rules {
    fn of(state: &State) -> Rules {
        let snapshot = state.outline();
        let queues = snapshot.queues.into_iter().map(|queue| (queue.spec.name.clone(), queue.spec));
        Rules {
            queues: queues.collect(),
            policy: snapshot.policy,
            classes: snapshot.classes,
            models: ModelFacts {
                prices: snapshot.prices,
                speeds: snapshot.speeds,
                watts: snapshot.watts,
            },
        }
    }

    /// Whether they are still those that were compared with: documents write a queue as a whole,
    /// and would undo what they have not seen.
    pub fn hold(&self, state: &State) -> Result<(), Fault> {
        if Rules::of(state) == *self { Ok(()) } else { Err(outrun("queues, policy or prices")) }
    }
}

fn outrun(what: &str) -> Fault {
    let detail = format!("another request changed {what} at the same time");
    Fault::new(Code::WrongState, detail).next("apply the documents again")
}

async fn stored(store: &Store) -> Result<(BTreeSet<String>, BTreeSet<(String, String)>), Fault> {
    let teams = store.every::<TeamRow>().await?.into_iter().map(|row| row.name);
    let projects = store.every::<ProjectRow>().await?.into_iter().map(|row| (row.team, row.name));
    Ok((teams.collect(), projects.collect()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_that_a_document_leaves_out_stay() {
        let before = ModelFacts { watts: [("L4".into(), 72)].into(), ..ModelFacts::default() };
        let prices = Some([("L4".into(), Micros(700_000))].into());
        let after = before.with(&Want::Prices { prices, speeds: None, watts: None });
        assert_eq!((after.prices["L4"], &after.watts), (Micros(700_000), &before.watts));
    }
}
