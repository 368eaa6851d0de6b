//! Logged models on both sides.

use super::runs::{HEAD, Side, Summed, pairs_part, part, text_part};
use super::{missing, parts};
use crate::copy::{Copy, Pair};
use crate::error::Result;
use crate::model::{Experiment, LoggedModel};
use crate::report::Report;
use crate::source::Source;
use crate::sums::SetSum;
use crate::tags;
use futures_util::StreamExt;
use std::collections::BTreeMap;

impl Copy<'_> {
    pub(super) async fn compare_models(
        &self,
        (pair, there): (&Pair, Option<&Experiment>),
        (source, target): (&mut Side, &mut Side),
        report: &mut Report,
    ) -> Result<()> {
        let mut expected = BTreeMap::new();
        let mut pages = self.source.logged_models(&pair.from);
        while let Some(page) = pages.next().await {
            for model in page? {
                let model = self.model_as_at_target(model);
                let summed = self.sum_model(self.source, &model, model.id.clone()).await?;
                source.add_model(&summed);
                expected.insert(summed.id.clone(), summed);
            }
        }
        if let Some(there) = there {
            let mut pages = self.sink.logged_models(there);
            while let Some(page) = pages.next().await {
                for model in page? {
                    let Some(id) = tags::value(&model.tags, tags::MODEL).map(str::to_owned) else {
                        continue;
                    };
                    let Some(wanted) = expected.remove(&id) else { continue };
                    let found = self.sum_model(self.sink, &model, id).await?;
                    target.add_model(&found);
                    let what = format!("logged model {}", found.id);
                    parts(&what, &wanted.parts, &found.parts, report);
                }
            }
        }
        expected.into_keys().for_each(|id| missing(format!("logged model {id}"), report));
        Ok(())
    }

    fn model_as_at_target(&self, mut model: LoggedModel) -> LoggedModel {
        let map = self.map.borrow();
        model.run = model.run.and_then(|run| map.run(&run).map(str::to_owned));
        // The copy has already reported metrics of missing runs as problems.
        model.metrics.retain_mut(|metric| match map.run(&metric.run) {
            Some(run) => {
                run.clone_into(&mut metric.run);
                true
            }
            None => false,
        });
        model
    }

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
            pairs_part("params", &model.params, cuts.param, |_| true),
            pairs_part("tags", &model.tags, usize::MAX, |key| !tags::is_own(key)),
            part("metrics", metrics),
            files,
        ];
        Ok(Summed { id, parts, bytes })
    }
}
