//! The common model of both sides.

use futures_util::stream::BoxStream;
use std::io;

pub type Pairs = Vec<(String, String)>;

/// The owner of files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owner {
    Run(String),
    Model(String),
}

/// The location of files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    pub uri: String,
    pub owner: Owner,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Experiment {
    pub id: String,
    pub name: String,
    pub deleted: bool,
    pub created: Option<i64>,
    pub tags: Pairs,
    /// The location of its files, or its folder.
    pub location: String,
}

/// A run with everything but its points and files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Run {
    pub id: String,
    pub experiment: String,
    pub name: String,
    pub user: String,
    /// `RUNNING` and so on.
    pub status: String,
    pub start: Option<i64>,
    pub end: Option<i64>,
    pub deleted: bool,
    pub params: Pairs,
    pub tags: Pairs,
    /// Names of metrics.
    pub metrics: Vec<String>,
    pub datasets: Vec<Dataset>,
    /// Logged models that it reads.
    pub reads: Vec<String>,
    /// Logged models that it creates, with the step.
    pub makes: Vec<(String, i64)>,
    pub place: Place,
}

impl Run {
    pub fn is_over(&self) -> bool {
        matches!(self.status.as_str(), "FINISHED" | "FAILED" | "KILLED")
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Dataset {
    pub name: String,
    pub digest: String,
    pub source_type: String,
    pub source: String,
    pub schema: Option<String>,
    pub profile: Option<String>,
    pub tags: Pairs,
}

/// One value of a metric. Like the servers, it stores the largest number instead of infinity, and zero
/// instead of negative zero, so that equal points compare as equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Point {
    pub step: i64,
    pub timestamp: i64,
    bits: u64,
}

impl Point {
    pub fn new(step: i64, timestamp: i64, value: f64) -> Point {
        let bits = match value.is_nan() {
            true => f64::NAN.to_bits(),
            false => (value.clamp(f64::MIN, f64::MAX) + 0.0).to_bits(),
        };
        Point { step, timestamp, bits }
    }

    pub fn value(&self) -> f64 {
        f64::from_bits(self.bits)
    }

    pub fn bytes(&self) -> [u8; 24] {
        let mut bytes = [0; 24];
        bytes[..8].copy_from_slice(&self.step.to_be_bytes());
        bytes[8..16].copy_from_slice(&self.timestamp.to_be_bytes());
        bytes[16..].copy_from_slice(&self.bits.to_be_bytes());
        bytes
    }
}

/// A point with its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Metric {
    pub key: String,
    pub point: Point,
}

/// A metric of a logged model.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelMetric {
    pub key: String,
    pub point: Point,
    pub run: String,
    pub dataset_name: String,
    pub dataset_digest: String,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LoggedModel {
    pub id: String,
    pub experiment: String,
    pub name: String,
    pub model_type: String,
    pub run: Option<String>,
    /// `PENDING`, `READY` or `FAILED`.
    pub status: String,
    pub created: Option<i64>,
    pub tags: Pairs,
    pub params: Pairs,
    pub metrics: Vec<ModelMetric>,
    pub place: Place,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RegisteredModel {
    pub name: String,
    pub description: String,
    pub created: Option<i64>,
    pub tags: Pairs,
    pub aliases: Vec<(String, u64)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Version {
    pub version: u64,
    pub description: String,
    pub stage: String,
    pub source: String,
    pub run: Option<String>,
    pub run_link: Option<String>,
    pub model: Option<String>,
    pub user: Option<String>,
    pub created: Option<i64>,
    pub tags: Pairs,
}

/// A file of an owner.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct FileInfo {
    pub path: String,
    pub bytes: u64,
}

/// The streamed bytes of a file.
pub struct Content {
    pub bytes: Option<u64>,
    pub pieces: BoxStream<'static, io::Result<Vec<u8>>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn points_are_equal_where_a_server_keeps_them_as_one() {
        let point = |value| Point::new(1, 2, value);
        assert_eq!(point(f64::INFINITY), point(f64::MAX));
        assert_eq!(point(f64::NEG_INFINITY), point(f64::MIN));
        assert_eq!(point(-0.0), point(0.0));
        assert_eq!(point(f64::NAN), point(-f64::NAN));
        assert_ne!(point(0.1), point(0.1 + f64::EPSILON));
        assert_eq!(point(0.3).value().to_bits(), 0.3_f64.to_bits());
    }
}
