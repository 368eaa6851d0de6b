//! One figure of all GPUs of the cluster over time. Series are read some dozens at a time, and each
//! is made into its few values before the next ones are read.

use super::points;
use super::window::Window;
use crate::fault::Fault;
use crate::figure_book::Book;
use crate::service::Service;
use berth_api::wire::{ClusterFigureQuery, ClusterFigures, GpuRow};
use berth_api::{Code, wire};
use berth_engine::clock;
use berth_figures::{Figure, Level, Points, Series, Summary};
use berth_file::error::{did_you_mean, or_list};
use berth_model::{Span, Time};
use berth_store::FigureRow;
use std::collections::{BTreeMap, BTreeSet};

const MOST_GPUS: usize = 4_096;
/// Values of a row where nobody says how many, and at the most.
const VALUES: i64 = 120;
const MOST_VALUES: i64 = 240;
/// Series that are read together, and chunks of them.
const TOGETHER: usize = 64;
const MOST_CHUNKS: u32 = 20_000;
const USUAL: Span = Span::hours(1);

pub async fn cluster(
    service: &Service,
    query: &ClusterFigureQuery,
) -> Result<ClusterFigures, Fault> {
    let figure = wanted(query.figure.as_deref().unwrap_or("utilization"))?;
    let now = clock::now();
    let grid = Grid::of(service, query, now)?;
    let mut gpus = gpus(service);
    if let Some(node) = &query.node {
        gpus.retain(|(of, _)| of == node);
        if gpus.is_empty() {
            return Err(Fault::not_found("node", node));
        }
    }
    let left_out = gpus.len().saturating_sub(MOST_GPUS);
    let gpus: Vec<(String, u32)> = gpus.into_iter().take(MOST_GPUS).collect();
    let rows = rows(service, &gpus, figure, &grid).await?;
    let mut notes = Vec::new();
    if service.host.figures().is_none() {
        notes.push("this server gathers no figures".to_owned());
    } else if service.host.has_declared_gpus() {
        notes.push("declared GPUs have no figures: the devices are bookkeeping".to_owned());
    }
    Ok(ClusterFigures {
        figure: figure.name().to_owned(),
        unit: figure.unit().to_owned(),
        from: grid.start.into(),
        to: grid.end().into(),
        step_ms: grid.step.0,
        rows,
        left_out: left_out as u32,
        notes,
    })
}

/// The mean utilization of GPUs over time, for whoever works something out with it.
pub async fn utilization_by_gpu(
    service: &Service,
    from: Time,
    to: Time,
) -> Result<(Vec<GpuRow>, Time, Span), Fault> {
    let query = ClusterFigureQuery {
        from: Some(from.into()),
        to: Some(to.into()),
        step: Some(format!("{}s", ((to - from).0 / MOST_VALUES / 1_000).max(60))),
        ..ClusterFigureQuery::default()
    };
    let grid = Grid::of(service, &query, clock::now())?;
    let gpus: Vec<(String, u32)> = gpus(service).into_iter().take(MOST_GPUS).collect();
    let rows = rows(service, &gpus, Figure::Utilization, &grid).await?;
    Ok((rows, grid.start, grid.step))
}

/// How long a GPU has done nothing since it is held; nothing where it is not known to be idle.
pub fn idle_at_end(service: &Service, node: &str, gpu: u32, since: Time) -> Option<i64> {
    let series = Series::Gpu { node: node.to_owned(), index: gpu };
    let book: &Book = service.host.figures()?;
    let minutes = book.view(&series, Level::Minutes);
    let points = minutes.between(since, Time(i64::MAX));
    let points = match points.is_empty() {
        true => book.view(&series, Level::Raw).between(since, Time(i64::MAX)),
        false => points,
    };
    let summary = Summary::of(&points, points.pace().max(Span::mins(1)));
    (!points.is_empty()).then_some(summary.idle_at_end_ms)
}

/// GPUs by node and number: those that there are, and others of which figures come in.
fn gpus(service: &Service) -> BTreeSet<(String, u32)> {
    let mut gpus = BTreeSet::new();
    for node in service.engine.core().state.node_snapshots() {
        let each = 0..node.spec.gpus.len() as u32;
        gpus.extend(each.map(|gpu| (node.spec.name.to_string(), gpu)));
    }
    let newest = service.host.figures().map(Book::newest).unwrap_or_default();
    gpus.extend(newest.into_keys().filter_map(|series| match series {
        Series::Gpu { node, index } => Some((node, index)),
        Series::Task(_) => None,
    }));
    gpus
}

fn wanted(name: &str) -> Result<Figure, Fault> {
    let of_gpus = || Figure::all().filter(|figure| figure.is_of_gpu()).map(Figure::name);
    let found = Figure::all().find(|figure| figure.is_of_gpu() && figure.name() == name);
    found.ok_or_else(|| {
        let like = did_you_mean(name, of_gpus());
        let fault =
            Fault::new(Code::BadRequest, format!("there is no figure of GPUs `{name}`{like}"));
        fault.next(format!("use {}", or_list(of_gpus())))
    })
}

/// The columns.
#[derive(Debug, Clone, Copy)]
struct Grid {
    start: Time,
    step: Span,
    count: usize,
    level: Level,
}

impl Grid {
    fn of(service: &Service, query: &ClusterFigureQuery, now: Time) -> Result<Grid, Fault> {
        let from = query.from.map_or(now - USUAL, |at| at.0);
        let to = query.to.map_or(now, |at| at.0);
        let length = (to - from).0.max(0);
        let step = match &query.step {
            Some(step) => step.clone(),
            None => format!("{}s", (length / VALUES / 1_000).max(5)),
        };
        let keep = service.host.figures().map(|book| book.keep).unwrap_or_default();
        let ask = wire::FigureQuery {
            from: Some(from.into()),
            to: Some(to.into()),
            step: Some(step),
            figure: None,
        };
        let window = Window::of(&ask, (from, to), keep, now)?;
        let step = window.step.max(Span(length.div_ceil_i64(MOST_VALUES)));
        let start = Time(from.0.div_euclid(step.0) * step.0);
        let count = usize::try_from((to - start).0.div_ceil_i64(step.0)).unwrap_or(0).max(1);
        Ok(Grid { start, step, count, level: window.level })
    }

    fn end(&self) -> Time {
        Time(self.start.0 + self.step.0 * self.count as i64)
    }

    fn values(&self, points: &Points, figure: Figure) -> Vec<Option<i64>> {
        let mut sums = vec![(0, 0); self.count];
        for (at, value) in points.values(figure) {
            let Ok(place) = usize::try_from((at - self.start).0.div_euclid(self.step.0)) else {
                continue;
            };
            if let Some((sum, count)) = sums.get_mut(place) {
                *sum += value;
                *count += 1;
            }
        }
        sums.into_iter().map(|(sum, count): (i64, i64)| (count > 0).then(|| sum / count)).collect()
    }
}

trait DivCeil {
    fn div_ceil_i64(self, by: i64) -> i64;
}

impl DivCeil for i64 {
    fn div_ceil_i64(self, by: i64) -> i64 {
        self.div_euclid(by) + i64::from(self.rem_euclid(by) > 0)
    }
}

async fn rows(
    service: &Service,
    gpus: &[(String, u32)],
    figure: Figure,
    grid: &Grid,
) -> Result<Vec<GpuRow>, Fault> {
    let mut rows = Vec::with_capacity(gpus.len());
    for some in gpus.chunks(TOGETHER) {
        let mut values: BTreeMap<usize, Vec<Option<i64>>> = BTreeMap::new();
        // Where the level that suits has nothing any more, the next coarser one may.
        for level in Level::ALL.into_iter().filter(|level| *level >= grid.level) {
            let left: Vec<usize> = (0..some.len()).filter(|at| !values.contains_key(at)).collect();
            if left.is_empty() {
                break;
            }
            let series: Vec<Series> = left
                .iter()
                .map(|at| Series::Gpu { node: some[*at].0.clone(), index: some[*at].1 })
                .collect();
            // First what is in memory: what is written between the two looks is then seen twice.
            let book = service.host.figures();
            let open: Vec<Points> = series
                .iter()
                .map(|series| book.map(|book| book.view(series, level)).unwrap_or_default())
                .collect();
            let names: Vec<String> = series.iter().map(ToString::to_string).collect();
            let time = (grid.start, grid.end());
            let number = level.number();
            let kept = service.store.figures_of(&names, number, time, MOST_CHUNKS).await?;
            let grid = *grid;
            let made = tokio::task::spawn_blocking(move || {
                let made = names.iter().zip(open).map(|(name, open)| {
                    let points = decoded(name, &kept).overlaid(&open);
                    grid.values(&points.between(grid.start, grid.end()), figure)
                });
                made.collect::<Vec<_>>()
            });
            let made = made.await.map_err(|why| Fault::new(Code::Internal, why.to_string()))?;
            let known = left.into_iter().zip(made);
            values.extend(known.filter(|(_, row)| row.iter().any(Option::is_some)));
        }
        for (at, (node, gpu)) in some.iter().enumerate() {
            let nothing = || vec![None; grid.count];
            let values = values.remove(&at).unwrap_or_else(nothing);
            rows.push(GpuRow { node: node.clone(), gpu: *gpu, values });
        }
    }
    Ok(rows)
}

fn decoded(name: &str, rows: &[FigureRow]) -> Points {
    let mut all = Points::default();
    let from = rows.partition_point(|row| row.series.as_str() < name);
    for row in rows[from..].iter().take_while(|row| row.series == name) {
        all.extend(&points::decode(name, &row.data));
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_figures::Sample;

    #[test]
    fn values_stand_in_the_column_of_their_time_and_holes_stay_holes() {
        let grid = Grid { start: Time(1_000), step: Span(100), count: 4, level: Level::Raw };
        let mut points = Points::default();
        for (at, value) in [(900, 9), (1_000, 10), (1_050, 20), (1_310, 7), (1_400, 99)] {
            points.push(&Sample { at: Time(at), values: [(Figure::Power, value)].into() });
        }
        assert_eq!(grid.values(&points, Figure::Power), [Some(15), None, None, Some(7)]);
        assert_eq!(grid.end(), Time(1_400));
        assert!(grid.values(&points, Figure::Cpu).iter().all(Option::is_none));
    }

    #[test]
    fn a_figure_of_tasks_is_none_of_gpus() {
        assert_eq!(wanted("power").unwrap(), Figure::Power);
        assert!(wanted("cpu").is_err());
        assert!(wanted("utilisation").unwrap_err().0.detail.contains("utilization"));
    }
}
