//! Judging the decisions of one transaction, and all of them together.

use crate::check::bounds;
use crate::check::checker::{Checker, TransactionEffects};
use crate::check::finding::FindingCode;
use crate::check::overlay::JobNow;
use crate::check::place::Fault;
use crate::ix::JobIx;
use crate::transaction::Transaction;
use berth_model::{Cause, Decision};
use std::collections::BTreeSet;

impl<'a> Checker<'a> {
    /// Judges a transaction and applies it if nothing is wrong with it.
    pub(super) fn transaction(&mut self, transaction: &Transaction) -> Vec<Fault> {
        let mut work = TransactionEffects::default();
        let mut found = Vec::new();
        for decision in &transaction.decisions {
            found.extend(self.decision(transaction, &mut work, decision));
        }
        found.extend(self.gangs(&work));
        found.extend(self.remains(&work));
        found.extend(self.judge(&work));
        found.extend(self.needless(&work));
        found.extend(self.late(transaction, &work));
        let charged: BTreeSet<JobIx> = work.started.keys().chain(&work.firm).copied().collect();
        for ix in charged {
            found.extend(bounds::faults(&mut self.view, ix));
        }
        let moved = work.stopped.iter().filter(|(_, cause)| *cause == Cause::Defragment).count();
        let moves = self.view.state.moves.len() as u32 + self.moved + moved as u32;
        if moved > 0 && moves > self.view.state.policy.moves_per_hour {
            let text = format!("{moves} jobs would be moved within an hour");
            found.push((FindingCode::Moves, text));
        }
        if found.is_empty() {
            self.commit(work, moved as u32);
        } else {
            self.view.roll_back();
            self.put_aside(transaction);
        }
        found
    }

    fn commit(&mut self, work: TransactionEffects, moved: u32) {
        for ix in &work.fresh {
            self.count_growth(*ix, &work.started[ix]);
            self.arrays.start(&self.view, *ix);
        }
        self.view.commit();
        self.pools.commit(work.trade);
        self.moved += moved;
    }

    /// A job whose decisions failed is put aside, so nothing later may be decided for it.
    fn put_aside(&mut self, transaction: &Transaction) {
        let Some(ix) = transaction.job.and_then(|id| self.view.state.jobs.find(id)) else { return };
        if !self.view.has_leases(ix) {
            let now = self.view.job(ix);
            self.view.set_job(ix, JobNow { aside: true, ..now });
            self.view.unpromise(ix);
            self.view.commit();
        }
    }

    fn decision(
        &mut self,
        transaction: &Transaction,
        work: &mut TransactionEffects,
        decision: &Decision,
    ) -> Vec<Fault> {
        match decision {
            Decision::Start { .. } => self.start(transaction, work, decision),
            Decision::Stop { lease, cause, for_job, grace } => {
                self.stop(work, *lease, *cause, *for_job, *grace)
            }
            Decision::Reserve { job, at, places, firm } => {
                self.reserve(work, *job, *at, places, *firm)
            }
            Decision::Unreserve { job } => self.unreserve(work, *job),
            Decision::Claim { .. } => self.pools.claim(&self.view, &mut work.trade, decision),
            Decision::Return { node } => {
                self.pools.give_back(&mut self.view, &mut work.trade, node)
            }
            Decision::SetAside { job, .. } => match self.view.state.jobs.find(*job) {
                None => vec![(FindingCode::Unknown, format!("there is no job {job}"))],
                Some(ix) if self.view.has_leases(ix) => {
                    vec![(FindingCode::NotInLine, format!("job {job} runs"))]
                }
                Some(_) => Vec::new(),
            },
        }
    }
}
