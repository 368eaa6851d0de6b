//! Which time is looked at, and how finely.

use crate::fault::Fault;
use crate::figure_book::KeepFigures;
use berth_api::{Code, wire};
use berth_figures::{Figure, Level};
use berth_model::{Span, Time};
use std::collections::BTreeSet;

/// Points of a line where nobody says how many, and at the most.
const POINTS: i64 = 500;
const MOST_POINTS: i64 = 5_000;

/// Steps that people read easily, in seconds.
const STEPS: [i64; 17] =
    [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1_800, 3_600, 7_200, 10_800, 21_600, 43_200];

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    pub from: Time,
    pub to: Time,
    pub step: Span,
    pub level: Level,
}

impl Window {
    /// `usual` is what is looked at where the query does not say.
    pub fn of(
        query: &wire::FigureQuery,
        usual: (Time, Time),
        keep: KeepFigures,
        now: Time,
    ) -> Result<Window, Fault> {
        let from = query.from.map_or(usual.0, |at| at.0);
        let to = query.to.map_or(usual.1, |at| at.0);
        if to < from {
            return Err(bad("the time ends before it begins", "give `from` before `to`"));
        }
        let least = Span(((to - from).0 / MOST_POINTS).max(1_000));
        let step = match &query.step {
            None => nice((to - from).0 / POINTS),
            Some(text) => {
                let step = text.parse::<Span>().ok().filter(|step| step.0 > 0);
                let wrong = || bad(&format!("`{text}` is no step"), "use a time such as 30s");
                step.ok_or_else(wrong)?.max(least)
            }
        };
        let level = level(step, from, keep, now);
        Ok(Window { from, to, step: step.max(level.step().unwrap_or(step)), level })
    }
}

fn bad(detail: &str, next: &str) -> Fault {
    Fault::new(Code::BadRequest, detail).next(next)
}

fn nice(least_ms: i64) -> Span {
    let found = STEPS.into_iter().find(|step| step * 1_000 >= least_ms);
    found.map_or_else(|| Span::days((least_ms / 86_400_000 + 1).max(1)), Span::secs)
}

/// As coarse as the step allows, and as the age of what is looked at demands.
fn level(step: Span, from: Time, keep: KeepFigures, now: Time) -> Level {
    let suits = |level: &Level| level.step().is_none_or(|each| each <= step);
    let by_step = Level::ALL.into_iter().rev().find(suits).unwrap_or(Level::Raw);
    let is_kept = |level: &Level| keep.age(*level).is_none_or(|age| from >= now - age);
    let by_age = Level::ALL.into_iter().find(is_kept).unwrap_or(Level::Hours);
    by_step.max(by_age)
}

/// The figures that are asked for; nothing for all of them.
pub fn wanted(query: &wire::FigureQuery) -> Result<Option<BTreeSet<Figure>>, Fault> {
    let Some(text) = &query.figure else { return Ok(None) };
    let one = |name: &str| {
        let names: Vec<&str> = Figure::all().map(Figure::name).collect();
        let unknown = || {
            bad(
                &format!("there is no figure `{name}`"),
                &format!("use some of {}", names.join(", ")),
            )
        };
        Figure::of_name(name).ok_or_else(unknown)
    };
    text.split(',')
        .map(str::trim)
        .filter(|name| !name.is_empty())
        .map(one)
        .collect::<Result<_, _>>()
        .map(Some)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(query: &wire::FigureQuery, span: Span) -> Window {
        let now = Time(1_700_000_000_000);
        Window::of(query, (now - span, now), KeepFigures::default(), now).unwrap()
    }

    #[test]
    fn the_step_suits_the_time_and_the_level_suits_the_step() {
        let seen = |span| {
            let Window { step, level, .. } = window(&wire::FigureQuery::default(), span);
            (step, level)
        };
        assert_eq!(seen(Span::mins(5)), (Span::secs(1), Level::Raw));
        assert_eq!(seen(Span::hours(1)), (Span::secs(10), Level::Raw));
        assert_eq!(seen(Span::days(1)), (Span::mins(5), Level::Minutes));
        assert_eq!(seen(Span::days(20)), (Span::hours(1), Level::Hours));
        assert_eq!(seen(Span::days(400)), (Span::days(1), Level::Hours));
    }

    #[test]
    fn what_is_not_kept_so_finely_is_read_more_coarsely() {
        let now = Time(1_700_000_000_000);
        let old = |days| {
            let from = now - Span::days(days);
            let usual = (from, from + Span::hours(1));
            let query = wire::FigureQuery::default();
            Window::of(&query, usual, KeepFigures::default(), now).unwrap()
        };
        assert_eq!(old(1).level, Level::Raw);
        assert_eq!((old(3).level, old(3).step), (Level::Minutes, Span::mins(1)));
        assert_eq!((old(40).level, old(40).step), (Level::Hours, Span::hours(1)));
    }

    #[test]
    fn nobody_gets_more_points_than_there_is_room_for() {
        let step = |text: &str| wire::FigureQuery { step: Some(text.into()), ..Default::default() };
        assert_eq!(window(&step("1s"), Span::hours(1)).step, Span::secs(1));
        assert_eq!(window(&step("1s"), Span::hours(100)).step, Span::mins(1).max(Span(72_000)));
        for text in ["", "0", "-5s", "soon"] {
            let usual = (Time(0), Time(1));
            let keep = KeepFigures::default();
            assert!(Window::of(&step(text), usual, keep, Time(1)).is_err(), "{text}");
        }
        assert!(
            Window::of(
                &wire::FigureQuery::default(),
                (Time(1), Time(0)),
                KeepFigures::default(),
                Time(1)
            )
            .is_err()
        );
    }

    #[test]
    fn figures_are_named() {
        let ask = |text: &str| {
            let query = wire::FigureQuery { figure: Some(text.into()), ..Default::default() };
            wanted(&query).map(|found| found.unwrap().into_iter().collect::<Vec<_>>())
        };
        assert_eq!(ask("cpu, power").unwrap(), [Figure::Power, Figure::Cpu]);
        assert!(ask("speed").is_err());
    }
}
