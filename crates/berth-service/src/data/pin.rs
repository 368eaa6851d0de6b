//! The data that a job file names becomes the data that the job has, whatever is named later.

use super::found;
use crate::caller::Caller;
use crate::fault::Fault;
use crate::service::Service;
use berth_api::Code;
use berth_api::access::Permission;
use berth_model::{DataRef, DataVersion, JobRequest, RunSpec, Workload};
use std::sync::Arc;

/// Puts the hash of each version into the request. Says in words what is wrong with a key.
pub(crate) async fn pin(
    service: &Service,
    caller: &Caller,
    team: &str,
    request: &mut JobRequest,
) -> Result<(), Pinned> {
    let Workload::Run(run) = &mut request.workload else { return Ok(()) };
    for source in run.data.values().filter(|source| !DataRef::is_meant(source)) {
        // A volume of this name would be empty, and the job would look for the data in it.
        let Ok(data) = format!("dvc:{source}").parse::<DataRef>() else { continue };
        if found(service, team, &data.version).await.is_ok() {
            return Err(Pinned::Refused(format!(
                "`{source}` names a volume, and team {team} has data of that name; write \
                 `dvc:{source}` for the data, or name the volume under `volumes`"
            )));
        }
    }
    if !run.data.values().any(|source| DataRef::is_meant(source)) {
        return Ok(());
    }
    let mut pinned = run.data.clone();
    for source in pinned.values_mut().filter(|source| DataRef::is_meant(source)) {
        let data: DataRef =
            source.parse().map_err(|error| Pinned::Refused(format!("`{source}`: {error}")))?;
        if !caller.may(Permission::DataRead, Some(team), None) {
            return Err(Pinned::Refused(format!("you may not read the data of team {team}")));
        }
        let row = found(service, team, &data.version).await.map_err(|fault| {
            match fault.0.known_code() {
                Some(Code::NotFound) => {
                    Pinned::Refused(format!("{}; {}", fault.0.detail, fault.0.next))
                }
                _ => Pinned::Fault(fault),
            }
        })?;
        let version = DataVersion { name: row.name, version: Some(row.version) };
        // A file that repeats a run has the hash of the content.
        if let Some(wanted) = data.hash.filter(|wanted| wanted.as_str() != row.hash) {
            return Err(Pinned::Refused(format!(
                "{version} of team {team} has the hash {} now, and the job file wants {wanted}; \
                 push that content again, or leave `#{wanted}` out",
                row.hash
            )));
        }
        *source = DataRef { version, hash: row.hash.parse().ok() }.to_string();
    }
    let changed: &mut RunSpec = Arc::make_mut(run);
    changed.data = pinned;
    Ok(())
}

/// Why a job cannot have its data.
#[derive(Debug)]
pub(crate) enum Pinned {
    Refused(String),
    Fault(Fault),
}
