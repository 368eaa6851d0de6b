//! Registered models on both sides.

use super::entities::{pairs_part, part, text_part};
use super::{Part, missing, parts};
use crate::copy::Copy;
use crate::error::Result;
use crate::model::{RegisteredModel, Version};
use crate::report::Report;
use crate::sums::SetSum;
use crate::tags;
use futures_util::StreamExt;
use std::collections::BTreeMap;

impl Copy<'_> {
    pub(super) async fn compare_registry(&self, report: &mut Report) -> Result<()> {
        let mut there: BTreeMap<String, RegisteredModel> = BTreeMap::new();
        if !self.options.models.is_empty() || self.options.experiments.is_empty() {
            let mut pages = self.sink.registered_models();
            while let Some(page) = pages.next().await {
                there.extend(page?.into_iter().map(|model| (model.name.clone(), model)));
            }
        }
        let mut pages = self.source.registered_models();
        while let Some(page) = pages.next().await {
            for model in page?.iter().filter(|model| self.options.wants_model(&model.name)) {
                let name = format!("{}{}", self.options.prefix, model.name);
                let what = format!("model {}", model.name);
                let Some(found) = there.get(&name) else {
                    missing(what, report);
                    continue;
                };
                parts(&what, &sum_model(model), &sum_model(found), report);
                self.compare_versions(&model.name, &name, report).await?;
            }
        }
        Ok(())
    }

    async fn compare_versions(&self, from: &str, to: &str, report: &mut Report) -> Result<()> {
        let there: BTreeMap<u64, Version> =
            self.sink.versions(to).await?.into_iter().map(|one| (one.version, one)).collect();
        for mut version in self.source.versions(from).await? {
            let what = format!("version {} of model {from}", version.version);
            let Some(found) = there.get(&version.version) else {
                missing(what, report);
                continue;
            };
            let map = self.map.borrow();
            version.run = version.run.and_then(|run| map.run(&run).map(str::to_owned));
            parts(&what, &sum_version(&version), &sum_version(found), report);
        }
        Ok(())
    }
}

fn sum_model(model: &RegisteredModel) -> Vec<Part> {
    let mut aliases = SetSum::default();
    for (alias, version) in &model.aliases {
        aliases.put(&[alias.as_bytes(), &version.to_be_bytes()]);
    }
    vec![
        text_part("description", &[&model.description]),
        pairs_part("tags", &model.tags, usize::MAX, |key| !tags::is_own(key)),
        part("aliases", aliases),
    ]
}

fn sum_version(version: &Version) -> Vec<Part> {
    let run = version.run.as_deref().unwrap_or_default();
    vec![
        text_part("description", &[&version.description]),
        text_part("stage", &[&version.stage]),
        text_part("run", &[run]),
        pairs_part("tags", &version.tags, usize::MAX, |key| !tags::is_own(key)),
    ]
}
