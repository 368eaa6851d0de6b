//! Reading the values of a job file that have keys of their own.

use super::parts::{Idle, Retry, Scale, Schedule, Spot, WhenIdle};
use super::values::{any_text, job_ref, several, some_span, span, texts, up_to, variable, word};
use super::{
    Checkpoint, Command, JobKind, Launch, Moment, Network, Notify, Ready, ReadyCheck, Signal,
    Times, Tool, Via,
};
use super::{How, Parameter, Sweep};
use crate::error::{Error, Result};
use crate::fields::{Fields, list, map, one_or_more, percent, text};
use crate::tree::{Node, Value};
use crate::world::words::AFTERS;
use berth_model::{After, ArraySpec, Dependency, Milli, Span};
use std::collections::BTreeSet;

/// What one file may ask to be run, by array or sweep.
pub const MOST_ELEMENTS: u64 = 10_000;

/// More machines than any cluster has, more processes than any machine starts of one job: larger
/// numbers are slips.
pub(super) const MOST_NODES: u32 = 100_000;
pub(super) const MOST_RANKS: u32 = 1_024;
const MOST_CHECKPOINTS: u32 = 10_000;
const MOST_RETRIES: u32 = 10_000;
const MOST_REPLICAS: u32 = 10_000;
const MOST_PENDING: u32 = 1_000_000;
/// Entries of a list in a job file.
pub(super) const MOST_ENTRIES: usize = 100;
pub(super) const MOST_AFTER: usize = 1_000;

pub(super) const KINDS: &[(&str, JobKind)] =
    &[("job", JobKind::Job), ("notebook", JobKind::Notebook), ("service", JobKind::Service)];
pub(super) const SPOTS: &[(&str, Spot)] =
    &[("never", Spot::Never), ("auto", Spot::Auto), ("only", Spot::Only)];
pub(super) const LAUNCHES: &[(&str, Launch)] =
    &[("once", Launch::Once), ("ranks", Launch::Ranks), ("torchrun", Launch::Torchrun)];
pub(super) const NETWORKS: &[(&str, Network)] =
    &[("machine", Network::Machine), ("none", Network::None)];
pub(super) const SIGNALS: &[(&str, Signal)] = &[
    ("TERM", Signal::Term),
    ("INT", Signal::Int),
    ("USR1", Signal::Usr1),
    ("USR2", Signal::Usr2),
    ("SIGTERM", Signal::Term),
    ("SIGINT", Signal::Int),
    ("SIGUSR1", Signal::Usr1),
    ("SIGUSR2", Signal::Usr2),
];
pub(super) const VIAS: &[(&str, Via)] = &[("slack", Via::Slack), ("webhook", Via::Webhook)];
pub(super) const MOMENTS: &[(&str, Moment)] = &[
    ("start", Moment::Start),
    ("done", Moment::Done),
    ("failed", Moment::Failed),
    ("preempted", Moment::Preempted),
    ("budget", Moment::Budget),
];
pub(super) const TOOLS: &[(&str, Tool)] =
    &[("jupyter", Tool::Jupyter), ("vscode", Tool::Vscode), ("ssh", Tool::Ssh)];
pub(super) const THENS: &[(&str, WhenIdle)] =
    &[("notify", WhenIdle::Notify), ("suspend", WhenIdle::Suspend), ("stop", WhenIdle::Stop)];

/// A script, or a list of a program and its arguments.
pub(super) fn command(node: &Node) -> Result<Command> {
    let expected = "a command, or a list of a program and its arguments";
    let empty = || Error::expected(node.at, "nothing to run", expected);
    match &node.value {
        Value::List(_) => {
            let words = texts(node)?;
            let named = words.first().is_some_and(|program| !program.is_empty());
            if named { Ok(Command::Program(words)) } else { Err(empty()) }
        }
        _ => match text(node, expected)? {
            script if script.trim().is_empty() => Err(empty()),
            script => Ok(Command::Shell(script.to_owned())),
        },
    }
}

pub(super) fn checkpoint(node: &Node) -> Result<Checkpoint> {
    if let Value::Scalar { text, .. } = &node.value {
        return Ok(Checkpoint { path: Some(text.clone()), ..Checkpoint::default() });
    }
    let keys = &["path", "every", "grace", "keep", "signal"];
    let fields = Fields::of(node, "a checkpoint", keys)?;
    Ok(Checkpoint {
        path: fields.read("path", any_text)?,
        every: fields.read("every", some_span)?,
        grace: fields.read("grace", span)?,
        keep: fields.read("keep", up_to(MOST_CHECKPOINTS))?,
        signal: fields.read("signal", word(SIGNALS))?,
    })
}

fn times(node: &Node) -> Result<Times> {
    let expected = format!("how often, or forever; a number is at most {MOST_RETRIES}");
    match text(node, &expected)? {
        "forever" => Ok(Times::Forever),
        found => match found.parse() {
            Ok(times) if times <= MOST_RETRIES => Ok(Times::At(times)),
            _ => Err(Error::expected(node.at, &node.found(), &expected)),
        },
    }
}

/// A number alone is about the job's own failures.
pub(super) fn retry(node: &Node) -> Result<Retry> {
    if let Value::Scalar { .. } = &node.value {
        return Ok(Retry { error: Some(times(node)?), ..Retry::default() });
    }
    let fields = Fields::of(node, "retry", &["infra", "error", "oom", "wait"])?;
    Ok(Retry {
        infra: fields.read("infra", times)?,
        error: fields.read("error", times)?,
        oom: fields.read("oom", times)?,
        wait: fields.read("wait", span)?,
    })
}

fn target(node: &Node) -> Result<(Via, String)> {
    let expected = "slack:#channel, webhook:name, or a URL that begins with https://";
    let bad = || Error::expected(node.at, "another target", expected);
    let found = text(node, expected)?;
    if found.starts_with("https://") {
        return Ok((Via::Webhook, found.to_owned()));
    }
    let (scheme, to) = found.split_once(':').ok_or_else(bad)?;
    let via = VIAS.iter().find(|(word, _)| *word == scheme).map(|(_, via)| *via);
    let plain = to.starts_with("https://") || !to.contains("://");
    via.filter(|_| !to.is_empty() && plain).map(|via| (via, to.to_owned())).ok_or_else(bad)
}

fn notify(node: &Node) -> Result<Notify> {
    if let Value::Scalar { .. } = &node.value {
        let (via, to) = target(node)?;
        return Ok(Notify { via, to, on: Vec::new() });
    }
    let fields = Fields::of(node, "a notification", &["to", "on"])?;
    let (via, to) = fields.demand("to", target)?;
    let on = fields.read("on", |node| several(node, word(MOMENTS)))?.unwrap_or_default();
    Ok(Notify { via, to, on })
}

pub(super) fn notifies(node: &Node) -> Result<Vec<Notify>> {
    several(node, notify)
}

pub(super) fn tools(node: &Node) -> Result<Vec<Tool>> {
    several(node, word(TOOLS))
}

pub(super) fn array(node: &Node) -> Result<ArraySpec> {
    let array = crate::array::read(node)?;
    let distinct: BTreeSet<u32> = array.elements.iter().copied().collect();
    if distinct.len() != array.elements.len() {
        return Err(Error::expected(node.at, &node.found(), "each element once"));
    }
    if array.at_most == Some(0) {
        return Err(Error::expected(node.at, &node.found(), "at least one element at once"));
    }
    few_enough(node, Some(distinct.len() as u64))?;
    Ok(array)
}

fn few_enough(node: &Node, elements: Option<u64>) -> Result<()> {
    match elements {
        Some(count) if count <= MOST_ELEMENTS => Ok(()),
        _ => Err(Error::new(
            node.at,
            format!("that is more than {MOST_ELEMENTS} elements; submit it in several jobs"),
        )),
    }
}

/// Lists are parameters; a map is `product` or `zip` of them, and a number is `at_most`.
pub(super) fn sweep(node: &Node) -> Result<Sweep> {
    let mut found = Sweep { how: How::Product, parameters: Vec::new(), at_most: None };
    for entry in map(node)? {
        match (entry.key.as_str(), &entry.value.value) {
            (how @ ("product" | "zip"), Value::Map(entries)) => {
                found.how = if how == "zip" { How::Zip } else { How::Product };
                for entry in entries {
                    found.parameters.push(parameter(entry)?);
                }
            }
            ("at_most", Value::Scalar { .. }) => {
                found.at_most = Some(up_to(MOST_ELEMENTS as u32)(&entry.value)?)
            }
            _ => found.parameters.push(parameter(entry)?),
        }
    }
    if found.parameters.is_empty() {
        let message = "a sweep needs a parameter with its values, such as `lr: [1e-4, 3e-4]`";
        return Err(Error::new(node.at, message));
    }
    let mut names = BTreeSet::new();
    if let Some(twice) = found.parameters.iter().find(|p| !names.insert(p.name.as_str())) {
        let message = format!("`{}` appears twice; put all its values into one list", twice.name);
        return Err(Error::new(node.at, message));
    }
    let lengths: BTreeSet<usize> = found.parameters.iter().map(|p| p.values.len()).collect();
    if found.how == How::Zip && lengths.len() > 1 {
        return Err(Error::new(node.at, "zip takes lists of the same length"));
    }
    few_enough(node, found.len())?;
    Ok(found)
}

/// With another value, a shell finds no programs, or they do not find their files.
const OF_THE_SYSTEM: [&str; 8] =
    ["PATH", "HOME", "SHELL", "USER", "LOGNAME", "PWD", "IFS", "TMPDIR"];

fn parameter(entry: &crate::tree::Entry) -> Result<Parameter> {
    let name = variable(&entry.key, entry.at)?;
    if OF_THE_SYSTEM.contains(&name.as_str()) || name.starts_with("LD_") {
        let message = format!(
            "`{name}` is a variable that programs need to start; give the parameter another name, \
             such as `{}_value`, or set the variable with `env`",
            name.to_lowercase()
        );
        return Err(Error::new(entry.at, message));
    }
    let within = |e: Error| e.within(&format!("`{name}`"));
    let values = list(&entry.value).and_then(|_| texts(&entry.value)).map_err(within)?;
    match values.is_empty() {
        true => Err(within(Error::expected(entry.value.at, "an empty list", "values to try"))),
        false => Ok(Parameter { name, values }),
    }
}

/// A list of jobs that must have ended well, or jobs by how they must have got on.
pub(super) fn after(node: &Node) -> Result<Vec<Dependency>> {
    let Value::Map(entries) = &node.value else {
        let one = |node: &Node| Ok(Dependency { after: After::Ok, job: job_ref(node)? });
        return several(node, one);
    };
    Fields::of(node, "`after`", &["ok", "any", "notok", "start"])?;
    // In the order of the kinds, in which they are written too: no other order means anything.
    let mut found = Vec::new();
    for (word, after) in AFTERS {
        for entry in entries.iter().filter(|entry| entry.key == word) {
            for job in one_or_more(&entry.value) {
                found.push(Dependency { after, job: job_ref(job)? });
            }
        }
    }
    Ok(found)
}

pub(super) fn schedule(node: &Node) -> Result<Schedule> {
    let cron = |node: &Node| {
        let found = text(node, "a schedule such as 0 3 * * * or @daily")?;
        found.parse().map_err(|error| Error::new(node.at, format!("{error}")))
    };
    if let Value::Scalar { .. } = &node.value {
        return Ok(Schedule { cron: cron(node)?, offset: Span::ZERO });
    }
    let fields = Fields::of(node, "a schedule", &["cron", "timezone"])?;
    Ok(Schedule {
        cron: fields.demand("cron", cron)?,
        offset: fields.read("timezone", offset)?.unwrap_or(Span::ZERO),
    })
}

/// `UTC`, `+02:00` or `-08:00`.
fn offset(node: &Node) -> Result<Span> {
    let expected = "UTC or an offset from it such as +02:00; named time zones are not known here";
    let bad = || Error::expected(node.at, &node.found(), expected);
    let found = text(node, expected)?;
    if matches!(found, "UTC" | "utc" | "Z") {
        return Ok(Span::ZERO);
    }
    let (sign, clock) = match (found.strip_prefix('+'), found.strip_prefix('-')) {
        (Some(clock), _) => (1, clock),
        (_, Some(clock)) => (-1, clock),
        _ => return Err(bad()),
    };
    let (hours, minutes) = clock.split_once(':').ok_or_else(bad)?;
    let two = |text: &str| text.parse::<i64>().ok().filter(|_| text.len() == 2);
    match (two(hours), two(minutes)) {
        (Some(hours @ 0..=14), Some(minutes @ 0..=59)) => {
            Ok(Span::mins(sign * (hours * 60 + minutes)))
        }
        _ => Err(bad()),
    }
}

pub(super) fn idle(node: &Node) -> Result<Idle> {
    let fields = Fields::of(node, "idle", &["below", "for", "then"])?;
    let share = |node: &Node| match percent(node)? {
        below if (Milli::ZERO..=Milli::ONE).contains(&below) => Ok(below),
        _ => Err(Error::expected(node.at, &node.found(), "a percentage from 0% to 100%")),
    };
    Ok(Idle {
        below: fields.read("below", share)?.unwrap_or(Milli(50)),
        after: fields.demand("for", some_span)?,
        then: fields.read("then", word(THENS))?.unwrap_or(WhenIdle::Suspend),
    })
}

fn check(node: &Node) -> Result<ReadyCheck> {
    let expected = "a path that begins with /, or tcp";
    match text(node, expected)? {
        "tcp" => Ok(ReadyCheck::Tcp),
        path if path.starts_with('/') && !path.contains(char::is_whitespace) => {
            Ok(ReadyCheck::Http(path.to_owned()))
        }
        _ => Err(Error::expected(node.at, &node.found(), expected)),
    }
}

pub(super) fn ready(node: &Node) -> Result<Ready> {
    if let Value::Scalar { .. } = &node.value {
        return Ok(Ready { check: check(node)?, within: None });
    }
    let fields = Fields::of(node, "ready", &["check", "within"])?;
    Ok(Ready { check: fields.demand("check", check)?, within: fields.read("within", some_span)? })
}

/// A service may have none for a while.
fn replicas(node: &Node) -> Result<u32> {
    if text(node, "a whole number")? == "0" { Ok(0) } else { up_to(MOST_REPLICAS)(node) }
}

pub(super) fn scale(node: &Node) -> Result<Scale> {
    let fields = Fields::of(node, "scale", &["min", "max", "pending", "predict"])?;
    let scale = Scale {
        min: fields.read("min", replicas)?.unwrap_or(1),
        max: fields.demand("max", up_to(MOST_REPLICAS))?,
        pending: fields.read("pending", up_to(MOST_PENDING))?,
        predict: fields.read("predict", some_span)?,
    };
    match scale.min <= scale.max {
        true => Ok(scale),
        false => Err(Error::new(node.at, "`min` of scale is more than its `max`")),
    }
}
