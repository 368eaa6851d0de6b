//! How long earlier runs of a user and a job name took, relative to their time limits.

use berth_model::{Milli, Name};
use std::collections::BTreeMap;

/// Names that are remembered. There is no end of names that come only once, such as those of pods.
pub(crate) const MAX_NAMES: usize = 1 << 16;

/// By user and name of the job.
pub(crate) type History = BTreeMap<(Name, Name), PastRuns>;

/// How a user's jobs of one name ran, relative to their time limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PastRuns {
    pub runs: u32,
    pub ratio: Milli,
}

/// Where it is full, names that came seldom are forgotten: many at once, so that it costs little
/// for each that comes.
pub(crate) fn make_room(history: &mut History, most: usize) {
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
        let past = |runs| PastRuns { runs, ratio: Milli(500) };
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
