//! The parts of a run.

use crate::Span;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

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

/// What a job reaches over the network.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Network {
    /// What its machine reaches.
    #[default]
    Machine,
    /// Nothing but itself.
    None,
}

impl Network {
    pub fn is_default(&self) -> bool {
        *self == Network::default()
    }
}

/// What is run: a script for the shell, or a program with its arguments.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Command {
    Shell(String),
    Program(Vec<String>),
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

/// Who hears of it.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notify {
    pub via: Via,
    /// A name known to the server, a channel, or a URL.
    pub to: String,
    /// Nothing named: when it ends, well or badly.
    pub on: Vec<Moment>,
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

/// Tools to open in a notebook.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Tool {
    Jupyter,
    Vscode,
    Ssh,
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

/// Variables and their values. Values may be confidential: only the names are shown.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Env(pub BTreeMap<String, String>);

/// A URL of a webhook lets anyone write to it, so it is not shown.
impl fmt::Debug for Notify {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let to = if self.to.contains("://") { "(a URL)" } else { &self.to };
        let Notify { via, on, .. } = self;
        f.debug_struct("Notify").field("via", via).field("to", &to).field("on", on).finish()
    }
}

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
