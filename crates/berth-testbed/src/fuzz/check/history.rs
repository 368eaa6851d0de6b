//! What happened to the pods of a run, in the order of the API server.

use super::scene::Pod;
use crate::fuzz::world::Key;
use serde_json::Value;

#[derive(Debug, Clone)]
pub enum Step {
    /// As it is now.
    Seen(Box<Pod>),
    Gone(Key),
    /// A phase of the world begins.
    Phase,
}

impl Step {
    /// Of an event of a watch.
    pub fn of(event: &Value) -> Option<Step> {
        let object = &event["object"];
        match event["type"].as_str()? {
            "ADDED" | "MODIFIED" => Some(Step::Seen(Box::new(Pod::of(object)))),
            "DELETED" => Some(Step::Gone(Key::of(object))),
            _ => None,
        }
    }
}
