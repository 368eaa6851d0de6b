//! Moments and job numbers on the wire.

use berth_model::{JobId, Time};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;
use utoipa::openapi::schema::{KnownFormat, ObjectBuilder, Schema, SchemaFormat, Type};
use utoipa::openapi::{Object, RefOr};
use utoipa::{PartialSchema, ToSchema};

/// A moment: RFC 3339 in UTC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct At(pub Time);

impl From<Time> for At {
    fn from(time: Time) -> At {
        At(time)
    }
}

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for At {
    type Err = berth_model::ParseUnit;
    fn from_str(text: &str) -> Result<At, Self::Err> {
        text.parse().map(At)
    }
}

impl PartialSchema for At {
    fn schema() -> RefOr<Schema> {
        let format = SchemaFormat::KnownFormat(KnownFormat::DateTime);
        text("A moment in UTC", "2026-11-15T09:00:00Z").format(Some(format)).into()
    }
}

impl ToSchema for At {
    fn name() -> Cow<'static, str> {
        "Time".into()
    }
}

/// The number of a job, or of one element of an array: always text, so that clients need not
/// tell `17` from `"17_3"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Id(pub JobId);

impl From<JobId> for Id {
    fn from(id: JobId) -> Id {
        Id(id)
    }
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl FromStr for Id {
    type Err = std::num::ParseIntError;
    fn from_str(text: &str) -> Result<Id, Self::Err> {
        text.parse().map(Id)
    }
}

impl Serialize for Id {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Id {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Id, D::Error> {
        JobId::deserialize(deserializer).map(Id)
    }
}

impl PartialSchema for Id {
    fn schema() -> RefOr<Schema> {
        let about = "The number of a job, with that of its element in an array";
        text(about, "17_3").pattern(Some("^[0-9]+(_[0-9]+)?$")).into()
    }
}

impl ToSchema for Id {
    fn name() -> Cow<'static, str> {
        "JobId".into()
    }
}

fn text(about: &str, example: &str) -> ObjectBuilder {
    let object: ObjectBuilder = Object::builder();
    object.schema_type(Type::String).description(Some(about)).examples([example])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn moments_and_numbers_are_text_on_the_wire() {
        let at = At("2026-11-15T10:00:00+01:00".parse().unwrap());
        assert_eq!(serde_json::to_string(&at).unwrap(), "\"2026-11-15T09:00:00Z\"");
        let id = Id(JobId::new(17).element(3));
        assert_eq!(serde_json::to_string(&id).unwrap(), "\"17_3\"");
        assert_eq!(serde_json::to_string(&Id(JobId::new(17))).unwrap(), "\"17\"");
        assert_eq!(serde_json::from_str::<Id>("17").unwrap(), Id(JobId::new(17)));
        assert_eq!(serde_json::from_str::<Id>("\"17_3\"").unwrap(), id);
    }
}
