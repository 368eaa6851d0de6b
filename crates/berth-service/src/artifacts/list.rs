//! What is in a folder of artifacts.

use super::{ArtifactPath, must_see};
use crate::blobs::ARTIFACT;
use crate::caller::Caller;
use crate::fault::Fault;
use crate::service::Service;
use berth_api::Code;
use berth_api::access::Permission;
use berth_store::NamesQuery;

/// Entries of one list, and names that are read at a time.
const MOST: usize = 100_000;
const PAGE: u32 = 1_000;
/// Comes after all other letters.
const LAST: char = '\u{10ffff}';

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its own name, without the folder's.
    pub name: String,
    /// Nothing for a folder.
    pub bytes: Option<u64>,
}

/// What is in a folder, in the order of names. A folder that nothing is in is empty, like one that
/// never was: artifacts make their folders.
pub async fn list(
    service: &Service,
    caller: &Caller,
    path: &ArtifactPath,
) -> Result<Vec<Entry>, Fault> {
    let ArtifactPath { team, name } = path;
    let shown = path.to_string();
    must_see(service, caller, Permission::ArtifactsRead, team, ("artifact", &shown)).await?;
    let prefix = if name.is_empty() { String::new() } else { format!("{name}/") };
    let mut entries: Vec<Entry> = Vec::new();
    let mut after: Option<String> = None;
    loop {
        let after_now = after.as_deref();
        let query =
            NamesQuery { team, kind: ARTIFACT, prefix: &prefix, after: after_now, limit: PAGE };
        let rows = service.store.blob_names(query).await?;
        let is_last = rows.len() < PAGE as usize;
        for row in rows {
            let rest = &row.name[prefix.len()..];
            match rest.split_once('/') {
                None => entries.push(Entry { name: rest.to_owned(), bytes: Some(row.bytes) }),
                Some((folder, _)) => {
                    if entries.last().is_none_or(|last| last.bytes.is_some() || last.name != folder)
                    {
                        entries.push(Entry { name: folder.to_owned(), bytes: None });
                    }
                }
            }
            after = Some(row.name);
        }
        if is_last {
            return Ok(entries);
        }
        if entries.len() > MOST {
            let detail = format!("`{path}` has more than {MOST} entries");
            return Err(Fault::new(Code::TooLarge, detail).next("list a folder in it"));
        }
        // Skips the rest of a folder that is listed already.
        if let Some(Entry { name, bytes: None }) = entries.last() {
            after = Some(format!("{prefix}{name}/{LAST}"));
        }
    }
}
