//! The folder of a server: everything it keeps that is not in the database.

use berth_model::{CodeId, JobId};
use std::fs::{DirBuilder, Permissions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::{Path, PathBuf};

/// Where things are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Home {
    root: PathBuf,
}

impl Home {
    /// The folder, made private to its owner. One that belongs to somebody else stays as it is, such
    /// as a volume that Kubernetes has mounted.
    pub fn open(root: &Path) -> io::Result<Home> {
        private(root)?;
        let home = Home { root: root.canonicalize()? };
        close_to_others(&home.root)?;
        for folder in [home.jobs(), home.team_volumes(), home.backups()] {
            private(&folder)?;
        }
        Ok(home)
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    pub fn database(&self) -> PathBuf {
        self.root.join("berth.db")
    }

    /// The token of the admin that the first start made.
    pub fn token(&self) -> PathBuf {
        self.root.join("admin.token")
    }

    /// What secrets are sealed with.
    pub fn key(&self) -> PathBuf {
        self.root.join("secrets.key")
    }

    /// What the audit log is signed with.
    pub fn audit_key(&self) -> PathBuf {
        self.root.join("audit.key")
    }

    /// Where the audit log ends.
    pub fn audit_end(&self) -> PathBuf {
        self.root.join("audit.end")
    }

    /// How far the audit log was exported, for each place that it goes to.
    pub fn audit_exports(&self) -> PathBuf {
        self.root.join("audit-exports")
    }

    /// Which replica of a server this is.
    pub fn replica(&self) -> PathBuf {
        self.root.join("replica")
    }

    /// Where the server listens, for the command line.
    pub fn address(&self) -> PathBuf {
        self.root.join("server.json")
    }

    /// Where the server's time stood.
    pub fn clock(&self) -> PathBuf {
        self.root.join("clock.json")
    }

    /// What the node's driver keeps.
    pub fn node(&self) -> PathBuf {
        self.root.join("node")
    }

    /// The working directories of jobs.
    pub fn jobs(&self) -> PathBuf {
        self.root.join("jobs")
    }

    /// The working directory of a job that names none; the same for all attempts.
    pub fn job(&self, id: JobId) -> PathBuf {
        self.jobs().join(id.to_string())
    }

    /// The highest number of a job that has a working directory; 0 if none has.
    pub fn last_job(&self) -> u64 {
        let entries = std::fs::read_dir(self.jobs()).into_iter().flatten().flatten();
        let names = entries.filter_map(|entry| entry.file_name().into_string().ok());
        let numbers = names.filter_map(|name| name.parse::<JobId>().ok()).map(|job| job.number);
        numbers.max().unwrap_or(0)
    }

    /// The volumes that the server keeps by name, in a folder for each team.
    pub fn team_volumes(&self) -> PathBuf {
        self.root.join("team-volumes")
    }

    /// A volume that the server keeps for a team by its name.
    pub fn volume(&self, team: &str, name: &str) -> PathBuf {
        self.team_volumes().join(team).join(name)
    }

    /// Where volumes were before they belonged to teams.
    pub fn old_volumes(&self) -> PathBuf {
        self.root.join("volumes")
    }

    /// The snapshots of code of an earlier version, in a folder for each team.
    pub fn code(&self, team: &str) -> PathBuf {
        self.root.join("code").join(team)
    }

    pub fn snapshot(&self, team: &str, id: &CodeId) -> PathBuf {
        self.code(team).join(format!("{}.tar.gz", id.digits()))
    }

    /// Copies of snapshots of code, if the store of objects is a bucket.
    pub fn packed(&self) -> PathBuf {
        self.root.join("packed")
    }

    /// Artifacts, data and code, by their content; what is on its way in where they are in a bucket.
    pub fn blobs(&self) -> PathBuf {
        self.root.join("blobs")
    }

    /// Data that jobs of this machine use, or have used.
    pub fn data(&self) -> PathBuf {
        self.root.join("data")
    }

    /// What `setup` of jobs has made.
    pub fn setups(&self) -> PathBuf {
        self.root.join("setups")
    }

    /// What pods have printed.
    pub fn logs(&self) -> PathBuf {
        self.root.join("logs")
    }

    pub fn backups(&self) -> PathBuf {
        self.root.join("backups")
    }
}

/// Makes a folder that only its owner can read.
pub fn private(path: &Path) -> io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Takes all rights to a folder from everybody but its owner. What is in it has rights of its own,
/// and some of it is for jobs.
fn close_to_others(folder: &Path) -> io::Result<()> {
    let mode = std::fs::metadata(folder)?.permissions().mode();
    if mode & 0o077 == 0 {
        return Ok(());
    }
    match std::fs::set_permissions(folder, Permissions::from_mode(mode & 0o700)) {
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Ok(()),
        done => done,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_that_others_could_read_is_closed_to_them() {
        let root = tempfile::tempdir().unwrap();
        for mode in [0o755, 0o2770, 0o1777] {
            std::fs::set_permissions(root.path(), Permissions::from_mode(mode)).unwrap();
            Home::open(root.path()).unwrap();
            let found = std::fs::metadata(root.path()).unwrap().permissions().mode();
            assert_eq!(found & 0o7777, 0o700);
        }
    }

    #[test]
    fn the_last_job_is_known_by_its_folder() {
        let root = tempfile::tempdir().unwrap();
        let home = Home::open(root.path()).unwrap();
        assert_eq!(home.last_job(), 0);
        for folder in ["7", "12_3", "lost+found"] {
            private(&home.jobs().join(folder)).unwrap();
        }
        assert_eq!(home.last_job(), 12);
    }
}
