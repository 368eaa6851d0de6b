//! When a run is at rest: nothing changes any more, by what the cluster and the scheduler say.

use crate::Server;
use crate::fuzz::check::{Pod, Step};
use crate::fuzz::world::Key;
use crate::kube::{Cluster, Watch};
use serde_json::Value;
use std::collections::BTreeMap;
use std::thread::sleep;
use std::time::{Duration, Instant};

const LOOK_EVERY: Duration = Duration::from_millis(100);

/// kube-scheduler has empty queues for so many looks. On a busy machine it takes in late what has
/// happened, and its queues are empty until then.
const LOOKS: u32 = 15;

/// Berth lets pods with rules about each other try again each second. Two such seconds without any
/// change, and there will be none.
const TWO_TICKS: Duration = Duration::from_millis(2_300);

/// What does not come to rest by then never will.
const PATIENCE: Duration = Duration::from_secs(90);

/// Follows the pods of a run.
pub(super) struct Follower<'a> {
    cluster: &'a Cluster,
    /// None where kube-scheduler runs.
    berth: Option<&'a Server>,
    watch: Watch,
    steps: Vec<Step>,
    pods: BTreeMap<Key, Pod>,
    reasons: BTreeMap<Key, String>,
    changed: Instant,
}

impl<'a> Follower<'a> {
    pub(super) fn new(cluster: &'a Cluster, berth: Option<&'a Server>) -> Follower<'a> {
        Follower {
            cluster,
            berth,
            watch: cluster.watch("/api/v1/pods"),
            steps: Vec::new(),
            pods: BTreeMap::new(),
            reasons: BTreeMap::new(),
            changed: Instant::now(),
        }
    }

    pub(super) fn begin_phase(&mut self) {
        self.follow();
        self.steps.push(Step::Phase);
    }

    /// Waits until nothing changes any more, and says whether it came to that.
    pub(super) fn rests(&mut self) -> bool {
        let until = Instant::now() + PATIENCE;
        self.changed = Instant::now();
        let (mut looks, mut jobs) = (0, None);
        while Instant::now() < until {
            sleep(LOOK_EVERY);
            if self.follow() || !self.are_pods_settled() {
                (looks, jobs) = (0, None);
                continue;
            }
            let is_done = match self.berth {
                None => {
                    looks = if self.are_queues_empty() { looks + 1 } else { 0 };
                    looks >= LOOKS
                }
                Some(berth) => {
                    let now = states(berth);
                    let is_same = jobs.as_ref() == Some(&now);
                    if !is_same {
                        (jobs, self.changed) = (Some(now), Instant::now());
                    }
                    is_same && self.changed.elapsed() >= TWO_TICKS
                }
            };
            if is_done {
                return true;
            }
        }
        false
    }

    pub(super) fn end(mut self) -> (Vec<Step>, BTreeMap<Key, String>) {
        self.follow();
        (self.steps, self.reasons)
    }

    /// Takes in what has happened, and says whether that was anything.
    fn follow(&mut self) -> bool {
        let mut is_news = false;
        for event in self.watch.news() {
            let Some(step) = Step::of(&event) else { continue };
            self.note_reason(&event["object"]);
            let has_changed = match &step {
                Step::Seen(pod) => {
                    let known = self.pods.insert(pod.key.clone(), (**pod).clone());
                    known.is_none_or(|known| state(&known) != state(pod))
                }
                Step::Gone(key) => self.pods.remove(key).is_some(),
                Step::Phase => false,
            };
            if has_changed {
                self.changed = Instant::now();
                self.steps.push(step);
            }
            is_news |= has_changed;
        }
        is_news
    }

    /// Why a pod waits, as its scheduler says on it.
    fn note_reason(&mut self, pod: &Value) {
        let conditions = pod["status"]["conditions"].as_array().into_iter().flatten();
        let mut reasons = conditions.filter(|one| one["type"] == "PodScheduled");
        if let Some(why) = reasons.find_map(|one| one["message"].as_str()) {
            self.reasons.insert(Key::of(pod), why.to_owned());
        }
    }

    /// None is on its way out, and those with a node run.
    fn are_pods_settled(&self) -> bool {
        let is_settled =
            |pod: &Pod| !pod.is_leaving && (pod.node.is_none() || pod.runs || pod.is_over);
        self.pods.values().all(is_settled)
    }

    fn are_queues_empty(&self) -> bool {
        let Some(text) = self.cluster.scheduler_metrics() else { return false };
        let waiting = text.lines().filter(|line| {
            line.starts_with("scheduler_pending_pods{")
                && (line.contains("\"active\"") || line.contains("\"backoff\""))
        });
        let mut waiting = waiting.peekable();
        waiting.peek().is_some() && waiting.all(|line| line.ends_with(" 0"))
    }
}

type State<'a> = (Option<&'a str>, bool, bool, bool, bool);

/// What the checker looks at.
fn state(pod: &Pod) -> State<'_> {
    (pod.node.as_deref(), pod.is_leaving, pod.is_over, pod.runs, pod.is_gated)
}

/// The jobs that Berth has, and whether they run.
fn states(berth: &Server) -> Vec<(String, String)> {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    berth.jobs().iter().map(|job| (text(&job["id"]), text(&job["state"]))).collect()
}
