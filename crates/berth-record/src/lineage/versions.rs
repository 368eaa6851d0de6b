//! Versions of the models of one team, by what they were made from.

use super::thing::{self, Thing};
use berth_tracker::ModelVersion;
use std::collections::BTreeMap;

/// A version of a model by its name and its number.
type Named = (String, u64);

/// A walk asks at every node: what is asked does not go through all versions.
#[derive(Debug, Default)]
pub(super) struct Versions {
    copies: BTreeMap<Named, Vec<Named>>,
    of_logged: BTreeMap<String, Vec<Named>>,
    /// With the logged model that a version names.
    of_run: BTreeMap<String, Vec<(Named, Option<String>)>>,
}

impl Versions {
    pub fn of(all: Vec<ModelVersion>) -> Versions {
        let mut versions = Versions::default();
        for one in all {
            let named = (one.name.clone(), one.version);
            if let Some(from) = thing::copied_from(&one) {
                versions.copies.entry(from).or_default().push(named.clone());
            }
            if let Some(run) = thing::run_of(&one) {
                let of_run = versions.of_run.entry(run.to_owned()).or_default();
                of_run.push((named.clone(), one.model.clone()));
            }
            if let Some(model) = one.model {
                versions.of_logged.entry(model).or_default().push(named);
            }
        }
        versions
    }

    /// Copies of a version.
    pub fn copies(&self, team: &str, name: &str, version: u64) -> Vec<Thing> {
        let found = self.copies.get(&(name.to_owned(), version)).into_iter().flatten();
        found.map(|named| of_team(team, named)).collect()
    }

    /// Versions that were registered from a logged model.
    pub fn of_logged(&self, team: &str, model: &str) -> Vec<Thing> {
        let found = self.of_logged.get(model).into_iter().flatten();
        found.map(|named| of_team(team, named)).collect()
    }

    /// Versions that were registered from a run, but for those of some of its logged models.
    pub fn of_run(&self, team: &str, run: &str, but: impl Fn(&str) -> bool) -> Vec<Thing> {
        let found = self.of_run.get(run).into_iter().flatten();
        let found = found.filter(|(_, model)| !model.as_deref().is_some_and(&but));
        found.map(|(named, _)| of_team(team, named)).collect()
    }
}

fn of_team(team: &str, (name, version): &Named) -> Thing {
    Thing::Model { team: team.to_owned(), name: name.clone(), version: *version }
}
