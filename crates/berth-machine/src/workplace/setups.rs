//! What `setup` of jobs makes, kept for jobs of the same user with the same script and code.

use berth_engine::{Handle, LeaseStart};
use berth_model::run::RunSpec;
use berth_node::{Account, give, remove_tree};
use berth_service::{Home, home::private};
use std::collections::BTreeSet;
use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// By it the script and the command find the folder.
pub const VARIABLE: &str = "BERTH_SETUP_DIR";
/// After its last use.
const KEPT: Duration = Duration::from_secs(14 * 86_400);
/// The mark beside a folder, which no job sees, whose time is that of the last use.
const USED: &str = "used";

/// The folder of a task's setup.
pub fn of(home: &Home, start: &LeaseStart, run: &RunSpec) -> Option<PathBuf> {
    of_user(home, &start.team, &start.user, run)
}

/// The folder of a setup, by team, user and command.
pub fn of_user(home: &Home, team: &str, user: &str, run: &RunSpec) -> Option<PathBuf> {
    name(team, user, run).map(|name| home.setups().join(name))
}

/// What another user or team has prepared is nobody else's to run.
fn name(team: &str, user: &str, run: &RunSpec) -> Option<String> {
    let code = run.code.as_ref().map(ToString::to_string).unwrap_or_default();
    let said = [team, user, &code, run.setup.as_deref()?].join("\0");
    Some(berth_code::digest_of(said.as_bytes())[..32].to_owned())
}

/// Makes it, where it is not there yet, and notes that it is used.
pub fn make(folder: &Path, account: Option<&Account>) -> io::Result<()> {
    if let Some(above) = folder.parent() {
        private(above)?;
    }
    let mark = OpenOptions::new()
        .create(true)
        .truncate(false)
        .write(true)
        .mode(0o600)
        .open(folder.with_extension(USED))?;
    mark.set_modified(SystemTime::now())?;
    match DirBuilder::new().mode(0o700).create(folder) {
        Ok(()) => give(folder, account),
        Err(error) if error.kind() == io::ErrorKind::AlreadyExists => Ok(()),
        Err(error) => Err(error),
    }
}

/// Removes what no job has used for two weeks and none that has not ended may need.
pub fn tidy(home: &Home, engine: &Handle) {
    let needed: BTreeSet<String> = {
        let core = engine.core();
        let jobs = core.jobs.values();
        let names =
            jobs.filter_map(|job| name(&job.row.team, &job.row.user, job.detail.workload.run()?));
        names.collect()
    };
    tidy_folder(&home.setups(), &needed);
}

fn tidy_folder(folder: &Path, needed: &BTreeSet<String>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let mark = entry.path();
        let name = mark.file_stem().map(|name| name.to_string_lossy().into_owned());
        let Some(name) = name.filter(|name| !needed.contains(name)) else { continue };
        if mark.extension().is_none_or(|end| end != USED) || !is_old(&mark) {
            continue;
        }
        let removed = remove_tree(&folder.join(&name)).and_then(|()| fs::remove_file(&mark));
        if let Err(error) = removed {
            tracing::warn!(setup = name, %error, "cannot remove a setup that no job has used");
        }
    }
}

fn is_old(mark: &Path) -> bool {
    let used = File::open(mark).and_then(|file| file.metadata()).and_then(|found| found.modified());
    used.ok().and_then(|used| used.elapsed().ok()).is_some_and(|age| age > KEPT)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_setup_that_no_job_needs_is_removed_two_weeks_after_its_last_use() {
        let folder = tempfile::tempdir().unwrap();
        let age = |name: &str, days: u64| {
            let path = folder.path().join(name);
            make(&path, None).unwrap();
            fs::write(path.join("file"), "made").unwrap();
            let mark = OpenOptions::new().write(true).open(path.with_extension(USED)).unwrap();
            mark.set_modified(SystemTime::now() - Duration::from_secs(days * 86_400)).unwrap();
        };
        for (name, days) in [("old", 15), ("needed", 15), ("new", 13)] {
            age(name, days);
        }
        tidy_folder(folder.path(), &BTreeSet::from(["needed".to_owned()]));
        let there = |name: &str| folder.path().join(name).exists();
        assert_eq!((there("old"), there("old.used")), (false, false));
        assert!(there("needed/file") && there("new/file"));
    }
}
