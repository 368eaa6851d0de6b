//! Moves everything from a source to a sink.
//!
//! First the data of runs, then logged models, then references to both, so that every written id is one of
//! the target. A tag of each run has its state, so that nothing is moved twice.

mod finish;
mod logged;
mod map;
mod plan;
mod registry;
mod runs;
mod send;

pub use map::Map;
pub use plan::Pair;
pub(crate) use send::cut;

use crate::error::Result;
use crate::report::{ExperimentReport, Problems, Report};
use crate::sink::Sink;
use crate::source::Source;
use std::cell::RefCell;

/// What to compare at the end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Checked {
    /// Everything, including the bytes of files.
    Full,
    /// Everything, but only the sizes of files.
    Sizes,
    Nothing,
}

#[derive(Debug, Clone)]
pub struct Options {
    /// Only these experiments, if not empty.
    pub experiments: Vec<String>,
    /// Only these registered models. If this and the experiments are empty, all models.
    pub models: Vec<String>,
    /// The prefix of names of experiments and models at the target.
    pub prefix: String,
    /// Resumes an earlier import.
    pub resume: bool,
    pub dry_run: bool,
    /// Stops at the first problem.
    pub strict: bool,
    /// The number of runs to copy concurrently.
    pub at_once: usize,
    pub checked: Checked,
}

impl Options {
    /// Whether to copy a registered model.
    pub(crate) fn wants_model(&self, name: &str) -> bool {
        match self.models.is_empty() {
            true => self.experiments.is_empty(),
            false => self.models.iter().any(|wanted| wanted == name),
        }
    }
}

/// The observer of the progress.
pub trait Watch {
    /// Begins a step, with its size if known.
    fn begin(&self, what: &str, total: Option<u64>);
    fn advance(&self, by: u64);
}

/// An import or export in progress.
pub struct Copy<'a> {
    pub source: &'a dyn Source,
    pub sink: &'a dyn Sink,
    pub options: &'a Options,
    pub problems: &'a Problems,
    pub watch: &'a dyn Watch,
    /// The map of ids.
    pub map: RefCell<Map>,
}

impl Copy<'_> {
    /// Moves everything. Returns the experiments of both sides, to compare them.
    pub(crate) async fn run(&self) -> Result<(Vec<Pair>, Report)> {
        let mut report = Report {
            source: self.source.name().to_owned(),
            target: self.sink.name().to_owned(),
            dry_run: self.options.dry_run,
            ..Report::default()
        };
        self.watch.begin("looking", None);
        let mut pairs = self.plan().await?;
        if self.options.dry_run {
            self.count(&pairs, &mut report).await?;
            return Ok((pairs, report));
        }
        self.make_experiments(&mut pairs).await?;
        let mut pending = Vec::new();
        for pair in &pairs {
            let mut of = self.copy_runs(pair, &mut pending).await?;
            of.logged_models = self.copy_logged_models(pair).await?;
            report.experiments.push(of);
        }
        self.watch.begin("links", Some(pending.len() as u64));
        for one in &pending {
            self.finish(one).await?;
            self.watch.advance(1);
        }
        report.registered = self.copy_registry().await?;
        self.delete_experiments(&pairs).await?;
        Ok((pairs, report))
    }

    /// Records a problem of one entity and continues. Returns all other errors.
    pub(crate) fn note<T>(
        &self,
        what: impl FnOnce() -> String,
        done: Result<T>,
    ) -> Result<Option<T>> {
        match done {
            Ok(done) => Ok(Some(done)),
            Err(error) if error.is_of_one_thing() => {
                self.problems.add(what(), error.whole());
                self.problems.must_be_none(self.options.strict)?;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn report_of(&self, pair: &Pair) -> ExperimentReport {
        ExperimentReport {
            name: pair.from.name.clone(),
            target: pair.name.clone(),
            ..ExperimentReport::default()
        }
    }
}
