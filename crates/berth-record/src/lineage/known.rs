//! Jobs, data and rights. The tracking store does not have them.

use berth_engine::Detail;
use berth_model::{DataRef, JobId, RunSpec};
use berth_service::Fault;
use berth_store::{DataVersionRow, JobRow};

/// A job, and whether the caller may see it.
#[derive(Debug, Clone)]
pub(crate) struct Job {
    pub row: JobRow,
    pub detail: Option<Detail>,
    /// The caller may see it.
    pub visible: bool,
}

/// The usage of a job.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Spent {
    pub cost_micros: i64,
    /// Milliseconds of one whole GPU.
    pub gpu_ms: i64,
}

impl Job {
    pub fn run(&self) -> Option<&RunSpec> {
        self.detail.as_ref().and_then(|detail| detail.workload.run()).map(|run| &**run)
    }

    /// The data that it was submitted with.
    pub fn data(&self) -> Vec<(String, DataRef)> {
        let Some(run) = self.run() else { return Vec::new() };
        run.data
            .iter()
            .filter_map(|(path, data)| Some((path.clone(), data.parse().ok()?)))
            .collect()
    }

    /// The image of its containers.
    pub fn image(&self) -> Option<&str> {
        Some(&self.run()?.container.as_ref()?.image)
    }
}

/// What a lineage needs from outside of the tracking store, filtered by the rights of the caller.
pub(crate) trait Known: Sync {
    /// Whether the caller may read the runs of the team.
    fn reads(&self, team: &str) -> bool;
    /// The same for the entities of a user, as an error that names the missing right.
    fn must_read(&self, team: &str, user: &str) -> Result<(), Fault>;
    /// Whether the caller may read the data of the team.
    fn reads_data(&self, team: &str) -> bool;
    fn job(&self, id: JobId) -> impl Future<Output = Result<Option<Job>, Fault>> + Send;
    fn spent(&self, job: &Job) -> impl Future<Output = Result<Spent, Fault>> + Send;
    /// All versions of a team's data, or of one name.
    fn versions(
        &self,
        team: &str,
        name: Option<&str>,
    ) -> impl Future<Output = Result<Vec<DataVersionRow>, Fault>> + Send;
}
