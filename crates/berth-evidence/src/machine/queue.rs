//! A server with a long queue: how long people wait for its answers.

use super::Asked;
use super::disk::SyncFile;
use crate::measure::{Memory, milliseconds, percentile};
use crate::report::{Row, Section, Target};
use anyhow::{Context, Result, ensure};
use berth_api::Client;
use berth_api::wire::SubmitQuery;
use berth_testbed::{Server, eventually};
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

/// Commands that are timed, each.
const COMMANDS: u32 = 20;
/// Submissions at once while the queue is filled.
pub(super) const SUBMITTERS: u32 = 32;
/// Submissions at once in the second stream.
const TOGETHER: u32 = 8;
/// The oldest a forecast may be.
const FRESH_MS: f64 = 60_000.0;

pub fn section(args: &Asked, berth: &Path) -> Result<Section> {
    let busy = busy();
    let server = Server::start(berth, &["--gpus", "8xH100"]);
    let runtime = Runtime::new().context("starting")?;
    let client = server.client();
    runtime.block_on(occupy(&client))?;
    let filling = Instant::now();
    runtime.block_on(submit(&client, args.waiting, SUBMITTERS))?;
    let rate = f64::from(args.waiting) / filling.elapsed().as_secs_f64();
    wait_for_forecast(&server, args.waiting)?;

    let mut rows =
        vec![busy, Row::new("submissions taken a second, 32 at once", rate, "1/s", Target::None)];
    rows.extend(streams(&runtime, &client, &server, args)?);
    rows.extend(ps(&server)?);
    rows.extend(why(&server, args.waiting)?);
    let memory = Memory::of(&server.process().to_string());
    let mb = |bytes: u64| bytes as f64 / 1e6;
    rows.push(Row::new("server: resident", mb(memory.now), "MB", Target::Below(300.0)));
    rows.push(Row::new("server: peak resident", mb(memory.peak), "MB", Target::Below(300.0)));
    let text = format!(
        "A job holds all eight GPUs, and {} jobs of one GPU and unlike times wait, in SQLite on \
         disk. Then {} jobs are submitted over HTTP one after another, each when the one before was \
         acknowledged, which means that it is on disk; and as many by {TOGETHER} at once. Beside \
         the first stands what this disk takes to write 4 KiB over others in a file and make them \
         durable, asked after each submission, so that both meet the same disk. `berth ps` and \
         `berth why` run {COMMANDS} times each, `why` for jobs all over the queue.",
        args.waiting, args.submissions
    );
    Ok(Section { title: "A long queue".into(), text, rows })
}

/// Times by the clock mean little on a machine that has other things to do, so it says so.
fn busy() -> Row {
    let text = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    let load = text.split(' ').next().and_then(|word| word.parse().ok()).unwrap_or(0.0);
    Row::new("machine: load average before anything was started", load, "processes", Target::None)
}

/// Has one job hold every GPU.
pub(super) async fn occupy(client: &Client) -> Result<()> {
    let file = "name: holder\ngpus: 8\ntime: 8h\nrun: sleep 100000\n";
    client.submit(file, &SubmitQuery::default()).await.context("submitting the first job")?;
    Ok(())
}

pub(super) fn file(number: u32) -> String {
    let minutes = 5 + number % 50;
    format!("name: w{number}\ngpus: 1\ntime: {minutes}m\nrun: echo {number}\n")
}

/// Submits so many jobs, some at once, and gives the time that each took, sorted.
pub(super) async fn submit(client: &Client, jobs: u32, at_once: u32) -> Result<Vec<Duration>> {
    let mut submitters = JoinSet::new();
    for submitter in 0..at_once {
        let client = client.clone();
        submitters.spawn(async move {
            let mut taken = Vec::new();
            for number in (submitter..jobs).step_by(at_once as usize) {
                let file = file(number);
                let clock = Instant::now();
                client.submit(&file, &SubmitQuery::default()).await?;
                taken.push(clock.elapsed());
            }
            anyhow::Ok(taken)
        });
    }
    let mut all = Vec::new();
    while let Some(submitter) = submitters.join_next().await {
        all.extend(submitter.context("submitting")?.context("submitting")?);
    }
    all.sort_unstable();
    Ok(all)
}

/// Submits jobs one after another, and asks the disk after each. Disks are quick in one moment and
/// slow in the next, so only what is taken in turn can be compared.
async fn beside_disk(
    client: &Client,
    jobs: u32,
    mut sync_file: SyncFile,
) -> Result<(Vec<Duration>, Vec<Duration>)> {
    let (mut taken, mut least) = (Vec::new(), Vec::new());
    for number in 0..jobs {
        let file = file(number);
        let clock = Instant::now();
        client.submit(&file, &SubmitQuery::default()).await.context("submitting")?;
        taken.push(clock.elapsed());
        least.push(sync_file.sample()?);
    }
    taken.sort_unstable();
    least.sort_unstable();
    Ok((taken, least))
}

fn streams(runtime: &Runtime, client: &Client, server: &Server, args: &Asked) -> Result<Vec<Row>> {
    let sync_file = SyncFile::new(server.home.path())?;
    let (alone, sync_file) = runtime.block_on(beside_disk(client, args.submissions, sync_file))?;
    let together = runtime.block_on(submit(client, args.submissions, TOGETHER))?;
    let mut rows = Vec::new();
    for (name, times, most) in [
        ("submit, one after another", &alone, Target::Below(20.0)),
        ("submit, 8 at once", &together, Target::None),
        ("disk: 4 KiB made durable", &sync_file, Target::None),
    ] {
        for (word, thousandths, target) in
            [("P50", 500, Target::None), ("P99", 990, most), ("longest", 1_000, Target::None)]
        {
            let value = milliseconds(percentile(times, thousandths));
            rows.push(Row::new(format!("{name}, {word}"), value, "ms", target));
        }
    }
    Ok(rows)
}

/// What a command says as JSON.
fn run_json(server: &Server, args: &[&str]) -> Result<serde_json::Value> {
    let output = server.berth(&[args, &["-o", "json"]].concat());
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "berth {args:?} failed: {errors}");
    serde_json::from_slice(&output.stdout).with_context(|| format!("reading berth {args:?}"))
}

/// The job that was submitted last is the last that a forecast hears of.
fn wait_for_forecast(server: &Server, last: u32) -> Result<()> {
    let name = (last + 1).to_string();
    let known =
        eventually(|| run_json(server, &["why", &name]).is_ok_and(|why| !why["eta"].is_null()));
    ensure!(known, "there is no forecast for job {name}");
    Ok(())
}

/// Runs a command and gives how long that took.
pub(super) fn timed(server: &Server, args: &[&str]) -> Result<Duration> {
    let clock = Instant::now();
    let output = server.berth(args);
    let took = clock.elapsed();
    let errors = String::from_utf8_lossy(&output.stderr);
    ensure!(output.status.success(), "berth {args:?} failed: {errors}");
    Ok(took)
}

pub(super) fn of_commands(name: &str, mut times: Vec<Duration>, most: f64) -> Vec<Row> {
    times.sort_unstable();
    let value = |thousandths| milliseconds(percentile(&times, thousandths));
    vec![
        Row::new(format!("{name}, median"), value(500), "ms", Target::Below(most)),
        Row::new(format!("{name}, longest"), value(1_000), "ms", Target::Below(most)),
    ]
}

fn ps(server: &Server) -> Result<Vec<Row>> {
    let times = (0..COMMANDS).map(|_| timed(server, &["ps"])).collect::<Result<_>>()?;
    Ok(of_commands("berth ps", times, 100.0))
}

fn why(server: &Server, waiting: u32) -> Result<Vec<Row>> {
    let mut times = Vec::new();
    let mut oldest: f64 = 0.0;
    for number in 0..COMMANDS {
        let job = (2 + number * (waiting / COMMANDS)).to_string();
        times.push(timed(server, &["why", &job])?);
        let why = run_json(server, &["why", &job])?;
        let age = why["eta"]["age_ms"].as_f64();
        oldest = oldest.max(age.with_context(|| format!("job {job} has no forecast"))?);
    }
    let mut rows = of_commands("berth why", times, 200.0);
    rows.push(Row::new("berth why: oldest forecast", oldest, "ms", Target::Below(FRESH_MS)));
    Ok(rows)
}
