//! Tells which runs have new points, so that a follower of many runs reads only those.

use std::collections::BTreeSet;
use std::sync::{Mutex, MutexGuard, PoisonError};

#[derive(Default)]
struct Inner {
    runs: BTreeSet<i64>,
    changed: BTreeSet<i64>,
}

/// Runs that a follower watches, and those of them with points since it last asked. The store notes each
/// commit of points.
#[derive(Default)]
pub struct Watch(Mutex<Inner>);

impl Watch {
    /// Watches a run from now on. Its earlier points count as new.
    pub fn add(&self, run: i64) {
        let mut inner = self.inner();
        if inner.runs.insert(run) {
            inner.changed.insert(run);
        }
    }

    pub fn remove(&self, run: i64) {
        let mut inner = self.inner();
        inner.runs.remove(&run);
        inner.changed.remove(&run);
    }

    /// Watches no run any more.
    pub fn clear(&self) {
        *self.inner() = Inner::default();
    }

    /// The store has committed points of these runs.
    pub fn note(&self, runs: &[i64]) {
        let inner = &mut *self.inner();
        if inner.runs.is_empty() {
            return;
        }
        inner.changed.extend(runs.iter().filter(|run| inner.runs.contains(run)));
    }

    /// The store may have committed points of any run.
    pub fn note_all(&self) {
        let inner = &mut *self.inner();
        inner.changed.clone_from(&inner.runs);
    }

    /// The watched runs with new points. Further calls leave them out until they have newer ones.
    pub fn take(&self) -> BTreeSet<i64> {
        std::mem::take(&mut self.inner().changed)
    }

    fn inner(&self) -> MutexGuard<'_, Inner> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_watched_run_is_changed_at_first_and_then_when_it_has_new_points() {
        let watch = Watch::default();
        watch.note(&[1, 2]);
        assert!(watch.take().is_empty(), "nothing is watched");
        watch.add(1);
        assert_eq!(watch.take(), BTreeSet::from([1]));
        assert!(watch.take().is_empty());
        watch.add(1);
        watch.note(&[1, 2, 1]);
        assert_eq!(watch.take(), BTreeSet::from([1]));
        watch.note_all();
        assert_eq!(watch.take(), BTreeSet::from([1]));
        watch.note(&[1]);
        watch.remove(1);
        watch.note(&[1]);
        assert!(watch.take().is_empty());
    }
}
