//! Runs and logged models on both sides: each is split into parts, and the parts of both sides are compared.

use super::{Part, missing, parts};
use crate::copy::{Checked, Copy, Pair, cut};
use crate::error::{Error, Result};
use crate::model::{Experiment, Pairs, Place};
use crate::report::{Report, Totals};
use crate::source::{Fut, Pages, Source};
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

    pub fn add_run(&mut self, run: &Summed) {
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
pub const PARAMS: &str = "params";
pub const TAGS: &str = "tags";
pub const POINTS: &str = "points";
pub const DATASETS: &str = "data sets";
pub const MODELS: &str = "models read and made";
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

/// What an experiment has many of.
pub trait Entity: Sized {
    /// The tag with the id at the source.
    const TAG: &'static str;

    fn pages<'a>(at: &'a dyn Source, of: &'a Experiment) -> Pages<'a, Self>;
    fn id(&self) -> &str;
    fn tags(&self) -> &Pairs;
    /// What the target should have: the entity of the source, with the target's ids.
    fn into_target_terms(self, copy: &Copy<'_>, experiment: &Experiment) -> Self;
    fn sum<'a>(&'a self, copy: &'a Copy<'_>, at: &'a dyn Source, id: String) -> Fut<'a, Summed>;
    fn add(side: &mut Side, summed: &Summed);
    /// Its name in the report.
    fn what(of: &Experiment, id: &str) -> String;
}

impl Copy<'_> {
    pub(super) async fn compare<T: Entity>(
        &self,
        (pair, there): (&Pair, Option<&Experiment>),
        (source, target): (&mut Side, &mut Side),
        report: &mut Report,
    ) -> Result<()> {
        let mut expected = BTreeMap::new();
        let mut pages = T::pages(self.source, &pair.from);
        while let Some(page) = pages.next().await {
            let page = page?.into_iter().map(|one| one.into_target_terms(self, &pair.from));
            let page: Vec<T> = page.collect();
            let known = page.iter().map(|one| (one, one.id().to_owned())).collect();
            for summed in self.sums(self.source, known).await? {
                T::add(source, &summed);
                expected.insert(summed.id.clone(), summed);
            }
        }
        if let Some(there) = there {
            let mut pages = T::pages(self.sink, there);
            while let Some(page) = pages.next().await {
                let page = page?;
                // The experiment may have entities from other clients.
                let known = page.iter().filter_map(|one| {
                    let id = tags::value(one.tags(), T::TAG)?;
                    expected.contains_key(id).then(|| (one, id.to_owned()))
                });
                for found in self.sums(self.sink, known.collect()).await? {
                    T::add(target, &found);
                    if let Some(wanted) = expected.remove(&found.id) {
                        let what = T::what(&pair.from, &found.id);
                        parts(&what, &wanted.parts, &found.parts, report);
                    }
                }
            }
        }
        expected.into_keys().for_each(|id| missing(T::what(&pair.from, &id), report));
        Ok(())
    }

    /// The sums over entities, each with its id at the source.
    async fn sums<T: Entity>(
        &self,
        at: &dyn Source,
        page: Vec<(&T, String)>,
    ) -> Result<Vec<Summed>> {
        let sums = page.into_iter().map(|(one, id)| one.sum(self, at, id));
        let sums = stream::iter(sums).buffer_unordered(self.options.at_once.max(1));
        sums.inspect_ok(|_| self.watch.advance(1)).try_collect().await
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
