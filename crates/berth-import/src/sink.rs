//! The trait of writable places.

use crate::model::{
    Content, Dataset, Experiment, LoggedModel, Metric, ModelMetric, Pairs, Place, RegisteredModel,
};
use crate::source::{Fut, Source};

/// A run at the target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Target {
    pub experiment: String,
    pub id: String,
    pub place: Place,
}

pub struct NewRun<'a> {
    /// Its id at the source.
    pub id: &'a str,
    pub name: &'a str,
    pub user: &'a str,
    pub start: Option<i64>,
    pub tags: Pairs,
}

pub struct NewVersion<'a> {
    pub model: &'a str,
    /// The number at the source.
    pub version: u64,
    pub source: &'a str,
    pub run: Option<&'a str>,
    pub run_link: Option<&'a str>,
    pub logged_model: Option<&'a str>,
    pub description: &'a str,
    pub tags: Pairs,
}

/// The target truncates longer texts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Cuts {
    pub param: usize,
    pub tag: usize,
    pub name: usize,
}

impl Cuts {
    pub const NONE: Cuts = Cuts { param: usize::MAX, tag: usize::MAX, name: usize::MAX };
}

/// A writable place. All its writes are idempotent.
pub trait Sink: Source {
    fn cuts(&self) -> Cuts;

    fn create_experiment<'a>(
        &'a self,
        name: &'a str,
        id: &'a str,
        tags: Pairs,
    ) -> Fut<'a, Experiment>;
    fn tag_experiment<'a>(&'a self, of: &'a Experiment, tags: &'a Pairs) -> Fut<'a, ()>;
    fn delete_experiment<'a>(&'a self, of: &'a Experiment) -> Fut<'a, ()>;

    fn create_run<'a>(&'a self, of: &'a Experiment, new: NewRun<'a>) -> Fut<'a, Target>;
    /// Called before sending the points of a run, which the target may have in part.
    fn begin_points<'a>(&'a self, _run: &'a Target) -> Fut<'a, ()> {
        Box::pin(async { Ok(()) })
    }
    fn log_points<'a>(&'a self, run: &'a Target, metrics: &'a [Metric]) -> Fut<'a, ()>;
    fn log_params<'a>(&'a self, run: &'a Target, params: &'a [(String, String)]) -> Fut<'a, ()>;
    fn log_tags<'a>(&'a self, run: &'a Target, tags: &'a [(String, String)]) -> Fut<'a, ()>;
    fn log_datasets<'a>(&'a self, run: &'a Target, datasets: &'a [Dataset]) -> Fut<'a, ()>;
    fn log_models<'a>(
        &'a self,
        run: &'a Target,
        reads: &'a [String],
        makes: &'a [(String, i64)],
    ) -> Fut<'a, ()>;
    fn end_run<'a>(&'a self, run: &'a Target, status: &'a str, end: Option<i64>) -> Fut<'a, ()>;
    fn delete_run<'a>(&'a self, run: &'a Target) -> Fut<'a, ()>;

    /// Creates a logged model. Its run and tags already refer to the target.
    fn create_logged_model<'a>(
        &'a self,
        of: &'a Experiment,
        model: &'a LoggedModel,
        run: Option<&'a str>,
        tags: Pairs,
    ) -> Fut<'a, (String, Place)>;
    fn log_model_metrics<'a>(
        &'a self,
        of: (&'a Experiment, &'a str),
        run: &'a str,
        metrics: &'a [ModelMetric],
    ) -> Fut<'a, ()>;
    fn end_logged_model<'a>(
        &'a self,
        of: (&'a Experiment, &'a str),
        status: &'a str,
        tags: Pairs,
    ) -> Fut<'a, ()>;

    fn create_registered_model<'a>(
        &'a self,
        name: &'a str,
        model: &'a RegisteredModel,
        tags: Pairs,
    ) -> Fut<'a, ()>;
    /// Creates a version with its original number, if that is free.
    fn create_version<'a>(&'a self, new: NewVersion<'a>) -> Fut<'a, u64>;
    fn set_stage<'a>(&'a self, model: &'a str, version: u64, stage: &'a str) -> Fut<'a, ()>;
    fn set_alias<'a>(&'a self, model: &'a str, alias: &'a str, version: u64) -> Fut<'a, ()>;

    /// Writes a whole file. `open` reopens it for each attempt.
    fn put<'a>(
        &'a self,
        place: &'a Place,
        path: &'a str,
        open: &'a (dyn Fn() -> Fut<'a, Content> + 'a),
    ) -> Fut<'a, ()>;
}
