//! Registered models and their versions, from their folders.

use super::layout::{ALIASES, META, TAGS, name_of, pairs, some_folders};
use super::runs::Read;
use super::yaml;
use crate::error::Result;
use crate::model::{RegisteredModel, Version};
use crate::report::Problem;
use serde::Deserialize;
use serde_json::Value;
use std::path::Path;

/// The stage of deleted versions.
const DELETED: &str = "Deleted_Internal";

#[derive(Deserialize, Default)]
#[serde(default)]
struct ModelMeta {
    name: Value,
    description: Value,
    creation_timestamp: Value,
}

pub fn registered_model(folder: &Path) -> Result<Read<RegisteredModel>> {
    let meta: ModelMeta = yaml::read(&folder.join(META))?;
    let name = yaml::some(&meta.name).unwrap_or_else(|| name_of(folder));
    let mut problems = Vec::new();
    let mut lost = |what: String, why: String| {
        problems.push(Problem { what: format!("{what} of model {name}"), why });
    };
    let tags = pairs(&folder.join(TAGS), |key, why| lost(format!("tag {key}"), why))?;
    let mut aliases = Vec::new();
    for (alias, version) in
        pairs(&folder.join(ALIASES), |key, why| lost(format!("alias {key}"), why))?
    {
        match version.trim().parse() {
            Ok(version) => aliases.push((alias, version)),
            Err(_) => lost(format!("alias {alias}"), "it names no version".to_owned()),
        }
    }
    let read = RegisteredModel {
        description: yaml::text(&meta.description),
        created: yaml::int(&meta.creation_timestamp),
        tags,
        aliases,
        name: name.clone(),
    };
    Ok((read, problems))
}

#[derive(Deserialize, Default)]
#[serde(default)]
pub struct VersionMeta {
    version: Value,
    pub description: Value,
    pub current_stage: Value,
    pub source: Value,
    pub storage_location: Value,
    pub run_id: Value,
    pub run_link: Value,
    pub model_id: Value,
    pub user_id: Value,
    pub creation_timestamp: Value,
}

pub fn versions(model: &Path) -> Result<Read<Vec<Version>>> {
    let (mut found, mut problems) = (Vec::new(), Vec::new());
    for folder in some_folders(model)? {
        let Some(said) = name_of(&folder).strip_prefix("version-").map(str::to_owned) else {
            continue;
        };
        let what = || format!("version {said} of model {}", name_of(model));
        let mut lost = |why: String| problems.push(Problem { what: what(), why });
        let meta: VersionMeta = match yaml::read(&folder.join(META)) {
            Ok(meta) => meta,
            Err(error) => {
                lost(error.whole());
                continue;
            }
        };
        let stage = yaml::some(&meta.current_stage).unwrap_or_else(|| "None".to_owned());
        if stage == DELETED {
            continue;
        }
        let number = yaml::int(&meta.version).and_then(|version| u64::try_from(version).ok());
        let Some(version) = number.or_else(|| said.parse().ok()) else {
            lost("it has no number".to_owned());
            continue;
        };
        let tags = pairs(&folder.join(TAGS), |key, why| lost(format!("tag {key}: {why}")))?;
        found.push(Version {
            version,
            description: yaml::text(&meta.description),
            stage,
            source: yaml::text(&meta.source),
            run: yaml::some(&meta.run_id),
            run_link: yaml::some(&meta.run_link),
            model: yaml::some(&meta.model_id),
            user: yaml::some(&meta.user_id),
            created: yaml::int(&meta.creation_timestamp),
            tags,
        });
    }
    found.sort_by_key(|one| one.version);
    Ok((found, problems))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_model_is_read_with_its_versions_and_without_those_that_are_deleted() {
        let root = tempfile::tempdir().unwrap();
        let model = root.path().join("chat");
        let write = |path: &str, text: &str| {
            let path = model.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write("meta.yaml", "name: chat\ndescription: talks\ncreation_timestamp: 5\n");
        write("tags/owner", "kim");
        write("aliases/champion", "10");
        write("aliases/odd", "x");
        write(
            "version-10/meta.yaml",
            "version: 10\ncurrent_stage: Production\nsource: runs:/r/m\n",
        );
        write("version-2/meta.yaml", "version: 2\ncurrent_stage: Deleted_Internal\n");
        write("version-3/meta.yaml", "version: 3\ncurrent_stage: None\nrun_id: r\n");
        let (read, problems) = registered_model(&model).unwrap();
        assert_eq!(read.aliases, [("champion".to_owned(), 10)]);
        assert_eq!(read.tags, [("owner".to_owned(), "kim".to_owned())]);
        assert_eq!(problems.len(), 1);
        let (found, problems) = versions(&model).unwrap();
        assert!(problems.is_empty(), "{problems:?}");
        let numbers: Vec<u64> = found.iter().map(|one| one.version).collect();
        assert_eq!(numbers, [3, 10]);
        assert_eq!((found[0].stage.as_str(), found[0].run.as_deref()), ("None", Some("r")));
    }
}
