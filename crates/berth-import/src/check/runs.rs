//! Runs on both sides.

use super::Part;
use super::entities::{
    DATASETS, Entity, HEAD, MODELS, PARAMS, POINTS, Side, Summed, TAGS, pairs_part, part, text_part,
};
use crate::copy::{Copy, cut};
use crate::error::Result;
use crate::model::{Experiment, Pairs, Run};
use crate::sink::Cuts;
use crate::source::{Fut, Pages, Source};
use crate::sums::SetSum;
use crate::tags;
use futures_util::StreamExt;

impl Entity for Run {
    const TAG: &'static str = tags::RUN;

    fn pages<'a>(at: &'a dyn Source, of: &'a Experiment) -> Pages<'a, Run> {
        at.runs(of)
    }

    fn id(&self) -> &str {
        &self.id
    }

    fn tags(&self) -> &Pairs {
        &self.tags
    }

    fn into_target_terms(mut self, copy: &Copy<'_>, experiment: &Experiment) -> Run {
        let map = copy.map.borrow();
        let model = |id: &String| map.model(id).map(str::to_owned);
        self.reads = self.reads.iter().filter_map(model).collect();
        self.makes = self.makes.iter().filter_map(|(id, at)| Some((model(id)?, *at))).collect();
        for (key, value) in &mut self.tags {
            if key == tags::PARENT
                && let Some(new) = map.run(value)
            {
                new.clone_into(value);
            }
        }
        self.deleted |= experiment.deleted;
        self
    }

    fn sum<'a>(&'a self, copy: &'a Copy<'_>, at: &'a dyn Source, id: String) -> Fut<'a, Summed> {
        Box::pin(copy.sum_run(at, self, id))
    }

    fn add(side: &mut Side, summed: &Summed) {
        side.add_run(summed);
    }

    fn what(of: &Experiment, id: &str) -> String {
        format!("run {id} of experiment {}", of.name)
    }
}

impl Copy<'_> {
    async fn sum_run(&self, at: &dyn Source, run: &Run, id: String) -> Result<Summed> {
        let Cuts { param, tag, name } = self.sink.cuts();
        let stage = if run.deleted { "deleted" } else { "active" };
        let times = format!("{:?} {:?}", run.start.unwrap_or(0), run.end);
        // The target generates names and start times that the source lacks.
        let shown = if run.name.is_empty() { "" } else { cut(&run.name, name) };
        let goes = |key: &str| !tags::is_own(key) && key != tags::RUN_NAME;
        let (files, bytes) = self.sum_files(at, &run.place, &format!("run {id}")).await?;
        let parts = vec![
            text_part(HEAD, &[shown, &run.status, stage, &times]),
            pairs_part(PARAMS, &run.params, param, |_| true),
            pairs_part(TAGS, &run.tags, tag, goes),
            self.sum_points(at, run, &id).await?,
            sum_datasets(run),
            sum_models(run),
            files,
        ];
        Ok(Summed { id, parts, bytes })
    }

    async fn sum_points(&self, at: &dyn Source, run: &Run, id: &str) -> Result<Part> {
        let mut sum = SetSum::default();
        for key in &run.metrics {
            let mut pages = at.points(run, key);
            while let Some(page) = pages.next().await {
                let what = || format!("metric {key} of run {id}");
                let Some(page) = self.note(what, page)? else { break };
                page.iter().for_each(|point| sum.put(&[key.as_bytes(), &point.bytes()]));
            }
        }
        Ok(part(POINTS, sum))
    }
}

fn sum_datasets(run: &Run) -> Part {
    let mut sum = SetSum::default();
    for one in &run.datasets {
        let mut texts: Vec<&str> = vec![
            &one.name,
            &one.digest,
            &one.source_type,
            &one.source,
            one.schema.as_deref().unwrap_or_default(),
            one.profile.as_deref().unwrap_or_default(),
        ];
        let mut tags: Vec<_> = one.tags.iter().collect();
        tags.sort();
        texts.extend(tags.iter().flat_map(|(key, value)| [key.as_str(), value.as_str()]));
        let texts: Vec<&[u8]> = texts.iter().map(|text| text.as_bytes()).collect();
        sum.put(&texts);
    }
    part(DATASETS, sum)
}

fn sum_models(run: &Run) -> Part {
    let mut sum = SetSum::default();
    run.reads.iter().for_each(|id| sum.put(&[b"read", id.as_bytes()]));
    run.makes.iter().for_each(|(id, step)| sum.put(&[b"made", id.as_bytes(), &step.to_be_bytes()]));
    part(MODELS, sum)
}
