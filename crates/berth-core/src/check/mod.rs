//! Checking a plan with code of its own: whatever planning gets wrong, it must not get wrong here
//! too. Nothing is shared with planning but the facts: specs, leases, promises, and the sums over
//! queues and nodes that `apply` keeps.
//!
//! Transactions are judged in their order on an overlay of the state, and only what they touch is
//! looked at, so the cost follows the decisions. One that fails is not applied; later ones that
//! lean on it then fail by themselves.

mod bounds;
mod fair;
mod finding;
mod gang;
mod line;
mod overlay;
mod place;
mod pools;
mod promise;
mod rights;
mod start;
mod stops;
mod usage;
mod window;

pub use finding::{Finding, FindingCode};

use crate::check::fair::Fair;
use crate::check::gang::Spot;
use crate::check::line::Arrays;
use crate::check::overlay::{JobNow, Kept, Overlay};
use crate::check::place::Fault;
use crate::check::pools::{Pools, Trade};
use crate::check::rights::Claim;
use crate::ix::{JobIx, TaskIx};
use crate::state::State;
use crate::transaction::{Plan, Transaction};
use berth_model::{Cause, Decision, JobId};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Everything that is wrong with a plan for this state; nothing if it may be carried out.
pub fn check(state: &State, plan: &Plan) -> Vec<Finding> {
    let mut run = Run::new(state);
    let mut found = Vec::new();
    for (at, transaction) in plan.transactions.iter().enumerate() {
        let faults = run.transaction(transaction);
        found.extend(faults.into_iter().map(|(code, text)| Finding {
            transaction: at,
            code,
            text,
        }));
    }
    found
}

/// The transactions that may be carried out, in order, and what is wrong with the others. In the
/// place of each of those its job is put aside, unless it runs.
pub fn vetted(state: &State, plan: &Plan) -> (Vec<Transaction>, Vec<Finding>) {
    let findings = check(state, plan);
    let mut wrong: BTreeMap<usize, Vec<&Finding>> = BTreeMap::new();
    for finding in &findings {
        wrong.entry(finding.transaction).or_default().push(finding);
    }
    let mut running: BTreeSet<JobId> = BTreeSet::new();
    let mut aside: BTreeSet<JobId> = BTreeSet::new();
    let mut kept = Vec::with_capacity(plan.transactions.len());
    for (at, transaction) in plan.transactions.iter().enumerate() {
        let Some(findings) = wrong.get(&at) else {
            let starts = transaction.decisions.iter().filter_map(|decision| match decision {
                Decision::Start { lease, .. } => Some(lease.job),
                _ => None,
            });
            running.extend(starts);
            kept.push(transaction.clone());
            continue;
        };
        let Some(job) = transaction.job else { continue };
        let idle = state.jobs.find(job).is_some_and(|ix| state.jobs.get(ix).open == 0);
        if idle && !running.contains(&job) && aside.insert(job) {
            let texts: Vec<String> = findings.iter().map(|finding| finding.to_string()).collect();
            let decision = Decision::SetAside { job, finding: texts.join("; ") };
            kept.push(Transaction { job: Some(job), decisions: vec![decision] });
        }
    }
    (kept, findings)
}

/// A check in progress.
struct Run<'a> {
    view: Overlay<'a>,
    arrays: Arrays,
    pools: Pools,
    fair: Option<Fair>,
    /// Jobs moved to defragment in this plan.
    moved: u32,
}

/// What one transaction has done so far.
#[derive(Default)]
struct Work {
    started: BTreeMap<JobIx, Vec<Spot>>,
    /// Jobs of which nothing ran before.
    fresh: BTreeSet<JobIx>,
    /// What was promised to the jobs that start.
    own: BTreeMap<JobIx, Arc<Kept>>,
    reserved: BTreeSet<JobIx>,
    firm: BTreeSet<JobIx>,
    stopped: BTreeSet<(JobIx, Cause)>,
    shrunk: Vec<TaskIx>,
    claimants: BTreeSet<JobIx>,
    claims: Vec<Claim>,
    /// Reservations that were given up or exchanged for later ones.
    late: Vec<(JobIx, Fault)>,
    trade: Trade,
}

impl<'a> Run<'a> {
    fn new(state: &'a State) -> Run<'a> {
        Run {
            view: Overlay::new(state),
            arrays: Arrays::default(),
            pools: Pools::default(),
            fair: None,
            moved: 0,
        }
    }

    /// Judges a transaction and applies it if nothing is wrong with it.
    fn transaction(&mut self, transaction: &Transaction) -> Vec<Fault> {
        let mut work = Work::default();
        let mut found = Vec::new();
        for decision in &transaction.decisions {
            found.extend(self.decision(transaction, &mut work, decision));
        }
        found.extend(self.gangs(&work));
        found.extend(self.remains(&work));
        found.extend(self.judge(&work));
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

    fn commit(&mut self, work: Work, moved: u32) {
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
            self.view.unkeep(ix);
            self.view.commit();
        }
    }

    fn decision(
        &mut self,
        transaction: &Transaction,
        work: &mut Work,
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
