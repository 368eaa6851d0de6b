//! The searchable fields of each kind of entity, and their comparators.

use super::Op;
use crate::error::{Error, Result};

/// A kind of entity that a search returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entity {
    Run,
    Experiment,
    RegisteredModel,
    ModelVersion,
    LoggedModel,
}

/// The type of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    Metric,
    Param,
    Tag,
    /// An attribute that is a text.
    Text,
    /// An attribute that is a number.
    Number,
    Dataset,
}

/// The field of a comparison or of `order_by`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Field {
    pub kind: Kind,
    pub key: String,
}

const NUMERIC: &[Op] = &[Op::Eq, Op::Ne, Op::Gt, Op::Ge, Op::Lt, Op::Le];
const TEXT: &[Op] = &[Op::Eq, Op::Ne, Op::Like, Op::ILike];
const TEXT_IN: &[Op] = &[Op::Eq, Op::Ne, Op::Like, Op::ILike, Op::In, Op::NotIn];
const TEXT_NULL: &[Op] = &[Op::Eq, Op::Ne, Op::Like, Op::ILike, Op::IsNull, Op::IsNotNull];
const IDS: &[Op] = &[Op::Eq, Op::Ne, Op::In, Op::NotIn];

impl Entity {
    /// Resolves a name and the word before its dot to a field.
    pub fn field(self, kind: Option<&str>, key: &str) -> Result<Field> {
        let field = |kind, key: &str| Ok(Field { kind, key: key.to_owned() });
        let Some(word) = kind else { return self.attribute(key) };
        let lower = word.to_lowercase();
        match (self, lower.as_str()) {
            (Entity::LoggedModel, "attributes") => self.attribute(key),
            (Entity::LoggedModel, "metrics") => field(Kind::Metric, key),
            (Entity::LoggedModel, "params") => field(Kind::Param, key),
            (Entity::LoggedModel, "tags") => field(Kind::Tag, key),
            (Entity::LoggedModel, _) => self.no_such_kind(word),
            (_, "attribute" | "attributes" | "attr" | "run") => self.attribute(key),
            (_, "tag" | "tags") => field(Kind::Tag, key),
            (Entity::Run, "metric" | "metrics") => field(Kind::Metric, key),
            (Entity::Run, "param" | "params" | "parameter" | "parameters") => {
                field(Kind::Param, key)
            }
            (Entity::Run, "dataset" | "datasets") => match key {
                "name" | "digest" | "context" => field(Kind::Dataset, key),
                _ => Err(Error::invalid(format!(
                    "Invalid dataset key '{key}' specified. Valid keys are 'name', 'digest', \
                     'context'"
                ))),
            },
            _ => self.no_such_kind(word),
        }
    }

    fn no_such_kind(self, word: &str) -> Result<Field> {
        let valid = match self {
            Entity::Run => "'metrics', 'params', 'tags', 'attributes', 'datasets'",
            Entity::LoggedModel => "'attributes', 'metrics', 'params', 'tags'",
            Entity::Experiment | Entity::RegisteredModel | Entity::ModelVersion => {
                "'attribute', 'tag', 'tags'"
            }
        };
        Err(Error::invalid(format!("Invalid entity type '{word}'. Valid entity types are {valid}")))
    }

    fn attribute(self, key: &str) -> Result<Field> {
        let known = self.attributes().iter().find(|(names, _)| names.contains(&key));
        if let Some((names, kind)) = known {
            return Ok(Field { kind: *kind, key: names[0].to_owned() });
        }
        let valid: Vec<String> =
            self.attributes().iter().map(|(names, _)| format!("'{}'", names[0])).collect();
        Err(Error::invalid(format!(
            "Invalid attribute key '{key}' specified. Valid keys are {}",
            valid.join(", ")
        )))
    }

    /// The names of each attribute. The first is the canonical one.
    fn attributes(self) -> &'static [(&'static [&'static str], Kind)] {
        match self {
            Entity::Run => &[
                (&["run_id", "run_uuid"], Kind::Text),
                (&["run_name", "run name", "Run name", "Run Name"], Kind::Text),
                (&["user_id", "User", "user"], Kind::Text),
                (&["status"], Kind::Text),
                (&["artifact_uri"], Kind::Text),
                (&["start_time", "created", "Created"], Kind::Number),
                (&["end_time"], Kind::Number),
            ],
            Entity::Experiment => &[
                (&["name"], Kind::Text),
                (&["experiment_id"], Kind::Text),
                (&["creation_time"], Kind::Number),
                (&["last_update_time"], Kind::Number),
            ],
            Entity::RegisteredModel => {
                &[(&["name"], Kind::Text), (&["timestamp", "last_updated_timestamp"], Kind::Number)]
            }
            Entity::ModelVersion => &[
                (&["name"], Kind::Text),
                (&["run_id"], Kind::Text),
                (&["source_path"], Kind::Text),
                (&["version_number"], Kind::Number),
                (&["creation_timestamp"], Kind::Number),
                (&["last_updated_timestamp"], Kind::Number),
            ],
            Entity::LoggedModel => &[
                (&["name"], Kind::Text),
                (&["model_id"], Kind::Text),
                (&["model_type"], Kind::Text),
                (&["status"], Kind::Text),
                (&["source_run_id"], Kind::Text),
                (&["creation_timestamp", "creation_time", "creation_timestamp_ms"], Kind::Number),
                (
                    &["last_updated_timestamp", "last_updated_time", "last_updated_timestamp_ms"],
                    Kind::Number,
                ),
            ],
        }
    }

    /// The comparators that a field accepts in a filter.
    pub fn ops(self, field: &Field) -> &'static [Op] {
        match (self, field.kind) {
            (_, Kind::Metric) => NUMERIC,
            (Entity::RegisteredModel, Kind::Number) => &[],
            (Entity::ModelVersion, Kind::Number) if field.key != "version_number" => &[],
            (_, Kind::Number) => NUMERIC,
            (Entity::Run | Entity::Experiment, Kind::Tag) | (Entity::Run, Kind::Param) => TEXT_NULL,
            (Entity::LoggedModel, Kind::Param | Kind::Tag | Kind::Text) => TEXT_IN,
            (_, Kind::Param | Kind::Tag) => TEXT,
            (_, Kind::Dataset) => TEXT_IN,
            (Entity::Run, Kind::Text) if field.key != "run_id" => TEXT,
            (Entity::Run, Kind::Text) | (Entity::RegisteredModel, Kind::Text) => TEXT_IN,
            (Entity::Experiment, Kind::Text) if field.key == "experiment_id" => IDS,
            (Entity::Experiment, Kind::Text) => TEXT,
            (Entity::ModelVersion, Kind::Text) if field.key == "source_path" => TEXT,
            (Entity::ModelVersion, Kind::Text) => TEXT_IN,
        }
    }
}
