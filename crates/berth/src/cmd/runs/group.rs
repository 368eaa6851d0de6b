//! Groups runs by the value of a key, one line per group.

use super::cells::{aligned, cell, cost, gpu_ms};
use crate::cmd::tracker::text;
use crate::context::Context;
use crate::fail::Result;
use crate::show::{Look, Page, words};
use serde::Serialize;
use serde_json::Value;

#[derive(Serialize)]
struct Group {
    value: String,
    runs: usize,
    cost_micros: i64,
    gpu_ms: i64,
    /// The first run in the requested order, and its values.
    #[serde(skip_serializing_if = "Option::is_none")]
    best: Option<String>,
    best_run: String,
}

#[derive(Serialize)]
#[serde(transparent)]
struct Groups {
    groups: Vec<Group>,
    #[serde(skip)]
    key: String,
    #[serde(skip)]
    order: Option<String>,
}

pub fn show(context: &Context, runs: &[Value], key: &str, order: Option<&str>) -> Result<()> {
    let groups = groups(runs, key, order, &context.look());
    let values = |all: &Groups| all.groups.iter().map(|group| group.value.clone()).collect();
    let all = Groups { groups, key: key.to_owned(), order: order.map(str::to_owned) };
    context.show(&Page::new(all, table, values))
}

/// Groups are in the order of their first runs.
fn groups(runs: &[Value], key: &str, order: Option<&str>, look: &Look) -> Vec<Group> {
    let mut groups: Vec<Group> = Vec::new();
    for run in runs {
        let value = cell(run, key, look);
        let at = groups.iter().position(|group| group.value == value).unwrap_or_else(|| {
            groups.push(Group {
                value,
                runs: 0,
                cost_micros: 0,
                gpu_ms: 0,
                best: order.map(|order| cell(run, order, look)),
                best_run: text(&run["info"]["run_id"]),
            });
            groups.len() - 1
        });
        let group = &mut groups[at];
        group.runs += 1;
        group.cost_micros += cost(run).unwrap_or(0);
        group.gpu_ms += gpu_ms(run).unwrap_or(0);
    }
    groups
}

fn table(all: &Groups, _: &Look) -> String {
    if all.groups.is_empty() {
        return "No runs.\n".to_owned();
    }
    let mut titles = vec![all.key.to_uppercase(), "RUNS".into(), "COST".into(), "GPU-HOURS".into()];
    if let Some(order) = &all.order {
        titles.extend([format!("BEST {}", order.to_uppercase()), "RUN_ID".into()]);
    }
    let row = |group: &Group| {
        let mut row = vec![
            group.value.clone(),
            group.runs.to_string(),
            words::money(group.cost_micros),
            words::gpu_hours(group.gpu_ms),
        ];
        if let Some(best) = &group.best {
            row.extend([best.clone(), group.best_run.clone()]);
        }
        row
    };
    aligned(&titles, &all.groups.iter().map(row).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_line_sums_the_runs_of_a_value_and_names_the_first_of_them() {
        let run = |id: &str, lr: &str, loss: f64| {
            json!({
                "info": { "run_id": id },
                "data": {
                    "params": [{ "key": "lr", "value": lr }],
                    "metrics": [
                        { "key": "loss", "value": loss },
                        { "key": "berth.cost", "value": 2.0 },
                        { "key": "berth.gpu_hours", "value": 1.0 },
                    ],
                },
            })
        };
        let runs = [run("a", "0.1", 0.2), run("b", "0.3", 0.4), run("c", "0.1", 0.5)];
        let found = groups(&runs, "params.lr", Some("metrics.loss"), &Look::fixed());
        let shown: Vec<(&str, usize, i64, &str)> = found
            .iter()
            .map(|group| (&*group.value, group.runs, group.cost_micros, &*group.best_run))
            .collect();
        assert_eq!(shown, [("0.1", 2, 4_000_000, "a"), ("0.3", 1, 2_000_000, "b")]);
        assert_eq!(found[0].best.as_deref(), Some("0.2"));
    }
}
