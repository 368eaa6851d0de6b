//! Callers that are jobs, with their own tokens.

use super::rights::{highest, membership, role};
use super::{Caller, Inner, NAMESPACE, OfJob};
use crate::credentials;
use crate::fault::Fault;
use crate::job_token::{JobToken, Reach};
use crate::service::Service;
use berth_api::access::{self, Owner, Permission, Role, Scope, Standing};
use berth_api::routes::Route;
use berth_api::{Code, wire};
use berth_engine::clock;
use berth_model::LeaseId;
use std::sync::Arc;

/// The routes to fetch code and data of a job.
const FETCH: [&str; 2] = ["code_content", "dvc_get"];
/// The routes for the client of MLflow in a job, in addition to those that read data.
const TRACK: [&str; 11] = [
    "tracking_read",
    "tracking_write",
    "artifact_list",
    "artifact_get",
    "artifact_put",
    "artifact_delete",
    "artifact_presigned",
    "artifact_parts_create",
    "artifact_parts_complete",
    "artifact_parts_abort",
    "artifact_part",
];

/// A running job, with the subset of its user's rights in the team that a job needs.
pub(super) async fn of_job(
    service: &Service,
    token: JobToken,
    from: String,
    route: &'static Route,
) -> Result<Caller, Fault> {
    let ended = |why: &str| {
        let detail = format!("the token of job {} has ended: {why}", token.lease.job);
        let next = "a job finds a new one in the file that BERTH_TOKEN_FILE names while it runs";
        Fault::new(Code::TokenEnded, detail).next(next)
    };
    if token.expires <= clock::now() {
        return Err(ended("its time is over"));
    }
    let Some((name, team)) = running(service, token.lease) else {
        return Err(ended("the job does not run any more"));
    };
    match token.reach {
        Reach::Job => {}
        Reach::Code => return of_fetch(service, token, (name, team), from, route),
        Reach::Track => must_track(token, route)?,
    }
    let tree = service.engine.teams();
    let role = match credentials::user(service, &name).await? {
        // The cluster decides who may create jobs in a namespace.
        None if name.starts_with(NAMESPACE) => Role::Researcher,
        None => return Err(ended("its user is gone")),
        Some(person) => {
            let teams = service.store.memberships_of(&name).await?;
            let teams: Vec<wire::Membership> = teams.into_iter().filter_map(membership).collect();
            let cluster = person.role.as_deref().and_then(role);
            let standing = Standing { here: highest(&teams, &tree, &team), cluster };
            let may = |permission| access::allows(standing, permission, Owner::Oneself);
            match (may(Permission::JobsSubmit), may(Permission::JobsRead)) {
                (true, _) => Role::Researcher,
                (false, true) => Role::Viewer,
                (false, false) => return Err(ended("its user has no right in its team any more")),
            }
        }
    };
    let inner = Inner {
        token: token.row(&name),
        user: name,
        scope: Scope::Jobs,
        cluster: None,
        teams: vec![wire::Membership { team: team.clone(), role }],
        tree,
        from,
        job: Some(OfJob { token, team }),
        session: None,
    };
    Ok(Caller { inner: Arc::new(inner), route })
}

/// The caller that fetches code and data of a running job. Berth checked the rights at submission, so the
/// current rights of the user do not matter.
fn of_fetch(
    service: &Service,
    token: JobToken,
    (user, team): (String, String),
    from: String,
    route: &'static Route,
) -> Result<Caller, Fault> {
    if !FETCH.contains(&route.id) {
        let job = token.lease.job;
        let detail = format!(
            "this token of job {job} fetches the job's code and data and does nothing else"
        );
        return Err(Fault::new(Code::ScopeTooSmall, detail));
    }
    let inner = Inner {
        token: token.row(&user),
        user,
        scope: Scope::Read,
        cluster: None,
        teams: vec![wire::Membership { team: team.clone(), role: Role::Viewer }],
        tree: service.engine.teams(),
        from,
        job: Some(OfJob { token, team }),
        session: None,
    };
    Ok(Caller { inner: Arc::new(inner), route })
}

/// Refuses routes other than those for tracking.
fn must_track(token: JobToken, route: &Route) -> Result<(), Fault> {
    if TRACK.contains(&route.id) || route.permission == Permission::DataRead {
        return Ok(());
    }
    let job = token.lease.job;
    let detail = format!(
        "this token of job {job} logs to what is tracked, reads and writes artifacts and reads data, \
         and does nothing else"
    );
    let next = "a job finds a token for other requests in the file that BERTH_TOKEN_FILE names";
    Err(Fault::new(Code::ScopeTooSmall, detail).next(next))
}

/// The user and the team of a job, while this task runs.
pub(super) fn running(service: &Service, lease: LeaseId) -> Option<(String, String)> {
    let core = service.engine.core();
    let job = core.jobs.get(&lease.job).filter(|job| job.leases.contains_key(&lease))?;
    Some((job.row.user.clone(), job.row.team.clone()))
}
