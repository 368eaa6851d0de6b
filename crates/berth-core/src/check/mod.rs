//! Checking a plan with code of its own: whatever planning gets wrong, it must not get wrong here
//! too. Nothing is shared with planning but the facts: specs, leases, promises, and the sums over
//! queues and nodes that `apply` keeps.
//!
//! Transactions are judged in their order on an overlay of the state, and only what they touch is
//! looked at, so the cost follows the decisions. One that fails is not applied; later ones that
//! lean on it then fail by themselves.

mod bounds;
mod checker;
mod eligible;
mod fair_share;
mod finding;
mod gang;
mod needless;
mod overlay;
mod place;
mod pools;
mod preemption;
mod promises;
mod start;
mod stops;
mod tenants;
mod transaction;
mod usage;
mod window;

pub use finding::{Finding, FindingCode};

use crate::check::checker::Checker;
use crate::state::State;
use crate::transaction::{Plan, Transaction};
use berth_model::{Decision, JobId};
use std::collections::{BTreeMap, BTreeSet};

/// Everything that is wrong with a plan for this state; nothing if it may be carried out.
pub fn check(state: &State, plan: &Plan) -> Vec<Finding> {
    let mut run = Checker::new(state);
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
