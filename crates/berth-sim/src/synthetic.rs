//! Workloads from a seed, for questions that no recorded trace answers and for places where none
//! is at hand.
//!
//! They look like the recorded ones where it matters for a queue: people submit by day and on
//! weekdays, some submit whole sweeps at once, most jobs need one GPU and are short, a few run for
//! weeks, and a few teams do most of the work. The same recipe gives the same jobs on every
//! machine (see [`crate::random`]).

use crate::random::{Rng, exp, ln};
use crate::trace::Job;
use berth_model::{Milli, Name, Span, Time};

/// What a workload is made from. Time 0 is a Monday, at midnight.
#[derive(Debug, Clone, PartialEq)]
pub struct Recipe {
    pub seed: u64,
    pub jobs: u32,
    pub days: u32,
    pub teams: u32,
    /// In each team.
    pub users: u32,
    /// Of jobs with one GPU; larger ones run longer.
    pub median: Span,
    /// The spread of durations: the deviation of their logarithm, in thousandths.
    pub sigma: Milli,
    /// Of a thousand submissions, how many are of the long tail.
    pub long: u32,
    /// Of a thousand submissions, how many are sweeps of several like jobs.
    pub sweeps: u32,
    /// GPUs of a job, and how common that is.
    pub sizes: Vec<(u32, u64)>,
}

impl Default for Recipe {
    /// A month of a cluster for research.
    fn default() -> Recipe {
        Recipe {
            seed: 1,
            jobs: 10_000,
            days: 30,
            teams: 8,
            users: 12,
            median: Span::mins(20),
            sigma: Milli(1_700),
            long: 30,
            sweeps: 80,
            sizes: vec![(1, 700), (2, 70), (4, 80), (8, 110), (16, 25), (32, 12), (64, 3)],
        }
    }
}

impl Recipe {
    /// What the bundled trace is made from.
    pub fn sample() -> Recipe {
        let sizes = vec![(1, 640), (2, 120), (4, 110), (8, 100), (16, 30)];
        Recipe { jobs: 300, days: 7, teams: 4, users: 5, sizes, ..Recipe::default() }
    }
}

/// How much is submitted in each hour of a day, and on each day of a week.
const HOURS: [u64; 24] = [
    30, 22, 17, 14, 12, 12, 15, 22, 40, 68, 86, 92, 80, 84, 96, 100, 98, 92, 80, 64, 56, 52, 46, 38,
];
const WEEKDAYS: [u64; 7] = [96, 100, 100, 98, 90, 40, 36];

/// Limits that people ask for, in hours.
const LIMITS: [i64; 10] = [1, 2, 4, 8, 12, 24, 72, 168, 336, 720];
const SHORTEST: Span = Span::secs(10);
const LONGEST: Span = Span::hours(720);
/// Where the long tail begins, and how it falls (Pareto's α, in thousandths).
const TAIL: Span = Span::hours(24);
const TAIL_ALPHA: f64 = 1.3;

/// The jobs of a recipe, in order of submission.
///
/// # Panics
///
/// If the recipe has no days, teams, users or sizes.
pub fn jobs(recipe: &Recipe) -> Vec<Job> {
    assert!(recipe.days > 0 && recipe.teams > 0 && recipe.users > 0, "nobody ever submits");
    let mut rng = Rng::new(recipe.seed);
    let hours = Running::new(
        (0..recipe.days as usize * 24).map(|hour| HOURS[hour % 24] * WEEKDAYS[hour / 24 % 7]),
    );
    // A few do most: the second half as much as the first, the third a third, and so on.
    let teams = Running::new((1..=u64::from(recipe.teams)).map(|team| 1_000_000 / team));
    let users = Running::new((1..=u64::from(recipe.users)).map(|user| 1_000_000 / user));
    let sizes = Running::new(recipe.sizes.iter().map(|(_, weight)| *weight));
    let team_names: Vec<Name> =
        (0..recipe.teams).map(|team| Name::from(format!("team-{team}"))).collect();
    let user_names: Vec<Name> = (0..recipe.teams * recipe.users)
        .map(|user| Name::from(format!("user-{}-{}", user / recipe.users, user % recipe.users)))
        .collect();

    let wanted = recipe.jobs as usize;
    let mut drafts: Vec<Draft> = Vec::with_capacity(wanted);
    while drafts.len() < wanted {
        let hour = hours.draw(&mut rng) as i64;
        let submit = Time(hour * 3_600_000 + rng.below(3_600) as i64 * 1_000);
        let team = teams.draw(&mut rng) as u32;
        let user = team * recipe.users + users.draw(&mut rng) as u32;
        let gpus = recipe.sizes[sizes.draw(&mut rng)].0;
        let typical = typical(recipe, gpus, &mut rng);
        let sweep = rng.below(1_000) < u64::from(recipe.sweeps);
        let count = if sweep { 2 + rng.below(30) as usize } else { 1 };
        for member in 0..count.min(wanted - drafts.len()) {
            let duration = if sweep { vary(typical, 0.3, &mut rng) } else { typical };
            let submit = submit + Span::secs(member as i64 * 2);
            let limit = limit(duration, &mut rng);
            drafts.push(Draft { submit, duration, limit, gpus, team, user });
        }
    }
    drafts.sort_by_key(|draft| draft.submit);
    let job = |(place, draft): (usize, Draft)| Job {
        id: Name::from(format!("s{place}")),
        // As in a file with a header.
        line: place as u32 + 2,
        submit: draft.submit,
        duration: Some(draft.duration),
        gpus: Milli::whole(i64::from(draft.gpus)),
        nodes: None,
        gpu_type: None,
        cpu: None,
        memory: None,
        team: Some(team_names[draft.team as usize].clone()),
        user: Some(user_names[draft.user as usize].clone()),
        queue: None,
        status: None,
        wait: None,
        limit: Some(draft.limit),
        deadline: None,
        model: None,
    };
    drafts.into_iter().enumerate().map(job).collect()
}

/// What is drawn for a job. A million of these are sorted faster than a million jobs.
struct Draft {
    submit: Time,
    duration: Span,
    limit: Span,
    gpus: u32,
    team: u32,
    user: u32,
}

/// How long a job of this size runs, by chance.
fn typical(recipe: &Recipe, gpus: u32, rng: &mut Rng) -> Span {
    if rng.below(1_000) < u64::from(recipe.long) {
        let part = 1.0 - rng.unit();
        return bounded(TAIL.0 as f64 * exp(-ln(part) / TAIL_ALPHA));
    }
    let longer = match gpus {
        ..=1 => 1,
        2..=8 => 2,
        _ => 4,
    };
    vary(Span(recipe.median.0 * longer), recipe.sigma.0 as f64 / 1_000.0, rng)
}

fn vary(span: Span, sigma: f64, rng: &mut Rng) -> Span {
    bounded(span.0 as f64 * exp(sigma * rng.normal()))
}

/// In whole seconds, as traces are.
fn bounded(milliseconds: f64) -> Span {
    let seconds = (milliseconds / 1_000.0).min(LONGEST.0 as f64).round() as i64;
    Span::secs(seconds).clamp(SHORTEST, LONGEST)
}

/// People ask for more than they need, and for a round number.
fn limit(duration: Span, rng: &mut Rng) -> Span {
    let asked = Span((duration.0 as f64 * exp(rng.normal().abs())) as i64);
    let hours = LIMITS.into_iter().find(|hours| Span::hours(*hours) >= asked);
    hours.map_or(LONGEST, Span::hours)
}

/// Weights summed up, so that a draw is a search and not a walk.
struct Running {
    sums: Vec<u64>,
}

impl Running {
    fn new(weights: impl Iterator<Item = u64>) -> Running {
        let mut sum = 0;
        let sums = weights
            .map(|weight| {
                sum += weight;
                sum
            })
            .collect();
        Running { sums }
    }

    fn draw(&self, rng: &mut Rng) -> usize {
        let all = *self.sums.last().expect("there is something to draw from");
        let hit = rng.below(all);
        self.sums.partition_point(|sum| *sum <= hit)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace;

    #[test]
    fn the_bundled_trace_is_what_its_recipe_makes() {
        let made = jobs(&Recipe::sample());
        assert_eq!(trace::to_csv(&made), trace::BUNDLED, "the sample has to be written again");
        let read = trace::jobs("sample", trace::BUNDLED, &trace::Select::default()).unwrap();
        assert_eq!(read, made);
    }

    #[test]
    fn the_same_seed_gives_the_same_jobs_and_another_gives_others() {
        let recipe = Recipe { jobs: 1_000, ..Recipe::default() };
        assert_eq!(jobs(&recipe), jobs(&recipe));
        assert_ne!(jobs(&recipe), jobs(&Recipe { seed: 2, ..recipe.clone() }));
    }

    #[test]
    fn people_submit_by_day_and_on_weekdays() {
        let made = jobs(&Recipe { jobs: 40_000, days: 28, ..Recipe::default() });
        let share = |fine: &dyn Fn(i64) -> bool| {
            let hits = made.iter().filter(|job| fine(job.submit.0 / 3_600_000)).count();
            hits as f64 / made.len() as f64
        };
        let at_night = share(&|hour| hour % 24 < 8);
        let on_weekends = share(&|hour| hour / 24 % 7 >= 5);
        assert!((0.08..0.16).contains(&at_night), "{at_night}");
        assert!((0.10..0.18).contains(&on_weekends), "{on_weekends}");
    }

    #[test]
    fn most_jobs_are_short_and_most_time_is_in_long_ones() {
        let made = jobs(&Recipe { jobs: 40_000, ..Recipe::default() });
        let mut durations: Vec<i64> = made.iter().map(|job| job.duration.unwrap().0).collect();
        durations.sort_unstable();
        let median = durations[durations.len() / 2];
        assert!((Span::mins(15).0..Span::mins(40).0).contains(&median), "{median}");
        let all: i64 = durations.iter().sum();
        let longest: i64 = durations[durations.len() * 9 / 10..].iter().sum();
        assert!(longest as f64 > 0.6 * all as f64, "{longest} of {all}");
        assert!(made.iter().all(|job| job.limit >= job.duration));
    }

    #[test]
    fn sizes_follow_the_recipe_and_the_first_team_is_the_largest() {
        let made = jobs(&Recipe { jobs: 20_000, ..Recipe::default() });
        let singles = made.iter().filter(|job| job.gpus == Milli::ONE).count();
        assert!((12_500..15_500).contains(&singles), "{singles}");
        let of = |team: &str| made.iter().filter(|job| job.team.as_deref() == Some(team)).count();
        assert!(of("team-0") > of("team-1") && of("team-1") > of("team-7"));
    }
}
