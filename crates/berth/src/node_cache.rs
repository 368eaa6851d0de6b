//! Versions of data in a folder of a node of Kubernetes, for all pods on it. Each container that fetches data
//! adds what is missing and removes what no pod has used for longest.
//!
//! A pod reads its version as long as it runs, and nothing here sees when it ends. So the server names the
//! versions that tasks on the node have at the moment at which it makes a pod; whatever was used since then
//! belongs to a later pod. The container removes neither.

use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File, OpenOptions, Permissions};
use std::io::{self, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// How far the clocks of the server and of the node may differ.
const SKEW: Duration = Duration::from_secs(600);
/// Versions that one report names: Kubernetes keeps 4 KB of it.
const MOST_TOLD: usize = 60;
/// What the names of marks begin with. Those of versions begin with a hash, so a mark never has the name of
/// a version, whatever the data is called.
const USED: &str = "used.";

pub struct NodeCache {
    root: PathBuf,
    /// What all versions may take.
    most: u64,
    /// Folders below `trees` that tasks have.
    in_use: BTreeSet<PathBuf>,
    /// Later uses are those of other pods.
    since: SystemTime,
}

/// A version on its way. It goes unless the cache keeps it.
pub struct Draft {
    folder: PathBuf,
    lock: PathBuf,
    /// Held as long as the version is on its way.
    _held: File,
}

impl Draft {
    /// The folder to make.
    pub fn tree(&self) -> PathBuf {
        self.folder.join("tree")
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.folder);
        let _ = fs::remove_file(&self.lock);
    }
}

/// A version in the cache.
struct Kept {
    folder: PathBuf,
    used: SystemTime,
    bytes: u64,
}

impl NodeCache {
    pub fn open(
        root: PathBuf,
        most: u64,
        in_use: impl IntoIterator<Item = PathBuf>,
        since: SystemTime,
    ) -> io::Result<NodeCache> {
        for folder in ["trees", "new", "old"] {
            let folder = root.join(folder);
            fs::create_dir_all(&folder)?;
            // The kubelet mounts a version into a pod. Other accounts of the node see none.
            fs::set_permissions(&folder, Permissions::from_mode(0o700))?;
        }
        let since = since.checked_sub(SKEW).unwrap_or(SystemTime::UNIX_EPOCH);
        Ok(NodeCache { root, most, in_use: in_use.into_iter().collect(), since })
    }

    /// One container at a time looks at the versions and changes them.
    fn alone(&self) -> io::Result<File> {
        let lock = open_lock(&self.root.join("lock"))?;
        lock.lock()?;
        Ok(lock)
    }

    /// Whether a version is here. If it is, this counts as its use.
    pub fn find(&self, folder: &Path) -> io::Result<bool> {
        let _alone = self.alone()?;
        match is_whole(folder) {
            true => note_use(folder, None).map(|()| true),
            false => Ok(false),
        }
    }

    /// A folder for a version that is to be fetched.
    pub fn draft(&self) -> io::Result<Draft> {
        let _alone = self.alone()?;
        let new = self.root.join("new");
        remove_abandoned(&new)?;
        let mut number = 0u64;
        loop {
            let lock = new.join(format!("{number}.lock"));
            match OpenOptions::new().write(true).create_new(true).open(&lock) {
                Ok(held) => {
                    held.lock()?;
                    let folder = new.join(number.to_string());
                    fs::create_dir(&folder)?;
                    return Ok(Draft { folder, lock, _held: held });
                }
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => number += 1,
                Err(error) => return Err(error),
            }
        }
    }

    /// Keeps a version that has come whole, unless another pod was faster, and makes room again.
    pub fn keep(&self, draft: &Draft, folder: &Path) -> io::Result<()> {
        let tree = draft.tree();
        let bytes = open_to_read(&tree)?;
        // Later pods do not check the files again, so they are on the disk before their folder is in its
        // place: after a power failure, none is empty.
        rustix::fs::syncfs(File::open(&tree)?)?;
        {
            let _alone = self.alone()?;
            fs::create_dir_all(folder.parent().unwrap_or(&self.root))?;
            let is_here = is_whole(folder);
            if !is_here && folder.is_dir() {
                self.put_away(folder)?;
            }
            // First the mark: the cache counts no version without one.
            note_use(folder, Some(bytes))?;
            if !is_here {
                fs::rename(&tree, folder)?;
            }
            self.make_room(folder)?;
        }
        // Others need not wait for this.
        for entry in fs::read_dir(self.root.join("old"))?.flatten() {
            let _ = fs::remove_dir_all(entry.path());
        }
        Ok(())
    }

    /// Moves versions out of the way until the rest is small enough, the one that was not used for longest
    /// first.
    fn make_room(&self, own: &Path) -> io::Result<()> {
        let mut kept = self.kept()?;
        kept.sort_by_key(|one| one.used);
        let mut bytes: u64 = kept.iter().map(|one| one.bytes).sum();
        let trees = self.root.join("trees");
        for one in kept {
            if bytes <= self.most {
                return Ok(());
            }
            let short = one.folder.strip_prefix(&trees).unwrap_or(&one.folder);
            if one.folder == own || one.used >= self.since || self.in_use.contains(short) {
                continue;
            }
            self.put_away(&one.folder)?;
            fs::remove_file(mark_of(&one.folder))?;
            bytes -= one.bytes;
        }
        Ok(())
    }

    /// Moves a folder to those that are removed without the lock.
    fn put_away(&self, folder: &Path) -> io::Result<()> {
        let old = self.root.join("old");
        let free = (0u64..).map(|number| old.join(number.to_string()));
        let place = free.into_iter().find(|place| !place.exists());
        fs::rename(folder, place.unwrap_or(old))
    }

    fn kept(&self) -> io::Result<Vec<Kept>> {
        let mut kept = Vec::new();
        for team in fs::read_dir(self.root.join("trees"))?.flatten() {
            for entry in fs::read_dir(team.path()).into_iter().flatten().flatten() {
                let mark = entry.path();
                let name = entry.file_name();
                let Some(name) = name.to_str().and_then(|name| name.strip_prefix(USED)) else {
                    continue;
                };
                let folder = mark.with_file_name(name);
                if !folder.is_dir() {
                    continue;
                }
                let bytes = fs::read_to_string(&mark)?.parse().unwrap_or(0);
                kept.push(Kept { folder, used: entry.metadata()?.modified()?, bytes });
            }
        }
        Ok(kept)
    }

    /// The versions that are here, by their hashes and with their sizes; of many, those that were used last.
    pub fn report(&self) -> io::Result<BTreeMap<String, u64>> {
        let _alone = self.alone()?;
        let mut kept = self.kept()?;
        kept.sort_by_key(|one| std::cmp::Reverse(one.used));
        let named = kept.iter().filter_map(|one| {
            let name = one.folder.file_name()?.to_str()?;
            Some((hash_of(name)?.to_owned(), one.bytes))
        });
        Ok(named.take(MOST_TOLD).collect())
    }
}

fn open_lock(path: &Path) -> io::Result<File> {
    OpenOptions::new().create(true).truncate(false).write(true).open(path)
}

/// Removes versions whose container was killed: nothing holds their locks.
fn remove_abandoned(new: &Path) -> io::Result<()> {
    for entry in fs::read_dir(new)?.flatten() {
        let lock = entry.path();
        if lock.extension().is_none_or(|end| end != "lock") {
            continue;
        }
        let is_held = File::open(&lock).is_ok_and(|file| file.try_lock().is_err());
        if is_held {
            continue;
        }
        match fs::remove_dir_all(lock.with_extension("")) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            // Its own container may have removed it meanwhile.
            _ => drop(fs::remove_file(&lock)),
        }
    }
    Ok(())
}

/// Lets every account read it. Returns the bytes of its files.
fn open_to_read(path: &Path) -> io::Result<u64> {
    let found = path.symlink_metadata()?;
    if !found.is_dir() {
        fs::set_permissions(path, Permissions::from_mode(0o444))?;
        return Ok(found.len());
    }
    fs::set_permissions(path, Permissions::from_mode(0o755))?;
    let mut bytes = 0;
    for entry in fs::read_dir(path)? {
        bytes += open_to_read(&entry?.path())?;
    }
    Ok(bytes)
}

/// Whether the cache has made a folder. A kubelet makes an empty one for a pod whose version is missing, and
/// no other pod may take that for the version.
fn is_whole(folder: &Path) -> bool {
    folder.is_dir() && mark_of(folder).is_file()
}

fn mark_of(folder: &Path) -> PathBuf {
    let name = folder.file_name().unwrap_or_default().to_string_lossy();
    folder.with_file_name(format!("{USED}{name}"))
}

/// The time of the mark beside a folder is that of its last use, and its text the size.
fn note_use(folder: &Path, bytes: Option<u64>) -> io::Result<()> {
    let mut mark = open_lock(&mark_of(folder))?;
    if let Some(bytes) = bytes {
        mark.set_len(0)?;
        mark.write_all(bytes.to_string().as_bytes())?;
        // Without its size, a version would count as nothing.
        mark.sync_all()?;
    }
    mark.set_modified(SystemTime::now())
}

/// The folder of a version begins with its hash: 32 digits, and `.dir` for a folder.
fn hash_of(name: &str) -> Option<&str> {
    let digits = name.get(..32)?;
    Some(name.get(..36).filter(|folder| folder.ends_with(".dir")).unwrap_or(digits))
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: Duration = Duration::from_secs(86_400);

    fn name(nth: u8) -> String {
        format!("{}.dir", format!("{nth:02x}").repeat(16))
    }

    fn place(root: &Path, nth: u8) -> PathBuf {
        root.join("trees/nlp").join(name(nth))
    }

    fn cache(root: &Path, most: u64, in_use: &[u8]) -> NodeCache {
        let in_use = in_use.iter().map(|nth| Path::new("nlp").join(name(*nth)));
        NodeCache::open(root.to_owned(), most, in_use, SystemTime::now()).unwrap()
    }

    fn put(cache: &NodeCache, nth: u8, bytes: usize) {
        let draft = cache.draft().unwrap();
        fs::create_dir_all(draft.tree().join("sub")).unwrap();
        fs::write(draft.tree().join("sub/file"), "x".repeat(bytes)).unwrap();
        cache.keep(&draft, &place(&cache.root, nth)).unwrap();
    }

    /// Makes the last use of a version so old.
    fn age(root: &Path, nth: u8, age: Duration) {
        let mark = File::options().write(true).open(mark_of(&place(root, nth))).unwrap();
        mark.set_modified(SystemTime::now() - age).unwrap();
    }

    #[test]
    fn a_second_pod_finds_what_the_first_has_fetched() {
        let root = tempfile::tempdir().unwrap();
        let cache = cache(root.path(), 1_000, &[]);
        assert!(!cache.find(&place(root.path(), 1)).unwrap());
        put(&cache, 1, 100);
        assert!(cache.find(&place(root.path(), 1)).unwrap());
        let file = place(root.path(), 1).join("sub/file");
        assert_eq!(fs::metadata(file).unwrap().permissions().mode() & 0o777, 0o444);
        // Another pod that fetched it meanwhile changes nothing.
        put(&cache, 1, 100);
        assert_eq!(cache.report().unwrap(), BTreeMap::from([(name(1), 100)]));
        assert_eq!(fs::read_dir(root.path().join("new")).unwrap().count(), 0);
    }

    #[test]
    fn the_version_that_was_not_used_for_longest_goes_and_those_of_running_pods_stay() {
        let root = tempfile::tempdir().unwrap();
        let roomy = cache(root.path(), 10_000, &[]);
        for nth in 1..=4 {
            put(&roomy, nth, 100);
            age(root.path(), nth, DAY * (10 - u32::from(nth)));
        }
        // Of the oldest, 1 belongs to a task and 2 was just used by a pod that is younger than this one.
        age(root.path(), 2, Duration::ZERO);
        put(&cache(root.path(), 300, &[1]), 5, 100);
        let left: Vec<String> = roomy.report().unwrap().into_keys().collect();
        assert_eq!(left, [name(1), name(2), name(5)]);
        assert_eq!(fs::read_dir(root.path().join("old")).unwrap().count(), 0);
        // Where all are in use, the limit gives way.
        put(&cache(root.path(), 0, &[1, 2, 5]), 6, 100);
        assert_eq!(roomy.report().unwrap().len(), 4);
    }

    #[test]
    fn data_that_is_called_like_a_mark_is_a_version_like_others() {
        let root = tempfile::tempdir().unwrap();
        let cache = cache(root.path(), 1_000, &[]);
        let digits = "0a".repeat(16);
        for name in [format!("{digits}.my.used"), format!("{digits}.my")] {
            let draft = cache.draft().unwrap();
            fs::create_dir(draft.tree()).unwrap();
            fs::write(draft.tree().join("my"), "12345678").unwrap();
            cache.keep(&draft, &root.path().join("trees/nlp").join(name)).unwrap();
        }
        assert_eq!(cache.kept().unwrap().len(), 2);
        assert_eq!(cache.report().unwrap(), BTreeMap::from([(digits, 8)]));
    }

    #[test]
    fn an_empty_folder_in_the_place_of_a_version_is_not_the_version() {
        let root = tempfile::tempdir().unwrap();
        let cache = cache(root.path(), 1_000, &[]);
        fs::create_dir_all(place(root.path(), 1)).unwrap();
        assert!(!cache.find(&place(root.path(), 1)).unwrap());
        put(&cache, 1, 100);
        assert!(cache.find(&place(root.path(), 1)).unwrap());
        assert_eq!(fs::metadata(place(root.path(), 1).join("sub/file")).unwrap().len(), 100);
    }

    #[test]
    fn what_a_killed_container_left_is_removed_and_what_is_on_its_way_stays() {
        let root = tempfile::tempdir().unwrap();
        let cache = cache(root.path(), 1_000, &[]);
        let draft = cache.draft().unwrap();
        fs::create_dir(root.path().join("new/7")).unwrap();
        fs::write(root.path().join("new/7.lock"), "").unwrap();
        let other = cache.draft().unwrap();
        assert!(draft.folder.is_dir() && other.folder.is_dir() && draft.folder != other.folder);
        assert!(!root.path().join("new/7").exists());
    }
}
