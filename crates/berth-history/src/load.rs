//! What is submitted, when and by whom: a recorded trace, laid over the time of the history.

use crate::names::{self, COMMENTS, TEAMS};
use crate::people::submitters;
use berth_model::{Milli, Name, Span, Time};
use berth_sim::random::Rng;
use berth_sim::trace::Job;
use std::collections::BTreeMap;
use std::fmt::Write;

/// How much of all GPU time the jobs want, in thousandths.
const LOAD: i64 = 820;
const SHORTEST: Span = Span::secs(20);
const LONGEST: Span = Span::hours(60);
/// GPUs of one job.
const LARGEST: i64 = 32;
/// Jobs of one user that come so close together are a sweep.
const SWEEP: Span = Span::secs(3);

/// The time and the machine that a load is for.
#[derive(Debug, Clone, Copy)]
pub struct Frame {
    pub from: Time,
    pub until: Time,
    pub gpus: u32,
    pub jobs: u32,
    pub seed: u64,
}

/// How one run of a job, or of an element of its array, will go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fate {
    /// How long it has to run in all.
    pub duration: Span,
    pub end: End,
    /// It saves what it has done, so that it goes on from there.
    pub saves: Option<Span>,
    /// What it does with its GPUs, and how.
    pub habit: Habit,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum End {
    Well,
    /// It fails once, with this code; a second try goes well.
    Code(i32),
    Signal(i32),
    OutOfMemory,
}

/// What a job does with its GPUs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Habit {
    Trains,
    /// It waits for its data half of the time.
    Starves,
    /// Bursts of work, with nothing in between.
    Evaluates,
    /// It holds them and does next to nothing.
    Idles,
}

/// One request to submit a job file.
#[derive(Debug, Clone)]
pub struct Submission {
    pub at: Time,
    pub user: &'static str,
    pub file: String,
    /// One for each element.
    pub fates: Vec<Fate>,
    /// Its user stops it so long after it was submitted.
    pub stopped_after: Option<Span>,
}

/// The submissions in their order.
pub fn submissions(trace: &[Job], frame: Frame) -> Vec<Submission> {
    let mut rng = Rng::new(frame.seed);
    let units = tiled(&sweeps(trace), frame, &mut rng);
    let stretch = stretch(&units, frame);
    let teams = teams(trace);
    let mut numbers = BTreeMap::new();
    let each = units.iter().map(|unit| submission(unit, stretch, &teams, &mut numbers, &mut rng));
    each.flatten().collect()
}

/// Jobs that were submitted together.
#[derive(Debug, Clone)]
struct Unit<'a> {
    at: Time,
    jobs: Vec<&'a Job>,
}

fn sweeps(trace: &[Job]) -> Vec<Unit<'_>> {
    let mut units: Vec<Unit<'_>> = Vec::new();
    for job in trace.iter().filter(|job| job.gpus.0 > 0 && job.duration.is_some()) {
        let alike = |last: &&Job| {
            last.user == job.user
                && last.team == job.team
                && last.gpus == job.gpus
                && job.submit - last.submit <= SWEEP
        };
        match units.last_mut() {
            Some(unit) if job.user.is_some() && unit.jobs.last().is_some_and(alike) => {
                unit.jobs.push(job);
            }
            _ => units.push(Unit { at: job.submit, jobs: vec![job] }),
        }
    }
    units
}

/// The trace again and again until the end, on the same days of the week, and so many times over each
/// other that there are enough jobs; of those as many as are wanted.
fn tiled<'a>(units: &[Unit<'a>], frame: Frame, rng: &mut Rng) -> Vec<Unit<'a>> {
    let (day, week) = (Span::days(1).0, Span::days(7).0);
    let Some(last) = units.last() else { return Vec::new() };
    let period = (last.at.0 / week + 1) * week;
    // Time 0 of a trace is a Monday, and the first day of 1970 was a Thursday.
    let since_monday = (frame.from.0.div_euclid(day) + 3).rem_euclid(7) * day;
    let monday = Time(frame.from.0.div_euclid(day) * day - since_monday);
    let mut pool = Vec::new();
    let mut jobs = 0;
    for layer in 0.. {
        let mut start = monday;
        let before = jobs;
        while start < frame.until {
            for unit in units {
                let jitter = if layer == 0 { 0 } else { rng.below(7_200_000) as i64 - 3_600_000 };
                let at = Time(start.0 + unit.at.0 + jitter);
                if (frame.from..frame.until).contains(&at) {
                    jobs += unit.jobs.len();
                    pool.push(Unit { at, jobs: unit.jobs.clone() });
                }
            }
            start = start + Span(period);
        }
        if jobs >= frame.jobs as usize || jobs == before {
            break;
        }
    }
    rng.shuffle(&mut pool);
    let mut wanted = frame.jobs as usize;
    let mut chosen = Vec::new();
    for mut unit in pool {
        unit.jobs.truncate(wanted);
        wanted -= unit.jobs.len();
        if !unit.jobs.is_empty() {
            chosen.push(unit);
        }
    }
    chosen.sort_by_key(|unit| unit.at);
    chosen
}

fn gpus(job: &Job) -> i64 {
    (job.gpus.0 / 1_000).clamp(1, LARGEST)
}

fn stretched(job: &Job, stretch: Milli) -> Span {
    let duration = job.duration.unwrap_or(SHORTEST).0;
    Span(duration.saturating_mul(stretch.0) / 1_000).clamp(SHORTEST, LONGEST)
}

/// What durations are multiplied by, so that the machine is as busy as it should be. What is cut off
/// at either end changes the sum, so it takes a few rounds.
fn stretch(units: &[Unit<'_>], frame: Frame) -> Milli {
    let hours = (frame.until - frame.from).0;
    let wanted = i128::from(frame.gpus) * i128::from(hours) * i128::from(LOAD) / 1_000;
    let mut stretch = 1_000_i128;
    for _ in 0..12 {
        let of = |job: &&Job| {
            let span = stretched(job, Milli(stretch as i64));
            i128::from(span.0) * i128::from(gpus(job))
        };
        let sum: i128 = units.iter().flat_map(|unit| &unit.jobs).map(of).sum();
        stretch = (stretch * wanted / sum.max(1)).clamp(1, 1_000_000);
    }
    Milli(stretch as i64)
}

/// The team that does what a team of the trace did: the busiest first.
fn teams(trace: &[Job]) -> BTreeMap<Option<Name>, &'static str> {
    let mut busy: BTreeMap<Option<Name>, usize> = BTreeMap::new();
    trace.iter().for_each(|job| *busy.entry(job.team.clone()).or_default() += 1);
    let mut ranked: Vec<_> = busy.into_iter().collect();
    ranked.sort_by(|one, other| other.1.cmp(&one.1).then(one.0.cmp(&other.0)));
    let each = ranked.into_iter().zip(TEAMS.iter().cycle());
    each.map(|((name, _), team)| (name, *team)).collect()
}

/// The same user of a trace is the same person.
fn person(job: &Job, team: &str, rng: &mut Rng) -> &'static str {
    let people = submitters(team);
    let Some(user) = &job.user else { return rng.one_of(&people) };
    let sum: usize = user.as_str().bytes().map(usize::from).sum();
    people[sum % people.len()]
}

fn submission(
    unit: &Unit<'_>,
    stretch: Milli,
    teams: &BTreeMap<Option<Name>, &'static str>,
    numbers: &mut BTreeMap<&'static str, u64>,
    rng: &mut Rng,
) -> Vec<Submission> {
    let job = unit.jobs[0];
    let mut team = teams.get(&job.team).copied().unwrap_or(TEAMS[0]);
    // Nobody gives an intern eight GPUs. A few come to learn, whoever the trace is of.
    if team != "interns" && gpus(job) == 1 && rng.below(40) == 0 {
        team = "interns";
    } else if team == "interns" && gpus(job) > 2 {
        team = "vision";
    }
    let user = person(job, team, rng);
    let work = names::pick(team, rng);
    let asked = Asked { team, user, work, gpus: gpus(job) };
    let together = unit.jobs.len() >= 3 && rng.below(10) < 6;
    let groups: Vec<&[&Job]> =
        if together { vec![&unit.jobs] } else { unit.jobs.chunks(1).collect() };
    let each = groups.into_iter().enumerate().map(|(place, jobs)| {
        let number = numbers.entry(work.stem).or_default();
        *number += 1;
        let at = unit.at + Span::secs(place as i64 * 2);
        one(&asked, jobs, *number, at, stretch, rng)
    });
    each.collect()
}

struct Asked {
    team: &'static str,
    user: &'static str,
    work: names::Work,
    gpus: i64,
}

fn one(
    asked: &Asked,
    jobs: &[&Job],
    number: u64,
    at: Time,
    stretch: Milli,
    rng: &mut Rng,
) -> Submission {
    let Asked { team, user, work, gpus } = *asked;
    let longest = jobs.iter().map(|job| stretched(job, stretch)).max().unwrap_or(SHORTEST);
    let notebook = jobs.len() == 1 && gpus == 1 && rng.below(25) == 0;
    let saves = (longest > Span::hours(1) && rng.below(10) < 7).then_some(Span::hours(1));
    let retries = rng.below(7) == 0;
    let mut file = String::new();
    // Names in quotes of JSON are text in YAML, whatever is in them.
    let quoted = |text: &str| serde_json::Value::from(text).to_string();
    let mut key = |key: &str, value: &str| {
        let _ = writeln!(file, "{key}: {value}");
    };
    key("name", &names::name(work, number, rng));
    key("team", team);
    key("project", work.project);
    key("experiment", work.experiment);
    if notebook {
        key("kind", "notebook");
        key("gpus", if rng.below(2) == 0 { "0.5" } else { "1" });
    } else if gpus > 8 {
        key("nodes", &(gpus / 8).to_string());
        key("gpus", "H100:8");
    } else {
        key("gpus", &gpus.to_string());
    }
    // People ask for more than they need, and sometimes for less.
    let limit = Span(longest.0 * (900 + rng.below(2_200) as i64) / 1_000).max(Span::mins(5));
    key("time", &format!("{}m", limit.0 / 60_000 + 1));
    if let Some(every) = saves {
        key("checkpoint", &format!("{{path: ckpt, every: {every}, grace: 2m}}"));
    }
    if retries {
        key("retry", "{error: 1}");
    }
    match rng.below(100) {
        0..6 if team != "interns" => key("priority", "high"),
        6..22 => key("priority", "low"),
        22..25 => key("preemptible", "false"),
        25..28 => key("deadline", "2d"),
        _ => {}
    }
    if jobs.len() > 1 {
        let at_most = if rng.below(2) == 0 { "%4" } else { "" };
        key("array", &format!("0-{}{at_most}", jobs.len() - 1));
    }
    if rng.below(30) == 0 {
        key("comment", &quoted(rng.one_of(COMMENTS)));
    }
    key("labels", &format!("{{model: {}, run: r{number}}}", work.stem));
    key("run", &quoted(work.command));
    let habit = habit(notebook, rng);
    let fate = |job: &&Job, rng: &mut Rng| Fate {
        duration: stretched(job, stretch),
        end: if notebook { End::Well } else { end(rng) },
        saves,
        habit,
    };
    let fates: Vec<Fate> = jobs.iter().map(|job| fate(job, rng)).collect();
    let stopped = rng.below(25) == 0;
    let stopped_after = stopped.then(|| Span(longest.0 * (1 + rng.below(12) as i64) / 10));
    Submission { at, user, file, fates, stopped_after }
}

fn habit(notebook: bool, rng: &mut Rng) -> Habit {
    match rng.below(100) {
        _ if notebook => Habit::Idles,
        0..62 => Habit::Trains,
        62..78 => Habit::Starves,
        78..93 => Habit::Evaluates,
        _ => Habit::Idles,
    }
}

fn end(rng: &mut Rng) -> End {
    match rng.below(1_000) {
        0..70 => End::Code(1),
        70..80 => End::Code(2),
        80..90 => End::Signal(6),
        90..96 => End::Signal(11),
        96..112 => End::OutOfMemory,
        _ => End::Well,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_sim::trace::{self, Select};

    fn bundled() -> Vec<Job> {
        trace::jobs("the bundled trace", trace::BUNDLED, &Select::default()).unwrap()
    }

    fn frame(jobs: u32) -> Frame {
        let from = Time(1_790_000_000_000);
        Frame { from, until: from + Span::days(30), gpus: 64, jobs, seed: 7 }
    }

    #[test]
    fn there_are_as_many_jobs_as_are_wanted_and_the_machine_is_busy() {
        let trace = bundled();
        for wanted in [200, 4_000, 20_000] {
            let frame = frame(wanted);
            let made = submissions(&trace, frame);
            let jobs: usize = made.iter().map(|one| one.fates.len()).sum();
            assert_eq!(jobs, wanted as usize);
            assert!(
                made.iter().all(|one| (frame.from..frame.until + Span::mins(2)).contains(&one.at))
            );
        }
    }

    #[test]
    fn the_same_seed_makes_the_same_load() {
        let trace = bundled();
        let text = |seed| format!("{:?}", submissions(&trace, Frame { seed, ..frame(300) }));
        assert_eq!(text(7), text(7));
        assert_ne!(text(7), text(8));
    }
}
