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

/// A change that has no answer.
pub enum Write<'a> {
    TagExperiment(&'a Experiment, &'a [(String, String)]),
    DeleteExperiment(&'a Experiment),
    /// Comes before the points of a run, which the target may have in part.
    BeginPoints(&'a Target),
    Points(&'a Target, &'a [Metric]),
    Params(&'a Target, &'a [(String, String)]),
    Tags(&'a Target, &'a [(String, String)]),
    Datasets(&'a Target, &'a [Dataset]),
    /// The logged models that a run has read, and those that it has made, with the step.
    Models(&'a Target, &'a [String], &'a [(String, i64)]),
    /// The status and the time of the end.
    EndRun(&'a Target, &'a str, Option<i64>),
    DeleteRun(&'a Target),
    /// Metrics of a logged model, which a run has logged.
    ModelMetrics((&'a Experiment, &'a str), &'a str, &'a [ModelMetric]),
    /// The status of a logged model, and its last tags.
    EndModel((&'a Experiment, &'a str), &'a str, Pairs),
    /// A registered model of this name.
    RegisteredModel(&'a str, &'a RegisteredModel, Pairs),
    Stage(&'a str, u64, &'a str),
    Alias(&'a str, &'a str, u64),
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
    fn create_run<'a>(&'a self, of: &'a Experiment, new: NewRun<'a>) -> Fut<'a, Target>;
    /// Creates a logged model. Its run and tags already refer to the target.
    fn create_logged_model<'a>(
        &'a self,
        of: &'a Experiment,
        model: &'a LoggedModel,
        run: Option<&'a str>,
        tags: Pairs,
    ) -> Fut<'a, (String, Place)>;
    /// Creates a version with its original number, if that is free.
    fn create_version<'a>(&'a self, new: NewVersion<'a>) -> Fut<'a, u64>;
    /// Makes a change that has no answer.
    fn write<'a>(&'a self, write: Write<'a>) -> Fut<'a, ()>;

    /// Writes a whole file. `open` reopens it for each attempt.
    fn put<'a>(
        &'a self,
        place: &'a Place,
        path: &'a str,
        open: &'a (dyn Fn() -> Fut<'a, Content> + 'a),
    ) -> Fut<'a, ()>;
}
