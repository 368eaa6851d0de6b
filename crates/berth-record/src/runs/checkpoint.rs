//! Where a job has saved last.

use super::facts::Facts;
use berth_service::Service;
use berth_service::host::JobFileKind;
use std::path::Path;

/// Where jobs save that do not say so, in their own folders.
const USUAL: &str = "checkpoints";
/// Entries that are looked at.
const MOST: usize = 1_000;

/// The newest entry of the folder that the job saves in, where that is in its own folder on this
/// machine; else the folder that its file names.
pub async fn newest(service: &Service, facts: &Facts) -> Option<String> {
    let named = facts.checkpoint.clone();
    if named.as_ref().is_some_and(|path| Path::new(path).is_absolute()) {
        return named;
    }
    let (service, job) = (service.clone(), facts.job?);
    let folder = named.clone().unwrap_or_else(|| USUAL.to_owned());
    let looked = tokio::task::spawn_blocking(move || {
        let (entries, _) = service.host.files()?.list(job, &folder, MOST).ok()?;
        let saved = entries
            .into_iter()
            .filter(|entry| matches!(entry.kind, JobFileKind::File | JobFileKind::Folder));
        let newest = saved.max_by_key(|entry| (entry.modified, entry.name.clone()))?;
        Some(format!("{}/{}", folder.trim_end_matches('/'), newest.name))
    });
    looked.await.ok().flatten().or(named)
}
