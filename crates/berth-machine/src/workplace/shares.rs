//! Folders that the operator shares with the jobs of everybody, where all jobs have the server's
//! account.
//!
//! Inside such a folder a job has the rights of that account: what it may show is decided by what
//! everybody may, and nothing else of the machine is shown at all.

use super::paths::{PathError, is_in, is_kernels};
use berth_node::{is_of_system, other_names};
use berth_service::Home;
use std::path::{Path, PathBuf};

/// Why a folder cannot be shared.
#[derive(Debug, thiserror::Error)]
pub enum ShareError {
    #[error("{0}")]
    Path(#[from] PathError),
    #[error("{} is no folder", .0.display())]
    NotAFolder(PathBuf),
    #[error(
        "{} is the home folder of the account that runs Berth, with its keys; share a folder in it",
        .0.display()
    )]
    Home(PathBuf),
    #[error("{} belongs to the system, which every job sees without it", .0.display())]
    System(PathBuf),
    #[error(
        "{} holds {}, which no job may see and which jobs could move to another place in it; share \
         a folder beside that",
        share.display(),
        hidden.display()
    )]
    Holds { share: PathBuf, hidden: PathBuf },
}

/// The folders that were named, with links resolved. Jobs write to them with the server's account,
/// so nothing that is hidden may lie in one: they could rename a folder above it.
pub fn shares(
    named: &[PathBuf],
    home: &Home,
    servers_home: Option<&Path>,
) -> Result<Vec<PathBuf>, ShareError> {
    let found = named.iter().map(|path| share(path, home, servers_home));
    let found: Vec<PathBuf> = found.collect::<Result<_, _>>()?;
    let hidden = [Some(home.root()), servers_home].into_iter().flatten();
    for hidden in hidden.filter_map(|path| path.canonicalize().ok()) {
        if let Some(share) = found.iter().find(|share| is_in(&hidden, share)) {
            return Err(ShareError::Holds { share: share.clone(), hidden });
        }
    }
    Ok(found)
}

fn share(path: &Path, home: &Home, servers_home: Option<&Path>) -> Result<PathBuf, ShareError> {
    let fail = |error| PathError::Io { path: path.to_owned(), error };
    let real = path.canonicalize().map_err(fail)?;
    if !real.is_dir() {
        return Err(ShareError::NotAFolder(real));
    }
    if is_in(&real, home.root()) {
        return Err(PathError::Berths(real).into());
    }
    if real.parent().is_none() || is_kernels(&real) {
        return Err(PathError::Machines(real).into());
    }
    if is_of_system(&real) {
        return Err(ShareError::System(real));
    }
    let is_home = |home: &Path| *home == real || other_names(home).contains(&real);
    if servers_home.is_some_and(is_home) {
        return Err(ShareError::Home(real));
    }
    Ok(real)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn what_holds_keys_or_is_no_folder_of_data_cannot_be_shared() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path().canonicalize().unwrap();
        let (own, data) = (dir.join("own"), dir.join("own/data"));
        fs::create_dir_all(&data).unwrap();
        fs::write(dir.join("file"), "x").unwrap();
        let home = Home::open(&dir.join("berth")).unwrap();
        let try_it = |path: &Path| shares(&[path.to_owned()], &home, Some(&own));
        assert_eq!(try_it(&data).unwrap(), std::slice::from_ref(&data));
        assert!(matches!(try_it(&dir), Err(ShareError::Holds { .. })));
        std::os::unix::fs::symlink(&data, dir.join("link")).unwrap();
        assert_eq!(try_it(&dir.join("link")).unwrap(), [data]);
        assert!(matches!(try_it(&own), Err(ShareError::Home(_))));
        assert!(matches!(try_it(&dir.join("file")), Err(ShareError::NotAFolder(_))));
        assert!(matches!(try_it(Path::new("/usr/share")), Err(ShareError::System(_))));
        for path in ["/", "/proc", "/dev/shm", "/missing"].map(Path::new) {
            assert!(matches!(try_it(path), Err(ShareError::Path(_))), "{}", path.display());
        }
        assert!(matches!(try_it(home.root()), Err(ShareError::Path(PathError::Berths(_)))));
    }
}
