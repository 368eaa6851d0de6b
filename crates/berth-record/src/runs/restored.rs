//! Runs that a user has restored. Berth does not update deleted runs, so they catch up with their jobs.

use super::book::{Runs, now};
use super::{bring, told};
use berth_model::JobId;
use berth_tracker::grammar::{self, Entity};
use berth_tracker::{Restored, Result, Run, RunQuery, View};

/// Runs to read at once.
const PAGE: usize = 200;
/// Runs of jobs whose end is missing.
const OPEN: &str = "tags.`berth.job` IS NOT NULL AND tags.`berth.end` IS NULL";

impl Runs {
    /// Updates restored runs from their jobs. One run has its status when this returns; its figures, and
    /// the runs of a whole experiment, follow.
    pub async fn restored(&self, what: &Restored) -> Result<()> {
        match what {
            Restored::Run(id) => {
                let Some(head) = self.store.run_head(id).await? else { return Ok(()) };
                let run = bring::read(&*self.store, &head).await?;
                let Some(job) = job_of(&run) else { return Ok(()) };
                self.restored.put(job);
                // The tag may name the job of another run.
                match self.facts(job).await?.filter(|facts| facts.run == run.id) {
                    Some(facts) => bring::brought(&*self.store, &facts, now()).await.map(drop),
                    None => Ok(()),
                }
            }
            Restored::Experiment(no) => self.restored_experiment(*no).await,
        }
    }

    async fn restored_experiment(&self, no: i64) -> Result<()> {
        let clauses = grammar::filter(Entity::Run, OPEN)?;
        let (experiments, orders) = (vec![no], Vec::new());
        let mut query =
            RunQuery { experiments, view: View::Active, clauses, orders, offset: 0, limit: PAGE };
        loop {
            let found = self.store.search(&query).await?;
            for run in self.store.runs(&found).await? {
                job_of(&run).into_iter().for_each(|job| self.restored.put(job));
            }
            if found.len() < PAGE {
                return Ok(());
            }
            query.offset += PAGE as u64;
        }
    }
}

fn job_of(run: &Run) -> Option<JobId> {
    told::tag(run, told::JOB)?.parse().ok()
}
