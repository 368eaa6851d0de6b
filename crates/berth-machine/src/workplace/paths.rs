//! Paths that a job file names. A job reaches its own folder, what its user may use on this
//! machine, and nothing of Berth's.

use berth_node::{
    Access, Account, Opener, Shown, everybody_may, is_of_system, may_access, other_names,
};
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
    #[error(
        "{} is not shared: without root all jobs have the account that runs Berth, so jobs of other \
         users see only the folders in `berth up --share DIR`; use \
         a named volume, or ask for the folder to be shared",
        .0.display()
    )]
    NotShared(PathBuf),
    #[error(
        "{} is closed to everybody, and so to jobs that share the account that runs Berth; open it \
         with `chmod -R o+rX`, or use another folder",
        .0.display()
    )]
    ClosedToEverybody(PathBuf),
    #[error("{} is in the home folder of the account that runs Berth, which only its owner's jobs see", .0.display())]
    ServersHome(PathBuf),
    #[error("{} belongs to the system; choose another place, such as /data", .0.display())]
    System(PathBuf),
    #[error("{} shows the machine itself, which no job sees; name a folder with your data", .0.display())]
    Machines(PathBuf),
    #[error("{} cannot be read: {error}", path.display())]
    Io { path: PathBuf, error: io::Error },
}

impl PathError {
    /// Nothing is there yet.
    pub fn is_missing(&self) -> bool {
        matches!(self, PathError::Io { error, .. } if error.kind() == io::ErrorKind::NotFound)
    }
}

/// Whose rights count.
#[derive(Clone, Copy)]
pub enum Judge<'a> {
    /// Those of the account that the job has.
    Account(&'a Account),
    /// The job has the server's account without having its rights: those of everybody, in folders
    /// that the operator shares.
    Everybody { shares: &'a [PathBuf] },
}

/// Whose rights count, and what is closed to everybody.
pub struct Rights<'a> {
    pub judge: Judge<'a>,
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
        let real = match (path.canonicalize(), self.judge) {
            // Whether something is there is no business of those who could not have it.
            (Err(_), Judge::Everybody { shares }) if share_of(path, shares).is_none() => {
                return Err(PathError::NotShared(path.to_owned()));
            }
            (found, _) => found.map_err(fail)?,
        };
        if is_in(&real, self.berth) {
            return Err(PathError::Berths(real));
        }
        // Neither has anything for a job: its own are made for it.
        if real.parent().is_none() || is_kernels(&real) {
            return Err(PathError::Machines(real));
        }
        if is_of_system(&real) {
            return Ok(None);
        }
        let is_servers = |path: &Path| self.servers_home.is_some_and(|home| is_in(path, home));
        let (write, by) = match self.judge {
            Judge::Account(account) => {
                if is_servers(&real) && !self.is_operator {
                    return Err(PathError::ServersHome(real));
                }
                let may = |access| may_access(account, &real, access).map_err(fail);
                if !may(Access::Read)? {
                    return Err(PathError::Closed { path: real, uid: account.uid });
                }
                (may(Access::Write)?, Opener::Account)
            }
            Judge::Everybody { shares } => {
                let Some(below) = share_of(&real, shares) else {
                    return Err(PathError::NotShared(real));
                };
                // Sharing what lies above the home folder does not share that.
                if is_servers(&real) && !is_servers(below) {
                    return Err(PathError::ServersHome(real));
                }
                let may = |access| everybody_may(&real, below, access).map_err(fail);
                if !may(Access::Read)? {
                    return Err(PathError::ClosedToEverybody(real));
                }
                (may(Access::Write)?, Opener::Everybody { below: below.to_owned() })
            }
        };
        Ok(Some(Shown { at: path.to_owned(), source: real, write, by: Some(by) }))
    }

    /// Who opens a folder of the system, which every job sees.
    pub fn opener_of_system(&self) -> Opener {
        match self.judge {
            Judge::Account(_) => Opener::Account,
            Judge::Everybody { .. } => Opener::Everybody { below: PathBuf::from("/") },
        }
    }
}

/// Whether a path lies in a folder, by whatever name the machine has for that.
pub(super) fn is_in(path: &Path, folder: &Path) -> bool {
    path.starts_with(folder) || other_names(folder).iter().any(|name| path.starts_with(name))
}

/// The innermost shared folder that a path lies in.
fn share_of<'a>(path: &Path, shares: &'a [PathBuf]) -> Option<&'a Path> {
    let around = shares.iter().filter(|share| path.starts_with(share));
    around.max_by_key(|share| share.as_os_str().len()).map(PathBuf::as_path)
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
pub(super) fn is_kernels(path: &Path) -> bool {
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
            judge: Judge::Account(account),
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

    #[test]
    fn without_accounts_only_what_is_shared_is_shown_and_as_far_as_everybody_may_use_it() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        let [berth, home, other] = ["berth", "home", "other"].map(|name| dir.join(name));
        let [shared, closed, open] =
            ["shared", "shared/closed", "shared/closed/open"].map(|name| home.join(name));
        for path in [&berth, &other, &open] {
            fs::create_dir_all(path).unwrap();
        }
        let set = |path: &Path, mode| fs::set_permissions(path, Permissions::from_mode(mode));
        // What is above a shared folder says nothing about it.
        for (path, mode) in
            [(&home, 0o700), (&other, 0o777), (&shared, 0o775), (&closed, 0o770), (&open, 0o777)]
        {
            set(path, mode).unwrap();
        }
        let show = |shares: &[&PathBuf], path: &Path| {
            let shares: Vec<PathBuf> = shares.iter().map(|path| (*path).clone()).collect();
            let rights = Rights {
                judge: Judge::Everybody { shares: &shares },
                is_operator: false,
                berth: &berth,
                servers_home: Some(&home),
            };
            rights.show(path)
        };
        for path in [&other, &home, &shared, &dir.join("missing")] {
            assert!(matches!(show(&[], path), Err(PathError::NotShared(_))), "{}", path.display());
        }
        assert_eq!(show(&[], Path::new("/usr")).unwrap(), None);
        assert!(show(&[&other], &other).unwrap().unwrap().write);
        assert!(!show(&[&other, &shared], &shared).unwrap().unwrap().write);
        for path in [&closed, &open] {
            assert!(matches!(show(&[&shared], path), Err(PathError::ClosedToEverybody(_))));
        }
        // A folder above the home folder of the server's account does not share that.
        assert!(matches!(show(&[&dir], &shared), Err(PathError::ServersHome(_))));
        assert!(matches!(show(&[&dir], &berth), Err(PathError::Berths(_))));
        assert!(matches!(show(&[&shared], &shared.join("missing")), Err(PathError::Io { .. })));
    }
}
