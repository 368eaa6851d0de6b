//! What would become of a job file.

use super::budget_left::{self, BudgetLeft};
use super::expected;
use super::own_budget;
use super::reasons;
use super::submit::{self, Remarks, TRIED};
use crate::caller::Caller;
use crate::fault::Fault;
use crate::service::Service;
use berth_api::access::Permission;
use berth_api::{Code, wire};
use berth_core::{Forecast, State as Core, forecast};
use berth_engine::clock;
use berth_file::job::SERVICE_TIME;
use berth_model::{Decision, Event, JobId, JobKind, JobRequest, JobSpec, Micros, Span, Stamped};
use std::collections::BTreeMap;

/// Runs of the forecast: few, because the caller waits for the answer.
const RUNS: u32 = 8;

pub async fn plan(
    service: &Service,
    caller: &Caller,
    query: wire::SubmitQuery,
    text: &str,
) -> Result<wire::Plan, Fault> {
    let permission = Permission::JobsPlan;
    let mut parsed = submit::read_all(service, caller, &query, text, permission).await?;
    let template = submit::template(service, caller, query.template.as_deref()).await?;
    let moved = submit::start_here(service, caller, &mut parsed, template.as_ref(), &query);
    let (request, mut remarks) =
        submit::prepare(service, caller, &parsed, template.as_ref(), permission).await?;
    remarks.warnings.extend(moved);
    let state = service.engine.core().state.clone();
    let budget = budget_left::of(&state, caller, &request.queue);
    let service = service.clone();
    let tried =
        tokio::task::spawn_blocking(move || try_out(&service, state, &request, remarks, budget))
            .await;
    tried.unwrap_or_else(|_| Err(Fault::new(Code::Internal, "the plan could not be made")))
}

/// Submits it to a copy of the state, and looks what happens there.
fn try_out(
    service: &Service,
    mut state: Core,
    request: &JobRequest,
    remarks: Remarks,
    budget: Option<BudgetLeft>,
) -> Result<wire::Plan, Fault> {
    let spec = request.spec(TRIED, clock::now().max(state.now()));
    let event = Event::JobSubmitted { spec: Box::new(spec.clone()) };
    let stamped = Stamped { seq: state.seq() + 1, at: spec.submitted, event };
    state
        .apply(&stamped)
        .map(drop)
        .map_err(|why| Fault::from(berth_engine::Refused::Rejected(why)))?;
    let plan = state.plan();
    let mut places = Vec::new();
    // By element: only some of an array may run at once, and each costs for itself.
    let mut prices: BTreeMap<JobId, Micros> = BTreeMap::new();
    for decision in plan.decisions() {
        let Decision::Start { lease, node, slices, price: each, .. } = decision else { continue };
        if lease.job.number == TRIED.number {
            *prices.entry(lease.job).or_default() += *each;
            places.push(wire::Placement {
                task: lease.task,
                node: node.to_string(),
                model: None,
                gpus: slices.iter().map(|slice| slice.gpu).collect(),
            });
        }
    }
    let declared = service.host.has_declared_gpus();
    let one = first(&spec);
    let starts_now = !places.is_empty();
    let blockers = match starts_now {
        true => Vec::new(),
        false => {
            let (host, core) = (&*service.host, service.engine.core());
            let reasons = reasons::of_tried(host, &core, &mut state, one, &spec.groups);
            reasons::blockers(&reasons)
        }
    };
    let eta = (!starts_now).then(|| eta(&state, one));
    let price =
        prices.values().next().copied().or_else(|| expected::asking_price(&state, &spec.groups));
    let at_once = prices.values().fold(Micros::ZERO, |sum, price| sum + *price);
    let elements = spec.array.as_ref().map_or(1, |array| array.elements.len() as i64);
    let limit = spec.time_limit.unwrap_or(state.policy().default_time_limit);
    let estimate = state.estimate(one).unwrap_or(limit);
    // A service without a time runs until it is stopped.
    let is_endless = request.kind == JobKind::Service && limit >= SERVICE_TIME;
    let own = request.workload.run().and_then(|run| run.budget);
    let stops = own.and_then(|own| own_budget::stops_after(own, price?));
    let total = |hours: Span| {
        let price = price.filter(|_| !is_endless || stops.is_some())?;
        let most = own.unwrap_or(Micros(i64::MAX));
        Some(berth_ledger::cost::cumulative(price, hours).min(most).0.saturating_mul(elements))
    };
    let mut warnings = remarks.warnings;
    warnings.extend(budget_left::warning(budget.as_ref(), total(estimate)));
    let is_stopped = stops.filter(|stops| is_endless || *stops < estimate);
    let expected = (!is_endless).then_some(estimate);
    warnings.extend(is_stopped.zip(own).map(|(at, own)| own_budget::warning(own, at, expected)));
    Ok(wire::Plan {
        name: spec.name.to_string(),
        team: request.queue.to_string(),
        asks: request.asks.clone(),
        elements: elements as u32,
        starts_now,
        places,
        eta,
        blockers,
        price_micros_per_hour: if starts_now {
            Some(at_once.0)
        } else {
            price.map(|price| price.0)
        },
        total_micros: total(estimate),
        estimate_ms: is_stopped.or(expected).map(|time| time.0),
        most_micros: total(limit),
        warnings,
        declared,
    })
}

fn first(spec: &JobSpec) -> JobId {
    let element = spec.array.as_ref().and_then(|array| array.elements.first());
    element.map_or(spec.id, |element| spec.id.element(*element))
}

fn eta(state: &Core, id: JobId) -> wire::Eta {
    let Forecast { jobs, .. } = forecast(state, RUNS, id.number);
    let eta = jobs.get(&id).copied().unwrap_or_default();
    wire::Eta { p50: eta.p50.map(wire::At), p90: eta.p90.map(wire::At), age_ms: 0 }
}
