//! The log as lines people can read.

use super::play::Record;
use berth_model::{Decision, Event, Slice, Time};

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
            let groups = spec
                .groups
                .iter()
                .map(|group| format!("{} to {} x {:?}", group.min, group.count, group.gpus));
            let groups: Vec<String> = groups.collect();
            let array = spec.array.as_ref().map_or(String::new(), |array| {
                format!(" array {:?} at most {:?}", array.elements, array.at_most)
            });
            format!("job {} submitted to {}: {}{array}", spec.id, spec.queue, groups.join(" and "))
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
            format!("policy: grace {}, stale {}", policy.grace, policy.stale)
        }
        Event::QueueSet { queue } => format!("queue {} set", queue.name),
        Event::Decided { decisions, .. } => {
            let all: Vec<String> = decisions.iter().map(decision).collect();
            format!("decided: {}", all.join("; "))
        }
        other => format!("{other:?}"),
    }
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
        _ => format!("{}({})", slice.gpu, super::money::part(&slice.share)),
    }
}
