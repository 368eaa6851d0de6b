//! Declared GPUs that tell what a file says: their figures, and what is wrong with them. For
//! demonstrations and tests on machines without GPUs. The file is read again at each look, so what
//! the GPUs do can be changed while the server runs.

use crate::gpu_figures::{EnergyCounters, GpuFigures, MigPart, ReadGpus};
use crate::gpu_health::{GpuFault, GpuHealth, LOST};
use berth_gpucheck::Played;
use berth_model::Bytes;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Between two looks at what is wrong.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// What the file says of one GPU. What it does not say is not measured.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct Told {
    utilization_percent: Option<u32>,
    /// Thousandths.
    sm_active: Option<i64>,
    tensor_active: Option<i64>,
    dram_active: Option<i64>,
    memory_used_mib: Option<i64>,
    /// The energy counter grows by it.
    power_watts: Option<u32>,
    sm_clock_mhz: Option<u32>,
    sm_clock_max_mhz: Option<u32>,
    temperature_celsius: Option<u32>,
    /// An error that it has.
    xid: Option<u64>,
    /// It is not there any more.
    lost: bool,
    /// What a check of it tells.
    check: Option<Played>,
}

#[derive(Debug, Clone)]
pub struct GpuRecording {
    path: PathBuf,
    count: u32,
    /// Of each GPU the energy so far in millijoules, and up to when; the same for all copies.
    energy: Arc<Mutex<BTreeMap<u32, (f64, Instant)>>>,
}

impl GpuRecording {
    /// Of so many GPUs. The file must be there and say something that can be read.
    pub fn open(path: &Path, count: usize) -> io::Result<GpuRecording> {
        let count = u32::try_from(count).map_err(io::Error::other)?;
        let recording = GpuRecording { path: path.to_owned(), count, energy: Arc::default() };
        recording.told().map(|_| recording)
    }

    fn told(&self) -> io::Result<Vec<Told>> {
        let mut told: Vec<Told> = serde_json::from_slice(&std::fs::read(&self.path)?)?;
        told.resize(self.count as usize, Told::default());
        Ok(told)
    }

    /// What a check of a GPU tells; nothing where there is nothing to check.
    pub fn check(&self, index: u32) -> Option<Played> {
        self.numbered().into_iter().find(|(number, _)| *number == index)?.1.check
    }

    /// A file that is being written is read again at the next look.
    fn numbered(&self) -> Vec<(u32, Told)> {
        let told = self.told().unwrap_or_else(|error| {
            tracing::warn!(path = %self.path.display(), %error, "a recording cannot be read");
            Vec::new()
        });
        (0..).zip(told).collect()
    }
}

impl GpuRecording {
    fn count_energy(&self, gpu: u32, told: &Told, now: Instant) -> Option<u64> {
        let watts = f64::from(told.power_watts?);
        let mut all = self.energy.lock().unwrap_or_else(PoisonError::into_inner);
        let (before, at) = all.get(&gpu).copied().unwrap_or((0.0, now));
        let energy = before + watts * now.duration_since(at).as_secs_f64() * 1e3;
        all.insert(gpu, (energy, now));
        Some(energy as u64)
    }
}

impl EnergyCounters for GpuRecording {
    fn energy_millijoules(&self, gpu: u32) -> Option<u64> {
        let told = self.numbered().into_iter().find(|(number, _)| *number == gpu)?.1;
        self.count_energy(gpu, &told, Instant::now()).filter(|_| !told.lost)
    }
}

impl ReadGpus for GpuRecording {
    fn read(&mut self) -> Vec<GpuFigures> {
        let now = Instant::now();
        let mut all = Vec::new();
        for (index, told) in self.numbered() {
            if told.lost {
                continue;
            }
            let energy = self.count_energy(index, &told, now);
            all.push(GpuFigures {
                index,
                utilization_percent: told.utilization_percent,
                sm_active: told.sm_active,
                tensor_active: told.tensor_active,
                dram_active: told.dram_active,
                memory_used: told.memory_used_mib.map(|mib| Bytes(mib.saturating_mul(1 << 20))),
                power_milliwatts: told.power_watts.and_then(|watts| watts.checked_mul(1_000)),
                energy_millijoules: energy,
                sm_clock_mhz: told.sm_clock_mhz,
                sm_clock_max_mhz: told.sm_clock_max_mhz,
                clock_reasons: None,
                temperature_celsius: told.temperature_celsius,
            });
        }
        all
    }

    fn read_parts(&mut self, parts: &[MigPart]) -> Vec<GpuFigures> {
        vec![GpuFigures::default(); parts.len()]
    }
}

impl GpuHealth for GpuRecording {
    fn faults(&mut self, wait: Duration) -> Vec<GpuFault> {
        std::thread::sleep(wait.min(LOOK_EVERY));
        self.numbered().into_iter().filter_map(|(index, told)| fault(index, &told)).collect()
    }

    fn now(&self, index: u32) -> Option<GpuFault> {
        let told = self.numbered().into_iter().find(|(number, _)| *number == index)?.1;
        fault(index, &told)
    }
}

fn fault(index: u32, told: &Told) -> Option<GpuFault> {
    GpuFault::of(index, if told.lost { LOST } else { told.xid? })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recording(text: &str) -> (tempfile::TempDir, io::Result<GpuRecording>) {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("gpus.json");
        std::fs::write(&path, text).unwrap();
        let recording = GpuRecording::open(&path, 2);
        (folder, recording)
    }

    #[test]
    fn gpus_tell_what_the_file_says_and_change_with_it() {
        let (folder, recording) = recording(r#"[{"sm_active": 900, "power_watts": 500}]"#);
        let mut recording = recording.unwrap();
        let all = recording.read();
        assert_eq!((all.len(), all[0].sm_active, all[1].sm_active), (2, Some(900), None));
        assert_eq!(all[0].power_milliwatts, Some(500_000));
        assert_eq!(recording.faults(Duration::ZERO), []);

        let text = r#"[{"lost": true}, {"xid": 31}]"#;
        std::fs::write(folder.path().join("gpus.json"), text).unwrap();
        assert_eq!(recording.read().len(), 1);
        let lost = GpuFault { index: 0, xid: 79 };
        assert_eq!(recording.faults(Duration::ZERO), std::slice::from_ref(&lost));
        assert_eq!((recording.now(0), recording.now(1)), (Some(lost), None));
    }

    #[test]
    fn a_file_with_a_mistake_is_refused_with_the_word() {
        let (_folder, recording) = recording(r#"[{"sm_activ": 900}]"#);
        let error = recording.unwrap_err().to_string();
        assert!(error.contains("unknown field `sm_activ`"), "{error}");
    }
}
