//! What registered models and their versions have in common.

use super::call::Call;
use crate::encode;
use crate::error::{Error, Result};
use crate::grammar;
use crate::model::{IS_PROMPT, ModelVersion, RegisteredModel};
use crate::ports::{DocKey, Kind, Load, Right, read};
use serde_json::Value;

pub const NO_STAGE: &str = "None";
pub const STAGES: &[&str] = &[NO_STAGE, "Staging", "Production", "Archived"];

pub fn model_key(team: &str, name: &str) -> DocKey {
    let (scope, name) = (team.to_owned(), name.to_owned());
    DocKey { kind: Kind::RegisteredModel, scope, name, sub: 0 }
}

pub fn model_load(team: &str, name: &str) -> Load {
    let (scope, name) = (team.to_owned(), Some(name.to_owned()));
    Load { kind: Kind::RegisteredModel, scope, name, sub: Some(0) }
}

pub fn versions_load(team: &str, name: &str) -> Load {
    let (scope, name) = (team.to_owned(), Some(name.to_owned()));
    Load { kind: Kind::ModelVersion, scope, name, sub: None }
}

pub fn absent_model(name: &str) -> Error {
    Error::absent(format!("Registered Model with name={name} not found"))
}

pub fn target(team: &str, name: &str) -> String {
    format!("model {team}/{name}")
}

/// A registered model of the caller's team.
pub async fn find_model(call: &Call<'_>, name: &str) -> Result<RegisteredModel> {
    let team = call.team_for(Right::Read)?;
    let found = call.store.docs(model_load(team, name)).await?.pop();
    read(&found.ok_or_else(|| absent_model(name))?.1)
}

/// Whether a filter mentions the prompt tag. Without it, a search leaves prompts out.
pub fn names_prompts(clauses: &[grammar::Clause]) -> bool {
    clauses.iter().any(|of| of.field.kind == grammar::Kind::Tag && of.field.key == IS_PROMPT)
}

/// Updates the newest version of each stage.
pub fn count_newest(model: &mut RegisteredModel, versions: &[ModelVersion]) {
    model.newest.clear();
    for stage in STAGES {
        let of = versions.iter().filter(|one| one.stage == *stage);
        if let Some(newest) = of.map(|one| one.version).max() {
            model.newest.insert((*stage).to_owned(), newest);
        }
    }
}

pub fn version_key(team: &str, name: &str, version: u64) -> DocKey {
    DocKey {
        kind: Kind::ModelVersion,
        scope: team.to_owned(),
        name: name.to_owned(),
        sub: version.cast_signed(),
    }
}

pub fn number(text: &str) -> Result<u64> {
    let found = text.parse().ok().filter(|version| *version <= u64::from(u32::MAX));
    found.ok_or_else(|| {
        Error::invalid(format!("Parameter 'version' must be an integer, got '{text}'."))
    })
}

/// The canonical form of a stage. The case of the input does not matter.
pub fn stage(word: &str) -> Result<&'static str> {
    let found = STAGES.iter().find(|stage| stage.eq_ignore_ascii_case(word));
    found.copied().ok_or_else(|| {
        Error::invalid(format!(
            "Invalid Model Version stage: {word}. Value must be one of {}.",
            STAGES.join(", ")
        ))
    })
}

pub fn absent_version(name: &str, version: u64) -> Error {
    Error::absent(format!("Model Version (name={name}, version={version}) not found"))
}

/// A version with the aliases that name it.
pub fn with_aliases(model: &RegisteredModel, version: &ModelVersion) -> Value {
    let named = model.aliases.iter().filter(|(_, number)| **number == version.version);
    let aliases: Vec<&str> = named.map(|(alias, _)| alias.as_str()).collect();
    encode::version(version, &aliases)
}
