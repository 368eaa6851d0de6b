//! MIG instances, made where the core has placed them and removed when nothing needs them.
//!
//! Berth changes only GPUs on which it has switched MIG on itself. It notes them in a file before it
//! does so: whatever a crash leaves is found at the next start. How an operator has divided other
//! GPUs stays as it is.

mod listing;
#[cfg(test)]
mod player;
mod smi;
#[cfg(test)]
mod tests;

pub use listing::Instance;
pub use smi::{NvidiaSmi, Smi, SmiError};

use crate::gpu_figures::MigPart;
use berth_model::MigSlot;
use listing::{Mode, instances, mode, profiles};
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

/// How long an instance is kept that no task has: the next task may want the same.
const KEEP: Duration = Duration::from_secs(60);
/// A process that has ended holds its instance for a moment.
const TRIES: u32 = 20;
const PAUSE: Duration = Duration::from_millis(250);

#[derive(Debug, thiserror::Error)]
pub enum MigError {
    #[error("GPU {gpu} has no MIG")]
    None { gpu: u32 },
    #[error(
        "GPU {gpu} has no MIG instance {profile} at {start}, and Berth does not change how its \
         operator has divided it"
    )]
    NotOurs { gpu: u32, profile: String, start: u8 },
    #[error("GPU {gpu} has no MIG profile {profile} that starts at {start}")]
    NoProfile { gpu: u32, profile: String, start: u8 },
    #[error("on GPU {gpu} another task has the MIG instance {there}")]
    Taken { gpu: u32, there: String },
    #[error(
        "MIG of GPU {gpu} changes only when the GPU is reset: run `nvidia-smi --gpu-reset -i {gpu}`"
    )]
    NeedsReset { gpu: u32 },
    #[error(
        "on GPU {gpu} nvidia-smi made no MIG instance {profile} at {start}, and did not say why"
    )]
    NotMade { gpu: u32, profile: String, start: u8 },
    #[error("GPU {gpu}: {source}")]
    Smi { gpu: u32, source: SmiError },
    #[error("cannot write {}: {source}", path.display())]
    Note { path: PathBuf, source: io::Error },
}

/// The MIG instances of one machine.
pub struct Mig {
    smi: Arc<dyn Smi>,
    note: PathBuf,
    /// One change at a time: what is there is listed first.
    state: Mutex<State>,
    pause: Duration,
}

#[derive(Default)]
struct State {
    /// Since when no task has an instance, by GPU and UUID.
    idle: BTreeMap<(u32, String), Instant>,
    /// Instances that were found, by UUID: the GPU and the number there.
    found: BTreeMap<String, (u32, u32)>,
}

impl Mig {
    /// `folder` is where Berth notes what it has changed.
    pub fn new(folder: &Path, smi: Arc<dyn Smi>) -> Mig {
        let note = folder.join("mig.json");
        Mig { smi, note, state: Mutex::default(), pause: PAUSE }
    }

    /// The GPUs on which Berth has switched MIG on.
    pub fn ours(&self) -> BTreeSet<u32> {
        let text = fs::read(&self.note).unwrap_or_default();
        serde_json::from_slice(&text).unwrap_or_default()
    }

    fn set_ours(&self, gpus: &BTreeSet<u32>) -> Result<(), MigError> {
        let fail = |source| MigError::Note { path: self.note.clone(), source };
        let text = serde_json::to_vec(gpus).map_err(io::Error::other).map_err(fail)?;
        let beside = self.note.with_extension("new");
        let write = || {
            fs::write(&beside, text)?;
            fs::File::open(&beside)?.sync_all()?;
            fs::rename(&beside, &self.note)
        };
        write().map_err(fail)
    }

    /// The instances of a GPU; none where they cannot be listed, which is logged.
    pub fn slots(&self, gpu: u32) -> Vec<MigSlot> {
        let found = self.list(gpu).unwrap_or_else(|error| {
            tracing::error!(%error, "the MIG instances of a GPU cannot be listed");
            Vec::new()
        });
        let slot = |one: Instance| MigSlot { profile: one.profile.into(), start: one.start };
        found.into_iter().map(slot).collect()
    }

    /// The instance at a place, which is made where it is not there. `held` are the UUIDs of the
    /// instances that tasks have; others in the way are removed.
    pub fn provide(
        &self,
        gpu: u32,
        slot: &MigSlot,
        held: &BTreeSet<String>,
    ) -> Result<Instance, MigError> {
        let mut state = self.state();
        let is_ours = self.switch_on(gpu)?;
        let profile = slot.profile.to_string();
        let found = self.list(gpu)?;
        if let Some(instance) = found.iter().find(|one| is_at(one, slot) && one.uuid.is_some()) {
            state.idle.retain(|(_, uuid), _| Some(uuid) != instance.uuid.as_ref());
            return Ok(instance.clone());
        }
        if !is_ours {
            return Err(MigError::NotOurs { gpu, profile, start: slot.start });
        }
        let missing = || MigError::NoProfile { gpu, profile: profile.clone(), start: slot.start };
        let known = profiles(&*self.smi, gpu).map_err(|source| MigError::Smi { gpu, source })?;
        let known = known.into_iter().find(|known| known.name == slot.profile.as_str());
        let known = known.filter(|known| known.starts.contains(&slot.start)).ok_or_else(missing)?;
        for one in found.iter().filter(|one| one.overlaps(slot.start, known.size)) {
            self.remove(gpu, one, held)?;
        }
        let (index, place) = (gpu.to_string(), format!("{}:{}", known.id, slot.start));
        let make = || self.smi.run(&["mig", "-i", &index, "-cgi", &place, "-C"]);
        let made = match make() {
            // Compute slices are counted over all instances.
            Err(error) if error.is_insufficient() => {
                let idle = found.iter().filter(|one| !is_held(one, held));
                for one in idle.filter(|one| !one.overlaps(slot.start, known.size)) {
                    self.remove(gpu, one, held)?;
                }
                make()
            }
            made => made,
        };
        made.map_err(|source| MigError::Smi { gpu, source })?;
        let made = self.list(gpu)?.into_iter().find(|one| is_at(one, slot) && one.uuid.is_some());
        made.ok_or(MigError::NotMade { gpu, profile, start: slot.start })
    }

    /// Makes a GPU whole for a task that wants it so.
    pub fn make_whole(&self, gpu: u32, held: &BTreeSet<String>) -> Result<(), MigError> {
        let mut state = self.state();
        if self.ours().contains(&gpu) {
            state.idle.retain(|(of, _), _| *of != gpu);
            self.clear(gpu, held)?;
        }
        Ok(())
    }

    /// Removes what no task has, on all GPUs that are Berth's to change. For the start of a server.
    pub fn reconcile(&self, held: &BTreeSet<String>) -> Vec<MigError> {
        let _state = self.state();
        let clear = |gpu| match self.clear(gpu, held) {
            Err(MigError::Taken { .. }) | Ok(()) => None,
            Err(error) => Some(error),
        };
        self.ours().into_iter().filter_map(clear).collect()
    }

    /// Removes instances that no task has had for a while, and switches MIG off where none is left.
    pub fn tidy(&self, held: &BTreeSet<String>) -> Vec<MigError> {
        let mut state = self.state();
        let mut failed = Vec::new();
        for gpu in self.ours() {
            match self.tidy_gpu(gpu, &mut state, held) {
                Ok(()) | Err(MigError::Taken { .. }) => {}
                Err(error) => failed.push(error),
            }
        }
        failed
    }

    fn tidy_gpu(
        &self,
        gpu: u32,
        state: &mut State,
        held: &BTreeSet<String>,
    ) -> Result<(), MigError> {
        let found = self.list(gpu)?;
        let now = Instant::now();
        let mut old = true;
        for one in &found {
            let key = (gpu, one.uuid.clone().unwrap_or_default());
            if is_held(one, held) {
                state.idle.remove(&key);
                old = false;
            } else {
                let since = *state.idle.entry(key).or_insert(now);
                old &= now.duration_since(since) >= KEEP;
            }
        }
        if old {
            state.idle.retain(|(of, _), _| *of != gpu);
            self.clear(gpu, held)?;
        }
        Ok(())
    }

    /// Removes all instances of a GPU that no task has. Where none is left, MIG is switched off.
    fn clear(&self, gpu: u32, held: &BTreeSet<String>) -> Result<(), MigError> {
        let found = self.list(gpu)?;
        let (kept, idle): (Vec<&Instance>, Vec<&Instance>) =
            found.iter().partition(|one| is_held(one, held));
        for one in idle {
            self.remove(gpu, one, held)?;
        }
        if let Some(kept) = kept.first() {
            return Err(taken(gpu, kept));
        }
        let index = gpu.to_string();
        let switched = self.patiently(|| self.smi.run(&["-i", &index, "-mig", "0"]));
        switched.map_err(|source| MigError::Smi { gpu, source })?;
        let mut ours = self.ours();
        ours.remove(&gpu);
        self.set_ours(&ours)
    }

    /// Whether the GPU is Berth's to change. Switches MIG on where it is off.
    fn switch_on(&self, gpu: u32) -> Result<bool, MigError> {
        let fail = |source| MigError::Smi { gpu, source };
        let now = mode(&*self.smi, gpu).map_err(fail)?.ok_or(MigError::None { gpu })?;
        let mut ours = self.ours();
        if now.current {
            return Ok(ours.contains(&gpu));
        }
        ours.insert(gpu);
        self.set_ours(&ours)?;
        let index = gpu.to_string();
        self.patiently(|| self.smi.run(&["-i", &index, "-mig", "1"])).map_err(fail)?;
        match mode(&*self.smi, gpu).map_err(fail)? {
            Some(Mode { current: true, .. }) => Ok(true),
            _ => Err(MigError::NeedsReset { gpu }),
        }
    }

    /// The instances with these UUIDs, as far as they are there. `nvidia-smi` is asked only for
    /// those that were not seen before.
    pub fn parts(&self, uuids: &BTreeSet<String>, gpus: &BTreeSet<u32>) -> Vec<MigPart> {
        let mut state = self.state();
        state.found.retain(|uuid, _| uuids.contains(uuid));
        if uuids.iter().any(|uuid| !state.found.contains_key(uuid)) {
            for gpu in gpus {
                for one in self.list(*gpu).unwrap_or_default() {
                    let uuid = one.uuid.filter(|uuid| uuids.contains(uuid));
                    state.found.extend(uuid.map(|uuid| (uuid, (*gpu, one.id))));
                }
            }
        }
        let part = |(uuid, (gpu, instance)): (&String, &(u32, u32))| MigPart {
            gpu: *gpu,
            instance: *instance,
            uuid: uuid.clone(),
        };
        state.found.iter().map(part).collect()
    }

    fn list(&self, gpu: u32) -> Result<Vec<Instance>, MigError> {
        instances(&*self.smi, gpu).map_err(|source| MigError::Smi { gpu, source })
    }

    fn remove(&self, gpu: u32, one: &Instance, held: &BTreeSet<String>) -> Result<(), MigError> {
        if is_held(one, held) {
            return Err(taken(gpu, one));
        }
        let (index, id) = (gpu.to_string(), one.id.to_string());
        for what in ["-dci", "-dgi"] {
            match self.patiently(|| self.smi.run(&["mig", "-i", &index, what, "-gi", &id])) {
                Ok(_) => {}
                // A crash has left the one without the other.
                Err(error) if error.is_not_found() => {}
                Err(source) => return Err(MigError::Smi { gpu, source }),
            }
        }
        Ok(())
    }

    /// Tries again while somebody has it open.
    fn patiently(&self, run: impl Fn() -> Result<String, SmiError>) -> Result<String, SmiError> {
        for _ in 1..TRIES {
            match run() {
                Err(error) if error.is_in_use() => sleep(self.pause),
                done => return done,
            }
        }
        run()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // It only says since when something was idle.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn is_at(one: &Instance, slot: &MigSlot) -> bool {
    one.profile == slot.profile.as_str() && one.start == slot.start
}

fn is_held(one: &Instance, held: &BTreeSet<String>) -> bool {
    one.uuid.as_ref().is_some_and(|uuid| held.contains(uuid))
}

fn taken(gpu: u32, one: &Instance) -> MigError {
    MigError::Taken { gpu, there: format!("{} at {}", one.profile, one.start) }
}
