//! Figures for Prometheus, computed on each scrape.

use super::answer::Failure;
use super::extract::timed_out_bodies;
use crate::app::App;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::response::IntoResponse;
use axum::routing::{MethodFilter, MethodRouter, on};
use berth_api::Code;
use berth_core::QueueReport;
use berth_engine::clock;
use berth_engine::shown_state;
use berth_engine::{LiveJob, Plans};
use berth_model::{Health, Milli, NodeSnapshot, Span};
use berth_service::{cluster, live, money};
use berth_store::{CostKey, CostQuery, JobFilter};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;
use std::collections::BTreeMap;
use std::sync::atomic::AtomicU64;

const MEDIA_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

pub(super) type Labels = Vec<(&'static str, String)>;
pub(super) type Figure = Gauge<f64, AtomicU64>;

pub(super) fn handler(id: &str, filter: MethodFilter) -> Option<MethodRouter<App>> {
    (id == "metrics").then(|| on(filter, metrics))
}

async fn metrics(State(app): State<App>) -> Result<impl IntoResponse, Failure> {
    let mut page = Page(Registry::default());
    page.server(&app);
    page.jobs(&app).await?;
    page.waits(&cluster::waits(&app.service, None).await?);
    page.gpus(&app).await;
    page.gpu_checks(&app);
    page.nodes(&app);
    page.newest_figures(&app);
    page.cluster(&app);
    page.audit(&app);
    page.sign_ins(&app).await?;
    page.costs(&app).await?;
    page.budgets(&app).await?;
    let mut text = String::new();
    let encoded = encode(&mut text, &page.0);
    encoded.map_err(|_| Failure::new(Code::Internal, "the figures could not be written"))?;
    Ok(([(CONTENT_TYPE, MEDIA_TYPE)], text))
}

/// One scrape.
pub(super) struct Page(Registry);

impl Page {
    /// One figure for each value of its labels.
    pub(super) fn family(&mut self, name: &str, help: &str) -> Family<Labels, Figure> {
        let family = Family::<Labels, Figure>::default();
        self.0.register(format!("berth_{name}"), help, family.clone());
        family
    }

    /// The same under a name that others have chosen.
    pub(super) fn foreign_family(&mut self, name: &str, help: &str) -> Family<Labels, Figure> {
        let family = Family::<Labels, Figure>::default();
        self.0.register(name, help, family.clone());
        family
    }

    pub(super) fn counts(&mut self, name: &str, help: &str) -> Family<Labels, Counter> {
        let family = Family::<Labels, Counter>::default();
        self.0.register(format!("berth_{name}"), help, family.clone());
        family
    }

    pub(super) fn figure(&mut self, name: &str, help: &str, value: f64) {
        let gauge = Figure::default();
        gauge.set(value);
        self.0.register(format!("berth_{name}"), help, gauge);
    }

    pub(super) fn count(&mut self, name: &str, help: &str, value: u64) {
        let counter: Counter = Counter::default();
        counter.inc_by(value);
        self.0.register(format!("berth_{name}"), help, counter);
    }

    fn server(&mut self, app: &App) {
        let info = self.family("build_info", "Which server this is; always 1");
        let version = vec![("version", env!("CARGO_PKG_VERSION").to_owned())];
        info.get_or_create(&version).set(1.0);
        let (plans, stalled) = {
            let core = app.service.engine.core();
            (core.plans, core.stalled.is_some())
        };
        self.figure("stalled", "1 while nothing can be written to the database", flag(stalled));
        let declared = flag(app.service.host.has_declared_gpus());
        self.figure("gpus_declared", "1 where GPUs are declared and not real", declared);
        let help = "How far the clock on the wall is ahead of the server's time";
        self.figure("clock_ahead_seconds", help, clock::ahead().0 as f64 / 1e3);
        self.machine(app);
        self.plans(plans);
        self.connections(app);
    }

    fn connections(&mut self, app: &App) {
        let now = app.connections.figures();
        self.figure("connections_open", "Connections that are open", now.open as f64);
        let refused = self.counts("connections_refused", "Connections that were not taken");
        for (why, count) in [
            ("all", now.refused_all),
            ("address", now.refused_address),
            ("descriptors", now.refused_descriptors),
        ] {
            refused.get_or_create(&vec![("limit", why.to_owned())]).inc_by(count);
        }
        let help = "Connections that were closed for others";
        self.count("connections_displaced", help, now.displaced);
        let timeouts = self.counts("connection_timeouts", "Connections that took too long");
        for (what, count) in [
            ("handshake", now.timeouts_handshake),
            ("head", now.timeouts_head),
            ("idle", now.timeouts_idle),
            ("answer", now.timeouts_stalled),
            ("body", timed_out_bodies()),
        ] {
            timeouts.get_or_create(&vec![("for", what.to_owned())]).inc_by(count);
        }
        let help = "Lists that were refused because too many were asked for at once";
        self.count("heavy_reads_refused", help, app.service.heavy_reads.refused());
    }

    fn machine(&mut self, app: &App) {
        let Some(machine) = &app.machine else { return };
        let troubled = flag(machine.condition.trouble().is_some());
        let help = "1 while this machine can start nothing";
        self.figure("machine_troubled", help, troubled);
        let help = "What the output of ended jobs takes on the disk";
        let output = self.family("output_bytes", help);
        for (team, bytes) in machine.condition.output() {
            output.get_or_create(&vec![("team", team.to_string())]).set(bytes.0 as f64);
        }
        let count = self.family("volumes", "Named volumes of a team");
        let help = "What a named volume takes on the disk, as far as it was counted";
        let sizes = self.family("volume_bytes", help);
        for ((team, volume), bytes) in machine.condition.volumes() {
            let team = ("team", team);
            count.get_or_create(&vec![team.clone()]).inc_by(1.0);
            sizes.get_or_create(&vec![team, ("volume", volume)]).set(bytes.0 as f64);
        }
    }

    fn plans(&mut self, plans: Plans) {
        let seconds = |us: u64| us as f64 / 1e6;
        self.count("plans", "Plans made since the start", plans.count);
        let help = "Decisions that failed the check and were put aside";
        self.count("decisions_put_aside", help, plans.put_aside);
        let help = "Time spent planning since the start";
        self.figure("plan_seconds_sum", help, seconds(plans.sum_us));
        self.figure("plan_last_seconds", "Time of the last plan", seconds(plans.last_us));
    }

    async fn jobs(&mut self, app: &App) -> Result<(), Failure> {
        let (live, rates, reports) = {
            let mut core = app.service.engine.core();
            (by_state(core.jobs.values()), rates(core.jobs.values()), core.state.queue_reports())
        };
        let family = self.family("jobs", "Jobs that have not ended");
        for ((state, team), count) in live {
            let labels = vec![("state", state.to_owned()), ("team", team)];
            family.get_or_create(&labels).set(count as f64);
        }
        let ended = self.family("jobs_ended", "Ended jobs that are remembered");
        for (state, count) in app.service.store.count_jobs(&JobFilter::default()).await? {
            if state.is_final() {
                let labels = vec![("state", state.as_str().to_owned())];
                ended.get_or_create(&labels).set(count as f64);
            }
        }
        let rate = self.family("cost_rate_dollars_per_hour", "What running jobs cost an hour");
        for (team, micros) in rates {
            rate.get_or_create(&vec![("team", team)]).set(micros as f64 / 1e6);
        }
        self.queues(&reports);
        Ok(())
    }

    fn queues(&mut self, reports: &[QueueReport]) {
        type Read = fn(&QueueReport) -> f64;
        let figures: [(&str, &str, Read); 6] = [
            ("queue_waiting_jobs", "Jobs that wait", |one| f64::from(one.waiting)),
            ("queue_running_jobs", "Jobs that run", |one| f64::from(one.running)),
            ("queue_quota_gpus", "GPUs that are promised", |one| gpus(one.quota)),
            ("queue_fair_share_gpus", "GPUs it is entitled to now", |one| gpus(one.fair_share)),
            ("queue_used_gpus", "GPUs in use", |one| gpus(one.used)),
            ("queue_demand_gpus", "GPUs in use and asked for", |one| gpus(one.demand)),
        ];
        for (name, help, read) in figures {
            let family = self.family(name, help);
            for report in reports {
                family.get_or_create(&vec![("queue", report.name.to_string())]).set(read(report));
            }
        }
    }

    fn waits(&mut self, waits: &BTreeMap<String, Vec<Span>>) {
        let help = "Waits of those that started in the last day";
        let family = self.family("wait_seconds", help);
        for (queue, waits) in waits {
            for (percent, quantile) in [(50, "0.5"), (90, "0.9"), (99, "0.99")] {
                let Some(wait) = cluster::percentile(waits, percent) else { continue };
                let labels = vec![("queue", queue.clone()), ("quantile", quantile.to_owned())];
                family.get_or_create(&labels).set(wait.0 as f64 / 1e3);
            }
        }
    }

    async fn gpus(&mut self, app: &App) {
        let (nodes, held) = {
            let core = app.service.engine.core();
            (core.state.node_snapshots(), held(core.jobs.values()))
        };
        let all = self.family("gpus", "GPUs by model");
        let in_use = self.family("gpus_held", "GPUs that jobs hold, in parts where they share");
        let free = self.family("gpus_free", "GPUs that nobody holds and that work");
        for (model, counts) in by_model(&nodes, &held) {
            let labels = vec![("model", model)];
            all.get_or_create(&labels).set(counts.all as f64);
            in_use.get_or_create(&labels).set(gpus(Milli(counts.held)));
            free.get_or_create(&labels).set(gpus(Milli(counts.free)));
        }
        let busy = self.family("gpu_utilization_ratio", "How busy a GPU is, where it says");
        for (index, reading) in cluster::gpus::readings(&app.service).await {
            if let Some(percent) = reading.utilization_percent {
                let Some(machine) = &app.machine else { continue };
                let node = machine.inventory.node.name.to_string();
                let labels = vec![("node", node), ("gpu", index.to_string())];
                busy.get_or_create(&labels).set(f64::from(percent) / 100.0);
            }
        }
    }

    async fn costs(&mut self, app: &App) -> Result<(), Failure> {
        let since = Some(money::month_start(clock::now()));
        let query = CostQuery { by: vec![CostKey::Team], since, ..CostQuery::default() };
        let help = "Spent since the first of the month; what nobody held has no team";
        let family = self.family("cost_dollars", help);
        for sum in app.service.store.costs(&query).await? {
            let team = sum.keys.into_iter().next().unwrap_or_default();
            family.get_or_create(&vec![("team", team)]).set(sum.amount.0 as f64 / 1e6);
        }
        Ok(())
    }
}

fn flag(on: bool) -> f64 {
    if on { 1.0 } else { 0.0 }
}

fn gpus(amount: Milli) -> f64 {
    amount.0 as f64 / 1e3
}

fn by_state<'a>(jobs: impl Iterator<Item = &'a LiveJob>) -> BTreeMap<(&'static str, String), u64> {
    let mut counts = BTreeMap::new();
    for job in jobs {
        *counts.entry((shown_state(job).as_str(), job.row.team.clone())).or_default() += 1;
    }
    counts
}

fn rates<'a>(jobs: impl Iterator<Item = &'a LiveJob>) -> BTreeMap<String, i64> {
    let mut rates: BTreeMap<String, i64> = BTreeMap::new();
    for job in jobs.filter(|job| !job.leases.is_empty()) {
        *rates.entry(job.row.team.clone()).or_default() += job.price().0;
    }
    rates
}

/// How much of each GPU is held, in thousandths.
type Held = BTreeMap<(String, usize), i64>;

fn held<'a>(jobs: impl Iterator<Item = &'a LiveJob>) -> Held {
    let mut held = Held::new();
    for lease in jobs.flat_map(|job| job.leases.values()) {
        for slice in live::slices(&lease.row.slices) {
            let place = (lease.row.node.clone(), slice.gpu as usize);
            *held.entry(place).or_default() += live::share(&slice.share).0;
        }
    }
    held
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    all: u64,
    held: i64,
    free: i64,
}

fn by_model(nodes: &[NodeSnapshot], held: &Held) -> BTreeMap<String, Counts> {
    let mut models: BTreeMap<String, Counts> = BTreeMap::new();
    for node in nodes {
        for (index, gpu) in node.spec.gpus.iter().enumerate() {
            let used = held.get(&(node.spec.name.to_string(), index)).copied().unwrap_or(0);
            let counts = models.entry(gpu.model.to_string()).or_default();
            counts.all += 1;
            counts.held += used;
            if gpu.health == Health::Ok {
                counts.free += (1_000 - used).max(0);
            }
        }
    }
    models
}
