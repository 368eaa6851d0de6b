//! Versions of data: named, compared, removed, and given to jobs.

mod clean;
mod diff;
mod list;
mod make;
mod pin;
mod used;

pub use clean::clean;
pub use diff::diff;
pub use list::{files, get, list, missing};
pub use make::{delete, make};
pub(crate) use pin::{Pinned, pin};
pub(crate) use used::is_of_job;

use crate::artifacts::must_see;
use crate::caller::Caller;
use crate::data_tree::{self, TreeError};
use crate::fault::{self, Fault};
use crate::service::Service;
use berth_api::access::Permission;
use berth_api::{Code, wire};
use berth_file::error::did_you_mean;
use berth_model::DataVersion;
use berth_store::DataVersionRow;

fn shown(row: DataVersionRow) -> wire::DataVersion {
    wire::DataVersion {
        team: row.team,
        name: row.name,
        version: row.version,
        hash: row.hash,
        bytes: row.bytes,
        files: row.files,
        parent: row.parent,
        created: row.created.into(),
        by: row.by,
        note: row.note,
    }
}

/// A version of a team whose data the caller may see.
async fn named(
    service: &Service,
    caller: &Caller,
    team: &str,
    wanted: &str,
) -> Result<DataVersionRow, Fault> {
    must_see(service, caller, Permission::DataRead, team, ("data", wanted)).await?;
    let version = parsed(wanted)?;
    found(service, team, &version).await
}

fn parsed(wanted: &str) -> Result<DataVersion, Fault> {
    let bad = |error| {
        let shown: String = wanted.chars().take(80).collect();
        Fault::new(Code::BadRequest, format!("`{shown}`: {error}"))
            .next("name it like c4@v3; `berth data ls` lists data")
    };
    wanted.parse().map_err(bad)
}

/// The version of that number, or the newest.
async fn found(
    service: &Service,
    team: &str,
    wanted: &DataVersion,
) -> Result<DataVersionRow, Fault> {
    let DataVersion { name, version } = wanted;
    if let Some(version) = version
        && let Some(row) = service.store.get::<DataVersionRow>((team, name, *version)).await?
    {
        return Ok(row);
    }
    let all = service.store.data_versions(team, Some(name)).await?;
    let newest = all.last().cloned();
    match (version, newest) {
        (None, Some(newest)) => Ok(newest),
        (Some(version), Some(newest)) => {
            let detail = format!(
                "team {team} has no version {version} of {name}; the newest is {}",
                newest.version
            );
            Err(Fault::new(Code::NotFound, detail)
                .next(format!("`berth data ls {name}` lists its versions")))
        }
        (_, None) => {
            let all = service.store.data_versions(team, None).await?;
            let hint = did_you_mean(name, all.iter().map(|row| row.name.as_str()));
            let detail = format!("team {team} has no data `{name}`{hint}");
            let next = "`berth data ls` lists data; `berth data push PATH NAME@v1` adds \
                        some";
            Err(Fault::new(Code::NotFound, detail).next(next))
        }
    }
}

/// The files of a version, all of which are there.
async fn tree(service: &Service, row: &DataVersionRow) -> Result<data_tree::Tree, Fault> {
    let tree = data_tree::read(&service.store, &service.blobs.blobs, &row.team, &row.hash).await;
    tree.map_err(|error| of_tree(&error))
}

/// What is wrong with a tree, for who asked.
fn of_tree(error: &TreeError) -> Fault {
    match error {
        TreeError::Absent { .. } | TreeError::Incomplete { .. } => {
            Fault::new(Code::WrongState, error.to_string())
                .next("push it: `dvc push` or `berth data push` sends what is missing")
        }
        TreeError::Odd { .. } => Fault::new(Code::BadRequest, error.to_string()),
        TreeError::Store(_) | TreeError::Blobs(_) => fault::hidden(Code::Internal, error),
    }
}
