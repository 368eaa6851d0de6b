//! Job files: what a person writes to have something run.
//!
//! [`read`] takes YAML or JSON and finds every mistake at once, each with its line and what was
//! expected. A [`JobFile`] says what was written and nothing more; [`lower()`] turns it into what
//! the scheduler and a driver need, with the defaults of a cluster. docs/job-file.md lists the
//! keys, and [`KEYS`] is where they are defined.

mod blocks;
mod flags;
mod gpus;
mod keys;
mod lower;
mod models;
mod parts;
mod put;
mod serial;
mod stop_when;
mod values;

#[cfg(test)]
mod tests;

pub use berth_model::JobKind;
pub use berth_model::run::{
    Checkpoint, Command, Container, Env, How, Launch, LogLimits, Moment, Network, Notify,
    Parameter, Port, Ready, ReadyCheck, RetryPlan, RunSpec, Signal, StopRule, Sweep, Times, Tool,
    Via,
};
pub use blocks::MOST_ELEMENTS;
pub use flags::FlagError;
pub use gpus::ParseGpus;
pub use keys::{KEYS, Key, Takes};
pub use lower::{Abilities, Defaults, Refused, SERVICE_TIME, Warning, lower, refusals};
pub use models::Models;
pub use parts::{
    GpuAmount, GpuChoice, Idle, Priority, Retry, Scale, Schedule, Spot, When, WhenIdle, Which,
};

use crate::error::{Error, Position, Result as Read};
use crate::object;
use crate::out::Record;
use crate::tree::{self, Node, Value};
use berth_model::{ArraySpec, Bytes, Cpu, Dependency, Micros, Span};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

/// A job file longer than this is no job file.
const MOST_BYTES: usize = 1 << 20;

/// The same as Berth writes it: a script is indented there, and what needs quotes has them.
const MOST_KEPT: usize = 8 << 20;

/// A job as it was written. What is not there was not said.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct JobFile {
    pub name: Option<String>,
    pub kind: Option<JobKind>,
    pub team: Option<String>,
    pub project: Option<String>,
    pub experiment: Option<String>,
    pub nodes: Option<u32>,
    /// Alternatives, best first.
    pub gpus: Vec<GpuChoice>,
    pub cpu: Option<Cpu>,
    pub memory: Option<Bytes>,
    pub time: Option<Span>,
    pub deadline: Option<When>,
    pub budget: Option<Micros>,
    pub spot: Option<Spot>,
    pub priority: Option<Priority>,
    pub preemptible: Option<bool>,
    pub place: Option<String>,
    pub launch: Option<Launch>,
    pub ranks: Option<u32>,
    pub image: Option<String>,
    /// Secrets with which the image is pulled.
    pub pull_secrets: Vec<String>,
    pub data: BTreeMap<String, String>,
    pub volumes: BTreeMap<String, String>,
    pub workdir: Option<String>,
    /// A folder, on the command line; its snapshot, for the server.
    pub code: Option<String>,
    pub setup: Option<String>,
    pub network: Option<Network>,
    pub env: Env,
    /// Variables and the secrets they hold.
    pub secrets: BTreeMap<String, String>,
    pub checkpoint: Option<Checkpoint>,
    pub retry: Option<Retry>,
    pub notify: Vec<Notify>,
    pub stop_when: Vec<StopRule>,
    pub array: Option<ArraySpec>,
    pub sweep: Option<Sweep>,
    pub after: Vec<Dependency>,
    pub singleton: Option<bool>,
    pub begin: Option<When>,
    pub hold: Option<bool>,
    pub schedule: Option<Schedule>,
    pub open: Vec<Tool>,
    pub idle: Option<Idle>,
    pub port: Option<u16>,
    pub ports: Vec<u16>,
    pub ready: Option<Ready>,
    pub scale: Option<Scale>,
    pub model: Option<String>,
    pub labels: BTreeMap<String, String>,
    pub tags: Vec<String>,
    pub comment: Option<String>,
    pub run: Option<Command>,
}

/// A file as read, and where its keys stood.
#[derive(Debug, Clone, Default)]
pub struct Parsed {
    pub file: JobFile,
    /// Keys with nothing after them, or `null`: a copy of a job leaves them out of the old file.
    pub left_out: BTreeSet<&'static str>,
    lines: BTreeMap<&'static str, Position>,
}

impl Parsed {
    /// Where the value of a key stood, for a complaint about its meaning.
    pub fn at(&self, key: &str) -> Option<Position> {
        self.lines.get(key).copied()
    }
}

/// What is wrong with one key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// The key, or nothing where the text as a whole is wrong.
    pub key: Option<String>,
    pub at: Position,
    pub message: String,
}

/// Everything that is wrong with a file, in its order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistakes(pub Vec<Mistake>);

impl std::error::Error for Mistakes {}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, Mistake { at, message, .. }) in self.0.iter().enumerate() {
            let line = if index == 0 { "" } else { "\n" };
            write!(f, "{line}{at}: {message}")?;
        }
        Ok(())
    }
}

impl Mistakes {
    fn whole(error: Error) -> Mistakes {
        Mistakes(vec![Mistake { key: None, at: error.at, message: error.message }])
    }

    /// Whether one of them is about that key, or about the file as a whole.
    pub fn concern(&self, key: &str) -> bool {
        let named = format!("`{key}`");
        self.0.iter().any(|one| {
            one.key.as_deref().is_none_or(|own| own == key) || one.message.contains(&named)
        })
    }
}

/// Reads a job file, YAML or JSON.
pub fn read(text: &str) -> Result<Parsed, Mistakes> {
    let (parsed, mistakes) = read_partly(text);
    mistakes.map_or(Ok(parsed), Err)
}

/// Reads what can be read of a job file. The caller can then check the other keys, too, and report all that is
/// wrong with the file at once.
pub fn read_partly(text: &str) -> (Parsed, Option<Mistakes>) {
    match entries(text, MOST_BYTES, "1 MiB") {
        Ok(entries) => read_all_entries(&entries),
        Err(error) => (Parsed::default(), Some(Mistakes::whole(error))),
    }
}

/// Reads a job file that [`write`] has made, which may be longer than the one that was sent.
pub fn read_kept(text: &str) -> Result<Parsed, Mistakes> {
    let read = entries(text, MOST_KEPT, "8 MiB");
    read.map_err(Mistakes::whole).and_then(|entries| read_entries(&entries))
}

fn read_entries(entries: &[tree::Entry]) -> Result<Parsed, Mistakes> {
    let (parsed, mistakes) = read_all_entries(entries);
    mistakes.map_or(Ok(parsed), Err)
}

fn read_all_entries(entries: &[tree::Entry]) -> (Parsed, Option<Mistakes>) {
    let mut file = JobFile::default();
    let (mut lines, mut left_out) = (BTreeMap::new(), BTreeSet::new());
    let mut mistakes = Vec::new();
    for entry in entries {
        let mut note = |error: Error| {
            let Error { at, message } = error;
            mistakes.push(Mistake { key: Some(entry.key.clone()), at, message });
        };
        match keys::find(&entry.key) {
            Err(error) => note(Error::new(entry.at, error.to_string())),
            // `key:` and nothing after it is as good as no key.
            Ok(key) if entry.value.is_null() => {
                left_out.insert(key.name);
            }
            Ok(key) => {
                lines.insert(key.name, entry.value.at);
                let within = |error: Error| error.within(&format!("`{}`", key.name));
                let read = no_nul(&entry.value).and_then(|()| (key.read)(&entry.value, &mut file));
                read.unwrap_or_else(|error| note(within(error)));
            }
        }
    }
    let parsed = Parsed { file, left_out, lines };
    (parsed, (!mistakes.is_empty()).then_some(Mistakes(mistakes)))
}

fn entries(text: &str, most_bytes: usize, most: &str) -> Read<Vec<tree::Entry>> {
    let start = Position { line: 1, column: 1 };
    if text.len() > most_bytes {
        let message = format!("a job file has at most {most}; keep data in volumes");
        return Err(Error::new(start, message));
    }
    let node = tree::parse(text, tree::Limits::JOB)?;
    match object::of(&node)? {
        None => keys_of(node),
        Some(object) if object.kind == object::Kind::Job => keys_of(object.flat()?),
        Some(object) => {
            let message = format!("a {} is no job: use `berth apply -f FILE`", object.kind.word());
            Err(Error::new(node.at, message))
        }
    }
}

fn keys_of(tree: Node) -> Read<Vec<tree::Entry>> {
    match tree.value {
        Value::Map(entries) => Ok(entries),
        _ => Err(Error::expected(tree.at, &tree.found(), "keys with values, such as `run: …`")),
    }
}

/// No program can be given one, in an argument or a variable.
fn no_nul(node: &Node) -> Read<()> {
    match &node.value {
        Value::Scalar { text, .. } if text.contains('\0') => {
            Err(Error::expected(node.at, "a NUL character", "text without one"))
        }
        Value::Scalar { .. } | Value::Null => Ok(()),
        Value::List(items) => items.iter().try_for_each(no_nul),
        Value::Map(entries) => entries.iter().try_for_each(|entry| no_nul(&entry.value)),
    }
}

impl JobFile {
    /// This file with what another says laid over it. Variables, labels, secrets, volumes and data
    /// are joined, entry by entry; everything else that the other names replaces what is here.
    pub fn merge(&self, over: &JobFile) -> JobFile {
        let mut merged = self.clone();
        KEYS.iter().for_each(|key| (key.merge)(&mut merged, over));
        merged
    }

    /// This file without some of its keys, as if they had not been written.
    pub fn without(&self, names: &BTreeSet<&'static str>) -> JobFile {
        let mut left = JobFile::default();
        let kept = KEYS.iter().filter(|key| !names.contains(key.name));
        kept.for_each(|key| (key.merge)(&mut left, self));
        left
    }

    /// Whether it asks for GPUs that a cluster hands out several times over.
    pub fn asks_for_shares(&self) -> bool {
        self.gpus.iter().any(|choice| matches!(choice.amount, GpuAmount::Shared(_)))
    }

    fn record(&self) -> Record {
        let mut out = Record::default();
        for key in KEYS {
            out.maybe(key.name, (key.write)(self), |value| value);
        }
        out
    }
}

/// The file as YAML that reads back the same.
pub fn write(file: &JobFile) -> String {
    crate::out::yaml(file.record())
}

/// The file as JSON that reads back the same.
pub fn write_json(file: &JobFile) -> String {
    crate::out::json(file.record())
}
