//! The id of a job's tracked run, and the variables with which the client of MLflow logs to it. The id
//! derives from the job alone, so that every module can compute it without a query.

use berth_engine::DEFAULT_PROJECT;
use berth_model::run::{Network, RunSpec};
use berth_model::{JobId, JobKind, Time};
use ring::digest::{Context, SHA256};

/// The domain of the digest, so that it differs from other digests of the same job.
const PURPOSE: &[u8] = b"berth: the tracked run of a job, 1\0";
/// The bytes of an id, as many as MLflow's ids have.
const BYTES: usize = 16;

/// The id of the run of a job, or of one element of an array. The time of the submission distinguishes it
/// from a job of the same number in an earlier database.
pub fn run_id(job: JobId, submitted: Time) -> String {
    let mut digest = Context::new(&SHA256);
    digest.update(PURPOSE);
    digest.update(format!("{job}\0{}", submitted.0).as_bytes());
    hex::encode(&digest.finish().as_ref()[..BYTES])
}

/// The name of the experiment for the run of a job; `None` for the default experiment of the team.
/// `experiment` of the job file takes precedence over its project.
pub fn experiment<'a>(experiment: &'a str, project: &'a str) -> Option<&'a str> {
    let named = |name: &'a str| Some(name).filter(|name| !name.is_empty());
    named(experiment).or_else(|| named(project).filter(|project| *project != DEFAULT_PROJECT))
}

/// The variable with the tracking server. A job that sets it tracks there.
pub const URI: &str = "MLFLOW_TRACKING_URI";
pub const TOKEN: &str = "MLFLOW_TRACKING_TOKEN";
pub const RUN: &str = "MLFLOW_RUN_ID";
pub const CERTIFICATE: &str = "MLFLOW_TRACKING_SERVER_CERT_PATH";
/// Clients refuse a token in combination with these.
const OTHER_WAYS: [&str; 3] =
    ["MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD", "MLFLOW_TRACKING_AUTH"];

/// Whether to set the variables of this server: not if the job sets another server or credentials, or has
/// no network.
pub fn is_told(run: &RunSpec) -> bool {
    let sets = |name: &str| run.env.contains_key(name) || run.secrets.contains_key(name);
    run.network == Network::Machine && !sets(URI) && !OTHER_WAYS.into_iter().any(sets)
}

/// Whether the client resumes the run of the job. In a notebook, each kernel begins new runs.
pub fn is_resumed(run: &RunSpec) -> bool {
    run.kind == JobKind::Job
}

/// Whether to set the certificates of the server, which the client then trusts exclusively: only if they
/// include their own root, and the job does not set others.
pub fn is_told_certificates(run: &RunSpec, pem: &str) -> bool {
    !run.env.contains_key("MLFLOW_TRACKING_INSECURE_TLS") && crate::pem::has_root(pem)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_job_and_element_and_submission_has_a_run_of_its_own() {
        let job = JobId::new(17);
        let ids = [
            run_id(job, Time(5)),
            run_id(job.element(0), Time(5)),
            run_id(job.element(1), Time(5)),
            run_id(JobId::new(18), Time(5)),
            run_id(job, Time(6)),
        ];
        let different: std::collections::BTreeSet<&String> = ids.iter().collect();
        assert_eq!(different.len(), ids.len());
        assert_eq!(ids[0], run_id(job, Time(5)));
        assert!(ids.iter().all(|id| id.len() == 32 && id.bytes().all(|b| b.is_ascii_hexdigit())));
    }

    #[test]
    fn a_job_is_compared_where_it_says_else_in_its_project() {
        assert_eq!(experiment("lr-study", "chat"), Some("lr-study"));
        assert_eq!(experiment("", "chat"), Some("chat"));
        assert_eq!(experiment("", "default"), None);
        assert_eq!(experiment("", ""), None);
    }
}
