//! Writes the usage of a job as metrics of its run. Adds a point when a value changes.

use super::facts::Facts;
use berth_api::wire;
use berth_service::{Fault, Service, figures};
use berth_tracker::{Metric, Point, Result, Run, RunChange, RunHead, Store, value};

const MS_PER_HOUR: f64 = 3_600_000.0;
/// Millijoules in a kilowatt-hour.
const MJ_PER_KWH: f64 = 3_600_000_000.0;
const UTILIZATION: &str = "utilization";

/// The points to write, by key.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Used {
    pub cost: f64,
    pub gpu_hours: f64,
    pub energy_kwh: Option<f64>,
    /// The mean utilization of the GPUs, from 0 to 1.
    pub gpu_use: Option<f64>,
}

/// The same figures as in `berth describe`, `berth cost` and `berth metrics`. Those of GPUs come from
/// the database, so only ended jobs have them.
#[expect(clippy::cast_precision_loss, reason = "metrics are floats")]
pub async fn used(service: &Service, facts: &Facts) -> std::result::Result<Used, Fault> {
    let Some(job) = facts.job else { return Ok(Used::default()) };
    let energy = service.store.energy_of(job).await?;
    let gpu_use = match facts.end.is_some() && facts.gpu_ms > 0 {
        true => gpu_use(service, job).await,
        false => None,
    };
    Ok(Used {
        cost: facts.cost_micros as f64 / 1e6,
        gpu_hours: facts.gpu_ms as f64 / MS_PER_HOUR,
        energy_kwh: energy.map(|mj| mj as f64 / MJ_PER_KWH),
        gpu_use,
    })
}

/// The mean, weighted by how long the job held each GPU.
#[expect(clippy::cast_precision_loss, reason = "metrics are floats")]
async fn gpu_use(service: &Service, job: berth_model::JobId) -> Option<f64> {
    let query = wire::FigureQuery { figure: Some(UTILIZATION.to_owned()), ..Default::default() };
    let found = figures::job(service, job, &query).await.ok()?;
    let (mut sum, mut weight) = (0.0, 0.0);
    for task in &found.tasks {
        let to = task.to.unwrap_or(found.to);
        let held = (to.0 - task.from.0).0.max(1) as f64;
        for line in task.gpus.iter().flat_map(|gpu| &gpu.figures) {
            if let Some(mean) = line.mean.filter(|_| line.figure == UTILIZATION) {
                sum += held * mean as f64 / 1_000.0;
                weight += held;
            }
        }
    }
    (weight > 0.0).then(|| sum / weight)
}

/// Writes the changed values.
pub async fn write(
    store: &dyn Store,
    head: &RunHead,
    run: &Run,
    used: &Used,
    now: i64,
) -> Result<()> {
    let all = [
        ("berth.cost", Some(used.cost)),
        ("berth.gpu_hours", Some(used.gpu_hours)),
        ("berth.energy_kwh", used.energy_kwh),
        ("berth.gpu_use", used.gpu_use),
    ];
    let latest = |key: &str| {
        let found = run.metrics.iter().find(|latest| &*latest.key == key);
        found.map(|latest| latest.point)
    };
    let newer = |(key, number): (&str, Option<f64>)| {
        let (value, before) = (value::encode(number?), latest(key));
        let is_new = before.is_none_or(|point| point.value != value);
        // After the time of the previous point, so that this is the newest.
        let timestamp = before.map_or(now, |point| now.max(point.timestamp.saturating_add(1)));
        let point = Point { step: 0, timestamp, value };
        is_new.then(|| Metric { key: key.to_owned(), point, model: None })
    };
    let metrics: Vec<Metric> = all.into_iter().filter_map(newer).collect();
    if metrics.is_empty() {
        return Ok(());
    }
    let (run, params, tags) = (head.clone(), Vec::new(), Vec::new());
    store.write(RunChange::Log { run, metrics, params, tags }).await
}
