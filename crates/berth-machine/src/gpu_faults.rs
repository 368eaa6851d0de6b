//! GPUs that fail. The core hears of it, so nothing new starts there. Tasks that hold the GPU are
//! ended, with the grace of their jobs; that counts as a failure of the hardware, and their jobs are
//! tried again from their checkpoints. An operator puts a GPU back that is well again.

use crate::condition::Condition;
use crate::recovery::Seen;
use berth_engine::Inlet;
use berth_node::{Driver, GpuFault, GpuHealth, GpuRecording, GpuWatch, NvidiaHealth};
use std::path::Path;
use std::sync::Arc;

/// Where a machine hears of faults.
#[derive(Debug, Clone, Default)]
pub enum FaultSource {
    /// Nothing tells of any.
    #[default]
    None,
    Nvidia,
    Recording(GpuRecording),
}

impl FaultSource {
    pub fn of(declared: bool, recording: Option<&GpuRecording>) -> FaultSource {
        match (declared, recording) {
            (_, Some(recording)) => FaultSource::Recording(recording.clone()),
            (true, None) => FaultSource::None,
            (false, None) => FaultSource::Nvidia,
        }
    }

    fn open(&self) -> Option<Box<dyn GpuHealth>> {
        match self {
            FaultSource::None => None,
            FaultSource::Nvidia => Some(Box::new(NvidiaHealth::load()?)),
            FaultSource::Recording(recording) => Some(Box::new(recording.clone())),
        }
    }

    /// What is wrong with a GPU now.
    pub fn now(&self, index: u32) -> Option<GpuFault> {
        self.open()?.now(index)
    }
}

/// Opens what declared GPUs are to tell.
pub fn open_recording(path: &Path, gpus: usize) -> std::io::Result<GpuRecording> {
    GpuRecording::open(path, gpus)
}

/// Watches the GPUs of this machine until it is dropped. A GPU that fails owes a check.
pub fn watch(
    source: &FaultSource,
    driver: Arc<Driver>,
    condition: Arc<Condition>,
    inlet: Inlet<Seen>,
    owe_check: impl Fn(&GpuFault) + Send + 'static,
) -> Option<GpuWatch> {
    let runtime = tokio::runtime::Handle::current();
    Some(GpuWatch::start(source.open()?, move |fault| {
        // A GPU that fails says so again and again.
        if !condition.gpu_failed(fault.index, fault.words()) {
            return;
        }
        owe_check(&fault);
        tracing::error!(gpu = fault.index, why = fault.words(), "a GPU has failed");
        let leases = driver.note_gpu_error(fault.index, fault.xid).unwrap_or_else(|error| {
            tracing::error!(%error, "its tasks will not be told apart from others that fail");
            Vec::new()
        });
        let seen = Seen::GpuFailed { gpu: fault.index, why: fault.words(), leases };
        let inlet = inlet.clone();
        runtime.spawn(async move { inlet.site(seen).await });
    }))
}
