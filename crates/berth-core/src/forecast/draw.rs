//! How long jobs run, drawn from history.

use crate::state::history::PastRuns;
use berth_model::{JobId, Span, SplitMix64};

/// Each job of each run draws from a stream of its own, so that what one job draws does not depend
/// on which others there are.
pub(super) fn stream_of(seed: u64, run: u32, job: JobId) -> SplitMix64 {
    let mut rng = SplitMix64::new(seed);
    let element = job.element.map_or(0, |element| u64::from(element) + 1);
    for part in [u64::from(run), job.number, element] {
        rng = SplitMix64::new(rng.next_u64() ^ part);
    }
    rng
}

/// Steps of a table of quantiles.
const QUANTILES: usize = 16;

/// Without history: the part of the time limit that is used, in thousandths, from the quickest
/// sixteenth of jobs to the slowest. An assumption rather than a measurement: some fail at once,
/// most limits are generous, and one job in sixteen runs into its limit.
const UNKNOWN: [i64; QUANTILES + 1] =
    [2, 10, 25, 50, 90, 140, 200, 270, 350, 430, 520, 610, 710, 810, 910, 1_000, 1_000];

/// With history: how far from the mean, in thousandths of the room between the mean and the nearer
/// end. A mean of 1 (it always runs into its limit) leaves no room, and so no doubt.
const SPREAD: [i64; QUANTILES + 1] =
    [-900, -620, -470, -360, -270, -190, -120, -60, 0, 60, 120, 190, 270, 360, 470, 620, 900];

/// Runs after which history is trusted alone; before, it is by so many eighths.
const FULL_TRUST_RUNS: u64 = 8;

/// Draws that may come out shorter than the job has run already.
const MAX_DRAWS: u32 = 32;

fn quantile(table: &[i64; QUANTILES + 1], rng: &mut SplitMix64) -> i64 {
    let at = rng.below(QUANTILES as u64 * 1_000);
    let (step, rest) = ((at / 1_000) as usize, (at % 1_000) as i64);
    table[step] + (table[step + 1] - table[step]) * rest / 1_000
}

/// How long a job runs in all: longer than it has already, and no longer than its limit.
pub(super) fn duration(
    past: Option<PastRuns>,
    limit: Span,
    ran: Span,
    rng: &mut SplitMix64,
) -> Span {
    for _ in 0..MAX_DRAWS {
        let ratio = match past {
            Some(past) if rng.below(FULL_TRUST_RUNS) < u64::from(past.runs) => {
                let mean = past.ratio.0.clamp(0, 1_000);
                mean + quantile(&SPREAD, rng) * mean.min(1_000 - mean) / 1_000
            }
            _ => quantile(&UNKNOWN, rng),
        };
        let drawn = Span((i128::from(limit.0) * i128::from(ratio) / 1_000) as i64);
        if drawn > ran {
            return drawn.clamp(Span::secs(1).min(limit), limit);
        }
    }
    // It has outrun what is known of its like: any time until its limit.
    let left = (limit - ran).0.max(1);
    ran + Span(rng.below(left as u64) as i64 + 1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_model::Milli;

    fn draws(past: Option<PastRuns>, ran: Span) -> Vec<Span> {
        let draw =
            |run| duration(past, Span::hours(10), ran, &mut stream_of(7, run, JobId::new(1)));
        let mut all: Vec<Span> = (0..1_000).map(draw).collect();
        all.sort();
        all
    }

    #[test]
    fn a_job_runs_longer_than_it_has_and_no_longer_than_its_limit() {
        for ran in [Span::ZERO, Span::hours(3), Span::mins(599)] {
            let all = draws(None, ran);
            assert!(all[0] > ran, "{} after {ran}", all[0]);
            assert!(all[999] <= Span::hours(10));
        }
    }

    #[test]
    fn history_moves_the_middle_and_leaves_a_spread() {
        let past = Some(PastRuns { runs: 20, ratio: Milli(400) });
        let all = draws(past, Span::ZERO);
        assert!(Span::mins(220) < all[500] && all[500] < Span::mins(260), "{}", all[500]);
        assert!(all[100] < Span::hours(3) && Span::hours(5) < all[900]);
    }

    #[test]
    fn jobs_that_always_run_into_their_limit_are_certain() {
        let past = Some(PastRuns { runs: 8, ratio: Milli(1_000) });
        let all = draws(past, Span::ZERO);
        assert!(all.iter().all(|drawn| *drawn == Span::hours(10)));
    }
}
