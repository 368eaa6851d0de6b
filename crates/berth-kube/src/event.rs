//! Events on objects, as `kubectl describe` shows them: what is wrong with one, once.
//!
//! An event's name follows from its object and its words. Whoever says the same again, also after a
//! restart or as another replica, finds that it was said; nobody has to remember it.

use crate::client::Api;
use crate::error::Result;
use berth_model::PodRef;
use serde::Serialize;
use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

/// Who says so.
const CONTROLLER: &str = "berth.dev/scheduler";
/// Where events are kept about objects that belong to no namespace.
const ELSEWHERE: &str = "default";
/// Bytes that the API server takes of a note, and of a name's beginning, so that all of it fits.
const LONGEST_NOTE: usize = 1_000;
const LONGEST_BEGINNING: usize = 200;
/// Names that are remembered, so that nothing is asked for what was just said. What is forgotten is
/// asked once more and said no second time.
const REMEMBERED: usize = 20_000;

/// The object that an event is about.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct About {
    pub api_version: String,
    pub kind: String,
    /// Empty for what belongs to no namespace.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub namespace: String,
    pub name: String,
    pub uid: String,
}

impl From<&PodRef> for About {
    fn from(pod: &PodRef) -> About {
        About {
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
    /// Somebody has to do something.
    Warning,
}

/// What is said about an object.
#[derive(Debug, Clone, Copy)]
pub struct Saying<'a> {
    pub level: Level,
    /// What was being done, in one word such as `Accept`.
    pub action: &'a str,
    /// Why, in one word such as `UnknownParent`.
    pub reason: &'a str,
    /// What it is and what to do.
    pub note: &'a str,
    /// What tells it from another saying of the same reason; the note where left out. A note that
    /// names what else there is changes with that, and says nothing new.
    pub about: Option<&'a str>,
}

/// Says things about objects, each once. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Events {
    api: Api,
    /// Which of several servers this is.
    instance: Arc<str>,
    said: Arc<Mutex<BTreeSet<(String, String)>>>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Written<'a> {
    api_version: &'a str,
    kind: &'a str,
    metadata: Named<'a>,
    event_time: String,
    #[serde(rename = "type")]
    level: Level,
    action: &'a str,
    reason: &'a str,
    note: &'a str,
    regarding: &'a About,
    reporting_controller: &'a str,
    reporting_instance: &'a str,
}

#[derive(Serialize)]
struct Named<'a> {
    namespace: &'a str,
    name: &'a str,
}

impl Events {
    pub fn new(api: Api, instance: &str) -> Events {
        Events { api, instance: instance.into(), said: Arc::default() }
    }

    /// Says it, unless it was said of the object in the hour or so that events are kept.
    pub async fn say(&self, about: &About, saying: Saying<'_>) -> Result<()> {
        let namespace = match about.namespace.as_str() {
            "" => ELSEWHERE,
            namespace => namespace,
        };
        let key = (namespace.to_owned(), name(about, &saying));
        if self.said().contains(&key) {
            return Ok(());
        }
        let event = Written {
            api_version: "events.k8s.io/v1",
            kind: "Event",
            metadata: Named { namespace, name: &key.1 },
            event_time: format!("{:.6}", jiff::Timestamp::now()),
            level: saying.level,
            action: saying.action,
            reason: saying.reason,
            note: cut(saying.note, LONGEST_NOTE),
            regarding: about,
            reporting_controller: CONTROLLER,
            reporting_instance: &self.instance,
        };
        let path = format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events");
        match self.api.post(&path, &event).await {
            // Somebody has said so, or the namespace went with everything in it.
            Err(error) if error.is_conflict() || error.is_missing() => {}
            said => drop(said?),
        }
        let mut said = self.said();
        if said.len() >= REMEMBERED {
            said.clear();
        }
        said.insert(key);
        Ok(())
    }

    fn said(&self) -> std::sync::MutexGuard<'_, BTreeSet<(String, String)>> {
        self.said.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The same for the same words about the same object, and for no others.
fn name(about: &About, saying: &Saying<'_>) -> String {
    let apart = saying.about.unwrap_or(saying.note);
    let words = [&about.kind, &about.uid, saying.reason, apart];
    let beginning = cut(&about.name, LONGEST_BEGINNING).trim_end_matches(['.', '-']);
    format!("{beginning}.{:016x}", fingerprint(&words))
}

/// FNV-1a: the same in every version of this program, as the standard library's is not.
fn fingerprint(words: &[&str]) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for word in words {
        // A byte that is in no word keeps words apart.
        for byte in word.bytes().chain([0xff]) {
            hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
    hash
}

/// The beginning of a text, in whole characters.
fn cut(text: &str, longest: usize) -> &str {
    &text[..text.floor_char_boundary(longest)]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn about(name: &str) -> About {
        let pod = PodRef { namespace: "a".into(), name: name.into(), uid: "7".into() };
        About::from(&pod)
    }

    fn saying(note: &str) -> Saying<'_> {
        Saying { level: Level::Warning, action: "Accept", reason: "Odd", note, about: None }
    }

    #[test]
    fn the_same_words_about_the_same_object_have_one_name() {
        let first = name(&about("train"), &saying("there is no queue `x`"));
        assert_eq!(first, name(&about("train"), &saying("there is no queue `x`")));
        assert_ne!(first, name(&about("train"), &saying("there is no queue `y`")));
        assert!(first.starts_with("train.") && first.len() == "train.".len() + 16, "{first}");
    }

    #[test]
    fn what_is_long_is_cut_between_characters() {
        assert_eq!(cut("größe", 3), "gr");
        let long = name(&about(&"x".repeat(253)), &saying(""));
        assert_eq!(long.len(), LONGEST_BEGINNING + 17);
    }
}
