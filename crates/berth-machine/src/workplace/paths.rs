//! Paths that a job file names. A job reaches its own folder, what its user may use on this
//! machine, and nothing of Berth's.

use berth_node::{Access, Account, Shown, is_of_system, may_access};
use std::io;
use std::path::{Component, Path, PathBuf};

/// Why a job may not have a path.
#[derive(Debug, thiserror::Error)]
pub enum PathError {
    #[error("`{0}` leads out of its folder; leave `..` out")]
    Leaves(String),
    #[error("{} is Berth's own folder, which no job sees", .0.display())]
    Berths(PathBuf),
    #[error(
        "{} is closed to the account that the job runs as (number {uid}); open it to that account \
         or to everybody, or use another folder",
        path.display()
    )]
    Closed { path: PathBuf, uid: u32 },
    #[error("{} is in the home folder of the account that runs Berth, which only its owner's jobs see", .0.display())]
    ServersHome(PathBuf),
    #[error("{} belongs to the system; choose another place, such as /data", .0.display())]
    System(PathBuf),
    #[error("{} shows the machine itself, which no job sees; name a folder with your data", .0.display())]
    Machines(PathBuf),
    #[error("{} cannot be read: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
}

/// Whose rights count, and what is closed to everybody.
pub struct Rights<'a> {
    pub account: &'a Account,
    /// Whoever started the server may use the home folder of its account.
    pub is_operator: bool,
    pub berth: &'a Path,
    /// The home folder of the account that runs Berth.
    pub servers_home: Option<&'a Path>,
}

impl Rights<'_> {
    /// How a folder of the machine is shown to the job: with links resolved, and as far as the
    /// account may use it. Nothing for what every job sees anyway.
    pub fn show(&self, path: &Path) -> Result<Option<Shown>, PathError> {
        let fail = |error| PathError::Io { path: path.to_owned(), error };
        let real = path.canonicalize().map_err(fail)?;
        if real.starts_with(self.berth) {
            return Err(PathError::Berths(real));
        }
        // Neither has anything for a job: its own are made for it.
        if real.parent().is_none() || is_kernels(&real) {
            return Err(PathError::Machines(real));
        }
        if is_of_system(&real) {
            return Ok(None);
        }
        let is_servers = self.servers_home.is_some_and(|home| real.starts_with(home));
        if is_servers && !self.is_operator {
            return Err(PathError::ServersHome(real));
        }
        let may = |access| may_access(self.account, &real, access).map_err(fail);
        if !may(Access::Read)? {
            return Err(PathError::Closed { path: real, uid: self.account.uid });
        }
        let write = may(Access::Write)?;
        Ok(Some(Shown { at: path.to_owned(), source: real, write }))
    }
}

/// A path without `.` and `..`. One that would lead out of where it begins is refused.
pub fn normal(text: &str) -> Result<PathBuf, PathError> {
    let mut normal = PathBuf::new();
    for part in Path::new(text).components() {
        match part {
            Component::ParentDir => return Err(PathError::Leaves(text.to_owned())),
            Component::CurDir => {}
            part => normal.push(part),
        }
    }
    Ok(normal)
}

/// Whether the kernel and the services of the machine have something there. Disks that a desktop
/// has mounted are in `/run/media`.
fn is_kernels(path: &Path) -> bool {
    let is_disk = path.starts_with("/run/media");
    !is_disk && ["/proc", "/dev", "/sys", "/run"].iter().any(|kernel| path.starts_with(kernel))
}

/// Where a volume may appear: not over the system, and not over Berth's own.
pub fn check_place(place: &Path, berth: &Path, own: &Path) -> Result<(), PathError> {
    let is_root = place.parent().is_none();
    if is_root || is_kernels(place) || is_of_system(place) {
        return Err(PathError::System(place.to_owned()));
    }
    if place.starts_with(berth) && !place.starts_with(own) {
        return Err(PathError::Berths(place.to_owned()));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs::{self, Permissions};
    use std::os::unix::fs::{MetadataExt, PermissionsExt};

    #[test]
    fn a_path_that_climbs_is_refused() {
        assert_eq!(normal("./a//b/").unwrap(), PathBuf::from("a/b"));
        assert_eq!(normal("/a/./b").unwrap(), PathBuf::from("/a/b"));
        for text in ["..", "../../x", "a/../../x", "/a/../../etc"] {
            assert!(matches!(normal(text), Err(PathError::Leaves(_))), "{text}");
        }
    }

    #[test]
    fn no_volume_covers_the_system_or_berths_own_folder() {
        let (berth, own) = (Path::new("/b"), Path::new("/b/jobs/1"));
        for place in
            ["/", "/etc", "/etc/passwd", "/proc/1", "/dev/shm", "/usr/bin", "/b", "/b/node"]
        {
            assert!(check_place(Path::new(place), berth, own).is_err(), "{place}");
        }
        for place in ["/data", "/home/me", "/b/jobs/1/data", "/tmp/x"] {
            assert!(check_place(Path::new(place), berth, own).is_ok(), "{place}");
        }
    }

    #[test]
    fn a_folder_is_shown_as_far_as_its_account_may_use_it() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        let (berth, data) = (dir.join("berth"), dir.join("data"));
        for path in [&dir, &berth, &data] {
            fs::create_dir_all(path).unwrap();
            fs::set_permissions(path, Permissions::from_mode(0o755)).unwrap();
        }
        let link = dir.join("link");
        std::os::unix::fs::symlink(&berth, &link).unwrap();
        let owner = fs::metadata(&data).unwrap().uid();
        let (own, other) = (
            Account { uid: owner, gid: 4_000_000_000, groups: vec![] },
            Account { uid: owner + 1, gid: 4_000_000_000, groups: vec![] },
        );
        let rights = |account, servers_home| Rights {
            account,
            is_operator: false,
            berth: &berth,
            servers_home,
        };
        assert!(rights(&own, None).show(&data).unwrap().unwrap().write);
        assert!(!rights(&other, None).show(&data).unwrap().unwrap().write);
        assert!(matches!(rights(&own, None).show(&link), Err(PathError::Berths(_))));
        assert_eq!(rights(&own, None).show(Path::new("/usr")).unwrap(), None);
        for path in ["/", "/proc", "/proc/1", "/dev", "/run"] {
            let shown = rights(&own, None).show(Path::new(path));
            assert!(matches!(shown, Err(PathError::Machines(_) | PathError::Io { .. })), "{path}");
        }
        let inside = rights(&own, Some(&dir)).show(&data);
        assert!(matches!(inside, Err(PathError::ServersHome(_))));
        fs::set_permissions(&data, Permissions::from_mode(0o700)).unwrap();
        assert!(matches!(rights(&other, None).show(&data), Err(PathError::Closed { .. })));
    }
}
