//! Jobs.

use super::{At, Id};
use super::{Exit, JobKind, JobState};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use utoipa::{IntoParams, ToSchema};

/// A job as lists show it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Job {
    pub id: Id,
    pub name: String,
    pub kind: JobKind,
    pub state: JobState,
    pub user: String,
    pub team: String,
    pub project: String,
    pub experiment: String,
    pub priority: i32,
    pub nodes: u32,
    /// Of all its nodes together.
    pub gpus_milli: i64,
    /// What it asks for, in the words of its file: `4 x H100:8`.
    pub asks: String,
    pub submitted: At,
    pub started: Option<At>,
    pub ended: Option<At>,
    /// How often it was started.
    pub attempts: u32,
    /// So far.
    pub cost_micros: i64,
    /// While it runs.
    pub price_micros_per_hour: Option<i64>,
    /// Its place among those who wait in its queue, from 1.
    pub position: Option<u32>,
    /// It starts by then in half of all cases.
    pub eta: Option<At>,
    /// And by then in nine of ten.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub eta_p90: Option<At>,
    /// What it will have cost when it ends as expected: while it runs at its price, and before at the
    /// cheapest one it could have. None where nothing has a price, and of one that has ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub projected_micros: Option<i64>,
    /// Mean utilization of its GPUs in each of the last 30 minutes, in thousandths, the newest last;
    /// only where figures were asked for and it runs on GPUs that have some.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub utilization: Option<Vec<Option<i64>>>,
    /// Why it waits, or how it ended, in one line.
    pub reason: Option<String>,
    /// Code of the reason.
    pub reason_code: Option<String>,
    pub exit: Option<Exit>,
    /// Where it runs.
    pub on: Vec<String>,
    /// Where a notebook or service answers.
    pub url: Option<String>,
    /// A service has answered its check.
    pub ready: bool,
    /// Its GPUs are declared, not real.
    pub declared: bool,
    pub labels: BTreeMap<String, String>,
    pub tags: Vec<String>,
    pub comment: Option<String>,
    /// Values of its sweep, for an element of one.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub parameters: BTreeMap<String, String>,
    /// The id of its tracked run, once it has started. Each element of an array has its own run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub run: Option<String>,
}

/// A page of jobs.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
pub struct JobList {
    pub jobs: Vec<Job>,
    /// Where the next page begins; none after the last. A page may hold fewer jobs than were asked
    /// for, or none, and still have a next one.
    pub next: Option<String>,
    /// All that the filter lets through, on all pages, by state; empty unless they were asked for.
    #[serde(default)]
    pub counts: BTreeMap<JobState, u64>,
    /// What an hour of all of them that run costs, on all pages; left out like the counts, and where
    /// jobs are chosen by a text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub price_micros_per_hour: Option<i64>,
    /// On Kubernetes, with the first page: gangs that are no jobs yet, because pods of them do not
    /// exist.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub incomplete: Vec<IncompleteGang>,
}

/// Pods that are to begin together and do not all exist.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct IncompleteGang {
    /// Its Kubernetes namespace.
    pub namespace: String,
    pub name: String,
    pub queue: String,
    /// How many of its pods exist.
    pub pods: u32,
    /// How many have to exist before it starts.
    pub needed: u32,
    pub since: At,
    pub reason: String,
}

/// Which jobs. What is left out does not filter.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
pub struct JobQuery {
    /// States, separated by commas; `active` stands for all but the ended ones.
    pub state: Option<String>,
    pub user: Option<String>,
    pub team: Option<String>,
    pub project: Option<String>,
    pub experiment: Option<String>,
    /// The exact name.
    pub name: Option<String>,
    /// Part of a name, a comment or a tag.
    pub text: Option<String>,
    /// Submitted since.
    #[param(value_type = Option<At>)]
    pub since: Option<At>,
    /// At most 1000; 100 where left out.
    pub limit: Option<u32>,
    /// `next` of the page before.
    pub cursor: Option<String>,
    /// What they are sorted by: `id`, `submitted`, `name`, `state`, `priority`, `gpus`, `cost` or
    /// `eta`; with `-` before it the largest first. `-id` where left out. `eta` is of jobs that wait,
    /// and leaves out the others.
    pub sort: Option<String>,
    /// Only one's own.
    pub mine: bool,
    /// With the utilization of GPUs.
    pub figures: bool,
    /// Whether to count all jobs that the filter lets through. That takes longer, the more there
    /// are.
    pub counts: bool,
}

/// How a job file is to be taken. The body is the file, as YAML or JSON.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, IntoParams)]
#[serde(default)]
#[into_params(parameter_in = Query)]
pub struct SubmitQuery {
    /// It waits until a user releases it. This overrides the file.
    pub hold: bool,
    /// Everything is checked and nothing is submitted.
    pub dry_run: bool,
    /// A template that the file is laid over.
    pub template: Option<String>,
    /// The folder to start in where neither names one. It means nothing where jobs run in
    /// containers.
    pub here: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct JobSubmitted {
    /// None for a dry run, and for a schedule, which makes jobs later.
    pub id: Option<Id>,
    pub name: String,
    /// The schedule that was made.
    pub schedule: Option<String>,
    /// Elements of its array.
    pub elements: u32,
    pub warnings: Vec<Warning>,
    /// The same request was answered before; nothing was submitted twice.
    pub repeated: bool,
}

/// What was taken as written and has no effect.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Warning {
    /// The key of the job file it is about.
    pub key: String,
    pub message: String,
    pub line: Option<usize>,
}

/// What to change. What is left out stays; for a deadline, `null` removes it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct JobChange {
    /// A class or a number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub priority: Option<String>,
    /// Such as `6h`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub time: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none", with = "some_or_null")]
    #[schema(value_type = Option<String>)]
    pub deadline: Option<Option<String>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub team: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hold: Option<bool>,
}

/// Tells a field that is `null` from one that is not there.
mod some_or_null {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    pub fn serialize<S: Serializer>(
        value: &Option<Option<String>>,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        value.as_ref().and_then(Option::as_ref).serialize(serializer)
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(
        deserializer: D,
    ) -> Result<Option<Option<String>>, D::Error> {
        Option::deserialize(deserializer).map(Some)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct JobStop {
    /// Kill it without its grace.
    pub now: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, deny_unknown_fields)]
pub struct JobClone {
    /// Keys of a job file, laid over the old file, as YAML or JSON text. A key with `null` is left out
    /// of the old file.
    pub file: Option<String>,
    /// It goes on from the old job's checkpoint.
    pub resume: bool,
}

/// One time that a job ran, on all its nodes.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Attempt {
    /// From 0.
    pub number: u32,
    pub opened: At,
    pub started: Option<At>,
    pub closed: Option<At>,
    pub exit: Option<Exit>,
    pub cost_micros: i64,
    pub leases: Vec<Lease>,
}

/// GPUs held by one task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct Lease {
    /// Such as `17_3/0#1`: job, task and attempt.
    pub id: String,
    pub task: u32,
    pub node: String,
    /// Indices on the node.
    pub gpus: Vec<u32>,
    pub gpus_milli: i64,
    pub price_micros_per_hour: i64,
    pub opened: At,
    pub started: Option<At>,
    pub closed: Option<At>,
    pub exit: Option<Exit>,
    pub cost_micros: i64,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(json: &str) -> JobChange {
        serde_json::from_str(json).unwrap()
    }

    #[test]
    fn a_deadline_that_is_null_is_told_from_one_that_is_not_named() {
        assert_eq!(change("{}").deadline, None);
        assert_eq!(change(r#"{"deadline": null}"#).deadline, Some(None));
        assert_eq!(change(r#"{"deadline": "6h"}"#).deadline, Some(Some("6h".into())));
        for json in ["{}", r#"{"deadline":null}"#, r#"{"deadline":"6h"}"#] {
            assert_eq!(serde_json::to_string(&change(json)).unwrap(), json);
        }
    }

    #[test]
    fn the_words_of_states_are_those_on_the_wire() {
        for state in JobState::ALL {
            assert_eq!(serde_json::to_string(&state).unwrap(), format!("\"{}\"", state.as_str()));
        }
    }
}
