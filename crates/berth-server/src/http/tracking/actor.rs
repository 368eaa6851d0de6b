//! The rights of a caller on experiments, runs and models: reading takes the right to read logs,
//! logging the right to submit jobs, and deleting and sharing the right to control jobs.

use super::answer::of_fault;
use crate::notifier::registry;
use axum::http::HeaderMap;
use berth_api::access::Permission;
use berth_engine::DEFAULT_TEAM;
use berth_service::artifacts::{self, ArtifactPath};
use berth_service::{Caller, Service};
use berth_tracker::{Actor, Code, Error, Event, File, Fut, Outbox, Right, RunHead, Tried, Webhook};

/// The team that a request is for, where its user is in several.
const TEAM: &str = "x-berth-team";

pub struct Asking {
    pub caller: Caller,
    service: Service,
    team: Option<String>,
    /// The run of the job, if the caller is a job.
    pub of_job: Option<RunHead>,
}

pub fn permission(right: Right) -> Permission {
    match right {
        Right::Read => Permission::LogsRead,
        Right::Write => Permission::JobsSubmit,
        Right::Manage => Permission::JobsControl,
    }
}

impl Asking {
    /// `name` is the user name of basic authentication, which may name a team.
    pub fn new(
        service: &Service,
        caller: Caller,
        headers: &HeaderMap,
        name: Option<&str>,
    ) -> Result<Asking, Error> {
        let reads = |team: &str| caller.may(Permission::LogsRead, Some(team), None);
        let team = match headers.get(TEAM) {
            Some(named) => {
                let team = named.to_str().unwrap_or_default();
                if !is_team(service, team) || !reads(team) {
                    let said = format!(
                        "The header X-Berth-Team names '{team}', which is no team that you are in"
                    );
                    return Err(Error::new(Code::PermissionDenied, said));
                }
                Some(team.to_owned())
            }
            None => name
                .filter(|name| caller.teams().iter().any(|of| of.team == **name))
                .map(str::to_owned)
                .or_else(|| caller.default_team())
                .or_else(|| reads(DEFAULT_TEAM).then(|| DEFAULT_TEAM.to_owned())),
        };
        Ok(Asking { caller, service: service.clone(), team, of_job: None })
    }

    /// For a request whose path names the team.
    pub fn of_team(service: &Service, caller: Caller, team: &str) -> Asking {
        Asking { caller, service: service.clone(), team: Some(team.to_owned()), of_job: None }
    }
}

fn is_team(service: &Service, name: &str) -> bool {
    service.engine.teams().names().any(|team| team == name)
}

impl Actor for Asking {
    fn user(&self) -> &str {
        self.caller.user()
    }

    fn team(&self) -> Option<&str> {
        self.team.as_deref()
    }

    fn may(&self, right: Right, team: &str, by: Option<&str>) -> bool {
        self.caller.may(permission(right), Some(team), by)
    }

    fn is_team(&self, name: &str) -> bool {
        is_team(&self.service, name)
    }

    fn home(&self) -> Option<i64> {
        self.of_job.as_ref().map(|run| run.experiment)
    }

    fn resumes(&self, run: &str) -> bool {
        self.of_job.as_ref().is_some_and(|own| &*own.id == run)
    }

    fn outbox(&self) -> Option<&dyn Outbox> {
        Some(self)
    }

    fn files<'a>(&'a self, folder: &'a str) -> Fut<'a, Vec<File>> {
        Box::pin(async move {
            let path = ArtifactPath::folder(folder);
            let path = path.map_err(|fault| Error::invalid(fault.0.detail.clone()))?;
            let found = artifacts::list(&self.service, &self.caller, &path).await;
            let found = found.map_err(|fault| of_fault(&fault))?;
            let file = |entry: artifacts::Entry| File { name: entry.name, bytes: entry.bytes };
            Ok(found.into_iter().map(file).collect())
        })
    }
}

impl Outbox for Asking {
    fn check_url(&self, url: &str) -> Result<(), Error> {
        let checked = self.service.notify_addresses.check_url(url);
        checked.map(drop).map_err(|why| Error::invalid(format!("{why}; {}", why.next())))
    }

    fn seal(&self, team: &str, id: &str, secret: &str) -> String {
        registry::seal(&self.service.vault, team, id, secret)
    }

    fn test<'a>(&'a self, team: &'a str, hook: &'a Webhook, event: &'a Event) -> Fut<'a, Tried> {
        Box::pin(registry::test(&self.service, team, hook, event))
    }
}
