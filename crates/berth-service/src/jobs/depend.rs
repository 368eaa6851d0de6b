//! The jobs that a job comes after. Whoever names one learns when and how it ended, so it has to be
//! one that they may see.

use super::find;
use crate::caller::Caller;
use crate::fault::Fault;
use crate::service::Service;
use berth_api::Code;
use berth_api::access::Permission;
use berth_model::{Dependency, JobId, JobRef};
use std::collections::BTreeSet;

/// Jobs of one name that a job may come after.
const MOST_OF_A_NAME: usize = 1_000;

/// The same by number. A name stands for all jobs of that name that have not ended and that the
/// caller may see; where there is none, for the last that has ended.
pub async fn by_number(
    service: &Service,
    caller: &Caller,
    after: &[Dependency],
) -> Result<Vec<Dependency>, Fault> {
    let mut found = Vec::new();
    for Dependency { after, job } in after {
        let ids = match job {
            JobRef::Id(id) => {
                let wanted = id.to_string();
                find::job(service, caller, &wanted, Permission::JobsRead).await?;
                vec![*id]
            }
            JobRef::Name(name) => named(service, caller, name).await?,
        };
        let each = ids.into_iter().map(|id| Dependency { after: *after, job: JobRef::Id(id) });
        found.extend(each);
    }
    Ok(found)
}

async fn named(service: &Service, caller: &Caller, name: &str) -> Result<Vec<JobId>, Fault> {
    let live: BTreeSet<JobId> = {
        let core = service.engine.core();
        let named = core.jobs.values().map(|job| &job.row).filter(|row| row.name == name);
        let seen =
            named.filter(|row| caller.may(Permission::JobsRead, Some(&row.team), Some(&row.user)));
        // All elements of an array are waited for.
        seen.map(|row| JobId::new(row.id.number)).take(MOST_OF_A_NAME + 1).collect()
    };
    if live.len() > MOST_OF_A_NAME {
        let detail = format!("more than {MOST_OF_A_NAME} jobs are called `{name}`");
        return Err(Fault::new(Code::JobRefused, detail).next("name them by number in `after`"));
    }
    if !live.is_empty() {
        return Ok(live.into_iter().collect());
    }
    let last = find::job(service, caller, name, Permission::JobsRead).await?;
    Ok(vec![last.id])
}
