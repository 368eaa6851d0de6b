//! What webhooks of the registry can be about.

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

/// Something that happened in the registry of a team.
#[derive(Debug, Clone, PartialEq)]
pub struct Event {
    pub entity: &'static str,
    pub action: &'static str,
    pub data: Value,
}

impl Event {
    /// The event of a change. Prompts have none.
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

    /// The message. `at` is a time in words.
    pub fn body(&self, at: &str) -> String {
        let Event { entity, action, data } = self;
        json!({ "entity": entity, "action": action, "timestamp": at, "data": data }).to_string()
    }
}

/// What came of a message that was sent at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tried {
    pub status: Option<u16>,
    /// Why it did not go well.
    pub error: Option<String>,
}
