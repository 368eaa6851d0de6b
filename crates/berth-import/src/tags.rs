//! The tags by which a target knows what it has from where. They are left out of comparisons.

/// Of a run: its id at the source.
pub const RUN: &str = "berth.import.run";
/// Of a run: how far it is. See [`state`].
pub const STATE: &str = "berth.import.state";
/// Of an experiment, run or model: where it is from.
pub const SOURCE: &str = "berth.import.source";
/// Of an experiment: its id at the source.
pub const EXPERIMENT: &str = "berth.import.experiment";
/// Of a logged model: its id at the source.
pub const MODEL: &str = "berth.import.model";
/// Of a registered model: its name at the source.
pub const REGISTERED: &str = "berth.import.registered";
/// Of a version: its number at the source.
pub const VERSION: &str = "berth.import.version";
/// Of a version: where its files were.
pub const FILES: &str = "berth.import.files";
/// When it was made and by which user, where the target says something else.
pub const CREATED: &str = "berth.import.created";
pub const USER: &str = "berth.import.user";

pub fn is_own(key: &str) -> bool {
    key.starts_with("berth.import.")
}

/// The name of a run, which clients keep as a tag too.
pub const RUN_NAME: &str = "mlflow.runName";
/// The one tag that names another run.
pub const PARENT: &str = "mlflow.parentRunId";
/// A registered model with this tag is a prompt, which searches hide.
pub const IS_PROMPT: &str = "mlflow.prompt.is_prompt";

/// How far a run is: its data is there, or all of it is.
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
