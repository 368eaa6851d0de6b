//! Caches: all experiments, the heads of recently read runs, and the names of keys. The caches follow
//! the commits of this process, which is the only writer.

use berth_tracker::{Experiment, RunHead, Watch};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

/// The size of the caches of runs and of key names.
const MOST_HEADS: usize = 100_000;
const MOST_NAMES: usize = 500_000;

#[derive(Default)]
struct Experiments {
    by_number: BTreeMap<i64, Arc<Experiment>>,
    by_name: BTreeMap<(String, String), i64>,
}

#[derive(Default)]
pub(crate) struct Memory {
    experiments: RwLock<Experiments>,
    heads: RwLock<HashMap<Arc<str>, RunHead>>,
    names: RwLock<HashMap<i64, Arc<str>>>,
    pub watch: Watch,
}

fn read<T>(lock: &RwLock<T>) -> RwLockReadGuard<'_, T> {
    lock.read().unwrap_or_else(PoisonError::into_inner)
}

fn write<T>(lock: &RwLock<T>) -> RwLockWriteGuard<'_, T> {
    lock.write().unwrap_or_else(PoisonError::into_inner)
}

impl Memory {
    pub fn experiment(&self, no: i64) -> Option<Arc<Experiment>> {
        read(&self.experiments).by_number.get(&no).cloned()
    }

    pub fn experiment_named(&self, team: &str, name: &str) -> Option<Arc<Experiment>> {
        let all = read(&self.experiments);
        let no = all.by_name.get(&(team.to_owned(), name.to_owned()))?;
        all.by_number.get(no).cloned()
    }

    pub fn experiments(&self) -> Vec<Arc<Experiment>> {
        read(&self.experiments).by_number.values().cloned().collect()
    }

    pub fn put_experiment(&self, experiment: Experiment) {
        let all = &mut *write(&self.experiments);
        if let Some(before) = all.by_number.get(&experiment.no) {
            all.by_name.remove(&(before.team.clone(), before.name.clone()));
        }
        all.by_name.insert((experiment.team.clone(), experiment.name.clone()), experiment.no);
        all.by_number.insert(experiment.no, Arc::new(experiment));
    }

    pub fn forget_experiment(&self, no: i64) {
        let all = &mut *write(&self.experiments);
        if let Some(gone) = all.by_number.remove(&no) {
            all.by_name.remove(&(gone.team.clone(), gone.name.clone()));
        }
    }

    pub fn forget_heads(&self) {
        write(&self.heads).clear();
    }

    pub fn forget_head(&self, id: &str) {
        write(&self.heads).remove(id);
    }

    pub fn head(&self, id: &str) -> Option<RunHead> {
        read(&self.heads).get(id).cloned()
    }

    pub fn put_head(&self, head: RunHead) {
        let mut heads = write(&self.heads);
        if heads.len() >= MOST_HEADS {
            heads.clear();
        }
        heads.insert(head.id.clone(), head);
    }

    /// Caches what a reader has read, unless the writer has cached something newer.
    pub fn note_head(&self, head: RunHead) {
        let is_there = read(&self.heads).contains_key(&head.id);
        if !is_there {
            let mut heads = write(&self.heads);
            if heads.len() >= MOST_HEADS {
                heads.clear();
            }
            heads.entry(head.id.clone()).or_insert(head);
        }
    }

    pub fn key_name(&self, no: i64) -> Option<Arc<str>> {
        read(&self.names).get(&no).cloned()
    }

    pub fn put_key_name(&self, no: i64, name: &str) -> Arc<str> {
        let mut names = write(&self.names);
        if names.len() >= MOST_NAMES {
            names.clear();
        }
        let name: Arc<str> = name.into();
        names.insert(no, name.clone());
        name
    }
}
