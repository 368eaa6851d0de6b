//! Logged models, with their metrics and files.

use super::map::KnownModel;
use super::{Copy, Pair};
use crate::error::Result;
use crate::model::{Experiment, LoggedModel, ModelMetric, Pairs};
use crate::sink::Write;
use crate::tags;
use futures_util::{StreamExt, stream};
use std::collections::BTreeMap;

/// The maximum number of metrics in one request.
const METRICS: usize = 1000;

impl Copy<'_> {
    /// The number of new models.
    pub(super) async fn copy_logged_models(&self, pair: &Pair) -> Result<u64> {
        let Some(to) = pair.open() else { return Ok(0) };
        let mut made = 0;
        let mut pages = self.source.logged_models(&pair.from);
        while let Some(page) = pages.next().await {
            let page = page?;
            let work = page.iter().map(|model| self.copy_logged_model(to, model));
            let mut work = stream::iter(work).buffer_unordered(self.options.at_once.max(1));
            while let Some(is_new) = work.next().await {
                made += u64::from(is_new?);
            }
            self.problems.must_be_none(self.options.strict)?;
        }
        Ok(made)
    }

    async fn copy_logged_model(&self, to: &Experiment, model: &LoggedModel) -> Result<bool> {
        let what = || format!("logged model {}", model.id);
        let known = self.map.borrow().models.get(&model.id).cloned();
        if known.as_ref().is_some_and(|known| known.done) {
            return Ok(false);
        }
        let is_new = known.is_none();
        let known = match known {
            Some(known) => known,
            None => {
                let run = self.run_of(model.run.as_deref());
                let tags = self.tags_of_model(model);
                let made = self.sink.create_logged_model(to, model, run.as_deref(), tags).await;
                let Some((id, place)) = self.note(what, made)? else { return Ok(false) };
                let known = KnownModel { id, place, done: false };
                self.map.borrow_mut().models.insert(model.id.clone(), known.clone());
                known
            }
        };
        self.send_model_metrics((to, &known.id), model).await?;
        self.send_files(&what(), (&model.place, &known.place), is_new).await?;
        let done = vec![(tags::STATE.to_owned(), "done".to_owned())];
        let ended = self.sink.write(Write::EndModel((to, &known.id), &model.status, done)).await;
        self.note(what, ended)?;
        Ok(is_new)
    }

    fn run_of(&self, run: Option<&str>) -> Option<String> {
        self.map.borrow().run(run?).map(str::to_owned)
    }

    fn tags_of_model(&self, model: &LoggedModel) -> Pairs {
        let own = model.tags.iter().filter(|(key, _)| !tags::is_own(key));
        let mut all: Pairs = own.cloned().collect();
        for (_, value) in all.iter_mut().filter(|(key, _)| key == tags::VERSIONS) {
            *value = tags::renamed_versions(value, &self.options.prefix);
        }
        all.push((tags::MODEL.to_owned(), model.id.clone()));
        all.push((tags::SOURCE.to_owned(), self.source.name().to_owned()));
        if let Some(at) = model.created {
            all.push((tags::CREATED.to_owned(), at.to_string()));
        }
        all
    }

    async fn send_model_metrics(&self, of: (&Experiment, &str), model: &LoggedModel) -> Result<()> {
        let mut by_run: BTreeMap<&str, Vec<ModelMetric>> = BTreeMap::new();
        for metric in &model.metrics {
            by_run.entry(&metric.run).or_default().push(metric.clone());
        }
        for (run, metrics) in by_run {
            let what =
                |one: &ModelMetric| format!("metric {} of logged model {}", one.key, model.id);
            let known = self.map.borrow().runs.get(run).map(|known| known.target.id.clone());
            let Some(run) = known else {
                let why = format!("run {run}, which has logged it, was not moved");
                self.problems.add(what(&metrics[0]), why);
                continue;
            };
            for some in metrics.chunks(METRICS) {
                let send = |some| self.sink.write(Write::ModelMetrics(of, &run, some));
                self.send(some, what, send).await?;
            }
        }
        Ok(())
    }
}
