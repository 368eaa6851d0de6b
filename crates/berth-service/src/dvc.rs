//! Objects as DVC has them: files by their MD5 sums, and lists of files for folders. A remote of DVC
//! is one team's.

use crate::artifacts::{Artifact, must_see, of_row};
use crate::blobs::{self, Begun, DVC, Target};
use crate::caller::Caller;
use crate::fault::Fault;
use crate::service::Service;
use berth_api::Code;
use berth_api::access::Permission;
use berth_blobs::Placed;
use berth_model::DataHash;
use berth_store::BlobNameRow;

/// An object that the team has.
pub async fn open(
    service: &Service,
    caller: &Caller,
    team: &str,
    hash: &DataHash,
) -> Result<Artifact, Fault> {
    let shown = shown(team, hash);
    must_see(service, caller, Permission::DataRead, team, ("object", &shown)).await?;
    must_be_its_own(service, caller, team, hash).await?;
    let row = service.store.get::<BlobNameRow>((team, DVC, hash.as_str())).await?;
    of_row(row).ok_or_else(|| Fault::not_found("object", &shown))
}

fn shown(team: &str, hash: &DataHash) -> String {
    format!("{hash} of team {team}")
}

/// A token that only fetches what a job was submitted with is good for the data that it names.
async fn must_be_its_own(
    service: &Service,
    caller: &Caller,
    team: &str,
    hash: &DataHash,
) -> Result<(), Fault> {
    let Some(job) = caller.fetches_of() else { return Ok(()) };
    if crate::data::is_of_job(service, job, team, hash).await? {
        return Ok(());
    }
    let detail = format!("this token of job {job} fetches the job's data and no other");
    Err(Fault::new(Code::ScopeTooSmall, detail))
}

/// Begins to take an object in.
pub async fn begin(
    service: &Service,
    caller: &Caller,
    team: &str,
    hash: &DataHash,
    said: Option<u64>,
) -> Result<Begun, Fault> {
    let shown = shown(team, hash);
    must_see(service, caller, Permission::DataRead, team, ("object", &shown)).await?;
    caller.must(Permission::DataWrite, Some(team), Some(caller.user()))?;
    let target = Target {
        team: team.to_owned(),
        kind: DVC,
        name: hash.to_string(),
        // A folder is told by its list, which comes last, and not by each of its files.
        is_noted: hash.is_folder(),
    };
    blobs::begin_upload(service, target, said).await
}

/// Keeps it, if it is what its name says.
pub async fn finish(
    service: &Service,
    caller: &Caller,
    hash: &DataHash,
    begun: Begun,
) -> Result<Placed, Fault> {
    let (target, whole) = begun.finish().await?;
    if whole.md5 != hash.md5() {
        let detail = format!("what was sent has the MD5 sum {}, not {}", whole.md5, hash.md5());
        return Err(Fault::new(Code::BadRequest, detail).next("send it again"));
    }
    blobs::keep(service, caller, target, whole).await
}
