//! What the sandbox of a job costs at its start.

use super::Asked;
use crate::report::{Row, Section, Target};
use anyhow::{Context, Result};
use berth_api::wire::SubmitQuery;
use berth_testbed::{Server, until};
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};
use tokio::runtime::Runtime;

/// Jobs of each kind.
const JOBS: usize = 40;

pub fn section(_: &Asked, berth: &Path) -> Result<Section> {
    let server = |level| Server::start(berth, &["--gpus", "8xH100", "--isolation", level]);
    let (open, closed) = (server("none"), server("required"));
    let runtime = Runtime::new().context("starting")?;
    let (mut without, mut with) = (Vec::new(), Vec::new());
    for number in 0..JOBS {
        without.push(start(&runtime, &open, number)?);
        with.push(start(&runtime, &closed, number)?);
    }
    let (without, with) = (median(&mut without), median(&mut with));
    let rows = vec![
        Row::new("start without isolation, P50", without, "ms", Target::None),
        Row::new("start in a sandbox, P50", with, "ms", Target::None),
        Row::new("a sandbox takes longer by", with - without, "ms", Target::AtMost(20.0)),
    ];
    let text = format!(
        "Two servers, one with `--isolation none` and one with `--isolation required`, get {JOBS} \
         jobs each, one after another and in turns. A start is the time from the request to the \
         first instruction of the job, by the clock of the machine: the submission on disk, the \
         plan, the supervisor and the sandbox are in it."
    );
    Ok(Section { title: "The cost of isolation".into(), text, rows })
}

/// From the request to the first instruction, in milliseconds.
fn start(runtime: &Runtime, server: &Server, number: usize) -> Result<f64> {
    let file = format!("name: s{number}\ngpus: 1\nrun: 'echo $EPOCHREALTIME'\n");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).context("it is after 1970")?;
    let taken = runtime.block_on(server.client().submit(&file, &SubmitQuery::default()))?;
    let id = taken.id.context("it is a job")?.to_string();
    until("the job is done", || server.job(&id)["state"] == "done");
    let printed = server.run_ok(&["logs", &id]);
    let began: f64 = printed.trim().replace(',', ".").parse().context("it printed a time")?;
    Ok((began - now.as_secs_f64()) * 1e3)
}

fn median(times: &mut [f64]) -> f64 {
    times.sort_by(f64::total_cmp);
    times[times.len() / 2]
}
