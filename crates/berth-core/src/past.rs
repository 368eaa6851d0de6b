//! What earlier runs tell of later ones.

use crate::ix::JobIx;
use crate::state::State;
use berth_model::{Milli, Name, Outcome};
use std::collections::BTreeMap;

/// Names that are remembered. There is no end of names that come only once, such as those of pods.
const MOST_NAMES: usize = 1 << 16;

/// By user and name of the job.
pub(crate) type History = BTreeMap<(Name, Name), Past>;

/// How a user's jobs of one name ran, relative to their time limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Past {
    pub runs: u32,
    pub ratio: Milli,
}

impl State {
    /// Remembers how long the job ran, relative to its limit.
    pub(crate) fn learn(&mut self, ix: JobIx, outcome: Outcome) {
        let job = self.jobs.get(ix);
        let Some(started) = job.started.filter(|_| outcome == Outcome::Done) else { return };
        let ran = self.now - started + job.saved;
        let ratio = (i128::from(ran.0) * 1_000 / i128::from(job.time_limit.0.max(1))) as i64;
        let ratio = ratio.clamp(1, 1_000);
        let key = (job.spec.user.clone(), job.spec.name.clone());
        if !self.history.contains_key(&key) {
            make_room(&mut self.history, MOST_NAMES);
        }
        let past = self.history.entry(key).or_insert(Past { runs: 0, ratio: Milli(ratio) });
        // The mean of up to 32 runs, then one that forgets at that rate.
        past.runs = past.runs.saturating_add(1);
        let weight = i64::from(past.runs.min(32));
        past.ratio = Milli((past.ratio.0 * (weight - 1) + ratio) / weight);
    }
}

/// Where it is full, names that came seldom are forgotten: many at once, so that it costs little
/// for each that comes.
fn make_room(history: &mut History, most: usize) {
    let mut seldom = 1;
    while history.len() >= most {
        history.retain(|_, past| past.runs > seldom);
        seldom *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_came_once_make_room_for_others_and_those_that_come_often_stay() {
        let key = |at: u32| (Name::new("kim"), Name::new(&format!("job-{at}")));
        let past = |runs| Past { runs, ratio: Milli(500) };
        let mut history: History = (0..8).map(|at| (key(at), past(1 + at / 6))).collect();
        make_room(&mut history, 9);
        assert_eq!(history.len(), 8);
        make_room(&mut history, 8);
        assert_eq!(history.into_keys().collect::<Vec<_>>(), [key(6), key(7)]);
        let mut history: History = (0..8).map(|at| (key(at), past(3))).collect();
        make_room(&mut history, 8);
        assert!(history.is_empty());
    }
}
