//! Who ran where and when, on the first nodes and in the middle of the trace.

use super::chart::span;
use super::svg::{Anchor, Svg, colour};
use crate::fleet::Fleet;
use crate::outcome::Timeline;
use berth_model::{Span, Time};

/// What one picture can show and still be looked at.
const NODES: usize = 12;
const JOBS: usize = 300;

/// One GPU of a node held by a job.
struct Bar {
    node: usize,
    lane: usize,
    from: Time,
    to: Time,
    team: u32,
    title: String,
}

/// The stretch of the trace that is shown: the same for every policy, since it depends on the
/// submissions alone.
pub(super) fn window(submits: &[Time]) -> (Time, Time) {
    let begin = (submits.len().saturating_sub(JOBS)) / 2;
    let end = (begin + JOBS).min(submits.len());
    match submits.get(begin..end) {
        Some([first, .., last]) => (*first, *last + Span::hours(2)),
        _ => (Time(0), Time(0) + Span::hours(1)),
    }
}

/// Lanes are GPUs; which GPU of a node a job had is not known, so it gets the first that are free.
fn bars(timeline: &Timeline, fleet: &Fleet, (begin, end): (Time, Time)) -> Vec<Bar> {
    let nodes = fleet.nodes.len().min(NODES);
    let mut runs: Vec<(Time, Time, usize, u32, u32, u32)> = Vec::new();
    for outcome in &timeline.outcomes {
        for segment in &outcome.segments {
            for (node, gpus) in segment.place.parts().filter(|(node, _)| (*node as usize) < nodes) {
                if segment.from < end && segment.to > begin {
                    let (from, to) = (segment.from, segment.to);
                    runs.push((from, to, node as usize, gpus, outcome.job, outcome.team));
                }
            }
        }
    }
    runs.sort_unstable();
    let mut until: Vec<Vec<Time>> =
        fleet.nodes[..nodes].iter().map(|node| vec![Time(i64::MIN); node.gpus as usize]).collect();
    let mut bars = Vec::new();
    for (from, to, node, gpus, job, team) in runs {
        let free = until[node].iter().enumerate().filter(|(_, until)| **until <= from);
        let lanes: Vec<usize> = free.map(|(lane, _)| lane).take(gpus as usize).collect();
        for lane in lanes {
            until[node][lane] = to;
            let title = format!("job {job}, {gpus} GPUs, {}", span((to - from).0 as f64 / 1_000.0));
            bars.push(Bar { node, lane, from: from.max(begin), to: to.min(end), team, title });
        }
    }
    bars
}

pub(super) fn draw(name: &str, timeline: &Timeline, fleet: &Fleet, window: (Time, Time)) -> String {
    let nodes = fleet.nodes.len().min(NODES);
    let (left, width, lane) = (64.0, 860.0, 4.0);
    let mut tops = vec![20.0];
    for node in &fleet.nodes[..nodes] {
        let top = tops[tops.len() - 1];
        tops.push(top + lane * f64::from(node.gpus) + 5.0);
    }
    let height = tops[nodes] + 24.0;
    let mut svg = Svg::new(width, height, &format!("Gantt chart of {name}"));
    svg.text((left, 13.0), Anchor::Start, name);
    let all = ((window.1 - window.0).0 as f64).max(1.0);
    let x = |time: Time| left + (width - left - 12.0) * (time - window.0).0 as f64 / all;
    for (node, machine) in fleet.nodes[..nodes].iter().enumerate() {
        let high = lane * f64::from(machine.gpus);
        svg.rect([left, tops[node], width - left - 12.0, high], "var(--free)", "");
        svg.text((left - 6.0, tops[node] + high / 2.0 + 4.0), Anchor::End, &format!("node {node}"));
    }
    for bar in bars(timeline, fleet, window) {
        let y = tops[bar.node] + lane * bar.lane as f64;
        let at = [x(bar.from), y, (x(bar.to) - x(bar.from)).max(0.3), lane - 0.4];
        // The first colour of all is for whole charts; a team keeps its own everywhere.
        svg.rect(at, &colour(bar.team as usize), &bar.title);
    }
    for part in 0..=4 {
        let time = window.0 + Span((window.1 - window.0).0 * part / 4);
        let text = format!("+{}", span((time - window.0).0 as f64 / 1_000.0));
        svg.text(
            (x(time), height - 8.0),
            if part == 4 { Anchor::End } else { Anchor::Start },
            &text,
        );
    }
    svg.done()
}
