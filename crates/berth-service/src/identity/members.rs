//! Who is what in a team.

use super::write;
use crate::caller::{Caller, role};
use crate::checks;
use crate::fault::Fault;
use crate::service::Service;
use berth_api::access::{Permission, Role};
use berth_api::{Code, wire};
use berth_engine::clock;
use berth_store::{Batch, MemberRow, Store};
use serde_json::json;

pub async fn list(
    service: &Service,
    caller: &Caller,
    name: &str,
) -> Result<wire::Items<wire::Member>, Fault> {
    checks::team(&service.store, name).await?;
    caller.must(Permission::MembersRead, Some(name), None)?;
    let rows = service.store.members_of(name).await?;
    let items = rows.into_iter().filter_map(|row| {
        Some(wire::Member { role: role(&row.role)?, team: row.team, user: row.user })
    });
    Ok(wire::Items { items: items.collect() })
}

pub async fn set(
    service: &Service,
    caller: &Caller,
    name: &str,
    user: &str,
    wish: wire::MemberSet,
) -> Result<wire::Member, Fault> {
    let before = managed(&service.store, caller, name, user).await?;
    must_grant(caller, name, wish.role)?;
    checks::user(&service.store, user).await?;
    let row = MemberRow {
        team: name.to_owned(),
        user: user.to_owned(),
        role: wish.role.word().to_owned(),
        created: before.as_ref().map_or_else(clock::now, |before| before.created),
    };
    let detail = json!({ "role": row.role, "before": before.map(|before| before.role) });
    let audit = caller.audit(format!("member {} of {}", row.user, row.team), detail);
    let (again, caller) = (row.clone(), caller.clone());
    write(
        service,
        audit,
        |batch| batch.put(&row),
        async move |store| {
            managed(&store, &caller, &again.team, &again.user).await?;
            checks::user(&store, &again.user).await.map(drop)
        },
    )
    .await?;
    Ok(wire::Member { team: row.team, user: row.user, role: wish.role })
}

pub async fn delete(
    service: &Service,
    caller: &Caller,
    name: &str,
    user: &str,
) -> Result<(), Fault> {
    let before = managed(&service.store, caller, name, user).await?;
    let Some(before) = before else { return Err(Fault::not_found("member", user)) };
    let detail = json!({ "before": before.role });
    let audit = caller.audit(format!("member {user} of {name}"), detail);
    let delete = |batch: &mut Batch| batch.delete::<MemberRow>((name, user));
    let (name, user, caller) = (name.to_owned(), user.to_owned(), caller.clone());
    write(service, audit, delete, async move |store| {
        managed(&store, &caller, &name, &user).await.map(drop)
    })
    .await?;
    Ok(())
}

/// The membership as it is, if the caller may change it.
async fn managed(
    store: &Store,
    caller: &Caller,
    name: &str,
    user: &str,
) -> Result<Option<MemberRow>, Fault> {
    checks::team(store, name).await?;
    caller.must(Permission::MembersManage, Some(name), None)?;
    let before = store.get::<MemberRow>((name, user)).await?;
    if let Some(held) = before.as_ref().and_then(|before| role(&before.role)) {
        must_grant(caller, name, held)?;
    }
    Ok(before)
}

fn must_grant(caller: &Caller, team: &str, role: Role) -> Result<(), Fault> {
    if caller.may_grant(Some(team), role) {
        return Ok(());
    }
    let word = role.word();
    let detail = format!("{} is less than {word} in team {team}", caller.user());
    let next = "you can give and take roles up to your own; ask an admin";
    Err(Fault::new(Code::Forbidden, detail).next(next))
}
