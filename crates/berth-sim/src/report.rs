//! What a run came to, in the form of `-o json`.

use crate::record::Recorder;
use crate::world::JobNames;
use berth_ledger::cost;
use berth_model::{
    Decision, JobId, JobSnapshot, Micros, MigSlot, Milli, Name, NodeSpec, Place, Share, Slice,
    Snapshot, Time,
};
use serde::Serialize;
use std::collections::BTreeMap;

#[derive(Debug, Clone, Serialize)]
pub struct Report {
    pub now: String,
    pub rounds: u32,
    pub tasks: Vec<TaskReport>,
    pub decisions: Vec<DecisionReport>,
    pub waiting: Vec<WaitingReport>,
    pub cost: CostReport,
    /// The answer to `--why`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub why: Option<WhyReport>,
    /// Gangs whose decisions failed the check; there should be none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub set_aside: Vec<AsideReport>,
    /// The plans did not come to an end; they should.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub unsettled: bool,
}

#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TaskReport {
    pub job: String,
    pub group: String,
    pub task: u32,
    #[serde(flatten)]
    pub now: TaskStatus,
    pub before: TaskStatus,
}

/// Where a task stands: running, waiting, reserved, stopping or stopped.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct TaskStatus {
    pub state: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<GpuReport>,
}

impl TaskStatus {
    fn bare(state: &'static str) -> TaskStatus {
        TaskStatus { state, node: None, gpus: Vec::new() }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct GpuReport {
    pub index: u32,
    pub milli: i64,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub kind: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mig: Option<MigSlot>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct DecisionReport {
    pub round: u32,
    pub kind: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub task: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cause: Option<&'static str>,
    #[serde(rename = "for", skip_serializing_if = "Option::is_none")]
    pub for_job: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub gpus: Vec<GpuReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub resume: Option<bool>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub grace: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub at: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub places: Vec<PlaceReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub instance: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zone: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub finding: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PlaceReport {
    pub task: u32,
    pub node: String,
    pub gpus: Vec<GpuReport>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WaitingReport {
    pub job: String,
    pub reasons: Vec<ReasonReport>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ReasonReport {
    pub code: &'static str,
    pub text: String,
}

/// When a job starts, and what would start it now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct WhyReport {
    pub job: String,
    pub reasons: Vec<ReasonReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub position: Option<PositionReport>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forecast: Option<ForecastReport>,
    /// Single changes that would each start it.
    pub would_start: Vec<ChangeReport>,
}

/// Jobs of its queue that go before it, and all that wait there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct PositionReport {
    pub ahead: usize,
    pub waiting: usize,
}

/// When it had started in half and in nine of ten runs; nothing beyond the horizon.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ForecastReport {
    pub p50: Option<String>,
    pub p90: Option<String>,
    pub runs: u32,
    /// Runs in which it started at all.
    pub started: u32,
    pub horizon: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct ChangeReport {
    pub text: String,
    pub at: String,
    /// Running jobs that would be stopped for it.
    pub stops: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct AsideReport {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub job: Option<String>,
    pub finding: String,
}

/// Dollars: what an hour of the present placement costs, and what was spent on the way to it.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct CostReport {
    pub per_hour: Bill,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spent: Option<Bill>,
}

/// Attributed + idle + shared = total.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Bill {
    pub total: f64,
    pub attributed: f64,
    pub idle: f64,
    pub shared: f64,
    pub queues: BTreeMap<String, f64>,
    pub jobs: BTreeMap<String, f64>,
}

/// Dollars as a number to show. Nothing is calculated with it.
pub(crate) fn dollars(amount: Micros) -> f64 {
    amount.0 as f64 / 1_000_000.0
}

/// Names for the jobs of a world and of its report.
pub(crate) struct Labels {
    names: JobNames,
    by_id: BTreeMap<JobId, Name>,
}

impl Labels {
    pub fn of<'a>(snapshots: impl IntoIterator<Item = &'a Snapshot>) -> Labels {
        let mut labels = Labels { names: JobNames::default(), by_id: BTreeMap::new() };
        for snapshot in snapshots {
            for job in &snapshot.jobs {
                labels.add(job.id(), &job.spec.name);
            }
            for (id, name, _) in &snapshot.outcomes {
                labels.add(*id, name);
            }
        }
        labels
    }

    pub fn add(&mut self, id: JobId, name: &Name) {
        if self.by_id.insert(id, name.clone()).is_none() {
            self.names.add(name, id);
        }
    }

    pub fn get(&self, id: JobId) -> String {
        let name = self.by_id.get(&id).or_else(|| self.by_id.get(&id.array()));
        name.map_or_else(|| id.to_string(), |name| self.names.label(name, id))
    }
}

/// Slices with their size; the node tells how large a MIG instance is.
pub(crate) fn gpus(slices: &[Slice], spec: Option<&NodeSpec>) -> Vec<GpuReport> {
    let models: Vec<Name> =
        spec.map_or(Vec::new(), |spec| spec.gpus.iter().map(|gpu| gpu.model.clone()).collect());
    slices
        .iter()
        .map(|slice| {
            let Milli(milli) = cost::slice_milli(slice, &models);
            let (kind, mig) = match &slice.share {
                Share::Whole | Share::Fraction(_) => (None, None),
                Share::Mps(_) => (Some("mps"), None),
                Share::TimeSlice(_) => (Some("time-slice"), None),
                Share::Mig(slot) => (None, Some(slot.clone())),
            };
            GpuReport { index: slice.gpu, milli, kind, mig }
        })
        .collect()
}

type Specs<'a> = BTreeMap<&'a str, &'a NodeSpec>;

fn specs(snapshot: &Snapshot) -> Specs<'_> {
    snapshot.nodes.iter().map(|node| (node.spec.name.as_str(), &node.spec)).collect()
}

/// Where every task of a snapshot stands.
fn standings(snapshot: &Snapshot) -> BTreeMap<(JobId, u32), TaskStatus> {
    let nodes = specs(snapshot);
    let mut all = BTreeMap::new();
    for promise in &snapshot.promises {
        for Place { task, node, slices } in &promise.places {
            let standing = TaskStatus {
                state: "reserved",
                node: Some(node.to_string()),
                gpus: gpus(slices, nodes.get(node.as_str()).copied()),
            };
            all.insert((promise.job, *task), standing);
        }
    }
    for job in &snapshot.jobs {
        for lease in &job.leases {
            let standing = TaskStatus {
                state: if lease.stopping.is_some() { "stopping" } else { "running" },
                node: Some(lease.node.to_string()),
                gpus: gpus(&lease.slices, nodes.get(lease.node.as_str()).copied()),
            };
            all.insert((job.id(), lease.task), standing);
        }
    }
    all
}

fn tasks(before: &Snapshot, after: &Snapshot, labels: &Labels) -> Vec<TaskReport> {
    let (was, is) = (standings(before), standings(after));
    let left: std::collections::BTreeSet<JobId> = after.jobs.iter().map(JobSnapshot::id).collect();
    let mut reports = Vec::new();
    for job in &before.jobs {
        let leaves = job.spec.groups.iter().flat_map(|group| group.leaves());
        let numbered = leaves.flat_map(|leaf| (0..leaf.count).map(|_| leaf.name.to_string()));
        for (task, group) in (0u32..).zip(numbered) {
            let key = (job.id(), task);
            let before = was.get(&key).cloned().unwrap_or(TaskStatus::bare("waiting"));
            let ran = matches!(before.state, "running" | "stopping");
            let ended = !left.contains(&job.id());
            let default = if ran || ended { "stopped" } else { "waiting" };
            let now = is.get(&key).cloned().unwrap_or(TaskStatus::bare(default));
            reports.push(TaskReport { job: labels.get(job.id()), group, task, now, before });
        }
    }
    reports
}

fn decision(round: u32, decision: &Decision, labels: &Labels, nodes: &Specs<'_>) -> DecisionReport {
    let bare = |kind| DecisionReport { round, kind, ..DecisionReport::default() };
    let job = |id: &JobId| Some(labels.get(*id));
    let held = |node: &Name, slices: &[Slice]| gpus(slices, nodes.get(node.as_str()).copied());
    match decision {
        Decision::Start { lease, node, slices, price, resume } => DecisionReport {
            job: job(&lease.job),
            task: Some(lease.task),
            node: Some(node.to_string()),
            gpus: held(node, slices),
            resume: Some(*resume),
            price: Some(dollars(*price)),
            ..bare("start")
        },
        Decision::Stop { lease, cause, for_job, grace } => DecisionReport {
            job: job(&lease.job),
            task: Some(lease.task),
            cause: Some(cause.code()),
            for_job: for_job.as_ref().and_then(job),
            grace: Some(grace.to_string()),
            ..bare("stop")
        },
        Decision::Reserve { job: id, at, places, .. } => DecisionReport {
            job: job(id),
            at: Some(at.to_string()),
            places: places
                .iter()
                .map(|Place { task, node, slices }| PlaceReport {
                    task: *task,
                    node: node.to_string(),
                    gpus: held(node, slices),
                })
                .collect(),
            ..bare("reserve")
        },
        Decision::Unreserve { job: id } => DecisionReport { job: job(id), ..bare("unreserve") },
        Decision::Claim { claim, pool, instance, zone, for_job, .. } => DecisionReport {
            claim: Some(claim.to_string()),
            pool: Some(pool.to_string()),
            instance: Some(instance.to_string()),
            zone: Some(zone.to_string()).filter(|zone| !zone.is_empty()),
            for_job: for_job.as_ref().and_then(job),
            ..bare("claim")
        },
        Decision::Return { node } => {
            DecisionReport { node: Some(node.to_string()), ..bare("return") }
        }
        Decision::SetAside { job: id, finding } => {
            DecisionReport { job: job(id), finding: Some(finding.clone()), ..bare("set-aside") }
        }
    }
}

/// What an hour of the snapshot's leases and machines costs.
fn per_hour(snapshot: &Snapshot, labels: &Labels) -> Bill {
    let mut attributed = Micros::ZERO;
    let mut queues: BTreeMap<String, Micros> = BTreeMap::new();
    let mut jobs: BTreeMap<String, Micros> = BTreeMap::new();
    for job in &snapshot.jobs {
        for lease in &job.leases {
            attributed += lease.price;
            *queues.entry(job.spec.queue.to_string()).or_default() += lease.price;
            *jobs.entry(labels.get(job.id())).or_default() += lease.price;
        }
    }
    let machines = snapshot.nodes.iter().map(|node| cost::node_price(&node.spec, &snapshot.prices));
    let total: Micros = machines.sum();
    let shown = |sums: BTreeMap<String, Micros>| {
        sums.into_iter().map(|(name, sum)| (name, dollars(sum))).collect()
    };
    Bill {
        total: dollars(total),
        attributed: dollars(attributed),
        idle: dollars(total - attributed),
        shared: 0.0,
        queues: shown(queues),
        jobs: shown(jobs),
    }
}

fn spent(recorder: &Recorder, labels: &Labels) -> Option<Bill> {
    let totals = &recorder.totals;
    if totals.sum.total().is_zero() {
        return None;
    }
    let queues =
        totals.queues.iter().map(|(name, sum)| (name.to_string(), dollars(sum.attributed())));
    let jobs = totals.jobs.iter().map(|(id, sum)| (labels.get(*id), dollars(sum.attributed())));
    Some(Bill {
        total: dollars(totals.sum.total()),
        attributed: dollars(totals.sum.attributed()),
        idle: dollars(totals.sum.idle()),
        shared: dollars(totals.sum.shared),
        queues: queues.collect(),
        jobs: jobs.collect(),
    })
}

pub(crate) fn told_reasons(reasons: &[berth_model::Reason]) -> Vec<ReasonReport> {
    reasons
        .iter()
        .map(|reason| ReasonReport { code: reason.code(), text: reason.to_string() })
        .collect()
}

pub(crate) struct ReportInput<'a> {
    pub before: &'a Snapshot,
    pub after: &'a Snapshot,
    pub recorder: &'a Recorder,
    pub rounds: u32,
    pub now: Time,
    pub waiting: Vec<(JobId, Vec<berth_model::Reason>)>,
}

pub(crate) fn report(material: &ReportInput<'_>) -> Report {
    let ReportInput { before, after, recorder, rounds, now, waiting } = material;
    let mut labels = Labels::of([*before, *after]);
    recorder.submitted.iter().for_each(|spec| labels.add(spec.id, &spec.name));
    let mut nodes = specs(before);
    nodes.extend(specs(after));
    let reported =
        |(round, _, made): &(u32, Time, Decision)| decision(*round, made, &labels, &nodes);
    Report {
        now: now.to_string(),
        rounds: *rounds,
        tasks: tasks(before, after, &labels),
        decisions: recorder.decisions.iter().map(reported).collect(),
        waiting: waiting
            .iter()
            .map(|(job, reasons)| WaitingReport {
                job: labels.get(*job),
                reasons: told_reasons(reasons),
            })
            .collect(),
        cost: CostReport { per_hour: per_hour(after, &labels), spent: spent(recorder, &labels) },
        why: None,
        set_aside: recorder
            .aside
            .iter()
            .map(|(_, job, finding)| AsideReport {
                job: job.map(|job| labels.get(job)),
                finding: finding.clone(),
            })
            .collect(),
        unsettled: recorder.gave_up.is_some(),
    }
}
