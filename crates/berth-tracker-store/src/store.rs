//! The store as its users see it.

use crate::database::{Backend, Database, NEWEST, Options, create_private};
use crate::error::OpenError;
use crate::figures::Figures;
use crate::memory::Memory;
use crate::read::{self, Reader};
use crate::removal::{Clean, Cleaned, Removal};
use crate::writer::{Change, MOST_WAITING, Message, Writer, stopped};
use berth_tracker::{
    Best, BestQuery, Code, DatasetSummary, DocChange, DocKey, Error, Experiment, Fut, HistoryQuery,
    Kind, Load, ModelMetric, NewerQuery, Point, ReachedQuery, ReadBy, Run, RunChange, RunHead,
    RunQuery, SampleQuery, Store, Watch,
};
use sqlx::AnyPool;
use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Mutex, mpsc, oneshot};
use tokio::task::JoinHandle;

/// How long a change waits for space in the queue, and for its commit.
const PATIENCE: Duration = Duration::from_secs(30);

/// The tables, with their writer and readers. [`close`](TrackingStore::close) stops it.
pub struct TrackingStore {
    database: Database,
    readers: AnyPool,
    memory: Arc<Memory>,
    figures: Arc<Figures>,
    changes: mpsc::Sender<Message>,
    writer: Mutex<Option<JoinHandle<()>>>,
}

impl TrackingStore {
    /// Opens the tables at `url` and creates missing ones. `file` is the file of a SQLite database, and
    /// `shown` is the URL without the password.
    pub async fn open(
        url: &str,
        shown: &str,
        file: Option<&Path>,
        options: &Options,
    ) -> Result<TrackingStore, OpenError> {
        if let Some(file) = file {
            create_private(file).map_err(|source| OpenError::Sql {
                action: "make",
                database: shown.to_owned(),
                source: sqlx::Error::Io(source),
            })?;
        }
        let database = Database::at(url, shown)?;
        let mut connection = database.begin(options, NEWEST).await?;
        let failed = |source| OpenError::Sql { action: "read", database: shown.to_owned(), source };
        let memory = Arc::new(Memory::default());
        for doc in read::experiments(&mut connection).await.map_err(failed)? {
            let experiment = berth_tracker::read(&doc).map_err(|error| OpenError::Unreadable {
                database: shown.to_owned(),
                why: error.message,
            })?;
            memory.put_experiment(experiment);
        }
        let figures = Arc::new(Figures::default());
        let writer =
            Writer::new(database.clone(), connection, memory.clone(), figures.clone()).await;
        let writer = writer.map_err(failed)?;
        let (changes, waiting) = mpsc::channel(MOST_WAITING);
        let readers = database.pool(options);
        let writer = Mutex::new(Some(tokio::spawn(writer.run(waiting))));
        Ok(TrackingStore { database, readers, memory, figures, changes, writer })
    }

    pub(crate) fn database(&self) -> &Database {
        &self.database
    }

    pub fn backend(&self) -> Backend {
        self.database.backend
    }

    pub fn figures(&self) -> &Figures {
        &self.figures
    }

    /// Commits the changes in the queue and closes all connections.
    pub async fn close(&self) {
        let _ = self.changes.send(Message::Stop).await;
        if let Some(writer) = self.writer.lock().await.take() {
            let _ = writer.await;
        }
        self.readers.close().await;
    }

    /// Runs one step of the removal of deleted runs and experiments.
    pub async fn clean(&self, step: Clean) -> Result<Cleaned, Error> {
        let done = self.change(Change::Clean(step)).await?;
        serde_json::from_slice(&done).map_err(|why| Error::internal(why.to_string()))
    }

    /// Teams that have experiments, models or webhooks, or with which experiments are shared.
    pub async fn teams(&self) -> Result<BTreeSet<String>, Error> {
        let mut teams = self.reader().scopes().await?;
        for of in self.memory.experiments() {
            teams.insert(of.team.clone());
            teams.extend(of.shared_with.iter().filter(|with| *with != "*").cloned());
        }
        Ok(teams)
    }

    /// Removals in progress.
    pub async fn removals(&self, most: u32) -> Result<Vec<Removal>, Error> {
        self.reader().removals(most).await
    }

    fn reader(&self) -> Reader<'_> {
        Reader { pool: &self.readers, backend: self.database.backend, memory: &self.memory }
    }

    async fn change(&self, change: Change) -> Result<Vec<u8>, Error> {
        let (answer, answered) = oneshot::channel();
        let sent = tokio::time::timeout(PATIENCE, self.changes.reserve()).await;
        let full =
            || Error::new(Code::Unavailable, "Too many changes wait to be written; try again");
        sent.map_err(|_| full())?.map_err(|_| stopped())?.send(Message::Change(change, answer));
        match tokio::time::timeout(PATIENCE, answered).await {
            Ok(answer) => answer.unwrap_or_else(|_| Err(stopped())),
            Err(_) => Err(Error::new(
                Code::Unavailable,
                "The change was not written in time. It may still be written; try again",
            )),
        }
    }
}

impl Store for TrackingStore {
    fn experiment(&self, no: i64) -> Option<Arc<Experiment>> {
        self.memory.experiment(no)
    }

    fn experiment_named(&self, team: &str, name: &str) -> Option<Arc<Experiment>> {
        self.memory.experiment_named(team, name)
    }

    fn experiments(&self) -> Vec<Arc<Experiment>> {
        self.memory.experiments()
    }

    fn edit(&self, change: DocChange) -> Fut<'_, Vec<u8>> {
        Box::pin(self.change(Change::Docs(change)))
    }

    fn write(&self, change: RunChange) -> Fut<'_, ()> {
        Box::pin(async { self.change(Change::Run(change)).await.map(drop) })
    }

    fn docs(&self, load: Load) -> Fut<'_, Vec<(DocKey, String)>> {
        Box::pin(async move { self.reader().docs(&load).await })
    }

    fn count(&self, kind: Kind, scope: String) -> Fut<'_, u64> {
        Box::pin(async move { self.reader().count(kind, &scope).await })
    }

    fn named(&self, kind: Kind, name: String) -> Fut<'_, Option<(DocKey, String)>> {
        Box::pin(async move { self.reader().named(kind, &name).await })
    }

    fn run_head<'a>(&'a self, id: &'a str) -> Fut<'a, Option<RunHead>> {
        Box::pin(async move { self.reader().head(id).await })
    }

    fn runs<'a>(&'a self, numbers: &'a [i64]) -> Fut<'a, Vec<Run>> {
        Box::pin(async move { self.reader().runs(numbers).await })
    }

    fn search<'a>(&'a self, query: &'a RunQuery) -> Fut<'a, Vec<i64>> {
        Box::pin(async move { self.reader().search(query).await })
    }

    fn history<'a>(&'a self, query: HistoryQuery<'a>) -> Fut<'a, Vec<Point>> {
        Box::pin(async move { self.reader().history(query).await })
    }

    fn newer<'a>(&'a self, query: NewerQuery<'a>) -> Fut<'a, Vec<Point>> {
        Box::pin(async move { self.reader().newer(query).await })
    }

    fn bests<'a>(&'a self, query: BestQuery<'a>) -> Fut<'a, Vec<Best>> {
        Box::pin(async move { self.reader().bests(query).await })
    }

    fn reached<'a>(&'a self, query: ReachedQuery<'a>) -> Fut<'a, Vec<(i64, i64)>> {
        Box::pin(async move { self.reader().reached(query).await })
    }

    fn samples<'a>(&'a self, query: SampleQuery<'a>) -> Fut<'a, Vec<Point>> {
        Box::pin(async move { self.reader().samples(query).await })
    }

    fn model_metrics<'a>(&'a self, models: &'a [String]) -> Fut<'a, Vec<ModelMetric>> {
        Box::pin(async move { self.reader().model_metrics(models).await })
    }

    fn datasets<'a>(&'a self, experiments: &'a [i64]) -> Fut<'a, Vec<DatasetSummary>> {
        Box::pin(async move { self.reader().datasets(experiments).await })
    }

    fn watch(&self) -> &Watch {
        &self.memory.watch
    }

    fn runs_that_read<'a>(&'a self, of: ReadBy<'a>, limit: usize) -> Fut<'a, Vec<i64>> {
        Box::pin(async move { self.reader().runs_that_read(of, limit).await })
    }
}
