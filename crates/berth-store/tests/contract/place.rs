//! Where a test has its database, and rows to put into it.

use berth_model::CostKind;
use berth_model::{Event, JobId, LeaseId, LeaseOutcome, Micros, Milli, Stamped, Time};
use berth_model::{JobKind, JobState};
use berth_store::{AuditEntry, Batch, CostRecord, JobRow, LeaseRow, Options, Store, sqlite_url};
use berth_testbed::Postgres;
use sqlx::any::install_default_drivers;
use sqlx::{AnyConnection, AssertSqlSafe, Connection, raw_sql};
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Duration;
use tempfile::TempDir;

/// A place for one database, gone with it.
pub struct Place {
    pub url: String,
    /// For files of the test; a SQLite database is in it.
    folder: TempDir,
}

/// Runs each test on both databases, under the names `sqlite::…` and `postgres::…`.
macro_rules! on_both {
    ($($test:ident),* $(,)?) => {
        mod sqlite {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                super::$test($crate::place::Place::sqlite()).await;
            })*
        }
        mod postgres {
            $(#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $test() {
                super::$test($crate::place::Place::postgres()).await;
            })*
        }
    };
}
pub(crate) use on_both;

impl Place {
    pub fn sqlite() -> Place {
        let folder = TempDir::with_prefix("berth-store-").unwrap();
        Place { url: sqlite_url(&folder.path().join("berth.db")), folder }
    }

    pub fn postgres() -> Place {
        Place::on(shared_server())
    }

    /// A new database of a server that the test has for itself.
    pub fn on(server: &Postgres) -> Place {
        let folder = TempDir::with_prefix("berth-store-").unwrap();
        Place { url: server.database(), folder }
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub async fn open(&self) -> Store {
        Store::open(&self.url, options()).await.unwrap()
    }

    /// Does something behind the store's back.
    pub async fn sql(&self, sql: &str) {
        install_default_drivers();
        let mut connection = AnyConnection::connect(&self.url).await.unwrap();
        raw_sql(AssertSqlSafe(sql.to_owned())).execute(&mut connection).await.unwrap();
        connection.close().await.unwrap();
    }
}

/// The server that tests share where none stops it.
pub fn shared_server() -> &'static Postgres {
    static SERVER: OnceLock<Postgres> = OnceLock::new();
    SERVER.get_or_init(Postgres::start)
}

/// Impatient, for the tests that wait for what does not come.
pub fn options() -> Options {
    Options { timeout: Duration::from_secs(20), ..Options::default() }
}

pub fn tick(seq: u64) -> Stamped {
    Stamped { seq, at: Time(seq as i64 * 1_000), event: Event::Tick }
}

pub fn ticks(seqs: std::ops::RangeInclusive<u64>) -> Batch {
    Batch { events: seqs.map(tick).collect(), ..Batch::default() }
}

pub fn job(number: u64) -> JobRow {
    JobRow {
        id: JobId::new(number),
        name: format!("train-{number}"),
        kind: JobKind::Job,
        user: "ada".into(),
        team: "vision".into(),
        project: "segmentation".into(),
        experiment: String::new(),
        state: JobState::Pending,
        priority: 0,
        submitted: Time(number as i64 * 1_000),
        started: None,
        ended: None,
        attempt: 0,
        gpus: Milli::whole(8),
        cost: Micros::ZERO,
        file: "run: python train.py\n".into(),
        detail: r#"{"command":["python","train.py"]}"#.into(),
        reason: String::new(),
    }
}

pub fn lease_id(job: JobId, attempt: u32) -> LeaseId {
    LeaseId { job, task: 0, attempt }
}

pub fn lease(job: JobId, attempt: u32, opened: Time) -> LeaseRow {
    LeaseRow {
        id: lease_id(job, attempt),
        node: "node-a".into(),
        slices: "[]".into(),
        price: Micros::dollars(16),
        opened,
        started: Some(opened),
        closed: Some(Time(opened.0 + 60_000)),
        outcome: Some(LeaseOutcome::Done),
        exit: Some(r#"{"code":0}"#.into()),
        cost: Micros(266_667),
        stop_at: None,
        stop: None,
    }
}

pub fn cost(job: JobId, (from, to): (Time, Time), amount: i64) -> CostRecord {
    CostRecord {
        id: 0,
        lease: Some(lease_id(job, 1)),
        team: "vision".into(),
        project: "segmentation".into(),
        experiment: "baseline".into(),
        user: "ada".into(),
        node: "node-a".into(),
        kind: CostKind::Used,
        from,
        to,
        gpus: Milli(2_500),
        amount: Micros(amount),
    }
}

pub fn audit(what: &str) -> AuditEntry {
    AuditEntry {
        at: Time(5_000),
        who: "ada".into(),
        token: "t1".into(),
        from: "127.0.0.1".into(),
        method: "POST".into(),
        what: what.into(),
        target: "job 1".into(),
        outcome: "ok".into(),
        detail: "{}".into(),
    }
}
