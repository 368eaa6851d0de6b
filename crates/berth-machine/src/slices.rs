//! The parts of GPUs that the core has given to a task, carried out: MIG instances where it has
//! placed them, shares under MPS, and whole GPUs for those who have one.

use berth_model::{JobKind, LeaseId, Milli, Share, Slice};
use berth_node::{
    Device, DeviceError, Driver, Gpus, Inventory, Mig, MigError, MigPart, Mps, MpsError, Shown,
};
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// Between two looks for instances that nothing needs.
const TIDY_EVERY: Duration = Duration::from_secs(20);
/// Between two looks at daemons.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// What has no number of NVIDIA's.
const NO_XID: u64 = 0;

pub struct Slices {
    pub inventory: Arc<Inventory>,
    pub driver: Arc<Driver>,
    pub mig: Arc<Mig>,
    pub mps: Arc<Mps>,
}

/// What a task gets of the machine's GPUs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Provided {
    pub gpus: Gpus,
    /// The device nodes that it may open.
    pub nodes: Vec<PathBuf>,
    /// By which its processes find their part. Job files set no such variables.
    pub env: BTreeMap<String, String>,
    /// What it has to see for that.
    pub shown: Vec<Shown>,
}

#[derive(Debug, thiserror::Error)]
pub enum SliceError {
    #[error("{0}")]
    Device(#[from] DeviceError),
    #[error("{0}")]
    Mig(#[from] MigError),
    #[error("{0}")]
    Mps(#[from] MpsError),
}

impl SliceError {
    /// Whether another try may succeed: something is in the way for now.
    pub fn is_passing(&self) -> bool {
        match self {
            SliceError::Device(_) => false,
            SliceError::Mps(_) => true,
            SliceError::Mig(error) => !matches!(
                error,
                MigError::None { .. } | MigError::NotOurs { .. } | MigError::NoProfile { .. }
            ),
        }
    }
}

impl Slices {
    /// Makes what is not there. This blocks: the driver of the GPUs takes its time.
    pub fn provide(&self, slices: &[Slice], kind: JobKind) -> Result<Provided, SliceError> {
        let indices: Vec<u32> = slices.iter().map(|slice| slice.gpu).collect();
        if self.inventory.declared {
            indices.iter().try_for_each(|index| self.inventory.device(*index).map(drop))?;
            let gpus = Gpus::Declared { indices };
            let nodes = self.inventory.device_nodes(&gpus, &[]);
            return Ok(Provided { gpus, nodes, ..Provided::default() });
        }
        let (mut uuids, mut instances) = (Vec::new(), Vec::new());
        let mut provided = Provided::default();
        let (held, shared) = (self.driver.held_devices(), self.driver.held_gpus());
        for slice in slices {
            let device = self.inventory.device(slice.gpu)?;
            match &slice.share {
                Share::Mig(slot) => {
                    let instance = self.mig.provide(slice.gpu, slot, &held)?;
                    uuids.extend(instance.uuid);
                    instances.push((slice.gpu, instance.id));
                }
                share => {
                    self.mig.make_whole(slice.gpu, &held)?;
                    uuids.extend(device.uuid.clone());
                    match mps_part(share, kind).filter(|_| slices.len() == 1 && self.mps.is_there())
                    {
                        Some(part) => self.share(device, part, &mut provided)?,
                        // Others on this GPU may be using its daemon.
                        None if shared.contains(&slice.gpu) => {}
                        None => self.mps.stop(slice.gpu)?,
                    }
                }
            }
        }
        provided.gpus = Gpus::Real { indices, uuids };
        provided.nodes = self.inventory.device_nodes(&provided.gpus, &instances);
        Ok(provided)
    }

    /// A part of the threads and of the memory of a GPU.
    fn share(
        &self,
        device: &Device,
        part: Milli,
        provided: &mut Provided,
    ) -> Result<(), SliceError> {
        let uuid = device.uuid.as_deref().unwrap_or_default();
        let pipe = self.mps.provide(device.index, uuid)?;
        let percent = (part.0 / 10).clamp(1, 100);
        let memory = (device.memory.0 >> 20).saturating_mul(part.0) / 1_000;
        let variables = [
            ("CUDA_MPS_PIPE_DIRECTORY", pipe.display().to_string()),
            ("CUDA_MPS_ACTIVE_THREAD_PERCENTAGE", percent.to_string()),
            // The daemon has this GPU alone, so it is the first.
            ("CUDA_MPS_PINNED_DEVICE_MEM_LIMIT", format!("0={memory}M")),
        ];
        provided.env.extend(variables.map(|(name, value)| (name.to_owned(), value)));
        provided.shown.push(Shown::in_place(&pipe, true));
        Ok(())
    }

    /// Notes with the tasks that share a GPU that its MPS daemon has died: those that fail do so
    /// through no fault of their own, and are tried again.
    pub fn note_dead_daemons(&self) {
        for gpu in self.mps.died() {
            tracing::error!(gpu, "the MPS daemon of a GPU has died; its tasks may fail");
            if let Err(error) = self.driver.note_gpu_error(gpu, NO_XID) {
                tracing::error!(%error, "its tasks will not be told apart from others that fail");
            }
        }
    }

    /// The MIG instances of tasks that run.
    pub fn parts(&self) -> BTreeMap<LeaseId, Vec<MigPart>> {
        let held = self.driver.mig_parts();
        if held.is_empty() {
            return BTreeMap::new();
        }
        let uuids = held.values().flat_map(|(uuids, _)| uuids.clone()).collect();
        let gpus = held.values().flat_map(|(_, gpus)| gpus.clone()).collect();
        let found = self.mig.parts(&uuids, &gpus);
        let of = |uuids: &[String]| -> Vec<MigPart> {
            found.iter().filter(|part| uuids.contains(&part.uuid)).cloned().collect()
        };
        held.iter().map(|(lease, (uuids, _))| (*lease, of(uuids))).collect()
    }

    /// Stops and removes what an earlier server has left and no task needs.
    pub fn reconcile(&self) {
        for error in self.mig.reconcile(&self.driver.held_devices()) {
            tracing::error!(%error, "what an earlier server has left of MIG cannot be removed");
        }
        for error in self.mps.stop_unused(&self.driver.held_gpus()) {
            tracing::error!(%error, "what an earlier server has left of MPS cannot be removed");
        }
    }
}

/// The part of a GPU that MPS hands out. A time slice has all of it in its turn; so has a notebook,
/// which idles most of the time, and whose faults are not to end the jobs beside it.
fn mps_part(share: &Share, kind: JobKind) -> Option<Milli> {
    match share {
        Share::Fraction(_) if kind == JobKind::Notebook => None,
        Share::Mps(part) | Share::Fraction(part) => Some(*part),
        Share::Whole | Share::TimeSlice(_) | Share::Mig(_) => None,
    }
}

/// Looks after the daemons of shared GPUs.
pub async fn look_around(slices: Arc<Slices>) {
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        let slices = slices.clone();
        let _ = tokio::task::spawn_blocking(move || slices.note_dead_daemons()).await;
    }
}

/// Removes instances that nothing needs, again and again.
pub async fn tidy_up(slices: Arc<Slices>) {
    loop {
        tokio::time::sleep(TIDY_EVERY).await;
        let slices = slices.clone();
        let tidied =
            tokio::task::spawn_blocking(move || slices.mig.tidy(&slices.driver.held_devices()));
        for error in tidied.await.unwrap_or_default() {
            tracing::warn!(%error, "a MIG instance that nothing needs cannot be removed");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_notebook_takes_turns_where_a_job_gets_its_part_by_mps() {
        let half = Share::Fraction(Milli(500));
        assert_eq!(mps_part(&half, JobKind::Job), Some(Milli(500)));
        assert_eq!(mps_part(&half, JobKind::Service), Some(Milli(500)));
        assert_eq!(mps_part(&half, JobKind::Notebook), None);
        assert_eq!(mps_part(&Share::Whole, JobKind::Job), None);
    }
}
