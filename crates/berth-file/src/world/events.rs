//! What happens in a scenario, and when.

use super::classes::read_classes;
use super::jobs::{self, JOB, JobScript};
use super::nodes::{self, STATES};
use super::refs::JobNames;
use super::topology::read_topologies;
use super::words::HEALTHS;
use super::{Context, policy, pools, queues};
use crate::error::{Error, Position, Result, or_list};
use crate::fields::{
    Fields, boolean, choice, int, map, moment, name, named, one_or_more, text, unit, unit_from_zero,
};
use crate::tree::{Entry, Node, Value};
use berth_model::{
    Event, JobChange, JobId, Name, NodeSnapshot, NodeState, Policy, QueueSnapshot, Snapshot, Span,
    Time,
};
use std::collections::BTreeMap;

/// Something that happens at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ScriptedEvent {
    pub at: Time,
    pub action: Action,
    /// Where it stands in the file.
    pub position: Position,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// It goes into the log as it is.
    Event(Box<Event>),
    /// The job, or one task of it, ends well.
    Finish { job: JobId, task: Option<u32> },
    /// The job, or one task of it, ends badly.
    Fail { job: JobId, task: Option<u32> },
    /// A machine being bought is there, before its usual time.
    ClaimReady { claim: Name },
}

pub(crate) const ACTIONS: [&str; 18] = [
    "submit",
    "cancel",
    "change",
    "hold",
    "release",
    "finish",
    "fail",
    "checkpoint",
    "node",
    "gpu",
    "data",
    "spot_notice",
    "claim_ready",
    "claim_failed",
    "set",
    "reserve",
    "remove",
    "tick",
];

/// Keys of a job that has run already.
const RUN_KEYS: [&str; 12] = [
    "element",
    "elements",
    "started",
    "first_start",
    "last_checkpoint",
    "stale_since",
    "displaced",
    "moved",
    "pauses",
    "leases",
    "attempts",
    "done",
];

/// The time and the one thing that an entry says.
fn split(node: &Node) -> Result<(&Node, &Entry)> {
    let entries = map(node)?;
    let what: Vec<&Entry> = entries.iter().filter(|entry| entry.key != "at").collect();
    let at = entries.iter().find(|entry| entry.key == "at").map(|entry| &entry.value);
    match (at, what.as_slice()) {
        (Some(at), [one]) if ACTIONS.contains(&one.key.as_str()) => Ok((at, one)),
        (_, [one]) if !ACTIONS.contains(&one.key.as_str()) => {
            let hint = crate::error::did_you_mean(&one.key, ACTIONS);
            let message =
                format!("found the event `{}`, expected {}{hint}", one.key, or_list(ACTIONS));
            Err(Error::new(one.at, message))
        }
        (None, _) => Err(Error::new(node.at, "an event has no `at`, which it needs")),
        (Some(_), _) => {
            let message = format!("an event says one thing besides `at`: {}", or_list(ACTIONS));
            Err(Error::new(node.at, message))
        }
    }
}

/// The job an event submits.
pub(crate) fn submitted(node: &Node) -> Result<Option<&Node>> {
    let (_, entry) = split(node)?;
    Ok((entry.key == "submit").then_some(&entry.value))
}

pub(crate) struct Script<'a> {
    pub snapshot: &'a Snapshot,
    pub context: &'a Context,
    pub names: &'a JobNames,
}

/// What `set` changes, as it stands after the events so far.
struct CurrentSettings {
    policy: Policy,
    queues: BTreeMap<Name, QueueSnapshot>,
    models: Event,
}

impl Script<'_> {
    /// The events in the order of their times, and what is known of the jobs they submit.
    pub fn read(
        &self,
        nodes: &[Node],
        submitted: &[JobId],
    ) -> Result<(Vec<ScriptedEvent>, BTreeMap<JobId, JobScript>)> {
        let mut ids = submitted.iter();
        let mut entries = Vec::new();
        for node in nodes {
            let (at, entry) = split(node)?;
            let at = moment(at, self.context.now)?;
            if at < self.context.now {
                return Err(Error::new(node.at, "an event lies before `now`"));
            }
            let id = if entry.key == "submit" { ids.next().copied() } else { None };
            entries.push((at, node.at, entry, id));
        }
        entries.sort_by_key(|(at, ..)| *at);
        let mut present = CurrentSettings {
            policy: self.snapshot.policy.clone(),
            queues: self
                .snapshot
                .queues
                .iter()
                .map(|queue| (queue.spec.name.clone(), queue.clone()))
                .collect(),
            models: Event::ModelsSet {
                prices: self.snapshot.prices.clone(),
                speeds: self.snapshot.speeds.clone(),
                watts: self.snapshot.watts.clone(),
            },
        };
        let mut events = Vec::new();
        let mut scripts = BTreeMap::new();
        for (at, position, entry, id) in entries {
            let actions = match id {
                Some(id) => {
                    let (action, script) = self.submit(&entry.value, id, at)?;
                    scripts.insert(id, script);
                    vec![action]
                }
                None => self
                    .actions(entry, at, &mut present)
                    .map_err(|e| e.within(&format!("event `{}`", entry.key)))?,
            };
            events.extend(actions.into_iter().map(|action| ScriptedEvent { at, action, position }));
        }
        Ok((events, scripts))
    }

    fn submit(&self, node: &Node, id: JobId, at: Time) -> Result<(Action, JobScript)> {
        let fields = Fields::of(node, &jobs::title(node), JOB)?;
        if let Some(key) = RUN_KEYS.iter().find(|key| fields.get(key).is_some()) {
            let message = format!("{} is only being submitted: `{key}` comes later", fields.what);
            return Err(Error::new(node.at, message));
        }
        let context =
            Context { now: at, classes: self.context.classes.clone(), grace: self.context.grace };
        let spec = Box::new(jobs::read_spec(&fields, id, &context)?);
        Ok((event(Event::JobSubmitted { spec }), jobs::read_script(&fields)?))
    }

    fn actions(
        &self,
        entry: &Entry,
        at: Time,
        present: &mut CurrentSettings,
    ) -> Result<Vec<Action>> {
        let node = &entry.value;
        let job = || self.job(node);
        Ok(vec![match entry.key.as_str() {
            "cancel" => event(Event::JobCancelled { job: job()?.0 }),
            "hold" => changed(job()?.0, JobChange::Hold(true)),
            "release" => changed(job()?.0, JobChange::Hold(false)),
            "checkpoint" => event(Event::LeaseSaved { job: job()?.0 }),
            "finish" => job().map(|(job, task)| Action::Finish { job, task })?,
            "fail" => job().map(|(job, task)| Action::Fail { job, task })?,
            "change" => return self.change(node, at),
            "node" => return node_event(node, at),
            "gpu" => gpu_event(node)?,
            "data" => data_event(node)?,
            "spot_notice" => spot_notice(node, at)?,
            "claim_ready" => {
                let (claim, _) = claim(node)?;
                Action::ClaimReady { claim }
            }
            "claim_failed" => {
                let (claim, retry) = claim(node)?;
                let retry_at = at + retry.unwrap_or(Span::mins(10));
                event(Event::ClaimFailed { claim, retry_at })
            }
            "set" => return set(node, at, present),
            "reserve" => {
                let fields = Fields::of(node, "a reservation", queues::RESERVATION)?;
                let reservation = queues::read_reservation(&fields, at)?;
                event(Event::ReservationSet { reservation })
            }
            "remove" => return remove(node),
            _ => event(Event::Tick),
        }])
    }

    /// A job by name or id, or `{job: …, task: …}`.
    fn job(&self, node: &Node) -> Result<(JobId, Option<u32>)> {
        let task =
            matches!(&node.value, Value::Map(entries) if entries.iter().any(|e| e.key == "job"));
        if !task {
            return Ok((self.names.find(node)?, None));
        }
        let fields = Fields::of(node, "a task", &["job", "task"])?;
        let job = fields.demand("job", |node| self.names.find(node))?;
        Ok((job, fields.read("task", int)?))
    }

    fn change(&self, node: &Node, at: Time) -> Result<Vec<Action>> {
        const KEYS: &[&str] = &["job", "priority", "hold", "queue", "deadline", "time_limit"];
        let fields = Fields::of(node, "a change", KEYS)?;
        let job = fields.demand("job", |node| self.names.find(node))?;
        let priority = |node| jobs::read_priority(node, &self.context.classes);
        let deadline = match fields.raw("deadline") {
            None => None,
            Some(_) => Some(fields.read("deadline", |node| moment(node, at))?),
        };
        let changes = [
            fields.read("priority", priority)?.map(JobChange::Priority),
            fields.read("hold", boolean)?.map(JobChange::Hold),
            fields.read("queue", name)?.map(JobChange::Queue),
            deadline.map(JobChange::Deadline),
            fields.read("time_limit", unit_from_zero)?.map(JobChange::TimeLimit),
        ];
        Ok(changes.into_iter().flatten().map(|change| changed(job, change)).collect())
    }
}

fn event(event: Event) -> Action {
    Action::Event(Box::new(event))
}

fn changed(job: JobId, change: JobChange) -> Action {
    event(Event::JobChanged { job, change })
}

fn node_event(node: &Node, at: Time) -> Result<Vec<Action>> {
    if nodes::is_description(node) {
        let entries = map(node)?;
        let says_data = entries.iter().any(|entry| entry.key == "data");
        let joining = nodes::read(node, at)?.into_iter().flat_map(|read| {
            let NodeSnapshot { spec, data, .. } = read.snapshot;
            let keeps = Event::DataKept { node: spec.name.clone(), data };
            let keeps = Some(event(keeps)).filter(|_| says_data);
            std::iter::once(event(Event::NodeAdded { node: Box::new(spec) })).chain(keeps)
        });
        return Ok(joining.collect());
    }
    let fields = Fields::of(node, "a node", &["name", "state", "leaves_at"])?;
    let own = fields.demand("name", name)?;
    let mut words: Vec<(&str, Option<NodeState>)> =
        STATES.iter().map(|(word, state)| (*word, Some(*state))).collect();
    words.push(("removed", None));
    if fields.demand("state", |node| choice(node, &words))?.is_none() {
        return Ok(vec![event(Event::NodeRemoved { node: own })]);
    }
    let state = nodes::read_state(&fields, at)?;
    Ok(vec![event(Event::NodeChanged { node: own, state })])
}

fn gpu_event(node: &Node) -> Result<Action> {
    let fields = Fields::of(node, "a GPU", &["node", "index", "health"])?;
    Ok(event(Event::GpuChanged {
        node: fields.demand("node", name)?,
        gpu: fields.demand("index", int)?,
        health: fields.demand("health", |node| choice(node, &HEALTHS))?,
    }))
}

fn data_event(node: &Node) -> Result<Action> {
    let fields = Fields::of(node, "the data of a node", &["node", "keeps"])?;
    Ok(event(Event::DataKept {
        node: fields.demand("node", name)?,
        data: fields.demand("keeps", |node| named(node, unit_from_zero))?,
    }))
}

/// The node leaves after the notice: two minutes, as the clouds have it, unless it says otherwise.
fn spot_notice(node: &Node, at: Time) -> Result<Action> {
    let (own, within) = match &node.value {
        Value::Map(_) => {
            let fields = Fields::of(node, "a spot notice", &["node", "in"])?;
            (fields.demand("node", name)?, fields.read("in", unit_from_zero)?)
        }
        Value::Null | Value::Scalar { .. } | Value::List(_) => (name(node)?, None),
    };
    let leaves = at + within.unwrap_or(Span::mins(2));
    Ok(event(Event::NodeChanged { node: own, state: NodeState::Leaving { at: leaves } }))
}

fn claim(node: &Node) -> Result<(Name, Option<Span>)> {
    match &node.value {
        Value::Map(_) => {
            let fields = Fields::of(node, "a claim", &["name", "retry"])?;
            Ok((fields.demand("name", name)?, fields.read("retry", unit_from_zero)?))
        }
        Value::Null | Value::Scalar { .. } | Value::List(_) => Ok((name(node)?, None)),
    }
}

fn set(node: &Node, at: Time, present: &mut CurrentSettings) -> Result<Vec<Action>> {
    const KEYS: &[&str] =
        &["policy", "queue", "classes", "prices", "speeds", "watts", "topology", "pool"];
    let fields = Fields::of(node, "what is set", KEYS)?;
    let mut events = Vec::new();
    if let Some(changes) = fields.get("policy") {
        let version = present.policy.version + 1;
        present.policy = policy::read(changes, Policy { version, ..present.policy.clone() })?;
        events.push(Event::PolicySet { policy: Box::new(present.policy.clone()) });
    }
    for item in fields.get("queue").map_or(&[][..], one_or_more) {
        let own = Fields::of(item, "a queue", queues::QUEUE)?.demand("name", name)?;
        let queue = queues::read(item, present.queues.get(&own))?;
        events.push(Event::QueueSet { queue: Box::new(queue.spec.clone()) });
        present.queues.insert(own, queue);
    }
    if let Some(classes) = fields.read("classes", read_classes)? {
        events.push(Event::ClassesSet { classes });
    }
    if ["prices", "speeds", "watts"].iter().any(|key| fields.get(key).is_some()) {
        if let Event::ModelsSet { prices, speeds, watts } = &mut present.models {
            prices.extend(fields.read("prices", |node| named(node, unit))?.unwrap_or_default());
            speeds.extend(fields.read("speeds", |node| named(node, unit))?.unwrap_or_default());
            watts.extend(fields.read("watts", |node| named(node, int))?.unwrap_or_default());
        }
        events.push(present.models.clone());
    }
    if let Some(topologies) = fields.read("topology", read_topologies)? {
        events.push(Event::TopologySet { topologies });
    }
    for item in fields.get("pool").map_or(&[][..], one_or_more) {
        events.push(Event::PoolSet { pool: Box::new(pools::read_pool(item, at)?) });
    }
    Ok(events.into_iter().map(event).collect())
}

fn remove(node: &Node) -> Result<Vec<Action>> {
    let fields = Fields::of(node, "what is removed", &["queue", "pool", "reservation", "node"])?;
    let name = |key| fields.read(key, |node| text(node, "a name").map(Name::new));
    let events = [
        name("queue")?.map(|queue| Event::QueueRemoved { queue }),
        name("pool")?.map(|pool| Event::PoolRemoved { pool }),
        name("reservation")?.map(|name| Event::ReservationRemoved { name }),
        name("node")?.map(|node| Event::NodeRemoved { node }),
    ];
    Ok(events.into_iter().flatten().map(event).collect())
}
