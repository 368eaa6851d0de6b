//! The writer. It takes all changes that have arrived into one transaction, and answers after the
//! commit: under load a hundred requests share one wait for the disk.

mod clean;
mod docs;
mod group;
mod models;
mod moves;
mod runs;

use crate::database::{Backend, Database};
use crate::error::failed;
use crate::figures::Figures;
use crate::memory::Memory;
use crate::read::experiments;
use crate::removal::Clean;
use berth_tracker::{Code, DocChange, Error, RunChange};
use group::Group;
use sqlx::{AnyConnection, Connection, Row, raw_sql};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::{mpsc, oneshot};

/// The length of the queue of changes, and how long a change waits for space in it.
pub(crate) const MOST_WAITING: usize = 4096;
/// The maximum changes and points of one group.
const MOST_CHANGES: usize = 1024;
const MOST_POINTS: usize = 50_000;
/// The size of the writer's caches of runs and keys.
const MOST_RUNS: usize = 2048;
const MOST_KEYS: usize = 500_000;
/// The wait before the next attempt to reach the database.
const PAUSE: Duration = Duration::from_millis(200);

pub(crate) enum Change {
    Docs(DocChange),
    Run(RunChange),
    Clean(Clean),
}

impl Change {
    fn points(&self) -> usize {
        match self {
            Change::Run(RunChange::Log { metrics, .. }) => metrics.len(),
            Change::Run(_) | Change::Docs(_) | Change::Clean(_) => 0,
        }
    }
}

pub(crate) type Answer = Result<Vec<u8>, Error>;

pub(crate) enum Message {
    Change(Change, oneshot::Sender<Answer>),
    /// Commits the queue and stops.
    Stop,
}

/// The result of a change: an answer, a refusal, or a database error, which rolls back the whole group.
pub(crate) type Applied = sqlx::Result<Answer>;

/// What the writer knows of a run that it writes to.
#[derive(Debug, Clone, Default)]
struct RunState {
    deleted: bool,
    experiment: i64,
    points: u64,
    /// The keys of its metrics.
    keys: HashSet<i64>,
    /// An upper bound of their number, once counted.
    params: Option<u64>,
    tags: Option<u64>,
}

/// The numbers of the next rows.
#[derive(Debug, Clone, Copy, Default)]
struct Next {
    run: i64,
    key: i64,
    dataset: i64,
    experiment: i64,
}

pub(crate) struct Writer {
    database: Database,
    connection: Option<AnyConnection>,
    memory: Arc<Memory>,
    figures: Arc<Figures>,
    next: Next,
    keys: HashMap<(i64, String), i64>,
    keys_of_experiment: HashMap<i64, u64>,
    runs_of_experiment: HashMap<i64, u64>,
    runs: HashMap<i64, RunState>,
    /// An upper bound of the metrics of each logged model.
    models: HashMap<String, u64>,
    /// Runs and logged models that versions of registered models name, read on first use.
    named: Option<HashSet<String>>,
}

impl Writer {
    pub async fn new(
        database: Database,
        mut connection: AnyConnection,
        memory: Arc<Memory>,
        figures: Arc<Figures>,
    ) -> sqlx::Result<Writer> {
        let next = Next::read(&mut connection).await?;
        Ok(Writer {
            database,
            connection: Some(connection),
            memory,
            figures,
            next,
            keys: HashMap::new(),
            keys_of_experiment: HashMap::new(),
            runs_of_experiment: HashMap::new(),
            runs: HashMap::new(),
            models: HashMap::new(),
            named: None,
        })
    }

    fn backend(&self) -> Backend {
        self.database.backend
    }

    /// Writes until a message stops it or all senders are dropped.
    pub async fn run(mut self, mut changes: mpsc::Receiver<Message>) {
        let mut goes_on = true;
        while goes_on {
            let mut group = Vec::new();
            let mut points = 0;
            let mut next = changes.recv().await;
            loop {
                match next {
                    Some(Message::Change(change, answer)) => {
                        points += change.points();
                        group.push((change, answer));
                    }
                    Some(Message::Stop) => goes_on = false,
                    None if group.is_empty() => goes_on = false,
                    None => {}
                }
                if !goes_on || group.len() >= MOST_CHANGES || points >= MOST_POINTS {
                    break;
                }
                match changes.try_recv() {
                    Ok(message) => next = Some(message),
                    Err(_) => break,
                }
            }
            if !group.is_empty() {
                self.write(group).await;
            }
        }
        if let Some(connection) = self.connection.take() {
            let _ = connection.close().await;
        }
    }

    /// Writes one group and answers its requests.
    async fn write(&mut self, changes: Vec<(Change, oneshot::Sender<Answer>)>) {
        let began = Instant::now();
        if self.runs.len() > MOST_RUNS {
            self.runs.clear();
        }
        if self.models.len() > MOST_RUNS {
            self.models.clear();
        }
        if self.keys.len() > MOST_KEYS {
            self.keys.clear();
        }
        let (changes, answers): (Vec<Change>, Vec<_>) = changes.into_iter().unzip();
        let number = changes.len() as u64;
        match self.transact(changes).await {
            Ok((replies, group)) => {
                group.remember(&self.memory);
                for (reply, answer) in replies.into_iter().zip(answers) {
                    // The caller may have hung up.
                    let _ = answer.send(reply);
                }
                let figures = &self.figures;
                Figures::add(&figures.commits, 1);
                Figures::add(&figures.changes, number);
                Figures::add(&figures.points, group.sent);
                Figures::add(&figures.removed_runs, group.gone.len() as u64);
                Figures::add(&figures.removed_experiments, group.gone_experiments.len() as u64);
                Figures::add(&figures.removed_points, group.gone_points);
                let took = u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX);
                Figures::add(&figures.commit_micros, took);
            }
            Err(error) => {
                Figures::add(&self.figures.failed_commits, 1);
                let said = failed("write a group of changes", &error);
                for answer in answers {
                    let _ = answer.send(Err(said.clone()));
                }
                self.forget().await;
            }
        }
    }

    async fn transact(&mut self, changes: Vec<Change>) -> sqlx::Result<(Vec<Answer>, Group)> {
        let mut connection = match self.connection.take() {
            Some(connection) => connection,
            None => self.reconnect().await?,
        };
        // Without it, a read in the transaction could be older than the write that follows.
        let begin = match self.backend() {
            Backend::Sqlite => "BEGIN IMMEDIATE",
            Backend::Postgres => "BEGIN",
        };
        let result = async {
            raw_sql(begin).execute(&mut connection).await?;
            let mut group = Group::default();
            let mut replies = Vec::with_capacity(changes.len());
            for change in changes {
                replies.push(self.apply(&mut connection, &mut group, change).await?);
            }
            group.flush(&mut connection, self.backend()).await?;
            raw_sql("COMMIT").execute(&mut connection).await?;
            Ok((replies, group))
        }
        .await;
        let usable = match &result {
            Ok(_) => true,
            Err(_) => raw_sql("ROLLBACK").execute(&mut connection).await.is_ok(),
        };
        if usable {
            self.connection = Some(connection);
        }
        result
    }

    async fn apply(
        &mut self,
        connection: &mut AnyConnection,
        group: &mut Group,
        change: Change,
    ) -> Applied {
        match change {
            Change::Docs(change) => self.apply_docs(connection, group, change).await,
            Change::Run(change) => self.apply_run(connection, group, change).await,
            Change::Clean(step) => self.clean(connection, group, step).await,
        }
    }

    async fn reconnect(&mut self) -> sqlx::Result<AnyConnection> {
        let mut connection = self.database.connect().await?;
        let locked = self.database.lock(&mut connection, Duration::from_secs(2)).await;
        locked.map_err(|error| sqlx::Error::Configuration(error.into()))?;
        self.next = Next::read(&mut connection).await?;
        // The commit may have succeeded even if its response was lost.
        self.memory.forget_heads();
        self.memory.watch.note_all();
        for doc in experiments(&mut connection).await? {
            match berth_tracker::read(&doc) {
                Ok(experiment) => self.memory.put_experiment(experiment),
                Err(error) => return Err(sqlx::Error::Decode(error.into())),
            }
        }
        Ok(connection)
    }

    /// Clears the caches after a rollback.
    async fn forget(&mut self) {
        self.runs.clear();
        self.keys.clear();
        self.keys_of_experiment.clear();
        self.runs_of_experiment.clear();
        self.models.clear();
        self.named = None;
        let read = match &mut self.connection {
            Some(connection) => Next::read(connection).await.ok(),
            None => None,
        };
        match read {
            Some(next) => self.next = next,
            None => {
                self.connection = None;
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

impl Next {
    async fn read(connection: &mut AnyConnection) -> sqlx::Result<Next> {
        let mut found = [0; 4];
        let statements = [
            "SELECT MAX(no) FROM (SELECT COALESCE(MAX(no), 0) AS no FROM runs UNION ALL \
             SELECT COALESCE(MAX(no), 0) FROM removals WHERE kind = 2) AS numbers",
            "SELECT COALESCE(MAX(no), 0) FROM metric_keys",
            "SELECT COALESCE(MAX(no), 0) FROM datasets",
            "SELECT MAX(no) FROM (SELECT COALESCE(MAX(sub), 0) AS no FROM docs WHERE kind = 1 \
             UNION ALL SELECT COALESCE(MAX(no), 0) FROM removals WHERE kind = 1) AS numbers",
        ];
        for (found, statement) in found.iter_mut().zip(statements) {
            let highest: i64 =
                sqlx::query(statement).fetch_one(&mut *connection).await?.try_get(0)?;
            *found = highest + 1;
        }
        let [run, key, dataset, experiment] = found;
        Ok(Next { run, key, dataset, experiment })
    }
}

/// The error when the writer has stopped.
pub(crate) fn stopped() -> Error {
    Error::new(Code::Unavailable, "The server is stopping; try again")
}
