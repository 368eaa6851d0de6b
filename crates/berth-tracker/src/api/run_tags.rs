//! Tags of runs. One of them is the run's name.

use crate::error::Result;
use crate::limits;

pub const NAME_TAG: &str = "mlflow.runName";

/// Tags of a run. For a duplicate key, the last value counts.
pub fn run_tags(pairs: Vec<(String, String)>) -> Result<Vec<(String, String)>> {
    let mut tags: Vec<(String, String)> = Vec::with_capacity(pairs.len());
    for (index, (key, value)) in pairs.into_iter().enumerate() {
        limits::name(&key, || format!("tags[{index}].key"))?;
        limits::length("key", &key, limits::KEY)?;
        limits::no_zero("value", &value)?;
        let most = if key == NAME_TAG { limits::RUN_NAME } else { limits::TAG_VALUE };
        let value = limits::cut(value, most);
        match tags.iter_mut().find(|(there, _)| *there == key) {
            Some((_, there)) => *there = value,
            None => tags.push((key, value)),
        }
    }
    Ok(tags)
}
