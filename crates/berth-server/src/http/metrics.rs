//! Figures for Prometheus, computed on each scrape.

use super::answer::Failure;
use super::extract::timed_out_bodies;
use crate::app::App;
use axum::extract::State;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::IntoResponse;
use axum::routing::{MethodFilter, MethodRouter, on};
use berth_api::Code;
use berth_core::QueueReport;
use berth_engine::clock;
use berth_engine::shown_state;
use berth_engine::{LiveJob, Plans};
use berth_model::{Health, Milli, NodeSnapshot};
use berth_service::{cluster, live, money};
use berth_store::{CostKey, CostQuery, JobFilter};
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Metric, Registry};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::AtomicU64;

const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
const TEXT: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Projects that are told apart.
const MOST_PROJECTS: usize = 1_000;

pub(super) type Labels = Vec<(&'static str, String)>;
pub(super) type Figure = Gauge<f64, AtomicU64>;

pub(super) fn handler(id: &str, filter: MethodFilter) -> Option<MethodRouter<App>> {
    (id == "metrics").then(|| on(filter, metrics))
}

async fn metrics(State(app): State<App>, headers: HeaderMap) -> Result<impl IntoResponse, Failure> {
    let mut page = Page(Registry::default());
    page.process();
    page.requests();
    page.server(&app);
    page.jobs(&app).await?;
    page.teams(&app);
    page.gpus(&app).await;
    page.gpu_checks(&app);
    page.nodes(&app);
    page.newest_figures(&app);
    page.cluster(&app);
    page.audit(&app);
    page.tracking(&app);
    page.blobs(&app);
    page.sign_ins(&app).await?;
    page.costs(&app).await?;
    page.budgets(&app).await?;
    let mut text = String::new();
    let encoded = encode(&mut text, &page.0);
    encoded.map_err(|_| Failure::new(Code::Internal, "the figures could not be written"))?;
    Ok(match headers.get(ACCEPT).is_some_and(asks_for_openmetrics) {
        true => ([(CONTENT_TYPE, OPENMETRICS)], text),
        false => ([(CONTENT_TYPE, TEXT)], as_text(&text)),
    })
}

fn asks_for_openmetrics(accept: &HeaderValue) -> bool {
    accept.to_str().is_ok_and(|accept| accept.contains("application/openmetrics-text"))
}

/// The format of before OpenMetrics, which every tool reads: there the name of a counter has its
/// `_total` in the lines about it, too, and a page has no end mark.
fn as_text(openmetrics: &str) -> String {
    let lines: Vec<&str> = openmetrics.lines().filter(|line| *line != "# EOF").collect();
    let counters: BTreeSet<&str> = lines
        .iter()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.strip_suffix(" counter"))
        .collect();
    let mut text = String::with_capacity(openmetrics.len() + 64 * counters.len());
    for line in lines {
        let about = line.strip_prefix("# HELP ").map(|rest| ("# HELP ", rest));
        let about = about.or_else(|| line.strip_prefix("# TYPE ").map(|rest| ("# TYPE ", rest)));
        let counter = about.and_then(|(kind, rest)| {
            let (name, rest) = rest.split_once(' ')?;
            counters.contains(name).then(|| format!("{kind}{name}_total {rest}"))
        });
        text.push_str(counter.as_deref().unwrap_or(line));
        text.push('\n');
    }
    text
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

    pub(super) fn foreign_figure(&mut self, name: &str, help: &str, value: f64) {
        let gauge = Figure::default();
        gauge.set(value);
        self.0.register(name, help, gauge);
    }

    pub(super) fn foreign_count(&mut self, name: &str, help: &str, value: f64) {
        let counter = Counter::<f64, AtomicU64>::default();
        counter.inc_by(value);
        self.0.register(name, help, counter);
    }

    pub(super) fn register(&mut self, name: &str, help: &str, metric: impl Metric) {
        self.0.register(format!("berth_{name}"), help, metric);
    }

    fn server(&mut self, app: &App) {
        let info = self.family("build_info", "Which server this is; always 1");
        let version = vec![("version", env!("CARGO_PKG_VERSION").to_owned())];
        info.get_or_create(&version).set(1.0);
        let (plans, stalled) = {
            let core = app.service.engine.core();
            (core.plans.clone(), core.stalled.is_some())
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
        let help = "Decisions that failed the check and were put aside";
        self.count("decisions_put_aside", help, plans.put_aside);
        let help = "Time to make a plan and to check it";
        self.histogram("plan_duration_seconds", help, vec![(Vec::new(), plans.times)]);
        let last = plans.last_us as f64 / 1e6;
        self.figure("plan_last_duration_seconds", "Time of the last plan", last);
    }

    async fn jobs(&mut self, app: &App) -> Result<(), Failure> {
        let (live, reports) = {
            let mut core = app.service.engine.core();
            (by_project(core.jobs.values()), core.state.queue_reports())
        };
        let family = self.family("jobs", "Jobs that have not ended");
        let help = "What running jobs cost an hour";
        let rate = self.family("cost_rate_dollars_per_hour", help);
        for ((team, project), of) in live {
            let labels = [of_team(&team), vec![("project", project)]].concat();
            for (state, count) in of.states {
                let labels = [labels.clone(), vec![("state", state.to_owned())]].concat();
                family.get_or_create(&labels).set(count as f64);
            }
            if of.rate > 0 {
                rate.get_or_create(&labels).set(of.rate as f64 / 1e6);
            }
        }
        let ended = self.family("jobs_kept", "Ended jobs that the database has");
        for (state, count) in app.service.store.count_jobs(&JobFilter::default()).await? {
            if state.is_final() {
                let labels = vec![("state", state.as_str().to_owned())];
                ended.get_or_create(&labels).set(count as f64);
            }
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
                family.get_or_create(&of_team(&report.name)).set(read(report));
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
        let free = self.family("gpus_free", "Healthy GPUs that no job holds");
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
        let by = vec![CostKey::Team, CostKey::Project];
        let query = CostQuery { by, since, ..CostQuery::default() };
        let help = "Spent since the first of the month; the cost of idle GPUs has no team";
        let family = self.family("cost_dollars", help);
        let mut projects: Projects<i64> = BTreeMap::new();
        for sum in money::spent::sums(&app.service, &query).await? {
            let mut keys = sum.keys.into_iter();
            let (team, project) =
                (keys.next().unwrap_or_default(), keys.next().unwrap_or_default());
            *of_project(&mut projects, &team, &project) += sum.amount.0;
        }
        for ((team, project), micros) in projects {
            let labels = [of_team(&team), vec![("project", project)]].concat();
            family.get_or_create(&labels).set(micros as f64 / 1e6);
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

/// The labels of whatever is a team's: each team has the queue of its own name, and whoever asks may
/// know it by either.
pub(super) fn of_team(name: &str) -> Labels {
    vec![("team", name.to_owned()), ("queue", name.to_owned())]
}

type Projects<T> = BTreeMap<(String, String), T>;

/// The place of a project. Where there are too many, the others of a team count together.
fn of_project<'a, T: Default>(all: &'a mut Projects<T>, team: &str, project: &str) -> &'a mut T {
    let key = (team.to_owned(), project.to_owned());
    let is_full = all.len() >= MOST_PROJECTS && !all.contains_key(&key);
    let key = if is_full { (team.to_owned(), "(others)".to_owned()) } else { key };
    all.entry(key).or_default()
}

#[derive(Debug, Default, PartialEq, Eq)]
struct OfProject {
    states: BTreeMap<&'static str, u64>,
    /// Millionths of a dollar an hour.
    rate: i64,
}

fn by_project<'a>(jobs: impl Iterator<Item = &'a LiveJob>) -> Projects<OfProject> {
    let mut all = Projects::new();
    for job in jobs {
        let of: &mut OfProject = of_project(&mut all, &job.row.team, &job.row.project);
        *of.states.entry(shown_state(job).as_str()).or_default() += 1;
        if !job.leases.is_empty() {
            of.rate += job.price().0;
        }
    }
    all
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_reads_the_page_that_no_one_asked_openmetrics_of() {
        let page = "# HELP a_b What.\n# TYPE a_b counter\na_b_total{x=\"y\"} 1\n# HELP a_c Which.\n\
                    # TYPE a_c gauge\na_c 2\n# EOF\n";
        let text = "# HELP a_b_total What.\n# TYPE a_b_total counter\na_b_total{x=\"y\"} 1\n\
                    # HELP a_c Which.\n# TYPE a_c gauge\na_c 2\n";
        assert_eq!(as_text(page), text);
        let asks = HeaderValue::from_static("application/openmetrics-text;version=1.0.0;q=0.5");
        assert!(asks_for_openmetrics(&asks));
        assert!(!asks_for_openmetrics(&HeaderValue::from_static("text/plain")));
    }

    #[test]
    fn however_many_projects_there_are_so_many_are_told_apart() {
        let mut all: Projects<u64> = Projects::new();
        for n in 0..MOST_PROJECTS + 50 {
            *of_project(&mut all, "nlp", &format!("p{n:05}")) += 1;
        }
        *of_project(&mut all, "nlp", "p00000") += 1;
        let of = |project: &str| all[&("nlp".to_owned(), project.to_owned())];
        assert_eq!((all.len(), of("(others)"), of("p00000")), (MOST_PROJECTS + 1, 50, 2));
    }
}
