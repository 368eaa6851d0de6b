//! The processes of a job that have logs of their own, and which of them a request is about.

use berth_api::{Code, wire};
use berth_engine::Detail;
use berth_model::JobId;
use berth_model::run::Launch;
use berth_service::Fault;
use berth_store::JobRow;

/// How many logs a job has: so many tasks, each with so many ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Layout {
    pub tasks: u32,
    pub per_task: u32,
}

/// Whose output is wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Which {
    All,
    Task(u32),
    /// A rank within its task.
    One {
        task: u32,
        rank: u32,
    },
}

impl Which {
    pub fn has_task(self, task: u32) -> bool {
        match self {
            Which::All => true,
            Which::Task(wanted) | Which::One { task: wanted, .. } => wanted == task,
        }
    }

    pub fn has_rank(self, rank: u32) -> bool {
        match self {
            Which::All | Which::Task(_) => true,
            Which::One { rank: wanted, .. } => wanted == rank,
        }
    }
}

impl Layout {
    /// The ranks of a pod, and those that torchrun starts, print into the log of their task.
    pub fn of(row: &JobRow, in_pods: bool) -> Layout {
        let detail: Option<Detail> = serde_json::from_str(&row.detail).ok();
        let tasks = detail.as_ref().map_or(1, |detail| detail.nodes.max(1));
        let run = detail.as_ref().and_then(|detail| detail.workload.run());
        let ranks = run.filter(|run| run.launch == Launch::Ranks && !in_pods);
        Layout { tasks, per_task: ranks.map_or(1, |run| run.ranks.max(1)) }
    }

    pub fn ranks(&self) -> u32 {
        self.tasks.saturating_mul(self.per_task)
    }

    /// The rank over the whole job.
    pub fn job_rank(&self, task: u32, rank: u32) -> u32 {
        task.saturating_mul(self.per_task).saturating_add(rank)
    }

    /// What a request is about. `task` and `rank` are those that it names.
    pub fn which(
        &self,
        job: JobId,
        task: Option<u32>,
        rank: Option<u32>,
        all: bool,
    ) -> Result<Which, Fault> {
        let Layout { tasks, per_task } = *self;
        if let Some(task) = task.filter(|task| *task >= tasks) {
            return Err(unknown(job, "task", task, tasks));
        }
        match (task, rank) {
            (Some(_), Some(rank)) if rank >= per_task => Err(unknown(job, "rank", rank, per_task)),
            (None, Some(rank)) if rank >= self.ranks() => {
                Err(unknown(job, "rank", rank, self.ranks()))
            }
            (Some(task), Some(rank)) => Ok(Which::One { task, rank }),
            (None, Some(rank)) => Ok(Which::One { task: rank / per_task, rank: rank % per_task }),
            (Some(task), None) if all => Ok(Which::Task(task)),
            (None, None) if all => Ok(Which::All),
            (task, None) => Ok(Which::One { task: task.unwrap_or(0), rank: 0 }),
        }
    }

    pub fn wanted(&self, job: JobId, query: &wire::LogQuery) -> Result<Which, Fault> {
        self.which(job, query.task, query.rank, query.all)
    }
}

fn unknown(job: JobId, what: &str, wanted: u32, count: u32) -> Fault {
    let there = match count {
        1 => format!("one {what}, number 0"),
        count => format!("{count} {what}s, from 0 to {}", count - 1),
    };
    let detail = format!("job {job} has {there}; there is no {what} {wanted}");
    let next = format!("`berth logs {job}` shows what all of them printed");
    Fault::new(Code::NotFound, detail).next(next)
}

#[cfg(test)]
mod tests {
    use super::*;

    const JOB: JobId = JobId::new(17);

    #[test]
    fn a_rank_counts_over_the_whole_job_and_within_a_task_that_is_named() {
        let layout = Layout { tasks: 2, per_task: 4 };
        let which = |task, rank, all| layout.which(JOB, task, rank, all).unwrap();
        assert_eq!(which(None, Some(6), false), Which::One { task: 1, rank: 2 });
        assert_eq!(which(Some(1), Some(2), true), Which::One { task: 1, rank: 2 });
        assert_eq!(which(None, None, true), Which::All);
        assert_eq!(which(Some(1), None, true), Which::Task(1));
        assert_eq!(which(None, None, false), Which::One { task: 0, rank: 0 });
        assert_eq!(layout.job_rank(1, 2), 6);
    }

    #[test]
    fn a_rank_or_task_that_is_not_there_is_an_error_that_says_which_there_are() {
        let layout = Layout { tasks: 2, per_task: 4 };
        let says = |task, rank| layout.which(JOB, task, rank, true).unwrap_err().0.detail.clone();
        assert_eq!(says(None, Some(8)), "job 17 has 8 ranks, from 0 to 7; there is no rank 8");
        assert_eq!(says(Some(0), Some(4)), "job 17 has 4 ranks, from 0 to 3; there is no rank 4");
        assert_eq!(says(Some(2), None), "job 17 has 2 tasks, from 0 to 1; there is no task 2");
        let alone = Layout { tasks: 1, per_task: 1 };
        let refused = alone.which(JOB, None, Some(1), true).unwrap_err().0;
        assert_eq!(refused.detail, "job 17 has one rank, number 0; there is no rank 1");
        assert!(refused.next.contains("berth logs 17"));
    }
}
