//! Gangs of pods that are no jobs yet, because pods of them do not exist.

use super::reasons;
use crate::caller::Caller;
use crate::host::IncompleteGang;
use crate::service::Service;
use berth_api::access::Permission;
use berth_api::wire;
use berth_engine::clock;
use berth_model::{JobId, Reason};

/// Gangs that are shown at the most.
const MOST: usize = 100;

/// Those that the caller may see: a gang is of its queue, and of its namespace as a user.
pub fn seen(service: &Service, caller: &Caller) -> Vec<IncompleteGang> {
    let may = |gang: &IncompleteGang| {
        let (queue, user) = (gang.queue.as_str(), gang.namespace.as_str());
        caller.may(Permission::JobsRead, Some(queue), Some(user))
    };
    let mut gangs = service.host.incomplete_gangs(clock::now());
    gangs.retain(may);
    gangs
}

/// The same as the list of jobs shows them.
pub fn list(
    service: &Service,
    caller: &Caller,
    query: &wire::JobQuery,
) -> Vec<wire::IncompleteGang> {
    if query.cursor.is_some() {
        return Vec::new();
    }
    let is_meant = |gang: &IncompleteGang| {
        let user = gang.namespace.as_str();
        query.team.as_deref().is_none_or(|team| team == gang.queue.as_str())
            && query.user.as_deref().is_none_or(|wanted| wanted == user)
            && (!query.mine || user == caller.user())
    };
    let gangs = seen(service, caller).into_iter().filter(is_meant).take(MOST);
    gangs.map(|gang| shown(&gang)).collect()
}

fn shown(gang: &IncompleteGang) -> wire::IncompleteGang {
    wire::IncompleteGang {
        namespace: gang.namespace.to_string(),
        name: gang.name.to_string(),
        queue: gang.queue.to_string(),
        pods: gang.pods,
        needed: gang.needed,
        since: wire::At(gang.since),
        reason: gang.why.to_string(),
    }
}

/// Why a gang waits that goes by that name, or by its namespace and name.
pub fn why(service: &Service, caller: &Caller, wanted: &str) -> Option<wire::Why> {
    let is_it = |gang: &IncompleteGang| {
        gang.name.as_str() == wanted || format!("{}/{}", gang.namespace, gang.name) == wanted
    };
    let gang = seen(service, caller).into_iter().find(is_it)?;
    let reason: &Reason = &gang.why;
    Some(wire::Why {
        // It has no number yet.
        id: JobId::new(0).into(),
        name: gang.name.to_string(),
        state: wire::JobState::Pending,
        since_ms: (clock::now() - gang.since).0.max(0),
        queue: gang.queue.to_string(),
        position: None,
        waiting: 0,
        eta: None,
        needs: format!("{} pods", gang.needed),
        blockers: reasons::blockers(std::slice::from_ref(reason)),
        clears: None,
        also: vec![format!(
            "it is no job yet; look at what makes its pods: `kubectl get events -n {}`",
            gang.namespace
        )],
        sooner: Vec::new(),
    })
}
