//! An object of ours as it was last seen, and what has become of it.

use crate::crd::bad_spec::BadSpec;
use berth_file::documents::{self, Want};
use berth_file::object::{GROUP, Kind, VERSION};
use berth_kube::event::ObjectReference;
use berth_model::JobId;
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Instant;

/// Namespace and name.
pub type Key = (String, String);

#[derive(Debug, Clone, PartialEq, Deserialize)]
pub struct Object {
    pub metadata: Metadata,
    #[serde(default)]
    pub spec: Value,
    #[serde(default)]
    pub status: Value,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Metadata {
    pub name: String,
    pub namespace: String,
    pub uid: String,
    /// Grows with each change of the spec.
    pub generation: i64,
    /// RFC 3339 in UTC: the earlier one is the smaller text.
    pub creation_timestamp: String,
}

impl Object {
    pub fn key(&self) -> Key {
        (self.metadata.namespace.clone(), self.metadata.name.clone())
    }

    pub fn about(&self, kind: Kind) -> ObjectReference {
        let Metadata { name, namespace, uid, .. } = &self.metadata;
        ObjectReference {
            api_version: format!("{GROUP}/{VERSION}"),
            kind: kind.word().to_owned(),
            namespace: namespace.clone(),
            name: name.clone(),
            uid: uid.clone(),
        }
    }

    /// The object as a document, as a user would write it into a file.
    pub fn text(&self, kind: Kind) -> String {
        json!({
            "apiVersion": format!("{GROUP}/{VERSION}"),
            "kind": kind.word(),
            "metadata": { "name": self.metadata.name },
            "spec": if self.spec.is_null() { json!({}) } else { self.spec.clone() },
        })
        .to_string()
    }

    fn condition(&self, of: &str) -> Option<&Value> {
        let conditions = self.status["conditions"].as_array()?;
        conditions.iter().find(|condition| condition["type"] == of)
    }

    /// The job that was made of it, as it says itself.
    fn job(&self) -> Option<JobId> {
        self.status["job"].as_str()?.parse().ok()
    }
}

/// Whether the controller accepts an object, as its conditions `Accepted` and `Ready` say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Acceptance {
    pub is_accepted: bool,
    /// The reason of the condition in one word, such as `UnknownParent`.
    pub reason: String,
    /// What is wrong, and what its author can do.
    pub message: String,
    /// A reason and a message that keep an accepted object from being ready.
    pub warning: Option<(&'static str, String)>,
}

impl Acceptance {
    pub fn accepted(message: impl Into<String>) -> Acceptance {
        let reason = "Accepted".to_owned();
        Acceptance { is_accepted: true, reason, message: message.into(), warning: None }
    }

    pub fn rejected(reason: impl Into<String>, message: impl Into<String>) -> Acceptance {
        Acceptance {
            is_accepted: false,
            reason: reason.into(),
            message: message.into(),
            warning: None,
        }
    }
}

/// An object with what has become of it.
pub struct Known {
    pub object: Object,
    /// What it wants, or its mistakes; nothing for a job, which is read when it is submitted.
    pub want: Option<Result<Want, BadSpec>>,
    pub acceptance: Option<Acceptance>,
    /// When its status was last written.
    pub wrote: Option<Instant>,
    pub job: Option<JobId>,
    /// The version of the spec that the job was made of.
    pub made_of: i64,
    /// Nothing changes about it any more.
    pub is_over: bool,
}

impl Known {
    pub fn new(kind: Kind, object: Object) -> Known {
        let job = object.job();
        let made_of =
            object.condition("Accepted").and_then(|one| one["observedGeneration"].as_i64());
        let made_of = made_of.unwrap_or(object.metadata.generation);
        let want = want(kind, &object);
        Known { object, want, acceptance: None, wrote: None, job, made_of, is_over: false }
    }

    /// Takes in the object as it is now. Returns whether its spec is another one.
    pub fn update(&mut self, kind: Kind, object: Object) -> bool {
        let same = self.object.metadata.uid == object.metadata.uid;
        if !same {
            // Another one took its name.
            *self = Known::new(kind, object);
            return true;
        }
        let changed = self.object.metadata.generation != object.metadata.generation;
        if changed {
            self.want = want(kind, &object);
            self.is_over = false;
        }
        self.object = object;
        changed
    }
}

fn want(kind: Kind, object: &Object) -> Option<Result<Want, BadSpec>> {
    if kind == Kind::Job {
        return None;
    }
    let read = documents::read(&object.text(kind)).map_err(BadSpec::from);
    Some(read.and_then(|found| match found.into_iter().next() {
        Some(document) => Ok(document.want),
        None => Err(BadSpec::Empty),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(generation: i64, spec: Value) -> Object {
        let object = json!({
            "metadata": { "name": "nlp", "uid": "7", "generation": generation },
            "spec": spec,
        });
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn a_spec_is_read_when_it_is_another_one() {
        let mut known = Known::new(Kind::Queue, object(1, json!({ "quota": { "gpu": 4 } })));
        assert!(matches!(known.want, Some(Ok(Want::Queue(_)))));
        let status = Object { status: json!({ "running": 1 }), ..known.object.clone() };
        assert!(!known.update(Kind::Queue, status), "a status changes no spec");
        assert!(known.update(Kind::Queue, object(2, json!({ "quota": { "gpu": "many" } }))));
        let Some(Err(why)) = &known.want else { panic!("it has a mistake") };
        let why = why.to_string();
        assert!(why.contains("`gpu`") && !why.contains("line"), "{why}");
    }

    #[test]
    fn an_object_that_took_the_name_of_another_one_begins_anew() {
        let mut known = Known::new(Kind::Queue, object(1, json!({})));
        known.acceptance = Some(Acceptance::accepted(""));
        let mut other = object(1, json!({}));
        other.metadata.uid = "8".to_owned();
        assert!(known.update(Kind::Queue, other));
        assert_eq!(known.acceptance, None);
    }
}
