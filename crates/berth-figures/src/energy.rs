//! How much energy was used.

use crate::figure::Figure;
use crate::points::Points;
use berth_model::Span;

/// Joules between the first and the last point. The device's own counter says so where it has one;
/// it begins anew when the driver is loaded. Otherwise power times time: a point stands for the time
/// until the next one, and for at most `step`.
pub fn energy_joules(points: &Points, step: Span) -> Option<i64> {
    counted(points).or_else(|| summed(points, step)).map(|millijoules| millijoules / 1_000)
}

fn counted(points: &Points) -> Option<i64> {
    let values: Vec<i64> = points.values(Figure::Energy).map(|(_, value)| value).collect();
    if values.len() < 2 {
        return None;
    }
    let grown = values.windows(2).map(|pair| match pair[1] - pair[0] {
        grown if grown >= 0 => grown,
        // It began anew at nought.
        _ => pair[1].max(0),
    });
    Some(grown.sum())
}

fn summed(points: &Points, step: Span) -> Option<i64> {
    let spans: Vec<Span> = points.spans(step).collect();
    let column = points.columns.get(&crate::figure::Column::value(Figure::Power))?;
    let each = column
        .iter()
        .zip(&spans)
        .filter_map(|(milliwatts, span)| Some((*milliwatts)?.checked_mul(span.0)? / 1_000));
    let mut each = each.peekable();
    each.peek()?;
    Some(each.sum())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::points::Sample;
    use berth_model::Time;

    fn points(values: &[(i64, Figure, i64)]) -> Points {
        let mut points = Points::default();
        for (at, figure, value) in values {
            points.push(&Sample { at: Time(*at), values: [(*figure, *value)].into() });
        }
        points
    }

    #[test]
    fn the_counter_of_the_device_says_how_much_also_when_it_begins_anew() {
        let step = Span::secs(5);
        let counter = [(0, Figure::Energy, 1_000_000), (5_000, Figure::Energy, 1_500_000)];
        assert_eq!(energy_joules(&points(&counter), step), Some(500));
        let anew = [counter[0], counter[1], (10_000, Figure::Energy, 200_000)];
        assert_eq!(energy_joules(&points(&anew), step), Some(700));
    }

    #[test]
    fn power_times_time_is_taken_where_there_is_no_counter_and_a_gap_counts_for_nothing() {
        let step = Span::secs(5);
        let power = [
            (0, Figure::Power, 600_000),
            (5_000, Figure::Power, 400_000),
            (100_000, Figure::Power, 200_000),
        ];
        assert_eq!(energy_joules(&points(&power), step), Some(3_000 + 2_000 + 1_000));
        assert_eq!(energy_joules(&Points::default(), step), None);
    }
}
