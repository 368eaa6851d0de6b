//! Finds the experiments of the source, and what the target already has of them.

use super::Copy;
use crate::error::{Error, Result};
use crate::model::{Experiment, Pairs};
use crate::report::Report;
use crate::sink::Write;
use crate::tags;
use futures_util::{StreamExt, TryStreamExt};
use std::collections::BTreeMap;

/// An experiment of the source and its counterpart.
pub struct Pair {
    pub from: Experiment,
    pub name: String,
    pub to: Option<Experiment>,
}

impl Pair {
    /// The experiment at the target.
    pub fn open(&self) -> Option<&Experiment> {
        self.to.as_ref().filter(|to| !to.deleted)
    }
}

impl Copy<'_> {
    pub(super) async fn plan(&self) -> Result<Vec<Pair>> {
        let mut all = self.source.experiments().await?;
        self.problems.must_be_none(self.options.strict)?;
        let wanted = &self.options.experiments;
        if let Some(absent) = wanted.iter().find(|name| all.iter().all(|one| one.name != **name)) {
            let mut names: Vec<&str> = all.iter().map(|one| one.name.as_str()).collect();
            names.sort_unstable();
            names.truncate(20);
            let said = format!(
                "there is no experiment `{absent}` at {}; there are {}",
                self.source.name(),
                names.join(", ")
            );
            return Err(Error::Absent(said));
        }
        all.retain(|one| wanted.is_empty() || wanted.contains(&one.name));
        let there: BTreeMap<String, Experiment> =
            self.sink.experiments().await?.into_iter().map(|one| (one.name.clone(), one)).collect();
        let pairs: Vec<Pair> = all
            .into_iter()
            .map(|from| {
                let name = format!("{}{}", self.options.prefix, from.name);
                let to = there.get(&name).cloned();
                Pair { from, name, to }
            })
            .collect();
        for to in pairs.iter().filter_map(|pair| pair.to.as_ref()) {
            self.look_at(to).await?;
        }
        self.must_go_on_only_if_asked()?;
        Ok(pairs)
    }

    /// Loads what earlier imports moved into an experiment.
    async fn look_at(&self, to: &Experiment) -> Result<()> {
        let mut runs = self.sink.runs(to);
        while let Some(page) = runs.next().await {
            let page = page?;
            let mut map = self.map.borrow_mut();
            page.iter().for_each(|run| map.note_run(run, self.source.name()));
        }
        let mut models = self.sink.logged_models(to);
        while let Some(page) = models.next().await {
            let page = page?;
            let mut map = self.map.borrow_mut();
            page.iter().for_each(|model| map.note_model(model));
        }
        Ok(())
    }

    fn must_go_on_only_if_asked(&self) -> Result<()> {
        let map = self.map.borrow();
        let there = map.runs.values().filter(|known| known.same_source).count();
        if there == 0 || self.options.resume || self.options.dry_run {
            return Ok(());
        }
        let said = format!(
            "{there} runs of {} are at {} already; --resume moves only what is not there yet",
            self.source.name(),
            self.sink.name()
        );
        Err(Error::Begun(said))
    }

    /// Counts what an import would move.
    pub(super) async fn count(&self, pairs: &[Pair], report: &mut Report) -> Result<()> {
        for pair in pairs {
            let mut of = self.report_of(pair);
            let mut runs = self.source.runs(&pair.from);
            while let Some(page) = runs.next().await {
                for run in page? {
                    let map = self.map.borrow();
                    match map.runs.contains_key(&run.id) {
                        true => of.runs_before += 1,
                        false => of.runs += 1,
                    }
                }
            }
            let logged: Vec<_> = self.source.logged_models(&pair.from).try_concat().await?;
            let map = self.map.borrow();
            let new = logged.iter().filter(|one| !map.models.contains_key(&one.id));
            of.logged_models = new.count() as u64;
            report.experiments.push(of);
        }
        let mut models = self.source.registered_models();
        while let Some(page) = models.next().await {
            for model in page?.iter().filter(|model| self.options.wants_model(&model.name)) {
                report.registered.models += 1;
                report.registered.aliases += model.aliases.len() as u64;
                let versions = self.source.versions(&model.name).await?;
                report.registered.versions += versions.len() as u64;
            }
        }
        Ok(())
    }

    pub(super) async fn make_experiments(&self, pairs: &mut [Pair]) -> Result<()> {
        for pair in pairs {
            let what = || format!("experiment {}", pair.from.name);
            let is_new = pair.to.is_none();
            if is_new {
                let tags = self.own_tags(&pair.from);
                let made = self.sink.create_experiment(&pair.name, &pair.from.id, tags).await;
                pair.to = self.note(what, made)?;
            }
            let Some(to) = &pair.to else { continue };
            if to.deleted {
                if !pair.from.deleted {
                    let why = "at the target an experiment of this name is deleted; restore it \
                               there, or use --prefix";
                    self.problems.add(what(), why);
                }
                continue;
            }
            for tag in pair.from.tags.iter().filter(|(key, _)| !tags::is_own(key)) {
                // Keep the tags of an existing experiment.
                if tags::value(&to.tags, &tag.0).is_some() {
                    continue;
                }
                let tagged =
                    self.sink.write(Write::TagExperiment(to, std::slice::from_ref(tag))).await;
                self.note(|| format!("tag {} of {}", tag.0, what()), tagged)?;
            }
        }
        Ok(())
    }

    fn own_tags(&self, from: &Experiment) -> Pairs {
        let mut tags = vec![
            (tags::SOURCE.to_owned(), self.source.name().to_owned()),
            (tags::EXPERIMENT.to_owned(), from.id.clone()),
        ];
        if let Some(at) = from.created {
            tags.push((tags::CREATED.to_owned(), at.to_string()));
        }
        tags
    }

    /// A deleted experiment takes no runs, so delete it last.
    pub(super) async fn delete_experiments(&self, pairs: &[Pair]) -> Result<()> {
        for pair in pairs.iter().filter(|pair| pair.from.deleted) {
            if let Some(to) = pair.open() {
                let deleted = self.sink.write(Write::DeleteExperiment(to)).await;
                self.note(|| format!("deletion of experiment {}", pair.from.name), deleted)?;
            }
        }
        Ok(())
    }
}
