//! Jobs, ordered by the time of their next update.

use berth_model::{JobId, Time};
use std::collections::{BTreeMap, BTreeSet};

/// A queue of jobs by time. Each job is in it at most once.
#[derive(Debug, Default)]
pub struct Due {
    by_time: BTreeSet<(Time, JobId)>,
    times: BTreeMap<JobId, Time>,
}

impl Due {
    /// Schedules a job, in place of its earlier time.
    pub fn set(&mut self, job: JobId, at: Time) {
        if let Some(before) = self.times.insert(job, at) {
            self.by_time.remove(&(before, job));
        }
        self.by_time.insert((at, job));
    }

    pub fn remove(&mut self, job: JobId) {
        if let Some(at) = self.times.remove(&job) {
            self.by_time.remove(&(at, job));
        }
    }

    pub fn len(&self) -> usize {
        self.times.len()
    }

    pub fn soonest(&self) -> Option<Time> {
        self.by_time.first().map(|(at, _)| *at)
    }

    /// The soonest first.
    pub fn iter(&self) -> impl Iterator<Item = (JobId, Time)> + '_ {
        self.by_time.iter().map(|(at, job)| (*job, *at))
    }

    /// Takes out the jobs whose time has come, but no more than so many.
    pub fn take(&mut self, now: Time, most: usize) -> Vec<JobId> {
        let due = self.iter().take_while(|(_, at)| *at <= now).take(most);
        let due: Vec<JobId> = due.map(|(job, _)| job).collect();
        for job in &due {
            self.remove(*job);
        }
        due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_job_is_due_once_and_at_the_time_that_was_said_last() {
        let (one, other) = (JobId::new(1), JobId::new(2).element(7));
        let mut due = Due::default();
        due.set(one, Time(10));
        due.set(other, Time(20));
        due.set(one, Time(30));
        assert_eq!((due.len(), due.soonest()), (2, Some(Time(20))));
        assert_eq!(due.take(Time(10), 9), []);
        assert_eq!(due.take(Time(30), 1), [other]);
        assert_eq!(due.take(Time(30), 9), [one]);
        due.set(one, Time(5));
        due.remove(one);
        assert_eq!((due.len(), due.soonest()), (0, None));
    }
}
