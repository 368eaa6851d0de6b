//! Ids. Jobs are numbered by the store; every other id is a name or follows from a job's number,
//! so that pure crates never mint one.

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::fmt;
use std::ops::Deref;
use std::str::FromStr;
use std::sync::Arc;

/// A name of a node, queue, user or model: compared as text, cheap to clone.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Arc<str>);

impl Name {
    pub fn new(text: &str) -> Name {
        Name(Arc::from(text))
    }
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl Default for Name {
    fn default() -> Name {
        Name::new("")
    }
}

impl Deref for Name {
    type Target = str;
    fn deref(&self) -> &str {
        &self.0
    }
}

impl std::borrow::Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl From<&str> for Name {
    fn from(text: &str) -> Name {
        Name::new(text)
    }
}

impl From<String> for Name {
    fn from(text: String) -> Name {
        Name(Arc::from(text))
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Name, D::Error> {
        Ok(Name::from(String::deserialize(deserializer)?))
    }
}

/// A job, or one element of an array job: `17`, or `17_3` as Slurm writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId {
    pub number: u64,
    pub element: Option<u32>,
}

impl JobId {
    pub const fn new(number: u64) -> JobId {
        JobId { number, element: None }
    }
    pub const fn element(self, element: u32) -> JobId {
        JobId { number: self.number, element: Some(element) }
    }
    /// The array this element belongs to; a plain job is its own.
    pub const fn array(self) -> JobId {
        JobId::new(self.number)
    }
}

impl fmt::Display for JobId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.element {
            None => write!(f, "{}", self.number),
            Some(element) => write!(f, "{}_{element}", self.number),
        }
    }
}

impl FromStr for JobId {
    type Err = std::num::ParseIntError;
    fn from_str(text: &str) -> Result<JobId, Self::Err> {
        match text.split_once('_') {
            None => Ok(JobId::new(text.parse()?)),
            Some((number, element)) => Ok(JobId::new(number.parse()?).element(element.parse()?)),
        }
    }
}

impl Serialize for JobId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self.element {
            None => serializer.serialize_u64(self.number),
            Some(_) => serializer.collect_str(self),
        }
    }
}

impl<'de> Deserialize<'de> for JobId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<JobId, D::Error> {
        struct Id;
        impl serde::de::Visitor<'_> for Id {
            type Value = JobId;
            fn expecting(&self, f: &mut fmt::Formatter) -> fmt::Result {
                f.write_str("a job id such as 17 or 17_3")
            }
            fn visit_u64<E: serde::de::Error>(self, n: u64) -> Result<JobId, E> {
                Ok(JobId::new(n))
            }
            fn visit_i64<E: serde::de::Error>(self, n: i64) -> Result<JobId, E> {
                u64::try_from(n).map(JobId::new).map_err(|_| E::custom("a job id is not negative"))
            }
            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<JobId, E> {
                text.parse().map_err(|_| E::custom("a job id is a number such as 17 or 17_3"))
            }
        }
        deserializer.deserialize_any(Id)
    }
}

/// One task of a job: its number counts through all leaf groups in the order of the spec.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct TaskId {
    pub job: JobId,
    pub task: u32,
}

/// One holding of GPUs by a task: the task and how often it had been started before.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LeaseId {
    pub job: JobId,
    pub task: u32,
    pub attempt: u32,
}

impl LeaseId {
    pub const fn task_id(self) -> TaskId {
        TaskId { job: self.job, task: self.task }
    }
}

impl fmt::Display for LeaseId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}#{}", self.job, self.task, self.attempt)
    }
}
