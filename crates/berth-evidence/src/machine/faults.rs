//! Servers and databases that are killed under a stream of jobs.

use super::{Asked, namespace, none};
use crate::report::{Row, Section, Target};
use anyhow::{Context, Result};
use berth_api::Code;
use berth_testbed::{
    CrashReport, Load, Postgres, Server, Stop, Surroundings, run_through_faults, until,
};
use std::path::Path;
use std::thread::sleep;
use std::time::{Duration, Instant};
use tokio::runtime::Runtime;

const GPUS: [&str; 2] = ["--gpus", "8xH100"];

/// Jobs while the database is stopped: a handful for each outage.
const JOBS_IN_OUTAGES: u32 = 1_000;
/// The server's disk, where it is one of its own: enough for its database and all output.
const DISK_MB: u32 = 512;
/// How long trouble lasts before the server is killed in it.
const TROUBLE: Duration = Duration::from_millis(400);

pub fn kills(args: &Asked, berth: &Path) -> Result<Section> {
    killed("A server that is killed, SQLite", berth, args.jobs, args.kills, &[])
}

pub fn kills_on_postgres(args: &Asked, berth: &Path) -> Result<Section> {
    let postgres = Postgres::start();
    let url = postgres.database();
    let (title, kills) = ("A server that is killed, PostgreSQL", args.kills_postgres);
    let jobs = u64::from(args.jobs) * u64::from(kills) / u64::from(args.kills.max(1));
    killed(title, berth, u32::try_from(jobs)?, kills, &["--database", url.as_str()])
}

/// How often each kind of trouble came before a kill.
#[derive(Default)]
struct Blows {
    with_supervisors: u32,
    supervisors: u32,
    full_disks: u32,
    descriptors: u32,
    clocks: u32,
}

impl Blows {
    /// Every fifth kill takes the supervisors as well, and of 25 each kind of trouble has one.
    fn strike(&mut self, number: u32, server: &mut Server, around: &Surroundings) {
        let mut filler = None;
        match number % 25 {
            3 if namespace::has_mounts() => {
                filler = Some(server.fill_disk());
                self.full_disks += 1;
            }
            8 => {
                server.limit_descriptors(4);
                self.descriptors += 1;
            }
            step @ (13 | 18 | 23) => {
                around.set_clock(
                    ["+2d", "-3h", "+0"][usize::from(step > 13) + usize::from(step > 18)],
                );
                self.clocks += 1;
            }
            _ => {}
        }
        if matches!(number % 25, 3 | 8 | 13 | 18 | 23) {
            sleep(TROUBLE);
        }
        server.kill();
        if number.is_multiple_of(5) {
            self.with_supervisors += 1;
            self.supervisors += server.kill_supervisors();
        }
        if let Some(path) = filler {
            let _ = std::fs::remove_file(path);
        }
        server.start_again();
    }

    fn rows(&self, kills: u32) -> Vec<Row> {
        let count = |name, count: u32, unit, least: u32| {
            Row::new(name, f64::from(count), unit, Target::AtLeast(f64::from(least)))
        };
        vec![
            Row::new("kills", f64::from(kills), "kills", Target::None),
            count("of them with all supervisors", self.with_supervisors, "kills", 1),
            count("supervisors killed", self.supervisors, "processes", 1),
            count("of them with a full disk", self.full_disks, "kills", 1),
            count("of them without descriptors", self.descriptors, "kills", 1),
            count("of them after the clock was set", self.clocks, "kills", 1),
        ]
    }
}

fn killed(
    title: &'static str,
    berth: &Path,
    jobs: u32,
    kills: u32,
    more: &[&str],
) -> Result<Section> {
    let around = match namespace::has_mounts() {
        true => Surroundings::with_clock_and_disk(berth, DISK_MB),
        false => Surroundings::with_clock(berth),
    };
    let mut server = Server::start(&around.program(), &[&GPUS[..], more].concat());
    let mut blows = Blows::default();
    let mut number = 0;
    let report = run_through_faults(&mut server, Load { jobs, faults: kills }, |server| {
        number += 1;
        blows.strike(number, server, &around);
        if number.is_multiple_of(50) {
            eprintln!("  {number} of {kills} kills");
        }
    });
    for lease in &report.misbilled {
        eprintln!("  billed wrongly: {lease}");
    }
    let text = format!(
        "The server is sent SIGKILL at {kills} moments that look random, and started again, while \
         {jobs} jobs of up to a second come in a stream that lasts as long. Every fifth time all \
         supervisors are killed too. One kill in 25 comes on a full disk, one while the server has \
         no descriptors left, and three after its clock was set: two days ahead, three hours back \
         beside the true time, and right again. Each job looks whether another process of its own \
         is there. A job whose supervisor is killed after its last line and before its end is on \
         disk runs again: nothing can tell that from a job that was interrupted."
    );
    let mut rows = blows.rows(kills);
    rows.extend(rows_of(&report));
    Ok(Section { title: title.into(), text, rows })
}

pub fn outages(args: &Asked, berth: &Path) -> Result<Section> {
    let mut postgres = Postgres::start();
    let url = postgres.database();
    let mut server = Server::start(berth, &[&GPUS[..], &["--database", url.as_str()]].concat());
    let runtime = Runtime::new().context("starting")?;
    let mut unclear = 0;
    let mut back = Vec::new();
    let load = Load { jobs: args.jobs.min(JOBS_IN_OUTAGES), faults: args.outages };
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
        args.outages, load.jobs
    );
    let mut rows = vec![Row::new("outages", f64::from(args.outages), "outages", Target::None)];
    rows.extend(rows_of(&report));
    rows.push(none("outages without a clear problem (503, BRT0024)", unclear, "outages"));
    rows.push(none("servers that ended", u64::from(!server.is_running()), "servers"));
    let longest = back.into_iter().max().unwrap_or_default().as_secs_f64();
    rows.push(Row::new("longest until requests were taken again", longest, "s", Target::None));
    Ok(Section { title: "A database that is stopped and started".into(), text, rows })
}

/// The answer that a client without retries gets.
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
        none("jobs run again after their end was recorded", report.ran_again, "jobs"),
        Row::new(
            "jobs run again because their supervisor was killed at their end",
            report.ran_again_unrecorded as f64,
            "jobs",
            Target::None,
        ),
        Row::new(
            "jobs whose process lived through a blow",
            report.ran_through_a_fault as f64,
            "jobs",
            Target::AtLeast(1.0),
        ),
        none("leases billed wrongly", report.leases_misbilled, "leases"),
        Row::new(
            "longest that a lease was billed beyond its process",
            report.longest_beyond_process.as_secs_f64(),
            "s",
            Target::None,
        ),
        none(
            "rows of the bill beside all leases",
            report.bill_difference_micros,
            "millionths of $",
        ),
        none("audit logs that are damaged", u64::from(!report.audit_is_intact), "logs"),
    ]
}
