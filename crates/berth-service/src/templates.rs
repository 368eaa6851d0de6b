//! Job files that a team keeps by name.

use crate::caller::Caller;
use crate::checks;
use crate::fault::Fault;
use crate::identity::{remove, shows, write};
use crate::names::{self, OfTeam};
use crate::service::Service;
use berth_api::access::Permission;
use berth_api::{Code, Problem, wire};
use berth_engine::clock;
use berth_model::CodeId;
use berth_store::TemplateRow;
use serde_json::json;

impl OfTeam for TemplateRow {
    const WHAT: &'static str = "template";
    fn team(&self) -> &str {
        &self.team
    }
    fn name(&self) -> &str {
        &self.name
    }
}

fn shown(row: TemplateRow) -> wire::Template {
    wire::Template {
        name: row.name,
        team: row.team,
        by: row.by,
        created: row.created.into(),
        file: row.file,
    }
}

async fn visible(service: &Service, caller: &Caller) -> Result<Vec<TemplateRow>, Fault> {
    let teams = caller.reads(Permission::TemplatesRead);
    let mut rows = service.store.every::<TemplateRow>().await?;
    rows.retain(|row| shows(&teams, &row.team));
    Ok(rows)
}

pub async fn list(
    service: &Service,
    caller: &Caller,
) -> Result<wire::Items<wire::Template>, Fault> {
    let rows = visible(service, caller).await?;
    Ok(wire::Items { items: rows.into_iter().map(shown).collect() })
}

/// The one that is meant, if one may see it.
pub async fn named(service: &Service, caller: &Caller, wanted: &str) -> Result<TemplateRow, Fault> {
    names::pick(caller.default_team(), visible(service, caller).await?, wanted)
}

pub async fn get(
    service: &Service,
    caller: &Caller,
    wanted: &str,
) -> Result<wire::Template, Fault> {
    named(service, caller, wanted).await.map(shown)
}

/// Who made a template keeps it: a researcher changes the own ones, a lead all of the team's.
pub async fn set(
    service: &Service,
    caller: &Caller,
    name: &str,
    wish: wire::TemplateSet,
) -> Result<wire::Template, Fault> {
    names::check("template", name)?;
    let Some(of) = wish.team.or_else(|| caller.default_team()) else {
        let fault =
            Fault::new(Code::BadRequest, "the template names no team, and you are not in a team");
        return Err(fault.next("name the team in `team`"));
    };
    checks::team(&service.store, &of).await?;
    let before = service.store.get::<TemplateRow>((&of, name)).await?;
    let by = before.as_ref().map_or(caller.user(), |before| before.by.as_str());
    caller.must(Permission::TemplatesManage, Some(&of), Some(by))?;
    let parsed = berth_file::job::read(&wish.file).map_err(|m| Problem::of_mistakes(&m))?;
    must_name_a_snapshot(parsed.file.code.as_deref())?;
    let row = TemplateRow {
        by: by.to_owned(),
        created: before.as_ref().map_or_else(clock::now, |before| before.created),
        team: of,
        name: name.to_owned(),
        file: wish.file,
    };
    let audit = caller.audit(target(&row), json!({}));
    let key = (row.team.clone(), row.name.clone());
    write(
        service,
        audit,
        |batch| batch.put(&row),
        async move |store| {
            checks::team(&store, &key.0).await?;
            // Another may have made it meanwhile, and then it is theirs.
            checks::same::<TemplateRow>(&store, (&key.0, &key.1), before.as_ref()).await
        },
    )
    .await?;
    Ok(shown(row))
}

/// The server sees no folder of a user's machine, so a template with one could not be run.
fn must_name_a_snapshot(code: Option<&str>) -> Result<(), Fault> {
    match code {
        Some(code) if code.parse::<CodeId>().is_err() => {
            let detail = format!("`code`: the server cannot see the folder `{code}`");
            let next = "save the template with `berth template set NAME -f FILE`, which sends the \
                        folder, or name a snapshot, as sha256:DIGEST";
            Err(Fault::new(Code::BadRequest, detail).next(next))
        }
        _ => Ok(()),
    }
}

pub async fn delete(service: &Service, caller: &Caller, wanted: &str) -> Result<(), Fault> {
    let row = named(service, caller, wanted).await?;
    caller.must(Permission::TemplatesManage, Some(&row.team), Some(&row.by))?;
    let audit = caller.audit(target(&row), json!({}));
    remove(service, audit, |batch| batch.delete::<TemplateRow>((&row.team, &row.name))).await?;
    Ok(())
}

fn target(row: &TemplateRow) -> String {
    format!("template {} of {}", row.name, row.team)
}
