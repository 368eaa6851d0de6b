//! Servers and databases that are killed under a stream of jobs.

use super::{Asked, none};
use crate::report::{Row, Section, Target};
use anyhow::{Context, Result};
use berth_api::Code;
use berth_testbed::{CrashReport, Load, Postgres, Server, Stop, run_through_faults, until};
use std::path::Path;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

const GPUS: [&str; 2] = ["--gpus", "8xH100"];

pub fn kills(args: &Asked, berth: &Path) -> Result<Section> {
    let mut server = Server::start(berth, &GPUS);
    let load = Load { jobs: args.jobs, faults: args.kills };
    let report = run_through_faults(&mut server, load, |server| {
        server.kill();
        server.start_again();
    });
    let text = format!(
        "The server is sent SIGKILL at {} moments that look random, and started again, while {} \
         jobs of up to a second come in a stream that lasts as long. Each job looks whether another \
         process of its own is there.",
        args.kills, args.jobs
    );
    let mut rows = vec![Row::new("kills", f64::from(args.kills), "kills", Target::None)];
    rows.extend(rows_of(&report));
    Ok(Section { title: "A server that is killed".into(), text, rows })
}

pub fn outages(args: &Asked, berth: &Path) -> Result<Section> {
    let mut postgres = Postgres::start();
    let url = postgres.database();
    let mut server = Server::start(berth, &[&GPUS[..], &["--database", url.as_str()]].concat());
    let runtime = Runtime::new().context("starting")?;
    let mut unclear = 0;
    let mut back = Vec::new();
    let load = Load { jobs: args.jobs, faults: args.outages };
    let report = run_through_faults(&mut server, load, |server| {
        postgres.stop(Stop::Immediate);
        unclear += u64::from(!refuses_clearly(&runtime, server));
        postgres.resume();
        let clock = Instant::now();
        let client = server.client_with(Duration::ZERO);
        // Requests need a token to be read, and `ready` says that the log can be written again.
        until("the server takes requests", || {
            runtime.block_on(async { client.me().await.is_ok() && client.ready().await.is_ok() })
        });
        back.push(clock.elapsed());
    });
    let text = format!(
        "The database is PostgreSQL with `fsync` on. It is stopped as in a crash (`pg_ctl stop -m \
         immediate`) and started again {} times, while {} jobs come as above. The server is not \
         touched.",
        args.outages, args.jobs
    );
    let mut rows = vec![Row::new("outages", f64::from(args.outages), "outages", Target::None)];
    rows.extend(rows_of(&report));
    rows.push(none("outages without a clear problem (503, BRT0024)", unclear, "outages"));
    rows.push(none("servers that ended", u64::from(!server.is_running()), "servers"));
    let longest = back.into_iter().max().unwrap_or_default().as_secs_f64();
    rows.push(Row::new("longest until requests were taken again", longest, "s", Target::None));
    Ok(Section { title: "A database that is stopped and started".into(), text, rows })
}

/// What somebody is told who does not try again.
fn refuses_clearly(runtime: &Runtime, server: &Server) -> bool {
    let client = server.client_with(Duration::ZERO);
    let answer = runtime.block_on(client.jobs(&Default::default()));
    let problem = answer.err().and_then(|error| error.problem().cloned());
    problem.is_some_and(|problem| {
        problem.status == 503 && problem.known_code() == Some(Code::StoreDown)
    })
}

fn rows_of(report: &CrashReport) -> Vec<Row> {
    vec![
        Row::new(
            "jobs acknowledged before the last blow",
            report.acknowledged_before_last_fault as f64,
            "jobs",
            Target::None,
        ),
        none("jobs lost", report.lost, "jobs"),
        none("jobs that nobody submitted", report.extra, "jobs"),
        none("jobs run twice at once", report.ran_twice_at_once, "jobs"),
        none("jobs run more than once", report.ran_again, "jobs"),
        Row::new(
            "jobs whose process lived through a blow",
            report.ran_through_a_fault as f64,
            "jobs",
            Target::AtLeast(1.0),
        ),
        none("leases whose cost is not price times time", report.leases_misbilled, "leases"),
        none(
            "rows of the bill beside all leases",
            report.bill_difference_micros,
            "millionths of $",
        ),
        none("audit logs that are damaged", u64::from(!report.audit_is_intact), "logs"),
    ]
}
