//! The tags of a run that describe its job.

use super::facts::Facts;
use berth_tracker::{Run, limits};

pub const JOB: &str = "berth.job";
/// How often the job was started. Berth writes it last: a run without it is incomplete.
pub const ATTEMPTS: &str = "berth.attempts";
/// How the job ended. Berth does not change a run that has it.
pub const END: &str = "berth.end";
/// The context of data sets that the server has mounted.
pub const SOURCE: &str = "berth";
const OURS: &str = "berth.";
/// MLflow's tags of a new run.
const MADE_WITH: [&str; 5] = [
    "mlflow.runName",
    "mlflow.user",
    "mlflow.source.name",
    "mlflow.source.type",
    "mlflow.source.git.commit",
];

/// Tags of a new run that the script may change later.
pub fn at_start(facts: &Facts) -> Vec<(String, String)> {
    let commit = facts.origin.as_ref().map(|origin| origin.commit.clone());
    let dirty = facts.origin.as_ref().map(|origin| origin.dirty.to_string());
    let all = [
        ("mlflow.source.git.commit", commit.unwrap_or_default()),
        ("berth.code.dirty", dirty.unwrap_or_default()),
        ("mlflow.runName", limits::cut(facts.name.clone(), limits::RUN_NAME)),
        ("mlflow.user", facts.user.clone()),
        ("mlflow.source.name", facts.command.clone()),
        ("mlflow.source.type", "JOB".to_owned()),
        (JOB, facts.job.map(|job| job.to_string()).unwrap_or_default()),
    ];
    kept(all)
}

/// Tags that Berth updates with the job.
pub fn of_job(facts: &Facts) -> Vec<(String, String)> {
    let text = |text: &Option<String>| text.clone().unwrap_or_default();
    let mut all = vec![
        ("berth.project", facts.project.clone()),
        ("berth.image", text(&facts.image)),
        ("berth.gpus", text(&facts.gpus)),
        ("berth.nodes", facts.nodes.join(",")),
        ("berth.leases", facts.leases.to_string()),
        ("berth.checkpoint", text(&facts.checkpoint)),
        ("berth.code", facts.code.as_ref().map(ToString::to_string).unwrap_or_default()),
        (ATTEMPTS, facts.attempts.to_string()),
    ];
    if let Some(end) = &facts.end {
        all.push(("berth.reason", end.reason.clone()));
        all.push((END, end.state.as_str().to_owned()));
    }
    kept(all)
}

/// The tags that are missing or different.
pub fn changed(run: &Run, wanted: Vec<(String, String)>) -> Vec<(String, String)> {
    wanted.into_iter().filter(|(key, value)| tag(run, key) != Some(value.as_str())).collect()
}

pub fn tag<'a>(run: &'a Run, wanted: &str) -> Option<&'a str> {
    run.tags.iter().find(|(key, _)| key == wanted).map(|(_, value)| value.as_str())
}

/// Whether only Berth has logged to a run.
pub fn is_untouched(run: &Run, facts: &Facts) -> bool {
    let own_tag = |key: &str| key.starts_with(OURS) || MADE_WITH.contains(&key);
    run.metrics.iter().all(|latest| latest.key.starts_with(OURS))
        && run.tags.iter().all(|(key, _)| own_tag(key))
        && run.params.iter().all(|(key, _)| facts.params.iter().any(|(own, _)| own == key))
        && run.datasets.iter().all(|input| input.dataset.source_type == SOURCE)
        && run.models.is_empty()
}

fn kept<'a>(all: impl IntoIterator<Item = (&'a str, String)>) -> Vec<(String, String)> {
    let has_value = all.into_iter().filter(|(_, value)| !value.is_empty());
    // Replace characters that a database refuses.
    let fit = |value: String| limits::cut(value.replace('\0', " "), limits::TAG_VALUE);
    has_value.map(|(key, value)| (key.to_owned(), fit(value))).collect()
}
