//! Teams. Each has the queue of its own name.

use crate::caller::Caller;
use crate::fault::Fault;
use crate::service::Service;
use crate::{checks, live, names, volume_disk};
use berth_api::access::Permission;
use berth_api::{Code, wire};
use berth_engine::clock;
use berth_engine::{Act, Write};
use berth_model::{Event, Name, QueueSpec};
use berth_store::{Batch, ScheduleRow, Store, TeamRow, TemplateRow};
use serde_json::json;

pub async fn list(service: &Service) -> Result<wire::Items<wire::Team>, Fault> {
    let rows = service.store.every::<TeamRow>().await?;
    let queues = live::queues(service);
    let items = rows.into_iter().map(|row| {
        let queue = queues.iter().find(|queue| *queue.spec.name == *row.queue);
        let parent = queue.and_then(|queue| queue.spec.parent.as_ref());
        wire::Team { parent: parent.map(ToString::to_string), name: row.name }
    });
    Ok(wire::Items { items: items.collect() })
}

/// Refuses a caller who may not add teams, and a team that cannot be added.
pub fn check_new(service: &Service, caller: &Caller, wish: &wire::Team) -> Result<(), Fault> {
    caller.must(Permission::TeamsManage, None, None)?;
    names::check("team", &wish.name)?;
    must_have_parent(wish, &queues_of(service))
}

fn queues_of(service: &Service) -> Vec<QueueSpec> {
    live::queues(service).into_iter().map(|queue| queue.spec).collect()
}

fn must_have_parent(wish: &wire::Team, queues: &[QueueSpec]) -> Result<(), Fault> {
    if let Some(parent) = &wish.parent
        && !queues.iter().any(|queue| *queue.name == **parent)
    {
        let known = queues.iter().map(|queue| queue.name.as_str());
        return Err(names::unknown("team", parent, known));
    }
    Ok(())
}

pub async fn create(
    service: &Service,
    caller: &Caller,
    wish: wire::Team,
) -> Result<wire::Team, Fault> {
    check_new(service, caller, &wish)?;
    let queues = queues_of(service);
    let mut documents = Batch::default();
    documents.put(&row(&wish.name));
    let events = queue_of(&wish, &queues).map(|queue| Event::QueueSet { queue: Box::new(queue) });
    let act = Act::Events(events.into_iter().collect());
    let target = format!("team {}", wish.name);
    let audit = caller.audit(&target, json!({ "parent": wish.parent }));
    let (write, name) = (Write { documents, ..Write::act(act, audit) }, wish.name.clone());
    let name = name.to_owned();
    let check = async move |store: Store| {
        checks::all(checks::free::<TeamRow>(&store, &name, &target)).await
    };
    service.engine.write(write.only_if(check)).await?;
    Ok(wish)
}

/// What is kept of a new team.
pub fn row(name: &str) -> TeamRow {
    TeamRow {
        name: name.to_owned(),
        queue: name.to_owned(),
        created: clock::now(),
        detail: "{}".to_owned(),
    }
}

/// The queue as the team wants it, where that is not as it is: an operator may have made it
/// before there was a team.
fn queue_of(team: &wire::Team, queues: &[QueueSpec]) -> Option<QueueSpec> {
    let known = queues.iter().find(|queue| *queue.name == *team.name);
    let mut queue = known.cloned().unwrap_or_else(|| QueueSpec::new(&team.name));
    if let Some(parent) = &team.parent {
        queue.parent = Some(Name::new(parent));
    }
    (known != Some(&queue)).then_some(queue)
}

pub async fn delete(service: &Service, caller: &Caller, name: &str) -> Result<(), Fault> {
    let mut documents = Batch::default();
    let events = removal(service, name, &[], &mut documents).await?;
    let audit = caller.audit(format!("team {name}"), json!({}));
    let write = Write { documents, ..Write::act(Act::Events(events), audit) };
    let name = name.to_owned();
    let check = async move |store: Store| {
        checks::all(async { checks::team(&store, &name).await.map(drop) }).await
    };
    service.engine.write(write.only_if(check)).await?;
    Ok(())
}

/// Plans the removal of a team with everything that belongs to it. A team with jobs, volumes or data is
/// refused, and so is one with teams below it other than those in `leaving`.
pub async fn removal(
    service: &Service,
    name: &str,
    leaving: &[String],
    documents: &mut Batch,
) -> Result<Vec<Event>, Fault> {
    let row = checks::team(&service.store, name).await?;
    let queues = live::queues(service);
    let jobs = live::jobs_of(service, &row.queue);
    let below: Vec<&str> = queues
        .iter()
        .filter(|queue| queue.spec.parent.as_deref() == Some(row.queue.as_str()))
        .map(|queue| queue.spec.name.as_str())
        .filter(|below| !leaving.iter().any(|other| other == below))
        .collect();
    if jobs > 0 || !below.is_empty() {
        return Err(in_use(name, jobs, &below));
    }
    // Whoever makes a team of that name later must not find them.
    if service.host.volumes().is_some() {
        let kept = volume_disk::names_of(service, name).await?;
        if !kept.is_empty() {
            return Err(has_volumes(name, &kept));
        }
    }
    let mut data: Vec<String> =
        service.store.data_versions(name, None).await?.into_iter().map(|row| row.name).collect();
    data.sort();
    data.dedup();
    if !data.is_empty() {
        return Err(has_data(name, &data));
    }
    documents.delete::<TeamRow>(name);
    for template in service.store.templates_of(name).await? {
        documents.delete::<TemplateRow>((name, &template.name));
    }
    for schedule in
        service.store.every::<ScheduleRow>().await?.iter().filter(|one| one.team == name)
    {
        documents.delete::<ScheduleRow>(&schedule.id);
    }
    let there = queues.iter().any(|queue| *queue.spec.name == *row.queue);
    let queue = Name::new(&row.queue);
    Ok(there.then_some(Event::QueueRemoved { queue }).into_iter().collect())
}

fn in_use(name: &str, jobs: usize, below: &[&str]) -> Fault {
    let (detail, next) = match below {
        [] => {
            let detail = format!("team `{name}` has jobs that wait or run: {jobs}");
            (detail, format!("end them first: `berth ps --team {name}` lists them"))
        }
        below => {
            let detail = format!("team `{name}` has teams below it: {}", below.join(", "));
            (detail, "remove those first, or put them elsewhere".to_owned())
        }
    };
    Fault::new(Code::InUse, detail).next(next)
}

/// The removal of a team includes its secrets, which a user can set again, but not volumes and data.
fn has_volumes(name: &str, kept: &[String]) -> Fault {
    let detail = format!("team `{name}` has volumes: {}", some_of(kept));
    let next = format!("delete them first: `berth volume delete NAME --team {name}`");
    Fault::new(Code::InUse, detail).next(next)
}

fn has_data(name: &str, kept: &[String]) -> Fault {
    let detail = format!("team `{name}` has data: {}", some_of(kept));
    let next = format!("remove each version first: `berth data rm NAME@vN --team {name}`");
    Fault::new(Code::InUse, detail).next(next)
}

fn some_of(kept: &[String]) -> String {
    let some = kept.iter().take(5).map(String::as_str).collect::<Vec<_>>().join(", ");
    let more = if kept.len() > 5 { format!(" and {} more", kept.len() - 5) } else { String::new() };
    format!("{some}{more}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn team(name: &str, parent: Option<&str>) -> wire::Team {
        wire::Team { name: name.into(), parent: parent.map(Into::into) }
    }

    #[test]
    fn a_new_team_gets_a_queue_under_its_parent() {
        let queue = queue_of(&team("nlp", Some("lab")), &[QueueSpec::new("lab")]).unwrap();
        assert_eq!((&*queue.name, queue.parent.as_deref()), ("nlp", Some("lab")));
    }

    #[test]
    fn a_queue_that_is_there_keeps_what_was_set() {
        let mut there = QueueSpec::new("nlp");
        there.priority = 7;
        assert_eq!(queue_of(&team("nlp", None), &[there.clone()]), None);
        let moved = queue_of(&team("nlp", Some("lab")), &[there]).unwrap();
        assert_eq!((moved.priority, moved.parent.as_deref()), (7, Some("lab")));
    }
}
