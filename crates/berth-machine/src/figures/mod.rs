//! Measures GPUs and tasks again and again, beside the loop, and has it written. What is measured
//! decides nothing.

mod sampler;

use crate::energy::Energy;
use crate::host::Host;
use berth_engine::clock;
use berth_node::{GpuReader, Nvidia, ReadGpus};
use berth_service::{Service, figures};
use sampler::Sampler;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior, interval_at, sleep};

/// How long energy may wait to be written, and what a killed server may have to find out anew.
const LONGEST_WRITE: Duration = Duration::from_secs(60);
/// Tasks that end within this time are written together.
const TOGETHER: Duration = Duration::from_secs(1);

/// Begins to measure, where that is wanted. It ends when the task is aborted.
pub fn begin(service: Service, host: Arc<Host>) -> Option<tokio::task::JoinHandle<()>> {
    let every = host.figures.as_ref()?.every;
    let every = Duration::from_millis(u64::try_from(every.0).ok()?);
    Some(tokio::spawn(async move {
        let energy = host.energy.clone();
        let gathered = figures::run(&service, every, sample(host, every));
        tokio::join!(gathered, write_energy(&service, energy));
    }))
}

async fn sample(host: Arc<Host>, every: Duration) {
    let gpus = match (host.inventory.declared, &host.checks.recording) {
        (_, Some(recording)) => Some(Box::new(recording.clone()) as Box<dyn ReadGpus>),
        (true, None) => None,
        (false, None) => Nvidia::load().map(|found| Box::new(GpuReader::new(found)) as _),
    };
    let node = host.inventory.node.name.to_string();
    let mut sampler = Sampler::new(node, gpus);
    let mut ticks = interval_at(Instant::now(), every);
    // One that comes late is not made up for.
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        ticks.tick().await;
        let host = host.clone();
        let looked = tokio::task::spawn_blocking(move || {
            if let Some(figures) = &host.figures {
                let (used, parts) = (host.driver.task_use(), host.slices.parts());
                sampler.look(clock::now(), &used, &parts, &figures.book);
            }
            sampler
        });
        let Ok(back) = looked.await else { return };
        sampler = back;
    }
}

/// Writes the energy of tasks once a minute, and soon after some have ended: a bill should be
/// whole when its job is over.
async fn write_energy(service: &Service, energy: Option<Arc<Energy>>) {
    let Some(energy) = energy else { return };
    loop {
        let _ = tokio::time::timeout(LONGEST_WRITE, energy.ended()).await;
        sleep(TOGETHER).await;
        for lease in energy.take_found() {
            if let Err(fault) = figures::adopt(service, lease).await {
                tracing::warn!(%lease, fault = fault.0.detail, "energy of an outage is not billed");
            }
        }
        if let Err(fault) = figures::flush_energy(service).await {
            tracing::warn!(fault = fault.0.detail, "energy was not written; trying again");
        }
    }
}
