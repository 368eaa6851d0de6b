//! A server with a very long queue, which people look at while others submit.

use super::Asked;
use super::queue::{SUBMITTERS, file, occupy, of_commands, submit, timed};
use crate::measure::{Memory, milliseconds, percentile};
use crate::report::{Row, Section, Target};
use anyhow::{Context, Result};
use berth_api::Client;
use berth_api::wire::{JobQuery, SubmitQuery};
use berth_testbed::Server;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;
use tokio::task::JoinSet;

const COMMANDS: u32 = 20;
/// People who read the first page of the list again and again.
const READERS: u32 = 8;
/// Submissions that are timed.
const SUBMISSIONS: u32 = 300;

pub fn section(args: &Asked, berth: &Path) -> Result<Section> {
    let server = Server::start(berth, &["--gpus", "8xH100"]);
    let runtime = Runtime::new().context("starting")?;
    let client = server.client();
    runtime.block_on(occupy(&client))?;
    runtime.block_on(submit(&client, args.long_waiting, SUBMITTERS))?;

    let ps = (0..COMMANDS).map(|_| timed(&server, &["ps"])).collect::<Result<_>>()?;
    let mut rows = of_commands("berth ps", ps, 100.0);
    let alone = runtime.block_on(one_by_one(&client))?;
    let (among, pages) = runtime.block_on(among_readers(&client))?;
    let p99 = |times: &[Duration]| milliseconds(percentile(times, 990));
    rows.push(Row::new("submit, nobody reads, P99", p99(&alone), "ms", Target::Below(100.0)));
    rows.push(Row::new("submit, 8 read, P99", p99(&among), "ms", Target::Below(100.0)));
    rows.push(Row::new("pages read meanwhile", pages, "1/s", Target::AtLeast(10.0)));
    let memory = Memory::of(&server.process().to_string());
    rows.push(Row::new("server: resident", memory.now as f64 / 1e6, "MB", Target::None));
    let text = format!(
        "As above with {} jobs that wait. {SUBMISSIONS} jobs are submitted one after another, first \
         alone, then while {READERS} clients read the first page of all waiting jobs without a \
         pause.",
        args.long_waiting
    );
    Ok(Section { title: "A very long queue".into(), text, rows })
}

async fn one_by_one(client: &Client) -> Result<Vec<Duration>> {
    let mut times = Vec::new();
    for number in 0..SUBMISSIONS {
        let clock = Instant::now();
        client.submit(&file(number), &SubmitQuery::default()).await.context("submitting")?;
        times.push(clock.elapsed());
    }
    times.sort_unstable();
    Ok(times)
}

/// The same while others read, and how many pages a second they get.
async fn among_readers(client: &Client) -> Result<(Vec<Duration>, f64)> {
    let done = Arc::new(AtomicBool::new(false));
    let pages = Arc::new(AtomicU64::new(0));
    let query = JobQuery { state: Some("pending".into()), ..JobQuery::default() };
    let mut readers = JoinSet::new();
    for _ in 0..READERS {
        let (client, done) = (client.clone(), Arc::clone(&done));
        let (pages, query) = (Arc::clone(&pages), query.clone());
        readers.spawn(async move {
            while !done.load(Ordering::Relaxed) {
                client.jobs(&query).await.context("reading the list")?;
                pages.fetch_add(1, Ordering::Relaxed);
            }
            anyhow::Ok(())
        });
    }
    let clock = Instant::now();
    let times = one_by_one(client).await;
    let rate = pages.load(Ordering::Relaxed) as f64 / clock.elapsed().as_secs_f64();
    done.store(true, Ordering::Relaxed);
    while let Some(reader) = readers.join_next().await {
        reader.context("reading")??;
    }
    Ok((times?, rate))
}
