//! Learning from a run that ended well.

use crate::ix::JobIx;
use crate::state::State;
use crate::state::history::{MAX_NAMES, PastRuns, make_room};
use berth_model::{Milli, Outcome};

impl State {
    /// Remembers how long the job ran, relative to its limit.
    pub(crate) fn record_run(&mut self, ix: JobIx, outcome: Outcome) {
        let job = self.jobs.get(ix);
        let Some(started) = job.started.filter(|_| outcome == Outcome::Done) else { return };
        // A part of no limit is no measure.
        if job.time_limit.is_unlimited() {
            return;
        }
        let ran = self.now - started + job.saved;
        let ratio = (i128::from(ran.0) * 1_000 / i128::from(job.time_limit.0.max(1))) as i64;
        let ratio = ratio.clamp(1, 1_000);
        let key = (job.spec.user.clone(), job.spec.name.clone());
        if !self.history.contains_key(&key) {
            make_room(&mut self.history, MAX_NAMES);
        }
        let past = self.history.entry(key).or_insert(PastRuns { runs: 0, ratio: Milli(ratio) });
        // The mean of up to 32 runs, then one that forgets at that rate.
        past.runs = past.runs.saturating_add(1);
        let weight = i64::from(past.runs.min(32));
        past.ratio = Milli((past.ratio.0 * (weight - 1) + ratio) / weight);
    }
}
