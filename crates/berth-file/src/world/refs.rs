//! Jobs named by others: by name where that is clear, else by id.

use crate::error::{Error, Result, did_you_mean};
use crate::fields::{Fields, text};
use crate::out::{Out, Record};
use crate::tree::{Node, Value};
use berth_model::{JobId, JobRef, Name};
use std::collections::BTreeMap;

/// The jobs of a world by name.
#[derive(Debug, Clone, Default)]
pub struct JobNames(BTreeMap<Name, Vec<JobId>>);

impl JobNames {
    pub fn add(&mut self, name: &Name, id: JobId) {
        let ids = self.0.entry(name.clone()).or_default();
        if ids.last() != Some(&id) {
            ids.push(id);
        }
    }

    /// The one job of that name, or the array where several elements have it.
    fn by_name(&self, name: &str) -> Option<JobId> {
        let ids = self.0.get(name)?;
        match ids.as_slice() {
            [id] => Some(*id),
            [first, rest @ ..] if rest.iter().all(|id| id.number == first.number) => {
                Some(first.array())
            }
            _ => None,
        }
    }

    /// A job by its name, or by its name and element as in `sweep_3`.
    fn lookup(&self, name: &str) -> Option<JobId> {
        self.by_name(name).or_else(|| {
            let (array, element) = name.rsplit_once('_')?;
            Some(self.by_name(array)?.array().element(element.parse().ok()?))
        })
    }

    /// What to call a job: its name, with the element of an array, and with its id where others
    /// have the same name.
    pub fn label(&self, name: &str, id: JobId) -> String {
        let alone =
            self.0.get(name).is_none_or(|ids| ids.iter().all(|other| other.number == id.number));
        match (alone, id.element) {
            (true, None) => name.to_owned(),
            (true, Some(element)) => format!("{name}_{element}"),
            (false, _) => format!("{name}#{id}"),
        }
    }

    /// The job of that name or id.
    pub fn named(&self, text: &str) -> Option<JobId> {
        self.lookup(text).or_else(|| text.rsplit('#').next()?.parse().ok())
    }

    /// The job a scalar or `{id: 17_3}` names.
    pub(crate) fn find(&self, node: &Node) -> Result<JobId> {
        if let Some(id) = by_id(node)? {
            return Ok(id);
        }
        let found = text(node, "the name or id of a job")?;
        self.lookup(found).ok_or_else(|| {
            let message = match self.0.contains_key(found) {
                true => format!("several jobs are called `{found}`: name one by its id"),
                false => format!(
                    "there is no job `{found}`{}",
                    did_you_mean(found, self.0.keys().map(Name::as_str))
                ),
            };
            Error::new(node.at, message)
        })
    }

    pub(crate) fn write(&self, id: JobId) -> Out {
        let named = self.0.iter().find(|(_, ids)| ids.contains(&id)).map(|(name, _)| name);
        match named {
            // The name of an array's only element stands for the whole array.
            Some(name) if id.element.is_none() && self.by_name(name) == Some(id) => Out::text(name),
            _ => write_id(id),
        }
    }
}

/// An unquoted number, or a map with an id.
fn by_id(node: &Node) -> Result<Option<JobId>> {
    match &node.value {
        Value::Scalar { text, plain: true } => Ok(text.parse().ok()),
        Value::Map(_) => {
            let fields = Fields::of(node, "a job", &["id"])?;
            fields.demand("id", read_id).map(Some)
        }
        Value::Scalar { .. } | Value::Null | Value::List(_) => Ok(None),
    }
}

pub(crate) fn read_id(node: &Node) -> Result<JobId> {
    let expected = "a job id such as 17 or 17_3";
    text(node, expected)?.parse().map_err(|_| Error::expected(node.at, &node.found(), expected))
}

/// An element's id reads as text in JSON, where only a map tells it from a name.
fn write_id(id: JobId) -> Out {
    match id.element {
        None => Out::raw(id),
        Some(_) => {
            let mut out = Record::default();
            out.put("id", Out::raw(id));
            out.done()
        }
    }
}

/// A dependency keeps its name: the job may not be there yet.
pub(crate) fn read_ref(node: &Node) -> Result<JobRef> {
    match by_id(node)? {
        Some(id) => Ok(JobRef::Id(id)),
        None => text(node, "the name or id of a job").map(|name| JobRef::Name(Name::new(name))),
    }
}

pub(crate) fn write_ref(job: &JobRef) -> Out {
    match job {
        JobRef::Id(id) => write_id(*id),
        JobRef::Name(name) => Out::text(name),
    }
}
