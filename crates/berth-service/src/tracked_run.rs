//! What the tracked run of a job is called. The id follows from the job alone, so that whatever
//! starts, shows or tracks a job knows it without asking. And what the client of MLflow in a job has to
//! know to log there.

use berth_engine::DEFAULT_PROJECT;
use berth_model::run::{Network, RunSpec};
use berth_model::{JobId, JobKind, Time};
use ring::digest::{Context, SHA256};

/// What the digest is for, so that no other digest of the same job is equal.
const PURPOSE: &[u8] = b"berth: the tracked run of a job, 1\0";
/// Bytes of the digest that an id has, as many as those of other runs.
const BYTES: usize = 16;

/// The id of the run of a job, or of one element of an array. When it was submitted tells it from a
/// job of the same number in an earlier database.
pub fn run_id(job: JobId, submitted: Time) -> String {
    let mut digest = Context::new(&SHA256);
    digest.update(PURPOSE);
    digest.update(format!("{job}\0{}", submitted.0).as_bytes());
    hex::encode(&digest.finish().as_ref()[..BYTES])
}

/// The name of the experiment that the run of a job belongs to; nothing for the default one of its
/// team. The job's own word for it counts more than its project.
pub fn experiment<'a>(experiment: &'a str, project: &'a str) -> Option<&'a str> {
    let named = |name: &'a str| Some(name).filter(|name| !name.is_empty());
    named(experiment).or_else(|| named(project).filter(|project| *project != DEFAULT_PROJECT))
}

/// The variable that names a tracking server. A job that sets it tracks where it says.
pub const URI: &str = "MLFLOW_TRACKING_URI";
pub const TOKEN: &str = "MLFLOW_TRACKING_TOKEN";
pub const RUN: &str = "MLFLOW_RUN_ID";
pub const CERTIFICATE: &str = "MLFLOW_TRACKING_SERVER_CERT_PATH";
/// Clients refuse a token beside these.
const OTHER_WAYS: [&str; 3] =
    ["MLFLOW_TRACKING_USERNAME", "MLFLOW_TRACKING_PASSWORD", "MLFLOW_TRACKING_AUTH"];

/// Whether the client of MLflow in a job is told of this server: not where the job tracks elsewhere or
/// signs in by itself, or reaches no network.
pub fn is_told(run: &RunSpec) -> bool {
    let sets = |name: &str| run.env.contains_key(name) || run.secrets.contains_key(name);
    run.network == Network::Machine && !sets(URI) && !OTHER_WAYS.into_iter().any(sets)
}

/// Whether its client resumes the run of the job. In a notebook each kernel begins runs of its own.
pub fn is_resumed(run: &RunSpec) -> bool {
    run.kind == JobKind::Job
}

/// Whether the client is told of the certificates of a server, which are then all that it trusts: where
/// they lead to a root of their own, and the job does not say otherwise.
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
