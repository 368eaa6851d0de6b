//! Every GPU, who holds it, and what it does.

use crate::app::App;
use crate::engine::LiveJob;
use crate::http::answer::{Answer, Json};
use crate::http::auth::Caller;
use crate::http::live;
use axum::extract::State;
use berth_api::access::Permission;
use berth_api::wire;
use berth_model::{Health, Micros, NodeSpec};
use berth_node::{Device, GpuSample};
use std::collections::BTreeMap;

/// Who holds what of the GPUs of each node.
type Holders = BTreeMap<(String, u32), Vec<wire::GpuHolder>>;

pub async fn list(State(app): State<App>, caller: Caller) -> Answer<wire::Items<wire::Gpu>> {
    let samples = samples(&app).await;
    let (nodes, prices, mut holders) = {
        let core = app.engine.core();
        let (nodes, prices) = (core.state.node_snapshots(), core.state.prices().clone());
        (nodes, prices, holders(core.jobs.values(), &caller))
    };
    let mut items = Vec::new();
    for node in &nodes {
        let here = app.here(&node.spec.name);
        for index in 0..node.spec.gpus.len() {
            let number = index as u32;
            let price = live::price(&node.spec, index, &prices);
            let held = holders.remove(&(node.spec.name.to_string(), number)).unwrap_or_default();
            let mut gpu = shown(&node.spec, index, price, held);
            let mut devices = here.iter().flat_map(|here| &here.inventory.devices);
            let device = devices.find(|one| one.index == number);
            gpu.uuid = device.and_then(|device| device.uuid.clone());
            gpu.declared = device.is_some_and(Device::declared);
            if here.is_some()
                && let Some(sample) = samples.get(&number)
            {
                measure(&mut gpu, sample);
            }
            items.push(gpu);
        }
    }
    Ok(Json(wire::Items { items }))
}

/// What the GPUs of this machine do right now; declared ones do nothing.
pub async fn samples(app: &App) -> BTreeMap<u32, GpuSample> {
    if app.declared() {
        return BTreeMap::new();
    }
    let app = app.clone();
    // The library waits for the device.
    let sample = move || app.here.as_ref().map(|here| here.probe.sample()).unwrap_or_default();
    let samples = tokio::task::spawn_blocking(sample).await;
    samples.unwrap_or_default().into_iter().map(|sample| (sample.index, sample)).collect()
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
        free_milli: (1_000 - used).max(0),
        holders: held,
        price_micros_per_hour: price.0,
        utilization: None,
        used_bytes: None,
        watts: None,
        celsius: None,
    }
}

fn measure(gpu: &mut wire::Gpu, sample: &GpuSample) {
    gpu.utilization = sample.utilization_percent;
    gpu.used_bytes = sample.memory_used.map(|bytes| bytes.0);
    gpu.watts = sample.power_milliwatts.map(|power| power / 1_000);
    gpu.celsius = sample.temperature_celsius;
}
