//! Removes deleted experiments and runs for good after the retention, with the names of their artifacts. It
//! keeps runs that a version of a registered model names. What is tracked for a removed team goes without a
//! retention.

use crate::app::App;
use crate::tracking_orphans;
use berth_api::wire::RunsCleaned;
use berth_engine::clock;
use berth_model::Span;
use berth_service::{Fault, Service, artifacts, put_as_server, server_audit};
use berth_store::Batch;
use berth_tracker::{
    DocChange, DocKey, DocSet, Error, Experiment, Kind, Load, RegisteredModel, Store,
};
use berth_tracker_store::{Clean, Removal, TrackingStore};
use serde_json::json;
use std::time::Duration;
use tokio::task::JoinHandle;

/// The interval between two passes.
const LONGEST: Duration = Duration::from_secs(3_600);
const SHORTEST: Duration = Duration::from_secs(1);
/// The pause between two steps, so that logging requests need not wait.
const PAUSE: Duration = Duration::from_millis(20);
/// Removals to read at once.
const AT_ONCE: u32 = 100;
/// The maximum number of ids in one row of the audit log.
const MOST_NAMED: usize = 50;

/// Without `keep`, Berth never removes deleted runs.
pub fn begin(app: App, keep: Option<Span>) -> JoinHandle<()> {
    let pause = keep.map_or(LONGEST, |keep| {
        Duration::from_millis(keep.0.max(0).unsigned_abs() / 2).clamp(SHORTEST, LONGEST)
    });
    tokio::spawn(async move {
        loop {
            // First what an earlier process has not completed.
            removed_teams(&app, &[]).await;
            tokio::time::sleep(pause).await;
            if let Some(keep) = keep {
                let before = clock::now().0.saturating_sub(keep.0);
                pass(&app.service, &app.tracking.store, before).await;
            }
        }
    })
}

/// Removes what is tracked for teams that do not exist; a person has just removed those of `names`. The
/// next pass retries failures.
pub async fn removed_teams(app: &App, names: &[String]) {
    let remove = async {
        tracking_orphans::release(app, names).await?;
        for team in app.tracking.store.teams().await? {
            let _held = app.tracking.teams.lock().await;
            forget_team(app, &team).await?;
        }
        finish(&app.service, &app.tracking.store).await
    };
    if let Err(error) = remove.await {
        tracing::warn!(why = error.message, "records of removed teams stay on the disk for now");
    }
}

/// Hides what is tracked for a team that does not exist, and marks it for removal. The caller holds the
/// lock `teams`.
pub async fn forget_team(app: &App, team: &str) -> Result<(), Error> {
    if tracking_orphans::is_team(&app.service, team).await?
        || tracking_orphans::load(app).await?.contains(team)
    {
        return Ok(());
    }
    let store = &app.tracking.store;
    let (mut runs, mut experiments, mut models) = (0, 0, 0);
    loop {
        let step = store.clean(Clean::Team { team: team.to_owned() }).await?;
        let of_runs = step.begun.iter().filter(|of| of.is_run).count();
        runs += of_runs;
        experiments += step.begun.len() - of_runs;
        models += step.models;
        if step.next.is_none() {
            break;
        }
    }
    for of in
        store.experiments().into_iter().filter(|of| of.shared_with.iter().any(|it| it == team))
    {
        end_share(store, &of, team).await?;
    }
    end_model_shares(store, team).await?;
    if runs + experiments == 0 && models == 0 {
        return Ok(());
    }
    let mut audit = server_audit("berth", "remove_team_records", format!("team {team}"));
    let detail = json!({ "experiments": experiments, "runs": runs, "models": models });
    audit.detail = detail.to_string();
    let written = put_as_server(&app.service, Batch::default(), audit).await;
    written.map_err(|refused| Error::internal(Fault::from(refused).0.detail))
}

async fn end_share(store: &TrackingStore, of: &Experiment, team: &str) -> Result<(), Error> {
    let (kind, scope) = (Kind::Experiment, of.team.clone());
    let key = DocKey { kind, scope: scope.clone(), name: of.name.clone(), sub: of.no };
    let load = Load { kind, scope, name: Some(of.name.clone()), sub: Some(of.no) };
    let team = team.to_owned();
    let edit = move |docs: &mut DocSet| {
        if let Some(mut there) = docs.get::<Experiment>(&key)? {
            there.shared_with.retain(|with| *with != team);
            docs.put(key, &there);
        }
        Ok(Vec::new())
    };
    store.edit(DocChange { load: vec![load], edit: Box::new(edit) }).await.map(drop)
}

/// Models that other teams share with a removed team.
async fn end_model_shares(store: &TrackingStore, team: &str) -> Result<(), Error> {
    let (kind, scope) = (Kind::ModelShare, team.to_owned());
    for (entry, _) in store.docs(Load { kind, scope, name: None, sub: None }).await? {
        let Some((of, name)) = entry.name.split_once('/') else { continue };
        let (kind, scope, name) = (Kind::RegisteredModel, of.to_owned(), name.to_owned());
        let load = Load { kind, scope: scope.clone(), name: Some(name.clone()), sub: Some(0) };
        let (key, team) = (DocKey { kind, scope, name, sub: 0 }, team.to_owned());
        let edit = move |docs: &mut DocSet| {
            if let Some(mut there) = docs.get::<RegisteredModel>(&key)? {
                there.shared_with.retain(|with| *with != team);
                docs.put(key, &there);
            }
            docs.remove(&entry);
            Ok(Vec::new())
        };
        store.edit(DocChange { load: vec![load], edit: Box::new(edit) }).await?;
    }
    Ok(())
}

/// Removes everything that was deleted before a time. The next pass retries failures.
pub async fn pass(service: &Service, store: &TrackingStore, before: i64) {
    if let Err(error) = remove(service, store, before).await {
        tracing::warn!(why = error.message, "deleted runs stay on the disk for now");
    }
}

/// Counts what a removal would remove.
pub async fn count(store: &TrackingStore, before: i64) -> Result<RunsCleaned, Error> {
    let mut found = RunsCleaned::default();
    let mut after = 0;
    loop {
        let step = store.clean(Clean::Runs { before, after, dry: true }).await?;
        found.runs += step.begun.len() as u64;
        match step.next {
            Some(next) => after = next,
            None => break,
        }
    }
    found.experiments = old_experiments(store, before).len() as u64;
    Ok(found)
}

fn old_experiments(store: &TrackingStore, before: i64) -> Vec<i64> {
    let all = store.experiments().into_iter();
    all.filter(|of| of.deleted && of.updated < before).map(|of| of.no).collect()
}

async fn remove(service: &Service, store: &TrackingStore, before: i64) -> Result<(), Error> {
    // First complete the removals of an earlier process.
    finish(service, store).await?;
    let mut after = 0;
    loop {
        let step = store.clean(Clean::Runs { before, after, dry: false }).await?;
        note(service, "remove_runs", "runs", &step.begun).await?;
        finish(service, store).await?;
        match step.next {
            Some(next) => after = next,
            None => break,
        }
        tokio::time::sleep(PAUSE).await;
    }
    for no in old_experiments(store, before) {
        let step = store.clean(Clean::Experiment { no, before }).await?;
        note(service, "remove_experiment", "experiment", &step.begun).await?;
        finish(service, store).await?;
    }
    Ok(())
}

/// Removes the rows and artifacts of all removals in progress.
async fn finish(service: &Service, store: &TrackingStore) -> Result<(), Error> {
    loop {
        let under_way = store.removals(AT_ONCE).await?;
        for of in &under_way {
            while store.clean(Clean::Rows(of.clone())).await?.next.is_some() {
                tokio::time::sleep(PAUSE).await;
            }
            let removed = artifacts::remove_folder(service, &of.team, &of.path).await;
            removed.map_err(|fault| Error::internal(fault.0.detail.clone()))?;
            store.clean(Clean::End(of.clone())).await?;
        }
        if under_way.len() < AT_ONCE as usize {
            return Ok(());
        }
    }
}

async fn note(service: &Service, what: &str, target: &str, begun: &[Removal]) -> Result<(), Error> {
    if begun.is_empty() {
        return Ok(());
    }
    let named = begun.iter().take(MOST_NAMED).map(|of| format!("{}/{}", of.team, of.path));
    let named: Vec<String> = named.collect();
    let detail = json!({ "number": begun.len(), "of": named, "why": "deleted long enough ago" });
    let target = match begun {
        [one] => format!("{target} {}/{}", one.team, one.path),
        several => format!("{} {target}", several.len()),
    };
    let mut audit = server_audit("berth", what, target);
    audit.detail = detail.to_string();
    let written = put_as_server(service, Batch::default(), audit).await;
    written.map_err(|refused| Error::internal(Fault::from(refused).0.detail))
}
