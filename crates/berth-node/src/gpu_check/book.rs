//! What this machine remembers of checks: which GPUs it has ever had, what the last check of each
//! came to, and which ones owe one.

use crate::home;
use crate::inventory::Device;
use berth_gpucheck::Check;
use berth_model::{Health, Time};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// GPUs come and go; so many are remembered.
const MOST: usize = 256;
const NEW: &str = "it is new on this machine";

#[derive(Debug)]
pub struct CheckBook {
    path: PathBuf,
    entries: Mutex<BTreeMap<String, Entry>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
struct Entry {
    /// Why it is to be checked before it takes work.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    owed: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    last: Option<Checked>,
}

/// A check that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checked {
    pub at: Time,
    pub check: Check,
}

impl CheckBook {
    /// Of a machine that has these GPUs now. The ones that it has never had before owe a check, but
    /// not on a machine of which nothing is known yet.
    pub fn open(folder: &Path, devices: &[Device]) -> CheckBook {
        let path = folder.join("gpu-checks.json");
        let found: Option<BTreeMap<String, Entry>> =
            home::read_json(&path).unwrap_or_else(|error| {
                tracing::warn!(%error, "earlier checks of GPUs are forgotten");
                None
            });
        let is_first = found.is_none();
        let mut entries = found.unwrap_or_default();
        for device in devices {
            let new = || Entry { owed: (!is_first).then(|| NEW.to_owned()), last: None };
            let entry = entries.entry(key(device)).or_insert_with(new);
            if device.health == Health::Failed && entry.owed.is_none() {
                entry.owed = Some("it had failed".to_owned());
            }
        }
        let here: Vec<String> = devices.iter().map(key).collect();
        while entries.len() > MOST.max(here.len()) {
            let gone = entries.keys().find(|known| !here.contains(known)).cloned();
            let Some(gone) = gone else { break };
            entries.remove(&gone);
        }
        let book = CheckBook { path, entries: Mutex::new(entries) };
        book.write(&book.entries());
        book
    }

    fn entries(&self) -> MutexGuard<'_, BTreeMap<String, Entry>> {
        self.entries.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What cannot be written is known to this server alone.
    fn write(&self, entries: &BTreeMap<String, Entry>) {
        if let Err(error) = home::write_json(&self.path, entries) {
            tracing::warn!(%error, "checks of GPUs cannot be remembered");
        }
    }

    fn change(&self, device: &Device, change: impl FnOnce(&mut Entry)) {
        let mut entries = self.entries();
        change(entries.entry(key(device)).or_default());
        self.write(&entries);
    }

    /// Why a GPU is to be checked before it takes work, if it is.
    pub fn owed(&self, device: &Device) -> Option<String> {
        self.entries().get(&key(device))?.owed.clone()
    }

    pub fn owe(&self, device: &Device, why: &str) {
        self.change(device, |entry| entry.owed = Some(why.to_owned()));
    }

    /// It takes work, with a check or without.
    pub fn settle(&self, device: &Device) {
        self.change(device, |entry| entry.owed = None);
    }

    pub fn last(&self, device: &Device) -> Option<Checked> {
        self.entries().get(&key(device))?.last.clone()
    }

    pub fn note(&self, device: &Device, checked: Checked) {
        self.change(device, |entry| entry.last = Some(checked));
    }
}

/// A GPU is itself wherever it is put; a declared one is only its place.
fn key(device: &Device) -> String {
    let Device { uuid, index, model, .. } = device;
    uuid.clone().unwrap_or_else(|| format!("declared {index} {model}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_model::{Bytes, Name};

    fn device(uuid: &str) -> Device {
        Device {
            index: 0,
            uuid: Some(uuid.to_owned()),
            minor: Some(0),
            model: Name::new("H200-141GB"),
            memory: Bytes::gib(140),
            health: Health::Ok,
            mig: None,
        }
    }

    #[test]
    fn a_gpu_that_a_known_machine_has_never_had_owes_a_check_until_it_takes_work() {
        let folder = tempfile::tempdir().unwrap();
        let (old, new) = (device("GPU-old"), device("GPU-new"));
        let first = CheckBook::open(folder.path(), std::slice::from_ref(&old));
        assert_eq!(first.owed(&old), None, "nothing is known of a machine at its first start");

        let both = [old.clone(), new.clone()];
        let book = CheckBook::open(folder.path(), &both);
        assert_eq!((book.owed(&old), book.owed(&new)), (None, Some(NEW.to_owned())));
        // A server that is killed in between owes it still.
        let book = CheckBook::open(folder.path(), &both);
        assert_eq!(book.owed(&new), Some(NEW.to_owned()));
        book.settle(&new);
        // It is taken out and put back.
        CheckBook::open(folder.path(), std::slice::from_ref(&old));
        assert_eq!(CheckBook::open(folder.path(), &both).owed(&new), None);
    }

    #[test]
    fn a_gpu_that_had_failed_owes_a_check_when_the_next_server_starts() {
        let folder = tempfile::tempdir().unwrap();
        let gpu = device("GPU-1");
        let all = std::slice::from_ref(&gpu);
        CheckBook::open(folder.path(), all).owe(&gpu, "XID 79");
        assert_eq!(CheckBook::open(folder.path(), all).owed(&gpu), Some("XID 79".to_owned()));
        let lost = Device { health: Health::Failed, ..device("GPU-2") };
        CheckBook::open(folder.path(), &[gpu.clone(), lost.clone()]);
        assert!(CheckBook::open(folder.path(), all).owed(&lost).is_some());
    }

    #[test]
    fn a_file_that_cannot_be_read_makes_no_gpu_new() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("gpu-checks.json"), "{").unwrap();
        let gpu = device("GPU-1");
        let book = CheckBook::open(folder.path(), std::slice::from_ref(&gpu));
        assert_eq!((book.owed(&gpu), book.last(&gpu)), (None, None));
    }
}
