//! What a job has written into its folder.

use super::find;
use crate::caller::Caller;
use crate::fault::{self, Fault};
use crate::host::{JobFileKind, JobFiles, OpenJobFile};
use crate::service::Service;
use berth_api::access::Permission;
use berth_api::wire::{FileKind, JobFile, JobFileList, JobFileQuery};
use berth_api::{Code, wire};
use berth_engine::Detail;
use berth_model::JobId;
use berth_store::JobRow;
use std::io;

/// The folder of the job's code, below the job's folder.
const CODE: &str = "code";
/// Entries of one answer.
const MOST: usize = 5_000;

/// The entries of a folder.
pub async fn list(
    service: &Service,
    caller: &Caller,
    job: &str,
    query: &JobFileQuery,
) -> Result<JobFileList, Fault> {
    let row = job_of(service, caller, job).await?;
    let id = row.id;
    let path = query.path.trim_matches('/').to_owned();
    let asked = path.clone();
    let listed = on_disk(service, id, &path, move |files| files.list(id, &asked, MOST)).await?;
    let (entries, more) = listed;
    let entries = entries.into_iter().map(|entry| JobFile {
        name: entry.name,
        kind: match entry.kind {
            JobFileKind::File => FileKind::File,
            JobFileKind::Folder => FileKind::Dir,
            JobFileKind::Link => FileKind::Link,
            JobFileKind::Other => FileKind::Other,
        },
        bytes: entry.bytes,
        modified_at: entry.modified.map(wire::At),
    });
    Ok(JobFileList {
        job: id.into(),
        path,
        entries: entries.collect(),
        more,
        workdir: workdir(&row),
    })
}

/// A file to be read.
pub async fn open(
    service: &Service,
    caller: &Caller,
    job: &str,
    path: &str,
) -> Result<(JobId, OpenJobFile), Fault> {
    let id = job_of(service, caller, job).await?.id;
    let asked = path.to_owned();
    Ok((id, on_disk(service, id, path, move |files| files.open(id, &asked)).await?))
}

async fn job_of(service: &Service, caller: &Caller, job: &str) -> Result<JobRow, Fault> {
    let found = find::job(service, caller, job, Permission::LogsRead).await?;
    if found.is_array() {
        let next = format!("name one, such as {}", found.first().id);
        let detail = format!("job {} is an array; each element has a folder of its own", found.id);
        return Err(Fault::new(Code::WrongState, detail).next(next));
    }
    Ok(found.first().clone())
}

/// The working folder of the command, relative to the job's folder or absolute; `None` if it is the job's
/// folder.
fn workdir(row: &JobRow) -> Option<String> {
    let detail: Detail = serde_json::from_str(&row.detail).ok()?;
    let run = detail.workload.run()?;
    let base = run.code.as_ref().map(|_| CODE);
    match (&run.workdir, base) {
        (Some(path), Some(base)) if !path.starts_with('/') => {
            Some(format!("{base}/{}", path.trim_start_matches("./")))
        }
        (Some(path), _) => Some(path.clone()),
        (None, base) => base.map(ToOwned::to_owned),
    }
}

async fn on_disk<T: Send + 'static>(
    service: &Service,
    job: JobId,
    path: &str,
    ask: impl FnOnce(&dyn JobFiles) -> io::Result<T> + Send + 'static,
) -> Result<T, Fault> {
    if service.host.files().is_none() {
        let detail = "jobs run as pods here, and their files are in the volumes of those";
        let next = "copy them with `kubectl cp`, or mount the volume in another job";
        return Err(Fault::new(Code::NotHere, detail).next(next));
    }
    let host = service.host.clone();
    let asked = tokio::task::spawn_blocking(move || host.files().map(ask)).await;
    let asked = asked.ok().flatten();
    let asked = asked.ok_or_else(|| Fault::new(Code::Internal, "the disk was not asked"))?;
    asked.map_err(|error| failed(job, path, &error))
}

fn failed(job: JobId, path: &str, error: &io::Error) -> Fault {
    let next = format!("`berth files {job}` lists what there is; links are not followed");
    match error.kind() {
        io::ErrorKind::NotFound
        | io::ErrorKind::NotADirectory
        | io::ErrorKind::InvalidFilename
        | io::ErrorKind::InvalidInput
        | io::ErrorKind::CrossesDevices
        | io::ErrorKind::PermissionDenied => {
            Fault::new(Code::NotFound, format!("job {job} has no such file: `{path}`")).next(next)
        }
        io::ErrorKind::IsADirectory => {
            let detail = format!("`{path}` is a folder, or something else that is no plain file");
            let next = format!("name a file in it: `berth files {job} {path}` lists them");
            Fault::new(Code::BadRequest, detail).next(next)
        }
        _ => fault::hidden(Code::Internal, error),
    }
}
