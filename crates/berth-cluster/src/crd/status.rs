//! What stands in the status of objects. What is the same is not written again, and figures that
//! move all the time are written every few seconds.

use super::Controller;
use crate::crd::object::{Acceptance, Key, Known};
use crate::crd::schema::is_namespaced;
use berth_api::wire;
use berth_core::QueueReport;
use berth_engine::clock;
use berth_file::documents::Want;
use berth_file::object::{GROUP, Kind, VERSION};
use berth_kube::PatchType;
use berth_model::{Budget, JobId, Micros, Milli, Name, Time};
use berth_service::objects;
use futures_util::StreamExt;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Between two writes about figures alone.
const MIN_WRITE_INTERVAL: Duration = Duration::from_secs(5);
/// Writes that are under way at once. They can wait, and bindings should not.
const MAX_CONCURRENT_WRITES: usize = 8;
/// Nodes of a job that are named.
const NODES_NAMED: usize = 4;

type Fields = Map<String, Value>;

/// Everything that statuses are made of.
struct Facts {
    queues: BTreeMap<Name, QueueReport>,
    policy: u64,
    jobs: BTreeMap<JobId, wire::Job>,
}

impl Controller {
    /// Writes what has changed.
    pub(super) async fn write_statuses(&mut self) {
        let Some(facts) = self.facts().await else { return };
        let now = Time(clock::now().0 / 1_000 * 1_000);
        let mut writes = Vec::new();
        for (kind, objects) in &mut self.objects {
            for (key, known) in objects {
                let Some(acceptance) = &known.acceptance else { continue };
                if known.is_over {
                    continue;
                }
                let status = status(*kind, known, acceptance, &facts, now);
                if status != known.object.status && is_due(known, &status) {
                    writes.push((*kind, key.clone(), status));
                } else if status == known.object.status {
                    known.is_over = is_over(known, &facts);
                }
            }
        }
        let api = &self.context.api;
        let old = |kind: &Kind, key: &Key| &self.objects[kind][key].object.status;
        let writes: Vec<_> = writes
            .into_iter()
            .map(|(kind, key, status)| (patch(old(&kind, &key), &status), kind, key, status))
            .collect();
        let writing =
            futures_util::stream::iter(writes).map(|(patch, kind, key, status)| async move {
                let written = api.patch(&path(kind, &key), PatchType::Merge, &patch).await;
                (kind, key, status, written)
            });
        let written: Vec<_> = writing.buffer_unordered(MAX_CONCURRENT_WRITES).collect().await;
        for (kind, key, status, written) in written {
            let known = self.objects.get_mut(&kind).and_then(|all| all.get_mut(&key));
            match (written, known) {
                (Ok(_), Some(known)) => {
                    known.object.status = status;
                    known.wrote = Some(Instant::now());
                }
                // It is gone, and will be seen to be.
                (Err(error), _) if !error.is_not_found() => {
                    tracing::debug!(%error, "a status could not be written; trying again");
                }
                _ => {}
            }
        }
    }

    /// Nothing while the store cannot be read.
    async fn facts(&self) -> Option<Facts> {
        let jobs = self.of(Kind::Job).filter(|known| !known.is_over);
        let jobs: Vec<JobId> = jobs.filter_map(|known| known.job).collect();
        let jobs = match jobs.is_empty() {
            true => BTreeMap::new(),
            false => objects::shown(&self.service, &jobs).await.ok()?,
        };
        let of_queues = [Kind::Queue, Kind::Budget];
        let any = of_queues.iter().any(|kind| self.of(*kind).next().is_some());
        let mut core = self.service.engine.core();
        let queues = if any { with_below(core.state.queue_reports()) } else { BTreeMap::new() };
        Some(Facts { queues, policy: core.state.policy().version, jobs })
    }
}

/// Where the status of an object is.
fn path(kind: Kind, (namespace, name): &Key) -> String {
    let plural = kind.plural();
    match is_namespaced(kind) {
        true => format!("/apis/{GROUP}/{VERSION}/namespaces/{namespace}/{plural}/{name}/status"),
        false => format!("/apis/{GROUP}/{VERSION}/{plural}/{name}/status"),
    }
}

/// What is true of an object is written at once, figures after a while.
fn is_due(known: &Known, status: &Value) -> bool {
    let is_news = status["conditions"] != known.object.status["conditions"];
    is_news || known.wrote.is_none_or(|wrote| wrote.elapsed() >= MIN_WRITE_INTERVAL)
}

/// A job that has ended stays as it is.
fn is_over(known: &Known, facts: &Facts) -> bool {
    known.job.is_some() && job_of(known, facts).is_none_or(|job| is_final(job.state))
}

/// The job of an object. After a loss of the database its number may be another one's.
fn job_of<'a>(known: &Known, facts: &'a Facts) -> Option<&'a wire::Job> {
    let job = facts.jobs.get(&known.job?)?;
    let uid = job.labels.get(objects::LABEL)?;
    (*uid == known.object.metadata.uid).then_some(job)
}

const fn is_final(state: wire::JobState) -> bool {
    matches!(state, wire::JobState::Done | wire::JobState::Failed | wire::JobState::Cancelled)
}

/// The status that makes the other one of the first; what is not there any more is named.
fn patch(old: &Value, new: &Value) -> Value {
    let mut fields = new.as_object().cloned().unwrap_or_default();
    for key in old.as_object().into_iter().flat_map(Map::keys) {
        fields.entry(key.clone()).or_insert(Value::Null);
    }
    json!({ "status": fields })
}

fn status(kind: Kind, known: &Known, acceptance: &Acceptance, facts: &Facts, now: Time) -> Value {
    let job = job_of(known, facts);
    let mut fields = match kind {
        Kind::Queue => queue(facts.queues.get(known.object.metadata.name.as_str())),
        Kind::Policy => [("version".to_owned(), json!(facts.policy))].into_iter().collect(),
        Kind::Pool => Fields::new(),
        // A job that the store has deleted keeps its last status.
        Kind::Job if known.job.is_some() && job.is_none() => return known.object.status.clone(),
        Kind::Job => job.map(of_job).unwrap_or_default(),
        Kind::Budget => budget(known, facts),
    };
    let has_job = known.job.is_some();
    if !acceptance.is_accepted && !has_job {
        fields.insert("state".to_owned(), json!("Rejected"));
    } else {
        fields.entry("state").or_insert(json!("Accepted"));
    }
    let generation = if has_job { known.made_of } else { known.object.metadata.generation };
    let mut conditions = vec![(
        "Accepted",
        acceptance.is_accepted,
        acceptance.reason.as_str(),
        acceptance.message.as_str(),
    )];
    match (job, kind) {
        (Some(job), _) => conditions.extend(of_end(job)),
        (None, Kind::Job) => {}
        (None, _) => conditions.push(ready(acceptance)),
    }
    let old = &known.object.status["conditions"];
    let conditions: Vec<Value> =
        conditions.into_iter().map(|one| condition(old, one, generation, now)).collect();
    fields.insert("conditions".to_owned(), Value::Array(conditions));
    Value::Object(fields)
}

/// Type, status, reason and message of a condition.
type Condition<'a> = (&'a str, bool, &'a str, &'a str);

fn ready(acceptance: &Acceptance) -> Condition<'_> {
    match (&acceptance.warning, acceptance.is_accepted) {
        (_, false) => ("Ready", false, &acceptance.reason, &acceptance.message),
        (Some((reason, message)), true) => ("Ready", false, reason, message),
        (None, true) => ("Ready", true, "Ready", &acceptance.message),
    }
}

/// Why a job waits moves all the time, so conditions do not tell it.
fn of_end(job: &wire::Job) -> [Condition<'_>; 3] {
    use wire::JobState::{Cancelled, Done, Failed, Pending, Running, Starting, Stopping};
    let word = state_word(job.state);
    let runs = matches!(job.state, Starting | Running | Stopping);
    let failed = matches!(job.state, Failed | Cancelled);
    let why = job.reason.as_deref().filter(|_| failed).unwrap_or_default();
    let running = if job.state == Pending { "Waiting" } else { word };
    [
        ("Running", runs, running, ""),
        ("Complete", job.state == Done, word, ""),
        ("Failed", failed, word, why),
    ]
}

const fn state_word(state: wire::JobState) -> &'static str {
    match state {
        wire::JobState::Pending => "Pending",
        wire::JobState::Starting => "Starting",
        wire::JobState::Running => "Running",
        wire::JobState::Stopping => "Stopping",
        wire::JobState::Paused => "Paused",
        wire::JobState::Done => "Done",
        wire::JobState::Failed => "Failed",
        wire::JobState::Cancelled => "Cancelled",
    }
}

/// It keeps the time since when it is so.
fn condition(old: &Value, (kind, is, reason, message): Condition<'_>, at: i64, now: Time) -> Value {
    let status = if is { "True" } else { "False" };
    let before = old.as_array().into_iter().flatten().find(|one| one["type"] == kind);
    let since = before.filter(|one| one["status"] == status);
    let since = since.and_then(|one| one["lastTransitionTime"].as_str());
    let now = now.to_string();
    json!({
        "type": kind,
        "status": status,
        "reason": reason,
        "message": message,
        "observedGeneration": at,
        "lastTransitionTime": since.unwrap_or(&now),
    })
}

/// Reports in which a queue counts the jobs of all below it.
fn with_below(reports: Vec<QueueReport>) -> BTreeMap<Name, QueueReport> {
    let mut all: BTreeMap<Name, QueueReport> =
        reports.iter().map(|report| (report.name.clone(), report.clone())).collect();
    let parents: BTreeMap<&Name, &Name> =
        reports.iter().filter_map(|report| Some((&report.name, report.parent.as_ref()?))).collect();
    for report in &reports {
        let mut above = parents.get(&report.name);
        while let Some(parent) = above {
            if let Some(parent) = all.get_mut(*parent) {
                parent.waiting += report.waiting;
                parent.running += report.running;
            }
            above = parents.get(*parent);
        }
    }
    all
}

fn queue(report: Option<&QueueReport>) -> Fields {
    let Some(report) = report else { return Fields::new() };
    let state = match (report.running, report.waiting) {
        (0, 0) => "Idle",
        (0, _) => "Waiting",
        _ => "Active",
    };
    let fields = json!({
        "quotaGpus": gpus(report.quota),
        "usedGpus": gpus(report.used),
        "shareGpus": gpus(report.fair_share),
        "pending": report.waiting,
        "running": report.running,
        "state": state,
    });
    fields.as_object().cloned().unwrap_or_default()
}

/// More than any cluster has is no number to read.
fn gpus(amount: Milli) -> String {
    if amount > Milli::whole(1_000_000_000) { "unlimited".to_owned() } else { amount.to_string() }
}

fn budget(known: &Known, facts: &Facts) -> Fields {
    let Some(Ok(Want::Budget { queue, budget })) = &known.want else { return Fields::new() };
    let spent = facts.queues.get(queue).and_then(|report| report.spent);
    let mut fields = Fields::new();
    fields.insert("queue".to_owned(), json!(queue.as_str()));
    fields.insert("limit".to_owned(), json!(dollars(budget.limit)));
    fields.insert("per".to_owned(), json!(budget.per));
    if let Some(spent) = spent {
        fields.insert("spent".to_owned(), json!(dollars(spent)));
        fields.insert("state".to_owned(), json!(how_far(budget, spent)));
    }
    fields
}

fn how_far(budget: &Budget, spent: Micros) -> &'static str {
    let is_past = |threshold: &Milli| {
        i128::from(spent.0) * 1_000 >= i128::from(budget.limit.0) * i128::from(threshold.0)
    };
    match (spent >= budget.limit, budget.thresholds.iter().any(is_past)) {
        (true, _) => "Spent",
        (false, true) => "Alert",
        (false, false) => "Within",
    }
}

fn dollars(amount: Micros) -> String {
    let cents = amount.0 / 10_000;
    let sign = if cents < 0 { "-" } else { "" };
    let cents = cents.unsigned_abs();
    format!("{sign}${}.{:02}", cents / 100, cents % 100)
}

fn of_job(job: &wire::Job) -> Fields {
    let mut fields = Fields::new();
    let mut put = |key: &str, value: Value| drop(fields.insert(key.to_owned(), value));
    put("job", json!(job.id.to_string()));
    put("team", json!(job.team));
    put("gpus", json!(Milli(job.gpus_milli).to_string()));
    put("cost", json!(dollars(Micros(job.cost_micros))));
    put("state", json!(state_word(job.state)));
    if let Some(position) = job.position {
        put("position", json!(position));
    }
    if let Some(eta) = job.eta {
        // To the minute: it is a forecast.
        let moment: String = eta.0.to_string().chars().take("2026-11-16T03:00".len()).collect();
        put("eta", json!(format!("{moment}Z")));
    }
    if let Some(reason) = &job.reason {
        put("reason", json!(reason));
    }
    if !job.on.is_empty() {
        let named: Vec<&str> = job.on.iter().take(NODES_NAMED).map(String::as_str).collect();
        let more = match job.on.len() - named.len() {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        put("nodes", json!(format!("{}{more}", named.join(","))));
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_condition_keeps_the_time_since_when_it_is_so() {
        let first: Time = "2026-11-16T03:00:00Z".parse().unwrap();
        let later: Time = "2026-11-16T04:00:00Z".parse().unwrap();
        let old = json!([condition(&Value::Null, ("Ready", true, "Ready", ""), 1, first)]);
        let same = condition(&old, ("Ready", true, "Ready", "another word"), 2, later);
        assert_eq!(same["lastTransitionTime"], "2026-11-16T03:00:00Z");
        let other = condition(&old, ("Ready", false, "Odd", ""), 2, later);
        assert_eq!(other["lastTransitionTime"], "2026-11-16T04:00:00Z");
    }

    #[test]
    fn what_is_not_there_any_more_is_taken_out() {
        let (old, new) = (json!({ "position": 3, "cost": "$0.00" }), json!({ "cost": "$1.00" }));
        let expect = json!({ "status": { "position": null, "cost": "$1.00" } });
        assert_eq!(patch(&old, &new), expect);
    }

    #[test]
    fn money_and_gpus_are_written_for_people() {
        assert_eq!(dollars(Micros(1_239_999)), "$1.23");
        assert_eq!(dollars(Micros(-50_000)), "-$0.05");
        assert_eq!((gpus(Milli(500)), gpus(Milli(i64::MAX))), ("0.5".into(), "unlimited".into()));
    }

    #[test]
    fn a_budget_says_how_far_it_is_spent() {
        let budget = Budget {
            limit: Micros::dollars(100),
            per: Default::default(),
            action: Default::default(),
            thresholds: vec![Milli(800)],
        };
        let at = |dollars| how_far(&budget, Micros::dollars(dollars));
        assert_eq!((at(79), at(80), at(100)), ("Within", "Alert", "Spent"));
    }

    #[test]
    fn a_queue_counts_the_jobs_of_all_below_it() {
        let report = |name: &str, parent: Option<&str>, running| QueueReport {
            name: name.into(),
            parent: parent.map(Name::new),
            quota: Milli::ZERO,
            fair_share: Milli::ZERO,
            used: Milli::ZERO,
            demand: Milli::ZERO,
            waiting: 1,
            running,
            overcommitted: false,
            credits: 0,
            past_use: 0,
            spent: None,
        };
        let all = vec![report("lab", None, 0), report("nlp", Some("lab"), 2)];
        let all = with_below(all);
        assert_eq!((all["lab"].running, all["lab"].waiting, all["nlp"].running), (2, 2, 2));
    }
}
