//! A world: what is put into a cluster, and in which order.

use serde_json::Value;
use std::fmt;

/// Namespace and name of an object.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Key {
    pub namespace: String,
    pub name: String,
}

impl Key {
    pub fn of(object: &Value) -> Key {
        let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
        Key { namespace: text("namespace"), name: text("name") }
    }
}

impl fmt::Display for Key {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}/{}", self.namespace, self.name)
    }
}

/// What a world is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Nodes, then pods with all kinds of constraints; some pods end, and others come.
    Mixed,
    /// Pods with rules about each other, then the nodes.
    LateNodes,
    /// Full nodes, then one pod of a higher priority.
    PreemptOne,
    /// Full nodes, then several pods of higher priorities.
    PreemptMany,
}

#[derive(Debug, Clone)]
pub struct World {
    pub seed: u64,
    pub kind: Kind,
    pub nodes: Vec<Value>,
    /// Volumes and claims.
    pub volumes: Vec<Value>,
    pub budgets: Vec<Value>,
    pub phases: Vec<Phase>,
}

#[derive(Debug, Clone, Default)]
pub struct Phase {
    /// Pods that end as the phase begins.
    pub leaving: Vec<Key>,
    pub pods: Vec<Value>,
}

impl World {
    pub fn nodes_come_last(&self) -> bool {
        self.kind == Kind::LateNodes
    }

    /// Every pod was told its node, so that both schedulers begin the second phase alike.
    pub fn is_pinned(&self) -> bool {
        matches!(self.kind, Kind::PreemptOne | Kind::PreemptMany)
    }

    pub fn pods(&self) -> impl Iterator<Item = &Value> {
        self.phases.iter().flat_map(|phase| &phase.pods)
    }
}
