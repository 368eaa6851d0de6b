//! The values of a job file's keys, as they were written: nothing is resolved here.

use berth_model::{Bytes, Milli, Name, Span, Time};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    #[default]
    Job,
    /// Something to work in: it has a port.
    Notebook,
    /// Something that answers requests: it has a port and says when it is ready.
    Service,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Spot {
    Never,
    Auto,
    Only,
}

/// How many processes start on each node, and by whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Launch {
    /// One on each node.
    #[default]
    Once,
    /// One for each GPU, with `RANK` and its companions set.
    Ranks,
    /// `torchrun` starts them.
    Torchrun,
}

/// What is run: a script for the shell, or a program with its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Command {
    Shell(String),
    Program(Vec<String>),
}

/// A moment, or a time from the submission on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum When {
    At(Time),
    In(Span),
}

impl When {
    pub fn from(self, now: Time) -> Time {
        match self {
            When::At(time) => time,
            When::In(span) => now + span,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Priority {
    Class(Name),
    Number(i32),
}

/// Which GPUs one node is asked for. Several of them are alternatives, best first.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuChoice {
    pub which: Which,
    pub amount: GpuAmount,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Which {
    Any,
    /// `H100` stands for every H100; `H100-80GB` for that one.
    Model(Name),
    /// Any with that much memory.
    AtLeast(Bytes),
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum GpuAmount {
    Whole(u32),
    /// Less than one GPU.
    Part(Milli),
    /// A part of a GPU as large as that much of its memory.
    Memory(Bytes),
    /// Instances of a MIG profile.
    Mig {
        profile: Name,
        count: u32,
    },
    /// Shares of GPUs that the cluster hands out several times over.
    Shared(u32),
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Checkpoint {
    /// A folder that outlives the attempts; a relative one lies in the job's own.
    pub path: Option<String>,
    /// How often the job saves by itself.
    pub every: Option<Span>,
    /// From the signal to the kill.
    pub grace: Option<Span>,
    /// How many to keep.
    pub keep: Option<u32>,
    /// Which signal makes it save.
    pub signal: Option<Signal>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Signal {
    Term,
    Int,
    Usr1,
    Usr2,
}

/// How often a job is run again, by what ended it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Times {
    Forever,
    #[serde(untagged)]
    At(u32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Retry {
    /// A lost node, a GPU error, a machine that could not start it.
    pub infra: Option<Times>,
    /// The job's own failure.
    pub error: Option<Times>,
    /// It ran out of memory.
    pub oom: Option<Times>,
    /// How long to wait before the first retry; the wait doubles each time.
    pub wait: Option<Span>,
}

/// Who hears of it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notify {
    pub via: Via,
    /// A name known to the server, a channel, or a URL.
    pub to: String,
    /// Nothing named: when it ends, well or badly.
    pub on: Vec<Moment>,
}

/// A URL of a webhook lets anyone write to it, so it is not shown.
impl fmt::Debug for Notify {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let to = if self.to.contains("://") { "(a URL)" } else { &self.to };
        let Notify { via, on, .. } = self;
        f.debug_struct("Notify").field("via", via).field("to", &to).field("on", on).finish()
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Via {
    Slack,
    Webhook,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Moment {
    Start,
    Done,
    Failed,
    Preempted,
    Budget,
}

/// When jobs are made from the file, again and again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schedule {
    pub cron: crate::cron::Cron,
    /// East of UTC.
    pub offset: Span,
}

/// Tools to open in a notebook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tool {
    Jupyter,
    Vscode,
    Ssh,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Idle {
    /// Of a GPU's time.
    pub below: Milli,
    pub after: Span,
    pub then: WhenIdle,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum WhenIdle {
    Notify,
    Suspend,
    Stop,
}

/// How a service says that it is ready.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ready {
    pub check: ReadyCheck,
    /// It has failed when it is not ready by then.
    pub within: Option<Span>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReadyCheck {
    /// A GET of that path answers with a 2xx.
    Http(String),
    /// The port takes connections.
    Tcp,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Scale {
    pub min: u32,
    pub max: u32,
    /// Waiting requests of one replica before another is added.
    pub pending: Option<u32>,
    pub predict: Option<Span>,
}

/// Variables and their values. Values may be confidential: only the names are shown.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Env(pub BTreeMap<String, String>);

impl fmt::Debug for Env {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.0.keys()).finish()
    }
}

impl std::ops::Deref for Env {
    type Target = BTreeMap<String, String>;
    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl std::ops::DerefMut for Env {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.0
    }
}
