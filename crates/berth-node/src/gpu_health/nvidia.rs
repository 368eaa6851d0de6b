//! Errors and states of GPUs as NVIDIA's management library tells them.

use super::{GpuFault, GpuHealth, LOST, NOT_REMAPPED, UNCORRECTED};
use crate::gpu_figures::library;
use nvml_wrapper::bitmasks::event::EventTypes;
use nvml_wrapper::enum_wrappers::device::{EccCounter, MemoryError};
use nvml_wrapper::enums::device::SampleValue;
use nvml_wrapper::enums::event::XidError;
use nvml_wrapper::error::NvmlError;
use nvml_wrapper::structs::device::FieldId;
use nvml_wrapper::{Device, EventSet, Nvml};
use std::time::{Duration, Instant};

/// Whether memory rows that failed could not be replaced (`NVML_FI_DEV_REMAPPED_FAILURE`).
const ROW_REMAP_FAILED: FieldId = FieldId(145);
/// Between two looks at how the GPUs are.
const LOOK_EVERY: Duration = Duration::from_secs(10);

pub struct NvidiaHealth {
    nvml: &'static Nvml,
    count: u32,
    /// Nothing where no GPU tells its errors, or where the library has lost its thread.
    events: Option<EventSet<'static>>,
    looked: Option<Instant>,
}

impl NvidiaHealth {
    /// Nothing where the library is not there, or finds no GPU.
    pub fn load() -> Option<NvidiaHealth> {
        let nvml = library()?;
        let count = nvml.device_count().ok().filter(|count| *count > 0)?;
        let events = subscribe(nvml, count);
        if let Err(error) = &events {
            tracing::warn!(%error, "errors of GPUs are not heard as they happen");
        }
        Some(NvidiaHealth { nvml, count, events: events.ok(), looked: None })
    }

    fn wait(&mut self, wait: Duration) -> Option<GpuFault> {
        let Some(events) = &self.events else {
            std::thread::sleep(wait);
            self.events = subscribe(self.nvml, self.count).ok();
            return None;
        };
        match events.wait(u32::try_from(wait.as_millis()).unwrap_or(1_000)) {
            Ok(event) => {
                let XidError::Value(xid) = event.event_data? else { return None };
                // A GPU that is lost has no index any more; the next look finds out which it is.
                GpuFault::of(event.device.index().ok()?, xid)
            }
            Err(NvmlError::Timeout) => None,
            Err(error) => {
                tracing::warn!(%error, "errors of GPUs are not heard; trying again");
                self.events = None;
                None
            }
        }
    }
}

impl GpuHealth for NvidiaHealth {
    fn faults(&mut self, wait: Duration) -> Vec<GpuFault> {
        let mut found: Vec<GpuFault> = self.wait(wait).into_iter().collect();
        if self.looked.is_none_or(|at| at.elapsed() >= LOOK_EVERY) {
            self.looked = Some(Instant::now());
            found.extend((0..self.count).filter_map(|index| self.now(index)));
        }
        found
    }

    fn now(&self, index: u32) -> Option<GpuFault> {
        let xid = match self.nvml.device_by_index(index) {
            Ok(device) => ill(&device)?,
            Err(NvmlError::GpuLost | NvmlError::InvalidArg | NvmlError::NotFound) => LOST,
            // One that is being reset answers again.
            Err(_) => return None,
        };
        Some(GpuFault { index, xid })
    }
}

fn subscribe(nvml: &'static Nvml, count: u32) -> Result<EventSet<'static>, NvmlError> {
    let mut set = nvml.create_event_set()?;
    for index in 0..count {
        // One that is lost says nothing; the others go on.
        let Ok(device) = nvml.device_by_index(index) else { continue };
        let told = device.supported_event_types().unwrap_or(EventTypes::empty());
        let wanted = EventTypes::CRITICAL_XID_ERROR & told;
        if !wanted.is_empty() {
            set = device.register_events(wanted, set).map_err(|failed| failed.error)?;
        }
    }
    Ok(set)
}

/// The error of a GPU whose memory has errors that were neither corrected nor moved out of the way.
pub(crate) fn ill(gpu: &Device<'_>) -> Option<u64> {
    if matches!(gpu.uuid(), Err(NvmlError::GpuLost)) {
        return Some(LOST);
    }
    let errors = gpu.total_ecc_errors(MemoryError::Uncorrected, EccCounter::Volatile).unwrap_or(0);
    if errors > 0 {
        return Some(UNCORRECTED);
    }
    let remap = gpu.field_values_for(&[ROW_REMAP_FAILED]).unwrap_or_default();
    let remap_failed = remap.into_iter().flatten().any(|sample| match sample.value {
        Ok(SampleValue::U32(value)) => value != 0,
        Ok(SampleValue::U64(value)) => value != 0,
        _ => false,
    });
    let pending = gpu.are_pages_pending_retired().unwrap_or(false);
    (remap_failed || pending).then_some(NOT_REMAPPED)
}
