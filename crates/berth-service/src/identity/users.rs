//! People.

use super::write;
use crate::caller::{Caller, role};
use crate::checks;
use crate::fault::Fault;
use crate::service::Service;
use crate::{live, names};
use berth_api::access::{Permission, Role};
use berth_api::{Code, wire};
use berth_engine::clock;
use berth_store::{Batch, MemberRow, ScheduleRow, Store, UserRow};
use serde_json::json;
use std::collections::BTreeMap;

pub async fn list(service: &Service, caller: &Caller) -> Result<wire::Items<wire::User>, Fault> {
    let everybody = caller.may(Permission::UsersRead, None, None);
    let mut teams: BTreeMap<String, Vec<wire::Membership>> = BTreeMap::new();
    for MemberRow { team, user, role: word, .. } in service.store.every().await? {
        if let Some(role) = role(&word) {
            teams.entry(user).or_default().push(wire::Membership { team, role });
        }
    }
    let rows = service.store.every::<UserRow>().await?.into_iter();
    let seen = rows
        .filter(|row| row.disabled.is_none())
        .filter(|row| everybody || row.name == caller.user());
    let items = seen.map(|row| {
        let teams = teams.remove(&row.name).unwrap_or_default();
        shown(row, teams)
    });
    Ok(wire::Items { items: items.collect() })
}

fn shown(row: UserRow, teams: Vec<wire::Membership>) -> wire::User {
    wire::User {
        created: row.created.into(),
        cluster_role: row.role.as_deref().and_then(role),
        name: row.name,
        teams,
    }
}

pub async fn create(
    service: &Service,
    caller: &Caller,
    wish: wire::UserCreate,
) -> Result<wire::User, Fault> {
    names::check("user", &wish.name)?;
    wish.cluster_role.map_or(Ok(()), |role| of_cluster(role, &wish.name))?;
    let row = UserRow {
        name: wish.name,
        full_name: String::new(),
        role: wish.cluster_role.map(|role| role.word().to_owned()),
        created: clock::now(),
        disabled: None,
    };
    let detail = json!({ "cluster_role": row.role });
    let target = format!("user {}", row.name);
    let (audit, name) = (caller.audit(&target, detail), row.name.clone());
    write(
        service,
        audit,
        |batch| batch.put(&row),
        async move |store| checks::free::<UserRow>(&store, &name, &target).await,
    )
    .await?;
    Ok(shown(row, Vec::new()))
}

/// Refuses the roles that exist only in a team. For the cluster they would read the jobs of all teams
/// and run none, which is hardly what was meant.
fn of_cluster(role: Role, user: &str) -> Result<(), Fault> {
    match role {
        Role::Viewer | Role::Operator | Role::Admin => Ok(()),
        Role::Researcher | Role::TeamLead => {
            let word = role.word();
            let detail = format!(
                "`{word}` is a role in a team; for the cluster there are viewer, operator and admin"
            );
            let next = format!(
                "add the user without a role, and then to a team: `berth member set TEAM {user} {word}`"
            );
            Err(Fault::new(Code::BadRequest, detail).next(next))
        }
    }
}

/// Tokens and memberships go with the user. Their schedules are paused, because nobody has the right
/// any more by which they submit; jobs go on, and keep the name.
pub async fn delete(
    service: &Service,
    caller: &Caller,
    name: &str,
    how: wire::Removal,
) -> Result<(), Fault> {
    removable(&service.store, name).await?;
    if how.force != Some(true) {
        unused(service, name).await?;
    }
    let audit = caller.audit(format!("user {name}"), json!({}));
    let delete = |batch: &mut Batch| batch.delete::<UserRow>(name);
    let again = name.to_owned();
    write(service, audit, delete, async move |store| removable(&store, &again).await).await?;
    Ok(())
}

async fn removable(store: &Store, name: &str) -> Result<(), Fault> {
    let users = store.every::<UserRow>().await?;
    if !users.iter().any(|user| user.name == name) {
        let known = users.iter().map(|user| user.name.as_str());
        return Err(names::unknown("user", name, known));
    }
    if !leaves_an_admin(&users, name) {
        let fault = Fault::new(Code::InUse, format!("`{name}` is the only admin"));
        return Err(fault.next("make another user an admin first"));
    }
    Ok(())
}

/// Nothing of the user runs, waits or is scheduled.
async fn unused(service: &Service, name: &str) -> Result<(), Fault> {
    let jobs = live::jobs_where(service, |job| job.row.user == name);
    let schedules = service.store.every::<ScheduleRow>().await?.into_iter();
    let schedules = schedules.filter(|one| one.user == name && !one.paused).count();
    if jobs == 0 && schedules == 0 {
        return Ok(());
    }
    let (jobs, schedules) = (live::count(jobs, "job"), live::count(schedules, "active schedule"));
    let detail = format!("user `{name}` has {jobs} that wait or run, and {schedules}");
    let next = format!(
        "end them first (`berth ps --user {name}` lists the jobs), or delete the user with --force: \
         jobs go on and schedules are paused"
    );
    Err(Fault::new(Code::InUse, detail).next(next))
}

/// The last admin stays: only an admin can make another one.
fn leaves_an_admin(users: &[UserRow], without: &str) -> bool {
    let admin = |user: &&UserRow| {
        user.disabled.is_none() && user.role.as_deref() == Some(Role::Admin.word())
    };
    users.iter().filter(admin).any(|user| user.name != without)
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_model::Time;

    fn user(name: &str, role: Option<&str>, disabled: Option<Time>) -> UserRow {
        let (full_name, created) = (String::new(), Time(0));
        UserRow { name: name.into(), full_name, role: role.map(Into::into), created, disabled }
    }

    #[test]
    fn the_last_admin_stays() {
        let users = [
            user("ada", Some("admin"), None),
            user("old", Some("admin"), Some(Time(1))),
            user("kim", Some("operator"), None),
        ];
        assert!(!leaves_an_admin(&users, "ada"));
        assert!(leaves_an_admin(&users, "kim"));
    }
}
