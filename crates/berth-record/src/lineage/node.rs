//! Formats nodes.

use super::known::{Job, Spent};
use super::tracked::tag;
use berth_api::wire::{At, LineageDetails, LineageKind, LineageNode};
use berth_model::Time;
use berth_store::DataVersionRow;
use berth_tracker::{Experiment, LoggedModel, ModelVersion, Run};

/// The length of a short digest.
const SHORT: usize = 12;

fn at(ms: i64) -> Option<At> {
    Some(At(Time(ms)))
}

fn text(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

pub(crate) fn node(kind: LineageKind, id: String, name: &str, team: &str) -> LineageNode {
    LineageNode {
        id,
        kind,
        name: name.to_owned(),
        team: team.to_owned(),
        label: name.to_owned(),
        hidden: false,
        gone: false,
        details: LineageDetails::default(),
    }
}

/// A node that the caller may not see, with its kind only.
pub(crate) fn hidden(kind: LineageKind, number: usize) -> LineageNode {
    let label = "hidden: you may not see it".to_owned();
    let node = node(kind, format!("hidden:{number}"), "", "");
    LineageNode { hidden: true, label, ..node }
}

/// A node that no longer exists.
pub(crate) fn gone(node: LineageNode) -> LineageNode {
    let label = format!("{} (removed)", node.label);
    LineageNode { gone: true, label, ..node }
}

pub(crate) fn of_version(
    id: String,
    team: &str,
    version: &ModelVersion,
    aliases: Vec<String>,
) -> LineageNode {
    let details = LineageDetails {
        status: text(&version.stage).filter(|stage| stage != "None"),
        by: text(&version.by),
        created: at(version.created),
        source: text(&version.source),
        note: version.description.clone().filter(|note| !note.is_empty()),
        aliases,
        ..LineageDetails::default()
    };
    let label = format!("{} version {}", version.name, version.version);
    let name = format!("{}@{}", version.name, version.version);
    LineageNode { label, details, ..node(LineageKind::Model, id, &name, team) }
}

pub(crate) fn of_logged(id: String, team: &str, model: &LoggedModel) -> LineageNode {
    let details = LineageDetails {
        status: text(model.status.strip_prefix("LOGGED_MODEL_").unwrap_or(&model.status)),
        by: text(&model.by),
        created: at(model.created),
        experiment_id: Some(model.experiment.to_string()),
        note: text(&model.model_type),
        ..LineageDetails::default()
    };
    let label = format!("logged model {}", model.name);
    LineageNode { label, details, ..node(LineageKind::LoggedModel, id, &model.id, team) }
}

pub(crate) fn of_run(id: String, run: &Run, experiment: &Experiment) -> LineageNode {
    let details = LineageDetails {
        status: text(&run.status),
        by: text(&run.user),
        started: run.start.and_then(at),
        ended: run.end.and_then(at),
        project: tag(run, "berth.project").map(str::to_owned),
        experiment: text(&experiment.name),
        experiment_id: Some(experiment.no.to_string()),
        checkpoint: tag(run, "berth.checkpoint").map(str::to_owned),
        gpus: tag(run, "berth.gpus").map(str::to_owned),
        ..LineageDetails::default()
    };
    let name = if run.name.is_empty() { &run.id } else { &run.name };
    let node = node(LineageKind::Run, id, &run.id, &experiment.team);
    let node = LineageNode { label: format!("run {name}"), details, ..node };
    if run.deleted { gone(node) } else { node }
}

pub(crate) fn of_job(id: String, job: &Job, spent: Spent) -> LineageNode {
    let row = &job.row;
    let details = LineageDetails {
        status: Some(row.state.as_str().to_owned()),
        by: text(&row.user),
        created: Some(row.submitted.into()),
        started: row.started.map(At),
        ended: row.ended.map(At),
        cost_micros: Some(spent.cost_micros),
        gpu_ms: Some(spent.gpu_ms),
        asks: job.detail.as_ref().and_then(|detail| text(&detail.asks)),
        project: text(&row.project),
        ..LineageDetails::default()
    };
    let label = format!("job {} {}", row.id, row.name);
    LineageNode { label, details, ..node(LineageKind::Job, id, &row.name, &row.team) }
}

pub(crate) fn of_data(id: String, row: &DataVersionRow) -> LineageNode {
    let details = LineageDetails {
        by: text(&row.by),
        created: Some(row.created.into()),
        hash: text(&row.hash),
        bytes: Some(row.bytes),
        files: Some(row.files),
        note: text(&row.note),
        ..LineageDetails::default()
    };
    let name = format!("{}@v{}", row.name, row.version);
    LineageNode { details, ..node(LineageKind::Data, id, &name, &row.team) }
}

/// A short digest or commit.
pub(crate) fn short(digest: &str) -> String {
    match digest.split_once(':') {
        Some((kind, digits)) => format!("{kind}:{}", cut(digits)),
        None => cut(digest),
    }
}

fn cut(text: &str) -> String {
    text.chars().take(SHORT).collect()
}

pub(crate) fn of_code(
    id: String,
    (team, name): (&str, &str),
    commit: Option<&str>,
    dirty: Option<bool>,
) -> LineageNode {
    let what = match commit {
        Some(commit) => format!("commit {}", short(commit)),
        None => format!("code {}", short(name)),
    };
    let label = if dirty == Some(true) { format!("{what} with changes") } else { what };
    let details = LineageDetails {
        commit: commit.map(str::to_owned),
        dirty,
        hash: name.starts_with("sha256:").then(|| name.to_owned()),
        ..LineageDetails::default()
    };
    LineageNode { label, details, ..node(LineageKind::Code, id, name, team) }
}

pub(crate) fn of_dataset(
    id: String,
    (team, name): (&str, &str),
    digest: &str,
    source: &str,
) -> LineageNode {
    let details =
        LineageDetails { hash: text(digest), source: text(source), ..LineageDetails::default() };
    let label = format!("data set {name}");
    LineageNode { label, details, ..node(LineageKind::Dataset, id, name, team) }
}
