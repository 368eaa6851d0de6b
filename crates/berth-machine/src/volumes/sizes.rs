//! What the volumes take, for figures: looked at in the background, so many entries a round, so that
//! a machine with large volumes works as little for it as one with small ones.

use super::Volumes;
use crate::condition::Condition;
use berth_model::Bytes;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Files and folders that are looked at in one round, and of one volume.
const MOST_ENTRIES: u64 = 100_000;

/// The team and the name of a volume.
type Key = (String, String);

pub struct Sizes {
    volumes: Arc<Volumes>,
    condition: Arc<Condition>,
    known: BTreeMap<Key, Bytes>,
    /// The last one that was looked at.
    last: Option<Key>,
    most_entries: u64,
}

impl Sizes {
    pub fn new(volumes: Arc<Volumes>, condition: Arc<Condition>) -> Sizes {
        let (known, last) = (BTreeMap::new(), None);
        Sizes { volumes, condition, known, last, most_entries: MOST_ENTRIES }
    }

    /// Looks at as many volumes as a round allows, and goes on with the others in the next one. One
    /// that was not looked at yet takes nothing.
    pub fn look(&mut self) {
        let there = match self.volumes.list() {
            Ok(there) => there,
            Err(error) => {
                tracing::warn!(%error, "the volumes of teams are not seen");
                return;
            }
        };
        let keys: Vec<Key> = there.into_iter().map(|one| (one.team, one.name)).collect();
        let old = std::mem::take(&mut self.known);
        let size = |key: &Key| old.get(key).copied().unwrap_or(Bytes(0));
        self.known = keys.iter().map(|key| (key.clone(), size(key))).collect();
        let first = keys.partition_point(|key| Some(key) <= self.last.as_ref());
        let mut left = self.most_entries;
        for key in keys[first..].iter().chain(&keys[..first]) {
            let found = self.volumes.measure(&key.0, &key.1, self.most_entries);
            let bytes = Bytes(i64::try_from(found.bytes).unwrap_or(i64::MAX));
            self.known.insert(key.clone(), bytes);
            self.last = Some(key.clone());
            left = left.saturating_sub(found.entries);
            if left == 0 {
                break;
            }
        }
        self.condition.set_volumes(self.known.clone());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_service::Home;
    use std::fs;

    #[test]
    fn volumes_are_measured_in_turns_and_all_are_known_at_once() {
        let root = tempfile::tempdir().unwrap();
        let volumes = Arc::new(Volumes::open(Home::open(root.path()).unwrap()));
        for name in ["a", "b", "c"] {
            let folder = volumes.keep("nlp", name, false).unwrap();
            for file in ["1", "2"] {
                fs::write(folder.join(file), vec![b'x'; 10_000]).unwrap();
            }
        }
        let condition = Arc::new(Condition::default());
        let mut sizes = Sizes::new(volumes.clone(), condition.clone());
        sizes.most_entries = 2;
        let measured = || condition.volumes().values().filter(|bytes| bytes.0 >= 20_000).count();
        for round in 1..=3 {
            sizes.look();
            assert_eq!((condition.volumes().len(), measured()), (3, round));
        }
        volumes.remove("nlp", "b", &|| true).unwrap();
        sizes.look();
        assert_eq!(condition.volumes().len(), 2);
    }
}
