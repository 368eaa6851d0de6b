//! Secrets of teams. Values go in and are never given back; the audit log has names only.

use super::{remove, shows, write};
use crate::caller::Caller;
use crate::checks;
use crate::fault::Fault;
use crate::names;
use crate::service::Service;
use berth_api::access::Permission;
use berth_api::{Code, wire};
use berth_engine::clock;
use berth_store::SecretRow;
use serde_json::json;

/// What fits beside everything else into the environment of a process.
const LONGEST: usize = 64 << 10;

fn shown(row: SecretRow) -> wire::Secret {
    wire::Secret { team: row.team, name: row.name, created: row.created.into(), by: row.by }
}

pub async fn list(service: &Service, caller: &Caller) -> Result<wire::Items<wire::Secret>, Fault> {
    let teams = caller.reads(Permission::SecretsRead);
    let rows = service.store.every::<SecretRow>().await?.into_iter();
    let items = rows.filter(|row| shows(&teams, &row.team)).map(shown).collect();
    Ok(wire::Items { items })
}

pub async fn set(
    service: &Service,
    caller: &Caller,
    of: &str,
    name: &str,
    wish: wire::SecretSet,
) -> Result<wire::Secret, Fault> {
    checks::team(&service.store, of).await?;
    caller.must(Permission::SecretsManage, Some(of), None)?;
    names::check_secret(name)?;
    check(&wish.value)?;
    let row = SecretRow {
        sealed: service.vault.seal(of, name, &wish.value),
        team: of.to_owned(),
        name: name.to_owned(),
        created: clock::now(),
        by: caller.user().to_owned(),
    };
    let audit = caller.audit(target(&row.team, &row.name), json!({}));
    let team = row.team.clone();
    write(
        service,
        audit,
        |batch| batch.put(&row),
        async move |store| checks::team(&store, &team).await.map(drop),
    )
    .await?;
    Ok(shown(row))
}

/// Jobs get secrets in their environment, which cannot hold everything.
fn check(value: &str) -> Result<(), Fault> {
    let why = match value {
        value if value.len() > LONGEST => "the value is longer than 64 KiB",
        value if value.contains('\0') => "the value has a zero byte in it",
        _ => return Ok(()),
    };
    let next = "keep it in a file on a volume, and its path here";
    Err(Fault::new(Code::BadRequest, why).next(next))
}

pub async fn delete(service: &Service, caller: &Caller, of: &str, name: &str) -> Result<(), Fault> {
    checks::team(&service.store, of).await?;
    caller.must(Permission::SecretsManage, Some(of), None)?;
    if service.store.get::<SecretRow>((of, name)).await?.is_none() {
        return Err(Fault::not_found("secret", name));
    }
    let audit = caller.audit(target(of, name), json!({}));
    remove(service, audit, |batch| batch.delete::<SecretRow>((of, name))).await?;
    Ok(())
}

fn target(team: &str, name: &str) -> String {
    format!("secret {name} of {team}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_no_environment_can_hold_is_refused_without_being_shown() {
        assert!(check("hush").is_ok());
        for value in ["hush\0hush", &"hush".repeat(LONGEST)] {
            let fault = check(value).unwrap_err();
            assert!(!format!("{fault:?}").contains("hush"));
        }
    }
}
