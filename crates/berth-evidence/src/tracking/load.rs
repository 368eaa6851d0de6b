//! The requests of a training script, sent as fast as a server answers.

use super::servers::Server;
use super::wire::Wire;
use crate::measure::percentile;
use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::thread;
use std::time::{Duration, Instant};

pub const API: &str = "/api/2.0/mlflow";
/// Milliseconds since 1970 that everything begins at: the same on every server.
const BEGAN: u64 = 1_700_000_000_000;
/// Before anything is counted.
const WARM_UP: Duration = Duration::from_millis(500);
/// Requests that are counted at the least, however slow they are.
const FEWEST: usize = 3;

/// What a script does again and again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    CreateRun,
    GetRun,
    LogMetric,
    /// A batch of so many metrics.
    LogBatch(usize),
}

impl Action {
    pub const ALL: [Action; 6] = [
        Action::CreateRun,
        Action::GetRun,
        Action::LogMetric,
        Action::LogBatch(1),
        Action::LogBatch(100),
        Action::LogBatch(1_000),
    ];

    pub fn name(self, connections: usize) -> String {
        let what = match self {
            Action::CreateRun => "create a run".to_owned(),
            Action::GetRun => "get a run".to_owned(),
            Action::LogMetric => "log a metric".to_owned(),
            Action::LogBatch(1) => "log a batch of 1".to_owned(),
            Action::LogBatch(number) => format!("log a batch of {number}"),
        };
        format!(
            "{what}, {connections} {}",
            if connections == 1 { "connection" } else { "connections" }
        )
    }

    /// Whether it writes, and no more than a script writes at once.
    pub fn is_small_write(self) -> bool {
        match self {
            Action::CreateRun | Action::LogMetric | Action::LogBatch(1) => true,
            Action::GetRun | Action::LogBatch(_) => false,
        }
    }
}

/// How fast something went.
#[derive(Debug, Clone, Copy)]
pub struct Sample {
    pub per_second: f64,
    pub p50_ms: f64,
    pub p99_ms: f64,
    /// Of the server, for each request.
    pub cpu_ms: f64,
    pub requests: usize,
}

impl Sample {
    pub fn of(mut times: Vec<Duration>, elapsed: Duration, cpu: Duration) -> Sample {
        times.sort_unstable();
        let requests = times.len();
        let ms = |time: Duration| time.as_secs_f64() * 1_000.0;
        Sample {
            per_second: requests as f64 / elapsed.as_secs_f64(),
            p50_ms: ms(percentile(&times, 500)),
            p99_ms: ms(percentile(&times, 990)),
            cpu_ms: ms(cpu) / requests as f64,
            requests,
        }
    }
}

/// Sends one request and takes only a good answer.
pub fn post(wire: &mut Wire, path: &str, body: &str) -> Result<Vec<u8>> {
    let answer = wire.post(&format!("{API}/{path}"), body)?;
    let said = || String::from_utf8_lossy(&answer.body[..answer.body.len().min(500)]).into_owned();
    ensure!(answer.status == 200, "{path}: {} {}", answer.status, said());
    Ok(answer.body)
}

pub fn read(body: &[u8]) -> Result<Value> {
    serde_json::from_slice(body).context("reading an answer")
}

pub fn create_experiment(wire: &mut Wire, name: &str) -> Result<String> {
    let made = read(&post(wire, "experiments/create", &json!({ "name": name }).to_string())?)?;
    made["experiment_id"].as_str().map(str::to_owned).context("no experiment")
}

pub fn create_run(wire: &mut Wire, experiment: &str, number: usize) -> Result<String> {
    let made = read(&post(wire, "runs/create", &run(experiment, number))?)?;
    made["run"]["info"]["run_id"].as_str().map(str::to_owned).context("no run")
}

/// A new run, as MLflow's client asks for it.
fn run(experiment: &str, number: usize) -> String {
    let kind = if number.is_multiple_of(2) { "base" } else { "large" };
    json!({
        "experiment_id": experiment,
        "user_id": "kim",
        "run_name": format!("run-{number}"),
        "start_time": BEGAN + number as u64,
        "tags": [
            { "key": "mlflow.user", "value": "kim" },
            { "key": "mlflow.source.name", "value": "train.py" },
            { "key": "kind", "value": kind },
        ],
    })
    .to_string()
}

/// Points of a metric, one after another.
pub fn points(run: &str, key: &str, from: usize, number: usize) -> String {
    let mut body = format!("{{\"run_id\":\"{run}\",\"metrics\":[");
    for step in from..from + number {
        let (value, at) = (1.0 / (step + 1) as f64, BEGAN + step as u64);
        let comma = if step > from { "," } else { "" };
        let _ = write!(
            body,
            "{comma}{{\"key\":\"{key}\",\"value\":{value},\"timestamp\":{at},\"step\":{step}}}"
        );
    }
    body.push_str("]}");
    body
}

/// The `number`-th batch of a run: ten metrics where it is of more than one.
fn batch(run: &str, size: usize, number: usize) -> String {
    if size == 1 {
        return points(run, "loss", number, 1);
    }
    let steps = size / 10;
    let mut body = format!("{{\"run_id\":\"{run}\",\"metrics\":[");
    for index in 0..size {
        let step = number * steps + index / 10;
        let (value, at) = (1.0 / (step + 1) as f64, BEGAN + step as u64);
        let (comma, key) = (if index > 0 { "," } else { "" }, index % 10);
        let _ = write!(
            body,
            "{comma}{{\"key\":\"m{key}\",\"value\":{value},\"timestamp\":{at},\"step\":{step}}}"
        );
    }
    body.push_str("]}");
    body
}

/// One connection with a run of its own.
struct Writer {
    wire: Wire,
    experiment: String,
    run: String,
    action: Action,
    sent: usize,
}

impl Writer {
    /// Sends one request, and gives how long the answer took.
    fn send(&mut self) -> Result<Duration> {
        let number = self.sent;
        self.sent += 1;
        let (path, body) = match self.action {
            Action::CreateRun => ("runs/create", run(&self.experiment, number)),
            Action::LogMetric => {
                let (value, at) = (1.0 / (number + 1) as f64, BEGAN + number as u64);
                let body = json!({
                    "run_id": self.run, "run_uuid": self.run, "key": "loss",
                    "value": value, "timestamp": at, "step": number,
                });
                ("runs/log-metric", body.to_string())
            }
            Action::LogBatch(size) => ("runs/log-batch", batch(&self.run, size, number)),
            Action::GetRun => {
                let path = format!("{API}/runs/get?run_id={}&run_uuid={}", self.run, self.run);
                let clock = Instant::now();
                let answer = self.wire.get(&path)?;
                ensure!(answer.status == 200, "runs/get: {}", answer.status);
                return Ok(clock.elapsed());
            }
        };
        let clock = Instant::now();
        post(&mut self.wire, path, &body)?;
        Ok(clock.elapsed())
    }
}

/// Does the same for so long over that many connections.
pub fn measure(
    server: &Server,
    action: Action,
    connections: usize,
    span: Duration,
) -> Result<Sample> {
    let mut wire = server.wire();
    let name = format!("{}-{connections}", action.name(connections).replace([' ', ','], "-"));
    let experiment = create_experiment(&mut wire, &format!("{name}-{:?}", server.who))?;
    let mut writers = Vec::new();
    for number in 0..connections {
        let run = create_run(&mut wire, &experiment, number)?;
        // A run that is read has something to show.
        post(&mut wire, "runs/log-batch", &batch(&run, 100, 0))?;
        let (wire, experiment) = (server.wire(), experiment.clone());
        writers.push(Writer { wire, experiment, run, action, sent: 1 });
    }
    let (writers, _, _) = together(writers, WARM_UP, 1)?;
    let cpu = server.cpu_so_far();
    let (_, times, elapsed) = together(writers, span, FEWEST)?;
    Ok(Sample::of(times, elapsed, server.cpu_so_far().saturating_sub(cpu)))
}

/// Runs them side by side, and gives them back with the times of all answers.
fn together(
    writers: Vec<Writer>,
    span: Duration,
    fewest: usize,
) -> Result<(Vec<Writer>, Vec<Duration>, Duration)> {
    let clock = Instant::now();
    let threads: Vec<_> = writers
        .into_iter()
        .map(|mut writer| {
            thread::spawn(move || {
                let mut times = Vec::new();
                while clock.elapsed() < span || times.len() < fewest {
                    times.push(writer.send()?);
                }
                anyhow::Ok((writer, times))
            })
        })
        .collect();
    let (mut writers, mut all) = (Vec::new(), Vec::new());
    for thread in threads {
        let (writer, times) = thread.join().expect("a writer does not panic")?;
        writers.push(writer);
        all.extend(times);
    }
    Ok((writers, all, clock.elapsed()))
}

/// Does something again for so long, but so often at the least.
pub fn repeat(
    server: &Server,
    span: Duration,
    mut once: impl FnMut() -> Result<()>,
) -> Result<Sample> {
    let cpu = server.cpu_so_far();
    let clock = Instant::now();
    let mut times = Vec::new();
    while clock.elapsed() < span || times.len() < FEWEST {
        let one = Instant::now();
        once()?;
        times.push(one.elapsed());
    }
    let elapsed = clock.elapsed();
    Ok(Sample::of(times, elapsed, server.cpu_so_far().saturating_sub(cpu)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_batches_of_a_run_have_points_that_no_other_batch_has() {
        let all = |size: usize, number: usize| -> Vec<(String, u64)> {
            let body: Value = serde_json::from_str(&batch("r", size, number)).unwrap();
            let metrics = body["metrics"].as_array().unwrap().iter();
            metrics
                .map(|metric| {
                    (metric["key"].as_str().unwrap().to_owned(), metric["step"].as_u64().unwrap())
                })
                .collect()
        };
        for size in [1, 100, 1_000] {
            let mut both = [all(size, 1), all(size, 2)].concat();
            assert_eq!(both.len(), 2 * size);
            both.sort();
            both.dedup();
            assert_eq!(both.len(), 2 * size);
        }
    }
}
