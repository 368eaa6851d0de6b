//! The tags with the origin of each entity. Comparisons ignore them.

/// Of a run: its id at the source.
pub const RUN: &str = "berth.import.run";
/// Of a run: its state. See [`state`].
pub const STATE: &str = "berth.import.state";
/// Of an experiment, run or model: its source.
pub const SOURCE: &str = "berth.import.source";
/// Of an experiment: its id at the source.
pub const EXPERIMENT: &str = "berth.import.experiment";
/// Of a logged model: its id at the source.
pub const MODEL: &str = "berth.import.model";
/// Of a registered model: its name at the source.
pub const REGISTERED: &str = "berth.import.registered";
/// Of a version: its number at the source.
pub const VERSION: &str = "berth.import.version";
/// Of a version: the original location of its files.
pub const FILES: &str = "berth.import.files";
/// The original creation time and user, if the target has others.
pub const CREATED: &str = "berth.import.created";
pub const USER: &str = "berth.import.user";

pub fn is_own(key: &str) -> bool {
    key.starts_with("berth.import.")
}

/// The name of a run, which clients also store as a tag.
pub const RUN_NAME: &str = "mlflow.runName";
/// The tag that refers to another run.
pub const PARENT: &str = "mlflow.parentRunId";
/// The tag of a logged model with its registered versions. MLflow's registry writes it itself, so
/// comparisons ignore it.
pub const VERSIONS: &str = "mlflow.modelVersions";
/// The tag of prompts, which searches hide.
pub const IS_PROMPT: &str = "mlflow.prompt.is_prompt";

/// The state of a copied run: its data is complete, or everything is.
pub mod state {
    pub fn data(print: &str) -> String {
        format!("data:{print}")
    }

    pub fn done(print: &str) -> String {
        format!("done:{print}")
    }
}

/// The versions of a logged model, under the names that their models have at the target.
pub fn renamed_versions(versions: &str, prefix: &str) -> String {
    let renamed = |text: &str| -> Option<String> {
        let mut all: Vec<serde_json::Map<String, serde_json::Value>> =
            serde_json::from_str(text).ok()?;
        for one in &mut all {
            let name = format!("{prefix}{}", one.get("name")?.as_str()?);
            one.insert("name".to_owned(), name.into());
        }
        serde_json::to_string(&all).ok()
    };
    match prefix {
        "" => versions.to_owned(),
        _ => renamed(versions).unwrap_or_else(|| versions.to_owned()),
    }
}

pub fn value<'a>(tags: &'a [(String, String)], key: &str) -> Option<&'a str> {
    tags.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_keep_their_numbers_and_take_the_prefix() {
        let versions = r#"[{"name": "chat", "version": 1}]"#;
        assert_eq!(renamed_versions(versions, "back-"), r#"[{"name":"back-chat","version":1}]"#);
        assert_eq!(renamed_versions(versions, ""), versions);
        assert_eq!(renamed_versions("what a user wrote", "back-"), "what a user wrote");
    }
}
