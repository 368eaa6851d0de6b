//! Cost per result: by experiment or project, the cost until a metric reached a goal, and the cost of runs
//! that failed or did not improve the metric.

mod fold;

use berth_api::Code;
use berth_api::access::Permission;
use berth_api::wire::{BetterValues, Return, Returns, ReturnsBy, ReturnsQuery};
use berth_engine::clock;
use berth_model::run::Better;
use berth_service::{Caller, Fault};
use berth_tracker::{BestQuery, Experiment, ReachedQuery, Run, RunQuery, Store, View, value};
use fold::Facts;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

/// The tags and metrics of runs that carry cost and project.
const COST: &str = "berth.cost";
const GPU_HOURS: &str = "berth.gpu_hours";
const PROJECT: &str = "berth.project";

/// The maximum number of runs in one answer.
const MOST_RUNS: usize = 20_000;
/// The maximum number of experiments in one answer.
const MOST_EXPERIMENTS: usize = 1_000;
/// Runs to read at once.
const PAGE: usize = 250;
/// The time limit of one answer. It reads every point of the metric in all of these runs.
const LONGEST: Duration = Duration::from_secs(20);

/// The runs of one row, by their numbers, with their experiments.
type Group = Vec<(i64, i64, Facts)>;

pub async fn list(
    tracked: &dyn Store,
    caller: &Caller,
    query: ReturnsQuery,
) -> Result<Returns, Fault> {
    let team = team(caller, query.team.as_deref())?;
    if query.goal.is_some_and(|goal| !goal.is_finite()) {
        return Err(Fault::new(Code::BadRequest, "goal: expected a finite number"));
    }
    if query.goal.is_some() && query.metric.is_none() {
        let fault = Fault::new(Code::BadRequest, "goal: expected a metric, too");
        return Err(fault.next("add `metric`"));
    }
    let listed = tokio::time::timeout(LONGEST, of_team(tracked, team, query)).await;
    listed.unwrap_or_else(|_| {
        let seconds = LONGEST.as_secs();
        Err(too_many(&format!("reading the metric takes longer than {seconds} s")))
    })
}

async fn of_team(tracked: &dyn Store, team: String, query: ReturnsQuery) -> Result<Returns, Fault> {
    let experiments = experiments(tracked, &team, query.experiment.as_deref())?;
    let mut groups: BTreeMap<(String, Option<i64>), Group> = BTreeMap::new();
    let mut left = MOST_RUNS;
    for experiment in &experiments {
        let runs = runs(tracked, experiment.no, left).await?;
        left = left.saturating_sub(runs.len());
        for run in runs {
            let key = match query.by {
                ReturnsBy::Experiment => (experiment.name.clone(), Some(experiment.no)),
                ReturnsBy::Project => (tag(&run, PROJECT), None),
            };
            groups.entry(key).or_default().push((run.no, experiment.no, facts(&run)));
        }
    }
    let better = query.metric.as_deref().map(|metric| better(query.better, metric));
    let mut rows = Vec::new();
    for ((name, experiment), mut group) in groups {
        let asked = query.metric.as_deref().zip(better);
        let row = row(tracked, &mut group, asked, query.goal).await?;
        rows.push(Return { name, experiment: experiment.map(|no| no.to_string()), ..row });
    }
    rows.sort_by_key(|row| std::cmp::Reverse(row.spent_micros));
    let total_micros = fold::add(rows.iter().map(|row| row.spent_micros));
    let notes = notes(&rows);
    Ok(Returns { team, by: query.by, metric: query.metric, better, rows, total_micros, notes })
}

/// The team, if the caller may read both its runs and its cost.
fn team(caller: &Caller, wanted: Option<&str>) -> Result<String, Fault> {
    let team = wanted.map(ToOwned::to_owned).or_else(|| caller.default_team());
    let team = team.ok_or_else(|| {
        let fault =
            Fault::new(Code::BadRequest, "the request names no team, and you are not in a team");
        fault.next("name a team")
    })?;
    caller.must(Permission::CostRead, Some(&team), None)?;
    caller.must(Permission::LogsRead, Some(&team), None)?;
    caller.must_know(&team)?;
    Ok(team)
}

/// The active experiments of the team, or the one with this name or id.
fn experiments(
    tracked: &dyn Store,
    team: &str,
    wanted: Option<&str>,
) -> Result<Vec<Arc<Experiment>>, Fault> {
    let is_wanted = |one: &Arc<Experiment>| match wanted {
        None => true,
        Some(wanted) => one.name == wanted || one.no.to_string() == wanted,
    };
    let all = tracked.experiments().into_iter();
    let mut found: Vec<Arc<Experiment>> =
        all.filter(|one| one.team == team && !one.deleted && is_wanted(one)).collect();
    match wanted {
        Some(wanted) if found.is_empty() => {
            let fault =
                Fault::new(Code::NotFound, format!("team {team} has no experiment `{wanted}`"));
            Err(fault.next("`berth experiments list` lists experiments"))
        }
        _ if found.len() > MOST_EXPERIMENTS => Err(too_many(&format!(
            "team {team} has {} experiments, and one answer has at most {MOST_EXPERIMENTS}",
            found.len()
        ))),
        _ => {
            found.sort_by_key(|one| one.no);
            Ok(found)
        }
    }
}

fn too_many(detail: &str) -> Fault {
    Fault::new(Code::BadRequest, detail).next("name one experiment")
}

fn hidden(error: &berth_tracker::Error) -> Fault {
    if error.code == berth_tracker::Code::LimitExceeded {
        return too_many(&error.message);
    }
    tracing::error!(%error, "the results of runs cannot be read");
    Fault::new(Code::StoreDown, "the tracking store is unavailable")
}

/// All active runs of an experiment.
async fn runs(tracked: &dyn Store, experiment: i64, most: usize) -> Result<Vec<Run>, Fault> {
    let (mut found, mut seen) = (Vec::new(), 0);
    loop {
        let query = RunQuery {
            experiments: vec![experiment],
            view: View::Active,
            clauses: Vec::new(),
            orders: Vec::new(),
            offset: seen as u64,
            limit: PAGE,
        };
        let numbers = tracked.search(&query).await.map_err(|error| hidden(&error))?;
        seen += numbers.len();
        if seen > most {
            return Err(too_many(&format!("that is more than {MOST_RUNS} runs")));
        }
        let runs = tracked.runs(&numbers).await.map_err(|error| hidden(&error))?;
        found.extend(runs.into_iter().map(slim));
        if numbers.len() < PAGE {
            return Ok(found);
        }
    }
}

/// Drop the unused fields, because thousands of runs are in memory.
fn slim(mut run: Run) -> Run {
    run.metrics.retain(|latest| [COST, GPU_HOURS].contains(&&*latest.key));
    run.tags.retain(|(key, _)| key == PROJECT);
    run.params = Vec::new();
    run.datasets = Vec::new();
    run.models = Vec::new();
    run
}

fn tag(run: &Run, key: &str) -> String {
    let found = run.tags.iter().find(|(name, _)| name == key);
    found.map(|(_, value)| value.clone()).unwrap_or_default()
}

fn facts(run: &Run) -> Facts {
    let metric = |key: &str| {
        let found = run.metrics.iter().find(|latest| &*latest.key == key)?;
        Some(value::decode(found.point.value)).filter(|value| value.is_finite())
    };
    Facts {
        id: run.id.clone(),
        start: run.start.unwrap_or(0),
        end: run.end,
        failed: matches!(run.status.as_str(), "FAILED" | "KILLED"),
        micros: metric(COST).map(|cost| (cost * 1e6).round() as i64),
        gpu_hours: metric(GPU_HOURS).unwrap_or(0.0),
        best: None,
        reached: None,
    }
}

fn better(said: Option<BetterValues>, metric: &str) -> BetterValues {
    said.unwrap_or(match Better::of_name(metric) {
        Some(Better::Lower) => BetterValues::Lower,
        Some(Better::Higher) | None => BetterValues::Higher,
    })
}

/// Computes one row from the best values of its runs and the times at which they reached the goal.
async fn row(
    tracked: &dyn Store,
    group: &mut Group,
    asked: Option<(&str, BetterValues)>,
    goal: Option<f64>,
) -> Result<Return, Fault> {
    let now = clock::now().0;
    group.sort_by_key(|(no, _, facts)| (facts.start, *no));
    let Some((key, better)) = asked else {
        return Ok(fold::row(&facts_of(group), BetterValues::Higher, None, now));
    };
    let higher = better == BetterValues::Higher;
    let mut of: BTreeMap<i64, Vec<i64>> = BTreeMap::new();
    for (no, experiment, _) in group.iter() {
        of.entry(*experiment).or_default().push(*no);
    }
    let mut bests = BTreeMap::new();
    for (experiment, runs) in &of {
        let query = BestQuery { experiment: *experiment, key, runs, higher };
        let found = tracked.bests(query).await.map_err(|error| hidden(&error))?;
        bests.extend(found.into_iter().map(|best| (best.run, best.value)));
    }
    for (no, _, facts) in group.iter_mut() {
        facts.best = bests.get(no).copied();
    }
    let best = fold::best(&facts_of(group), better).map(|(best, _)| best);
    let Some(goal) = goal.map(value::encode).or(best) else {
        return Ok(fold::row(&facts_of(group), better, None, now));
    };
    let mut reached = BTreeMap::new();
    for (experiment, runs) in &of {
        let of = BestQuery { experiment: *experiment, key, runs, higher };
        let found = tracked.reached(ReachedQuery { of, goal }).await;
        reached.extend(found.map_err(|error| hidden(&error))?);
    }
    for (no, _, facts) in group.iter_mut() {
        facts.reached = reached.get(no).copied();
    }
    Ok(fold::row(&facts_of(group), better, Some(goal), now))
}

fn facts_of(group: &Group) -> Vec<Facts> {
    group.iter().map(|(_, _, facts)| facts.clone()).collect()
}

fn notes(rows: &[Return]) -> Vec<String> {
    let bare: u64 = rows.iter().map(|row| row.without_cost).sum();
    let note = match bare {
        0 => return Vec::new(),
        1 => "1 run has no cost, because it was not logged by a job of Berth".to_owned(),
        bare => format!("{bare} runs have no cost, because no job of Berth logged them"),
    };
    vec![note]
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_tracker::{
        DocChange, DocKey, DocSet, Kind, Metric, NewRun, Point, RunChange, Status,
    };
    use berth_tracker_store::{Options, TrackingStore};

    async fn experiment(store: &TrackingStore) -> i64 {
        let edit = |docs: &mut DocSet| {
            let no = docs.next_experiment;
            docs.next_experiment += 1;
            let (scope, name) = ("vision".to_owned(), "study".to_owned());
            let key = DocKey { kind: Kind::Experiment, scope, name, sub: no };
            let made = Experiment {
                no,
                team: "vision".into(),
                name: "study".into(),
                deleted: false,
                created: 1,
                updated: 1,
                by: "ada".into(),
                tags: BTreeMap::new(),
                shared_with: Vec::new(),
            };
            docs.put(key, &made);
            Ok(no.to_string().into_bytes())
        };
        let made = store.edit(DocChange { load: Vec::new(), edit: Box::new(edit) }).await.unwrap();
        String::from_utf8(made).unwrap().parse().unwrap()
    }

    /// A run of a hundred seconds, with one value per second.
    async fn run(store: &TrackingStore, experiment: i64, id: &str, start: i64, values: &[f64]) {
        let new = NewRun {
            id: id.to_owned(),
            experiment,
            name: id.to_owned(),
            user: "ada".into(),
            by: "ada".into(),
            start,
            tags: vec![(PROJECT.to_owned(), "llama".to_owned())],
        };
        store.write(RunChange::Create(new)).await.unwrap();
        let run = store.run_head(id).await.unwrap().unwrap();
        let point = |(step, kept): (i64, &f64)| Point {
            step,
            timestamp: start + step * 1_000,
            value: value::encode(*kept),
        };
        let metric = |key: &str, point: Point| Metric { key: key.to_owned(), point, model: None };
        let mut metrics: Vec<Metric> =
            (1..).zip(values).map(|value| metric("acc", point(value))).collect();
        metrics.push(metric(COST, point((0, &4.0))));
        metrics.push(metric(GPU_HOURS, point((0, &2.0))));
        let (params, tags) = (Vec::new(), Vec::new());
        store.write(RunChange::Log { run: run.clone(), metrics, params, tags }).await.unwrap();
        let (status, end) = (Some(Status::Finished), Some(start + 100_000));
        store.write(RunChange::Update { run, status, end, name: None }).await.unwrap();
    }

    #[tokio::test]
    async fn the_best_of_all_steps_counts_and_not_the_newest_value() {
        let folder = tempfile::TempDir::new().unwrap();
        let file = folder.path().join("tracking.db");
        let url = format!("sqlite://{}", file.display());
        let options = Options::default();
        let store = TrackingStore::open(&url, "a test", Some(&file), &options).await.unwrap();
        let no = experiment(&store).await;
        run(&store, no, "first", 0, &[0.5, 0.8, 0.7]).await;
        run(&store, no, "second", 200_000, &[0.6, f64::NAN, 0.92, 0.3]).await;
        let mut group: Group = runs(&store, no, 10)
            .await
            .unwrap()
            .iter()
            .map(|run| (run.no, run.experiment, facts(run)))
            .collect();
        assert!(runs(&store, no, 1).await.is_err(), "that is more than one run");
        let asked = Some(("acc", BetterValues::Higher));
        let found = row(&store, &mut group, asked, Some(0.75)).await.unwrap();
        assert_eq!((found.best, found.best_run.as_deref()), (Some(0.92), Some("second")));
        assert_eq!((found.reached, found.per_result_micros), (2, Some(4_000_000)));
        // The first run reached the goal after two of its hundred seconds.
        assert_eq!(found.until_goal_micros, Some(80_000));
        let found = row(&store, &mut group, asked, None).await.unwrap();
        assert_eq!((found.goal, found.reached), (Some(0.92), 1));
        assert_eq!(found.until_goal_micros, Some(4_120_000));
        store.close().await;
    }
}
