//! The log as lines people can read.

use super::seam::Record;
use super::shares::milli;
use berth_model::{Decision, Event, GroupSpec, Slice, Time};

pub(super) fn line(record: &Record, start: Time) -> String {
    let at = record.stamped.at - start;
    let mut text =
        format!("#{:<4} +{:<10} {}", record.stamped.seq, at, event(&record.stamped.event));
    for (job, outcome) in &record.ended {
        text.push_str(&format!("  [job {job} ended: {outcome:?}]"));
    }
    text
}

fn event(event: &Event) -> String {
    match event {
        Event::JobSubmitted { spec } => {
            let groups: Vec<String> = spec.groups.iter().map(group).collect();
            let array = spec.array.as_ref().map_or(String::new(), |array| {
                format!(" array {:?} at most {:?}", array.elements, array.at_most)
            });
            let after: Vec<String> = spec
                .after
                .iter()
                .map(|dependency| format!(" after {:?} {:?}", dependency.after, dependency.job))
                .collect();
            let (groups, after) = (groups.join(" and "), after.concat());
            format!("job {} submitted to {}: {groups}{array}{after}", spec.id, spec.queue)
        }
        Event::NodeAdded { node } => {
            let model = node.gpus.first().map_or("", |gpu| gpu.model.as_str());
            format!("node {} added: {} x {model}", node.name, node.gpus.len())
        }
        Event::LeaseStarted { lease } => format!("{lease} started"),
        Event::LeaseEnded { lease, outcome } => format!("{lease} ended: {outcome:?}"),
        Event::LeaseSaved { job } => format!("job {job} saved"),
        Event::NodeChanged { node, state } => format!("node {node} is {state:?}"),
        Event::PolicySet { policy } => {
            let (grace, stale) = (policy.grace, policy.stale);
            format!("policy: grace {grace}, stale {stale}, GPUs of {:?}", policy.share_gpus)
        }
        Event::QueueSet { queue } => {
            let spent = queue.budget.as_ref().map_or(String::new(), |budget| {
                format!(", ${} {:?}, then {:?}", budget.limit, budget.per, budget.action)
            });
            let limit =
                queue.limit.gpu.total.map_or(String::new(), |of| format!(", at most {of:?}"));
            format!("queue {} set{limit}{spent}", queue.name)
        }
        Event::ClaimReady { claim, .. } => format!("{claim} came"),
        Event::Decided { decisions, .. } => {
            let all: Vec<String> = decisions.iter().map(decision).collect();
            format!("decided: {}", all.join("; "))
        }
        other => format!("{other:?}"),
    }
}

fn group(group: &GroupSpec) -> String {
    let within: Vec<String> = group.groups.iter().map(self::group).collect();
    let mut text = match within.is_empty() {
        true => format!("{} to {} x {:?}", group.min, group.count, group.gpus),
        false => format!("{} of ({})", group.min, within.join(" and ")),
    };
    if let Some(level) = group.topology.as_ref().and_then(|ask| ask.required.as_ref()) {
        text.push_str(&format!(" in one {level}"));
    }
    if let Some(spread) = &group.spread {
        text.push_str(&format!(" at most {} in a {}", spread.at_most, spread.over));
    }
    text
}

fn decision(decision: &Decision) -> String {
    match decision {
        Decision::Start { lease, node, slices, .. } => {
            let on: Vec<String> = slices.iter().map(slice).collect();
            format!("start {lease} on {node} GPU {}", on.join(","))
        }
        Decision::Stop { lease, cause, grace, .. } => {
            format!("stop {lease} ({cause}, grace {grace})")
        }
        Decision::Reserve { job, at, .. } => format!("reserve for {job} at {at}"),
        Decision::Unreserve { job } => format!("unreserve {job}"),
        other => format!("{other:?}"),
    }
}

fn slice(slice: &Slice) -> String {
    match slice.share {
        berth_model::Share::Whole => slice.gpu.to_string(),
        _ => format!("{}({})", slice.gpu, milli(&slice.share)),
    }
}
