//! Hardware errors of GPUs as they happen.

use super::Probe;
use nvml_wrapper::Nvml;
use nvml_wrapper::bitmasks::event::EventTypes;
use nvml_wrapper::enums::event::XidError;
use nvml_wrapper::error::NvmlError;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

/// Of all errors (XIDs) the ones for which the device is to blame. The others, such as 13 and 31
/// (a bad memory access), are programs' own.
const HARDWARE: [u64; 11] = [48, 62, 64, 74, 79, 94, 95, 110, 119, 120, 140];

const WAIT_MS: u32 = 1_000;

/// A hardware error.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GpuFault {
    pub index: u32,
    pub uuid: String,
    pub xid: u64,
}

/// Watches until it is dropped.
#[derive(Debug)]
pub struct GpuWatch {
    over: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl GpuWatch {
    /// Calls back for each hardware error, from a thread of its own. Without GPUs, or where they
    /// do not tell, it does nothing.
    pub fn start(tell: impl Fn(GpuFault) + Send + 'static) -> GpuWatch {
        let over = Arc::new(AtomicBool::new(false));
        let thread = Probe::load().nvml.map(|nvml| {
            let over = Arc::clone(&over);
            std::thread::spawn(move || {
                if let Err(error) = watch(&nvml, &over, tell) {
                    tracing::warn!(%error, "errors of GPUs are not seen");
                }
            })
        });
        GpuWatch { over, thread }
    }
}

impl Drop for GpuWatch {
    fn drop(&mut self) {
        self.over.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn watch(nvml: &Nvml, over: &AtomicBool, tell: impl Fn(GpuFault)) -> Result<(), NvmlError> {
    let mut set = nvml.create_event_set()?;
    for index in 0..nvml.device_count()? {
        let device = nvml.device_by_index(index)?;
        let wanted = EventTypes::CRITICAL_XID_ERROR & device.supported_event_types()?;
        if !wanted.is_empty() {
            set = device.register_events(wanted, set).map_err(|failed| failed.error)?;
        }
    }
    while !over.load(Ordering::Relaxed) {
        let event = match set.wait(WAIT_MS) {
            Ok(event) => event,
            Err(NvmlError::Timeout) => continue,
            Err(error) => return Err(error),
        };
        let number = event.event_data.and_then(|data| match data {
            XidError::Value(number) => Some(number),
            XidError::Unknown => None,
        });
        if let Some(xid) = number.filter(|number| HARDWARE.contains(number)) {
            tell(GpuFault { index: event.device.index()?, uuid: event.device.uuid()?, xid });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn watching_a_machine_without_gpus_is_harmless() {
        drop(GpuWatch::start(|fault| panic!("{fault:?}")));
    }
}
