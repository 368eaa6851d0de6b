//! Findings that a known limit explains. Each names its line of the page, word for word: when the
//! limit is lifted and the line goes, the finding counts again.

use super::check::{Outcome, fits};
use super::finding::{Finding, What};
use std::collections::{BTreeMap, BTreeSet};

const PAGE: &str = include_str!("../../../../docs/operate/kubernetes/limits.md");

struct Explanation {
    what: What,
    line: &'static str,
    /// Whether it is about a case like this one.
    applies: fn(&Finding, &Outcome) -> bool,
}

const EXPLANATIONS: [Explanation; 3] = [
    Explanation {
        what: What::LeftWithoutPreempting,
        line: "Berth preempts no pod for a rule about other pods, for a spread or for a volume.",
        applies: |finding, berth| {
            berth
                .after
                .pods
                .get(&finding.about)
                .is_some_and(|pod| pod.has_rules() || !pod.claims().is_empty())
        },
    },
    Explanation { what: What::LeftWaiting, line: KEPT_FOR_GPUS, applies: fits_gpu_nodes_alone },
    Explanation {
        what: What::LeftWithoutPreempting,
        line: KEPT_FOR_GPUS,
        applies: fits_gpu_nodes_alone,
    },
];

const KEPT_FOR_GPUS: &str = "Pods without GPUs may wait although a GPU node has CPU left";

/// Whether the pod asks for no GPU, and fits no node without GPUs.
fn fits_gpu_nodes_alone(finding: &Finding, berth: &Outcome) -> bool {
    let scene = &berth.after;
    let has_gpus =
        |amounts: &BTreeMap<String, i128>| amounts.iter().any(|(name, n)| is_gpu(name) && *n > 0);
    scene.pods.get(&finding.about).is_some_and(|pod| {
        let mut others = scene.nodes.values().filter(|node| !has_gpus(&node.room));
        !has_gpus(&pod.asks) && !others.any(|node| fits(scene, pod, node).is_ok())
    })
}

fn is_gpu(resource: &str) -> bool {
    resource.ends_with("/gpu")
}

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
