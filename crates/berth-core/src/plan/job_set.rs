//! A set of jobs that is asked far more often than it is added to: one bit for each, and nothing at
//! all while it is empty.

use crate::ix::JobIx;

#[derive(Debug, Clone, Default)]
pub(crate) struct JobSet(Vec<u64>);

impl JobSet {
    pub fn contains(&self, job: JobIx) -> bool {
        self.0.get(job.at() / 64).is_some_and(|word| word >> (job.at() % 64) & 1 == 1)
    }

    pub fn insert(&mut self, job: JobIx) {
        let word = job.at() / 64;
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= 1 << (job.at() % 64);
    }
}
