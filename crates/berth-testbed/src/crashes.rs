//! A stream of short jobs while a fault is injected again and again, and the books afterwards.

use crate::{Bill, Server, eventually, until};
use berth_api::Client;
use berth_api::wire::{At, CostQuery, JobQuery, JobState, SubmitQuery};
use berth_model::Time;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, mpsc};
use std::thread;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::runtime::Runtime;

/// The seed of the moments at which faults are injected.
pub const SEED: u64 = 20_261_115;

#[derive(Debug, Clone, Copy)]
pub struct Load {
    pub jobs: u32,
    pub faults: u32,
}

/// What became of the jobs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CrashReport {
    /// Acknowledged, and never run to their end.
    pub lost: u64,
    /// Known to the server beyond those that were submitted.
    pub extra: u64,
    /// Found another process of their own job beside them.
    pub ran_twice_at_once: u64,
    /// Run to their end more than once.
    pub ran_again: u64,
    /// Acknowledged before the last fault: later jobs prove nothing.
    pub acknowledged_before_last_fault: u64,
    /// Run to their end by one process, while at least one fault was injected.
    pub ran_through_a_fault: u64,
    /// Leases that are open, or cost other than their price times their time.
    pub leases_misbilled: u64,
    /// Between the rows of the bill and the sum of all leases.
    pub bill_difference_micros: u64,
    /// Whether every row of the audit log verifies.
    pub audit_is_intact: bool,
}

impl CrashReport {
    /// What went wrong; nothing, if all is well.
    pub fn violations(&self) -> Vec<String> {
        let counts = [
            (self.lost, "jobs were lost"),
            (self.extra, "jobs are there that nobody submitted"),
            (self.ran_twice_at_once, "jobs ran twice at once"),
            (self.ran_again, "jobs ran more than once"),
            (self.leases_misbilled, "leases were billed wrongly"),
            (self.bill_difference_micros, "millionths of a dollar are between rows and leases"),
            (u64::from(!self.audit_is_intact), "audit log is damaged"),
        ];
        let wrong = counts.into_iter().filter(|(count, _)| *count > 0);
        wrong.map(|(count, what)| format!("{count} {what}")).collect()
    }
}

/// Submits jobs in a stream that lasts as long as the faults, which come at moments that look
/// random and are the same in every run. Then waits for the jobs and checks the books.
///
/// Each fault has its share of the jobs, which are submitted just before it. The next share waits
/// for them: a stream that fell behind would come when all faults are over.
///
/// # Panics
///
/// If the server takes no jobs between two faults, or does not answer in the end.
pub fn run_through_faults(
    server: &mut Server,
    load: Load,
    mut inject: impl FnMut(&mut Server),
) -> CrashReport {
    let marks = Marks::new();
    let (tickets, taken) = mpsc::channel();
    let acknowledged = Arc::new(AtomicU64::new(0));
    let count = acknowledged.clone();
    let submitting = submit(server.client(), marks.folder().to_owned(), taken, count);
    let mut faults = Vec::new();
    let mut seed = SEED;
    let (mut given, mut acknowledged_before_last_fault) = (0, 0);
    for number in 1..=load.faults {
        until("the jobs before the last fault are taken", || acknowledged.load(Relaxed) >= given);
        let due = u64::from(load.jobs) * u64::from(number) / u64::from(load.faults);
        (given..due).for_each(|job| tickets.send(job).expect("the submitter takes them all"));
        given = due;
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        thread::sleep(Duration::from_millis(20 + (seed >> 33) % 400));
        acknowledged_before_last_fault = acknowledged.load(Relaxed);
        faults.push(now_us());
        inject(server);
    }
    drop(tickets);
    let numbers = submitting.join().expect("all were submitted");
    CrashReport { acknowledged_before_last_fault, ..check(server, &marks, &numbers, &faults) }
}

fn submit(
    client: Client,
    marks: PathBuf,
    tickets: mpsc::Receiver<u64>,
    acknowledged: Arc<AtomicU64>,
) -> thread::JoinHandle<BTreeSet<u64>> {
    thread::spawn(move || {
        let runtime = Runtime::new().expect("a runtime");
        let submit = |number| {
            let file = file(&marks, number);
            let made = runtime.block_on(client.submit(&file, &SubmitQuery::default()));
            let id = made.expect("it is taken").id.expect("it has a number").0.number;
            acknowledged.fetch_add(1, Relaxed);
            id
        };
        tickets.into_iter().map(submit).collect()
    })
}

/// A job that notices when another process of the same job runs beside it. One in ten takes long
/// enough to be there when a server comes back.
fn file(marks: &Path, number: u64) -> String {
    let marks = marks.display();
    let seconds = if number % 10 == 9 { "0.9".to_owned() } else { format!("0.0{}", number % 10) };
    format!(
        "name: j{number}
gpus: 1
workdir: {marks}
run: |
  mkdir {marks}/on-$BERTH_JOB_ID || echo $BERTH_JOB_ID >> {marks}/twice
  from=${{EPOCHREALTIME/[^0-9]/}}
  sleep {seconds}
  rmdir {marks}/on-$BERTH_JOB_ID
  echo $BERTH_JOB_ID $from ${{EPOCHREALTIME/[^0-9]/}} >> {marks}/ran
"
    )
}

fn now_us() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970");
    u64::try_from(now.as_micros()).expect("it is before the year 500000")
}

/// The folder in which jobs record that they run and have run.
struct Marks(tempfile::TempDir);

impl Marks {
    fn new() -> Marks {
        Marks(tempfile::TempDir::with_prefix("berth-marks-").expect("a temporary folder"))
    }

    fn folder(&self) -> &Path {
        self.0.path()
    }

    /// Lines of numbers.
    fn read(&self, name: &str) -> Vec<Vec<u64>> {
        let text = std::fs::read_to_string(self.folder().join(name)).unwrap_or_default();
        let number = |word: &str| word.parse().expect("jobs write numbers");
        text.lines().map(|line| line.split(' ').map(number).collect()).collect()
    }
}

fn check(
    server: &Server,
    marks: &Marks,
    acknowledged: &BTreeSet<u64>,
    faults: &[u64],
) -> CrashReport {
    let runtime = Runtime::new().expect("a runtime");
    let client = server.client();
    let query = JobQuery { limit: Some(1), counts: true, ..JobQuery::default() };
    let counts = || runtime.block_on(client.jobs(&query)).expect("the server answers").counts;
    let all = acknowledged.len() as u64;
    // If they never are, the counts below say what is missing.
    eventually(|| counts().get(&JobState::Done) == Some(&all));
    let ran = marks.read("ran");
    let ended: BTreeSet<u64> = ran.iter().map(|line| line[0]).collect();
    let through = |line: &&Vec<u64>| faults.iter().any(|at| (line[1]..=line[2]).contains(at));
    let (leases_misbilled, billed) = bills(&runtime, &client, acknowledged);
    CrashReport {
        lost: acknowledged.difference(&ended).count() as u64,
        extra: counts().values().sum::<u64>().saturating_sub(all),
        ran_twice_at_once: marks.read("twice").len() as u64,
        ran_again: (ran.len() - ended.len()) as u64,
        ran_through_a_fault: ran.iter().filter(through).count() as u64,
        leases_misbilled,
        bill_difference_micros: rows_total(&runtime, &client).abs_diff(billed),
        audit_is_intact: server.berth(&["audit", "verify"]).status.success(),
        acknowledged_before_last_fault: 0,
    }
}

/// How many leases were billed wrongly, and what all of them cost together.
fn bills(runtime: &Runtime, client: &Client, jobs: &BTreeSet<u64>) -> (u64, i64) {
    let of = |job: &u64| runtime.block_on(Bill::of(client, &job.to_string())).expect("an answer");
    let all: Vec<Bill> = jobs.iter().flat_map(of).collect();
    let wrong = all.iter().filter(|bill| !bill.is_exact()).count();
    (wrong as u64, all.iter().map(|bill| bill.cost).sum())
}

/// What the rows of the bill come to.
fn rows_total(runtime: &Runtime, client: &Client) -> i64 {
    let query = CostQuery { from: Some(At(Time(0))), ..CostQuery::default() };
    runtime.block_on(client.cost(&query)).expect("an answer").total_micros
}
