//! The cells of a run.

use super::short;
use crate::cmd::tracker::{text, time};
use crate::show::{Look, words};
use serde_json::Value;

/// The value under a key of a list such as `params`.
pub fn of<'a>(run: &'a Value, list: &str, key: &str) -> Option<&'a Value> {
    let items = run["data"][list].as_array()?;
    items.iter().find(|one| one["key"] == key).map(|one| &one["value"])
}

/// The newest value of a metric, if it is a number.
pub fn metric(run: &Value, key: &str) -> Option<f64> {
    of(run, "metrics", key)?.as_f64()
}

/// The cost of its job, in millionths of a dollar.
pub fn cost(run: &Value) -> Option<i64> {
    metric(run, "berth.cost").map(|cost| (cost * 1e6).round() as i64)
}

/// Milliseconds of one whole GPU.
pub fn gpu_ms(run: &Value) -> Option<i64> {
    metric(run, "berth.gpu_hours").map(|hours| (hours * 3_600_000.0).round() as i64)
}

/// The duration of the run.
pub fn took(run: &Value) -> Option<i64> {
    Some(run["info"]["end_time"].as_i64()? - run["info"]["start_time"].as_i64()?)
}

/// One cell; a dash if it is empty.
pub fn cell(run: &Value, column: &str, look: &Look) -> String {
    let info = &run["info"];
    let of = |list: &str, key: &str| {
        let key = key.trim_matches('`');
        of(run, list, key).map(text).unwrap_or_default()
    };
    let shown = match column {
        "cost" => cost(run).map(words::money).unwrap_or_default(),
        "gpu-hours" => gpu_ms(run).map(words::gpu_hours).unwrap_or_default(),
        "gpu-use" => match metric(run, "berth.gpu_use") {
            Some(share) => format!("{:.0}%", share * 100.0),
            None => String::new(),
        },
        "energy" => match metric(run, "berth.energy_kwh") {
            Some(kwh) => words::energy((kwh * 3_600_000.0) as i64),
            None => String::new(),
        },
        "name" | "run_name" => text(&info["run_name"]),
        "user" | "user_id" => text(&info["user_id"]),
        "experiment" => text(&info["experiment_id"]),
        "start" | "start_time" => time(look, &info["start_time"]),
        "end" | "end_time" => time(look, &info["end_time"]),
        "took" => took(run).map(words::span).unwrap_or_default(),
        column => match short::key(column).split_once('.') {
            Some(("metrics" | "metric", key)) => of("metrics", key),
            Some(("params" | "param", key)) => of("params", key),
            Some(("tags" | "tag", key)) => of("tags", key),
            _ => match &info[column] {
                Value::Null => String::new(),
                found => text(found),
            },
        },
    };
    plain(&shown)
}

/// Removes control characters, which could move the cursor.
pub fn plain(shown: &str) -> String {
    let plain: String = shown.chars().map(|c| if c.is_control() { ' ' } else { c }).collect();
    if plain.is_empty() { "-".to_owned() } else { plain }
}

/// Columns with titles from the user. Other tables have fixed titles.
pub fn aligned(titles: &[String], rows: &[Vec<String>]) -> String {
    let widths: Vec<usize> = (0..titles.len())
        .map(|at| {
            let cells = rows.iter().map(|row| row[at].chars().count());
            cells.chain([titles[at].chars().count()]).max().unwrap_or(0)
        })
        .collect();
    let mut out = String::new();
    for row in std::iter::once(titles).chain(rows.iter().map(Vec::as_slice)) {
        let cells = row.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        out.push_str(cells.collect::<Vec<_>>().join("  ").trim_end());
        out.push('\n');
    }
    out
}
