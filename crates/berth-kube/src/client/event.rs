//! EventRecorder on objects, as `kubectl describe` shows them: what is wrong with one, once.
//!
//! The name of an event is derived from its object and its text. Recording the same event again, also
//! after a restart or from another replica, finds it there; no state is needed for that.

use super::api::{Api, PatchType};
use super::error::Result;
use crate::fnv::fnv1a;
use berth_model::PodRef;
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Who says so.
const CONTROLLER: &str = "berth.dev/scheduler";
/// Where events are kept about objects that belong to no namespace.
const CLUSTER_SCOPED_NAMESPACE: &str = "default";
/// Bytes that the API server takes of a note, and of a name's beginning, so that all of it fits.
const MAX_NOTE_BYTES: usize = 1_000;
const MAX_NAME_PREFIX_BYTES: usize = 200;
/// Names that are cached, so that an event that was just recorded costs no request. One that fell out
/// of the cache costs one request and is not recorded twice.
const MAX_REMEMBERED: usize = 20_000;

/// The namespace and the name of an event.
type Key = (String, String);

/// The object that an event is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ObjectReference {
    pub api_version: String,
    pub kind: String,
    /// Empty for what belongs to no namespace.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    pub name: String,
    pub uid: String,
}

impl From<&PodRef> for ObjectReference {
    fn from(pod: &PodRef) -> ObjectReference {
        ObjectReference {
            api_version: "v1".to_owned(),
            kind: "Pod".to_owned(),
            namespace: pod.namespace.clone(),
            name: pod.name.clone(),
            uid: pod.uid.clone(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub enum Level {
    Normal,
    /// A user or an administrator has to act.
    Warning,
}

/// An event about an object, before it is recorded.
#[derive(Debug, Clone, Copy)]
pub struct NewEvent<'a> {
    pub level: Level,
    /// What was being done, in one word such as `Accept`.
    pub action: &'a str,
    /// Why, in one word such as `UnknownParent`.
    pub reason: &'a str,
    /// What it is and what to do.
    pub note: &'a str,
    /// Tells events of one reason apart; by default the note does. Set it where the note lists other
    /// objects: a change of that list alone is no new event.
    pub dedup_key: Option<&'a str>,
}

/// Records events about objects, each once. Cheap to clone.
#[derive(Debug, Clone)]
pub struct EventRecorder {
    api: Api,
    /// Which of several servers this is.
    instance: Arc<str>,
    /// How often each was recorded.
    recorded: Arc<Mutex<BTreeMap<Key, u32>>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EventObject<'a> {
    api_version: &'a str,
    kind: &'a str,
    metadata: Named<'a>,
    event_time: String,
    #[serde(rename = "type")]
    level: Level,
    action: &'a str,
    reason: &'a str,
    note: &'a str,
    regarding: &'a ObjectReference,
    reporting_controller: &'a str,
    reporting_instance: &'a str,
}

#[derive(Serialize)]
struct Named<'a> {
    namespace: &'a str,
    name: &'a str,
}

impl EventRecorder {
    pub fn new(api: Api, instance: &str) -> EventRecorder {
        EventRecorder { api, instance: instance.into(), recorded: Arc::default() }
    }

    /// Records the event, unless the API server still has the same one for the object.
    pub async fn record(&self, about: &ObjectReference, event: NewEvent<'_>) -> Result<()> {
        let key = key(about, &event);
        if self.recorded().contains_key(&key) {
            return Ok(());
        }
        match self.create(&key, about, &event).await {
            // The event exists already, or its namespace was deleted.
            Err(error) if error.is_conflict() || error.is_not_found() => {}
            recorded => recorded?,
        }
        self.count(key);
        Ok(())
    }

    /// Records the event, or counts the same one for the object once more.
    pub async fn record_again(&self, about: &ObjectReference, event: NewEvent<'_>) -> Result<()> {
        let key = key(about, &event);
        if self.recorded().contains_key(&key) && self.increase(&key).await? {
            return Ok(());
        }
        match self.create(&key, about, &event).await {
            Err(error) if error.is_conflict() => {
                self.count(key.clone());
                self.increase(&key).await?;
            }
            Err(error) if error.is_not_found() => {}
            recorded => {
                recorded?;
                self.count(key);
            }
        }
        Ok(())
    }

    async fn create(
        &self,
        (namespace, name): &Key,
        about: &ObjectReference,
        event: &NewEvent<'_>,
    ) -> Result<()> {
        let event = EventObject {
            api_version: "events.k8s.io/v1",
            kind: "Event",
            metadata: Named { namespace, name },
            event_time: now(),
            level: event.level,
            action: event.action,
            reason: event.reason,
            note: cut(event.note, MAX_NOTE_BYTES),
            regarding: about,
            reporting_controller: CONTROLLER,
            reporting_instance: &self.instance,
        };
        self.api.post(&folder(namespace), &event).await.map(drop)
    }

    /// Counts an event once more. Returns false where the API server does not have it any more.
    async fn increase(&self, key: &Key) -> Result<bool> {
        let count = self.count(key.clone());
        let series = json!({ "series": { "count": count, "lastObservedTime": now() } });
        let path = format!("{}/{}", folder(&key.0), key.1);
        match self.api.patch(&path, PatchType::Merge, &series).await {
            Err(error) if error.is_not_found() => {
                self.recorded().remove(key);
                Ok(false)
            }
            counted => counted.map(|_| true),
        }
    }

    /// How often an event was recorded, this time included.
    fn count(&self, key: Key) -> u32 {
        let mut recorded = self.recorded();
        if recorded.len() >= MAX_REMEMBERED {
            recorded.clear();
        }
        let count = recorded.entry(key).or_insert(0);
        *count = count.saturating_add(1);
        *count
    }

    fn recorded(&self) -> std::sync::MutexGuard<'_, BTreeMap<Key, u32>> {
        self.recorded.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn key(about: &ObjectReference, event: &NewEvent<'_>) -> Key {
    let namespace = match about.namespace.as_str() {
        "" => CLUSTER_SCOPED_NAMESPACE,
        namespace => namespace,
    };
    (namespace.to_owned(), name(about, event))
}

fn folder(namespace: &str) -> String {
    format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events")
}

fn now() -> String {
    format!("{:.6}", jiff::Timestamp::now())
}

/// The same for the same words about the same object, and for no others.
fn name(about: &ObjectReference, event: &NewEvent<'_>) -> String {
    let identity = event.dedup_key.unwrap_or(event.note);
    let words = [&about.kind, &about.uid, event.reason, identity];
    let beginning = cut(&about.name, MAX_NAME_PREFIX_BYTES).trim_end_matches(['.', '-']);
    format!("{beginning}.{:016x}", fingerprint(&words))
}

fn fingerprint(words: &[&str]) -> u64 {
    // A byte that is in no word keeps words apart.
    fnv1a(words.iter().flat_map(|word| word.bytes().chain([0xff])))
}

/// The beginning of a text, in whole characters.
fn cut(text: &str, longest: usize) -> &str {
    &text[..text.floor_char_boundary(longest)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(name: &str) -> ObjectReference {
        let pod = PodRef { namespace: "a".into(), name: name.into(), uid: "7".into() };
        ObjectReference::from(&pod)
    }

    fn event(note: &str) -> NewEvent<'_> {
        NewEvent { level: Level::Warning, action: "Accept", reason: "Odd", note, dedup_key: None }
    }

    #[test]
    fn the_same_words_about_the_same_object_have_one_name() {
        let first = name(&about("train"), &event("there is no queue `x`"));
        assert_eq!(first, name(&about("train"), &event("there is no queue `x`")));
        assert_ne!(first, name(&about("train"), &event("there is no queue `y`")));
        assert!(first.starts_with("train.") && first.len() == "train.".len() + 16, "{first}");
    }

    #[test]
    fn what_is_long_is_cut_between_characters() {
        assert_eq!(cut("größe", 3), "gr");
        let long = name(&about(&"x".repeat(253)), &event(""));
        assert_eq!(long.len(), MAX_NAME_PREFIX_BYTES + 17);
    }
}
