//! The events of a watch, in the order of the API server.

use super::Cluster;
use super::objects::escape;
use crate::http::{self, Lines};
use serde_json::Value;

/// Collects what happens to the objects of a kind until it is dropped.
#[derive(Debug)]
pub struct Watch {
    lines: Lines,
    read: usize,
}

impl Cluster {
    /// Watches a path such as `/api/v1/pods`, from what its list says now.
    ///
    /// # Panics
    ///
    /// If it cannot be listed.
    pub fn watch(&self, path: &str) -> Watch {
        let objects = self.objects();
        let list = objects.get_path(path).unwrap_or_else(|refusal| panic!("{path}: {refusal}"));
        let version = list["metadata"]["resourceVersion"].as_str().unwrap_or_default();
        let version = escape(version);
        let url = self.url();
        let url = format!("{url}{path}?watch=1&resourceVersion={version}");
        Watch { lines: http::lines(objects.client(), url), read: 0 }
    }
}

impl Watch {
    /// What has happened since this was last called.
    ///
    /// # Panics
    ///
    /// If the watch has ended: then something is missing.
    pub fn news(&mut self) -> Vec<Value> {
        let (lines, is_over) = self.lines.since(self.read);
        assert!(!is_over, "the watch has ended");
        self.read += lines.len();
        let events: Vec<Value> =
            lines.iter().map(|line| serde_json::from_str(line).expect("it is JSON")).collect();
        let is_error = |event: &&Value| event["type"] == "ERROR";
        assert!(!events.iter().any(|event| is_error(&event)), "the watch failed: {events:?}");
        events
    }
}
