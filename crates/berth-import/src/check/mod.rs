//! Compares the target with the source. It reads both sides again and computes the same sums over both,
//! so the result does not depend on what the copy assumed.

mod entities;
mod models;
mod registry;
mod runs;

use crate::copy::{Copy, Pair};
use crate::error::Result;
use crate::model::{Experiment, LoggedModel, Run};
use crate::report::{Difference, Report};
use entities::Side;
use std::collections::BTreeMap;

pub async fn compare(copy: &Copy<'_>, pairs: &[Pair], report: &mut Report) -> Result<()> {
    let there: BTreeMap<String, Experiment> =
        copy.sink.experiments().await?.into_iter().map(|one| (one.name.clone(), one)).collect();
    for (index, pair) in pairs.iter().enumerate() {
        copy.watch.begin(&format!("comparing {}", pair.from.name), None);
        let (mut source, mut target) = (Side::default(), Side::default());
        let both = (pair, there.get(&pair.name));
        experiment(pair, both.1, report);
        copy.compare::<Run>(both, (&mut source, &mut target), report).await?;
        copy.compare::<LoggedModel>(both, (&mut source, &mut target), report).await?;
        if let Some(of) = report.experiments.get_mut(index) {
            of.at_source = Some(source.totals());
            of.at_target = Some(target.totals());
        }
    }
    copy.compare_registry(report).await
}

fn experiment(pair: &Pair, there: Option<&Experiment>, report: &mut Report) {
    let what = || format!("experiment {}", pair.from.name);
    let mut differs = |part: &str, source: String, target: String| {
        if source != target {
            report.differs(Difference { what: what(), part: part.to_owned(), source, target });
        }
    };
    let Some(there) = there else {
        return differs("itself", "there".to_owned(), "missing".to_owned());
    };
    let stage = |deleted: bool| if deleted { "deleted" } else { "active" }.to_owned();
    differs("stage", stage(pair.from.deleted), stage(there.deleted));
    for (key, value) in pair.from.tags.iter().filter(|(key, _)| !crate::tags::is_own(key)) {
        let found = crate::tags::value(&there.tags, key).unwrap_or("missing");
        differs(&format!("tag {key}"), value.clone(), found.to_owned());
    }
}

/// A part of an entity: a count and a sum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    pub name: &'static str,
    pub count: u64,
    pub sum: [u8; 32],
}

impl Part {
    fn shown(&self) -> String {
        format!("{} (sum {})", self.count, hex::encode(&self.sum[..6]))
    }
}

/// Reports each part that differs.
pub fn parts(what: &str, source: &[Part], target: &[Part], report: &mut Report) {
    for (source, target) in source.iter().zip(target).filter(|(source, target)| source != target) {
        report.differs(Difference {
            what: what.to_owned(),
            part: source.name.to_owned(),
            source: source.shown(),
            target: target.shown(),
        });
    }
}

pub fn missing(what: String, report: &mut Report) {
    let (source, target) = ("there".to_owned(), "missing".to_owned());
    report.differs(Difference { what, part: "itself".to_owned(), source, target });
}
