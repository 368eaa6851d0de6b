//! Runs on both sides.

use super::{Part, missing, parts};
use crate::copy::{Checked, Copy, Pair, cut};
use crate::error::{Error, Result};
use crate::model::{Experiment, Place, Run};
use crate::report::{Report, Totals};
use crate::sink::Cuts;
use crate::source::Source;
use crate::sums::{FileSum, SetSum, sum_of};
use crate::tags;
use futures_util::{StreamExt, TryStreamExt, stream};
use std::collections::BTreeMap;

/// One side of an experiment.
#[derive(Default)]
pub struct Side {
    totals: Totals,
    sum: SetSum,
}

impl Side {
    pub fn totals(self) -> Totals {
        Totals { sha256: hex::encode(self.sum.sum()), ..self.totals }
    }

    fn add_run(&mut self, run: &Summed) {
        let count = |name: &str| run.parts.iter().find(|part| part.name == name).map(|of| of.count);
        let all = &mut self.totals;
        all.runs += 1;
        all.points += count(POINTS).unwrap_or(0);
        all.params += count(PARAMS).unwrap_or(0);
        all.tags += count(TAGS).unwrap_or(0);
        all.datasets += count(DATASETS).unwrap_or(0);
        self.add_files(run);
        self.sum.add(&run.whole());
    }

    pub fn add_model(&mut self, model: &Summed) {
        self.totals.logged_models += 1;
        self.add_files(model);
        self.sum.add(&model.whole());
    }

    fn add_files(&mut self, of: &Summed) {
        let files = of.parts.iter().find(|part| part.name == FILES);
        self.totals.files += files.map_or(0, |part| part.count);
        self.totals.bytes += of.bytes;
    }
}

pub const HEAD: &str = "name, status and times";
const PARAMS: &str = "params";
const TAGS: &str = "tags";
const POINTS: &str = "points";
const DATASETS: &str = "data sets";
const MODELS: &str = "models read and made";
pub const FILES: &str = "files";

/// An entity, split into parts.
#[derive(Debug, Clone)]
pub struct Summed {
    /// Its id at the source.
    pub id: String,
    pub parts: Vec<Part>,
    pub bytes: u64,
}

impl Summed {
    fn whole(&self) -> [u8; 32] {
        let mut all: Vec<&[u8]> = vec![self.id.as_bytes()];
        all.extend(self.parts.iter().map(|part| part.sum.as_slice()));
        sum_of(&all)
    }
}

pub fn part(name: &'static str, sum: SetSum) -> Part {
    Part { name, count: sum.count, sum: sum.sum() }
}

pub fn text_part(name: &'static str, texts: &[&str]) -> Part {
    let texts: Vec<&[u8]> = texts.iter().map(|text| text.as_bytes()).collect();
    Part { name, count: 1, sum: sum_of(&texts) }
}

pub fn pairs_part(
    name: &'static str,
    pairs: &[(String, String)],
    most: usize,
    goes: impl Fn(&str) -> bool,
) -> Part {
    let mut sum = SetSum::default();
    for (key, value) in pairs.iter().filter(|(key, _)| goes(key)) {
        sum.put(&[key.as_bytes(), cut(value, most).as_bytes()]);
    }
    part(name, sum)
}

impl Copy<'_> {
    pub(super) async fn compare_runs(
        &self,
        (pair, there): (&Pair, Option<&Experiment>),
        (source, target): (&mut Side, &mut Side),
        report: &mut Report,
    ) -> Result<()> {
        let mut expected = BTreeMap::new();
        let mut pages = self.source.runs(&pair.from);
        while let Some(page) = pages.next().await {
            let runs: Vec<Run> =
                page?.into_iter().map(|run| self.as_at_target(run, pair.from.deleted)).collect();
            let sums = runs.iter().map(|run| self.sum_run(self.source, run, run.id.clone()));
            let mut sums = stream::iter(sums).buffer_unordered(self.options.at_once.max(1));
            while let Some(summed) = sums.next().await {
                let summed = summed?;
                source.add_run(&summed);
                expected.insert(summed.id.clone(), summed);
                self.watch.advance(1);
            }
        }
        let Some(there) = there else {
            expected.into_keys().for_each(|id| missing(format!("run {id}"), report));
            return Ok(());
        };
        let mut pages = self.sink.runs(there);
        while let Some(page) = pages.next().await {
            let page = page?;
            // The experiment may have runs from other clients.
            let known = page.iter().filter_map(|run| {
                let id = tags::value(&run.tags, tags::RUN)?;
                expected.contains_key(id).then(|| (run, id.to_owned()))
            });
            let known: Vec<(&Run, String)> = known.collect();
            let sums = known.iter().map(|(run, id)| self.sum_run(self.sink, run, id.clone()));
            let mut sums = stream::iter(sums).buffer_unordered(self.options.at_once.max(1));
            while let Some(found) = sums.next().await {
                let found = found?;
                target.add_run(&found);
                if let Some(wanted) = expected.remove(&found.id) {
                    let what = format!("run {} of experiment {}", found.id, pair.from.name);
                    parts(&what, &wanted.parts, &found.parts, report);
                }
                self.watch.advance(1);
            }
        }
        for id in expected.into_keys() {
            missing(format!("run {id} of experiment {}", pair.from.name), report);
        }
        Ok(())
    }

    /// The expected run at the target: the run of the source, with the target's ids.
    fn as_at_target(&self, mut run: Run, deleted: bool) -> Run {
        let map = self.map.borrow();
        let model = |id: &String| map.model(id).map(str::to_owned);
        run.reads = run.reads.iter().filter_map(model).collect();
        run.makes = run.makes.iter().filter_map(|(id, at)| Some((model(id)?, *at))).collect();
        for (key, value) in &mut run.tags {
            if key == tags::PARENT
                && let Some(new) = map.run(value)
            {
                new.clone_into(value);
            }
        }
        run.deleted |= deleted;
        run
    }

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

    /// The files at a place, and their bytes.
    pub(super) async fn sum_files(
        &self,
        at: &dyn Source,
        place: &Place,
        owner: &str,
    ) -> Result<(Part, u64)> {
        let listed = at.files(place).await;
        let files = self.note(|| format!("files of {owner}"), listed)?.unwrap_or_default();
        let (mut sum, mut bytes) = (SetSum::default(), 0);
        for file in &files {
            bytes += file.bytes;
            let content = match self.options.checked {
                Checked::Full => {
                    let summed = sum_file(at, place, &file.path).await;
                    let what = || format!("file {} of {owner}", file.path);
                    self.note(what, summed)?.unwrap_or_else(|| "not readable".to_owned())
                }
                Checked::Sizes | Checked::Nothing => String::new(),
            };
            sum.put(&[file.path.as_bytes(), &file.bytes.to_be_bytes(), content.as_bytes()]);
        }
        Ok((part(FILES, sum), bytes))
    }
}

async fn sum_file(at: &dyn Source, place: &Place, path: &str) -> Result<String> {
    if let Some(known) = at.known_sum(place, path).await? {
        return Ok(known.to_ascii_lowercase());
    }
    let mut content = at.open(place, path).await?;
    let mut sum = FileSum::default();
    let odd = |error: std::io::Error| Error::odd(path.to_owned(), error.to_string());
    while let Some(piece) = content.pieces.try_next().await.map_err(odd)? {
        sum.update(&piece);
    }
    Ok(sum.finish())
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_are_the_same_in_any_order_and_as_the_target_cuts_them() {
        let pair = |key: &str, value: &str| (key.to_owned(), value.to_owned());
        let of = |pairs: &[(String, String)]| pairs_part(TAGS, pairs, 3, |key| key != "x");
        let one = of(&[pair("a", "abcdef"), pair("b", "2"), pair("x", "left out")]);
        assert_eq!(one, of(&[pair("b", "2"), pair("a", "abc")]));
        assert_eq!(one.count, 2);
        assert_ne!(one, of(&[pair("b", "2"), pair("a", "abd")]));
    }
}
