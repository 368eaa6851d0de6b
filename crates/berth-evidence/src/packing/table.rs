//! The figures of one variant, side by side.

use super::openb::Published;
use super::run::{Contender, Outcome};
use crate::measure::milliseconds;
use crate::report::{Row, Target};
use berth_sim::packing::{Policy, Size, Ties};
use comfy_table::{Table, presets::NOTHING};
use std::time::Duration;

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let all: Vec<f64> = values.collect();
    all.iter().sum::<f64>() / all.len().max(1) as f64
}

fn look(outcomes: &[Outcome], demand: i64, of: impl Fn(&super::run::Sample) -> f64) -> f64 {
    mean(outcomes.iter().map(|outcome| of(&outcome.looks[&demand])))
}

/// What was published about the same policy with the same rule for ties.
fn known(
    published: &Published,
    variant: &str,
    who: Contender,
    metric: &str,
    at: i64,
) -> Option<f64> {
    let Contender::Rival(policy, ties) = who else { return None };
    // Random choice knows no ties, and rounding is part of the published score.
    if ties == Ties::Random || policy == Policy::FgdExact {
        return None;
    }
    let key = (variant.to_owned(), policy.name().to_owned(), metric.to_owned(), at);
    published.get(&key).copied()
}

pub fn table(variant: &str, rows: &[(Contender, Vec<Outcome>)], published: &Published) -> String {
    let seeds = rows.first().map_or(0, |(_, outcomes)| outcomes.len());
    let mut table = Table::new();
    table.load_style(NOTHING);
    table.set_header([
        &format!("{variant}, {seeds} seeds"),
        "allocated at 100 %",
        "allocated at 130 %",
        "published",
        "difference",
        "range",
        "fragmented at 60 / 80 / 90 / 100 %",
        "published",
        "dropped: none / share / 1 / 2 / 4 / 8 / other",
        "decision P50 / P99 µs",
    ]);
    for (who, outcomes) in rows {
        let allocated = look(outcomes, 130, |look| look.allocated);
        let range = || outcomes.iter().map(|outcome| outcome.looks[&130].allocated);
        let (low, high) = (range().fold(f64::MAX, f64::min), range().fold(f64::MIN, f64::max));
        let beside = known(published, variant, *who, "alloc", 130);
        let demands = [60, 80, 90, 100];
        let each = |of: &dyn Fn(i64) -> Option<f64>| {
            let texts = demands.map(|at| of(at).map_or_else(String::new, |v| format!("{v:.1}")));
            if texts.iter().all(String::is_empty) { String::new() } else { texts.join(" / ") }
        };
        let fragmented = each(&|at| Some(look(outcomes, at, |look| look.fragmented)));
        let fragmented_there = each(&|at| known(published, variant, *who, "frag", at));
        let dropped = Size::ALL.map(|size| {
            let of = |outcome: &Outcome| f64::from(outcome.progress.dropped[size as usize]);
            format!("{:.0}", mean(outcomes.iter().map(of)))
        });
        let micros = |of: fn(&Outcome) -> Duration| {
            mean(outcomes.iter().map(|outcome| milliseconds(of(outcome)) * 1_000.0))
        };
        table.add_row([
            who.name(),
            format!("{:.2}", look(outcomes, 100, |look| look.allocated)),
            format!("{allocated:.2}"),
            beside.map_or_else(String::new, |value| format!("{value:.2}")),
            beside.map_or_else(String::new, |value| format!("{:+.2}", allocated - value)),
            format!("{low:.2}–{high:.2}"),
            fragmented,
            fragmented_there,
            dropped.join(" / "),
            format!(
                "{:.0} / {:.0}",
                micros(|outcome| outcome.decision_p50),
                micros(|outcome| outcome.decision_p99)
            ),
        ]);
    }
    table.to_string()
}

/// Points that the core may be behind what was published of its best rival.
const MARGIN: f64 = 0.2;

/// What the core allocates at 130 % with each rule for ties, beside its rivals.
pub fn rows(
    variant: &str,
    found: &[(Contender, Vec<Outcome>)],
    published: &Published,
    seed: u64,
) -> Vec<Row> {
    let of = |who: Contender| found.iter().find(|(other, _)| *other == who);
    let allocated =
        |who: Contender| of(who).map(|(_, outcomes)| look(outcomes, 130, |look| look.allocated));
    let mut rows = Vec::new();
    for ties in [Ties::ByName, Ties::Random] {
        let who = Contender::Berth(ties);
        let Some(ours) = allocated(who) else { continue };
        let mut at_least = |what: &str, least: f64| {
            let name = format!("{variant}, {}: allocated at 130 %, {what}", who.name());
            rows.push(Row::new(name, ours, "%", Target::AtLeast(least)));
        };
        let fgd = Contender::Rival(Policy::Fgd, ties);
        // Where there is a published figure it is the target, otherwise our own run with the same
        // seeds.
        match known(published, variant, fgd, "alloc", 130) {
            Some(value) => at_least("FGD as published less 0.2", value - MARGIN),
            None => {
                if let Some(value) = allocated(fgd) {
                    at_least("our run of FGD", value);
                }
            }
        }
        if let Some(value) = allocated(Contender::Rival(Policy::BestFit, ties)) {
            at_least("best fit", value);
        }
        let Some((_, outcomes)) = of(who) else { continue };
        let micros = |of: fn(&Outcome) -> Duration| {
            mean(outcomes.iter().map(|outcome| milliseconds(of(outcome)) * 1_000.0))
        };
        let name = |what: &str| format!("{variant}, {}: decision, {what}", who.name());
        let p50 = micros(|outcome| outcome.decision_p50);
        rows.push(Row::new(name("P50"), p50, "µs", Target::None));
        let p99 = micros(|outcome| outcome.decision_p99);
        rows.push(Row::new(name("P99"), p99, "µs", Target::None));
    }
    for row in &mut rows {
        row.command = format!(
            "cargo run --release -p berth-evidence -- packing --traces … --variants {variant}"
        );
        row.seed = seed;
    }
    rows
}
