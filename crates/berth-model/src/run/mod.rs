//! How a job is run: what a driver needs to know of it, besides where it goes.

mod parts;
mod stop;
mod sweep;

pub use parts::{
    Checkpoint, Command, Env, Launch, Moment, Network, Notify, Ready, ReadyCheck, Signal, Times,
    Tool, Via,
};
pub use stop::{Better, Figure, StopRule, StopWhen};
pub use sweep::{How, Parameter, Sweep};

use crate::{Bytes, CodeId, DataRef, JobKind, Micros, Name, Span};
use serde::{Deserialize, Serialize};
use std::collections::{BTreeMap, BTreeSet};
use sweep::fill;

/// How a job is run: everything of the file that does not decide where and when.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunSpec {
    pub kind: JobKind,
    pub command: Command,
    pub env: Env,
    /// Variables and the names of the secrets they will hold.
    pub secrets: BTreeMap<String, String>,
    /// Nothing: the job's own folder, or its code where it has any. A relative one lies in its code.
    pub workdir: Option<String>,
    /// The snapshot of files that it runs with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub code: Option<CodeId>,
    /// A script that prepares its environment, once for the same text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub setup: Option<String>,
    pub volumes: BTreeMap<String, String>,
    pub data: BTreeMap<String, String>,
    #[serde(default, skip_serializing_if = "Network::is_default")]
    pub network: Network,
    pub launch: Launch,
    /// Processes on each node.
    pub ranks: u32,
    pub port: Port,
    pub ports: Vec<u16>,
    pub ready: Option<Ready>,
    pub checkpoint: Checkpoint,
    pub retry: RetryPlan,
    /// From the signal to the kill.
    pub grace: Span,
    pub logs: LogLimits,
    /// What the elements of its array stand for.
    pub sweep: Option<Sweep>,
    /// What it may cost in all.
    pub budget: Option<Micros>,
    pub notify: Vec<Notify>,
    /// The job ends when it meets one of these rules.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub stop_when: Vec<StopRule>,
    pub open: Vec<Tool>,
    pub tags: Vec<String>,
    pub comment: Option<String>,
    /// Where jobs run as pods: what of them the file and the cluster say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub container: Option<Container>,
}

/// What a task runs in, where it runs in a container.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Container {
    pub image: String,
    /// The namespace of its team when it was submitted. It stays there when it changes hands.
    pub namespace: String,
    /// Secrets of that namespace with which the image is pulled.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub pull_secrets: Vec<String>,
}

/// The port a job listens on.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Port {
    None,
    /// One that is free where it runs; the job finds it as `PORT`.
    Any,
    #[serde(untagged)]
    At(u16),
}

/// How often a job is run again.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct RetryPlan {
    pub infra: Times,
    pub error: Times,
    pub oom: Times,
    /// Before the first retry; it doubles each time.
    pub wait: Span,
}

/// What is kept of the output of one process.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogLimits {
    pub file: Bytes,
    pub files: u32,
}

impl Default for LogLimits {
    fn default() -> LogLimits {
        LogLimits { file: Bytes::mib(16), files: 8 }
    }
}

impl RunSpec {
    /// The versions of data that it was submitted with, by where it wants them.
    pub fn versions(&self) -> impl Iterator<Item = (&String, DataRef)> {
        let parsed = self.data.iter().filter_map(|(at, source)| Some((at, source.parse().ok()?)));
        parsed.filter(|(_, data): &(&String, DataRef)| data.hash.is_some())
    }

    /// The same, as nodes name the versions that they keep.
    pub fn kept_data(&self) -> BTreeSet<Name> {
        let hashes = self.versions().filter_map(|(_, data)| data.hash);
        hashes.map(|hash| Name::new(hash.as_str())).collect()
    }

    /// Whether something has to be fetched before it starts.
    pub fn is_fetched(&self) -> bool {
        self.code.is_some() || self.versions().next().is_some()
    }

    /// The run of one element: its values stand in variables, and in the arguments of a program,
    /// which no shell would look at.
    pub fn of_element(&self, element: Option<u32>) -> RunSpec {
        let mut run = self.clone();
        let (Some(sweep), Some(element)) = (&self.sweep, element) else { return run };
        let values = sweep.values(element);
        for (name, value) in &values {
            run.env.insert((*name).to_owned(), (*value).to_owned());
        }
        if let Command::Program(words) = &mut run.command {
            words.iter_mut().for_each(|word| *word = fill(word, &values));
        }
        run
    }
}
