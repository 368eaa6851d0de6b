//! The database of a test, and helpers to fill it.

use berth_testbed::Postgres;
use berth_tracker::{
    DocChange, DocSet, Error, Experiment, Kind, Metric, NewRun, Point, Run, RunChange, RunHead,
    Store, value,
};
use berth_tracker_store::{Options, TrackingStore};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use tempfile::TempDir;

/// The database of a test. Dropping this removes it.
pub struct Place {
    url: String,
    /// Of a SQLite database.
    file: Option<PathBuf>,
    _folder: Option<TempDir>,
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
        let folder = TempDir::with_prefix("berth-tracking-").unwrap();
        let file = folder.path().join("tracking.db");
        let url = format!("sqlite://{}", file.display());
        Place { url, file: Some(file), _folder: Some(folder) }
    }

    pub fn postgres() -> Place {
        static SERVER: OnceLock<Postgres> = OnceLock::new();
        let url = SERVER.get_or_init(Postgres::start).database();
        Place { url, file: None, _folder: None }
    }

    pub async fn open(&self) -> TrackingStore {
        let (url, shown, file) = self.place();
        TrackingStore::open(url, shown, file, &Options::default()).await.unwrap()
    }

    /// The URL, the URL without the password, and the file.
    pub fn place(&self) -> (&str, &str, Option<&Path>) {
        (&self.url, "a test", self.file.as_deref())
    }
}

/// Makes an experiment of a team.
pub async fn experiment(store: &TrackingStore, team: &str, name: &str) -> i64 {
    let (team, name) = (team.to_owned(), name.to_owned());
    let edit = move |docs: &mut DocSet| {
        let no = docs.next_experiment;
        docs.next_experiment += 1;
        let key = berth_tracker::DocKey {
            kind: Kind::Experiment,
            scope: team.clone(),
            name: name.clone(),
            sub: no,
        };
        let made = Experiment {
            no,
            team,
            name,
            deleted: false,
            created: 1,
            updated: 1,
            by: "ada".into(),
            tags: BTreeMap::new(),
            shared_with: Vec::new(),
        };
        docs.put(key, &made);
        Ok(no.to_string().into_bytes())
    };
    let made = store.edit(DocChange { load: Vec::new(), edit: Box::new(edit) }).await.unwrap();
    String::from_utf8(made).unwrap().parse().unwrap()
}

/// Makes a run that started at that time.
pub async fn run(store: &TrackingStore, experiment: i64, id: &str, start: i64) -> RunHead {
    let new = NewRun {
        id: id.to_owned(),
        experiment,
        name: format!("run {id}"),
        user: "ada".into(),
        by: "ada".into(),
        start,
        tags: vec![("mlflow.runName".into(), format!("run {id}"))],
    };
    store.write(RunChange::Create(new)).await.unwrap();
    store.run_head(id).await.unwrap().unwrap()
}

pub fn metric(key: &str, step: i64, value: f64) -> Metric {
    let point = Point { step, timestamp: 1_000 + step, value: value::encode(value) };
    Metric { key: key.to_owned(), point, model: None }
}

pub fn pair(key: &str, value: &str) -> (String, String) {
    (key.to_owned(), value.to_owned())
}

pub async fn log(
    store: &TrackingStore,
    run: &RunHead,
    metrics: Vec<Metric>,
    params: Vec<(String, String)>,
    tags: Vec<(String, String)>,
) -> Result<(), Error> {
    store.write(RunChange::Log { run: run.clone(), metrics, params, tags }).await
}

pub async fn read(store: &TrackingStore, run: &RunHead) -> Run {
    store.runs(&[run.no]).await.unwrap().pop().unwrap()
}
