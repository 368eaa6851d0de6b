//! Rows of cost that the store does not have, joined with what it has. They are chosen, cut to the
//! range and added up exactly as the database does it with its own.

use super::cost_rows::CostRowQuery;
use super::costs::{CostKey, CostQuery, CostSum};
use crate::rows::CostRecord;
use berth_model::{Micros, Span, Time};
use std::collections::BTreeMap;

impl CostQuery {
    /// The sums with these rows in them, in the order of their keys as texts.
    pub fn add_rows(&self, sums: Vec<CostSum>, rows: &[CostRecord]) -> Vec<CostSum> {
        let mut all: BTreeMap<Vec<String>, (Micros, i64)> = BTreeMap::new();
        let mut add = |keys: Vec<String>, amount: Micros, gpu_us: i64| {
            let sum = all.entry(keys).or_default();
            sum.0 += amount;
            sum.1 += gpu_us;
        };
        for sum in sums {
            add(sum.keys, sum.amount, sum.gpu_us);
        }
        for row in rows.iter().filter(|row| self.has(row)) {
            let from = self.since.map_or(row.from, |since| row.from.max(since));
            let to = self.until.map_or(row.to, |until| row.to.min(until));
            let keys = self.by.iter().map(|key| key.of(row)).collect();
            let amount = Micros(share(row, to) - share(row, from));
            add(keys, amount, row.gpus.0 * (to - from).0);
        }
        all.into_iter().map(|(keys, (amount, gpu_us))| CostSum { keys, amount, gpu_us }).collect()
    }

    /// Whether any part of the row is asked for.
    fn has(&self, row: &CostRecord) -> bool {
        let same = |wish: &Option<String>, is: &str| wish.as_deref().is_none_or(|wish| wish == is);
        self.since.is_none_or(|since| row.to > since)
            && self.until.is_none_or(|until| row.from < until)
            && (self.teams.is_empty() || self.teams.iter().any(|team| *team == *row.team))
            && same(&self.project, &row.project)
            && same(&self.experiment, &row.experiment)
            && same(&self.user, &row.user)
            && self.job.is_none_or(|wish| {
                row.lease.is_some_and(|lease| {
                    lease.job.number == wish.number
                        && (wish.element.is_none() || lease.job.element == wish.element)
                })
            })
    }
}

impl CostRowQuery {
    /// Whether the row is asked for.
    pub fn has(&self, row: &CostRecord) -> bool {
        self.of.has(row)
            && self.kind.as_deref().is_none_or(|kind| kind == row.kind.as_str())
            && self.node.as_deref().is_none_or(|node| *node == *row.node)
    }
}

impl CostKey {
    fn of(self, row: &CostRecord) -> String {
        let start = |span: Span| Time(row.from.0.div_euclid(span.0) * span.0).to_string();
        match self {
            CostKey::Team => row.team.to_string(),
            CostKey::Project => row.project.to_string(),
            CostKey::Experiment => row.experiment.to_string(),
            CostKey::User => row.user.to_string(),
            CostKey::Job => row.lease.map_or_else(String::new, |lease| lease.job.to_string()),
            CostKey::Kind => row.kind.as_str().to_owned(),
            CostKey::Day => start(Span::days(1)).split('T').next().unwrap_or_default().to_owned(),
            CostKey::Hour => start(Span::hours(1)),
        }
    }
}

/// What a row has cost up to that moment, as the database counts it.
fn share(row: &CostRecord, at: Time) -> i64 {
    let (length, passed) = ((row.to - row.from).0, (at - row.from).0);
    if passed == length {
        return row.amount.0;
    }
    row.amount.0 / length * passed + row.amount.0 % length * passed / length
}
