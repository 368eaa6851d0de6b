//! Everybody on one load, in turns: a machine is not as fast at every moment.

use super::calm::Patience;
use super::load::{Load, Shape};
use super::race::{self, Figures, Racer};
use crate::report::{Row, Section, Target};
use anyhow::Result;
use berth_testbed::kube::Part;
use std::path::Path;
use tokio::runtime::Runtime;

/// Rounds in which everybody runs once; the fastest run of each counts.
const ROUNDS: u32 = 3;
/// Rounds at the most, where the ceiling stays below what an idle machine gives.
const ROUNDS_AT_MOST: u32 = 5;
/// How many bindings the ceiling is tried with at once, and how many of these go on after the first
/// round.
const CONCURRENCIES: [usize; 4] = [16, 32, 64, 128];
const GO_ON: usize = 2;
/// What a client may take of the CPU beside the API server without being what holds it up.
const QUICK: f64 = 0.2;

/// Who takes part.
pub struct Contest<'a> {
    pub ceiling: bool,
    pub kube_scheduler: bool,
    pub berth: Option<&'a Path>,
    /// Bindings a second below which the client would be slow, or the machine busy.
    pub least: Option<f64>,
}

impl Contest<'_> {
    pub fn run(&self, runtime: &Runtime, load: Load, patience: &mut Patience) -> Result<Section> {
        let mut best: Vec<(Racer<'_>, Option<Figures>)> =
            self.racers().into_iter().map(|racer| (racer, None)).collect();
        for round in 0..ROUNDS_AT_MOST {
            if round >= ROUNDS && !self.is_void(&best) {
                break;
            }
            for at in turns(round, &best) {
                let (racer, best) = &mut best[at];
                let figures = race(runtime, load, *racer, patience)?;
                if best.as_ref().is_none_or(|best| figures.per_second > best.per_second) {
                    *best = Some(figures);
                }
            }
        }
        let mut rows = Vec::new();
        for (racer, figures) in &best {
            rows.extend(
                figures.iter().flat_map(|figures| figures.rows(&racer.name(), patience.best())),
            );
        }
        let ceiling = ceiling(&best);
        if let Some(ceiling) = ceiling {
            let target = self.least.map_or(Target::None, Target::AtLeast);
            rows.push(Row::new("ceiling: bindings a second", ceiling.per_second, "1/s", target));
            let name = "ceiling: CPU of the client, beside the API server's";
            let (times, target) = (ceiling.client_beside_server(), Target::AtMost(QUICK));
            rows.push(Row::new(name, times, "times", target));
        }
        let of = |wanted: fn(&Racer<'_>) -> bool| {
            let found = best.iter().find(|(racer, _)| wanted(racer));
            found.and_then(|(_, figures)| figures.as_ref())
        };
        let peer = of(|racer| matches!(racer, Racer::KubeScheduler));
        if let Some(berth) = of(|racer| matches!(racer, Racer::Berth(_))) {
            rows.extend(held_against(berth, ceiling, peer, load.shape));
        }
        Ok(Section { title: load.title().into(), text: String::new(), rows })
    }

    fn racers(&self) -> Vec<Racer<'_>> {
        let bare = CONCURRENCIES.iter().filter(|_| self.ceiling);
        let mut racers: Vec<Racer<'_>> =
            bare.map(|at_once| Racer::Bare { at_once: *at_once }).collect();
        racers.extend(self.kube_scheduler.then_some(Racer::KubeScheduler));
        racers.extend(self.berth.map(Racer::Berth));
        racers
    }

    fn is_void(&self, best: &[(Racer<'_>, Option<Figures>)]) -> bool {
        let reached = ceiling(best).map(|ceiling| ceiling.per_second);
        reached.zip(self.least).is_some_and(|(reached, least)| reached < least)
    }
}

/// Who runs in a round, by their places. In the first one everybody does; then of those that only
/// bind the fastest, and Berth as often as they do.
fn turns(round: u32, best: &[(Racer<'_>, Option<Figures>)]) -> Vec<usize> {
    if round == 0 {
        return (0..best.len()).collect();
    }
    let places = |wanted: fn(&Racer<'_>) -> bool| -> Vec<usize> {
        (0..best.len()).filter(|at| wanted(&best[*at].0)).collect()
    };
    let reached = |at: &usize| best[*at].1.as_ref().map_or(0.0, |best| best.per_second);
    let mut bare = places(|racer| matches!(racer, Racer::Bare { .. }));
    bare.sort_by(|a, b| reached(b).total_cmp(&reached(a)));
    bare.truncate(GO_ON);
    let berth = places(|racer| matches!(racer, Racer::Berth(_)));
    let others = places(|racer| matches!(racer, Racer::KubeScheduler));
    let mut turns = Vec::new();
    for at in 0..bare.len().max(1) {
        turns.extend(bare.get(at));
        turns.extend(&berth);
    }
    turns.extend(others);
    turns
}

/// The fastest of all that only bind.
fn ceiling<'a>(best: &'a [(Racer<'_>, Option<Figures>)]) -> Option<&'a Figures> {
    let bare = best.iter().filter(|(racer, _)| matches!(racer, Racer::Bare { .. }));
    let bare = bare.filter_map(|(_, figures)| figures.as_ref());
    bare.max_by(|a, b| a.per_second.total_cmp(&b.per_second))
}

fn race(
    runtime: &Runtime,
    load: Load,
    racer: Racer<'_>,
    patience: &mut Patience,
) -> Result<Figures> {
    eprintln!("{}: {}", load.title(), racer.name());
    let mut cluster = super::cluster();
    let figures = race::run(runtime, &mut cluster, load, racer, patience)?;
    let (pace, best) = (figures.pace / patience.best(), patience.best());
    eprintln!(
        "  {:.0} a second, at {pace:.2} of the best pace ({best:.0}), {:.1} % taken by others",
        figures.per_second,
        100.0 * figures.taken
    );
    Ok(figures)
}

/// What was promised of Berth, beside the ceiling and the peer of the same run.
fn held_against(
    berth: &Figures,
    ceiling: Option<&Figures>,
    peer: Option<&Figures>,
    shape: Shape,
) -> Vec<Row> {
    let mut rows = Vec::new();
    if let Some(ceiling) = ceiling {
        let share = berth.per_second / ceiling.per_second;
        rows.push(Row::new("berth: share of the ceiling", share, "", Target::AtLeast(0.8)));
        let times = berth.cpu_of(Part::ApiServer) / ceiling.cpu_of(Part::ApiServer);
        let name = "berth: CPU of the API server per pod, beside a bare binding's";
        rows.push(Row::new(name, times, "times", Target::AtMost(1.3)));
    }
    if let Some(peer) = peer {
        let times = berth.per_second / peer.per_second;
        rows.push(Row::new("berth: times kube-scheduler", times, "times", Target::AtLeast(2.5)));
    }
    rows.push(Row::new("berth: first bind", berth.first_bind, "s", Target::Below(1.0)));
    if let Shape::Gangs(_) = shape {
        let most = f64::from(berth.most_nodes_per_gang);
        rows.push(Row::new("berth: nodes per gang, most", most, "nodes", Target::Exactly(1.0)));
    }
    rows
}
