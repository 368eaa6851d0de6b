//! Figures as people see them.

use super::held::HeldGpu;
use super::window::{Window, wanted};
use super::{advice, held, points};
use crate::fault::Fault;
use crate::live;
use crate::service::Service;
use berth_api::wire;
use berth_engine::clock;
use berth_figures::{Column, Figure, Level, Points, Series, Stat, Summary, thin};
use berth_model::{JobId, Micros, Name, NodeSnapshot, Share, Span, Time};
use berth_store::LeaseRow;
use std::collections::{BTreeMap, BTreeSet};

/// Holdings that one answer shows: the newest.
const MOST_LEASES: usize = 64;
/// Nodes of which one answer says why they are not measured.
const MOST_REASONS: usize = 8;
/// What is looked at of a machine where nobody says.
const USUAL: Span = Span::hours(1);

const MFU_NOTE: &str = "mfu is an estimate: tensor activity × clock ÷ largest clock. Tiles that are \
     not full count as work, so small matrix products seem to do more than they do";
const SHARED_NOTE: &str =
    "a GPU of which a job held a part has the figures of all jobs that used it meanwhile";

/// Of a job that the caller may see.
pub async fn job(
    service: &Service,
    id: JobId,
    query: &wire::FigureQuery,
) -> Result<wire::JobFigures, Fault> {
    let wanted = wanted(query)?;
    let now = clock::now();
    let mut leases = service.store.leases_of(id).await?;
    leases.sort_by_key(|lease| (lease.opened, lease.id));
    let left_out = leases.len().saturating_sub(MOST_LEASES);
    leases.drain(..left_out);
    let usual = span_of(&leases, now).unwrap_or((now, now));
    let keep = service.host.figures().map(|book| book.keep).unwrap_or_default();
    let window = Window::of(query, usual, keep, now)?;
    let cluster = Cluster::of(service);
    let shower = Shower { service, window, wanted, cluster };
    let mut all = Gathered::default();
    for lease in &leases {
        let task = shower.task(lease, &mut all).await?;
        all.tasks.push(task);
    }
    let notes = notes(service, &all, &leases, left_out);
    Ok(wire::JobFigures {
        job: id.into(),
        from: window.from.into(),
        to: window.to.into(),
        step_ms: window.step.0,
        tasks: all.tasks,
        summary: together(&all.summaries),
        advice: all.advice,
        notes,
    })
}

pub async fn node(
    service: &Service,
    name: &str,
    query: &wire::FigureQuery,
) -> Result<wire::NodeFigures, Fault> {
    let cluster = Cluster::of(service);
    let gpus = cluster.node(name).ok_or_else(|| Fault::not_found("node", name))?.spec.gpus.len();
    let wanted = wanted(query)?;
    let now = clock::now();
    let keep = service.host.figures().map(|book| book.keep).unwrap_or_default();
    let window = Window::of(query, (now - USUAL, now), keep, now)?;
    let shower = Shower { service, window, wanted, cluster };
    let mut numbers: BTreeSet<u32> = (0..gpus as u32).collect();
    numbers.extend(measured_gpus(service, name));
    let mut shown = Vec::new();
    for number in numbers {
        let from = window.from;
        let gpu = HeldGpu { number, slot: number, share: Share::Whole, from };
        let (figures, _) = shower.gpu(name, &gpu, window.to).await?;
        shown.push(figures);
    }
    let mut notes: Vec<String> = why_no_gpu_figures(service, [name]).into_iter().collect();
    if shown.iter().any(|gpu| gpu.summary.mfu.is_some()) {
        notes.push(MFU_NOTE.to_owned());
    }
    Ok(wire::NodeFigures {
        node: name.to_owned(),
        from: window.from.into(),
        to: window.to.into(),
        step_ms: window.step.0,
        gpus: shown,
        notes,
    })
}

/// From the first lease to the end of the last, or now.
fn span_of(leases: &[LeaseRow], now: Time) -> Option<(Time, Time)> {
    let from = leases.iter().map(|lease| lease.opened).min()?;
    // What is shown ends after the last point.
    let end = leases.iter().map(|lease| lease.closed.unwrap_or(now)).max()?;
    Some((from, end + Span(1)))
}

/// What the answer is made of.
#[derive(Default)]
struct Gathered {
    tasks: Vec<wire::TaskFigures>,
    summaries: Vec<wire::FigureSummary>,
    advice: Vec<wire::FigureAdvice>,
    is_shared: bool,
    /// Nodes with GPUs of the job that nothing is known of.
    unmeasured: BTreeSet<String>,
}

/// The nodes with their GPUs, and what they cost.
struct Cluster {
    nodes: Vec<NodeSnapshot>,
    prices: BTreeMap<Name, Micros>,
}

impl Cluster {
    fn of(service: &Service) -> Cluster {
        let core = service.engine.core();
        Cluster { nodes: core.state.node_snapshots(), prices: core.state.prices().clone() }
    }

    fn node(&self, name: &str) -> Option<&NodeSnapshot> {
        self.nodes.iter().find(|node| node.spec.name.as_str() == name)
    }
}

struct Shower<'a> {
    service: &'a Service,
    window: Window,
    wanted: Option<BTreeSet<Figure>>,
    cluster: Cluster,
}

impl Shower<'_> {
    async fn task(&self, lease: &LeaseRow, all: &mut Gathered) -> Result<wire::TaskFigures, Fault> {
        let (points, _) = points::read(self.service, &Series::Task(lease.id), &self.window).await?;
        let (times_ms, figures) = self.lines(&points);
        let mut gpus = Vec::new();
        // Nobody else has the GPU for as long as it is held.
        let until = lease.closed.unwrap_or(self.window.to + Level::Hours.chunk());
        let held = match self.service.host.chooses_gpus() {
            true => held::as_decided(&lease.slices, lease.opened),
            false => held::as_measured(&lease.slices, lease.opened, &points),
        };
        if held.is_empty() && lease.slices != "[]" {
            all.unmeasured.insert(lease.node.clone());
        }
        for gpu in held {
            all.is_shared |= gpu.share != Share::Whole;
            let (shown, summary) = self.gpu(&lease.node, &gpu, until).await?;
            all.summaries.push(shown.summary);
            if let (Share::Whole, Some(node)) = (&gpu.share, self.cluster.node(&lease.node)) {
                let seen = (gpu.from.max(self.window.from), until.min(self.window.to));
                let span = seen.1 - seen.0;
                let prices = &self.cluster.prices;
                all.advice.extend(advice::of(&summary, node, gpu.slot, prices, span));
            }
            gpus.push(shown);
        }
        Ok(wire::TaskFigures {
            task: lease.id.task,
            attempt: lease.id.attempt,
            node: lease.node.clone(),
            from: lease.opened.into(),
            to: lease.closed.map(wire::At),
            times_ms,
            figures,
            gpus,
        })
    }

    /// A GPU in the part of the window that one may see, which ends at `to`.
    async fn gpu(
        &self,
        node: &str,
        gpu: &HeldGpu,
        to: Time,
    ) -> Result<(wire::GpuFigures, Summary), Fault> {
        let series = Series::Gpu { node: node.to_owned(), index: gpu.number };
        let (points, level) = points::read(self.service, &series, &self.window).await?;
        let points = within(&points, level, gpu.from, to);
        let summary = Summary::of(&points, level.step().unwrap_or_else(|| points.pace()));
        let (times_ms, figures) = self.lines(&points);
        let measured = self.service.host.measured_gpu(node, gpu.number).unwrap_or_default();
        let spec = self.cluster.node(node).and_then(|node| node.spec.gpus.get(gpu.slot as usize));
        let shown = wire::GpuFigures {
            node: node.to_owned(),
            gpu: gpu.number,
            model: spec.map(|spec| spec.model.to_string()).or(measured.model),
            uuid: measured.uuid,
            milli: live::share(&gpu.share).0,
            times_ms,
            figures,
            summary: wire::FigureSummary {
                mfu: summary.mfu,
                energy_joules: summary.energy_joules,
                idle_ms: summary.idle_ms,
                idle_at_end_ms: summary.idle_at_end_ms,
            },
        };
        Ok((shown, summary))
    }

    fn lines(&self, points: &Points) -> (Vec<i64>, Vec<wire::FigureLine>) {
        let is_wanted = |figure| self.wanted.as_ref().is_none_or(|wanted| wanted.contains(&figure));
        let points = points.only(is_wanted);
        // Points that come about as often as they are asked for stay as they are: some of them
        // would fall together, and leave a hole beside.
        let shown = match points.pace().0 * 3 <= self.window.step.0 * 2 {
            true => thin(&points, self.window.step),
            false => points.clone(),
        };
        let has = |figure: &Figure| points.values(*figure).next().is_some();
        let lines = Figure::all().filter(has).map(|figure| line(figure, &points, &shown));
        let lines: Vec<wire::FigureLine> = lines.collect();
        if lines.is_empty() {
            return (Vec::new(), lines);
        }
        (shown.times.iter().map(|time| time.0).collect(), lines)
    }
}

/// Those that say nothing of a time outside: a minute that another job had a part of is left out.
fn within(points: &Points, level: Level, from: Time, to: Time) -> Points {
    let step = level.step().unwrap_or(Span(0));
    points.between(from, to - step + Span(i64::from(step.0 > 0)))
}

fn line(figure: Figure, points: &Points, shown: &Points) -> wire::FigureLine {
    let stat = Stat::of(points, figure);
    let column = |column: Column| shown.columns.get(&column).cloned().unwrap_or_default();
    wire::FigureLine {
        figure: figure.name().to_owned(),
        unit: figure.unit().to_owned(),
        mean: stat.map(|stat| stat.mean),
        p95: stat.map(|stat| stat.p95),
        max: stat.map(|stat| stat.max),
        last: points.values(figure).last().map(|(_, value)| value),
        values: column(Column::value(figure)),
        largest: column(Column::max(figure)),
    }
}

fn together(all: &[wire::FigureSummary]) -> wire::FigureSummary {
    let estimates: Vec<i64> = all.iter().filter_map(|one| one.mfu).collect();
    let energy: Vec<i64> = all.iter().filter_map(|one| one.energy_joules).collect();
    let count = estimates.len() as i64;
    wire::FigureSummary {
        mfu: (count > 0).then(|| estimates.iter().sum::<i64>() / count.max(1)),
        energy_joules: (!energy.is_empty()).then(|| energy.iter().sum()),
        idle_ms: all.iter().map(|one| one.idle_ms).sum(),
        idle_at_end_ms: all.iter().map(|one| one.idle_at_end_ms).max().unwrap_or(0),
    }
}

fn notes(service: &Service, all: &Gathered, leases: &[LeaseRow], left_out: usize) -> Vec<String> {
    let mut notes = Vec::new();
    if leases.is_empty() {
        notes.push("the job has not run, or what it held is not kept any more".to_owned());
        return notes;
    }
    if left_out > 0 {
        notes.push(format!("{left_out} older holdings are left out"));
    }
    if service.host.figures().is_none() {
        notes.push("this server gathers no figures".to_owned());
    } else if all.tasks.iter().all(|task| task.figures.is_empty()) {
        notes.push("nothing was measured yet in this time, or it is not kept any more".to_owned());
    }
    if all.tasks.iter().any(|task| !task.gpus.is_empty()) || !all.unmeasured.is_empty() {
        let nodes = all.unmeasured.iter().map(String::as_str);
        notes.extend(why_no_gpu_figures(service, nodes));
    }
    if all.summaries.iter().any(|summary| summary.mfu.is_some()) {
        notes.push(MFU_NOTE.to_owned());
    }
    if all.is_shared {
        notes.push(SHARED_NOTE.to_owned());
    }
    notes
}

/// What is the matter with these nodes, and with all of them.
fn why_no_gpu_figures<'a>(
    service: &Service,
    nodes: impl IntoIterator<Item = &'a str>,
) -> Vec<String> {
    if service.host.has_declared_gpus() {
        return vec!["declared GPUs have no figures: the devices are bookkeeping".to_owned()];
    }
    let each = nodes.into_iter().filter_map(|node| service.host.why_not_measured(node));
    each.take(MOST_REASONS).collect()
}

/// The GPUs of a node of which figures come in.
fn measured_gpus(service: &Service, node: &str) -> Vec<u32> {
    let newest = service.host.figures().map(crate::Book::newest).unwrap_or_default();
    let of_node = |series| match series {
        Series::Gpu { node: of, index } => (of == node).then_some(index),
        Series::Task(_) => None,
    };
    newest.into_keys().filter_map(of_node).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_figures::Sample;

    #[test]
    fn a_job_sees_no_minute_that_was_another_jobs_too() {
        let mut points = Points::default();
        for minute in 0..10 {
            let at = Time(minute * 60_000);
            points.push(&Sample { at, values: [(Figure::Power, minute)].into() });
        }
        let seen = |from, to| {
            let points = within(&points, Level::Minutes, Time(from), Time(to));
            points.values(Figure::Power).map(|(_, value)| value).collect::<Vec<_>>()
        };
        assert_eq!(seen(60_000, 240_000), [1, 2, 3]);
        assert_eq!(seen(60_001, 239_999), [2], "the first and the last only in part");
        let raw = within(&points, Level::Raw, Time(60_000), Time(180_000));
        assert_eq!(raw.len(), 2);
    }

    #[test]
    fn holdings_are_summed_up() {
        let one = |mfu, energy_joules, idle_ms| wire::FigureSummary {
            mfu,
            energy_joules,
            idle_ms,
            idle_at_end_ms: idle_ms,
        };
        let all = [one(Some(400), Some(10), 5), one(Some(600), Some(20), 7), one(None, None, 0)];
        let expect = wire::FigureSummary { idle_at_end_ms: 7, ..one(Some(500), Some(30), 12) };
        assert_eq!(together(&all), expect);
        assert_eq!(together(&[]), wire::FigureSummary::default());
    }
}
