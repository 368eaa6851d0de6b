//! Runs, without their references to other entities.

use super::map::{Known, print, progress};
use super::send::{batches, cut, cut_all};
use super::{Copy, Pair};
use crate::error::Result;
use crate::model::{Experiment, Metric, Pairs, Run};
use crate::report::ExperimentReport;
use crate::sink::{NewRun, Target, Write};
use crate::tags::{self, state};
use futures_util::{StreamExt, stream};

/// The maximum number of points in one request.
const POINTS: usize = 1000;

/// A copied run whose references are still missing.
pub struct Pending {
    pub id: String,
    pub to: Target,
    pub print: Option<String>,
    pub reads: Vec<String>,
    pub makes: Vec<(String, i64)>,
    pub parent: Option<String>,
    pub deleted: bool,
}

enum Done {
    New,
    /// The target already had the run.
    Before,
    /// The copy of the run failed.
    Left,
}

impl Copy<'_> {
    pub(super) async fn copy_runs(
        &self,
        pair: &Pair,
        pending: &mut Vec<Pending>,
    ) -> Result<ExperimentReport> {
        let mut report = self.report_of(pair);
        self.watch.begin(&pair.from.name, None);
        let mut pages = self.source.runs(&pair.from);
        while let Some(page) = pages.next().await {
            let page = page?;
            let work = page.iter().map(|run| self.copy_run(pair, run));
            let mut work = stream::iter(work).buffer_unordered(self.options.at_once.max(1));
            while let Some(done) = work.next().await {
                let (done, more) = done?;
                pending.extend(more);
                match done {
                    Done::New => report.runs += 1,
                    Done::Before => report.runs_before += 1,
                    Done::Left => {}
                }
                self.watch.advance(1);
            }
            self.problems.must_be_none(self.options.strict)?;
        }
        Ok(report)
    }

    async fn copy_run(&self, pair: &Pair, run: &Run) -> Result<(Done, Option<Pending>)> {
        let what = || format!("run {}", run.id);
        let known = self.map.borrow().runs.get(&run.id).cloned();
        let print = print(run);
        let (has_data, is_done) =
            known.as_ref().map_or((false, false), |known| progress(known, print.as_deref()));
        if is_done {
            return Ok((Done::Before, None));
        }
        let Some(to) = pair.open() else {
            let done = if known.is_some() { Done::Before } else { Done::Left };
            return Ok((done, None));
        };
        if known.as_ref().is_some_and(|known| known.deleted) {
            // The import deleted it after the copy, like the source, or a user has deleted it since.
            if !run.deleted {
                self.problems.add(what(), "it was deleted at the target, and stays so");
            }
            return Ok((Done::Before, None));
        }
        let is_new = known.is_none();
        let target = match known {
            Some(known) => known.target,
            None => {
                let made = self.make_run(to, run).await;
                let Some(target) = self.note(what, made)? else { return Ok((Done::Left, None)) };
                self.know(run, &target);
                target
            }
        };
        if !has_data {
            self.send_data(run, &target, is_new).await?;
        }
        let pending = Pending {
            id: run.id.clone(),
            to: target,
            print,
            reads: run.reads.clone(),
            makes: run.makes.clone(),
            parent: tags::value(&run.tags, tags::PARENT).map(str::to_owned),
            deleted: run.deleted,
        };
        let done = if is_new { Done::New } else { Done::Before };
        // Most runs have no references, or only to finished runs, so complete them now.
        let parent = pending.parent.as_deref();
        let parent_is_there = parent.is_none_or(|id| self.map.borrow().run(id).is_some());
        if pending.reads.is_empty() && pending.makes.is_empty() && parent_is_there {
            self.finish(&pending).await?;
            return Ok((done, None));
        }
        if let (Some(print), false) = (&pending.print, has_data) {
            let tag = [(tags::STATE.to_owned(), state::data(print))];
            self.sink.write(Write::Tags(&pending.to, &tag)).await?;
        }
        Ok((done, Some(pending)))
    }

    async fn make_run(&self, to: &Experiment, run: &Run) -> Result<Target> {
        let tags = vec![
            (tags::RUN.to_owned(), run.id.clone()),
            (tags::SOURCE.to_owned(), self.source.name().to_owned()),
        ];
        let name = cut(&run.name, self.sink.cuts().name);
        let new = NewRun { id: &run.id, name, user: &run.user, start: run.start, tags };
        self.sink.create_run(to, new).await
    }

    fn know(&self, run: &Run, target: &Target) {
        let known = Known {
            target: target.clone(),
            state: String::new(),
            deleted: false,
            same_source: true,
        };
        self.map.borrow_mut().runs.insert(run.id.clone(), known);
    }

    async fn send_data(&self, run: &Run, to: &Target, is_new: bool) -> Result<()> {
        let (id, cuts) = (&run.id, self.sink.cuts());
        let params = cut_all(&run.params, cuts.param);
        for some in batches(&params) {
            let what = |(key, _): &(String, String)| format!("param {key} of run {id}");
            self.send(some, what, |some| self.sink.write(Write::Params(to, some))).await?;
        }
        let tags = cut_all(&tags_of(run), cuts.tag);
        for some in batches(&tags) {
            let what = |(key, _): &(String, String)| format!("tag {key} of run {id}");
            self.send(some, what, |some| self.sink.write(Write::Tags(to, some))).await?;
        }
        self.send_points(run, to).await?;
        let what = |one: &crate::Dataset| format!("data set {} of run {id}", one.name);
        let send = |some| self.sink.write(Write::Datasets(to, some));
        self.send(&run.datasets, what, send).await?;
        self.send_files(&format!("run {id}"), (&run.place, &to.place), is_new).await?;
        if run.status != "RUNNING" || run.end.is_some() {
            let ended = self.sink.write(Write::EndRun(to, &run.status, run.end)).await;
            self.note(|| format!("status {} of run {id}", run.status), ended)?;
        }
        Ok(())
    }

    async fn send_points(&self, run: &Run, to: &Target) -> Result<()> {
        self.sink.write(Write::BeginPoints(to)).await?;
        let mut waiting: Vec<Metric> = Vec::with_capacity(POINTS);
        for key in &run.metrics {
            let mut pages = self.source.points(run, key);
            while let Some(page) = pages.next().await {
                let what = || format!("metric {key} of run {}", run.id);
                let Some(page) = self.note(what, page)? else { break };
                for point in page {
                    waiting.push(Metric { key: key.clone(), point });
                    if waiting.len() == POINTS {
                        self.send_some_points(run, to, &waiting).await?;
                        waiting.clear();
                    }
                }
            }
        }
        self.send_some_points(run, to, &waiting).await
    }

    async fn send_some_points(&self, run: &Run, to: &Target, some: &[Metric]) -> Result<()> {
        let what = |one: &Metric| format!("metric {} of run {}", one.key, run.id);
        self.send(some, what, |some| self.sink.write(Write::Points(to, some))).await
    }
}

/// The tags of a run to copy unchanged.
fn tags_of(run: &Run) -> Pairs {
    let goes = |key: &str| !tags::is_own(key) && key != tags::PARENT && key != tags::RUN_NAME;
    run.tags.iter().filter(|(key, _)| goes(key)).cloned().collect()
}
