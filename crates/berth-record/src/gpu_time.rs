//! How long jobs have held GPUs.

use berth_model::Time;
use berth_service::live;
use berth_store::LeaseRow;

/// Milliseconds of one whole GPU that these leases have held up to now.
pub(crate) fn held(leases: &[LeaseRow], now: Time) -> i64 {
    let all = leases.iter().map(|lease| {
        let slices = live::slices(&lease.slices);
        let milli: i64 = slices.iter().map(|slice| live::share(&slice.share).0).sum();
        let span = (lease.closed.unwrap_or(now) - lease.opened).0.max(0);
        i128::from(milli) * i128::from(span) / 1_000
    });
    i64::try_from(all.sum::<i128>()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_model::{JobId, LeaseId, Micros, Share, Slice};

    #[test]
    fn open_leases_count_up_to_now_and_closed_ones_up_to_their_end() {
        let lease = |share: Share, closed: Option<i64>| LeaseRow {
            id: LeaseId { job: JobId::new(1), task: 0, attempt: 0 },
            node: "n1".to_owned(),
            slices: serde_json::to_string(&[Slice { gpu: 0, share }]).unwrap(),
            price: Micros::ZERO,
            opened: Time(1_000),
            started: None,
            closed: closed.map(Time),
            outcome: None,
            exit: None,
            cost: Micros::ZERO,
            stop_at: None,
            stop: None,
        };
        assert_eq!(held(&[lease(Share::Whole, Some(5_000))], Time(9_000)), 4_000);
        assert_eq!(held(&[lease(Share::Whole, None)], Time(9_000)), 8_000);
        assert_eq!(held(&[lease(Share::Whole, None)], Time(0)), 0);
        assert_eq!(held(&[], Time(9_000)), 0);
    }
}
