//! What handlers read of the live state. The state is locked for no longer than a copy takes.

use crate::service::Service;
use berth_core::State;
use berth_engine::{LiveJob, clock};
use berth_model::{Micros, Name, NodeSpec, QueueSnapshot, Share, Slice};
use berth_store::LeaseRow;
use std::collections::BTreeMap;

pub fn queues(service: &Service) -> Vec<QueueSnapshot> {
    queues_of(&service.engine.core().state)
}

/// The queues with what they have spent up to now.
pub fn queues_of(state: &State) -> Vec<QueueSnapshot> {
    let now = clock::now();
    let mut queues = state.queue_snapshots();
    for queue in &mut queues {
        queue.spent += state.unbilled_below(&queue.spec.name, now);
    }
    queues
}

/// Gives open leases what they have cost up to now: their rows have what is billed.
pub fn add_unbilled(service: &Service, leases: &mut [LeaseRow]) {
    let now = clock::now();
    let core = service.engine.core();
    for lease in leases.iter_mut().filter(|lease| lease.closed.is_none()) {
        lease.cost = core.lease_cost(lease.id, now).unwrap_or(lease.cost);
    }
}

/// Jobs of a queue that wait or run.
pub fn jobs_of(service: &Service, queue: &str) -> usize {
    jobs_where(service, |job| job.row.team == queue)
}

/// Jobs that have not ended, and are so.
pub fn jobs_where(service: &Service, is_so: impl Fn(&LiveJob) -> bool) -> usize {
    service.engine.core().jobs.values().filter(|job| is_so(job)).count()
}

/// `1 job`, `2 jobs`.
pub fn count(number: usize, what: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{number} {what}{plural}")
}

/// What an hour of one GPU costs.
pub fn price(node: &NodeSpec, gpu: usize, prices: &BTreeMap<Name, Micros>) -> Micros {
    match (node.price, node.gpus.get(gpu)) {
        (Some(whole), _) => Micros(whole.0 / (node.gpus.len().max(1) as i64)),
        (None, Some(gpu)) => prices.get(&gpu.model).copied().unwrap_or(Micros::ZERO),
        (None, None) => Micros::ZERO,
    }
}

/// The slices of a lease, from its row.
pub fn slices(text: &str) -> Vec<Slice> {
    serde_json::from_str(text).unwrap_or_default()
}

/// How much of a GPU a share is, in thousandths, and what it is called.
pub fn share(share: &Share) -> (i64, String) {
    let kind = match share {
        Share::Whole => "whole",
        Share::Fraction(_) => "fraction",
        Share::Mps(_) => "mps",
        Share::TimeSlice(_) => "time-slice",
        Share::Mig(slot) => slot.profile.as_str(),
    };
    (share.milli(), kind.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_model::{MigSlot, Milli};

    #[test]
    fn a_share_is_told_in_thousandths_and_in_a_word() {
        assert_eq!(share(&Share::Whole), (1_000, "whole".into()));
        assert_eq!(share(&Share::Fraction(Milli(250))), (250, "fraction".into()));
        let slot = MigSlot { profile: "3g.40gb".into(), start: 0 };
        assert_eq!(share(&Share::Mig(slot)), (428, "3g.40gb".into()));
    }
}
