//! Names of the objects of a managed job.

use berth_model::PodRef;
use berth_model::{JobId, LeaseId};
use berth_service::token;

/// The container that runs the command.
pub const CONTAINER: &str = "main";
/// The container before it that fetches the code of the job.
pub const FETCH: &str = "fetch-code";
/// The longest name of a host.
pub const LONGEST: usize = 63;
/// Room for the attempt and the task behind a job's name.
const ROOM: usize = 16;

/// The pod of a lease, whichever one has that name.
pub fn pod_ref(namespace: &str, name: &str, lease: LeaseId) -> PodRef {
    let LeaseId { job, task, attempt } = lease;
    let name = format!("{}-{attempt}-{task}", of_job(name, job));
    PodRef { namespace: namespace.to_owned(), name, uid: String::new() }
}

/// Whether a pod is there and called as that of a lease is.
pub fn is_pod_of(namespace: &str, name: &str, lease: LeaseId, pod: &PodRef) -> bool {
    let made = pod_ref(namespace, name, lease);
    (&made.namespace, &made.name) == (&pod.namespace, &pod.name)
}

/// Whether a pod could be that of a lease, whatever its job is called.
pub fn ends_as(pod: &str, lease: LeaseId) -> bool {
    let LeaseId { job, task, attempt } = lease;
    pod.ends_with(&format!("{}-{attempt}-{task}", number(job)))
}

/// The Secret beside a pod. Its name is random, so that no user can create it first.
pub fn secret(pod: &str) -> String {
    format!("{pod}-{}", token::random::<8>())
}

fn number(job: JobId) -> String {
    match job.element {
        None => format!("-j{}", job.number),
        Some(element) => format!("-j{}e{element}", job.number),
    }
}

/// What its service is called, and its pods begin with. The number comes behind a letter, so that
/// no two jobs end up with one name whatever they are called.
pub fn of_job(name: &str, job: JobId) -> String {
    let number = number(job);
    let mut slug = slug(name);
    if !slug.starts_with(|first: char| first.is_ascii_lowercase()) {
        slug.insert_str(0, "job-");
    }
    slug.truncate(LONGEST - ROOM - number.len());
    format!("{}{number}", slug.trim_end_matches('-'))
}

/// A task's name inside its service; the same for every attempt.
pub fn host(task: u32) -> String {
    format!("task-{task}")
}

/// Lowercase letters, digits and dashes, beginning and ending with none.
pub fn slug(name: &str) -> String {
    let plain = name.chars().map(|c| match c.to_ascii_lowercase() {
        c if c.is_ascii_lowercase() || c.is_ascii_digit() => c,
        _ => '-',
    });
    let plain: String = plain.collect();
    plain.trim_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pods_of_different_leases_never_have_one_name() {
        let name = |name: &str, job: JobId, task, attempt| {
            pod_ref("n", name, LeaseId { job, task, attempt }).name
        };
        assert_eq!(name("Train_1.5B", JobId::new(17), 3, 0), "train-1-5b-j17-0-3");
        assert_eq!(name("7b", JobId::new(17).element(2), 0, 1), "job-7b-j17e2-1-0");
        assert_ne!(
            name("x-j17e3", JobId::new(3), 1, 0),
            name("x", JobId::new(17).element(3), 1, 0)
        );
        let long = name(&"long-".repeat(30), JobId::new(123_456_789).element(9_999), 511, 12);
        assert!(long.len() <= LONGEST && long.ends_with("-j123456789e9999-12-511"), "{long}");
        assert_eq!(name("---", JobId::new(1), 0, 0), "job-j1-0-0");
    }

    #[test]
    fn a_pod_is_known_by_its_whole_name_and_its_namespace() {
        let lease = LeaseId { job: JobId::new(17).element(2), task: 0, attempt: 1 };
        let pod = pod_ref("nlp", "train", lease);
        assert!(is_pod_of("nlp", "train", lease, &pod) && ends_as(&pod.name, lease));
        assert!(!is_pod_of("vision", "train", lease, &pod));
        assert!(!is_pod_of("nlp", "other", lease, &pod));
        let next = LeaseId { attempt: 2, ..lease };
        assert!(!is_pod_of("nlp", "train", next, &pod) && !ends_as(&pod.name, next));
        assert!(!ends_as("web-0", lease));
        assert_ne!(secret(&pod.name), secret(&pod.name));
    }
}
