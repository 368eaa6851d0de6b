//! Charts with axes: lines over time, distributions, bars.

use super::svg::{Anchor, Svg, colour};

const WIDTH: f64 = 860.0;
const LEFT: f64 = 64.0;
const RIGHT: f64 = 12.0;
const TOP: f64 = 26.0;
const LINE: f64 = 16.0;
const ROOM: f64 = 194.0;
const BOTTOM: f64 = 40.0;

/// Some round numbers from 0 up to at least `most`.
fn ticks(most: f64) -> Vec<f64> {
    let most = if most > 0.0 { most } else { 1.0 };
    let mut step = 10_f64.powf((most / 5.0).log10().floor());
    for factor in [1.0, 2.0, 5.0, 10.0] {
        if most / (step * factor) <= 6.0 {
            step *= factor;
            break;
        }
    }
    (0..=(most / step).ceil() as usize).map(|count| count as f64 * step).collect()
}

fn short(value: f64) -> String {
    match value {
        ..1e3 if value.fract() == 0.0 => format!("{value:.0}"),
        ..1e1 => format!("{value:.2}"),
        ..1e3 => format!("{value:.1}"),
        ..1e6 => format!("{:.1}k", value / 1e3),
        _ => format!("{:.1}M", value / 1e6),
    }
}

pub(super) fn span(seconds: f64) -> String {
    match seconds {
        ..60.0 => format!("{seconds:.0} s"),
        ..7_200.0 => format!("{:.0} min", seconds / 60.0),
        ..172_800.0 => format!("{:.1} h", seconds / 3_600.0),
        _ => format!("{:.1} d", seconds / 86_400.0),
    }
}

/// Names in lines as long as the chart is wide: where each stands.
fn legend_places(names: &[String]) -> Vec<(f64, f64)> {
    let (mut x, mut y) = (LEFT, 6.0);
    let mut places = Vec::new();
    for name in names {
        let wide = 26.0 + 6.6 * name.chars().count() as f64;
        if x + wide > WIDTH && x > LEFT {
            (x, y) = (LEFT, y + LINE);
        }
        places.push((x, y));
        x += wide;
    }
    places
}

/// Where the chart begins below its legend.
fn below(names: &[String]) -> f64 {
    legend_places(names).last().map_or(TOP, |(_, y)| y + TOP - 6.0)
}

fn legend(svg: &mut Svg, names: &[String]) {
    for (number, (name, (x, y))) in names.iter().zip(legend_places(names)).enumerate() {
        svg.rect([x, y, 10.0, 10.0], &colour(number), "");
        svg.text((x + 14.0, y + 9.0), Anchor::Start, name);
    }
}

struct Frame {
    top: f64,
    most: f64,
}

impl Frame {
    /// A drawing with a legend and lines at round values.
    fn new(label: &str, names: &[String], most: f64, unit: &str) -> (Svg, Frame) {
        let top = below(names);
        let mut svg = Svg::new(WIDTH, top + ROOM + BOTTOM, label);
        legend(&mut svg, names);
        let ticks = ticks(most);
        let frame = Frame { top, most: ticks.last().copied().unwrap_or(1.0) };
        for tick in ticks {
            let y = frame.y(tick);
            svg.line((LEFT, y), (WIDTH - RIGHT, y), "grid");
            svg.text((LEFT - 6.0, y + 4.0), Anchor::End, &format!("{}{unit}", short(tick)));
        }
        (svg, frame)
    }

    fn y(&self, value: f64) -> f64 {
        self.top + ROOM * (1.0 - value / self.most)
    }

    fn floor(&self) -> f64 {
        self.top + ROOM
    }
}

/// Values at equal steps of time, one line for each name.
pub(super) fn over_time(label: &str, lines: &[(String, f64, Vec<f64>)], unit: &str) -> String {
    let most = lines.iter().flat_map(|(_, _, values)| values).fold(0.0, |a: f64, b| a.max(*b));
    let names: Vec<String> = lines.iter().map(|(name, ..)| name.clone()).collect();
    let (mut svg, frame) = Frame::new(label, &names, most, unit);
    let longest = lines.iter().map(|(_, step, values)| step * values.len() as f64);
    let longest = longest.fold(1.0, f64::max);
    let x = |seconds: f64| LEFT + (WIDTH - LEFT - RIGHT) * seconds / longest;
    for tick in ticks(longest / 86_400.0) {
        let seconds = tick * 86_400.0;
        if seconds <= longest {
            svg.line((x(seconds), frame.floor()), (x(seconds), frame.floor() + 4.0), "axis");
            let text = format!("day {}", short(tick));
            svg.text((x(seconds), frame.floor() + 18.0), Anchor::Middle, &text);
        }
    }
    for (number, (_, step, values)) in lines.iter().enumerate() {
        let at = |(place, value): (usize, &f64)| (x((place as f64 + 0.5) * step), frame.y(*value));
        svg.path(values.iter().enumerate().map(at), &colour(number));
    }
    svg.done()
}

/// The part of all jobs that waited no longer, by wait in seconds.
pub(super) fn distribution(label: &str, lines: &[(String, Vec<(f64, f64)>)]) -> String {
    let names: Vec<String> = lines.iter().map(|(name, _)| name.clone()).collect();
    let (mut svg, frame) = Frame::new(label, &names, 100.0, " %");
    let most = lines.iter().flat_map(|(_, points)| points).fold(60.0, |a: f64, b| a.max(b.0));
    // Waits go from seconds to weeks; what is below a second is drawn as one.
    let log = |seconds: f64| seconds.max(1.0).log10();
    let x = |seconds: f64| LEFT + (WIDTH - LEFT - RIGHT) * log(seconds) / log(most);
    for tick in [1.0, 10.0, 60.0, 600.0, 3_600.0, 21_600.0, 86_400.0, 604_800.0, 2_592_000.0] {
        if tick <= most {
            svg.line((x(tick), frame.top), (x(tick), frame.floor()), "grid");
            svg.text((x(tick), frame.floor() + 18.0), Anchor::Middle, &span(tick));
        }
    }
    for (number, (_, points)) in lines.iter().enumerate() {
        let at = |(seconds, part): &(f64, f64)| (x(*seconds), frame.y(100.0 * part));
        svg.path(points.iter().map(at), &colour(number));
    }
    svg.done()
}

/// Bars side by side in groups, one bar of a group for each name.
pub(super) fn groups(
    label: &str,
    names: &[String],
    groups: &[(String, Vec<f64>)],
    format_value: impl Fn(f64) -> String,
    unit: &str,
) -> String {
    let most = groups.iter().flat_map(|(_, values)| values).fold(0.0, |a: f64, b| a.max(*b));
    let (mut svg, frame) = Frame::new(label, names, most, unit);
    let room = (WIDTH - LEFT - RIGHT) / groups.len().max(1) as f64;
    let bar = (room * 0.8 / names.len().max(1) as f64).min(40.0);
    for (place, (group, values)) in groups.iter().enumerate() {
        let left = LEFT + room * place as f64;
        let middle = left + room / 2.0;
        let first = middle - bar * values.len() as f64 / 2.0;
        for (number, value) in values.iter().enumerate() {
            let y = frame.y(*value);
            let at = [first + bar * number as f64, y, bar - 1.0, frame.floor() - y];
            let name = names.get(number).map_or("", String::as_str);
            svg.rect(at, &colour(number), &format!("{group}, {name}: {}", format_value(*value)));
        }
        svg.text((middle, frame.floor() + 18.0), Anchor::Middle, group);
    }
    svg.done()
}

/// One bar for each row, made of parts.
pub(super) fn stacked(label: &str, parts: &[String], rows: &[(String, Vec<f64>)]) -> String {
    let top = below(parts);
    let height = top + BOTTOM + 30.0 * rows.len() as f64;
    let mut svg = Svg::new(WIDTH, height, label);
    let left = 170.0;
    let most = rows.iter().map(|(_, values)| values.iter().sum()).fold(0.0, f64::max);
    let ticks = ticks(most);
    let last = ticks.last().copied().unwrap_or(1.0);
    let x = |value: f64| left + (WIDTH - left - RIGHT - 20.0) * value / last;
    for tick in &ticks {
        svg.line((x(*tick), top), (x(*tick), height - BOTTOM), "grid");
        svg.text((x(*tick), height - BOTTOM + 18.0), Anchor::Middle, &format!("${}", short(*tick)));
    }
    for (place, (name, values)) in rows.iter().enumerate() {
        let y = top + 6.0 + 30.0 * place as f64;
        svg.text((left - 8.0, y + 14.0), Anchor::End, name);
        let mut from = 0.0;
        for (number, value) in values.iter().enumerate() {
            let at = [x(from), y, x(from + value) - x(from), 20.0];
            let part = parts.get(number).map_or("", String::as_str);
            svg.rect(at, &colour(number), &format!("{name}, {part}: ${value:.0}"));
            from += value;
        }
    }
    legend(&mut svg, parts);
    svg.done()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_round_and_reach_the_largest_value() {
        assert_eq!(ticks(100.0), [0.0, 20.0, 40.0, 60.0, 80.0, 100.0]);
        assert!(ticks(0.0).len() > 1);
        for most in [0.3, 7.0, 1_234.0, 9.99e6] {
            let ticks = ticks(most);
            assert!(ticks.len() <= 12 && ticks[ticks.len() - 1] >= most, "{most}: {ticks:?}");
        }
    }
}
