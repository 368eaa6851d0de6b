//! Caps on the power of GPUs. A cap stays when the server ends, as its jobs do. A server that starts
//! without one gives a GPU back its usual limit, where an earlier server had capped it.

use crate::gpu_figures::library;
use crate::inventory::Device;
use std::collections::BTreeSet;
use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

/// The most that GPUs may take: of each model, or of all others.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PowerCaps(Vec<(Option<String>, u32)>);

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no power cap; write 500W for all GPUs, or H200=500W,L4=60W by model")]
pub struct ParsePowerCaps(String);

impl FromStr for PowerCaps {
    type Err = ParsePowerCaps;

    fn from_str(text: &str) -> Result<PowerCaps, ParsePowerCaps> {
        let wrong = || ParsePowerCaps(text.to_owned());
        let mut caps = Vec::new();
        for part in text.split(',') {
            let (model, watts) = match part.split_once('=') {
                Some((model, watts)) => (Some(model.trim()), watts),
                None => (None, part),
            };
            let watts = watts.trim().trim_end_matches(['W', 'w']).trim();
            let watts: u32 = watts.parse().map_err(|_| wrong())?;
            if !(1..=10_000).contains(&watts) || model.is_some_and(str::is_empty) {
                return Err(wrong());
            }
            caps.push((model.map(str::to_owned), watts));
        }
        Ok(PowerCaps(caps))
    }
}

impl fmt::Display for PowerCaps {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (model, watts)) in self.0.iter().enumerate() {
            let comma = if at > 0 { "," } else { "" };
            let model = model.as_ref().map(|model| format!("{model}=")).unwrap_or_default();
            write!(f, "{comma}{model}{watts}W")?;
        }
        Ok(())
    }
}

impl PowerCaps {
    /// In watts. A cap of the model comes before one of all.
    fn of(&self, device: &Device) -> Option<u32> {
        let model = device.model.as_str();
        let is_it = |name: &str| model == name || model.starts_with(&format!("{name}-"));
        let own = self.0.iter().find(|(name, _)| name.as_deref().is_some_and(is_it));
        own.or_else(|| self.0.iter().find(|(name, _)| name.is_none())).map(|(_, watts)| *watts)
    }
}

/// Power limits of GPUs, in milliwatts.
pub trait PowerControl: Send + Sync {
    /// The usual limit, the smallest and the largest.
    fn limits(&self, gpu: u32) -> Result<(u32, u32, u32), String>;
    fn set(&self, gpu: u32, milliwatts: u32) -> Result<(), String>;
}

#[derive(Debug, Clone, Copy, Default)]
pub struct NvidiaPower;

impl PowerControl for NvidiaPower {
    fn limits(&self, gpu: u32) -> Result<(u32, u32, u32), String> {
        let nvml = library().ok_or("NVIDIA's library is not there")?;
        let read = || {
            let device = nvml.device_by_index(gpu)?;
            let usual = device.power_management_limit_default()?;
            let bounds = device.power_management_limit_constraints()?;
            Ok((usual, bounds.min_limit, bounds.max_limit))
        };
        read().map_err(|error: nvml_wrapper::error::NvmlError| error.to_string())
    }

    fn set(&self, gpu: u32, milliwatts: u32) -> Result<(), String> {
        let nvml = library().ok_or("NVIDIA's library is not there")?;
        let mut device = nvml.device_by_index(gpu).map_err(|error| error.to_string())?;
        device.set_power_management_limit(milliwatts).map_err(|error| error.to_string())
    }
}

/// Carries caps out.
pub struct Power {
    /// The GPUs that Berth has capped.
    note: PathBuf,
    control: Arc<dyn PowerControl>,
}

impl Power {
    pub fn new(folder: &Path, control: Arc<dyn PowerControl>) -> Power {
        Power { note: folder.join("power.json"), control }
    }

    /// Sets the limits of all GPUs. Returns what could not be done: jobs run all the same.
    pub fn apply(&self, devices: &[Device], caps: &PowerCaps) -> Vec<String> {
        let capped: BTreeSet<u32> = std::fs::read(&self.note)
            .ok()
            .and_then(|text| serde_json::from_slice(&text).ok())
            .unwrap_or_default();
        let mut wrong = Vec::new();
        let mut now = BTreeSet::new();
        for device in devices {
            let cap = caps.of(device);
            if cap.is_none() && !capped.contains(&device.index) {
                continue;
            }
            match self.cap(device.index, cap) {
                Ok(()) if cap.is_none() => {}
                Ok(()) => drop(now.insert(device.index)),
                Err(why) => {
                    wrong.push(format!("the power of GPU {} is not capped: {why}", device.index));
                    // The next server tries again to undo it.
                    now.extend(capped.get(&device.index));
                }
            }
        }
        if now != capped
            && let Err(error) = crate::home::write_json(&self.note, &now)
        {
            wrong.push(error.to_string());
        }
        wrong
    }

    fn cap(&self, gpu: u32, watts: Option<u32>) -> Result<(), String> {
        let (usual, least, most) = self.control.limits(gpu)?;
        let wanted = watts.map_or(usual, |watts| watts.saturating_mul(1_000));
        if !(least..=most).contains(&wanted) {
            let (least, most) = (least / 1_000, most / 1_000);
            return Err(format!("it takes from {least} to {most} W, not {} W", wanted / 1_000));
        }
        self.control.set(gpu, wanted)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_model::{Bytes, Health, Name};
    use std::sync::Mutex;

    /// GPUs of which the second cannot be changed.
    #[derive(Default)]
    struct Fake(Mutex<Vec<(u32, u32)>>);

    impl PowerControl for Fake {
        fn limits(&self, _: u32) -> Result<(u32, u32, u32), String> {
            Ok((700_000, 200_000, 700_000))
        }

        fn set(&self, gpu: u32, milliwatts: u32) -> Result<(), String> {
            if gpu == 1 {
                return Err("no permission".to_owned());
            }
            self.0.lock().unwrap().push((gpu, milliwatts));
            Ok(())
        }
    }

    fn device(index: u32, model: &str) -> Device {
        Device {
            index,
            uuid: Some(format!("GPU-{index}")),
            minor: Some(index),
            model: Name::new(model),
            memory: Bytes::gib(140),
            health: Health::Ok,
            mig: None,
        }
    }

    #[test]
    fn a_cap_is_of_a_model_or_of_all_and_one_with_a_mistake_is_refused() {
        let caps: PowerCaps = "H200=500W, 300".parse().unwrap();
        assert_eq!(caps.of(&device(0, "H200-141GB")), Some(500));
        assert_eq!(caps.of(&device(0, "H2000-1GB")), Some(300));
        assert_eq!(caps.to_string(), "H200=500W,300W");
        for wrong in ["", "0W", "=500W", "H200=lots", "H200=99999W"] {
            assert!(wrong.parse::<PowerCaps>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn gpus_are_capped_within_what_they_take_and_get_their_usual_limit_back() {
        let folder = tempfile::tempdir().unwrap();
        let fake = Arc::new(Fake::default());
        let power = Power::new(folder.path(), fake.clone());
        let gpus = [device(0, "H200-141GB"), device(1, "H200-141GB"), device(2, "L4-24GB")];
        let wrong = power.apply(&gpus, &"H200=500W,L4=60W".parse().unwrap());
        assert_eq!(
            wrong,
            [
                "the power of GPU 1 is not capped: no permission",
                "the power of GPU 2 is not capped: it takes from 200 to 700 W, not 60 W",
            ]
        );
        assert_eq!(std::mem::take(&mut *fake.0.lock().unwrap()), [(0, 500_000)]);
        // The next server has no cap: what Berth has not capped is left alone.
        assert_eq!(power.apply(&gpus, &PowerCaps::default()), Vec::<String>::new());
        assert_eq!(std::mem::take(&mut *fake.0.lock().unwrap()), [(0, 700_000)]);
        power.apply(&gpus, &PowerCaps::default());
        assert_eq!(*fake.0.lock().unwrap(), []);
    }
}
