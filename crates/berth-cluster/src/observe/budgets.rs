//! Follows PodDisruptionBudgets.

use super::tasks::{Tasks, WATCH_BUFFER};
use berth_kube::object::PodDisruptionBudget;
use berth_kube::{Api, WatchUpdate, watch_objects};
use tokio::sync::mpsc;

const PATH: &str = "/apis/policy/v1/poddisruptionbudgets";

/// The changes of budgets. Scheduling does not wait for the first list: until then the budgets from
/// before a restart hold, and none at the first start.
pub fn follow(api: &Api, tasks: &mut Tasks) -> mpsc::Receiver<WatchUpdate<PodDisruptionBudget>> {
    let (to, seen) = mpsc::channel(WATCH_BUFFER);
    let following = watch_objects(api.clone(), PATH.to_owned(), String::new(), to);
    tasks.spawn(following);
    seen
}
