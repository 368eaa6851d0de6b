//! Every GPU, who holds it, and what it does.

use super::nodes;
use crate::caller::Caller;
use crate::fault::Fault;
use crate::figures;
use crate::host::GpuReading;
use crate::live;
use crate::service::Service;
use berth_api::access::Permission;
use berth_api::{Code, wire};
use berth_engine::{Act, LiveJob, Write};
use berth_model::{Event, Health, Micros, Name, NodeSpec};
use berth_store::{AuditEntry, Batch};
use serde_json::json;
use std::collections::BTreeMap;

/// Who holds what of the GPUs of each node.
type Holders = BTreeMap<(String, u32), Vec<wire::GpuHolder>>;

pub async fn list(service: &Service, caller: &Caller) -> Result<wire::Items<wire::Gpu>, Fault> {
    let readings = readings(service).await;
    let (nodes, prices, mut holders) = {
        let core = service.engine.core();
        let (nodes, prices) = (core.state.node_snapshots(), core.state.prices().clone());
        (nodes, prices, holders(core.jobs.values(), caller))
    };
    let mut items = Vec::new();
    for node in &nodes {
        for index in 0..node.spec.gpus.len() {
            let number = index as u32;
            let price = live::price(&node.spec, index, &prices);
            let held = holders.remove(&(node.spec.name.to_string(), number)).unwrap_or_default();
            let mut gpu = shown(&node.spec, index, price, held);
            if let Some(facts) = service.host.gpu(&node.spec.name, number) {
                gpu.uuid = facts.uuid;
                gpu.declared = facts.declared;
                gpu.held = facts.held;
                gpu.failed = facts.failed;
                gpu.checking = facts.checking;
                gpu.checked = facts.checked;
            }
            if service.host.node(&node.spec.name).is_some()
                && let Some(reading) = readings.get(&number)
            {
                measure(&mut gpu, reading);
            }
            let since = gpu.holders.iter().filter_map(|holder| holder.since).min();
            if let (Some(since), true) = (since, service.host.chooses_gpus()) {
                gpu.idle_ms = figures::idle_at_end(service, &gpu.node, number, since.0);
            }
            items.push(gpu);
        }
    }
    Ok(wire::Items { items })
}

/// Puts a GPU back that had failed and is well again.
pub async fn resume(
    service: &Service,
    caller: &Caller,
    node: &str,
    gpu: &str,
    how: wire::GpuResume,
) -> Result<wire::Gpu, Fault> {
    let found = one(service, caller, node, gpu).await?;
    if found.healthy {
        return Ok(found);
    }
    must_be_free(&found)?;
    // Whoever asked may go away while the check goes on; what it comes to counts all the same.
    let (service, caller) = (service.clone(), caller.clone());
    let put = tokio::spawn(async move { put_back(&service, &caller, found, how).await });
    put.await.unwrap_or_else(|panic| Err(Fault::new(Code::Internal, panic.to_string())))
}

fn must_be_free(gpu: &wire::Gpu) -> Result<(), Fault> {
    let wrong = |why: String, next: &str| Err(Fault::new(Code::WrongState, why).next(next));
    let wire::Gpu { node, index, .. } = gpu;
    if let Some(held) = &gpu.held {
        return wrong(held.clone(), "end that process; Berth then uses it");
    }
    if gpu.checking.is_some() {
        let next = "wait until it is over; `berth gpus` says what it came to";
        return wrong(format!("GPU {index} of {node} is being checked"), next);
    }
    if let Some(holder) = gpu.holders.first() {
        let why = format!("job {} still ends on GPU {index} of {node}", holder.job);
        return wrong(why, "try again when it has ended");
    }
    Ok(())
}

async fn put_back(
    service: &Service,
    caller: &Caller,
    gpu: wire::Gpu,
    how: wire::GpuResume,
) -> Result<wire::Gpu, Fault> {
    let wire::Gpu { node, index, failed, .. } = gpu;
    let (host, name) = (service.host.clone(), node.clone());
    let back = tokio::task::spawn_blocking(move || host.put_gpu_back(&name, index, !how.no_check));
    let back = back.await.map_err(|panic| Fault::new(Code::Internal, panic.to_string()))?;
    let target = format!("gpu {index} of {node}");
    if let Some(check) = &back.check {
        let outcome = if check.passed { "ok" } else { "failed" };
        let audit = AuditEntry {
            what: "gpu_checked".to_owned(),
            outcome: outcome.to_owned(),
            ..caller.audit(target.clone(), json!(check))
        };
        service.engine.write(Write::documents(Batch::default(), audit)).await?;
    }
    if let Some(why) = back.refused {
        let reset = format!("reset or replace it, as by `nvidia-smi --gpu-reset -i {index}`");
        let next = match back.check {
            None => format!("{reset}, and try again"),
            Some(_) => format!(
                "{reset}, and try again; `berth uncordon {node} --gpu {index} --no-check` puts it \
                 back as it is"
            ),
        };
        return Err(Fault::new(Code::WrongState, why).next(next));
    }
    let checked = match (&back.check, how.no_check) {
        (Some(_), _) => "passed",
        (None, true) => "left out",
        (None, false) => "nothing to check",
    };
    let event = Event::GpuChanged { node: Name::new(&node), gpu: index, health: Health::Ok };
    let audit = caller.audit(target, json!({ "was": failed, "check": checked }));
    service.engine.write(Write::act(Act::Events(vec![event]), audit)).await?;
    one(service, caller, &node, &index.to_string()).await
}

async fn one(
    service: &Service,
    caller: &Caller,
    node: &str,
    gpu: &str,
) -> Result<wire::Gpu, Fault> {
    let mut all = list(service, caller).await?.items.into_iter();
    let found = all.find(|found| found.node == node && found.index.to_string() == gpu);
    found.ok_or_else(|| Fault::not_found("gpu", &format!("{node}/{gpu}")))
}

/// What the GPUs of this machine do right now; declared ones do nothing.
pub async fn readings(service: &Service) -> BTreeMap<u32, GpuReading> {
    let host = service.host.clone();
    let readings = tokio::task::spawn_blocking(move || host.read_gpus()).await;
    readings.unwrap_or_default().into_iter().map(|reading| (reading.index, reading)).collect()
}

/// Everybody sees that a GPU is held, and by which team. The names of jobs are for those who may
/// read them.
fn holders<'a>(jobs: impl Iterator<Item = &'a LiveJob>, caller: &Caller) -> Holders {
    let mut holders = Holders::new();
    for job in jobs {
        let row = &job.row;
        let named = caller.may(Permission::JobsRead, Some(&row.team), Some(&row.user));
        for lease in job.leases.values() {
            for slice in live::slices(&lease.row.slices) {
                let (milli, share) = live::share(&slice.share);
                let holder = wire::GpuHolder {
                    job: row.id.into(),
                    name: if named { row.name.clone() } else { String::new() },
                    user: if named { row.user.clone() } else { String::new() },
                    since: Some(lease.row.opened.into()),
                    team: row.team.clone(),
                    milli,
                    share,
                };
                holders.entry((lease.row.node.clone(), slice.gpu)).or_default().push(holder);
            }
        }
    }
    holders
}

fn shown(node: &NodeSpec, index: usize, price: Micros, held: Vec<wire::GpuHolder>) -> wire::Gpu {
    let spec = &node.gpus[index];
    let used: i64 = held.iter().map(|holder| holder.milli).sum();
    wire::Gpu {
        node: node.name.to_string(),
        index: index as u32,
        model: spec.model.to_string(),
        memory_bytes: spec.memory.0,
        uuid: None,
        declared: false,
        healthy: spec.health == Health::Ok,
        held: None,
        failed: None,
        checking: None,
        checked: None,
        closed: Some(nodes::state(node.state).0).filter(|state| !state.takes_work()),
        free_milli: (1_000 - used).max(0),
        holders: held,
        price_micros_per_hour: price.0,
        utilization: None,
        used_bytes: None,
        watts: None,
        celsius: None,
        idle_ms: None,
    }
}

fn measure(gpu: &mut wire::Gpu, reading: &GpuReading) {
    gpu.utilization = reading.utilization_percent;
    gpu.used_bytes = reading.memory_used.map(|bytes| bytes.0);
    gpu.watts = reading.power_milliwatts.map(|power| power / 1_000);
    gpu.celsius = reading.temperature_celsius;
}
