//! Params of a run that a requeued program resumes. The first value of a param stays, and a new value
//! becomes a tag. An error instead would end a preempted program that logs, for example, the step at
//! which it resumes.

use super::call::Call;
use crate::error::Result;
use crate::limits;
use crate::model::{Run, RunHead};
use crate::ports::{Metric, RunChange};

/// The prefix of tags with newer values of params.
const CHANGED: &str = "berth.changed.";

type Pairs = Vec<(String, String)>;

/// Logs to a run.
pub async fn log(
    call: &Call<'_>,
    run: RunHead,
    metrics: Vec<Metric>,
    mut params: Pairs,
    mut tags: Pairs,
) -> Result<()> {
    if !params.is_empty() && call.actor.resumes(&run.id) {
        let there = call.read_run(&run).await?;
        let newer;
        (params, newer) = split(&there, params);
        tags.extend(newer);
        if metrics.is_empty() && params.is_empty() && tags.is_empty() {
            return Ok(());
        }
    }
    call.store.write(RunChange::Log { run, metrics, params, tags }).await
}

/// The new params, and tags for params whose value has changed.
fn split(run: &Run, params: Pairs) -> (Pairs, Pairs) {
    let (mut new, mut changed) = (Vec::new(), Vec::new());
    for (key, value) in params {
        match run.params.iter().find(|(old, _)| *old == key) {
            None => new.push((key, value)),
            Some((_, old)) if is_same(old, &value) => {}
            Some(_) => {
                let tag = format!("{CHANGED}{key}");
                if limits::length("key", &tag, limits::KEY).is_ok() {
                    changed.push((tag, limits::cut(value, limits::TAG_VALUE)));
                }
            }
        }
    }
    (new, changed)
}

/// Compares as text and as number: a sweep may have `1e-4` and the script log `0.0001`.
fn is_same(old: &str, new: &str) -> bool {
    let number = |text: &str| text.parse::<f64>().ok().filter(|number| number.is_finite());
    old == new || number(old).zip(number(new)).is_some_and(|(a, b)| a.total_cmp(&b).is_eq())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_value_of_a_param_stays_and_another_one_becomes_a_tag() {
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let run = Run {
            no: 1,
            id: "r".to_owned(),
            experiment: 1,
            name: String::new(),
            user: String::new(),
            status: String::new(),
            start: None,
            end: None,
            deleted: false,
            metrics: Vec::new(),
            params: vec![pair("lr", "1e-4"), pair("host", "n1"), pair("a", "A")],
            tags: Vec::new(),
            datasets: Vec::new(),
            models: Vec::new(),
        };
        let again = vec![
            pair("lr", "0.0001"),
            pair("host", "n2"),
            pair("a", "a"),
            pair("seed", "3"),
            pair(&"k".repeat(250), "v"),
        ];
        let (new, changed) = split(&run, again);
        assert_eq!(new, [pair("seed", "3"), pair(&"k".repeat(250), "v")]);
        assert_eq!(changed, [pair("berth.changed.host", "n2"), pair("berth.changed.a", "a")]);
        assert!(!is_same("nan", "NaN") && is_same("8", "8.0"));
    }
}
