//! How this machine is: whether it can start tasks, which of its GPUs are held by processes that no
//! job explains, and how much output and which volumes it keeps. The loop learns of it by events; this is what people
//! are shown beside.

use berth_model::{Bytes, Name};
use berth_node::{Lack, Trouble};
use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Debug, Default)]
pub struct Condition(Mutex<Now>);

#[derive(Debug, Default)]
struct Now {
    trouble: Option<Trouble>,
    /// By the index of the GPU, with the sentence that says by whom.
    held_gpus: BTreeMap<u32, String>,
    /// GPUs that have failed, with what is wrong.
    failed_gpus: BTreeMap<u32, String>,
    /// GPUs that are checked or wait for it, with the reason.
    checking_gpus: BTreeMap<u32, String>,
    output: BTreeMap<Name, Bytes>,
    volumes: BTreeMap<(String, String), Bytes>,
}

impl Condition {
    fn now(&self) -> MutexGuard<'_, Now> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Why nothing can be started.
    pub fn trouble(&self) -> Option<Trouble> {
        self.now().trouble.clone()
    }

    /// Why nothing more may be taken in: what is written for a job would find no room.
    pub fn full(&self) -> Option<Trouble> {
        self.trouble().filter(|trouble| matches!(trouble.lack, Lack::Room | Lack::Disk))
    }

    /// Whether that is news.
    pub(crate) fn set_trouble(&self, trouble: Option<Trouble>) -> bool {
        let mut now = self.now();
        let is_news = now.trouble.is_some() != trouble.is_some();
        now.trouble = trouble;
        is_news
    }

    /// What is said of a GPU that is not used because of who holds it.
    pub fn held_gpu(&self, index: u32) -> Option<String> {
        self.now().held_gpus.get(&index).cloned()
    }

    pub(crate) fn held_gpus(&self) -> BTreeMap<u32, String> {
        self.now().held_gpus.clone()
    }

    /// Adds GPUs, or says anew who holds them; the ones that were not held before. Others may be
    /// added or taken out meanwhile, so the rest stays as it is.
    pub(crate) fn hold_gpus(&self, held: BTreeMap<u32, String>) -> Vec<u32> {
        let mut now = self.now();
        let mut new = Vec::new();
        for (gpu, by_whom) in held {
            if now.held_gpus.insert(gpu, by_whom).is_none() {
                new.push(gpu);
            }
        }
        new
    }

    pub(crate) fn free_gpus(&self, gpus: &[u32]) {
        self.now().held_gpus.retain(|gpu, _| !gpus.contains(gpu));
    }

    /// Whether that is news.
    pub(crate) fn gpu_failed(&self, index: u32, why: String) -> bool {
        self.now().failed_gpus.insert(index, why).is_none()
    }

    /// What is wrong with a GPU that has failed.
    pub fn failed_gpu(&self, index: u32) -> Option<String> {
        self.now().failed_gpus.get(&index).cloned()
    }

    /// Takes a GPU out of use for a check, unless one is under way. What was wrong with it is in
    /// question until then; a fault that comes now is a new one.
    pub(crate) fn begin_check(&self, index: u32, why: String) -> bool {
        let mut now = self.now();
        if now.checking_gpus.contains_key(&index) {
            return false;
        }
        now.checking_gpus.insert(index, why);
        now.failed_gpus.remove(&index);
        true
    }

    /// Ends a check, with what is wrong if it has not passed. What is wrong with the GPU now.
    pub(crate) fn end_check(&self, index: u32, failed: Option<String>) -> Option<String> {
        let mut now = self.now();
        now.checking_gpus.remove(&index);
        if let Some(why) = failed {
            now.failed_gpus.entry(index).or_insert(why);
        }
        now.failed_gpus.get(&index).cloned()
    }

    /// Why a GPU is checked, if it is.
    pub fn checking_gpu(&self, index: u32) -> Option<String> {
        self.now().checking_gpus.get(&index).cloned()
    }

    pub(crate) fn checking_gpus(&self) -> Vec<u32> {
        self.now().checking_gpus.keys().copied().collect()
    }

    /// Whether a GPU takes no work, whoever holds it.
    pub(crate) fn is_out_of_use(&self, index: u32) -> bool {
        let now = self.now();
        now.failed_gpus.contains_key(&index) || now.checking_gpus.contains_key(&index)
    }

    /// What the output of ended jobs takes on the disk, by team.
    pub fn output(&self) -> BTreeMap<Name, Bytes> {
        self.now().output.clone()
    }

    pub(crate) fn set_output(&self, output: BTreeMap<Name, Bytes>) {
        self.now().output = output;
    }

    /// What each named volume takes on the disk, by its team and its name.
    pub fn volumes(&self) -> BTreeMap<(String, String), Bytes> {
        self.now().volumes.clone()
    }

    pub(crate) fn set_volumes(&self, volumes: BTreeMap<(String, String), Bytes>) {
        self.now().volumes = volumes;
    }
}
