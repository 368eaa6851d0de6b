//! A stream of short jobs while a fault is injected again and again, and the books afterwards.

use crate::{Bill, Server, eventually, until};
use berth_api::Client;
use berth_api::wire::{At, Attempt, CostQuery, ExitKind, JobQuery, JobState, SubmitQuery};
use berth_model::Time;
use std::collections::{BTreeMap, BTreeSet};
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
    /// Run again after an end that Berth has recorded, or twice in one attempt.
    pub ran_again: u64,
    /// Run again because the supervisor that saw their end was killed before it could record it.
    pub ran_again_unrecorded: u64,
    /// Acknowledged before the last fault: later jobs prove nothing.
    pub acknowledged_before_last_fault: u64,
    /// Run to their end by one process, while at least one fault was injected.
    pub ran_through_a_fault: u64,
    /// Leases that are open, or cost other than their price times their time, or last longer than
    /// all of it took, or less long than their process.
    pub leases_misbilled: u64,
    /// Which, and by how much.
    pub misbilled: Vec<String>,
    /// The most that a lease was billed beyond the time of its process.
    pub longest_beyond_process: Duration,
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
            (self.ran_again, "jobs ran again after their end was recorded"),
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
            let id = until_taken(&runtime, &client, &file, &format!("crash-{number}"));
            acknowledged.fetch_add(1, Relaxed);
            id
        };
        tickets.into_iter().map(submit).collect()
    })
}

/// A server whose disk is full refuses a job, which may be sent again under the same key.
fn until_taken(runtime: &Runtime, client: &Client, file: &str, key: &str) -> u64 {
    let mut taken = None;
    until("the job is taken", || {
        let query = SubmitQuery::default();
        let answer = runtime.block_on(client.submit_as(file, &query, key.to_owned()));
        taken = answer.ok();
        taken.is_some()
    });
    taken.and_then(|job| job.id).expect("it has a number").0.number
}

/// A job that notices when another process of the same job runs beside it: a lock goes with the
/// last of its processes. One in ten takes long enough to be there when a server comes back.
fn file(marks: &Path, number: u64) -> String {
    let marks = marks.display();
    let seconds = if number % 10 == 9 { "0.9".to_owned() } else { format!("0.0{}", number % 10) };
    format!(
        "name: j{number}
gpus: 1
workdir: {marks}
run: |
  exec 9>{marks}/lock-$BERTH_JOB_ID
  flock --nonblock 9 || echo $BERTH_JOB_ID >> {marks}/twice
  from=${{EPOCHREALTIME/[^0-9]/}}
  sleep {seconds}
  echo $BERTH_JOB_ID $BERTH_ATTEMPT $from ${{EPOCHREALTIME/[^0-9]/}} >> {marks}/ran
"
    )
}

fn now_us() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970");
    u64::try_from(now.as_micros()).expect("it is before the year 500000")
}

/// The folder in which jobs record that they run and have run.
struct Marks(tempfile::TempDir);

/// A process that ran to its end, with its times in microseconds.
struct Ran {
    job: u64,
    attempt: u32,
    from: u64,
    to: u64,
}

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

    fn ran(&self) -> Vec<Ran> {
        let one = |line: Vec<u64>| match line[..] {
            [job, attempt, from, to] => {
                Ran { job, attempt: u32::try_from(attempt).expect("there are few"), from, to }
            }
            _ => panic!("a job writes four numbers, not {line:?}"),
        };
        self.read("ran").into_iter().map(one).collect()
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
    let took = now_us() - faults.first().copied().unwrap_or_else(now_us);
    let mut ran: BTreeMap<u64, Vec<Ran>> = BTreeMap::new();
    for one in marks.ran() {
        ran.entry(one.job).or_default().push(one);
    }
    let mut report = CrashReport {
        lost: acknowledged.iter().filter(|job| !ran.contains_key(job)).count() as u64,
        extra: counts().values().sum::<u64>().saturating_sub(all),
        ran_twice_at_once: marks.read("twice").len() as u64,
        audit_is_intact: server.berth(&["audit", "verify"]).status.success(),
        ..CrashReport::default()
    };
    let through = |one: &Ran| faults.iter().any(|at| (one.from..=one.to).contains(at));
    report.ran_through_a_fault = ran.values().flatten().filter(|one| through(one)).count() as u64;
    let mut billed = 0;
    for job in acknowledged {
        let attempts = runtime.block_on(client.attempts(&job.to_string())).expect("an answer");
        let ran = ran.get(job).map_or(&[][..], Vec::as_slice);
        billed += report.check_job(&attempts.items, ran, Duration::from_micros(took) + MARGIN);
    }
    report.bill_difference_micros = rows_total(&runtime, &client).abs_diff(billed);
    report
}

/// What lies before the first fault, and between two clocks.
const MARGIN: Duration = Duration::from_secs(60);
/// By how much the times of a lease may be rounded.
const ROUNDED_MS: i64 = 5;

impl CrashReport {
    /// Compares the attempts of a job with the processes that ran, and says what it was billed.
    fn check_job(&mut self, attempts: &[Attempt], ran: &[Ran], most: Duration) -> i64 {
        let mut billed = 0;
        for attempt in attempts {
            let runs: Vec<&Ran> = ran.iter().filter(|ran| ran.attempt == attempt.number).collect();
            let is_done = attempt.exit.as_ref().is_some_and(|exit| exit.kind == ExitKind::Done);
            let is_last = attempts.iter().all(|other| other.number <= attempt.number);
            self.ran_again += u64::from(runs.len() > 1 || is_done && !is_last);
            self.ran_again_unrecorded += u64::from(!runs.is_empty() && !is_last && !is_done);
            for lease in &attempt.leases {
                let bill = Bill::of_lease(lease);
                billed += bill.cost;
                let held = lease.closed.map_or(i64::MAX, |closed| (closed.0 - lease.opened.0).0);
                let ran = runs.first().map(|ran| (ran.to - ran.from) / 1_000);
                let ran = ran.map(|ms| i64::try_from(ms).expect("no job takes that long"));
                let is_short = ran.is_some_and(|ran| held + ROUNDED_MS < ran);
                let is_long = i64::try_from(most.as_millis()).is_ok_and(|most| held > most);
                if !bill.is_exact() || is_short || is_long {
                    self.leases_misbilled += 1;
                    let id = &lease.id;
                    self.misbilled.push(format!("{id} held {held} ms, ran {ran:?}, {bill:?}"));
                }
                if let Some(ran) = ran.filter(|_| lease.closed.is_some()) {
                    let beyond = u64::try_from(held - ran).unwrap_or_default();
                    let beyond = Duration::from_millis(beyond);
                    self.longest_beyond_process = self.longest_beyond_process.max(beyond);
                }
            }
        }
        billed
    }
}

/// What the rows of the bill come to.
fn rows_total(runtime: &Runtime, client: &Client) -> i64 {
    let query = CostQuery { from: Some(At(Time(0))), ..CostQuery::default() };
    runtime.block_on(client.cost(&query)).expect("an answer").total_micros
}
