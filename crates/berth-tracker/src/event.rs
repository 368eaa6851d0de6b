//! Events of the model registry for webhooks.

use crate::model::{Tags, is_prompt};
use serde_json::{Value, json};

/// Each kind of event, as entity and action.
pub const EVENTS: &[(&str, &str)] = &[
    ("registered_model", "created"),
    ("model_version", "created"),
    ("model_version_tag", "set"),
    ("model_version_tag", "deleted"),
    ("model_version_alias", "created"),
    ("model_version_alias", "deleted"),
];

/// An event in the registry of a team.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    pub entity: &'static str,
    pub action: &'static str,
    pub data: Value,
}

impl Event {
    /// The event of a change. Changes of prompts send none.
    pub fn of(
        (entity, action): (&'static str, &'static str),
        tags: &Tags,
        data: Value,
    ) -> Option<Event> {
        (!is_prompt(tags)).then_some(Event { entity, action, data })
    }

    /// Such as `model_version.created`.
    pub fn name(&self) -> String {
        format!("{}.{}", self.entity, self.action)
    }

    /// The message. `at` is a formatted time.
    pub fn body(&self, at: &str) -> String {
        let Event { entity, action, data } = self;
        json!({ "entity": entity, "action": action, "timestamp": at, "data": data }).to_string()
    }
}

/// The result of a test message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tried {
    pub status: Option<u16>,
    /// Why the message failed.
    pub error: Option<String>,
}
