//! The end of pods by their time limit: it is announced on the pods before it comes. And limits that
//! an earlier version gave to pods that name none are taken back.

use super::ClusterState;
use super::orders::ApiOrder;
use super::submission;
use crate::view::PodEvent;
use berth_engine::{Core, Turn};
use berth_kube::event::Level;
use berth_model::{Event, JobChange, JobId, PodRef, Span, Time};

/// The end is announced so long before it, or a tenth of the limit if that is shorter.
const ANNOUNCED_BEFORE: Span = Span::mins(10);
const SHARE_OF_LIMIT: i64 = 10;
/// And never later than this.
const AT_LEAST_BEFORE: Span = Span::secs(6);

/// The condition that announces an end.
pub const CONDITION: &str = "berth.dev/TimeLimitNear";

/// Pods of a job that are about to reach their time limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ComingEnd {
    pub job: JobId,
    pub at: Time,
    pub limit: Span,
}

/// The jobs of pods whose end is near enough to be announced.
pub fn coming_ends(core: &Core, now: Time) -> Vec<ComingEnd> {
    let of_pods = core.jobs.iter().filter(|(_, job)| {
        !job.detail.workload.pods().is_empty()
            && !job.leases.is_empty()
            && job.leases.values().all(|lease| lease.stopping.is_none())
    });
    let ends = of_pods.filter_map(|(job, live)| {
        let limit = live.detail.time_limit.filter(|limit| !limit.is_unlimited())?;
        let at = core.state.progress(*job)?.ends_at_most?;
        let before = Span(limit.0 / SHARE_OF_LIMIT).clamp(AT_LEAST_BEFORE, ANNOUNCED_BEFORE);
        (at - before <= now).then_some(ComingEnd { job: *job, at, limit })
    });
    ends.collect()
}

impl ClusterState {
    /// Says on the pods of a job that they are about to end, and why.
    pub fn announce_end(&mut self, end: ComingEnd) {
        let ComingEnd { job, at, limit } = end;
        let message = format!(
            "it reaches its time limit of {limit} at {at}, and Berth then ends it with its grace; \
             `berth set {job} time=TIME` gives it another limit"
        );
        for pod in self.running(job) {
            let (level, reason, note) = (Level::Warning, "TimeLimitNear", message.clone());
            let key = at.to_string();
            self.order(ApiOrder::AnnounceEnd { pod: pod.clone(), message: message.clone() });
            self.order(ApiOrder::WritePodEvent(PodEvent { pod, level, reason, note, key }));
        }
    }

    /// Says in an event that a pod is ended because of its limit.
    pub(super) fn report_time_limit(&mut self, pod: &PodRef) {
        let note = "it has reached its time limit, and Berth ends it with its grace; its limit is \
                    activeDeadlineSeconds, a mark, or the policy's"
            .to_owned();
        let (level, reason, key) = (Level::Warning, "TimeLimitReached", String::new());
        self.order(ApiOrder::WritePodEvent(PodEvent {
            pod: pod.clone(),
            level,
            reason,
            note,
            key,
        }));
    }

    fn running(&self, job: JobId) -> Vec<PodRef> {
        let tasks = self.tasks_of(job).into_iter();
        let pods = tasks.filter_map(|uid| Some(&self.pods.get(&uid)?.view));
        pods.filter(|view| view.is_placed()).map(|view| view.at.clone()).collect()
    }

    /// Pods that an earlier version took in without a limit have got the default of jobs, which
    /// would end them. They get what their class of work has.
    pub(super) fn lift_default_limits(&self, turn: &mut Turn<'_>) {
        let without = self.jobs.keys().filter_map(|job| {
            let live = turn.core.jobs.get(job)?;
            if live.detail.time_limit.is_some() || live.row.state.is_final() {
                return None;
            }
            let pods = self.jobs[job].pods.iter().flatten();
            let request = pods.clone().find_map(|uid| self.pods.get(uid)?.request())?;
            Some((*job, submission::time_limit(request, turn.core.state.policy())))
        });
        let without: Vec<(JobId, Span)> = without.collect();
        for (job, limit) in without {
            turn.apply_observed(Event::JobChanged { job, change: JobChange::TimeLimit(limit) });
        }
    }
}
