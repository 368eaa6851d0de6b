//! What figures belong to.

use berth_model::{JobId, LeaseId};
use std::fmt;
use std::str::FromStr;

/// A GPU of a node, or one attempt of a task. Its text is the key in the database.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Series {
    Gpu { node: String, index: u32 },
    Task(LeaseId),
}

impl fmt::Display for Series {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Series::Gpu { node, index } => write!(f, "gpu/{node}/{index}"),
            Series::Task(lease) => write!(f, "task/{lease}"),
        }
    }
}

/// The text names no series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("this is no series of figures")]
pub struct NoSeries;

impl FromStr for Series {
    type Err = NoSeries;

    fn from_str(text: &str) -> Result<Series, NoSeries> {
        let (kind, rest) = text.split_once('/').ok_or(NoSeries)?;
        match kind {
            "gpu" => {
                let (node, index) = rest.rsplit_once('/').ok_or(NoSeries)?;
                let index = index.parse().map_err(|_| NoSeries)?;
                Ok(Series::Gpu { node: node.to_owned(), index })
            }
            "task" => {
                let (job, rest) = rest.split_once('/').ok_or(NoSeries)?;
                let (task, attempt) = rest.split_once('#').ok_or(NoSeries)?;
                let job: JobId = job.parse().map_err(|_| NoSeries)?;
                let number = |text: &str| text.parse().map_err(|_| NoSeries);
                Ok(Series::Task(LeaseId { job, task: number(task)?, attempt: number(attempt)? }))
            }
            _ => Err(NoSeries),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_is_found_by_its_text() {
        let lease = LeaseId { job: JobId::new(17).element(3), task: 2, attempt: 1 };
        let all = [Series::Gpu { node: "a/b".to_owned(), index: 7 }, Series::Task(lease)];
        assert_eq!(all.each_ref().map(ToString::to_string), ["gpu/a/b/7", "task/17_3/2#1"]);
        for series in all {
            assert_eq!(series.to_string().parse(), Ok(series));
        }
        for text in ["", "gpu", "gpu/a", "gpu/a/x", "task/1/2", "disk/a/1"] {
            assert_eq!(text.parse::<Series>(), Err(NoSeries), "{text}");
        }
    }
}
