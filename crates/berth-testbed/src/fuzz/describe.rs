//! A finding, with what one needs to understand it.

use super::Both;
use super::check::Run;
use super::finding::Finding;
use super::world::{Key, World};
use serde_json::Value;
use std::fmt::Write;

/// One text for each finding; the last one has the world as well.
pub fn describe(world: &World, findings: &[&Finding], both: &Both) -> Vec<String> {
    let mut texts: Vec<String> = findings.iter().map(|one| short(world, one, both)).collect();
    if let Some(last) = texts.last_mut() {
        last.push_str(&whole(world, both));
    }
    texts
}

fn short(world: &World, finding: &Finding, both: &Both) -> String {
    let mut text = format!("seed {} ({:?}): {finding}\n", world.seed, world.kind);
    if let Some(why) = both.berth.reasons.get(&finding.about) {
        let _ = writeln!(text, "  it says: {why}");
    }
    text
}

fn whole(world: &World, both: &Both) -> String {
    let mut text = String::new();
    for node in &world.nodes {
        let (name, status) = (Key::of(node).name, &node["status"]["allocatable"]);
        let labels = &node["metadata"]["labels"];
        let _ = writeln!(text, "  node {name}: {status} {labels} {}", node["spec"]);
    }
    for budget in &world.budgets {
        let _ = writeln!(text, "  budget {}: {}", Key::of(budget), budget["spec"]);
    }
    for (at, phase) in world.phases.iter().enumerate() {
        if at > 0 {
            let ended: Vec<String> = phase.leaving.iter().map(Key::to_string).collect();
            let _ = writeln!(text, "  then end: {}; and come:", ended.join(", "));
        }
        for pod in &phase.pods {
            let key = Key::of(pod);
            let (theirs, ours) =
                (became(world, &both.peer, &key), became(world, &both.berth, &key));
            let _ = writeln!(
                text,
                "  pod {key}: kube-scheduler: {theirs}, berth: {ours}; {} {}",
                pod["metadata"]["labels"],
                without_defaults(pod)
            );
        }
    }
    text
}

/// The node of a pod at the end, or where it was stopped.
fn became(world: &World, run: &Run, key: &Key) -> String {
    let outcome = run.outcome(world);
    let node = |pod: &super::check::Pod| pod.node.clone().unwrap_or_else(|| "-".to_owned());
    if let Some(pod) = outcome.after.pods.get(key) {
        return node(pod);
    }
    let victim = outcome.victims.iter().find(|victim| victim.key == *key);
    victim.map_or_else(|| "ended".to_owned(), |victim| format!("stopped on {}", node(victim)))
}

fn without_defaults(pod: &Value) -> String {
    let mut spec = pod["spec"].clone();
    let containers = spec["containers"].take();
    let requests = &containers[0]["resources"]["requests"];
    let ports = &containers[0]["ports"];
    let mut text = requests.to_string();
    if let Some(spec) = spec.as_object_mut() {
        spec.remove("containers");
        for (field, value) in spec {
            let _ = write!(text, " {field}={value}");
        }
    }
    if !ports.is_null() {
        let _ = write!(text, " ports={ports}");
    }
    let gang = &pod["metadata"]["annotations"]["berth.dev/gang"];
    if !gang.is_null() {
        let _ = write!(text, " gang={gang}");
    }
    text
}
