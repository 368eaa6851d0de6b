//! Hardware errors of GPUs become events of the core: nothing new starts on a GPU that failed. A
//! task that fails on it counts as failed by the hardware and not by the job, and is tried again.
//! After a restart the server takes the health of the GPU from the driver.

use crate::host::Host;
use berth_engine::{Act, Handle, Write};
use berth_model::{Event, Health};
use berth_node::{GpuFault, GpuWatch, Inventory};
use berth_service::server_audit;
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// Watches the GPUs of this machine until it is dropped; declared ones have nothing to tell.
pub fn watch(engine: Handle, host: &Host) -> Option<GpuWatch> {
    let (driver, inventory) = (host.driver.clone(), host.inventory.clone());
    let condition = host.condition.clone();
    if inventory.declared {
        return None;
    }
    let runtime = tokio::runtime::Handle::current();
    // A GPU that fails says so again and again; written down is that it did.
    let reported = Mutex::new(BTreeSet::new());
    Some(GpuWatch::start(move |fault| {
        tracing::error!(gpu = fault.index, xid = fault.xid, "a GPU failed");
        condition.gpu_failed(fault.index);
        if let Err(error) = driver.note_gpu_error(fault.index, fault.xid) {
            tracing::error!(%error, "its tasks will not be told apart from others that fail");
        }
        let Some(event) = failed(&inventory, &fault) else { return };
        if !reported.lock().unwrap_or_else(PoisonError::into_inner).insert(fault.index) {
            return;
        }
        let target = format!("gpu {} of {}, XID {}", fault.index, inventory.node.name, fault.xid);
        let write =
            Write::act(Act::Events(vec![event]), server_audit("berth", "gpu_failed", target));
        let engine = engine.clone();
        runtime.spawn(async move {
            if let Err(why) = engine.write_eventually(write).await {
                tracing::error!(%why, "a GPU that failed could not be written down");
            }
        });
    }))
}

fn failed(inventory: &Inventory, fault: &GpuFault) -> Option<Event> {
    let is_it = |uuid: &Option<String>| uuid.as_deref() == Some(fault.uuid.as_str());
    let at = inventory.devices.iter().position(|device| is_it(&device.uuid))?;
    let (node, gpu) = (inventory.node.name.clone(), u32::try_from(at).ok()?);
    Some(Event::GpuChanged { node, gpu, health: Health::Failed })
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_node::{Limits, Probe};

    #[test]
    fn a_fault_is_of_the_gpu_with_that_uuid_and_of_no_other() {
        let declared = "2xL4".parse().unwrap();
        let limits = Limits::default();
        let mut inventory = Inventory::read("box", Some(&declared), &Probe::load(), limits);
        for (at, device) in inventory.devices.iter_mut().enumerate() {
            device.uuid = Some(format!("GPU-{at}"));
        }
        let fault = |uuid: &str| GpuFault { index: 7, uuid: uuid.to_owned(), xid: 79 };
        let (node, health) = ("box".into(), Health::Failed);
        let expected = Event::GpuChanged { node, gpu: 1, health };
        assert_eq!(failed(&inventory, &fault("GPU-1")), Some(expected));
        assert_eq!(failed(&inventory, &fault("GPU-9")), None);
    }
}
