//! A check in progress: the state with the transactions that passed so far, and what one transaction
//! has done.

use crate::amounts::Amounts;
use crate::check::eligible::Arrays;
use crate::check::fair_share::FairShares;
use crate::check::gang::Spot;
use crate::check::overlay::{Overlay, PromisedPlaces};
use crate::check::place::Fault;
use crate::check::pools::{PoolChanges, Pools};
use crate::ix::{JobIx, QueueIx, TaskIx};
use crate::state::State;
use berth_model::Cause;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A check in progress.
pub(crate) struct Checker<'a> {
    pub(crate) view: Overlay<'a>,
    pub(super) arrays: Arrays,
    pub(super) pools: Pools,
    pub(super) fair: Option<FairShares>,
    /// Jobs moved to defragment in this plan.
    pub(super) moved: u32,
}

/// What one transaction has done so far.
#[derive(Default)]
pub(crate) struct TransactionEffects {
    pub(crate) started: BTreeMap<JobIx, Vec<Spot>>,
    /// Jobs of which nothing ran before.
    pub(super) fresh: BTreeSet<JobIx>,
    /// What was promised to the jobs that start.
    pub(super) own: BTreeMap<JobIx, Arc<PromisedPlaces>>,
    pub(crate) reserved: BTreeSet<JobIx>,
    pub(super) firm: BTreeSet<JobIx>,
    pub(super) stopped: BTreeSet<(JobIx, Cause)>,
    pub(super) shrunk: Vec<TaskIx>,
    pub(super) claimants: BTreeSet<JobIx>,
    pub(super) claims: Vec<Claim>,
    /// Reservations that were given up or exchanged for later ones.
    pub(super) late: Vec<(JobIx, Fault)>,
    pub(super) trade: PoolChanges,
}

impl<'a> Checker<'a> {
    pub(super) fn new(state: &'a State) -> Checker<'a> {
        Checker {
            view: Overlay::new(state),
            arrays: Arrays::default(),
            pools: Pools::default(),
            fair: None,
            moved: 0,
        }
    }
}

/// A claim to what a victim holds; judged when the whole transaction is known, because it depends
/// on where the claimant's queue ends.
#[derive(Debug, Clone)]
pub(super) struct Claim {
    pub victim: JobIx,
    pub claimant: JobIx,
    pub cause: Cause,
    /// What the victim's side used before it gave way; by the ancestors just below the common
    /// parent: the claimant's, then the victim's.
    pub rivals: Option<(QueueIx, QueueIx, Amounts)>,
}
