//! Naming a version, and removing one.

use super::used::jobs_with;
use super::{found, named, of_tree, parsed, shown};
use crate::artifacts::must_see;
use crate::caller::Caller;
use crate::checks;
use crate::data_tree;
use crate::fault::Fault;
use crate::identity::{remove, write};
use crate::service::Service;
use berth_api::access::Permission;
use berth_api::{Code, wire};
use berth_engine::clock;
use berth_model::{DataHash, DataVersion};
use berth_store::DataVersionRow;
use serde_json::json;

/// Versions of one name, and the longest note.
const MOST_VERSIONS: usize = 10_000;
const LONGEST_NOTE: usize = 1_000;

/// Names what was pushed. The same name for the same data may be given twice.
pub async fn make(
    service: &Service,
    caller: &Caller,
    team: &str,
    wish: wire::DataMake,
) -> Result<wire::DataVersion, Fault> {
    must_see(service, caller, Permission::DataRead, team, ("team", team)).await?;
    caller.must(Permission::DataWrite, Some(team), Some(caller.user()))?;
    let wanted = parsed(&wish.version)?;
    let hash: DataHash =
        wish.hash.parse().map_err(|error| Fault::new(Code::BadRequest, format!("{error}")))?;
    let note = wish.note.unwrap_or_default();
    if note.len() > LONGEST_NOTE || note.contains('\0') {
        let detail = format!("a note has at most {LONGEST_NOTE} bytes, and no zero byte");
        return Err(Fault::new(Code::BadRequest, detail));
    }
    // What it names is not cleaned away meanwhile.
    let _placing = service.blobs.placing.read().await;
    let before = service.store.data_versions(team, Some(&wanted.name)).await?;
    if before.len() >= MOST_VERSIONS {
        let detail = format!("{} has {MOST_VERSIONS} versions, which is the limit", wanted.name);
        return Err(Fault::new(Code::TooLarge, detail).next("remove some with `berth data rm`"));
    }
    let newest = before.last().map_or(0, |row| row.version);
    let version = wanted.version.unwrap_or(newest + 1);
    if let Some(there) = before.iter().find(|row| row.version == version) {
        return match there.hash == hash.as_str() {
            true => Ok(shown(there.clone())),
            false => {
                let detail = format!("{}@v{version} of team {team} is other data", wanted.name);
                let next =
                    format!("name it {}@v{}: versions never change", wanted.name, newest + 1);
                Err(Fault::new(Code::Exists, detail).next(next))
            }
        };
    }
    let parent = match wish.parent {
        Some(parent) => {
            let parent = DataVersion { name: wanted.name.clone(), version: Some(parent) };
            Some(found(service, team, &parent).await?.version)
        }
        None => before.iter().rfind(|row| row.version < version).map(|row| row.version),
    };
    let tree = data_tree::read(&service.store, &service.blobs.blobs, team, hash.as_str()).await;
    let tree = tree.map_err(|error| of_tree(&error))?;
    let row = DataVersionRow {
        team: team.to_owned(),
        name: wanted.name,
        version,
        hash: hash.to_string(),
        bytes: tree.bytes(),
        files: tree.files.len() as u64,
        parent,
        created: clock::now(),
        by: caller.user().to_owned(),
        note,
    };
    let detail = json!({ "hash": row.hash, "bytes": row.bytes, "files": row.files });
    let audit = caller.audit(target(&row), detail);
    let key = (row.team.clone(), row.name.clone());
    let check = async move |store| {
        checks::team(&store, &key.0).await?;
        let there = (key.0.as_str(), key.1.as_str(), version);
        checks::free::<DataVersionRow>(&store, there, "version of that number").await
    };
    write(service, audit, |batch| batch.put(&row), check).await?;
    Ok(shown(row))
}

fn target(row: &DataVersionRow) -> String {
    format!("data {}@v{} of {}", row.name, row.version, row.team)
}

/// Removes a version. What it named stays until the team's data is cleaned.
pub async fn delete(
    service: &Service,
    caller: &Caller,
    team: &str,
    wanted: &str,
) -> Result<(), Fault> {
    if parsed(wanted)?.version.is_none() {
        let detail = format!("`{wanted}` does not say which version");
        return Err(Fault::new(Code::BadRequest, detail).next("name it like c4@v3"));
    }
    let row = named(service, caller, team, wanted).await?;
    caller.must(Permission::DataManage, Some(team), Some(&row.by))?;
    let jobs = jobs_with(service, team, &row.hash);
    if !jobs.is_empty() {
        let named: Vec<String> = jobs.iter().take(5).map(|job| format!("job {job}")).collect();
        let detail = format!("jobs that have not ended use {wanted}: {}", named.join(", "));
        return Err(Fault::new(Code::InUse, detail).next("wait for their end, or stop them first"));
    }
    let audit = caller.audit(target(&row), json!({ "hash": row.hash }));
    remove(service, audit, |batch| {
        batch.delete::<DataVersionRow>((&row.team, &row.name, row.version));
    })
    .await
}
