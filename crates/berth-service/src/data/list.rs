//! Looking at versions.

use super::{named, shown, tree};
use crate::artifacts::must_see;
use crate::blobs::DVC;
use crate::caller::Caller;
use crate::fault::Fault;
use crate::identity::shows;
use crate::service::Service;
use berth_api::access::Permission;
use berth_api::{Code, wire};
use berth_model::DataHash;
use berth_store::TeamRow;
use std::collections::BTreeSet;

/// Sums that one request asks about.
const MOST_ASKED: usize = 10_000;
/// Names that are looked for at once.
const AT_ONCE: usize = 500;
/// Files of a page.
const PAGE: usize = 1_000;
const LONGEST_PAGE: usize = 10_000;

/// Versions, the newest of each name first.
pub async fn list(
    service: &Service,
    caller: &Caller,
    query: wire::DataQuery,
) -> Result<wire::Items<wire::DataVersion>, Fault> {
    let teams = caller.reads(Permission::DataRead);
    let mut items = Vec::new();
    for team in service.store.every::<TeamRow>().await? {
        let is_wanted = query.team.as_ref().is_none_or(|wanted| *wanted == team.name);
        if !is_wanted || !shows(&teams, &team.name) {
            continue;
        }
        let mut rows = service.store.data_versions(&team.name, query.name.as_deref()).await?;
        rows.sort_by(|a, b| (&a.name, b.version).cmp(&(&b.name, a.version)));
        items.extend(rows.into_iter().map(shown));
    }
    Ok(wire::Items { items })
}

pub async fn get(
    service: &Service,
    caller: &Caller,
    team: &str,
    wanted: &str,
) -> Result<wire::DataVersion, Fault> {
    named(service, caller, team, wanted).await.map(shown)
}

/// The files of a version, page by page.
pub async fn files(
    service: &Service,
    caller: &Caller,
    team: &str,
    wanted: &str,
    query: wire::DataFilesQuery,
) -> Result<wire::DataFiles, Fault> {
    let row = named(service, caller, team, wanted).await?;
    let tree = tree(service, &row).await?;
    let limit = query.limit.map_or(PAGE, |limit| limit as usize).clamp(1, LONGEST_PAGE);
    let own = row.name.clone();
    let files = tree.files.into_iter().map(|file| wire::DataFile {
        path: file.path.unwrap_or_else(|| own.clone()),
        md5: file.md5,
        bytes: file.bytes,
    });
    let mut files =
        files.filter(|file| query.after.as_ref().is_none_or(|after| file.path > *after));
    let page: Vec<wire::DataFile> = files.by_ref().take(limit).collect();
    Ok(wire::DataFiles { more: files.next().is_some(), files: page })
}

/// Which of these objects a team does not have.
pub async fn missing(
    service: &Service,
    caller: &Caller,
    team: &str,
    wish: wire::DataAsk,
) -> Result<wire::DataMissing, Fault> {
    must_see(service, caller, Permission::DataRead, team, ("team", team)).await?;
    if wish.hashes.len() > MOST_ASKED {
        let detail =
            format!("{} objects are asked about, and {MOST_ASKED} may be", wish.hashes.len());
        return Err(Fault::new(Code::BadRequest, detail).next("ask in several requests"));
    }
    let mut wanted = BTreeSet::new();
    for hash in &wish.hashes {
        let hash: DataHash =
            hash.parse().map_err(|error| Fault::new(Code::BadRequest, format!("{error}")))?;
        wanted.insert(hash.to_string());
    }
    let all: Vec<String> = wanted.iter().cloned().collect();
    for some in all.chunks(AT_ONCE) {
        for row in service.store.blob_names_among((team, DVC), some).await? {
            wanted.remove(&row.name);
        }
    }
    Ok(wire::DataMissing { missing: wanted.into_iter().collect() })
}
