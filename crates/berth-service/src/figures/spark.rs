//! What the GPUs of a running job did of late, for a small chart in a list. It comes from memory: a
//! list must not read the figures of a hundred jobs.

use super::held;
use crate::service::Service;
use berth_engine::LiveJob;
use berth_figures::{Figure, Level, Points, Series};
use berth_model::{Span, Time};

/// Minutes of the chart.
const MINUTES: usize = 30;
/// GPUs of one job that are looked at.
const MOST_GPUS: usize = 16;

/// Mean utilization in each of the last minutes; nothing where nothing is known.
pub fn of(service: &Service, job: &LiveJob, now: Time) -> Option<Vec<Option<i64>>> {
    let book = service.host.figures()?;
    let mut all: Vec<(Time, i64)> = Vec::new();
    let mut left = MOST_GPUS;
    for (id, lease) in &job.leases {
        let (slices, opened) = (&lease.row.slices, lease.row.opened);
        let held = match service.host.chooses_gpus() {
            true => held::as_decided(slices, opened),
            false => held::as_measured(slices, opened, &book.view(&Series::Task(*id), Level::Raw)),
        };
        for gpu in held.into_iter().take(left) {
            left -= 1;
            let series = Series::Gpu { node: lease.row.node.clone(), index: gpu.number };
            let points = book.view(&series, Level::Minutes);
            all.extend(since(&points, gpu.from));
        }
    }
    let means = means(&all, now);
    means.iter().any(Option::is_some).then_some(means)
}

fn since(points: &Points, from: Time) -> impl Iterator<Item = (Time, i64)> {
    points.values(Figure::Utilization).filter(move |(at, _)| *at >= from)
}

fn means(values: &[(Time, i64)], now: Time) -> Vec<Option<i64>> {
    let minute = |at: Time| at.0.div_euclid(Span::mins(1).0);
    let first = minute(now) - MINUTES as i64 + 1;
    let mut sums = vec![(0, 0); MINUTES];
    for (at, value) in values {
        let Ok(place) = usize::try_from(minute(*at) - first) else { continue };
        if let Some((sum, count)) = sums.get_mut(place) {
            *sum += value;
            *count += 1;
        }
    }
    sums.into_iter().map(|(sum, count): (i64, i64)| (count > 0).then(|| sum / count)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_minute_has_the_mean_of_all_gpus_and_one_without_any_has_none() {
        let now = Time(3_600_000);
        let minutes_ago = |minutes: i64| now - Span::mins(minutes);
        let values = [
            (minutes_ago(0), 500),
            (minutes_ago(0), 700),
            (minutes_ago(2), 100),
            (minutes_ago(40), 9),
        ];
        let means = means(&values, now);
        assert_eq!(means.len(), MINUTES);
        assert_eq!(means[MINUTES - 3..], [Some(100), None, Some(600)]);
        assert!(means[..MINUTES - 3].iter().all(Option::is_none));
    }
}
