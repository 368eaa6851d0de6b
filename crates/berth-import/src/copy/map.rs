//! Maps ids of the source to ids of the target.

use crate::model::{LoggedModel, Place, Run};
use crate::sink::Target;
use crate::sums::sum_of;
use crate::tags::{self, state};
use std::collections::BTreeMap;

/// A run at the target.
#[derive(Debug, Clone)]
pub struct Known {
    pub target: Target,
    pub state: String,
    pub deleted: bool,
    /// From the same place.
    pub same_source: bool,
}

/// A logged model at the target.
#[derive(Debug, Clone)]
pub struct KnownModel {
    pub id: String,
    pub place: Place,
    pub done: bool,
}

#[derive(Default)]
pub struct Map {
    pub runs: BTreeMap<String, Known>,
    pub models: BTreeMap<String, KnownModel>,
}

impl Map {
    /// Adds a run of the target, if an import has moved it.
    pub fn note_run(&mut self, run: &Run, source: &str) {
        if let Some(from) = tags::value(&run.tags, tags::RUN) {
            let known = Known {
                target: Target {
                    experiment: run.experiment.clone(),
                    id: run.id.clone(),
                    place: run.place.clone(),
                },
                state: tags::value(&run.tags, tags::STATE).unwrap_or_default().to_owned(),
                deleted: run.deleted,
                same_source: tags::value(&run.tags, tags::SOURCE) == Some(source),
            };
            self.runs.insert(from.to_owned(), known);
        }
    }

    pub fn note_model(&mut self, model: &LoggedModel) {
        if let Some(from) = tags::value(&model.tags, tags::MODEL) {
            let done = tags::value(&model.tags, tags::STATE).is_some_and(|said| said == "done");
            let known = KnownModel { id: model.id.clone(), place: model.place.clone(), done };
            self.models.insert(from.to_owned(), known);
        }
    }

    pub fn run(&self, source: &str) -> Option<&str> {
        self.runs.get(source).map(|known| known.target.id.as_str())
    }

    pub fn model(&self, source: &str) -> Option<&str> {
        self.models.get(source).map(|known| known.id.as_str())
    }
}

/// A fingerprint to detect changes since the import. Runs that have not ended have none, because they may
/// get more points at any time.
pub fn print(run: &Run) -> Option<String> {
    if !run.is_over() {
        return None;
    }
    let counts = [
        run.params.len(),
        run.tags.len(),
        run.metrics.len(),
        run.datasets.len(),
        run.reads.len(),
        run.makes.len(),
    ];
    let said = format!("{}|{:?}|{}|{}|{counts:?}", run.status, run.end, run.deleted, run.name);
    Some(hex::encode(&sum_of(&[said.as_bytes()])[..8]))
}

/// The state of a known run.
pub fn progress(known: &Known, print: Option<&str>) -> (bool, bool) {
    let Some(print) = print else { return (false, false) };
    let is_done = known.state == state::done(print);
    (is_done || known.state == state::data(print), is_done)
}
