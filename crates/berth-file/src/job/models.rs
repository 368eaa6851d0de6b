//! GPU models by the names people use: `H100` for every H100.

use super::parts::{GpuAmount, GpuChoice, Which};
use crate::error::did_you_mean;
use berth_model::{Bytes, GpuAsk, MigProfile, Milli, ModelAsk, Name, catalog, catalog_models};

/// The models that can be asked for: those of the cluster first, then all that are known.
#[derive(Debug, Clone, Default)]
pub struct Models {
    all: Vec<(Name, Bytes)>,
    /// One share of each model that the cluster hands out several times over, the most frequent
    /// kind first.
    shared: Vec<(Name, GpuAsk)>,
}

/// What the GPUs of one node come to.
pub(super) struct Asked {
    pub gpus: GpuAsk,
    /// Best first; empty: any.
    pub models: Vec<ModelAsk>,
    pub min_memory: Option<Bytes>,
}

/// Why no GPUs can be asked for as written.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub(super) enum ModelError {
    #[error(
        "`{first}` and `{other}` differ in more than the model; alternatives ask for the same \
         number of GPUs, so submit two jobs instead"
    )]
    Differ { first: GpuChoice, other: GpuChoice },
    #[error(
        "no node hands out shares of such GPUs, in time slices or by MPS; ask for a part such as \
         0.5 or 10GB instead"
    )]
    NoShares,
    #[error("there is no GPU model `{name}` (`berth gpus` lists those there are){hint}")]
    Unknown { name: String, hint: String },
    #[error("{model} has no MIG profile {profile}; it has {names}")]
    NoProfile { model: String, profile: String, names: String },
    #[error("{model} cannot be divided by MIG; ask for a part such as 0.5 instead")]
    NoMig { model: String },
}

impl Models {
    /// The cluster's own models with the memory of each.
    pub fn new(cluster: impl IntoIterator<Item = (Name, Bytes)>) -> Models {
        let mut all: Vec<(Name, Bytes)> = Vec::new();
        let known = catalog_models().map(|info| (Name::new(info.model), info.memory));
        for (model, memory) in cluster.into_iter().chain(known) {
            if !all.iter().any(|(other, _)| *other == model) {
                all.push((model, memory));
            }
        }
        Models { all, shared: Vec::new() }
    }

    /// With those that are handed out several times over.
    #[must_use]
    pub fn with_shared(self, shared: Vec<(Name, GpuAsk)>) -> Models {
        Models { shared, ..self }
    }

    pub(super) fn ask(&self, choices: &[GpuChoice]) -> Result<Asked, ModelError> {
        let Some(first) = choices.first() else {
            return Ok(Asked { gpus: GpuAsk::None, models: Vec::new(), min_memory: None });
        };
        if let Some(other) = choices.iter().find(|choice| choice.amount != first.amount) {
            let (first, other) = (first.clone(), other.clone());
            return Err(ModelError::Differ { first, other });
        }
        let (models, min_memory) = match choices {
            [GpuChoice { which: Which::Any, .. }] => (Vec::new(), None),
            [GpuChoice { which: Which::AtLeast(memory), .. }] => (Vec::new(), Some(*memory)),
            choices => (self.all_of(choices)?, None),
        };
        let gpus = match &first.amount {
            GpuAmount::Whole(0) => GpuAsk::None,
            GpuAmount::Whole(count) => GpuAsk::Whole { count: *count },
            GpuAmount::Part(milli) => GpuAsk::Fraction { milli: *milli, count: 1 },
            GpuAmount::Memory(bytes) => GpuAsk::Memory { bytes: *bytes, count: 1 },
            GpuAmount::Mig { profile, count } => {
                GpuAsk::Mig { profile: profile.clone(), count: *count }
            }
            GpuAmount::Shared(count) => self.shares(*count, &models, min_memory)?,
        };
        Ok(Asked { gpus, models: with_speeds(models), min_memory })
    }

    /// So many shares, of the first of these models that is shared out; of any if there are none.
    fn shares(
        &self,
        count: u32,
        models: &[Name],
        least: Option<Bytes>,
    ) -> Result<GpuAsk, ModelError> {
        let memory = |model: &Name| {
            let known = self.all.iter().find(|(other, _)| other == model);
            known.map_or(Bytes(0), |(_, memory)| *memory)
        };
        let is_large = |model: &Name| least.is_none_or(|least| memory(model) >= least);
        let shares = || self.shared.iter().filter(|(model, _)| is_large(model));
        let found = match models {
            [] => shares().next(),
            models => models.iter().find_map(|wanted| shares().find(|(model, _)| model == wanted)),
        };
        match found.map(|(_, share)| share) {
            Some(GpuAsk::TimeSlice { of, .. }) => Ok(GpuAsk::TimeSlice { of: *of, count }),
            Some(GpuAsk::Mps { percent, .. }) => Ok(GpuAsk::Mps { percent: *percent, count }),
            _ => Err(ModelError::NoShares),
        }
    }

    fn all_of(&self, choices: &[GpuChoice]) -> Result<Vec<Name>, ModelError> {
        let mut models = Vec::new();
        for choice in choices {
            for model in self.of(choice)? {
                if !models.contains(&model) {
                    models.push(model);
                }
            }
        }
        Ok(models)
    }

    fn of(&self, choice: &GpuChoice) -> Result<Vec<Name>, ModelError> {
        let found: Vec<Name> = match &choice.which {
            Which::Any => self.all.iter().map(|(model, _)| model.clone()).collect(),
            Which::AtLeast(least) => {
                let large = self.all.iter().filter(|(_, memory)| memory >= least);
                large.map(|(model, _)| model.clone()).collect()
            }
            Which::Model(name) => self.named(name)?,
        };
        let GpuAmount::Mig { profile, .. } = &choice.amount else { return Ok(found) };
        let (with, without): (Vec<Name>, Vec<Name>) =
            found.into_iter().partition(|model| MigProfile::find(model, profile).is_some());
        match (with.is_empty(), without.first()) {
            (true, Some(model)) => Err(no_profile(model, profile)),
            _ => Ok(with),
        }
    }

    /// The model of that name, or all whose name begins with it.
    fn named(&self, name: &str) -> Result<Vec<Name>, ModelError> {
        let same = |model: &&Name| model.eq_ignore_ascii_case(name);
        let begins = |model: &&Name| family(model).eq_ignore_ascii_case(name);
        let models = || self.all.iter().map(|(model, _)| model);
        if let Some(model) = models().find(same) {
            return Ok(vec![model.clone()]);
        }
        let found: Vec<Name> = models().filter(begins).cloned().collect();
        if !found.is_empty() {
            return Ok(found);
        }
        let words = models().flat_map(|model| [family(model), model.as_str()]);
        let hint = did_you_mean(name, words);
        Err(ModelError::Unknown { name: name.to_owned(), hint })
    }
}

/// `H100` of `H100-80GB`.
fn family(model: &str) -> &str {
    model.split_once('-').map_or(model, |(family, _)| family)
}

fn no_profile(model: &str, profile: &str) -> ModelError {
    let model = model.to_owned();
    match MigProfile::names(&model) {
        Some(names) => {
            ModelError::NoProfile { model, profile: profile.to_owned(), names: names.join(", ") }
        }
        None => ModelError::NoMig { model },
    }
}

/// How fast each is beside the first, by the catalogue; a model nobody knows counts as equal.
fn with_speeds(models: Vec<Name>) -> Vec<ModelAsk> {
    let speed = |model: &Name| catalog(model).map(|info| info.speed);
    let first = models.first().and_then(speed);
    let ask = |model: Name| {
        let relative = speed(&model).zip(first).map(|(own, first)| Milli(own * 1_000 / first));
        ModelAsk { speed: relative.unwrap_or(Milli::ONE), model }
    };
    models.into_iter().map(ask).collect()
}
