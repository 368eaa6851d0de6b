//! One device of a slice.

use crate::object::{List, Map, Raw, Text};
use crate::quantity::Quantity;
use serde::Deserialize;
use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

/// A device, with what selectors can ask about. Names without a domain have that of the driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Device {
    pub id: DeviceId,
    attributes: BTreeMap<(String, String), Value>,
    capacity: BTreeMap<(String, String), Quantity>,
    /// What it takes of what devices of its pool have in common: two that name the same set may
    /// exclude each other.
    pub counters: BTreeSet<Text>,
    /// It is not to be given to anybody new.
    pub is_tainted: bool,
}

/// Which device, in the whole cluster.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Default, Deserialize)]
#[serde(default)]
pub struct DeviceId {
    pub driver: Text,
    pub pool: Text,
    pub device: Text,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Value {
    Text(String),
    Int(i64),
    Bool(bool),
    Quantity(Quantity),
    Version(Vec<u64>, String),
}

impl Value {
    /// A version such as `580.65.6`; one with a suffix comes before the one without.
    pub fn version(text: &str) -> Option<Value> {
        let (numbers, suffix) = text.split_once('-').unwrap_or((text, ""));
        let numbers: Result<Vec<u64>, _> = numbers.split('.').map(str::parse).collect();
        Some(Value::Version(numbers.ok().filter(|all| all.len() == 3)?, suffix.to_owned()))
    }

    pub fn order(&self, other: &Value) -> Option<Ordering> {
        match (self, other) {
            (Value::Text(left), Value::Text(right)) => Some(left.cmp(right)),
            (Value::Int(left), Value::Int(right)) => Some(left.cmp(right)),
            (Value::Quantity(left), Value::Quantity(right)) => Some(left.cmp(right)),
            (Value::Version(left, early), Value::Version(right, later)) => {
                let released = early.is_empty().cmp(&later.is_empty());
                Some(left.cmp(right).then(released).then(early.cmp(later)))
            }
            _ => None,
        }
    }
}

impl Device {
    /// What lies at a path such as `attributes`, domain, name.
    pub(super) fn look(&self, path: &[String]) -> Option<Value> {
        match path {
            [field] if field == "driver" => Some(Value::Text(self.id.driver.to_string())),
            [field, domain, name] => {
                let key = (domain.clone(), name.clone());
                match field.as_str() {
                    "attributes" => self.attributes.get(&key).cloned(),
                    _ => self.capacity.get(&key).copied().map(Value::Quantity),
                }
            }
            _ => None,
        }
    }

    pub fn text(&self, name: &str) -> Option<&str> {
        match self.attributes.get(&(self.id.driver.to_string(), name.to_owned()))? {
            Value::Text(text) => Some(text),
            _ => None,
        }
    }

    pub fn amount(&self, name: &str) -> Option<Quantity> {
        self.capacity.get(&(self.id.driver.to_string(), name.to_owned())).copied()
    }
}

/// A device as a slice has it.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Written {
    pub name: Text,
    attributes: Map<Attribute>,
    capacity: Map<Capacity>,
    consumes_counters: List<Counters>,
    taints: List<Taint>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
struct Attribute {
    string: Option<String>,
    int: Option<i64>,
    bool: Option<bool>,
    version: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
struct Capacity {
    value: Raw,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Counters {
    counter_set: Text,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(default)]
struct Taint {
    effect: Text,
}

impl Written {
    pub fn device(&self, driver: &str, pool: &str) -> Device {
        let key = |name: &str| match name.split_once('/') {
            Some((domain, name)) => (domain.to_owned(), name.to_owned()),
            None => (driver.to_owned(), name.to_owned()),
        };
        let attributes = self.attributes.iter().filter_map(|(name, attribute)| {
            let Attribute { string, int, bool, version } = attribute.clone();
            let value = string.map(Value::Text).or_else(|| int.map(Value::Int));
            let value = value.or_else(|| bool.map(Value::Bool));
            let value = value.or_else(|| version.and_then(|text| Value::version(&text)))?;
            Some((key(name), value))
        });
        let capacity = self.capacity.iter().filter_map(|(name, capacity)| {
            Some((key(name), capacity.value.as_str().parse().ok()?))
        });
        Device {
            id: DeviceId { driver: driver.into(), pool: pool.into(), device: self.name.clone() },
            attributes: attributes.collect(),
            capacity: capacity.collect(),
            counters: self.consumes_counters.iter().map(|one| one.counter_set.clone()).collect(),
            is_tainted: self.taints.iter().any(|taint| &*taint.effect != "None"),
        }
    }
}
