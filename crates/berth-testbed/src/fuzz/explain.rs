//! Findings that a known limit explains. Each names its line of the page, word for word: when the
//! limit is lifted and the line goes, the finding counts again.

use super::check::{Node, Outcome, Pod, Scene, check_complete, fits, rules};
use super::finding::{Finding, What};
use super::world::Key;
use std::collections::BTreeSet;

const PAGE: &str = include_str!("../../../../docs/operate/kubernetes/limits.md");

struct Explanation {
    what: What,
    line: &'static str,
    /// Whether it is about a case like this one.
    applies: fn(&Finding, &Outcome) -> bool,
}

const EXPLANATIONS: [Explanation; 8] = [
    Explanation {
        what: What::LeftWithoutPreempting,
        line: "Berth preempts no pod for a rule about other pods, for a spread or for a volume.",
        applies: has_to_do_with_rules,
    },
    Explanation { what: What::LeftWaiting, line: KEPT_FOR_GPUS, applies: is_kept_for_gpus },
    Explanation {
        what: What::LeftWithoutPreempting,
        line: KEPT_FOR_GPUS,
        applies: would_be_kept_for_gpus,
    },
    Explanation { what: What::GangLeftWaiting, line: KEPT_FOR_GPUS, applies: gang_needs_gpu_nodes },
    // Nodes that would have been cheaper are kept, so others had to do.
    Explanation { what: What::MoreVictims, line: KEPT_FOR_GPUS, applies: may_not_have_gpu_nodes },
    Explanation {
        what: What::BudgetViolated,
        line: KEPT_FOR_GPUS,
        applies: may_not_have_gpu_nodes,
    },
    Explanation {
        what: What::NeedlessVictim,
        line: "Pods that preempt at the same moment choose their victims one after another.",
        applies: has_several_preemptors,
    },
    Explanation {
        what: What::MoreVictims,
        line: "Berth weighs what victims lose before it counts them.",
        applies: saves_work_on_gpus,
    },
];

/// Each of several pods needed what it stopped, and all of them together might not.
fn has_several_preemptors(finding: &Finding, berth: &Outcome) -> bool {
    let of = |pod: &&Pod| {
        pod.key == finding.about || pod.gang.as_ref().is_some_and(|gang| gang.name == finding.about)
    };
    berth.victims.iter().filter(of).any(|victim| berth.preemptors_of(victim) > 1)
}

/// One pod less would have done elsewhere, but it works on a GPU.
fn saves_work_on_gpus(finding: &Finding, berth: &Outcome) -> bool {
    let scene = &berth.before;
    let is_costly = |pod: &Pod| pod.asks.get(GPU).is_some_and(|gpus| *gpus > 0);
    let Some(urgent) = berth.after.pods.get(&finding.about) else { return false };
    let would_do = |node: &Node| {
        let mut lower = scene.on(&node.name).filter(|other| other.priority < urgent.priority);
        lower.any(|other| {
            is_costly(other) && fits(&scene.without(&[&other.key]), urgent, node).is_ok()
        })
    };
    !berth.victims.iter().any(is_costly) && scene.nodes.values().any(would_do)
}

/// Wherever pods of lower priorities could make room, a rule is in the way as long as they are there.
fn has_to_do_with_rules(finding: &Finding, berth: &Outcome) -> bool {
    let scene = &berth.after;
    scene.pods.get(&finding.about).is_some_and(|pod| {
        scene.nodes.values().all(|node| {
            fits(&without_lower(scene, pod, node), pod, node).is_err()
                || rules(scene, pod, node).is_err()
        })
    })
}

fn without_lower(scene: &Scene, pod: &Pod, node: &Node) -> Scene {
    let lower = scene.on(&node.name).filter(|other| other.priority < pod.priority);
    let lower: Vec<&Key> = lower.map(|other| &other.key).collect();
    scene.without(&lower)
}

const KEPT_FOR_GPUS: &str = "Pods without GPUs may wait although a GPU node has CPU left";

/// The default of the policy `gpu_reserve`, as a divisor.
const RESERVE_DIVISOR: i128 = 2;

/// Every node that would take the pod keeps for its free GPUs what the pod would take.
fn is_kept_for_gpus(finding: &Finding, berth: &Outcome) -> bool {
    let scene = &berth.after;
    scene.pods.get(&finding.about).is_some_and(|pod| {
        let mut takers = scene.nodes.values().filter(|node| fits(scene, pod, node).is_ok());
        takers.all(|node| takes_from_gpus(scene, pod, node))
    })
}

/// The same where pods of lower priorities would have left.
fn would_be_kept_for_gpus(finding: &Finding, berth: &Outcome) -> bool {
    let scene = &berth.after;
    scene.pods.get(&finding.about).is_some_and(|pod| {
        scene.nodes.values().all(|node| {
            let scene = without_lower(scene, pod, node);
            fits(&scene, pod, node).is_err() || takes_from_gpus(&scene, pod, node)
        })
    })
}

/// The pods of a gang ask for no GPU, and would not all fit on nodes that have no free one.
fn gang_needs_gpu_nodes(finding: &Finding, berth: &Outcome) -> bool {
    let mut scene = berth.after.clone();
    let is_member = |pod: &&Pod| pod.gang.as_ref().is_some_and(|gang| gang.name == finding.about);
    let asks = berth.after.pods.values().filter(is_member).any(|pod| pod.asks.contains_key(GPU));
    scene.nodes.retain(|_, node| free(&berth.after, node, GPU) == 0);
    let still = check_complete(&scene, true);
    !asks && !still.iter().any(|one| (one.what, &one.about) == (finding.what, &finding.about))
}

/// The pod would get another node by stopping pods there, but for what that keeps for its GPUs.
fn may_not_have_gpu_nodes(finding: &Finding, berth: &Outcome) -> bool {
    let scene = &berth.before;
    berth.after.pods.get(&finding.about).is_some_and(|pod| {
        scene.nodes.values().any(|node| {
            let scene = without_lower(scene, pod, node);
            fits(&scene, pod, node).is_ok() && takes_from_gpus(&scene, pod, node)
        })
    })
}

/// What is left of a resource on a node.
fn free(scene: &Scene, node: &Node, resource: &str) -> i128 {
    let used = scene.on(&node.name).filter_map(|other| other.asks.get(resource));
    node.room.get(resource).copied().unwrap_or(0) - used.sum::<i128>()
}

/// Whether a pod without GPUs would leave too little for the free GPUs of a node.
fn takes_from_gpus(scene: &Scene, pod: &Pod, node: &Node) -> bool {
    let gpus = node.room.get(GPU).copied().unwrap_or(0);
    let takes = |resource: &str| {
        let asked = pod.asks.get(resource).copied().unwrap_or(0);
        let room = node.room.get(resource).copied().unwrap_or(0);
        // Of the part of each free GPU, without rounding.
        asked > 0
            && (free(scene, node, resource) - asked) * gpus * RESERVE_DIVISOR
                < room * free(scene, node, GPU)
    };
    gpus > 0 && !pod.asks.contains_key(GPU) && (takes("cpu") || takes("memory"))
}

const GPU: &str = "nvidia.com/gpu";

/// Marks what is explained.
pub fn explain(findings: &mut [Finding], berth: &Outcome) {
    let page = words(PAGE);
    for finding in findings {
        let explanation = EXPLANATIONS.iter().find(|one| {
            one.what == finding.what
                && page.contains(&words(one.line))
                && (one.applies)(finding, berth)
        });
        finding.explained_by = explanation.map(|one| one.line);
    }
}

/// Lines of explanations that the page does not have any more. They explain nothing; remove them.
pub fn stale() -> BTreeSet<&'static str> {
    let page = words(PAGE);
    EXPLANATIONS.iter().map(|one| one.line).filter(|line| !page.contains(&words(line))).collect()
}

/// Without line breaks and marks.
fn words(text: &str) -> String {
    let plain = text.replace("**", "");
    plain.split_whitespace().collect::<Vec<_>>().join(" ")
}
