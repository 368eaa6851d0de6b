//! People, teams, tokens, projects and secrets.

pub mod me;
pub mod members;
pub mod projects;
pub mod secrets;
pub mod sessions;
pub mod teams;
pub mod tokens;
pub mod users;

pub(crate) use teams::{removal as team_removal, row as team_row};

use crate::checks;
use crate::fault::Fault;
use crate::service::Service;
use berth_engine::Write;
use berth_store::{AuditEntry, Batch, Store};

/// Writes documents with who did it, if what they depend on is so in that moment.
pub(crate) async fn write<F>(
    service: &Service,
    audit: AuditEntry,
    change: impl FnOnce(&mut Batch),
    check: impl FnOnce(Store) -> F + Send + 'static,
) -> Result<(), Fault>
where
    F: Future<Output = Result<(), Fault>> + Send + 'static,
{
    let mut documents = Batch::default();
    change(&mut documents);
    let write = Write::documents(documents, audit);
    service.engine.write(write.only_if(|store| checks::all(check(store)))).await?;
    Ok(())
}

/// Deletes documents, which depends on nothing: what has gone meanwhile stays so.
pub(crate) async fn remove(
    service: &Service,
    audit: AuditEntry,
    change: impl FnOnce(&mut Batch),
) -> Result<(), Fault> {
    let mut documents = Batch::default();
    change(&mut documents);
    service.engine.write(Write::documents(documents, audit)).await?;
    Ok(())
}

/// Whether a team's things are among those to be shown.
pub(crate) fn shows(teams: &Option<Vec<String>>, team: &str) -> bool {
    teams.as_ref().is_none_or(|teams| teams.iter().any(|of| of == team))
}
