//! Everybody on one load, in turns: a machine is not as fast at every moment. So whoever is held
//! against somebody else has run right beside them, and what counts is the middle of all rounds.

use super::calm::CalmWait;
use super::load::{Load, Shape};
use super::race::{self, Figures, Racer};
use crate::report::{Row, Section, Target};
use anyhow::Result;
use berth_testbed::kube::Part;
use std::path::Path;
use tokio::runtime::Runtime;

/// Rounds in which bare bindings and Berth run side by side.
const ROUNDS: usize = 5;
/// Rounds at the most, where the ceiling stays below what an idle machine gives.
const ROUNDS_AT_MOST: usize = 7;
/// A scheduler that is several times slower takes part in every other round.
const PEER_EVERY: usize = 2;
/// How many bindings the ceiling is tried with at once. The fastest of these runs in the rounds.
const CONCURRENCIES: [usize; 4] = [16, 32, 64, 128];
/// What a client may take of the CPU beside the API server without being what holds it up.
const QUICK: f64 = 0.2;

/// How near to the ceiling a scheduler should come.
const SHARE: f64 = 0.8;

/// Who takes part.
pub struct Contest<'a> {
    pub ceiling: bool,
    pub kube_scheduler: bool,
    pub berth: Option<&'a Path>,
    /// Bindings a second below which the client would be slow, or the machine busy.
    pub least: Option<f64>,
}

/// What ran side by side.
#[derive(Default)]
struct Round {
    bare: Option<Figures>,
    /// Without events.
    berth: Option<Figures>,
    berth_with_events: Option<Figures>,
    peer: Option<Figures>,
}

impl Contest<'_> {
    pub fn run(&self, runtime: &Runtime, load: Load, calm_wait: &mut CalmWait) -> Result<Section> {
        let mut race = |racer| race(runtime, load, racer, calm_wait);
        let mut trials = Vec::new();
        for at_once in CONCURRENCIES.into_iter().filter(|_| self.ceiling) {
            let racer = Racer::Bare { at_once };
            trials.push((racer, race(racer)?));
        }
        let fastest = trials.iter().max_by(|(_, a), (_, b)| a.per_second.total_cmp(&b.per_second));
        let bare = fastest.map(|(racer, _)| *racer);
        let mut rounds: Vec<Round> = Vec::new();
        while rounds.len() < ROUNDS
            || rounds.len() < ROUNDS_AT_MOST && self.is_void(ceiling(&trials, &rounds))
        {
            let mut round = Round::default();
            // Neither is always the first.
            let bare_first = rounds.len().is_multiple_of(2);
            if let Some(racer) = bare.filter(|_| bare_first) {
                round.bare = Some(race(racer)?);
            }
            let berth = |events| self.berth.map(|path| Racer::Berth { path, events });
            round.berth = berth(false).map(&mut race).transpose()?;
            if let Some(racer) = bare.filter(|_| !bare_first) {
                round.bare = Some(race(racer)?);
            }
            if rounds.len().is_multiple_of(PEER_EVERY) {
                round.berth_with_events = berth(true).map(&mut race).transpose()?;
                if self.kube_scheduler {
                    round.peer = Some(race(Racer::KubeScheduler)?);
                }
            }
            rounds.push(round);
        }
        let best_pace = calm_wait.best();
        let mut rows = Vec::new();
        for (racer, figures) in &trials {
            rows.extend(figures.rows(&format!("{}, tried", racer.name()), best_pace));
        }
        let berth = |events| self.berth.map(|path| Racer::Berth { path, events });
        let all: [(Option<Racer<'_>>, Pick); 4] = [
            (bare, |round| round.bare.as_ref()),
            (Some(Racer::KubeScheduler), |round| round.peer.as_ref()),
            (berth(false), |round| round.berth.as_ref()),
            (berth(true), |round| round.berth_with_events.as_ref()),
        ];
        for (racer, pick) in all {
            let Some((racer, figures)) = racer.zip(middle_run(&rounds, pick)) else { continue };
            rows.extend(figures.rows(&racer.name(), best_pace));
        }
        if let Some(ceiling) = ceiling(&trials, &rounds) {
            let target = self.least.map_or(Target::None, Target::AtLeast);
            let name = "ceiling: bindings a second, at the most";
            rows.push(Row::new(name, ceiling.per_second, "1/s", target));
            let name = "ceiling: CPU of the client, beside the API server's";
            let (times, target) = (ceiling.client_beside_server(), Target::AtMost(QUICK));
            rows.push(Row::new(name, times, "times", target));
            // The two need not be of the same minute, so this is the harder one to hold.
            let fastest = rounds.iter().filter_map(|round| Some(round.berth.as_ref()?.per_second));
            if let Some(fastest) = fastest.reduce(f64::max) {
                let (name, target) = ("berth: fastest run beside that", Target::AtLeast(SHARE));
                rows.push(Row::new(name, fastest / ceiling.per_second, "", target));
            }
        }
        rows.extend(held_against(&rounds, load.shape));
        Ok(Section { title: load.title().into(), text: String::new(), rows })
    }

    fn is_void(&self, ceiling: Option<&Figures>) -> bool {
        let reached = ceiling.map(|ceiling| ceiling.per_second);
        reached.zip(self.least).is_some_and(|(reached, least)| reached < least)
    }
}

type Pick = fn(&Round) -> Option<&Figures>;

/// The fastest of all that only bind.
fn ceiling<'a>(trials: &'a [(Racer<'_>, Figures)], rounds: &'a [Round]) -> Option<&'a Figures> {
    let bare = trials.iter().map(|(_, figures)| figures);
    let bare = bare.chain(rounds.iter().filter_map(|round| round.bare.as_ref()));
    bare.max_by(|a, b| a.per_second.total_cmp(&b.per_second))
}

/// The run that as many were faster than as slower.
fn middle_run(rounds: &[Round], pick: Pick) -> Option<&Figures> {
    let mut runs: Vec<&Figures> = rounds.iter().filter_map(pick).collect();
    runs.sort_by(|a, b| a.per_second.total_cmp(&b.per_second));
    runs.get(runs.len() / 2).copied()
}

/// What as many rounds were above as below.
fn middle(rounds: &[Round], value: impl Fn(&Round) -> Option<f64>) -> Option<f64> {
    let mut values: Vec<f64> = rounds.iter().filter_map(value).collect();
    values.sort_by(f64::total_cmp);
    let (below, above) = (values.len().checked_sub(1)? / 2, values.len() / 2);
    Some(f64::midpoint(values[below], values[above]))
}

fn race(
    runtime: &Runtime,
    load: Load,
    racer: Racer<'_>,
    calm_wait: &mut CalmWait,
) -> Result<Figures> {
    eprintln!("{}: {}", load.title(), racer.name());
    let mut cluster = super::cluster();
    let figures = race::run(runtime, &mut cluster, load, racer, calm_wait)?;
    let (pace, best) = (figures.pace / calm_wait.best(), calm_wait.best());
    eprintln!(
        "  {:.0} a second, at {pace:.2} of the best pace ({best:.0}), {:.1} % taken by others",
        figures.per_second,
        100.0 * figures.taken
    );
    Ok(figures)
}

/// What was promised of Berth, beside the ceiling and the peer of the same round: without events
/// beside bare bindings, which have none, and with them beside kube-scheduler.
fn held_against(rounds: &[Round], shape: Shape) -> Vec<Row> {
    let share = middle(rounds, |round| {
        Some(round.berth.as_ref()?.per_second / round.bare.as_ref()?.per_second)
    });
    let cpu = middle(rounds, |round| {
        let (berth, bare) = (round.berth.as_ref()?, round.bare.as_ref()?);
        Some(berth.cpu_of(Part::ApiServer) / bare.cpu_of(Part::ApiServer))
    });
    let times = middle(rounds, |round| {
        let (berth, peer) = (round.berth_with_events.as_ref()?, round.peer.as_ref()?);
        Some(berth.per_second / peer.per_second)
    });
    let with_events = middle(rounds, |round| {
        let (berth, peer) = (round.berth_with_events.as_ref()?, round.peer.as_ref()?);
        Some(berth.api_with_events? / peer.api_with_events?)
    });
    let first = middle(rounds, |round| Some(round.berth.as_ref()?.first_bind));
    let beside = "berth: CPU of the API server per pod, beside a bare binding's";
    let beside_peer = "berth: the same with events, beside kube-scheduler's";
    let mut rows: Vec<Row> = [
        ("berth: share of the ceiling", share, "", Target::AtLeast(SHARE)),
        (beside, cpu, "times", Target::AtMost(1.3)),
        (beside_peer, with_events, "times", Target::AtMost(1.0)),
        ("berth: times kube-scheduler", times, "times", Target::AtLeast(2.5)),
        ("berth: first bind", first, "s", Target::Below(1.0)),
    ]
    .into_iter()
    .filter_map(|(name, value, unit, target)| Some(Row::new(name, value?, unit, target)))
    .collect();
    let gangs = rounds.iter().filter_map(|round| round.berth.as_ref());
    let most = gangs.map(|berth| f64::from(berth.most_nodes_per_gang)).reduce(f64::max);
    if let (Shape::Gangs(_), Some(most)) = (shape, most) {
        rows.push(Row::new("berth: nodes per gang, most", most, "nodes", Target::Exactly(1.0)));
    }
    rows
}
