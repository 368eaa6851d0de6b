//! `berth runs show`: one run in full.

use super::cells::{cell, plain};
use crate::cmd::tracker::{Tracker, text};
use crate::context::Context;
use crate::fail::Result;
use crate::show::{Look, Page};
use serde_json::Value;
use std::fmt::Write;

pub async fn run(context: &Context, named: &str, team: Option<&str>) -> Result<()> {
    let run = Tracker::new(context, team).run(named).await?;
    context.show(&Page::new(run, whole, |run| vec![text(&run["info"]["run_id"])]))
}

const FACTS: [(&str, &str); 11] = [
    ("experiment", "experiment"),
    ("user", "user"),
    ("job", "job"),
    ("project", "project"),
    ("start", "start"),
    ("end", "end"),
    ("took", "took"),
    ("gpus", "gpus"),
    ("gpu-hours", "gpu-hours"),
    ("cost", "cost"),
    ("artifacts", "artifact_uri"),
];

fn whole(run: &Value, look: &Look) -> String {
    let info = &run["info"];
    let of = |key: &str| plain(&text(&info[key]));
    let mut out = format!("{} {}   {}\n", of("run_id"), of("run_name"), of("status"));
    for (label, column) in FACTS {
        let value = cell(run, column, look);
        if value != "-" {
            let _ = writeln!(out, " {label:<11} {value}");
        }
    }
    for (title, list) in [("Params", "params"), ("Metrics", "metrics"), ("Tags", "tags")] {
        section(&mut out, title, pairs(run, list));
    }
    section(&mut out, "Data", data(run));
    section(&mut out, "Models", models(run));
    out
}

fn section(out: &mut String, title: &str, rows: Vec<(String, String)>) {
    if rows.is_empty() {
        return;
    }
    let _ = write!(out, "\n{title}\n");
    let width = rows.iter().map(|(key, _)| key.chars().count()).max().unwrap_or(0);
    for (key, value) in rows {
        let _ = writeln!(out, "  {key:width$}  {value}");
    }
}

fn pairs(run: &Value, list: &str) -> Vec<(String, String)> {
    let items = run["data"][list].as_array().into_iter().flatten();
    let pair = |one: &Value| {
        let step = one["step"].as_i64().filter(|step| *step != 0);
        let step = step.map(|step| format!("  (step {step})")).unwrap_or_default();
        (plain(&text(&one["key"])), format!("{}{step}", plain(&text(&one["value"]))))
    };
    items.map(pair).collect()
}

fn data(run: &Value) -> Vec<(String, String)> {
    let inputs = run["inputs"]["dataset_inputs"].as_array().into_iter().flatten();
    let row = |input: &Value| {
        let dataset = &input["dataset"];
        let context = input["tags"].as_array().into_iter().flatten();
        let context = context.filter(|tag| tag["key"] == "mlflow.data.context");
        let context = context.map(|tag| format!("  ({})", text(&tag["value"]))).next();
        let digest = format!("{}{}", text(&dataset["digest"]), context.unwrap_or_default());
        (plain(&text(&dataset["name"])), plain(&digest))
    };
    inputs.map(row).collect()
}

fn models(run: &Value) -> Vec<(String, String)> {
    let of = |way: &str, list: &str, word: &str| {
        let all = run[way][list].as_array().into_iter().flatten();
        all.map(|one| (plain(&text(&one["model_id"])), word.to_owned())).collect::<Vec<_>>()
    };
    [of("inputs", "model_inputs", "read"), of("outputs", "model_outputs", "made")].concat()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_run_is_shown_with_what_it_was_given_logged_and_read() {
        let run = json!({
            "info": { "run_id": "r1", "run_name": "first", "status": "FINISHED", "user_id": "ada" },
            "data": {
                "params": [{ "key": "lr", "value": "0.1" }],
                "metrics": [
                    { "key": "loss", "value": 0.25, "step": 40 },
                    { "key": "berth.cost", "value": 3.0, "step": 0 },
                ],
                "tags": [{ "key": "note", "value": "two\nlines" }],
            },
            "inputs": { "dataset_inputs": [{
                "dataset": { "name": "c4@v3", "digest": "abc" },
                "tags": [{ "key": "mlflow.data.context", "value": "data" }],
            }] },
        });
        let shown = whole(&run, &Look::fixed());
        assert_eq!(
            shown,
            "r1 first   FINISHED\n user        ada\n cost        $3.00\n\nParams\n  lr  0.1\n\n\
             Metrics\n  loss        0.25  (step 40)\n  berth.cost  3.0\n\nTags\n  note  two lines\n\n\
             Data\n  c4@v3  abc  (data)\n"
        );
    }
}
