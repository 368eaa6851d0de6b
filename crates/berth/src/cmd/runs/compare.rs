//! `berth runs compare`: what differs between runs.

use super::cells::{aligned, cell, plain};
use crate::cmd::tracker::{Tracker, text};
use crate::context::Context;
use crate::fail::Result;
use crate::show::{Look, Page};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;

/// The sections of the first column.
#[derive(Debug, Clone, PartialEq, Serialize)]
struct Difference {
    kind: &'static str,
    key: String,
    /// The values by run; `None` for runs without one.
    values: Vec<Option<String>>,
}

#[derive(Serialize)]
struct Comparison {
    runs: Vec<Named>,
    differences: Vec<Difference>,
}

#[derive(Serialize)]
struct Named {
    run_id: String,
    name: String,
}

pub async fn run(context: &Context, named: &[String], all: bool, team: Option<&str>) -> Result<()> {
    let tracker = Tracker::new(context, team);
    let mut runs = Vec::new();
    for named in named {
        runs.push(tracker.run(named).await?);
    }
    let found = compare(&runs, all, &context.look());
    let ids = |found: &Comparison| found.runs.iter().map(|run| run.run_id.clone()).collect();
    context.show(&Page::new(found, table, ids))
}

/// Tags with the version of the code.
const CODE: [(&str, &str); 6] = [
    ("mlflow.source.git.commit", "commit"),
    ("berth.code", "snapshot"),
    ("berth.code.dirty", "changed"),
    ("mlflow.source.name", "command"),
    ("berth.image", "image"),
    ("mlflow.source.type", "type"),
];
/// Tags to omit: they always differ, or are too long to read.
const LEFT_OUT: [&str; 4] =
    ["mlflow.runName", "mlflow.log-model.history", "mlflow.loggedArtifacts", "berth.leases"];
/// Fields of the runs.
const OF_RUN: [&str; 5] = ["status", "took", "cost", "gpu-hours", "gpu-use"];
/// These tags are already among the fields.
const TOLD: [&str; 3] = ["berth.cost", "berth.gpu_hours", "berth.gpu_use"];

/// Keys and values of one run, in the order of the sections.
fn facts(run: &Value, look: &Look) -> Vec<(&'static str, String, String)> {
    let mut facts = Vec::new();
    for column in OF_RUN {
        facts.push(("run", column.to_owned(), cell(run, column, look)));
    }
    let of = |list: &str| {
        let items = run["data"][list].as_array().into_iter().flatten();
        items.map(|one| (text(&one["key"]), plain(&text(&one["value"])))).collect::<Vec<_>>()
    };
    facts.extend(of("params").into_iter().map(|(key, value)| ("params", key, value)));
    let (mut code, mut tags) = (Vec::new(), Vec::new());
    for (key, value) in of("tags") {
        match CODE.iter().find(|(tag, _)| *tag == key) {
            Some((_, word)) => code.push(("code", (*word).to_owned(), value)),
            None if LEFT_OUT.contains(&key.as_str()) => {}
            None => tags.push(("tags", key, value)),
        }
    }
    facts.extend(code);
    let inputs = run["inputs"]["dataset_inputs"].as_array().into_iter().flatten();
    facts.extend(inputs.map(|input| {
        let dataset = &input["dataset"];
        ("data", text(&dataset["name"]), plain(&text(&dataset["digest"])))
    }));
    facts.extend(tags);
    let metrics = of("metrics").into_iter().filter(|(key, _)| !TOLD.contains(&key.as_str()));
    facts.extend(metrics.map(|(key, value)| ("metrics", key, value)));
    facts
}

const KINDS: [&str; 6] = ["run", "params", "code", "data", "tags", "metrics"];

fn compare(runs: &[Value], all: bool, look: &Look) -> Comparison {
    let mut found: BTreeMap<(usize, String), Vec<Option<String>>> = BTreeMap::new();
    for (nth, run) in runs.iter().enumerate() {
        for (kind, key, value) in facts(run, look) {
            let kind = KINDS.iter().position(|one| *one == kind).unwrap_or(KINDS.len() - 1);
            let values = found.entry((kind, key)).or_insert_with(|| vec![None; runs.len()]);
            values[nth] = Some(value).filter(|value| value != "-");
        }
    }
    let differ = |values: &Vec<Option<String>>| values.windows(2).any(|two| two[0] != two[1]);
    let differences = found
        .into_iter()
        .filter(|(_, values)| values.iter().any(Option::is_some) && (all || differ(values)))
        .map(|((kind, key), values)| Difference { kind: KINDS[kind], key, values })
        .collect();
    let named = |run: &Value| Named {
        run_id: text(&run["info"]["run_id"]),
        name: text(&run["info"]["run_name"]),
    };
    Comparison { runs: runs.iter().map(named).collect(), differences }
}

/// The length of short ids, for runs with the same name.
const SHORT_ID: usize = 8;

fn table(found: &Comparison, _: &Look) -> String {
    if found.differences.is_empty() {
        return "They do not differ.\n".to_owned();
    }
    let mut titles = vec!["WHAT".to_owned(), "KEY".to_owned()];
    titles.extend(found.runs.iter().map(|run| {
        let id: String = run.run_id.chars().take(SHORT_ID).collect();
        let several = found.runs.iter().filter(|other| other.name == run.name).count() > 1;
        let name = plain(&run.name);
        if several || name == "-" { id } else { name }
    }));
    let row = |one: &Difference| {
        let mut row = vec![one.kind.to_owned(), plain(&one.key)];
        row.extend(one.values.iter().map(|value| value.clone().unwrap_or_else(|| "-".to_owned())));
        row
    };
    aligned(&titles, &found.differences.iter().map(row).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn run(name: &str, lr: &str, commit: &str, loss: f64) -> Value {
        json!({
            "info": { "run_id": format!("{name}0123456789"), "run_name": name, "status": "FINISHED" },
            "data": {
                "params": [{ "key": "lr", "value": lr }, { "key": "seed", "value": "1" }],
                "tags": [
                    { "key": "mlflow.source.git.commit", "value": commit },
                    { "key": "mlflow.runName", "value": name },
                ],
                "metrics": [{ "key": "loss", "value": loss }, { "key": "berth.cost", "value": 2.0 }],
            },
            "inputs": { "dataset_inputs": [{ "dataset": { "name": "c4@v3", "digest": lr } }] },
        })
    }

    #[test]
    fn what_differs_is_shown_by_kind_and_what_is_the_same_is_left_out() {
        let runs = [run("one", "0.1", "abc", 0.5), run("two", "0.3", "abc", 0.4)];
        let shown = table(&compare(&runs, false, &Look::fixed()), &Look::fixed());
        assert_eq!(
            shown,
            "WHAT     KEY    one  two\nparams   lr     0.1  0.3\ndata     c4@v3  0.1  0.3\n\
             metrics  loss   0.5  0.4\n"
        );
        let all = compare(&runs, true, &Look::fixed());
        let keys: Vec<&str> = all.differences.iter().map(|one| one.key.as_str()).collect();
        assert_eq!(keys, ["cost", "status", "lr", "seed", "commit", "c4@v3", "loss"]);
    }

    #[test]
    fn runs_that_are_the_same_say_so_and_what_one_lacks_is_a_dash() {
        let one = run("one", "0.1", "abc", 0.5);
        let same = compare(&[one.clone(), one.clone()], false, &Look::fixed());
        assert_eq!(table(&same, &Look::fixed()), "They do not differ.\n");
        let mut bare = one.clone();
        bare["data"]["params"] = json!([]);
        let found = compare(&[one, bare], false, &Look::fixed());
        assert_eq!(found.differences[0].values, [Some("0.1".to_owned()), None]);
        let shown = table(&found, &Look::fixed());
        assert!(shown.starts_with("WHAT    KEY   one01234  one01234\n"), "{shown}");
    }
}
