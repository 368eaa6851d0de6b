//! Exact sums of rows, by whoever pays.

use crate::row::CostRow;
use berth_model::CostKind;
use berth_model::{JobId, Micros, Name};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Amounts of each kind, apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Amounts {
    pub used: Micros,
    pub held: Micros,
    pub unallocated: Micros,
    pub fragmented: Micros,
    pub shared: Micros,
}

impl Amounts {
    fn of(&mut self, kind: CostKind) -> &mut Micros {
        match kind {
            CostKind::Used => &mut self.used,
            CostKind::Held => &mut self.held,
            CostKind::Unallocated => &mut self.unallocated,
            CostKind::Fragmented => &mut self.fragmented,
            CostKind::Shared => &mut self.shared,
        }
    }

    pub fn add(&mut self, kind: CostKind, amount: Micros) {
        *self.of(kind) += amount;
    }

    pub fn merge(&mut self, mut other: Amounts) {
        for kind in CostKind::ALL {
            *self.of(kind) += *other.of(kind);
        }
    }

    /// What somebody pays for.
    pub fn attributed(&self) -> Micros {
        self.used + self.held
    }

    pub fn idle(&self) -> Micros {
        self.unallocated + self.fragmented
    }

    /// Attributed + idle + shared: what the machines cost.
    pub fn total(&self) -> Micros {
        self.attributed() + self.idle() + self.shared
    }
}

/// Sums of rows in all, by machine and by each key of a lease. Every key's amounts together are the
/// attributed part of the sum; what is idle or shared has no key but its machine.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Totals {
    pub sum: Amounts,
    pub nodes: BTreeMap<Name, Amounts>,
    pub jobs: BTreeMap<JobId, Amounts>,
    pub queues: BTreeMap<Name, Amounts>,
    pub projects: BTreeMap<Name, Amounts>,
    pub experiments: BTreeMap<Name, Amounts>,
    pub users: BTreeMap<Name, Amounts>,
}

impl Totals {
    pub fn add(&mut self, row: &CostRow) {
        self.sum.add(row.kind, row.amount);
        add(&mut self.nodes, Some(&row.node), row);
        add(&mut self.jobs, row.job.as_ref(), row);
        add(&mut self.queues, row.queue.as_ref(), row);
        add(&mut self.projects, row.project.as_ref(), row);
        add(&mut self.experiments, row.experiment.as_ref(), row);
        add(&mut self.users, row.user.as_ref(), row);
    }

    pub fn merge(&mut self, other: &Totals) {
        self.sum.merge(other.sum);
        merge(&mut self.nodes, &other.nodes);
        merge(&mut self.jobs, &other.jobs);
        merge(&mut self.queues, &other.queues);
        merge(&mut self.projects, &other.projects);
        merge(&mut self.experiments, &other.experiments);
        merge(&mut self.users, &other.users);
    }
}

impl<'a> FromIterator<&'a CostRow> for Totals {
    fn from_iter<I: IntoIterator<Item = &'a CostRow>>(rows: I) -> Totals {
        let mut totals = Totals::default();
        rows.into_iter().for_each(|row| totals.add(row));
        totals
    }
}

fn add<K: Ord + Clone>(sums: &mut BTreeMap<K, Amounts>, key: Option<&K>, row: &CostRow) {
    let Some(key) = key else { return };
    match sums.get_mut(key) {
        Some(amounts) => amounts.add(row.kind, row.amount),
        None => {
            let mut amounts = Amounts::default();
            amounts.add(row.kind, row.amount);
            sums.insert(key.clone(), amounts);
        }
    }
}

fn merge<K: Ord + Clone>(sums: &mut BTreeMap<K, Amounts>, other: &BTreeMap<K, Amounts>) {
    for (key, amounts) in other {
        sums.entry(key.clone()).or_default().merge(*amounts);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_model::{LeaseId, Milli, Time};

    fn row(job: Option<u64>, kind: CostKind, amount: i64) -> CostRow {
        let job = job.map(JobId::new);
        let name = |text: &str| job.map(|_| Name::new(text));
        CostRow {
            lease: job.map(|job| LeaseId { job, task: 0, attempt: 0 }),
            job,
            queue: name("q"),
            project: name("p"),
            experiment: name("e"),
            user: name("u"),
            node: Name::new("n"),
            from: Time(0),
            to: Time(1),
            gpus: Milli::ZERO,
            amount: Micros(amount),
            kind,
        }
    }

    fn rows() -> Vec<CostRow> {
        vec![
            row(Some(1), CostKind::Held, 1),
            row(Some(1), CostKind::Used, 20),
            row(Some(2), CostKind::Used, 300),
            row(None, CostKind::Unallocated, 4_000),
            row(None, CostKind::Fragmented, 50_000),
            row(None, CostKind::Shared, -1),
        ]
    }

    #[test]
    fn kinds_are_kept_apart_and_sum_to_the_rows() {
        let totals: Totals = rows().iter().collect();
        assert_eq!(totals.sum.total(), Micros(54_320));
        assert_eq!(totals.nodes[&Name::new("n")], totals.sum);
        assert_eq!(totals.jobs[&JobId::new(1)].attributed(), Micros(21));
        assert_eq!(totals.queues[&Name::new("q")].attributed(), Micros(321));
        assert_eq!(totals.users[&Name::new("u")].idle(), Micros::ZERO);
        assert_eq!(totals.sum.idle(), Micros(54_000));
    }

    #[test]
    fn totals_of_parts_merge_to_the_totals_of_the_whole() {
        let rows = rows();
        let whole: Totals = rows.iter().collect();
        for cut in 0..=rows.len() {
            let mut merged: Totals = rows[..cut].iter().collect();
            merged.merge(&rows[cut..].iter().collect());
            assert_eq!(merged, whole);
        }
    }
}
