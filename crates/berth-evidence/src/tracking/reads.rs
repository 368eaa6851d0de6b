//! What is searched and read: many runs in one experiment, and one long metric.

use super::load::{API, Sample, create_experiment, create_run, points, post, read, repeat};
use super::servers::{Recipe, Server, Who};
use super::wire::Wire;
use anyhow::{Context, Result, ensure};
use serde_json::json;
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

/// Points of the long metric, in batches of a thousand.
pub const POINTS: usize = 100_000;
const BATCH: usize = 1_000;
/// Points that a chart is drawn from.
const CHART: usize = 320;
const PAGE: usize = 25_000;
/// Each point has it once.
const STEP: &[u8] = b"\"step\"";
/// Connections that fill an experiment.
const FILLERS: usize = 4;

/// A search, and how many runs it finds at the most.
pub struct Search {
    pub name: &'static str,
    filter: &'static str,
    order: &'static [&'static str],
    rows: usize,
}

const BY_ACC: &[&str] = &["metrics.acc DESC"];

pub const SEARCHES: [Search; 4] = [
    Search {
        name: "filter and order by a metric, 100 rows",
        filter: "metrics.acc > 0.5",
        order: BY_ACC,
        rows: 100,
    },
    Search {
        name: "filter and order by a metric, 1,000 rows",
        filter: "metrics.acc > 0.5",
        order: BY_ACC,
        rows: 1_000,
    },
    Search {
        name: "filter by a metric, a param and a tag, order by a metric, 100 rows",
        filter: "metrics.acc > 0.5 AND params.model = 'resnet' AND tags.kind LIKE 'b%'",
        order: BY_ACC,
        rows: 100,
    },
    Search { name: "no filter, newest first, 100 rows", filter: "", order: &[], rows: 100 },
];

/// What the `number`-th run of the experiment has. `tools/mlflow/seed.py` writes the same.
fn logged(run: &str, number: usize) -> String {
    let acc = (number * 7_919 % 10_007) as f64 / 10_007.0;
    let metric =
        |key: &str, value: f64| json!({ "key": key, "value": value, "timestamp": 1, "step": 1 });
    let param = |key: &str, value: &str| json!({ "key": key, "value": value });
    json!({
        "run_id": run,
        "metrics": [metric("acc", acc), metric("loss", 1.0 - acc), metric("epoch", 1.0)],
        "params": [
            param("model", ["resnet", "vit", "gpt"][number % 3]),
            param("lr", ["0.1", "0.01", "0.001", "0.0001", "0.00001"][number % 5]),
            param("seed", &number.to_string()),
        ],
    })
    .to_string()
}

/// Makes an experiment with so many runs.
pub fn fill(server: &Server, recipe: &Recipe<'_>, runs: usize) -> Result<String> {
    let experiment = create_experiment(&mut server.wire(), "many")?;
    match server.who {
        Who::MlflowSmall | Who::MlflowDefault => {
            // At its own speed this would take ten minutes.
            let status = Command::new(recipe.others.join("bin/python"))
                .arg("tools/mlflow/seed.py")
                .arg(recipe.mlflow_database())
                .args([experiment.as_str(), &runs.to_string()])
                .status()
                .context("starting python")?;
            ensure!(status.success(), "tools/mlflow/seed.py failed; run this from the repository");
        }
        Who::Berth | Who::BerthOnPostgres | Who::FastTrackMl => {
            fill_by_requests(server, &experiment, runs)?
        }
    }
    Ok(experiment)
}

fn fill_by_requests(server: &Server, experiment: &str, runs: usize) -> Result<()> {
    thread::scope(|scope| {
        let fillers: Vec<_> = (0..FILLERS)
            .map(|filler| {
                let mut wire = server.wire();
                scope.spawn(move || {
                    for number in (filler..runs).step_by(FILLERS) {
                        let run = create_run(&mut wire, experiment, number)?;
                        post(&mut wire, "runs/log-batch", &logged(&run, number))?;
                    }
                    anyhow::Ok(())
                })
            })
            .collect();
        fillers.into_iter().try_for_each(|filler| filler.join().expect("a filler does not panic"))
    })
}

/// None where the server refuses it.
pub fn search(
    server: &Server,
    experiment: &str,
    search: &Search,
    span: Duration,
) -> Result<Option<Sample>> {
    let body = json!({
        "experiment_ids": [experiment],
        "filter": search.filter,
        "order_by": search.order,
        "max_results": search.rows,
    })
    .to_string();
    let mut wire = server.wire();
    // The first one warms up, and shows that all servers find as many.
    let first = wire.post(&format!("{API}/runs/search"), &body)?;
    if first.status != 200 {
        eprintln!("{}: {}: {}", server.who.name(), search.name, first.status);
        return Ok(None);
    }
    let found = read(&first.body)?["runs"].as_array().map_or(0, Vec::len);
    ensure!(found == search.rows, "{}: {} gave {found} runs", server.who.name(), search.name);
    repeat(server, span, || post(&mut wire, "runs/search", &body).map(drop)).map(Some)
}

/// A run with one long metric.
pub struct Long {
    run: String,
    /// Of each thousand points.
    pub written: Sample,
}

pub fn write_long(server: &Server) -> Result<Long> {
    let mut wire = server.wire();
    let experiment = create_experiment(&mut wire, "long")?;
    let run = create_run(&mut wire, &experiment, 0)?;
    let bodies: Vec<String> =
        (0..POINTS / BATCH).map(|batch| points(&run, "long", batch * BATCH, BATCH)).collect();
    // The clock does not end it: all are written.
    let cpu = server.cpu_so_far();
    let clock = Instant::now();
    let mut times = Vec::new();
    for body in &bodies {
        let one = Instant::now();
        post(&mut wire, "runs/log-batch", body)?;
        times.push(one.elapsed());
    }
    let elapsed = clock.elapsed();
    let written = Sample::of(times, elapsed, server.cpu_so_far().saturating_sub(cpu));
    Ok(Long { run, written })
}

impl Long {
    /// Reads all points, page by page.
    pub fn history(&self, server: &Server, span: Duration) -> Result<Sample> {
        let mut wire = server.wire();
        let bodies = self.pages(&mut wire)?;
        let found: usize = bodies.iter().map(|body| count(body, STEP)).sum();
        ensure!(found == POINTS, "{}: {found} points", server.who.name());
        repeat(server, span, || {
            let again = self.pages(&mut wire)?;
            ensure!(again.len() == bodies.len(), "{}: other pages", server.who.name());
            Ok(())
        })
    }

    fn pages(&self, wire: &mut Wire) -> Result<Vec<Vec<u8>>> {
        let run = &self.run;
        let path =
            format!("{API}/metrics/get-history?run_id={run}&metric_key=long&max_results={PAGE}");
        let (mut bodies, mut next) = (Vec::new(), String::new());
        loop {
            let answer = wire.get(&format!("{path}{next}"))?;
            ensure!(answer.status == 200, "get-history: {}", answer.status);
            let token = token(&answer.body);
            bodies.push(answer.body);
            let Some(token) = token else { return Ok(bodies) };
            next = format!("&page_token={token}");
        }
    }

    /// None where the server has no such route.
    pub fn chart(&self, server: &Server, span: Duration) -> Result<Option<Sample>> {
        let mut wire = server.wire();
        let path = format!(
            "/ajax-api/2.0/mlflow/metrics/get-history-bulk-interval?run_ids={}&metric_key=long\
             &max_results={CHART}",
            self.run
        );
        let first = wire.get(&path)?;
        if first.status != 200 {
            return Ok(None);
        }
        let found = count(&first.body, STEP);
        ensure!(found.abs_diff(CHART) < 20, "{}: a chart of {found} points", server.who.name());
        let asked = repeat(server, span, || {
            let answer = wire.get(&path)?;
            ensure!(answer.status == 200, "get-history-bulk-interval: {}", answer.status);
            Ok(())
        });
        asked.map(Some)
    }
}

/// How often a word is in a body.
fn count(body: &[u8], word: &[u8]) -> usize {
    body.windows(word.len()).filter(|window| *window == word).count()
}

/// The token of the next page, as it stands in an address.
fn token(body: &[u8]) -> Option<String> {
    let end = &body[body.len().saturating_sub(200)..];
    let text = String::from_utf8_lossy(end);
    let (_, rest) = text.split_once("\"next_page_token\"")?;
    let token = rest.split('"').nth(1)?;
    let escaped = token.replace('%', "%25").replace('+', "%2B").replace('=', "%3D");
    (!token.is_empty()).then_some(escaped)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_token_of_the_next_page_is_found_at_the_end() {
        assert_eq!(token(br#"{"metrics":[],"next_page_token": "ab="}"#).as_deref(), Some("ab%3D"));
        assert_eq!(token(br#"{"metrics":[]}"#), None);
        assert_eq!(token(br#"{"next_page_token":""}"#), None);
        assert_eq!(count(br#"{"step":1},{"step":2}"#, STEP), 2);
    }
}
