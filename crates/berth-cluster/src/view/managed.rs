//! A pod of a managed job as it was last observed.

use super::managed_names::{FETCH, ends_as};
use berth_kube::object::{ContainerStatus, Pod, Terminated};
use berth_model::Ended;
use berth_model::{Bytes, LeaseId, Name, Span, Time};
use std::collections::BTreeMap;

pub const MANAGED: &str = "app.kubernetes.io/managed-by";
pub const BERTH: &str = "berth";
pub const JOB: &str = "berth.dev/job";
pub const TASK: &str = "berth.dev/task";
pub const ATTEMPT: &str = "berth.dev/attempt";
/// On pods that have a Secret beside them: its name.
pub const SECRET: &str = "berth.dev/secret";

/// What a node tries again and cannot do for so long will not come.
const START_TIMEOUT: Span = Span::mins(10);
/// Reasons after which the kubelet tries again: it may find the image, or a device that another
/// container has released.
const RETRIED_REASONS: [&str; 4] =
    ["CreateContainerError", "ErrImagePull", "ImagePullBackOff", "RunContainerError"];
/// It waits for what runs before it.
const INITIALIZING: &str = "PodInitializing";
/// What no waiting mends.
const PERMANENT_REASONS: [&str; 3] = ["ErrImageNeverPull", "InvalidImageName", "StartError"];
/// What is said while the code of a job is on its way.
const FETCHING: &str = "its code or data is being fetched";
/// A container that is ended by a signal ends with more than this.
const SIGNALLED: i32 = 128;
/// So are these, unless it is the Secret that is missing: it is made after the pod.
const MISCONFIGURED: &str = "CreateContainerConfigError";

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ManagedPodView {
    pub lease: LeaseId,
    pub is_ready: bool,
    created: Time,
    /// Why its node ended it or never took it, where the node did.
    reason: String,
    /// Why its container has not started, or the one that fetches its code.
    waiting: Option<(String, String)>,
    end: Option<(i32, bool)>,
    /// Nothing for jobs without code, and until its node says something of it.
    fetch: Option<Fetch>,
    /// The data that its node keeps, as the container that fetches data has reported.
    pub node_data: Option<BTreeMap<Name, Bytes>>,
}

/// What such a report begins with.
const REPORT: &str = "berth-data: ";

/// Nothing for anything else that a container left as its last words.
fn node_data(status: &ContainerStatus) -> Option<BTreeMap<Name, Bytes>> {
    let end = status.state.terminated.as_ref().filter(|end| end.exit_code == 0)?;
    let report = end.message.strip_prefix(REPORT)?;
    let kept: BTreeMap<String, u64> = serde_json::from_str(report).ok()?;
    let sized =
        |(name, bytes): (String, u64)| Some((Name::from(name), Bytes(i64::try_from(bytes).ok()?)));
    Some(kept.into_iter().filter_map(sized).collect())
}

/// What the container does that fetches the code of the job.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Fetch {
    Waits,
    Runs,
    Done,
    /// Its exit code, and what it said or its node.
    Failed(i32, String),
}

impl Fetch {
    fn read(status: &ContainerStatus) -> Fetch {
        match (&status.state.terminated, &status.state.waiting) {
            (Some(end), _) if end.exit_code == 0 => Fetch::Done,
            (Some(end), _) => Fetch::Failed(end.exit_code, last_words(end)),
            (None, Some(_)) => Fetch::Waits,
            (None, None) => Fetch::Runs,
        }
    }
}

/// The last line of what it said.
fn last_words(end: &Terminated) -> String {
    let mut lines = end.message.lines().map(str::trim);
    match lines.rfind(|line| !line.is_empty()) {
        Some(line) => line.to_owned(),
        None => end.reason.to_string(),
    }
}

impl ManagedPodView {
    /// Nothing for pods without Berth's labels. A user can write the labels and the name, too, so
    /// the state decides whether the pod is Berth's.
    pub fn read(pod: &Pod) -> Option<ManagedPodView> {
        let meta = &pod.metadata;
        if meta.label(MANAGED) != Some(BERTH) {
            return None;
        }
        let lease = LeaseId {
            job: meta.label(JOB)?.parse().ok()?,
            task: meta.label(TASK)?.parse().ok()?,
            attempt: meta.label(ATTEMPT)?.parse().ok()?,
        };
        if !ends_as(&meta.name, lease) {
            return None;
        }
        let status = &pod.status;
        let state = status.container_statuses.iter().map(|one| &one.state).next();
        let before = status.init_container_statuses.iter();
        // The command waits for those before it, which may wait for something else.
        let waits = before.clone().filter_map(|one| one.state.waiting.as_ref());
        let mut waits = waits.filter(|waiting| &*waiting.reason != INITIALIZING);
        let waiting = waits.next().or(state.and_then(|state| state.waiting.as_ref()));
        let fetching = before.clone().find(|one| &*one.name == FETCH);
        let fetch = fetching.map(Fetch::read);
        let ready = |one: &&berth_kube::object::Condition| &*one.kind == "Ready";
        Some(ManagedPodView {
            lease,
            is_ready: status
                .conditions
                .iter()
                .find(ready)
                .is_some_and(|one| &*one.status == "True"),
            created: meta.creation_timestamp.unwrap_or(Time(0)),
            reason: status.reason.to_string(),
            waiting: waiting
                .map(|waiting| (waiting.reason.to_string(), waiting.message.to_string())),
            end: state
                .and_then(|state| state.terminated.as_ref())
                .map(|end| (end.exit_code, &*end.reason == "OOMKilled")),
            fetch,
            node_data: fetching.and_then(node_data),
        })
    }

    /// Why its command never began, of a pod that is over and would end so again: its code could not
    /// be fetched. One whose node ended that may do better elsewhere.
    pub fn not_begun(&self) -> Option<String> {
        match &self.fetch {
            Some(Fetch::Failed(code, said)) if self.reason.is_empty() && *code <= SIGNALLED => {
                Some(format!("its container {FETCH} ended with exit code {code}: {said}"))
            }
            _ => None,
        }
    }

    /// How it ended, of a pod that is over. What its node did to it is no fault of its own.
    pub fn ended(&self, at: Time) -> Ended {
        let lost = |why: String| Ended::lost(self.lease, at, why);
        match (self.end, &self.fetch) {
            _ if !self.reason.is_empty() => lost(format!("its node ended it: {}", self.reason)),
            (_, Some(Fetch::Failed(code, said))) => {
                lost(format!("its container {FETCH} was ended, with exit code {code}: {said}"))
            }
            (None, _) => lost("its pod ended without a word".to_owned()),
            (Some((code, oom)), _) => {
                let known = lost(String::new());
                Ended { lost: None, started_at: Some(at), code: Some(code), oom, ..known }
            }
        }
    }

    /// Why it has not started, if that is worth saying.
    pub fn waits_for(&self) -> Option<String> {
        let (reason, message) = self.waiting.as_ref()?;
        match (reason.as_str(), message.as_str()) {
            (INITIALIZING, _) if self.fetch == Some(Fetch::Runs) => Some(FETCHING.to_owned()),
            ("" | "ContainerCreating" | INITIALIZING, _) => None,
            (reason, "") => Some(reason.to_owned()),
            (reason, message) => Some(format!("{reason}: {message}")),
        }
    }

    /// Whether it will never start.
    pub fn is_hopeless(&self, now: Time) -> bool {
        let Some((reason, message)) = &self.waiting else { return false };
        let reason = reason.as_str();
        let has_no_secret = message.starts_with("secret ") && message.ends_with(" not found");
        let tried = RETRIED_REASONS.contains(&reason) || reason == MISCONFIGURED && has_no_secret;
        match tried {
            true => now - self.created > START_TIMEOUT,
            false => reason == MISCONFIGURED || PERMANENT_REASONS.contains(&reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use berth_model::TaskEnd;
    use serde_json::json;

    fn read(name: &str, status: serde_json::Value) -> Option<ManagedPodView> {
        let pod = json!({
            "metadata": {
                "name": name, "creationTimestamp": "2026-11-16T02:00:00Z",
                "labels": { MANAGED: BERTH, JOB: "17_3", TASK: "1", ATTEMPT: "2" },
            },
            "status": status,
        });
        ManagedPodView::read(&serde_json::from_value(pod).unwrap())
    }

    fn view(status: serde_json::Value) -> ManagedPodView {
        read("x-j17e3-2-1", status).unwrap()
    }

    #[test]
    fn labels_alone_make_no_pod_of_ours() {
        assert!(read("x-j17e3-2-1", json!({})).is_some());
        for name in ["x", "x-j17e3-2-2", "x-j17-2-1", "17e3-2-1"] {
            assert!(read(name, json!({})).is_none(), "{name}");
        }
    }

    #[test]
    fn ends_are_told_apart() {
        let end = |status| view(status).ended(Time(5)).end();
        let with = |end: serde_json::Value| json!({ "containerStatuses": [{ "name": "main", "state": { "terminated": end } }] });
        assert_eq!(end(with(json!({ "exitCode": 0 }))), TaskEnd::Done);
        assert_eq!(end(with(json!({ "exitCode": 3 }))), TaskEnd::Failed(3));
        let oom = json!({ "exitCode": 137, "reason": "OOMKilled" });
        assert_eq!(end(with(oom)), TaskEnd::OutOfMemory);
        assert_eq!(end(json!({ "reason": "OutOfnvidia.com/gpu" })), TaskEnd::Lost);
        let mut evicted = with(json!({ "exitCode": 137 }));
        evicted["reason"] = json!("Evicted");
        assert_eq!(end(evicted), TaskEnd::Lost);
    }

    #[test]
    fn code_that_could_not_be_fetched_is_told_from_a_node_that_ended_the_fetching() {
        let with = |fetch: serde_json::Value| {
            let waits = json!({ "waiting": { "reason": "PodInitializing" } });
            view(json!({
                "initContainerStatuses": [{ "name": "fetch-code", "state": fetch }],
                "containerStatuses": [{ "name": "main", "state": waits }],
            }))
        };
        let ended = |code: i32, message: &str| {
            let end = json!({ "exitCode": code, "reason": "Error", "message": message });
            with(json!({ "terminated": end }))
        };
        let said = "trying again\ncannot fetch the code: it is gone\n";
        let expect = "its container fetch-code ended with exit code 125: \
                      cannot fetch the code: it is gone";
        assert_eq!(ended(125, said).not_begun().as_deref(), Some(expect));
        let no_program = ended(128, "").not_begun().unwrap();
        assert!(no_program.ends_with("exit code 128: Error"), "{no_program}");
        for killed in [137, 143] {
            let killed = ended(killed, "");
            assert_eq!((killed.not_begun(), killed.ended(Time(5)).end()), (None, TaskEnd::Lost));
        }
        assert_eq!(ended(0, "").not_begun(), None);
        let fetching = with(json!({ "running": {} }));
        assert_eq!(fetching.waits_for().as_deref(), Some(FETCHING));
        assert_eq!(ended(0, "").waits_for(), None);
        let pull = with(json!({ "waiting": { "reason": "ErrImagePull", "message": "no image" } }));
        assert_eq!(pull.waits_for().as_deref(), Some("ErrImagePull: no image"));
        let created: Time = "2026-11-16T02:00:00Z".parse().unwrap();
        assert!(pull.is_hopeless(created + Span::mins(11)));
    }

    #[test]
    fn a_container_that_fetched_data_reports_what_its_node_keeps() {
        let left = |code: i32, message: &str| {
            let end = json!({ "terminated": { "exitCode": code, "message": message } });
            view(json!({ "initContainerStatuses": [{ "name": "fetch-code", "state": end }] }))
                .node_data
        };
        let kept = left(0, "berth-data: {\"0a.dir\":120,\"0b\":7}").unwrap();
        assert_eq!(kept, BTreeMap::from([("0a.dir".into(), Bytes(120)), ("0b".into(), Bytes(7))]));
        for (code, message) in [(0, ""), (0, "berth-data: x"), (1, "berth-data: {}"), (0, "{}")] {
            assert_eq!(left(code, message), None, "{message}");
        }
    }

    #[test]
    fn what_a_node_tries_again_is_waited_for_and_a_wrong_name_is_not() {
        let says = |reason: &str, message: &str| {
            let waiting = json!({ "waiting": { "reason": reason, "message": message } });
            view(json!({ "containerStatuses": [{ "name": "main", "state": waiting }] }))
        };
        let waits = |reason: &str| says(reason, "no such image");
        let created: Time = "2026-11-16T02:00:00Z".parse().unwrap();
        let soon = created + Span::secs(5);
        assert!(waits("InvalidImageName").is_hopeless(soon));
        let late = created + Span::mins(11);
        for reason in RETRIED_REASONS {
            assert!(!waits(reason).is_hopeless(soon) && waits(reason).is_hopeless(late));
        }
        let secret = says(MISCONFIGURED, "secret \"x-j17e3-2-1-0f\" not found");
        assert!(!secret.is_hopeless(soon) && secret.is_hopeless(late));
        assert!(says(MISCONFIGURED, "image will run as root").is_hopeless(soon));
        let pull = waits("ImagePullBackOff");
        assert_eq!(pull.waits_for().as_deref(), Some("ImagePullBackOff: no such image"));
        assert_eq!(waits("ContainerCreating").waits_for(), None);
        assert_eq!(pull.lease.to_string(), "17_3/1#2");
    }
}
