//! What registered models and their versions have in common.

use super::call::Call;
use super::shares::ALL;
use crate::encode;
use crate::error::{Code, Error, Result};
use crate::grammar;
use crate::model::{IS_PROMPT, ModelVersion, RegisteredModel};
use crate::ports::{DocKey, Kind, Load, Right, read};
use serde_json::Value;
use std::collections::BTreeSet;

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

/// A registered model that the caller may read, with its team.
pub struct Registered {
    pub team: String,
    pub model: RegisteredModel,
}

impl Registered {
    /// The name as the caller writes it: `TEAM/NAME` for a model of another team.
    pub fn name(&self, call: &Call<'_>) -> String {
        match call.actor.team() == Some(&self.team) {
            true => self.model.name.clone(),
            false => format!("{}/{}", self.team, self.model.name),
        }
    }

    pub fn key(&self) -> DocKey {
        model_key(&self.team, &self.model.name)
    }

    pub fn target(&self) -> String {
        target(&self.team, &self.model.name)
    }

    /// Refuses changes under the name `TEAM/NAME`: with it, a model is read-only.
    pub fn must_be_own(&self, call: &Call<'_>) -> Result<()> {
        if call.actor.team() == Some(&self.team) {
            return Ok(());
        }
        let said = format!(
            "Permission denied: model '{}' is of team {} and read-only under this name. A member of \
             that team can change it with the header X-Berth-Team: {}",
            self.name(call),
            self.team,
            self.team
        );
        Err(Error::new(Code::PermissionDenied, said))
    }
}

/// The name of a model in a request, without the name of the caller's own team.
pub fn named(call: &Call<'_>) -> Result<String> {
    let name = call.fields.required("name")?;
    let own = call.actor.team().and_then(|team| name.strip_prefix(team)?.strip_prefix('/'));
    Ok(own.map_or_else(|| name.clone(), str::to_owned))
}

/// Whether a filter compares the name of the model, and not a tag of that name.
pub fn is_name(field: &grammar::Field) -> bool {
    field.kind == grammar::Kind::Text && field.key == "name"
}

/// Removes the name of the caller's own team from the names in a filter.
pub fn without_own_team(clauses: &mut [grammar::Clause], team: &str) {
    for clause in clauses.iter_mut().filter(|of| is_name(&of.field)) {
        if let grammar::Value::Text(name) = &mut clause.value
            && let Some(rest) = name.strip_prefix(team).and_then(|rest| rest.strip_prefix('/'))
        {
            *name = rest.to_owned();
        }
    }
}

/// A registered model of the caller's team, or `TEAM/NAME` of another one that shares it. Names of models
/// contain no slash.
pub async fn find_model(call: &Call<'_>, name: &str) -> Result<Registered> {
    let (team, own) = match name.split_once('/') {
        Some((team, rest)) => (team, rest),
        None => (call.team_for(Right::Read)?, name),
    };
    let found = call.store.docs(model_load(team, own)).await?.pop();
    let model: RegisteredModel = read(&found.ok_or_else(|| absent_model(name))?.1)?;
    match sees(call, team, &model) {
        true => Ok(Registered { team: team.to_owned(), model }),
        false => Err(absent_model(name)),
    }
}

/// Whether the caller may read a model.
pub fn sees(call: &Call<'_>, team: &str, model: &RegisteredModel) -> bool {
    let reads = |team: &str| call.actor.may(Right::Read, team, None);
    reads(team) || model.shared_with.iter().any(|with| with == ALL || reads(with))
}

/// The entry of a shared model in the list of a team.
pub fn share_key(with: &str, of: &DocKey) -> DocKey {
    let name = format!("{}/{}", of.scope, of.name);
    DocKey { kind: Kind::ModelShare, scope: with.to_owned(), name, sub: 0 }
}

/// The models of other teams that are shared with a team.
pub async fn shared_with(call: &Call<'_>, team: &str) -> Result<Vec<Registered>> {
    let mut names = BTreeSet::new();
    for scope in [team, ALL] {
        let scope = scope.to_owned();
        let load = Load { kind: Kind::ModelShare, scope, name: None, sub: None };
        names.extend(call.store.docs(load).await?.into_iter().map(|(key, _)| key.name));
    }
    let mut found = Vec::new();
    for name in names.iter().filter_map(|name| name.split_once('/')) {
        let (of, name) = name;
        if of == team {
            continue;
        }
        let Some((_, doc)) = call.store.docs(model_load(of, name)).await?.pop() else { continue };
        let model: RegisteredModel = read(&doc)?;
        if model.shared_with.iter().any(|with| with == ALL || with == team) {
            found.push(Registered { team: of.to_owned(), model });
        }
    }
    Ok(found)
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
