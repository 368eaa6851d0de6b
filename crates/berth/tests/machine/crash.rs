//! Servers that are killed: no job is lost, none runs twice at once, and the bill is exact.

use super::server::{Server, until};
use berth_api::wire::{JobState, SubmitQuery};
use berth_model::{Micros, Span};

/// How often the server is killed, and under how many jobs; `make evidence-machine` asks for more.
fn number(name: &str, otherwise: u32) -> u32 {
    std::env::var(name).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

#[derive(Debug)]
pub struct Lease {
    pub cost: i64,
    price: i64,
    held: Option<Span>,
}

impl Lease {
    /// Price times time.
    pub fn expected(&self) -> i64 {
        let held = self.held.expect("it is closed");
        berth_ledger::cost::cumulative(Micros(self.price), held).0
    }
}

pub fn leases(server: &Server, job: &str) -> Vec<Lease> {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    leases_with(&runtime, &server.client(), job)
}

/// A job that notices when another process of the same job runs beside it.
fn file(marks: &std::path::Path, number: u32) -> String {
    let marks = marks.display();
    format!(
        "name: j{number}\ngpus: 1\nrun: |\n  mkdir {marks}/on-$BERTH_JOB_ID || echo \
         $BERTH_JOB_ID >> {marks}/twice\n  sleep 0.0{}\n  rmdir {marks}/on-$BERTH_JOB_ID\n  echo \
         $BERTH_JOB_ID >> {marks}/ran\n",
        number % 10
    )
}

pub fn survive(server: &mut Server, kills: u32, jobs: u32, mut disturb: impl FnMut(&mut Server)) {
    let marks = tempfile::tempdir().unwrap();
    let client = server.client();
    let path = marks.path().to_owned();
    let submitting = std::thread::spawn(move || {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        runtime.block_on(async {
            for number in 0..jobs {
                let file = file(&path, number);
                client.submit(&file, &SubmitQuery::default()).await.expect("it is taken");
            }
        });
    });
    // Moments that look random and are the same in every run.
    let mut seed: u64 = 20_261_115;
    for _ in 0..kills {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        std::thread::sleep(std::time::Duration::from_millis(20 + (seed >> 33) % 400));
        disturb(server);
    }
    submitting.join().expect("all were submitted");
    let runtime = tokio::runtime::Runtime::new().unwrap();
    let client = server.client();
    let query = berth_api::wire::JobQuery { limit: Some(1), ..Default::default() };
    until("all jobs are done", || {
        let list = runtime.block_on(client.jobs(&query)).unwrap();
        list.counts.get(&JobState::Done) == Some(&u64::from(jobs))
    });
    let lines = |name: &str| std::fs::read_to_string(marks.path().join(name)).unwrap_or_default();
    assert_eq!(lines("twice"), "", "these ran twice at once");
    let mut ran: Vec<u32> = lines("ran").lines().map(|line| line.parse().unwrap()).collect();
    ran.sort_unstable();
    let all: Vec<u32> = (1..=jobs).collect();
    assert_eq!(ran, all, "every job ran, and once");
    for job in 1..=jobs {
        for lease in leases_with(&runtime, &client, &job.to_string()) {
            assert_eq!(lease.cost, lease.expected(), "job {job}: {lease:?}");
        }
    }
    assert!(server.says(&["audit", "verify"]).contains("whole"));
}

fn leases_with(
    runtime: &tokio::runtime::Runtime,
    client: &berth_api::Client,
    job: &str,
) -> Vec<Lease> {
    let attempts = runtime.block_on(client.attempts(job)).unwrap();
    let all = attempts.items.into_iter().flat_map(|attempt| attempt.leases);
    all.map(|lease| Lease {
        cost: lease.cost_micros,
        price: lease.price_micros_per_hour,
        held: lease.closed.map(|closed| closed.0 - lease.opened.0),
    })
    .collect()
}

#[test]
fn a_server_that_is_killed_again_and_again_loses_no_job_and_runs_none_twice() {
    let (kills, jobs) = (number("BERTH_TEST_KILLS", 20), number("BERTH_TEST_JOBS", 200));
    let mut server = Server::start(&["--gpus", "8xH100"]);
    survive(&mut server, kills, jobs, |server| {
        server.kill();
        server.start_again();
    });
}

#[test]
fn running_processes_are_found_again_by_the_next_server() {
    let mut server = Server::start(&["--gpus", "1xL4"]);
    server.says(&[
        "run",
        "-d",
        "--name",
        "long",
        "-g",
        "1",
        "--",
        "bash",
        "-c",
        "sleep 3; echo end",
    ]);
    until("it runs", || server.json(&["ps", "long"])["jobs"][0]["state"] == "running");
    server.kill();
    server.start_again();
    until("it is done", || server.json(&["ps", "--all", "long"])["jobs"][0]["state"] == "done");
    let job = server.json(&["ps", "--all", "long"]);
    assert_eq!(job["jobs"][0]["attempts"], 1, "{job}");
    assert!(server.says(&["logs", "long"]).contains("end"));
}
