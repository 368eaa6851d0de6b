//! What was paid for and brought nothing.

use super::cost::{self, range};
use super::{csv, spent};
use crate::caller::Caller;
use crate::fault::Fault;
use crate::figures;
use crate::jobs::timeline::job_ref;
use crate::live;
use crate::service::Service;
use berth_api::Code;
use berth_api::wire::{CostIdle, CostIdleQuery, IdleCause, IdleHolder};
use berth_engine::clock;
use berth_ledger::cost::cumulative;
use berth_model::{CostKind, JobId, LeaseOutcome, Share, Span, Time};
use berth_store::{CostKey, CostQuery, HeldLease, LeaseFilter};
use std::collections::BTreeMap;

/// Leases that are looked at: the newest.
const MOST_LEASES: u32 = 10_000;
const MOST_HOLDERS: usize = 100;
/// A GPU does nothing below this utilization, in thousandths.
const IDLE_BELOW: i64 = 10;
/// Time that figures are looked at for.
const LONGEST: Span = Span::days(62);

#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    amount: i64,
    gpu_ms: i64,
}

pub async fn idle(
    service: &Service,
    caller: &Caller,
    query: CostIdleQuery,
) -> Result<CostIdle, Fault> {
    let now = clock::now();
    let (from, to) = range(query.from, query.to, now)?;
    if to - from > LONGEST {
        let detail = "that is more than 62 days";
        return Err(Fault::new(Code::BadRequest, detail).next("ask for less at a time"));
    }
    let Some(teams) = cost::teams(caller, query.team.as_deref()) else {
        return Ok(CostIdle {
            from: from.into(),
            to: to.into(),
            teams: Vec::new(),
            causes: Vec::new(),
            holders: Vec::new(),
            total_micros: 0,
            notes: vec!["there is no cost that you may see".to_owned()],
        });
    };
    let mut notes = Vec::new();
    let mut answer = CostIdle {
        from: from.into(),
        to: to.into(),
        teams: teams.clone(),
        causes: Vec::new(),
        holders: Vec::new(),
        total_micros: 0,
        notes: Vec::new(),
    };
    let asked = CostQuery {
        by: vec![CostKey::Kind],
        since: Some(from),
        until: Some(to),
        teams: teams.clone(),
        ..CostQuery::default()
    };
    let mut kinds: BTreeMap<String, Sum> = BTreeMap::new();
    for sum in spent::sums(service, &asked).await? {
        answer.total_micros += sum.amount.0;
        let Some(kind) = sum.keys.into_iter().next() else { continue };
        kinds.insert(kind, Sum { amount: sum.amount.0, gpu_ms: sum.gpu_us / 1_000 });
    }
    let of = |kind: CostKind| kinds.get(kind.as_str()).copied().unwrap_or_default();
    if teams.is_empty() {
        let text = "no job had it, and no machine out of order could be used";
        answer.causes.push(cause("unallocated", text, of(CostKind::Unallocated), false));
        let text = "free, and of no use to the requests there are: the rest of a machine, or parts";
        answer.causes.push(cause("fragmented", text, of(CostKind::Fragmented), false));
    } else {
        notes.push("the cost of idle GPUs is in no team's bill".to_owned());
    }
    let text = "a job had it, and its tasks did not run yet";
    answer.causes.push(cause("starting", text, of(CostKind::Held), true));
    let filter = LeaseFilter { from, to, node: None, job: None, teams };
    let leases = service.store.leases_in(&filter, MOST_LEASES).await?;
    if leases.len() == MOST_LEASES as usize {
        notes.push(format!("only the newest {MOST_LEASES} leases were looked at"));
    }
    let idle = held_idle(service, &leases, (from, to), now, &mut notes).await?;
    let all = idle.values().fold(Sum::default(), |all, (_, one)| Sum {
        amount: all.amount + one.amount,
        gpu_ms: all.gpu_ms + one.gpu_ms,
    });
    let text = "a job had it and computed less than 1 % of the time, as far as that was measured";
    answer.causes.push(cause("held_idle", text, all, true));
    for (name, outcome, text) in [
        ("lost_failed", LeaseOutcome::Failed, "attempts that failed, with what they had saved"),
        ("lost_machine", LeaseOutcome::Lost, "attempts that went with their machine, likewise"),
    ] {
        answer.causes.push(cause(name, text, ended(&leases, outcome, from), true));
    }
    let mut holders: Vec<(JobId, (&HeldLease, Sum))> = idle.into_iter().collect();
    holders.retain(|(_, (_, sum))| sum.gpu_ms > 0);
    holders.sort_by_key(|(id, (_, sum))| (-sum.amount, -sum.gpu_ms, *id));
    answer.holders = holders
        .into_iter()
        .take(MOST_HOLDERS)
        .map(|(id, (held, sum))| IdleHolder {
            of: job_ref(caller, id, &held.name, &held.user, &held.team),
            amount_micros: sum.amount,
            gpu_ms: sum.gpu_ms,
        })
        .collect();
    answer.notes = notes;
    Ok(answer)
}

fn cause(cause: &str, text: &str, sum: Sum, billed: bool) -> IdleCause {
    let (cause, text) = (cause.to_owned(), text.to_owned());
    IdleCause { cause, text, amount_micros: sum.amount, gpu_ms: sum.gpu_ms, billed }
}

/// What attempts cost that ended so in this time.
fn ended(leases: &[HeldLease], outcome: LeaseOutcome, from: Time) -> Sum {
    let mut all = Sum::default();
    for lease in leases.iter().map(|held| &held.lease) {
        let Some(closed) = lease.closed.filter(|closed| *closed >= from) else { continue };
        if lease.outcome == Some(outcome) {
            let slices = live::slices(&lease.slices);
            let milli: i64 = slices.iter().map(|slice| live::share(&slice.share).0).sum();
            all.amount += lease.cost.0;
            all.gpu_ms += (closed - lease.opened).0 * milli / 1_000;
        }
    }
    all
}

/// By job: the time in which a whole GPU of it did nothing.
async fn held_idle<'a>(
    service: &Service,
    leases: &'a [HeldLease],
    (from, to): (Time, Time),
    now: Time,
    notes: &mut Vec<String>,
) -> Result<BTreeMap<JobId, (&'a HeldLease, Sum)>, Fault> {
    let mut idle: BTreeMap<JobId, (&HeldLease, Sum)> = BTreeMap::new();
    if service.host.figures().is_none() || !service.host.chooses_gpus() {
        notes.push("what jobs do on the GPUs they have is not measured here".to_owned());
        return Ok(idle);
    }
    let (rows, start, step) = figures::utilization_by_gpu(service, from, to).await?;
    let rows: BTreeMap<(&str, u32), &[Option<i64>]> =
        rows.iter().map(|row| ((row.node.as_str(), row.gpu), row.values.as_slice())).collect();
    for held in leases {
        let lease = &held.lease;
        let slices = live::slices(&lease.slices);
        for slice in slices.iter().filter(|slice| slice.share == Share::Whole) {
            let Some(values) = rows.get(&(lease.node.as_str(), slice.gpu)) else { continue };
            let until = lease.closed.unwrap_or(now);
            let steps = idle_steps(values, start, step, (lease.opened, until));
            let time = Span(step.0 * steps);
            let price = berth_model::Micros(lease.price.0 / slices.len().max(1) as i64);
            let (_, sum) = idle.entry(lease.id.job).or_insert((held, Sum::default()));
            sum.amount += cumulative(price, time).0;
            sum.gpu_ms += time.0;
        }
    }
    Ok(idle)
}

/// Steps that lie wholly within the time, and in which nothing was done.
fn idle_steps(
    values: &[Option<i64>],
    start: Time,
    step: Span,
    (opened, closed): (Time, Time),
) -> i64 {
    let within = |nth: usize| {
        let begin = start + Span(step.0 * nth as i64);
        begin >= opened && begin + step <= closed
    };
    let idle = values.iter().enumerate();
    let idle =
        idle.filter(|(nth, value)| value.is_some_and(|value| value < IDLE_BELOW) && within(*nth));
    idle.count() as i64
}

pub fn idle_csv(idle: &CostIdle) -> String {
    let head = ["cause", "amount", "gpu_hours", "billed", "text"].map(str::to_owned);
    let rows = idle.causes.iter().map(|cause| {
        vec![
            cause.cause.clone(),
            csv::dollars(cause.amount_micros),
            csv::thousandths(cause.gpu_ms / 3_600),
            cause.billed.to_string(),
            cause.text.clone(),
        ]
    });
    csv::table(&head, rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_steps_of_the_holding_count_and_none_that_was_not_measured() {
        let values = [Some(0), Some(5), None, Some(900), Some(9), Some(0)];
        let steps =
            |opened, closed| idle_steps(&values, Time(100), Span(10), (Time(opened), Time(closed)));
        assert_eq!(steps(0, 1_000), 4);
        assert_eq!(steps(101, 159), 2, "the first and the last in part");
        assert_eq!(steps(0, 100), 0);
    }
}
