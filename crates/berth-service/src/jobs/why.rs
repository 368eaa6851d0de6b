//! Why a job waits, until when, and what would start it sooner.

use super::find::{self, Found};
use super::{data_places, expected, incomplete, own_budget, priority, reasons, show};
use crate::caller::Caller;
use crate::fault::Fault;
use crate::node_reason;
use crate::service::Service;
use berth_api::access::Permission;
use berth_api::wire;
use berth_core::{Change, Starts, State as Sched, What, what_would_start};
use berth_engine::Core;
use berth_engine::clock;
use berth_engine::shown_state;
use berth_ledger::cost::cumulative;
use berth_model::{GroupSpec, JobId, JobState, Micros, Milli, Name, NodeState, Span, Time};
use berth_store::JobRow;
use std::collections::BTreeMap;

pub async fn why(service: &Service, caller: &Caller, wanted: &str) -> Result<wire::Why, Fault> {
    let found = match find::job(service, caller, wanted, Permission::JobsRead).await {
        Ok(found) => found,
        Err(fault) => return incomplete::why(service, caller, wanted).ok_or(fault),
    };
    let row = telling(&found.rows).clone();
    let (mut why, state, closed) = {
        let mut core = service.engine.core();
        let mut why = told(service, &mut core, &row);
        if why.state == wire::JobState::Pending {
            why.also.extend(troubles(service, &core));
        }
        let closed = match why.blockers.iter().any(|blocker| blocker.code == CLOSED) {
            true => closed_nodes(&core),
            false => Vec::new(),
        };
        let pending = why.state == wire::JobState::Pending || why.state == wire::JobState::Paused;
        (why, pending.then(|| core.state.clone()), closed)
    };
    for (node, word) in closed {
        let reason = node_reason::of(service, &node).await?;
        let reason = reason.map_or_else(String::new, |reason| format!(": {reason}"));
        why.also.push(format!("{node} is {word}{reason}"));
    }
    if let Some(state) = state {
        let id = row.id;
        let prices = Prices::of(&state, id);
        let changes = tokio::task::spawn_blocking(move || what_would_start(&state, id)).await;
        let eta = why.eta.as_ref().and_then(|eta| eta.p50);
        let changes = changes.unwrap_or_default().into_iter();
        let changes = changes.filter(|change| is_sooner(&change.starts, eta));
        let is_spent = own_budget::spent(&service.engine.core(), id).is_some();
        let changes = changes.filter(|change| !is_spent || change.what != What::Release);
        let may = changes.filter(|change| may_make(service, caller, &found, &row, &change.what));
        // For an array, propose a change of all its elements.
        why.sooner = may.map(|change| sooner(found.id, &change, &prices)).collect();
    }
    Ok(why)
}

/// Of an array, the element that says most: one that waits, or else one that goes on, or else one that
/// ended badly.
fn telling(rows: &[JobRow]) -> &JobRow {
    let rank = |row: &&JobRow| match row.state {
        JobState::Pending => 0,
        JobState::Paused => 1,
        JobState::Stopping => 2,
        JobState::Starting | JobState::Running => 3,
        JobState::Failed => 4,
        JobState::Cancelled => 5,
        JobState::Done => 6,
    };
    rows.iter().min_by_key(rank).expect("a job that was found has a row")
}

/// Whether a start comes before the one that is expected anyway. A change is made on the state as it
/// is, where limits of time stand for durations; the forecast knows how long jobs really take.
fn is_sooner(starts: &Starts, eta: Option<wire::At>) -> bool {
    match (starts, eta) {
        (Starts::By { at, .. }, Some(eta)) => *at < eta.0,
        (Starts::By { .. }, None) | (Starts::Now, _) => true,
    }
}

/// Whether whoever asks may make that change themselves. Others are not proposed.
fn may_make(service: &Service, caller: &Caller, found: &Found, row: &JobRow, what: &What) -> bool {
    let (team, user) = (row.team.as_str(), row.user.as_str());
    let controls = || {
        caller.may(Permission::JobsControl, Some(team), Some(user)) && find::controls(caller, found)
    };
    let submits = |team: &str| {
        caller.may(Permission::JobsSubmit, Some(team), Some(caller.user()))
            && priority::limit(service, caller, team).allows(row.priority)
    };
    match what {
        What::Release | What::TimeLimit { .. } => controls(),
        What::Class { class } => {
            let value = service.engine.core().state.classes().get(class).map(|class| class.value);
            let limit = priority::limit(service, caller, team);
            controls() && value.is_some_and(|value| limit.allows(value))
        }
        What::Queue { queue } => controls() && submits(queue),
        What::Raise { .. } => caller.may(Permission::QueuesManage, None, None),
        // For these it is submitted anew.
        What::NoDependencies
        | What::NoBeginTime
        | What::Preemptible
        | What::Model { .. }
        | What::Lifecycle { .. }
        | What::Apart { .. }
        | What::Unspread { .. }
        | What::Anywhere
        | What::FewerTasks { .. }
        | What::PartOfGpu { .. } => submits(team),
    }
}

fn told(service: &Service, core: &mut Core, row: &JobRow) -> wire::Why {
    let id = row.id;
    let now = clock::now();
    let live = core.jobs.get(&id);
    let state = live.map_or_else(|| row.state, shown_state);
    let needs = live.map_or_else(String::new, |live| live.detail.asks.clone());
    let again_at = live.and_then(|live| live.detail.again_at.filter(|_| !live.detail.held));
    let since = match state {
        wire::JobState::Running | wire::JobState::Starting => row.started.unwrap_or(row.submitted),
        _ if state.is_final() => row.ended.unwrap_or(row.submitted),
        _ => row.submitted,
    };
    let (position, waiting) = match core.state.position(id) {
        Some((ahead, all)) => (Some(ahead as u32 + 1), all as u32),
        None => (None, 0),
    };
    let mut blockers = match state {
        wire::JobState::Pending | wire::JobState::Paused => {
            let reasons = reasons::of(&*service.host, core, &[id]).pop();
            reasons::blockers(&reasons.unwrap_or_default())
        }
        _ => Vec::new(),
    };
    if let Some(at) = again_at {
        blockers = vec![retry(&row.reason, at)];
    }
    if let Some(text) = own_budget::spent(core, id).map(|spent| spent.words()) {
        for blocker in blockers.iter_mut().filter(|blocker| blocker.code == "held") {
            blocker.text.clone_from(&text);
        }
    }
    wire::Why {
        id: id.into(),
        name: row.name.clone(),
        state,
        since_ms: (now - since).0.max(0),
        queue: row.team.clone(),
        position,
        waiting,
        eta: show::eta(core, id),
        needs,
        clears: None,
        // Of one that has ended, how: nothing is in its way any more.
        also: match state.is_final() {
            true if row.reason.is_empty() => Vec::new(),
            true => vec![row.reason.clone()],
            false => {
                let mut lines = also(core, row);
                lines.extend(data_places::told(core, row));
                lines
            }
        },
        blockers,
        sooner: Vec::new(),
    }
}

/// The code of the reason that nodes which would do are closed.
const CLOSED: &str = "closed";
/// Nodes that are named with why they are closed.
const MOST_CLOSED: usize = 5;

/// Nodes that an operator has closed, and how.
fn closed_nodes(core: &Core) -> Vec<(String, &'static str)> {
    let closed = core.state.node_snapshots().into_iter().filter_map(|node| {
        let word = match node.spec.state {
            NodeState::Cordoned => "cordoned",
            NodeState::Draining => "draining",
            _ => return None,
        };
        Some((node.spec.name.to_string(), word))
    });
    closed.take(MOST_CLOSED).collect()
}

/// Machines that would start jobs if they could.
fn troubles(service: &Service, core: &Core) -> Vec<String> {
    let nodes = core.state.node_snapshots();
    let troubled = nodes.iter().filter(|node| node.spec.state == NodeState::Troubled);
    let told = troubled.map(|node| {
        let name = &node.spec.name;
        let why = service.host.node(name).and_then(|facts| facts.trouble);
        let why = why.map_or_else(String::new, |why| format!(": {why}"));
        format!("{name} starts nothing until it can again{why}")
    });
    told.collect()
}

fn retry(reason: &str, at: Time) -> wire::Blocker {
    let text = format!("{reason}; it is tried again at {at}");
    wire::Blocker { code: "retry".to_owned(), text, binding: true }
}

/// Where its queue stands.
fn also(core: &mut Core, row: &JobRow) -> Vec<String> {
    let reports = core.state.queue_reports();
    let Some(queue) = reports.iter().find(|queue| queue.name.as_str() == row.team) else {
        return Vec::new();
    };
    let (used, quota) = (queue.used, queue.quota);
    let gpus = if used == Milli::ONE { "GPU" } else { "GPUs" };
    let mut lines = vec![if quota.0 > 0 {
        format!("{} uses {used} {gpus}; its quota is {quota}", queue.name)
    } else {
        format!("{} uses {used} {gpus}; it has no quota", queue.name)
    }];
    if let Some(spent) = queue.spent {
        lines.push(format!("{} has spent {} of its budget", queue.name, spent.money()));
    }
    lines
}

/// What the job costs as it is, and GPUs by model.
struct Prices {
    groups: Vec<GroupSpec>,
    of_models: BTreeMap<Name, Micros>,
    as_it_is: Option<Micros>,
    estimate: Option<Span>,
}

impl Prices {
    fn of(state: &Sched, id: JobId) -> Prices {
        let groups = state.asks_of(id).map(<[GroupSpec]>::to_vec).unwrap_or_default();
        Prices {
            as_it_is: expected::asking_price(state, &groups),
            of_models: state.prices().clone(),
            estimate: state.estimate(id),
            groups,
        }
    }

    /// What an hour of it costs after a change; nothing where that cannot be told beforehand.
    fn after(&self, what: &What) -> Option<Micros> {
        match what {
            What::Model { model } => {
                let price = self.of_models.get(model)?;
                let each = self.groups.iter().flat_map(GroupSpec::leaves);
                let gpus = each.map(|group| i64::from(group.gpus.count()) * i64::from(group.count));
                Some(Micros(price.0 * gpus.sum::<i64>()))
            }
            What::FewerTasks { tasks, of } => {
                let all = i128::from(self.as_it_is?.0) * i128::from(*tasks);
                i64::try_from(all / i128::from((*of).max(1))).ok().map(Micros)
            }
            What::PartOfGpu { part } => {
                i64::try_from(i128::from(self.as_it_is?.0) * i128::from(part.0) / 1_000)
                    .ok()
                    .map(Micros)
            }
            What::Lifecycle { .. } => None,
            What::Release
            | What::NoDependencies
            | What::NoBeginTime
            | What::Preemptible
            | What::Apart { .. }
            | What::Unspread { .. }
            | What::Anywhere
            | What::TimeLimit { .. }
            | What::Class { .. }
            | What::Queue { .. }
            | What::Raise { .. } => self.as_it_is,
        }
    }
}

/// The same change for a program: of the job itself, or of a copy of it.
fn request(what: &What, gpus: u32) -> (Option<wire::JobChange>, Option<wire::JobClone>) {
    let set = |change: wire::JobChange| (Some(change), None);
    let clone = |file: String| (None, Some(wire::JobClone { file: Some(file), resume: false }));
    let nothing = wire::JobChange::default;
    match what {
        What::Release => set(wire::JobChange { hold: Some(false), ..nothing() }),
        What::Class { class } => {
            set(wire::JobChange { priority: Some(class.to_string()), ..nothing() })
        }
        What::Queue { queue } => {
            set(wire::JobChange { team: Some(queue.to_string()), ..nothing() })
        }
        What::TimeLimit { limit, .. } => {
            set(wire::JobChange { time: Some(limit.to_string()), ..nothing() })
        }
        What::Model { model } => clone(format!("gpus: {model}:{gpus}\n")),
        What::FewerTasks { tasks, .. } => clone(format!("nodes: {tasks}\n")),
        What::NoDependencies => clone("after: null\n".to_owned()),
        What::NoBeginTime => clone("begin: null\n".to_owned()),
        What::Preemptible
        | What::Lifecycle { .. }
        | What::Apart { .. }
        | What::Unspread { .. }
        | What::Anywhere
        | What::PartOfGpu { .. }
        | What::Raise { .. } => (None, None),
    }
}

fn sooner(id: JobId, change: &Change, prices: &Prices) -> wire::Sooner {
    let gpus = prices.groups.first().map_or(1, |group| group.gpus.count());
    let (set, clone) = request(&change.what, gpus);
    let price = prices.after(&change.what);
    let total = price.zip(prices.estimate).map(|(price, time)| cumulative(price, time).0);
    let (starts, stops) = match change.starts {
        Starts::Now => (None, 0),
        Starts::By { at, stops } => (Some(wire::At(at)), stops),
    };
    wire::Sooner {
        change: change.what.to_string(),
        starts,
        stops,
        command: command(id, &change.what, gpus),
        set,
        clone,
        price_micros_per_hour: price.map(|price| price.0),
        total_micros: total,
    }
}

/// What to type for it.
fn command(id: JobId, what: &What, gpus: u32) -> Option<String> {
    Some(match what {
        What::Release => format!("berth resume {id}"),
        What::Class { class } => format!("berth set {id} priority={class}"),
        What::Queue { queue } => format!("berth set {id} team={queue}"),
        What::TimeLimit { limit, .. } => format!("berth set {id} time={limit}"),
        What::Model { model } => format!("berth clone {id} --gpus {model}:{gpus}"),
        What::FewerTasks { tasks, .. } => format!("berth clone {id} --nodes {tasks}"),
        What::NoDependencies => format!("berth clone {id} --without after"),
        What::NoBeginTime => format!("berth clone {id} --without begin"),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_an_array_the_element_that_waits_or_went_wrong_is_told() {
        let row = |number: u32, state| JobRow {
            id: JobId::new(17).element(number),
            name: "sweep".to_owned(),
            kind: berth_model::JobKind::Job,
            user: "kim".to_owned(),
            team: "nlp".to_owned(),
            project: "default".to_owned(),
            experiment: String::new(),
            state,
            priority: 50,
            submitted: Time(0),
            started: None,
            ended: None,
            attempt: 0,
            gpus: Milli::ONE,
            cost: Micros::ZERO,
            file: String::new(),
            detail: String::new(),
            reason: String::new(),
        };
        let told = |states: &[JobState]| {
            let rows: Vec<JobRow> =
                (0..).zip(states).map(|(nth, state)| row(nth, *state)).collect();
            telling(&rows).id.element
        };
        use JobState::{Done, Failed, Pending, Running};
        assert_eq!(told(&[Done, Running, Pending, Pending]), Some(2));
        assert_eq!(told(&[Done, Failed, Running]), Some(2));
        assert_eq!(told(&[Done, Done, Failed]), Some(2));
        assert_eq!(told(&[Done, Done]), Some(0));
    }

    #[test]
    fn no_change_is_offered_that_comes_later_than_the_start_that_is_expected_anyway() {
        let by = |ms| Starts::By { at: Time(ms), stops: 1 };
        let eta = |ms| Some(wire::At(Time(ms)));
        assert!(is_sooner(&by(5), eta(6)));
        assert!(!is_sooner(&by(6), eta(6)) && !is_sooner(&by(7), eta(6)));
        assert!(is_sooner(&by(7), None) && is_sooner(&Starts::Now, eta(6)));
    }
}
