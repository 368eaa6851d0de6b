//! Jobs as submitted.

use super::Context;
use super::groups;
use super::nodes::titled;
use super::refs::{read_id, read_ref, write_ref};
use super::words::{AFTERS, LIFECYCLES, word};
use crate::array;
use crate::error::{Error, Result, did_you_mean, or_list};
use crate::fields::{
    Fields, boolean, choice, int, list, map, moment, name, named, names, text, unit_from_zero,
};
use crate::out::{Out, Record};
use crate::tree::{Node, Value};
use berth_model::{
    Dependency, GroupSpec, JobId, JobSpec, Lifecycle, Name, PriorityClass, Span, Time,
};
use std::collections::BTreeMap;

pub(crate) const JOB: &[&str] = &[
    "name",
    "id",
    "queue",
    "user",
    "project",
    "experiment",
    "labels",
    "priority",
    "preemptible",
    "lifecycle",
    "submitted",
    "time_limit",
    "deadline",
    "restart_cost",
    "grace",
    "min_runtime",
    "preempt_after",
    "array",
    "after",
    "singleton",
    "begin",
    "hold",
    "groups",
    "data",
    // What happened to it since.
    "element",
    "elements",
    "started",
    "first_start",
    "last_checkpoint",
    "saved",
    "estimate",
    "stale_since",
    "displaced",
    "moved",
    "paused",
    "pauses",
    "released",
    "failed",
    "cancelled",
    "set_aside",
    "waits_turn",
    "budgets",
    "done",
    "attempts",
    "leases",
    // What a scenario lets happen to it.
    "duration",
    "checkpoint_every",
    "saves_on_stop",
    "stop_after",
];

/// What a scenario knows of a job and the planner must not.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobScript {
    /// Run time until it ends well; without one it runs until it is ended.
    pub duration: Option<Span>,
    pub checkpoint_every: Option<Span>,
    /// It saves its work when it is asked to stop.
    pub saves_on_stop: bool,
    /// How long it takes to stop; the scenario's where left out.
    pub stop_after: Option<Span>,
}

pub(crate) fn title(node: &Node) -> String {
    titled(node, "job")
}

/// Id and name of an entry, which others may refer to.
pub(crate) struct Head {
    pub name: Name,
    /// What the name stands for: the job, or the whole array.
    pub id: JobId,
    /// The jobs of the entry: several where it is of an array and names no single element.
    pub ids: Vec<JobId>,
}

pub(crate) fn read_head(node: &Node, default: u64) -> Result<Head> {
    let fields = Fields::of(node, &title(node), JOB)?;
    let name = fields.demand("name", name)?;
    let id = fields.read("id", read_id)?.unwrap_or(JobId::new(default));
    if fields.raw("element").is_some() || id.element.is_some() {
        // `element: null` is the array as a whole, which only a snapshot by hand can hold.
        let element = fields.read_or_null("element", id.element, int)?;
        let id = JobId { number: id.number, element };
        return Ok(Head { name, id, ids: vec![id] });
    }
    let array = fields.read("array", array::read)?;
    let elements = fields.read("elements", array::read)?.or(array).map(|array| array.elements);
    let ids =
        elements.map_or_else(|| vec![id], |all| all.into_iter().map(|n| id.element(n)).collect());
    Ok(Head { name, id, ids })
}

pub(crate) fn read_script(fields: &Fields<'_>) -> Result<JobScript> {
    Ok(JobScript {
        duration: fields.read("duration", unit_from_zero)?,
        checkpoint_every: fields
            .read("checkpoint_every", unit_from_zero::<Span>)?
            .filter(|every| !every.is_zero()),
        saves_on_stop: fields.flag("saves_on_stop")?,
        stop_after: fields.read("stop_after", unit_from_zero)?,
    })
}

pub(crate) fn read_spec(fields: &Fields<'_>, id: JobId, context: &Context) -> Result<JobSpec> {
    let span = |key| fields.read(key, unit_from_zero::<Span>);
    let time = |key| fields.read(key, |node| moment(node, context.now));
    let text_of = |key| Ok::<Name, Error>(fields.read(key, name)?.unwrap_or_default());
    let (after, conditions) = read_after(fields, context)?;
    let groups = fields.demand("groups", list)?;
    if groups.is_empty() {
        return Err(Error::expected(fields.need("groups")?.at, "no groups", "at least one")
            .within(&fields.what));
    }
    Ok(JobSpec {
        id: id.array(),
        name: fields.demand("name", name)?,
        queue: fields.read("queue", name)?.unwrap_or(Name::new("default")),
        user: text_of("user")?,
        project: text_of("project")?,
        experiment: text_of("experiment")?,
        labels: fields.read("labels", |node| named(node, name))?.unwrap_or_default(),
        priority: fields
            .read("priority", |node| read_priority(node, &context.classes))?
            .unwrap_or(normal(&context.classes)),
        preemptible: fields.read("preemptible", boolean)?.unwrap_or(true),
        lifecycle: fields.read("lifecycle", read_lifecycle)?.flatten(),
        submitted: time("submitted")?.unwrap_or(context.now),
        time_limit: span("time_limit")?,
        deadline: time("deadline")?,
        restart_cost: span("restart_cost")?,
        grace: span("grace")?,
        min_runtime: span("min_runtime")?,
        preempt_after: span("preempt_after")?,
        array: fields.read("array", array::read)?,
        after,
        singleton: fields.flag("singleton")? || conditions.singleton,
        begin: time("begin")?.or(conditions.begin),
        hold: fields.flag("hold")? || conditions.hold,
        groups: groups::read_all(groups).map_err(|e| e.within(&fields.what))?,
        data: fields.read("data", names)?.unwrap_or_default().into_iter().collect(),
    })
}

fn read_lifecycle(node: &Node) -> Result<Option<Lifecycle>> {
    let mut words: Vec<(&str, Option<Lifecycle>)> =
        LIFECYCLES.iter().map(|(word, lifecycle)| (*word, Some(*lifecycle))).collect();
    words.push(("any", None));
    choice(node, &words)
}

/// The class of jobs that name none.
fn normal(classes: &BTreeMap<Name, PriorityClass>) -> i32 {
    classes.get("normal").map_or(50, |class| class.value)
}

pub(crate) fn read_priority(node: &Node, classes: &BTreeMap<Name, PriorityClass>) -> Result<i32> {
    let words = || or_list(classes.keys().map(Name::as_str));
    let expected = format!("a number, or one of the classes {}", words());
    let found = text(node, &expected)?;
    if let Value::Scalar { plain: true, .. } = node.value
        && let Ok(number) = found.parse()
    {
        return Ok(number);
    }
    classes.get(found).map(|class| class.value).ok_or_else(|| {
        let hint = did_you_mean(found, classes.keys().map(Name::as_str));
        Error::new(node.at, format!("found `{found}`, expected {expected}{hint}"))
    })
}

#[derive(Default)]
struct Conditions {
    singleton: bool,
    begin: Option<Time>,
    hold: bool,
}

/// A map of jobs by how they must have got on, or a list of such maps where the order matters.
fn read_after(fields: &Fields<'_>, context: &Context) -> Result<(Vec<Dependency>, Conditions)> {
    let mut after = Vec::new();
    let mut conditions = Conditions::default();
    let Some(node) = fields.get("after") else { return Ok((after, conditions)) };
    const KEYS: &[&str] = &["ok", "any", "notok", "start", "singleton", "begin", "hold"];
    for part in crate::fields::one_or_more(node) {
        let known = Fields::of(part, &format!("`after` of {}", fields.what), KEYS)?;
        conditions.singleton |= known.flag("singleton")?;
        conditions.hold |= known.flag("hold")?;
        conditions.begin =
            known.read("begin", |node| moment(node, context.now))?.or(conditions.begin);
        for entry in map(part)? {
            let Some((_, kind)) = AFTERS.iter().find(|(word, _)| *word == entry.key) else {
                continue;
            };
            for job in crate::fields::one_or_more(&entry.value) {
                after.push(Dependency { after: *kind, job: read_ref(job)? });
            }
        }
    }
    Ok((after, conditions))
}

fn write_after(after: &[Dependency]) -> Out {
    let mut parts: Vec<(&'static str, Vec<Out>)> = Vec::new();
    for Dependency { after, job } in after {
        let kind = word(&AFTERS, *after);
        match parts.last_mut() {
            Some((last, jobs)) if *last == kind => jobs.push(write_ref(job)),
            _ => parts.push((kind, vec![write_ref(job)])),
        }
    }
    let mut maps: Vec<Out> = parts
        .into_iter()
        .map(|(kind, jobs)| Out::Map(vec![(kind.to_owned(), Out::List(jobs))]))
        .collect();
    if maps.len() == 1 { maps.remove(0) } else { Out::List(maps) }
}

/// The keys of a job's spec, in the order a person asks: what, whose, when.
pub(crate) fn write_spec(
    spec: &JobSpec,
    context: &Context,
    tasks: &mut dyn FnMut(&GroupSpec) -> Vec<Out>,
) -> Record {
    let JobSpec {
        id,
        name,
        queue,
        user,
        project,
        experiment,
        labels,
        priority,
        preemptible,
        lifecycle,
        submitted,
        time_limit,
        deadline,
        restart_cost,
        grace,
        min_runtime,
        preempt_after,
        array,
        after,
        singleton,
        begin,
        hold,
        groups,
        data,
    } = spec;
    let mut out = Record::default();
    out.put("name", Out::text(name));
    out.put("id", Out::raw(id));
    out.put("queue", Out::text(queue));
    for (key, value) in [("user", user), ("project", project), ("experiment", experiment)] {
        out.name(key, value);
    }
    out.labels("labels", labels);
    out.put_if(*priority != normal(&context.classes), "priority", || {
        let class = context.classes.iter().find(|(_, class)| class.value == *priority);
        class.map_or(Out::raw(priority), |(name, _)| Out::text(name))
    });
    out.put_if(!preemptible, "preemptible", || Out::raw(false));
    out.maybe("lifecycle", *lifecycle, |lifecycle| Out::raw(word(&LIFECYCLES, lifecycle)));
    out.put_if(*submitted != context.now, "submitted", || Out::time(*submitted));
    out.maybe("time_limit", *time_limit, Out::raw);
    out.maybe("deadline", *deadline, Out::time);
    out.maybe("restart_cost", *restart_cost, Out::raw);
    out.maybe("grace", *grace, Out::raw);
    out.maybe("min_runtime", *min_runtime, Out::raw);
    out.maybe("preempt_after", *preempt_after, Out::raw);
    out.maybe("array", array.as_ref(), array::write);
    out.put_if(!after.is_empty(), "after", || write_after(after));
    out.flag("singleton", *singleton);
    out.maybe("begin", *begin, Out::time);
    out.flag("hold", *hold);
    out.put_if(!data.is_empty(), "data", || Out::names(data));
    out.put("groups", groups::write_all(groups, tasks));
    out
}
