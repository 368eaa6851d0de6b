//! How long the output of ended jobs is kept: their logs and task folders by age and by what each
//! team may take, and the folders that jobs worked in only by age, and only where that is asked for.
//!
//! It is done in the background in small steps, the oldest first. At the same pace named volumes are
//! measured.

use crate::condition::Condition;
use crate::volumes::Sizes;
use crate::workplace::{Workplace, tidy_setups};
use berth_engine::{Handle, clock};
use berth_model::{Bytes, JobId, LeaseId, Name, Span, Time};
use berth_node::{Driver, Kept, remove_tree};
use berth_service::Home;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Between two rounds, and between two steps of a round.
const EVERY: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(200);
/// A server that starts has better things to do.
const FIRST: Duration = Duration::from_secs(2);
/// Tasks that one step reads, and deletes.
const STEP: usize = 200;
/// Levels of a job's folder that are looked at. What lies deeper keeps the folder.
const DEPTH: u32 = 64;

/// What is kept. For ever, and as much as there is, where left out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct KeepOutput {
    /// Logs and task folders, after the end of the task.
    pub age: Option<Span>,
    /// The same, of each team.
    pub size: Option<Bytes>,
    /// The folders that jobs worked in, with their checkpoints, after their last change.
    pub folders: Option<Span>,
}

/// Keeps what is to be kept until it is dropped.
pub struct Keeping(tokio::task::JoinHandle<()>);

impl Drop for Keeping {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Begins to let go of what is not to be kept.
pub fn begin(
    keep: KeepOutput,
    driver: Arc<Driver>,
    condition: Arc<Condition>,
    workplace: &Workplace,
    engine: Handle,
) -> Keeping {
    let sizes = Sizes::new(workplace.volumes.clone(), condition.clone());
    let keeper = Keeper { keep, driver, condition, known: BTreeMap::new() };
    Keeping(tokio::spawn(run(keeper, sizes, workplace.home.clone(), engine)))
}

async fn run(mut keeper: Keeper, mut sizes: Sizes, home: Home, engine: Handle) {
    tokio::time::sleep(FIRST).await;
    loop {
        let looked = tokio::task::spawn_blocking(move || {
            sizes.look();
            sizes
        });
        let Ok(back) = looked.await else { return };
        sizes = back;
        let mut more = true;
        while more {
            let stepped = tokio::task::spawn_blocking(move || {
                let more = keeper.step(Now::read());
                (keeper, more)
            });
            let Ok((back, left)) = stepped.await else { return };
            (keeper, more) = (back, left);
            tokio::time::sleep(PAUSE).await;
        }
        if let Some(age) = keeper.keep.folders {
            let (jobs, in_use) = (home.jobs(), in_use(&engine));
            let tidied = tokio::task::spawn_blocking(move || {
                delete_folders(&jobs, age, &in_use, Now::read());
            });
            let _ = tidied.await;
        }
        let (of, engine_of) = (home.clone(), engine.clone());
        let _ = tokio::task::spawn_blocking(move || tidy_setups(&of, &engine_of)).await;
        tokio::time::sleep(EVERY).await;
    }
}

/// Jobs whose folder somebody needs: their own, and those they go on from.
fn in_use(engine: &Handle) -> BTreeSet<JobId> {
    let core = engine.core();
    let jobs = core.jobs.iter();
    jobs.flat_map(|(id, job)| [Some(*id), job.detail.resume_from]).flatten().collect()
}

/// What time it is, by both clocks: one that was set ahead must not delete anything.
#[derive(Debug, Clone, Copy)]
struct Now {
    server: Time,
    wall: Time,
}

impl Now {
    fn read() -> Now {
        let server = clock::now();
        Now { server, wall: clock::to_wall(server) }
    }

    fn age(self, then: Time) -> Span {
        (self.server - then).min(self.wall - then)
    }
}

struct Keeper {
    keep: KeepOutput,
    driver: Arc<Driver>,
    condition: Arc<Condition>,
    known: BTreeMap<LeaseId, Kept>,
}

impl Keeper {
    /// Learns what is there, and deletes what is not to be kept; whether more is left to do.
    fn step(&mut self, now: Now) -> bool {
        let there = match self.driver.kept_leases() {
            Ok(there) => there,
            Err(error) => {
                tracing::warn!(error = error.in_full(), "the output of ended jobs is not seen");
                return false;
            }
        };
        self.known.retain(|lease, _| there.contains(lease));
        let new: Vec<LeaseId> =
            there.iter().filter(|lease| !self.known.contains_key(lease)).copied().collect();
        for lease in new.iter().take(STEP) {
            self.known.extend(self.driver.kept(*lease).map(|kept| (*lease, kept)));
        }
        // Which ones are the oldest is known when all are.
        let is_complete = new.len() <= STEP;
        let due = if is_complete { self.due(now) } else { Vec::new() };
        let mut deleted = 0;
        for lease in &due {
            match self.driver.forget(*lease) {
                Ok(()) => {
                    self.known.remove(lease);
                    deleted += 1;
                }
                // One that cannot be deleted must not keep the others.
                Err(error) => {
                    tracing::warn!(%lease, error = error.in_full(), "cannot delete output");
                }
            }
            if deleted == STEP {
                break;
            }
        }
        if deleted > 0 {
            tracing::info!(tasks = deleted, "deleted the output of ended jobs");
        }
        self.publish();
        !is_complete || deleted == STEP
    }

    /// What is to be deleted, the oldest first.
    fn due(&self, now: Now) -> Vec<LeaseId> {
        let mut by_age: Vec<&Kept> = self.known.values().collect();
        by_age.sort_by_key(|kept| (kept.ended, kept.lease));
        let mut left = self.totals();
        let most = self.keep.size.map(|size| u64::try_from(size.0).unwrap_or(0));
        let mut due = Vec::new();
        for kept in by_age {
            let is_old = self.keep.age.is_some_and(|age| now.age(kept.ended) > age);
            let of_team = left.get_mut(&kept.team).expect("it is part of the total");
            if is_old || most.is_some_and(|most| *of_team > most) {
                *of_team -= kept.bytes;
                due.push(kept.lease);
            }
        }
        due
    }

    fn totals(&self) -> BTreeMap<Name, u64> {
        let mut totals: BTreeMap<Name, u64> = BTreeMap::new();
        for kept in self.known.values() {
            *totals.entry(kept.team.clone()).or_default() += kept.bytes;
        }
        totals
    }

    fn publish(&self) {
        let bytes = |total: u64| Bytes(i64::try_from(total).unwrap_or(i64::MAX));
        let totals = self.totals().into_iter();
        self.condition.set_output(totals.map(|(team, total)| (team, bytes(total))).collect());
    }
}

/// Deletes the folders of jobs that have ended in which nothing was changed for so long.
fn delete_folders(jobs: &Path, age: Span, in_use: &BTreeSet<JobId>, now: Now) {
    let Ok(entries) = fs::read_dir(jobs) else { return };
    for entry in entries.flatten() {
        let id: Option<JobId> = entry.file_name().to_str().and_then(|name| name.parse().ok());
        let Some(id) = id.filter(|id| !in_use.contains(id)) else { continue };
        if !is_still(&entry.path(), age, now, DEPTH) {
            continue;
        }
        match remove_tree(&entry.path()) {
            Ok(()) => tracing::info!(job = %id, "deleted the folder of an ended job"),
            Err(error) => {
                tracing::warn!(job = %id, %error, "the folder of a job cannot be deleted")
            }
        }
    }
}

/// Whether nothing in a folder was changed for so long. Links are not followed.
fn is_still(path: &Path, age: Span, now: Now, depth: u32) -> bool {
    let Ok(found) = fs::symlink_metadata(path) else { return false };
    let since = found.modified().ok().and_then(|at| at.duration_since(std::time::UNIX_EPOCH).ok());
    let Some(since) = since else { return false };
    let changed = Time(i64::try_from(since.as_millis()).unwrap_or(i64::MAX));
    if now.age(changed) <= age {
        return false;
    }
    if !found.is_dir() {
        return true;
    }
    let Ok(entries) = fs::read_dir(path) else { return false };
    depth > 0 && entries.flatten().all(|entry| is_still(&entry.path(), age, now, depth - 1))
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_model::Ended;
    use berth_node::{Launcher, Options, TaskSpec, Wanted};

    const NOW: Now = Now { server: Time(1_800_000_000_000), wall: Time(1_800_000_000_000) };

    fn lease(job: u64) -> LeaseId {
        LeaseId { job: JobId::new(job), task: 0, attempt: 0 }
    }

    /// A driver with tasks that have ended: the job, its team, how long ago, and bytes of log.
    fn keeper(root: &Path, keep: KeepOutput, tasks: &[(u64, &str, Span, usize)]) -> Keeper {
        let launcher = Launcher { exe: "/bin/true".into(), args: Vec::new() };
        let driver =
            Driver::open(root, launcher, Options { cgroups: false, isolation: Wanted::Off })
                .unwrap();
        for (job, team, ago, bytes) in tasks {
            let dir = root.join(format!("ended/{job}.0.0"));
            fs::create_dir_all(dir.join("logs")).unwrap();
            let spec = TaskSpec { team: (*team).into(), ..TaskSpec::new(lease(*job), &["a"], "/") };
            let ended = Ended::unknown(lease(*job), NOW.wall - *ago);
            fs::write(dir.join("task.json"), serde_json::to_vec(&spec).unwrap()).unwrap();
            fs::write(dir.join("exit.json"), serde_json::to_vec(&ended).unwrap()).unwrap();
            fs::write(dir.join("logs/0"), vec![b'x'; *bytes]).unwrap();
        }
        let condition = Arc::default();
        Keeper { keep, driver: Arc::new(driver), condition, known: BTreeMap::new() }
    }

    fn left(keeper: &Keeper) -> Vec<u64> {
        keeper.driver.kept_leases().unwrap().iter().map(|lease| lease.job.number).collect()
    }

    #[test]
    fn output_goes_by_age_and_what_is_kept_is_told_by_team() {
        let root = tempfile::tempdir().unwrap();
        let keep = KeepOutput { age: Some(Span::days(30)), ..KeepOutput::default() };
        let (old, young) = (Span::days(31), Span::days(29));
        let tasks = [(1, "red", old, 10), (2, "red", young, 10), (3, "blue", young, 10)];
        let mut keeper = keeper(root.path(), keep, &tasks);
        assert!(!keeper.step(NOW));
        assert_eq!(left(&keeper), [2, 3]);
        let output = keeper.condition.output();
        assert_eq!(output.keys().map(Name::as_str).collect::<Vec<_>>(), ["blue", "red"]);
        assert!(output.values().all(|bytes| bytes.0 > 0), "{output:?}");
        // The number stays used although nothing is left of it.
        let mut all = keeper;
        all.keep.age = Some(Span::ZERO);
        all.step(NOW);
        assert_eq!((left(&all), all.driver.last_job()), (vec![], 3));
    }

    #[test]
    fn a_team_that_keeps_too_much_loses_its_oldest_output_and_no_other_team_does() {
        let root = tempfile::tempdir().unwrap();
        let keep = KeepOutput { size: Some(Bytes(250_000)), ..KeepOutput::default() };
        let tasks = [
            (1, "red", Span::hours(1), 100_000),
            (2, "red", Span::hours(3), 100_000),
            (3, "red", Span::hours(2), 100_000),
            (4, "blue", Span::hours(9), 100_000),
        ];
        let mut keeper = keeper(root.path(), keep, &tasks);
        keeper.step(NOW);
        assert_eq!(left(&keeper), [1, 3, 4]);
    }

    #[test]
    fn a_clock_that_was_set_ahead_deletes_nothing() {
        let root = tempfile::tempdir().unwrap();
        let keep = KeepOutput { age: Some(Span::days(30)), ..KeepOutput::default() };
        let mut keeper = keeper(root.path(), keep, &[(1, "red", Span::days(1), 10)]);
        keeper.step(Now { wall: NOW.wall + Span::days(400), ..NOW });
        assert_eq!(left(&keeper), [1]);
    }

    #[test]
    fn all_is_kept_where_nobody_says_otherwise() {
        let root = tempfile::tempdir().unwrap();
        let tasks = [(1, "red", Span::days(4_000), 10)];
        let mut keeper = keeper(root.path(), KeepOutput::default(), &tasks);
        keeper.step(NOW);
        assert_eq!(left(&keeper), [1]);
    }

    #[test]
    fn folders_of_jobs_go_when_nothing_in_them_was_changed_for_long_and_nobody_needs_them() {
        let root = tempfile::tempdir().unwrap();
        for job in ["1", "2", "3", "notes"] {
            fs::create_dir_all(root.path().join(job).join("deep")).unwrap();
        }
        let later = |span: Span| {
            let wall = clock::to_wall(clock::now()) + span;
            Now { server: wall, wall }
        };
        let in_use = BTreeSet::from([JobId::new(2)]);
        delete_folders(root.path(), Span::days(1), &in_use, later(Span::ZERO));
        assert_eq!(fs::read_dir(root.path()).unwrap().count(), 4);
        // Something deep in one of them is newer than the rest.
        let file = fs::File::create(root.path().join("3/deep/new")).unwrap();
        let new = std::time::SystemTime::now() + Duration::from_secs(3 * 86_400);
        file.set_modified(new).unwrap();
        delete_folders(root.path(), Span::days(1), &in_use, later(Span::days(2)));
        let mut left: Vec<_> =
            fs::read_dir(root.path()).unwrap().map(|e| e.unwrap().file_name()).collect();
        left.sort();
        assert_eq!(left, ["2", "3", "notes"]);
    }
}
