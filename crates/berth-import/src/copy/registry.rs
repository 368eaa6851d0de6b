//! Registered models, their versions, stages and aliases.

use super::Copy;
use crate::error::Result;
use crate::model::{Pairs, RegisteredModel, Version};
use crate::report::ModelsReport;
use crate::sink::{NewVersion, Write};
use crate::tags;
use futures_util::{StreamExt, TryStreamExt};
use std::collections::BTreeMap;

/// The maximum length of a chain of copied versions.
const LONGEST_CHAIN: usize = 16;

/// The source of a version at the target.
struct Files {
    source: String,
    logged_model: Option<String>,
    /// The files are missing.
    are_lost: bool,
}

impl Copy<'_> {
    pub(super) async fn copy_registry(&self) -> Result<ModelsReport> {
        let mut report = ModelsReport::default();
        if !self.options.models.is_empty() || self.options.experiments.is_empty() {
            self.watch.begin("registered models", None);
            let there: BTreeMap<String, RegisteredModel> = self
                .sink
                .registered_models()
                .map_ok(|page| page.into_iter().map(|one| (one.name.clone(), one)).collect())
                .try_collect::<Vec<Vec<_>>>()
                .await?
                .into_iter()
                .flatten()
                .collect();
            let mut pages = self.source.registered_models();
            while let Some(page) = pages.next().await {
                for model in page? {
                    if self.options.wants_model(&model.name) {
                        let name = format!("{}{}", self.options.prefix, model.name);
                        self.copy_model(&model, &name, there.get(&name), &mut report).await?;
                        self.watch.advance(1);
                    }
                }
            }
        }
        Ok(report)
    }

    async fn copy_model(
        &self,
        model: &RegisteredModel,
        name: &str,
        there: Option<&RegisteredModel>,
        report: &mut ModelsReport,
    ) -> Result<()> {
        let what = || format!("model {}", model.name);
        let from = there.map(|there| tags::value(&there.tags, tags::REGISTERED));
        match from {
            Some(from) if from != Some(model.name.as_str()) => {
                let why = format!("at the target there is another model {name}; use --prefix");
                self.problems.add(what(), why);
                return self.problems.must_be_none(self.options.strict);
            }
            Some(_) => {}
            None => {
                let made =
                    self.sink.write(Write::RegisteredModel(name, model, self.tags_of(model))).await;
                if self.note(what, made)?.is_none() {
                    return Ok(());
                }
                report.models += 1;
            }
        }
        let known = self.sink.versions(name).await?;
        let known: BTreeMap<u64, &Version> = known
            .iter()
            .filter_map(|one| Some((tags::value(&one.tags, tags::VERSION)?.parse().ok()?, one)))
            .collect();
        let mut numbers = BTreeMap::new();
        for version in self.source.versions(&model.name).await? {
            let what = || format!("version {} of model {}", version.version, model.name);
            let there = known.get(&version.version);
            let number = match there {
                Some(there) => {
                    report.versions_before += 1;
                    there.version
                }
                None => {
                    let made = self.copy_version(name, &model.name, &version).await;
                    let Some(number) = self.note(what, made)? else { continue };
                    report.versions += 1;
                    number
                }
            };
            numbers.insert(version.version, number);
            let stage = there.map_or("None", |there| &there.stage);
            if stage != version.stage {
                let set = self.sink.write(Write::Stage(name, number, &version.stage)).await;
                self.note(|| format!("stage {} of {}", version.stage, what()), set)?;
            }
        }
        for (alias, version) in &model.aliases {
            let Some(number) = numbers.get(version) else { continue };
            let same = (alias.clone(), *number);
            if there.is_some_and(|there| there.aliases.contains(&same)) {
                continue;
            }
            let set = self.sink.write(Write::Alias(name, alias, *number)).await;
            self.note(|| format!("alias {alias} of {}", what()), set)?;
            report.aliases += 1;
        }
        Ok(())
    }

    fn tags_of(&self, model: &RegisteredModel) -> Pairs {
        let own = model.tags.iter().filter(|(key, _)| !tags::is_own(key));
        let mut all: Pairs = own.cloned().collect();
        all.push((tags::REGISTERED.to_owned(), model.name.clone()));
        all.push((tags::SOURCE.to_owned(), self.source.name().to_owned()));
        if let Some(at) = model.created {
            all.push((tags::CREATED.to_owned(), at.to_string()));
        }
        all
    }

    async fn copy_version(&self, name: &str, from: &str, version: &Version) -> Result<u64> {
        let files = self.files_of(version).await?;
        let own = version.tags.iter().filter(|(key, _)| !tags::is_own(key));
        let mut tags: Pairs = own.cloned().collect();
        tags.push((tags::VERSION.to_owned(), version.version.to_string()));
        tags.push((tags::FILES.to_owned(), version.source.clone()));
        let maybe = [
            (tags::RUN, version.run.clone()),
            (tags::USER, version.user.clone()),
            (tags::CREATED, version.created.map(|at| at.to_string())),
        ];
        tags.extend(maybe.into_iter().filter_map(|(key, said)| Some((key.to_owned(), said?))));
        let run = version.run.as_deref();
        let run = run.and_then(|run| self.map.borrow().run(run).map(str::to_owned));
        let new = NewVersion {
            model: name,
            version: version.version,
            source: &files.source,
            run: run.as_deref(),
            run_link: version.run_link.as_deref(),
            logged_model: files.logged_model.as_deref(),
            description: &version.description,
            tags,
        };
        let number = self.sink.create_version(new).await?;
        if files.are_lost {
            let what = format!("files of version {} of model {from}", version.version);
            let why = format!("{} is of no run and no logged model that was moved", version.source);
            self.problems.add(what, why);
        }
        Ok(number)
    }

    async fn files_of(&self, version: &Version) -> Result<Files> {
        let mut of = version.clone();
        for _ in 0..LONGEST_CHAIN {
            if let Some(found) = self.moved(&of) {
                return Ok(found);
            }
            // A copied version has the files of its original.
            let Some((name, number)) =
                of.source.strip_prefix("models:/").and_then(|rest| rest.split_once('/'))
            else {
                break;
            };
            let number: Option<u64> = number.parse().ok();
            let all = self.source.versions(name).await?;
            match all.into_iter().find(|one| Some(one.version) == number) {
                Some(other) => of = other,
                None => break,
            }
        }
        // Keep a URI of a bucket. A path of another machine is not valid here.
        let source = &version.source;
        let is_elsewhere = source.contains("://")
            && !["file:", "mlflow-artifacts:"].iter().any(|start| source.starts_with(start))
            && !source.contains("..");
        Ok(match is_elsewhere {
            true => Files { source: source.clone(), logged_model: None, are_lost: false },
            false => Files {
                source: format!("lost:{}", source.replace("..", "")),
                logged_model: None,
                are_lost: true,
            },
        })
    }

    /// The URI of the source of a version, if the import has moved it.
    fn moved(&self, version: &Version) -> Option<Files> {
        let map = self.map.borrow();
        let source = &version.source;
        let of_model = |id: &str| {
            let id = map.model(id)?.to_owned();
            let source = format!("models:/{id}");
            Some(Files { source, logged_model: Some(id), are_lost: false })
        };
        let of_run = |run: &str, path: &str| {
            let run = map.run(run)?;
            let source = format!("runs:/{run}/{}", path.trim_matches('/'));
            Some(Files { source, logged_model: None, are_lost: false })
        };
        let rest = source.strip_prefix("models:/").filter(|rest| !rest.contains('/'));
        let by_address =
            source.rsplit_once("/models/").and_then(|(_, rest)| rest.split('/').next());
        let named = version.model.as_deref().or(rest);
        if let Some(found) = named.and_then(of_model).or_else(|| by_address.and_then(of_model)) {
            return Some(found);
        }
        if let Some(rest) = source.strip_prefix("runs:/") {
            let (run, path) = rest.split_once('/').unwrap_or((rest, ""));
            return of_run(run, path);
        }
        let run = version.run.as_deref()?;
        let (_, path) = source.split_once(&format!("/{run}/artifacts"))?;
        of_run(run, path)
    }
}
