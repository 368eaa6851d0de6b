//! Finds the newest checkpoint of a job.

use super::facts::Facts;
use berth_service::Service;
use berth_service::host::JobFileKind;
use std::path::Path;
use std::time::Duration;
use tokio::sync::Semaphore;
use tokio::time::timeout;

/// The default checkpoint folder, below the folder of the job.
const USUAL: &str = "checkpoints";
/// The maximum number of entries to read.
const MOST: usize = 1_000;
/// A folder on a disk that does not answer delays the runs of other jobs for no longer.
const PATIENCE: Duration = Duration::from_secs(2);
/// Threads of the server that look. Those that wait for such a disk keep their turns.
static TURNS: Semaphore = Semaphore::const_new(4);

/// The newest entry of the job's checkpoint folder, if the folder is on this machine; else the folder in
/// the job file.
pub async fn newest(service: &Service, facts: &Facts) -> Option<String> {
    let named = facts.checkpoint.clone();
    if named.as_ref().is_some_and(|path| Path::new(path).is_absolute()) {
        return named;
    }
    let (service, job) = (service.clone(), facts.job?);
    let folder = named.clone().unwrap_or_else(|| USUAL.to_owned());
    let look = async move {
        let turn = TURNS.acquire().await.ok()?;
        let looked = tokio::task::spawn_blocking(move || {
            let _turn = turn;
            let (entries, _) = service.host.files()?.list(job, &folder, MOST).ok()?;
            let saved = entries
                .into_iter()
                .filter(|entry| matches!(entry.kind, JobFileKind::File | JobFileKind::Folder));
            let newest = saved.max_by_key(|entry| (entry.modified, entry.name.clone()))?;
            Some(format!("{}/{}", folder.trim_end_matches('/'), newest.name))
        });
        looked.await.ok().flatten()
    };
    // Where it is not known now, the run keeps what it has.
    timeout(PATIENCE, look).await.ok()?.or(named)
}
