//! The lineage of a model, a run, a job or a version of data, upstream and downstream.
//!
//! The walk reads the tracking store, jobs and versions of data, up to a limit. If the caller may not
//! see a node, the answer contains only its kind.

mod above;
mod below;
mod graph;
mod known;
mod live;
mod node;
mod read;
mod start;
mod thing;
mod tracked;
mod versions;
mod walk;

#[cfg(test)]
mod tests;

pub(crate) use known::{Job, Known};
pub(crate) use live::{Live, job_number};
pub(crate) use tracked::{run, sees, tag};

use crate::runs::run_id;
use berth_api::wire::{Lineage, LineageQuery, LineageWay};
use berth_api::{Code, wire};
use berth_model::{DataVersion, JobId};
use berth_service::{Caller, Fault, Service};
use berth_tracker::Store;
use start::{Pick, Start};
use std::sync::Arc;
use thing::Thing;
use walk::{Body, Loaded, Walk};

/// The maximum number of nodes in one answer.
const MOST_NODES: u32 = 2_000;
/// The maximum number of model versions of one team to scan.
const MOST_VERSIONS: u64 = 50_000;

/// The lineage of one node.
pub async fn lineage(
    service: &Service,
    store: &dyn Store,
    caller: &Caller,
    mut query: wire::LineageQuery,
) -> Result<Lineage, Fault> {
    let known = Live { service, caller };
    if let Some(job) = query.of.strip_prefix("job:") {
        query.of = format!("job:{}", job_number(service, caller, job).await?);
    }
    of(store, &known, caller.default_team(), query).await
}

async fn of(
    store: &dyn Store,
    known: &impl Known,
    default_team: Option<String>,
    query: LineageQuery,
) -> Result<Lineage, Fault> {
    let limit = query.limit.unwrap_or(MOST_NODES).clamp(1, MOST_NODES) as usize;
    let start = Start::parse(&query.of)?;
    let starts = find(store, known, start, (query.team.clone(), default_team)).await?;
    let (first, team) = (&starts[0], team_of(store, known, &starts[0]).await?);
    let mut walk = Walk::new(store, known, query.team.as_deref().unwrap_or(&team), limit);
    let mut loaded: Vec<Arc<Loaded>> = Vec::new();
    for thing in &starts {
        loaded.extend(walk.load(thing).await?);
    }
    if matches!(loaded[0].body, Body::End) {
        return Err(absent(first));
    }
    if let [job, run] = &loaded[..] {
        walk.join_run(run, job);
    }
    if query.way != LineageWay::Down {
        walk.up(&loaded).await?;
    }
    if query.way != LineageWay::Up {
        walk.down(&loaded).await?;
    }
    let of = loaded[0].id.clone();
    Ok(walk.finish(&of))
}

/// The team whose ids need no team prefix.
async fn team_of(store: &dyn Store, known: &impl Known, thing: &Thing) -> Result<String, Fault> {
    Ok(match thing {
        Thing::Job { id, team } => {
            let job = known.job(*id).await?;
            job.filter(|job| job.visible).map_or_else(|| team.clone(), |job| job.row.team)
        }
        Thing::Run { id, team } => {
            let found = tracked::run(store, id).await?;
            found.map_or_else(|| team.clone(), |(_, experiment)| experiment.team.clone())
        }
        Thing::Logged { id, team } => {
            let found = tracked::logged(store, id).await?;
            let experiment = found.and_then(|model| store.experiment(model.experiment));
            experiment.map_or_else(|| team.clone(), |experiment| experiment.team.clone())
        }
        Thing::Model { team, .. }
        | Thing::Data { team, .. }
        | Thing::Dataset { team, .. }
        | Thing::Code { team, .. }
        | Thing::Image { team, .. } => team.clone(),
    })
}

/// Resolves the start of a lineage. A job includes its run.
async fn find(
    store: &dyn Store,
    known: &impl Known,
    start: Start,
    (asked, default): (Option<String>, Option<String>),
) -> Result<Vec<Thing>, Fault> {
    let fallback = asked.or(default);
    let loose = fallback.clone().unwrap_or_default();
    let needed = |named: Option<String>| {
        named.or(fallback.clone()).ok_or_else(|| {
            Fault::new(Code::BadRequest, "the request names no team, and you are not in a team")
                .next("name the team in `team`")
        })
    };
    Ok(match start {
        Start::Run(id) => vec![Thing::Run { id, team: loose }],
        Start::Logged(id) => vec![Thing::Logged { id, team: loose }],
        Start::Job(id) => with_run(store, known, id, loose).await?,
        Start::Model { team, name, version } => {
            let team = needed(team)?;
            let version = picked(store, known, (&team, &name), version).await?;
            vec![Thing::Model { team, name, version }]
        }
        Start::Data { team, version: DataVersion { name, version } } => {
            let team = needed(team)?;
            let version = match version {
                Some(version) => version,
                None if known.reads_data(&team) => {
                    let all = known.versions(&team, Some(&name)).await?;
                    let newest = all.iter().map(|row| row.version).max();
                    newest.ok_or_else(|| no_data(&team, &name))?
                }
                None => return Err(no_data(&team, &name)),
            };
            vec![Thing::Data { team, name, version, hash: None }]
        }
    })
}

async fn with_run(
    store: &dyn Store,
    known: &impl Known,
    id: JobId,
    team: String,
) -> Result<Vec<Thing>, Fault> {
    let job = known.job(id).await?.filter(|job| job.visible);
    let job = job.ok_or_else(|| Fault::no_job(&id.to_string()))?;
    known.must_read(&job.row.team, &job.row.user)?;
    let run = run_id(id, job.row.submitted);
    let mut things = vec![Thing::Job { id, team }];
    if let Some((_, experiment)) = tracked::run(store, &run).await?
        && sees(known, &experiment)
    {
        things.push(Thing::Run { id: run, team: experiment.team.clone() });
    }
    Ok(things)
}

/// The number of a version of a model.
async fn picked(
    store: &dyn Store,
    known: &impl Known,
    (team, name): (&str, &str),
    version: Pick,
) -> Result<u64, Fault> {
    let model = match known.reads(team) {
        true => tracked::registered(store, team, name).await?,
        false => None,
    };
    let model = model.ok_or_else(|| {
        Fault::new(Code::NotFound, format!("team {team} has no model `{name}`"))
            .next("`berth models list` lists models")
    })?;
    let next = format!("`berth models versions {name}` lists its versions");
    match version {
        Pick::Number(number) => Ok(number),
        Pick::Alias(alias) => model.aliases.get(&alias).copied().ok_or_else(|| {
            let detail = format!("the model `{name}` of team {team} has no alias `{alias}`");
            Fault::new(Code::NotFound, detail).next(next)
        }),
        Pick::Newest => model.newest.values().max().copied().ok_or_else(|| {
            Fault::new(Code::NotFound, format!("the model `{name}` of team {team} has no version"))
                .next(next)
        }),
    }
}

fn no_data(team: &str, name: &str) -> Fault {
    Fault::new(Code::NotFound, format!("team {team} has no data `{name}`"))
        .next("`berth data ls` lists data")
}

/// For hidden entities the error is "not found", like for missing ones.
fn absent(thing: &Thing) -> Fault {
    match thing {
        Thing::Model { team, name, version } => {
            Fault::new(Code::NotFound, format!("team {team} has no version {version} of `{name}`"))
                .next(format!("`berth models versions {name}` lists its versions"))
        }
        Thing::Logged { id, .. } => Fault::not_found("logged model", id),
        Thing::Run { id, .. } => Fault::not_found("run", id).next("`berth runs` lists runs"),
        Thing::Job { id, .. } => Fault::no_job(&id.to_string()),
        Thing::Data { team, name, version, .. } => no_data(team, &format!("{name}@v{version}")),
        Thing::Dataset { name, .. } | Thing::Code { name, .. } | Thing::Image { name, .. } => {
            Fault::not_found("start", name)
        }
    }
}
