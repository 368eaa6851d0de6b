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

pub fn value<'a>(tags: &'a [(String, String)], key: &str) -> Option<&'a str> {
    tags.iter().find(|(name, _)| name == key).map(|(_, value)| value.as_str())
}
