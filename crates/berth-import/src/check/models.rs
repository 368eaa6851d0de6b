//! Logged models on both sides.

use super::entities::{Entity, HEAD, PARAMS, Side, Summed, TAGS, pairs_part, part, text_part};
use crate::copy::Copy;
use crate::error::Result;
use crate::model::{Experiment, LoggedModel, Pairs};
use crate::source::{Fut, Pages, Source};
use crate::sums::SetSum;
use crate::tags;

impl Entity for LoggedModel {
    const TAG: &'static str = tags::MODEL;

    fn pages<'a>(at: &'a dyn Source, of: &'a Experiment) -> Pages<'a, LoggedModel> {
        at.logged_models(of)
    }

    fn id(&self) -> &str {
        &self.id
    }

    fn tags(&self) -> &Pairs {
        &self.tags
    }

    fn into_target_terms(mut self, copy: &Copy<'_>, _: &Experiment) -> LoggedModel {
        let map = copy.map.borrow();
        self.run = self.run.and_then(|run| map.run(&run).map(str::to_owned));
        // The copy has already reported metrics of missing runs as problems.
        self.metrics.retain_mut(|metric| match map.run(&metric.run) {
            Some(run) => {
                run.clone_into(&mut metric.run);
                true
            }
            None => false,
        });
        self
    }

    fn sum<'a>(&'a self, copy: &'a Copy<'_>, at: &'a dyn Source, id: String) -> Fut<'a, Summed> {
        Box::pin(copy.sum_model(at, self, id))
    }

    fn add(side: &mut Side, summed: &Summed) {
        side.add_model(summed);
    }

    fn what(_: &Experiment, id: &str) -> String {
        format!("logged model {id}")
    }
}

impl Copy<'_> {
    async fn sum_model(&self, at: &dyn Source, model: &LoggedModel, id: String) -> Result<Summed> {
        let cuts = self.sink.cuts();
        let run = model.run.as_deref().unwrap_or_default();
        let (files, bytes) =
            self.sum_files(at, &model.place, &format!("logged model {id}")).await?;
        let mut metrics = SetSum::default();
        for one in &model.metrics {
            metrics.put(&[
                one.key.as_bytes(),
                &one.point.bytes(),
                one.run.as_bytes(),
                one.dataset_name.as_bytes(),
                one.dataset_digest.as_bytes(),
            ]);
        }
        let parts = vec![
            text_part(HEAD, &[&model.name, &model.model_type, &model.status, run]),
            pairs_part(PARAMS, &model.params, cuts.param, |_| true),
            pairs_part(TAGS, &model.tags, usize::MAX, |key| {
                !tags::is_own(key) && key != tags::VERSIONS
            }),
            part("metrics", metrics),
            files,
        ];
        Ok(Summed { id, parts, bytes })
    }
}
