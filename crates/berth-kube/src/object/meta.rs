//! What every object has.

use super::{List, Map, Text};
use berth_model::Time;
use serde::de::{self, Visitor};
use serde::{Deserialize, Deserializer};
use std::fmt;

pub type Labels = Map<Text>;

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Meta {
    pub name: Text,
    /// Empty for what belongs to no namespace.
    pub namespace: Text,
    pub uid: Text,
    pub resource_version: Text,
    pub labels: Labels,
    pub annotations: Labels,
    pub owner_references: List<OwnerReference>,
    pub finalizers: List<Text>,
    #[serde(deserialize_with = "time")]
    pub creation_timestamp: Option<Time>,
    #[serde(deserialize_with = "time")]
    pub deletion_timestamp: Option<Time>,
    pub deletion_grace_period_seconds: Option<i64>,
}

impl Meta {
    pub fn label(&self, key: &str) -> Option<&str> {
        self.labels.get(key).map(|value| &**value)
    }

    pub fn annotation(&self, key: &str) -> Option<&str> {
        self.annotations.get(key).map(|value| &**value)
    }

    /// The owner that looks after this object; the others only keep it from being collected.
    pub fn controller(&self) -> Option<&OwnerReference> {
        self.owner_references.iter().find(|owner| owner.controller)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OwnerReference {
    pub api_version: Text,
    pub kind: Text,
    pub name: Text,
    pub uid: Text,
    pub controller: bool,
}

impl OwnerReference {
    /// The API group, without its version; the core group is empty.
    pub fn group(&self) -> &str {
        group(&self.api_version)
    }
}

/// The API group of `apps/v1`; that of `v1` is empty.
pub(super) fn group(api_version: &str) -> &str {
    api_version.split_once('/').map_or("", |(group, _)| group)
}

/// A moment as the API server writes it: RFC 3339, or `null`.
pub(super) fn time<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Time>, D::Error> {
    let moment = Option::<Moment>::deserialize(deserializer)?;
    Ok(moment.map(|Moment(moment)| Time(moment.as_millisecond())))
}

struct Moment(jiff::Timestamp);

impl<'de> Deserialize<'de> for Moment {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Moment, D::Error> {
        struct Written;
        impl Visitor<'_> for Written {
            type Value = Moment;
            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a moment")
            }
            fn visit_str<E: de::Error>(self, written: &str) -> Result<Moment, E> {
                match written.parse() {
                    Ok(moment) => Ok(Moment(moment)),
                    // What cannot be counted is later than all that can: a grace period may be
                    // longer than time, and one such object must not be unreadable for it.
                    Err(_) if written.starts_with(|c: char| c.is_ascii_digit()) => {
                        Ok(Moment(jiff::Timestamp::MAX))
                    }
                    Err(error) => Err(E::custom(error)),
                }
            }
        }
        deserializer.deserialize_str(Written)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn metadata_reads_times_owners_and_absences() {
        let meta: Meta = serde_json::from_str(
            r#"{"name": "a", "uid": "7", "creationTimestamp": "2026-11-15T10:00:00+01:00",
                "deletionTimestamp": null, "managedFields": [{"manager": "kubectl"}],
                "ownerReferences": [
                    {"apiVersion": "v1", "kind": "ConfigMap", "name": "c", "uid": "8"},
                    {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "9",
                     "controller": true, "blockOwnerDeletion": true}]}"#,
        )
        .unwrap();
        assert_eq!(meta.creation_timestamp, Some("2026-11-15T09:00:00Z".parse().unwrap()));
        assert_eq!(meta.deletion_timestamp, None);
        let owner = meta.controller().unwrap();
        assert_eq!((owner.group(), &*owner.kind), ("batch", "Job"));
        assert_eq!(meta.owner_references[0].group(), "");
    }

    #[test]
    fn a_moment_that_is_none_is_refused() {
        assert!(serde_json::from_str::<Meta>(r#"{"creationTimestamp": "soon"}"#).is_err());
    }

    #[test]
    fn a_moment_beyond_all_others_is_late_and_no_error() {
        for late in ["9999-12-31T23:59:59Z", "33658-09-27T01:46:40Z"] {
            let meta = format!(r#"{{"deletionTimestamp": "{late}"}}"#);
            let meta: Meta = serde_json::from_str(&meta).unwrap();
            assert!(meta.deletion_timestamp > Some("9999-01-01T00:00:00Z".parse().unwrap()));
        }
    }
}
