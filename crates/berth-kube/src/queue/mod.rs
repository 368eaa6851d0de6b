//! Queues written for other schedulers.
//!
//! Quotas, weights, limits and the tree come over. Who is displaced for whom does not: that is
//! decided by Berth's policy, which has no counterpart in a foreign queue. What cannot be expressed
//! is listed in [`ImportedQueue::unmapped`], and the rest of the queue is still of use.

mod amounts;
pub mod kai;
pub mod kueue;
pub mod volcano;

use crate::InvalidField;
use berth_model::{Name, QueueSpec};

/// A queue as far as it can be expressed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportedQueue {
    pub spec: QueueSpec,
    /// What was left out, and what to do about it.
    pub unmapped: Vec<InvalidField>,
}

/// A queue in the making.
struct Draft {
    /// Such as `Queue team-a`, for what is wrong with it.
    object: String,
    spec: QueueSpec,
    unmapped: Vec<InvalidField>,
}

impl Draft {
    fn new(kind: &str, name: &str) -> Draft {
        let object = format!("{kind} {name}");
        Draft { object, spec: QueueSpec::new(name), unmapped: Vec::new() }
    }

    fn unmappable(&mut self, field: &str, value: &str, what_to_do: &str) {
        self.unmapped.push(InvalidField::new(
            format!("{}: {field}", self.object),
            value,
            what_to_do,
        ));
    }

    fn parent(&mut self, name: Option<&str>) {
        self.spec.parent = name.filter(|name| !name.is_empty()).map(Name::new);
    }

    fn priority(&mut self, value: Option<i64>) {
        let Some(value) = value else {
            return;
        };
        match i32::try_from(value) {
            Ok(priority) => self.spec.priority = priority,
            Err(_) => self.unmappable("priority", &value.to_string(), "write a smaller number"),
        }
    }

    fn finish(self) -> ImportedQueue {
        ImportedQueue { spec: self.spec, unmapped: self.unmapped }
    }
}

#[cfg(test)]
mod tests;
